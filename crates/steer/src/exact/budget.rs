//! How long a thread that has other things to do may see to rules.

/// Of the time that passes, one part in so many.
const PART: u64 = 10;
/// In a row, in microseconds, and then what is under way.
const MOST_US: i64 = 2_000;

/// Time for calls of drivers, which take ten to a thousand microseconds each: a tenth of what passes, and two milliseconds in a row
/// when there was nothing to do before. What a call took beyond that is made up for later.
pub struct Budget {
    clock: Box<dyn Fn() -> u64>,
    left_us: i64,
    /// Until when the time that passed has been reckoned in.
    at_us: u64,
}

impl Budget {
    /// By a clock of microseconds that never goes back.
    pub fn new(clock: impl Fn() -> u64 + 'static) -> Self {
        Self { left_us: MOST_US, at_us: clock(), clock: Box::new(clock) }
    }

    /// Whether there is time for one more call.
    pub fn has_left(&mut self) -> bool {
        let now_us = (self.clock)();
        let parts = now_us.saturating_sub(self.at_us) / PART;
        self.at_us += parts * PART;
        self.left_us = self.left_us.saturating_add_unsigned(parts).min(MOST_US);
        self.left_us > 0
    }

    /// Makes a call, and takes off what it took.
    pub fn spend<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let before_us = (self.clock)();
        let made = call();
        let took_us = (self.clock)().saturating_sub(before_us);
        self.left_us = self.left_us.saturating_sub_unsigned(took_us);
        made
    }
}

//! A meter's last second on its way to another worker, with its session. Without it the new worker would have to take what may
//! have passed at most for what has, and nobody would catch up on anything until a second later.

use super::{MeterWay, Past, Recent};
use rules::Direction;

/// Room for the last second of a meter, or what of one goes along.
#[derive(Debug)]
pub(crate) struct Second {
    /// Whose it is: the account's place in its session, and which way. `None` while there is nothing in it.
    pub(crate) of: Option<(u16, Direction)>,
    past: Past,
    looked_ns: u64,
}

impl Second {
    /// Allocated by the control side, as everything that a worker fills.
    pub(crate) fn empty() -> Self {
        Self { of: None, past: Past::empty(), looked_ns: 0 }
    }
}

impl Recent {
    /// Whether anything is known of a meter.
    pub(crate) fn knows(&self, way: MeterWay) -> bool {
        self.places.len() > 0 && self.places.get(way.0).is_some()
    }

    /// A meter leaves, and with it what is known of it; whether anything was.
    pub(crate) fn carry_off(&mut self, way: MeterWay, second: &mut Second) -> bool {
        let place = self.knows(way).then(|| self.places.get(way.0)).flatten().map(|place| place as usize);
        let known = place.and_then(|place| self.pasts.get_mut(place).zip(self.looked_ns.get(place)));
        let Some((past, looked_ns)) = known else { return false };
        // Both have the room for all marks, so neither worker allocates anything.
        std::mem::swap(past, &mut second.past);
        second.looked_ns = *looked_ns;
        self.forget(way);
        true
    }

    /// A meter has come, with what was known of it where it was. Where there is no place for that, it goes on as one that nothing
    /// is known of.
    pub(crate) fn adopt(&mut self, way: MeterWay, second: &mut Second, now_ns: u64) {
        let Some(place) = self.place(way, now_ns) else { return };
        let Some((past, looked_ns)) = self.pasts.get_mut(place).zip(self.looked_ns.get_mut(place)) else {
            return;
        };
        std::mem::swap(past, &mut second.past);
        past.way = way;
        *looked_ns = second.looked_ns;
    }
}

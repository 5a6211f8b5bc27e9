//! Rates of QERs: of bits, by the generic cell rate algorithm, and of packets, by windows (TS 29.244 5.4.4 and 8.2.64).

use crate::detection::Arrival;
use crate::enforcement::Moment;
use crate::recent::Recent;
use rules::{BitRates, Direction, PacketRate, PacketRates, Qer, QerId};

/// Time in units of 1/256 ns: fine enough for a byte at hundreds of Gb/s.
pub(crate) const UNITS_PER_NS: u64 = 256;

/// What a packet weighs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) direction: Direction,
    /// Bytes of the user's IP packet.
    pub(crate) length: u64,
}

impl Load {
    /// Of a user's packet.
    pub(crate) fn of(arrival: &Arrival) -> Self {
        Self { direction: arrival.source.direction(), length: arrival.packet.bytes.len() as u64 }
    }
}

/// What a meter belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MeterKey {
    /// A QER of one session.
    Own(QerId),
    /// The node's own limit, of one session.
    Node,
    /// All QERs of one correlation, in whichever session.
    Shared(u64),
}

/// What QERs let pass, and what has passed.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    pub(crate) key: MeterKey,
    mbr: Option<BitRates>,
    packet_rates: PacketRates,
    pub(crate) uplink: Passed,
    pub(crate) downlink: Passed,
}

/// What has passed one way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passed {
    /// The theoretical arrival time, in units of 1/256 ns.
    pub(crate) arrival: u64,
    /// Where the window of a packet rate ends, in nanoseconds, and how many packets have passed in it.
    window_ends_ns: u64,
    packets: u32,
    recent: Recent,
}

impl Meter {
    /// `None` for a QER without a limit.
    pub(crate) fn new(qer: &Qer) -> Option<Self> {
        let key = meter_key(qer)?;
        let (uplink, downlink) = (Passed::default(), Passed::default());
        Some(Self { key, mbr: qer.mbr, packet_rates: qer.packet_rates, uplink, downlink })
    }

    /// The node's own limit for a user.
    pub(crate) fn of_the_node(mbr: BitRates) -> Self {
        let (uplink, downlink) = (Passed::default(), Passed::default());
        let packet_rates = PacketRates::default();
        Self { key: MeterKey::Node, mbr: Some(mbr), packet_rates, uplink, downlink }
    }

    /// Goes on where another has got to, by limits of its own: what is to be waited for is shorter at a higher rate, and over
    /// where there is none; a window that is longer than the limit's own ends with that.
    pub(crate) fn continuing(self, known: Option<&Self>, now_ns: u64) -> Self {
        let Some(known) = known else { return self.forgetting_windows() };
        let passed = |direction: Direction, passed: &Passed| {
            let ((before, _), (limit, window)) = (known.limits(direction), self.limits(direction));
            Passed {
                arrival: waited(passed.arrival, (before, limit), now_ns),
                ..passed.within(window, now_ns)
            }
        };
        let (uplink, downlink) =
            (passed(Direction::Uplink, &known.uplink), passed(Direction::Downlink, &known.downlink));
        Self { uplink, downlink, ..self }.forgetting_windows()
    }

    /// Where packets are no longer limited, how many passed is forgotten.
    fn forgetting_windows(mut self) -> Self {
        let PacketRates { uplink, downlink } = self.packet_rates;
        for (rate, passed) in [(uplink, &mut self.uplink), (downlink, &mut self.downlink)] {
            if rate.is_none() {
                (passed.window_ends_ns, passed.packets) = (0, 0);
            }
        }
        self
    }

    /// Whether other sessions may have it, too.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.key, MeterKey::Shared(_))
    }

    fn limits(&self, direction: Direction) -> (Option<u64>, Option<PacketRate>) {
        let (kbps, packets) = match direction {
            Direction::Uplink => (self.mbr.map(|mbr| mbr.uplink_kbps), self.packet_rates.uplink),
            Direction::Downlink => (self.mbr.map(|mbr| mbr.downlink_kbps), self.packet_rates.downlink),
        };
        (kbps.filter(|kbps| *kbps > 0), packets)
    }

    /// A generic cell rate algorithm, and a window of packets. A rate of 0 is none.
    pub(crate) fn conforms(&mut self, direction: Direction, moment: Moment<'_>) -> bool {
        let (kbps, packets) = self.limits(direction);
        let passed = if direction == Direction::Uplink { &mut self.uplink } else { &mut self.downlink };
        let in_window = if moment.now_ns < passed.window_ends_ns { passed.packets } else { 0 };
        packets.is_none_or(|rate| in_window < rate.packets.into())
            && kbps.is_none_or(|kbps| passed.has_left(kbps, moment))
    }

    /// Whether a packet would not pass, without a look that changes anything.
    pub(crate) fn holds_up(&self, direction: Direction, moment: Moment<'_>) -> bool {
        !self.clone().conforms(direction, moment)
    }

    pub(crate) fn charge(&mut self, load: Load, now_ns: u64) {
        let (kbps, packets) = self.limits(load.direction);
        let passed = if load.direction == Direction::Uplink { &mut self.uplink } else { &mut self.downlink };
        let now = now_ns.saturating_mul(UNITS_PER_NS);
        passed.recent.charge(load.length, now.saturating_sub(passed.arrival));
        let takes = kbps.map_or(0, |kbps| cost(load.length, kbps));
        passed.arrival = passed.arrival.max(now).saturating_add(takes);
        if let Some(rate) = packets {
            if now_ns >= passed.window_ends_ns {
                passed.window_ends_ns = now_ns + u64::from(rate.window_s) * 1_000_000_000;
                passed.packets = 0;
            }
            passed.packets += 1;
        }
    }
}

impl Passed {
    /// Whether a packet may pass at a rate now: it is not too far ahead, or so far that it catches up on the last second.
    fn has_left(&mut self, kbps: u64, moment: Moment<'_>) -> bool {
        let (setup, now) = (moment.setup, moment.now_ns.saturating_mul(UNITS_PER_NS));
        let is_within =
            |ns: u64| self.arrival <= moment.now_ns.saturating_add(ns).saturating_mul(UNITS_PER_NS);
        if is_within(setup.burst_ns) {
            return true;
        }
        let is_near = setup.catch_up_ns > 0 && is_within(setup.catch_up_ns);
        is_near && self.recent.has_left(kbps, self.arrival.saturating_sub(now), moment.now_ns)
    }

    /// A window ends no later than one of this limit that began now.
    fn within(&self, limit: Option<PacketRate>, now_ns: u64) -> Self {
        let longest_ns = limit.map_or(0, |limit| u64::from(limit.window_s) * 1_000_000_000);
        Self { window_ends_ns: self.window_ends_ns.min(now_ns.saturating_add(longest_ns)), ..self.clone() }
    }
}

/// When what has passed would have left, by a rate in place of another, in kbit/s.
fn waited(arrival: u64, (before, limit): (Option<u64>, Option<u64>), now_ns: u64) -> u64 {
    let now = now_ns.saturating_mul(UNITS_PER_NS);
    let Some(ahead) = arrival.checked_sub(now) else { return arrival };
    match (before, limit) {
        (_, None) => now,
        (Some(before), Some(limit)) if limit > before => {
            now + (u128::from(ahead) * u128::from(before) / u128::from(limit)) as u64
        }
        _ => arrival,
    }
}

/// `None` for a QER without a limit.
pub(crate) fn meter_key(qer: &Qer) -> Option<MeterKey> {
    let is_limited = qer.mbr.is_some() || !qer.packet_rates.is_none();
    is_limited.then(|| qer.correlation.map_or(MeterKey::Own(qer.id), MeterKey::Shared))
}

/// Whether what the rules say of a PDR's packets one way limits them. A rate of 0 is none.
pub(crate) fn is_limited(qers: &[Qer], direction: Direction) -> bool {
    qers.iter().any(|qer| {
        let (mbr, packets) = match direction {
            Direction::Uplink => (qer.mbr.map_or(0, |mbr| mbr.uplink_kbps), qer.packet_rates.uplink),
            Direction::Downlink => (qer.mbr.map_or(0, |mbr| mbr.downlink_kbps), qer.packet_rates.downlink),
        };
        mbr > 0 || packets.is_some()
    })
}

/// The time that so many bytes take at a rate, in units of 1/256 ns.
pub(crate) fn cost(length: u64, kbps: u64) -> u64 {
    let (times, over) = octet(kbps);
    u64::try_from(u128::from(length) * times / over).unwrap_or(u64::MAX)
}

/// The time that a byte takes at a rate, as a fraction of units of 1/256 ns: to the nearest of 27 binary digits. Data plane and
/// reference must round alike, so the formula is fixed to the operation.
pub(crate) fn octet(kbps: u64) -> (u128, u128) {
    let exact = |over: u32| (u128::from(UNITS_PER_NS * 8_000_000) << over, u128::from(kbps) << 4);
    // 16 times as long, so that the slowest rate has as few digits.
    let digits = |over: u32| (exact(over).0 + exact(over).1 / 2) / exact(over).1;
    let over = (0..31).find(|over| digits(*over) >= 1 << 26).unwrap_or(31);
    (digits(over) << 4, 1 << over)
}

//! How much of what is addressed to ports the kernel gets.

use crate::config::PortConfig;
use crate::frame::PortIndex;

const SECOND_NS: u64 = 1_000_000_000;
/// What may come at once, of a pace: as much as the ring to the kernel takes, and no more, so that who comes next finds room.
const BURST_NS: u64 = 10_000_000;
/// Of the pace of a port, what tells of neighbours has one part in so many.
const NEIGHBOURS: u32 = 8;

/// What is for the kernel, by who must not be kept from it by others. Each has a pace of its own: a download does not cut off the
/// links' detection, and neither takes the kernel's neighbours away, without which it reaches nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// It tells the Ethernet address of a neighbour.
    Neighbour,
    /// It is of a routing protocol, as it says itself.
    Routing,
    /// Everything else.
    Rest,
}

/// Packets at even distances, and a few at once (the generic cell rate algorithm, ITU-T I.371 annex A).
#[derive(Clone, Copy)]
struct Pace {
    distance_ns: u64,
    due_ns: u64,
}

impl Pace {
    fn new(per_s: u32) -> Self {
        Self { distance_ns: SECOND_NS / u64::from(per_s.max(1)), due_ns: 0 }
    }

    fn take(&mut self, now_ns: u64) -> bool {
        let may = self.due_ns <= now_ns + BURST_NS;
        if may {
            self.due_ns = self.due_ns.max(now_ns) + self.distance_ns;
        }
        may
    }
}

/// By [`Urgency`].
type Paces = [Pace; 3];

/// By port; none of those that leave the kernel alone.
pub(crate) struct Punting(Box<[Option<Paces>]>);

impl Punting {
    /// Of these ports, each of which may punt so many packets in a second, at this worker.
    pub(crate) fn new(ports: &[PortConfig], per_s: impl Fn(usize) -> u32) -> Self {
        let paces = |at| [per_s(at) / NEIGHBOURS, per_s(at), per_s(at)].map(Pace::new);
        let of_port = |(at, port): (usize, &PortConfig)| port.punt.is_some().then(|| paces(at));
        Self(ports.iter().enumerate().map(of_port).collect())
    }

    /// Whether the kernel gets what is addressed to a port and not spoken here.
    pub(crate) fn is_on(&self, port: PortIndex) -> bool {
        self.0.get(usize::from(port)).is_some_and(Option::is_some)
    }

    /// Whether it gets one more now.
    pub(crate) fn take(&mut self, port: PortIndex, urgency: Urgency, now_ns: u64) -> bool {
        let Some(Some(paces)) = self.0.get_mut(usize::from(port)) else { return false };
        paces[urgency as usize].take(now_ns)
    }
}

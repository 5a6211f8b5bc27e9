//! Where limits stand. As long as that does not change, it makes no difference which of the packets of one moment comes
//! first: what passes is only added up.

use crate::Reference;
use crate::enforcement::Moment;
use rules::Direction;

/// Where all limits stand; two are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Of all sessions, in their order: each meter each way, the node's own limit each way, each quota, and each BAR; whether it
    /// lets nothing pass.
    held_up: Vec<bool>,
    /// Packets that were counted before they were known not to leave: until then they have used some of a quota.
    taken_back: u64,
    /// Packets that wait for a next hop, where there is room for few: copies, which nobody counts, and others alike.
    waiting: usize,
}

impl Standing {
    /// What even packets that are all the same change for each other: how many have been taken back of quotas, and how many wait.
    pub const fn put_off(&self) -> (u64, usize) {
        (self.taken_back, self.waiting)
    }
}

impl Reference {
    /// Where limits stand for packets that come at this time.
    pub fn standing(&self, now_ns: u64) -> Standing {
        let moment = Moment { now_ns, setup: &self.setup, part_of: None, waits: false };
        Standing {
            held_up: self.sessions.iter().flat_map(|session| session.held_up(moment)).collect(),
            taken_back: self.sessions.iter().map(crate::Session::taken_back).sum(),
            waiting: self.waiting.len(),
        }
    }
}

impl crate::Session {
    fn held_up(&self, moment: Moment<'_>) -> impl Iterator<Item = bool> {
        let ways = [Direction::Uplink, Direction::Downlink];
        let refuses = move |way| self.own_limit().is_some_and(|meter| meter.holds_up(way, moment));
        let meters = self.meters().iter();
        let meters = meters.flat_map(move |meter| ways.map(|way| meter.holds_up(way, moment)));
        meters.chain(ways.map(refuses)).chain(self.used_up()).chain(self.full())
    }
}

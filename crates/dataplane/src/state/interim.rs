//! What sessions have counted since it was told last, of some of them at a time: whoever asks goes through all of them.

use super::sessions::Sessions;
use dplink::UsageCounts;
use rules::Seid;

/// How far it has come, and what it found.
#[derive(Debug)]
pub(crate) struct Interim {
    /// Places of sessions to look at; what is left of them had no room in `counts`.
    pub(crate) looks: u32,
    /// The worker has so many places, with a session or without.
    pub(crate) places: u32,
    /// Of URRs that have counted; has the room.
    pub(crate) counts: Vec<(Seid, UsageCounts)>,
    /// The place that is next, and of its accounts the first.
    next: (u32, u16),
}

impl Interim {
    /// Before all sessions, with room for so many URRs.
    pub(crate) fn new(room: usize) -> Self {
        Self { looks: 0, places: 0, counts: Vec::with_capacity(room), next: (0, 0) }
    }
}

impl Sessions {
    /// Goes on through all places, from the last to the first again. That a URR has counted shows in its first packet since it told:
    /// packets write nothing for this, and of sessions at rest nothing else is read.
    pub(crate) fn tell_interim(&mut self, interim: &mut Interim, now_ns: u64) {
        interim.places = self.places_used();
        interim.looks = interim.looks.min(interim.places);
        while interim.looks > 0 {
            if interim.next.0 >= interim.places {
                interim.next = (0, 0);
            }
            if !self.tell_changed(interim, now_ns) {
                return;
            }
            interim.next = (interim.next.0 + 1, 0);
            interim.looks -= 1;
        }
    }

    /// Tells what has changed at the place that is next; whether there was room for all of it.
    fn tell_changed(&mut self, interim: &mut Interim, now_ns: u64) -> bool {
        let Interim { counts, next: (place, first), .. } = interim;
        let Some(session) = self.slots.get_mut(*place as usize).and_then(Option::as_mut) else { return true };
        let (seid, base) = (session.seid, session.run.base);
        let rest = session.ledgers_mut().filter(|(_, account)| *account >= *first);
        for (ledger, account) in rest.filter(|(ledger, _)| ledger.has_counted()) {
            if counts.len() == counts.capacity() {
                *first = account;
                return false;
            }
            self.cells.with_count((base, account), |count| {
                counts.push((seid, ledger.counts(count, now_ns)));
                ledger.begin_interval(count);
            });
        }
        true
    }
}

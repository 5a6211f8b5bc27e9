//! What workers tell of usage: when an account wants a look, what is due of it, now or soon.

use super::usage::Due;
use super::{SessionIndex, State, StepIndex};
use dplink::{Start, UsageCause, UsageCounts};
use rules::{Direction, Seid};

/// Most usage told between two turns of the control side; what does not fit is told with the session's next packet.
pub(crate) const USED_MAX: usize = 256;

/// URRs whose thresholds wait to be told; those of others are looked at with every packet.
pub(super) const LATE_MAX: usize = 4_096;

/// A URR has something to tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) seid: Seid,
    /// `None` where nobody has asked.
    pub(crate) cause: Option<UsageCause>,
    pub(crate) counts: UsageCounts,
}

impl State {
    /// Counts a packet that its account wanted a look at, and tells what is due. Where there is no room to tell, the
    /// next packet is looked at again. `start` says what the packet is, should it be the first.
    pub(crate) fn look(
        &mut self,
        at: (SessionIndex, u16),
        (direction, bytes): (Direction, u32),
        start: impl FnOnce(&Self) -> Option<Start>,
    ) {
        self.look_at(at, (direction, (1, bytes)), start);
    }

    /// As [`State::look`], of several packets together.
    pub(super) fn look_at(
        &mut self,
        at: (SessionIndex, u16),
        packets: (Direction, (u32, u32)),
        start: impl FnOnce(&Self) -> Option<Start>,
    ) {
        let Some(seid) = self.sessions.get(at.0).map(|session| session.seid) else { return };
        let now_ns = self.now_ns;
        let watches = &mut self.watches;
        let due = self.sessions.with_ledger(at, |ledger, count| {
            let due = ledger.count(count, packets, now_ns);
            ledger.let_pass(count, (at, watches), now_ns);
            due
        });
        let Some(due) = due else { return };
        let (untold, start) = (due == Due { untold: true, ..Due::default() }, due.start.then(|| start(self)));
        if untold {
            self.tell_unasked((seid, at));
        }
        for cause in due.causes(start.flatten()) {
            self.tell((seid, at), cause);
        }
    }

    /// Tells what an account has counted, before that is too much to lose.
    #[cold]
    fn tell_unasked(&mut self, (seid, at): (Seid, (SessionIndex, u16))) {
        let (now_ns, has_room) = (self.now_ns, self.used.len() < USED_MAX);
        self.sessions.with_ledger(at, |ledger, count| match has_room {
            true => {
                self.used.push(Used { seid, cause: None, counts: ledger.counts(count, now_ns) });
                ledger.begin_interval(count);
            }
            false => ledger.put_off(count),
        });
    }

    /// Counts a packet to the user that was dropped, in those of its step's URRs that mind.
    #[cold]
    pub(crate) fn count_dropped(&mut self, at: StepIndex, bytes: u32) {
        let step = self.sessions.cells.whole(at);
        let Some(seid) = self.sessions.get(step.session).map(|session| session.seid) else { return };
        for place in step.lists().usages() {
            let at = (step.session, *place);
            let is_due = self.sessions.with_ledger(at, |ledger, _| ledger.drop_downlink(bytes));
            if is_due == Some(true) {
                self.tell((seid, at), UsageCause::DroppedDownlink);
            }
        }
    }

    /// Tells what is due about an account: now, or where its like was told just before, or there is no room, soon.
    fn tell(&mut self, (seid, at): (Seid, (SessionIndex, u16)), cause: UsageCause) {
        let now_ns = self.now_ns;
        let has_room = self.used.len() < USED_MAX;
        self.sessions.with_ledger(at, |ledger, count| {
            if has_room && !ledger.has_to_wait(cause, now_ns) {
                self.used.push(Used { seid, cause: Some(cause), counts: ledger.counts(count, now_ns) });
                ledger.told(count, cause, now_ns);
            } else if has_room && self.late.len() < LATE_MAX {
                if !ledger.wait(count) {
                    self.late.push_back(at);
                }
            } else {
                count.look_at_next();
            }
        });
    }

    /// An account whose threshold waits to be told, with another worker until now.
    pub(super) fn come_late(&mut self, at: (SessionIndex, u16)) {
        if self.late.len() < LATE_MAX {
            return self.late.push_back(at);
        }
        // The next packet is looked at again.
        self.sessions.with_ledger(at, |ledger, count| drop(ledger.take_late(count)));
    }

    /// A packet came that there was no quota for. Tells that the quota is used up, where there was no room to before, or it was one of
    /// nothing; and that traffic has started: who waits for that may have given nothing until then (TS 29.244 5.4.11). `start` says
    /// what the packet is. Where nothing is left to tell, packets need no look until there is a quota again.
    #[cold]
    pub(crate) fn remind(&mut self, at: (SessionIndex, u16), start: impl FnOnce(&Self) -> Option<Start>) {
        let Some(seid) = self.sessions.get(at.0).map(|session| session.seid) else { return };
        let Some((ledger, count)) = self.sessions.ledger(at) else { return };
        let due = ledger.missed(&count);
        if due == Due::default() {
            self.sessions.with_ledger(at, |_, count| count.stop());
            return;
        }
        let start = if due.start { start(self) } else { None };
        for cause in due.causes(start) {
            let now_ns = self.now_ns;
            self.sessions.with_ledger(at, |ledger, count| {
                if self.used.len() < USED_MAX {
                    self.used.push(Used { seid, cause: Some(cause), counts: ledger.counts(count, now_ns) });
                    ledger.told(count, cause, now_ns);
                }
            });
        }
    }

    /// Tells of thresholds that had to wait, as far as there is room.
    pub(crate) fn tell_late(&mut self) {
        let now_ns = self.now_ns;
        // One account may have two things to tell.
        while self.used.len() + 1 < USED_MAX
            && let Some(at) = self.late.pop_front()
        {
            let Some(seid) = self.sessions.get(at.0).map(|session| session.seid) else { continue };
            self.sessions.with_ledger(at, |ledger, count| {
                for cause in ledger.take_late(count) {
                    self.used.push(Used { seid, cause: Some(cause), counts: ledger.counts(count, now_ns) });
                    ledger.told(count, cause, now_ns);
                }
            });
        }
    }
}

//! Packets that were counted on their way out and did not leave: no route led on, nobody told the next hop's address, or
//! the port was full. What QoS enforcement lets pass is counted as it is forwarded (TS 29.244 5.2.2), and that was not; URRs
//! that measure before QoS enforcement (MBQE) have counted what arrived, which it did.

use super::{SessionIndex, State};
use crate::receipt::{Counted, Receipt};
use dplink::{UsageCause, UsageCounts};
use rules::Direction;

impl State {
    /// Takes back what was counted for a packet that does not leave.
    #[cold]
    pub(crate) fn take_back(&mut self, receipt: Receipt) {
        let packet = (receipt.direction(), receipt.bytes());
        match receipt.counted() {
            Counted::Nobody => {}
            Counted::Flow(ticket) => self.content.take_back(ticket, packet.0, packet.1),
            Counted::Step(at) => {
                let step = self.sessions.cells.whole(at);
                for place in step.lists().usages_on_leaving() {
                    self.take_back_from((step.session, place), packet);
                }
            }
        }
    }

    /// What is to be told of the account, and is not yet, is told of no more than it has counted now. A notice that lies
    /// here since then may be of less than that: of packets before the one that is lost.
    fn take_back_from(&mut self, at: (SessionIndex, u16), packet: (Direction, u32)) {
        let Some(seid) = self.sessions.get(at.0).map(|session| session.seid) else { return };
        let now_ns = self.now_ns;
        let now = self.sessions.with_ledger(at, |ledger, count| {
            count.take_back(packet.0, packet.1);
            ledger.counts(count, now_ns)
        });
        let Some(now) = now else { return };
        let mut begins_anew = false;
        for used in self.used.iter_mut().skip(self.let_out) {
            if used.seid == seid && used.counts.urr == now.urr {
                limit(&mut used.counts, &now);
                begins_anew |=
                    matches!(used.cause, Some(UsageCause::VolumeThreshold | UsageCause::VolumeQuota));
            }
        }
        if begins_anew {
            self.sessions.with_ledger(at, |ledger, count| ledger.reported(count));
        }
    }

    /// A packet that was taken back leaves after all.
    pub(crate) fn count_again(&mut self, receipt: Receipt) {
        let Counted::Step(at) = receipt.counted() else { return };
        let (direction, bytes) = (receipt.direction(), receipt.bytes());
        let step = self.sessions.cells.whole(at);
        for place in step.lists().usages_on_leaving() {
            let (_, tally) = self.sessions.cells.way((step.base(at), place), direction);
            if !tally.add(bytes, self.now_ns) {
                self.look((step.session, place), (direction, bytes), |_| None);
            }
        }
    }

    /// Whether the rules of a session counted a packet.
    pub(crate) fn is_of(&self, receipt: Receipt, session: SessionIndex) -> bool {
        match receipt.counted() {
            Counted::Step(at) => self.sessions.cells.session(at) == session,
            Counted::Nobody | Counted::Flow(_) => false,
        }
    }

    /// All that was counted until now has left, or has been taken back.
    pub(crate) const fn has_let_out(&mut self) {
        self.let_out = self.used.len();
    }
}

/// Makes every count at most another.
fn limit(counts: &mut UsageCounts, most: &UsageCounts) {
    counts.uplink_bytes = counts.uplink_bytes.min(most.uplink_bytes);
    counts.downlink_bytes = counts.downlink_bytes.min(most.downlink_bytes);
    counts.uplink_packets = counts.uplink_packets.min(most.uplink_packets);
    counts.downlink_packets = counts.downlink_packets.min(most.downlink_packets);
}

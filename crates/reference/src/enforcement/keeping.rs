//! Packets kept for a user who sleeps (TS 29.244 5.2.3.1, 5.2.4): none leaves as long as the rules stay.

use super::Session;
use crate::Reference;
use crate::meters::Load;
use crate::reason::DropReason;
use rules::{ApplyAction, Bar, Direction, Far, Pdr, PdrId, Seid};

impl Session {
    /// Keeps a packet, unless the user has as many as the FAR's BAR suggests (TS 29.244 8.2.100): then it is lost, and counts as
    /// dropped. The control plane hears of the first one to the user that a PDR keeps (NOCP).
    pub(super) fn keep(&mut self, (pdr, far): (&Pdr, &Far), load: Load) -> Result<(), DropReason> {
        let bar = self.rules.bars.iter().find(|bar| Some(bar.id) == far.bar);
        if bar.is_some_and(|bar| self.is_full(bar)) {
            self.count_dropped(&pdr.urrs, load);
            return Err(DropReason::BufferFull);
        }
        self.kept.push((pdr.urrs.to_vec(), load));
        if far.notify && load.direction == Direction::Downlink && !self.woken.contains(&pdr.id) {
            self.woken.push(pdr.id);
        }
        Ok(())
    }

    fn is_full(&self, bar: &Bar) -> bool {
        bar.suggested_packets.is_some_and(|most| self.kept.len() >= usize::from(most))
    }

    /// Of each BAR, whether nothing more is kept by it.
    pub(crate) fn full(&self) -> impl Iterator<Item = bool> {
        self.rules.bars.iter().map(|bar| self.is_full(bar))
    }
}

impl Reference {
    /// PDRs of a session by which packets to its user were kept since it got its rules, and of which the control plane wants to
    /// hear, in the order of the first ones; and those of which it may hear, as what they drop, or find no room for, may
    /// concern it, too, and quotas may lead to other FARs.
    pub fn woken(&self, session: Seid) -> (Vec<PdrId>, Vec<PdrId>) {
        let Some(session) = self.sessions.iter().find(|known| known.seid == session) else {
            return (Vec::new(), Vec::new());
        };
        let tells =
            |far: &Far| far.notify && matches!(far.apply_action, ApplyAction::Buffer | ApplyAction::Drop);
        let quota_far = |pdr: &Pdr| {
            let urrs = session.rules.urrs.iter().filter(|urr| pdr.urrs.contains(&urr.id));
            urrs.filter_map(|urr| session.far(urr.quota_far?)).any(tells)
        };
        let may = |pdr: &&Pdr| {
            let is_down = pdr.pdi.source_interface.direction() == Direction::Downlink;
            is_down && (session.far(pdr.far).is_some_and(tells) || quota_far(pdr))
        };
        (session.woken.clone(), session.rules.pdrs.iter().filter(may).map(|pdr| pdr.id).collect())
    }
}

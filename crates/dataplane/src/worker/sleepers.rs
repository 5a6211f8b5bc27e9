//! Packets of users who sleep, and whoever has to wake them.

use super::Worker;
use crate::counters::DropReason;
use crate::explain::Explain;
use crate::frame::{Meta, Packet};
use crate::port::Port;
use crate::state::{HotStep, Kind, Patience, SessionIndex, Unwanted, WholeStep};
use dplink::Event;
use rules::{BarId, Direction, Qfi, Seid};

impl<P: Port> Worker<P> {
    /// Keeps a packet for its user, or of it, and sees to it that the control plane hears of the former, once for each PDR:
    /// who sleeps has to be woken even where there was no room for what woke it.
    pub(super) fn keep(&mut self, packet: Packet<P::Buffer>) {
        let step = self.state.sessions.cells.whole(packet.meta.step);
        let (session, meta) = (step.session, packet.meta);
        let Some(seid) = self.state.sessions.get(session).map(|session| session.seid) else {
            return self.discard(packet.buffer, DropReason::NoSession);
        };
        // Those that wait for their next hop have their places still.
        let has_room = self.kept.has_room_beside(self.held.woken());
        let most = if has_room { most_kept(&step, self.kept_per_session) } else { 0 };
        let longer_ns = step.patience().map_or(0, Patience::ns);
        let until_ns = self.state.now_ns.saturating_add(self.kept_ns).saturating_add(longer_ns);
        let lost = self.kept.keep((session, most), packet, until_ns).err();
        if lost.is_none() {
            self.recall_told(session);
        }
        if is_news(&step, &meta) && self.is_untold(&step, seid, lost.is_none()) {
            self.tell_kept(seid, &step, &meta);
        }
        if let Some(packet) = lost {
            self.discard_kept(packet, DropReason::BufferFull);
        }
    }

    /// Says what would happen to a packet.
    pub(super) fn explain(&mut self, explain: &mut Explain) {
        let Self { state, kept, held, kept_per_session, .. } = self;
        let has_room = kept.has_room_beside(held.woken());
        let may_keep = |step: &WholeStep| kept.has_room((step.session, most_kept(step, *kept_per_session)));
        explain.answer(state, |step| has_room && may_keep(step));
    }

    /// A FAR that drops may want the control plane to hear of it (TS 29.244 8.2.26, NOCP).
    pub(super) fn tell_dropped(&mut self, meta: &Meta) {
        let step = self.state.sessions.cells.whole(meta.step);
        if !is_news(&step, meta) {
            return;
        }
        let Some(seid) = self.state.sessions.get(step.session).map(|session| session.seid) else { return };
        if self.is_untold(&step, seid, false) {
            self.tell_kept(seid, &step, meta);
        }
    }

    /// Of what was kept the queue knows; of what was not, while others are kept for the user, too.
    fn is_untold(&mut self, step: &WholeStep, seid: Seid, is_kept: bool) -> bool {
        match is_kept || self.kept.has(step.session) {
            true => self.kept.is_untold(step.session, step.pdr),
            false => self.unkept.is_untold((seid, step.pdr, step.generation), self.state.now_ns),
        }
    }

    /// Whether there was room to tell; what was kept is told of later if not. The QoS flow is that of the rules, and between two
    /// tunnels the one that the first of them names.
    fn tell_kept(&mut self, session: Seid, step: &WholeStep, meta: &Meta) -> bool {
        let (pdr, traffic_class) = (step.pdr, meta.traffic_class);
        let qfi = step.qfi().or(Some(meta.qfi)).and_then(Qfi::new);
        let is_told = self.state.note(Event::DownlinkData { session, pdr, qfi, traffic_class });
        if is_told {
            self.kept.told(step.session, pdr);
            self.unkept.told((session, pdr, step.generation), self.state.now_ns);
        } else {
            self.kept.tell_later(step.session);
        }
        is_told
    }

    /// What was kept for a session is not wanted. URRs of it may want to hear of that, unless it is gone.
    pub(super) fn drop_kept(&mut self, session: Option<SessionIndex>) {
        let before = self.resumed.len();
        session.into_iter().for_each(|session| self.kept.release(session, &mut self.resumed));
        self.discard_resumed(before, DropReason::BufferDropped);
    }

    pub(super) fn drop_unwanted(&mut self, seid: Seid, unwanted: &Unwanted) {
        let session = self.state.sessions.by_seid(seid);
        match unwanted {
            Unwanted::All => self.drop_kept(session),
            Unwanted::KeptBy(bars) => session.into_iter().for_each(|session| self.drop_over(session, bars)),
        }
    }

    /// Drops what these BARs kept; the rest is about to go its way, in order.
    fn drop_over(&mut self, session: SessionIndex, bars: &[BarId]) {
        let before = self.resumed.len();
        self.kept.release(session, &mut self.resumed);
        let mut staying = before;
        for at in before..self.resumed.len() {
            let step = self.state.sessions.cells.step(self.resumed[at].meta.step);
            if !step.patience().is_some_and(|patience| bars.contains(&patience.bar())) {
                self.resumed.swap(staying, at);
                staying += 1;
            }
        }
        self.discard_resumed(staying, DropReason::BufferOver);
    }

    /// The session has changed: what was kept for it goes its way, from a place on.
    pub(super) fn wake(&mut self, session: SessionIndex, before: usize) {
        self.kept.release(session, &mut self.resumed);
        if self.resumed.len() > before && self.state.switch.carries(session) {
            self.resume_frames(before);
        }
    }

    /// A control plane that was away may not have heard of packets kept for a session, nor of traffic that began.
    pub(super) fn tell_again(&mut self, seid: Seid) {
        let Some(session) = self.state.sessions.by_seid(seid) else { return };
        self.state.sessions.await_starts(session);
        self.kept.forget_told(session);
        self.tell_untold(session);
    }

    /// Tells of packets kept that there was no room to tell of: more users may be woken at once than events wait.
    pub(super) fn tell_rest(&mut self) {
        while self.state.may_note()
            && let Some(session) = self.kept.next_untold()
        {
            self.tell_untold(session);
        }
    }

    fn tell_untold(&mut self, session: SessionIndex) {
        let Some(seid) = self.state.sessions.get(session).map(|session| session.seid) else { return };
        while let Some(meta) = self.first_untold(session) {
            let step = self.state.sessions.cells.whole(meta.step);
            if !self.tell_kept(seid, &step, &meta) {
                return;
            }
        }
    }

    fn first_untold(&self, session: SessionIndex) -> Option<Meta> {
        let cells = &self.state.sessions.cells;
        self.kept.first_untold(session, |meta| {
            let step = cells.step(meta.step);
            is_news(step, meta).then_some(step.pdr)
        })
    }
}

/// How many packets a step keeps of its session, which may have so many in all.
fn most_kept(step: &HotStep, per_session: u16) -> u16 {
    step.fits.min(per_session)
}

/// Whether the control plane wants to hear of a packet.
fn is_news(step: &HotStep, meta: &Meta) -> bool {
    matches!(step.kind, Kind::KeepAndNotify | Kind::DropAndNotify) && meta.direction() == Direction::Downlink
}

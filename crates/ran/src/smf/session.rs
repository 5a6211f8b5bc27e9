//! Sessions: which the user plane has, and which are next to be asked for.

use super::dialect::{About, Change, Phrases};
use super::event::PduSession;
use super::usage::Account;
use super::{Purpose, Smf, messages};
use crate::config::FTeidMode;
use crate::tunnel::Tunnel;
use machine::Time;
use pfcp::{Body, CreatedPdr, FTeid, Message};
use rules::Teid;
use std::collections::{BTreeMap, BTreeSet};

/// One session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) plan: PduSession,
    /// Our SEID, another at each establishment: nothing about an old one can be taken for news of the new.
    pub(super) seid: u64,
    /// What the user plane has.
    pub(super) remote: Option<Remote>,
    /// Endpoints that the user plane chose, by PDR; kept until the next session has its own, for a control plane may ask for
    /// the same again.
    pub(super) chosen: BTreeMap<u16, Tunnel>,
    /// It is established as one that was lost.
    pub(super) is_restored: bool,
    /// The user plane was told to measure for charging.
    pub(super) was_charged: bool,
    /// Its downlink is set.
    up: bool,
    /// What is to be done about it next, while it is up.
    wish: Option<Wish>,
    /// What it used.
    pub(super) account: Account,
}

/// What may be wanted of a session that is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Keep its downlink packets.
    Sleep,
    /// Send them.
    Wake,
    /// Something else.
    Change(Change),
}

/// A session of the user plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Remote {
    /// Its SEID.
    pub(super) seid: u64,
    /// Where uplink packets go.
    pub(super) uplink: Tunnel,
}

/// All of them, by index, with those to be taken up next by when.
#[derive(Debug)]
pub(super) struct Sessions {
    list: Vec<Session>,
    queue: BTreeSet<(Time, usize)>,
    up: usize,
    establishments: u32,
}

impl Sessions {
    pub(super) fn new(plans: Vec<PduSession>) -> Self {
        let session = |plan| Session {
            plan,
            seid: 0,
            remote: None,
            chosen: BTreeMap::new(),
            is_restored: false,
            was_charged: false,
            up: false,
            wish: None,
            account: Account::default(),
        };
        Self {
            list: plans.into_iter().map(session).collect(),
            queue: BTreeSet::new(),
            up: 0,
            establishments: 0,
        }
    }

    pub(super) fn account(&mut self, index: usize) -> Option<&mut Account> {
        self.list.get_mut(index).map(|session| &mut session.account)
    }

    fn set_wish(&mut self, index: usize, wish: Option<Wish>) -> Option<Wish> {
        let session = self.list.get_mut(index)?;
        std::mem::replace(&mut session.wish, wish)
    }

    pub(super) fn get(&self, index: usize) -> Option<&Session> {
        self.list.get(index)
    }

    /// By our SEID.
    pub(super) fn find(&self, seid: u64) -> Option<(usize, &Session)> {
        let index = usize::try_from(seid & u64::from(u32::MAX)).ok()?.checked_sub(1)?;
        let session = self.list.get(index).filter(|session| session.seid == seid)?;
        Some((index, session))
    }

    pub(super) fn up(&self) -> usize {
        self.up
    }

    pub(super) fn all_up(&self) -> bool {
        self.up == self.list.len()
    }

    pub(super) fn next_due(&self) -> Option<Time> {
        self.queue.first().map(|(at, _)| *at)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// To be taken up then.
    pub(super) fn queue(&mut self, index: usize, at: Time) {
        self.queue.insert((at, index));
    }

    /// The user plane has none of them; all are to be established.
    pub(super) fn establish_all(&mut self, now: Time) {
        self.forget_all();
        self.queue = (0..self.list.len()).map(|index| (now, index)).collect();
    }

    /// The user plane has none of them.
    pub(super) fn forget_all(&mut self) {
        (0..self.list.len()).for_each(|index| self.set_remote(index, None));
        self.queue.clear();
    }

    /// Whatever the user plane has is to be deleted.
    pub(super) fn delete_all(&mut self, now: Time) {
        self.queue = (0..self.list.len()).map(|index| (now, index)).collect();
    }

    pub(super) fn set_remote(&mut self, index: usize, remote: Option<Remote>) {
        self.set_up(index, false);
        if let Some(session) = self.list.get_mut(index) {
            session.remote = remote;
        }
    }

    pub(super) fn set_up(&mut self, index: usize, up: bool) {
        if let Some(session) = self.list.get_mut(index) {
            self.up = self.up + usize::from(up) - usize::from(session.up);
            session.up = up;
        }
    }

    /// Notes what was chosen for PDRs (TS 29.244 7.5.3.2). A session has as many PDRs as we made.
    pub(super) fn chosen(&mut self, index: usize, created: &[CreatedPdr]) {
        let Some(session) = self.list.get_mut(index) else { return };
        let ue = created.iter().flat_map(|pdr| &pdr.ue_ip_addresses).find_map(|address| address.ipv4);
        session.plan.ue = ue.filter(|_| session.plan.asks_for_address).unwrap_or(session.plan.ue);
        session.chosen.extend(created.iter().filter_map(|pdr| Some((pdr.pdr_id, endpoint(pdr)?))));
    }

    /// Downlink packets go there from now on.
    pub(super) fn moved(&mut self, index: usize, downlink: Tunnel) {
        self.list.iter_mut().skip(index).take(1).for_each(|session| session.plan.downlink = downlink);
    }

    /// Of those that are charged, what may be used now; `None` where nobody asks any more.
    pub(super) fn granted(&mut self, index: usize, bytes: Option<u64>) {
        let session = self.list.iter_mut().skip(index).take(1);
        for session in session.filter(|session| session.plan.report_after_bytes.is_some()) {
            session.plan.report_after_bytes = bytes;
            session.was_charged = true;
        }
    }

    pub(super) fn forget_chosen(&mut self, index: usize) {
        self.list.iter_mut().skip(index).take(1).for_each(|session| session.chosen.clear());
    }

    fn set_restored(&mut self, index: usize, is_restored: bool) {
        self.list.iter_mut().skip(index).take(1).for_each(|session| session.is_restored = is_restored);
        if !is_restored {
            self.forget_chosen(index);
        }
    }

    fn pop_due(&mut self, now: Time) -> Option<usize> {
        let due = self.queue.first().is_some_and(|(at, _)| *at <= now);
        due.then(|| self.queue.pop_first())?.map(|(_, index)| index)
    }

    /// A new SEID for an establishment: a running number, and the index.
    fn renew_seid(&mut self, index: usize) {
        self.establishments = self.establishments.wrapping_add(1);
        let low = u64::try_from(index).unwrap_or(u64::MAX).saturating_add(1) & u64::from(u32::MAX);
        if let Some(session) = self.list.get_mut(index) {
            session.seid = u64::from(self.establishments) << 32 | low;
            session.account.new_session();
            session.was_charged = false;
            session.wish = None;
        }
    }
}

fn endpoint(created: &CreatedPdr) -> Option<Tunnel> {
    match created.local_f_teid? {
        FTeid::Explicit { teid, ipv4: Some(address), .. } if teid != 0 => {
            Some(Tunnel { teid: Teid(teid), address })
        }
        _ => None,
    }
}

impl Session {
    /// The tunnel we pick, where the operator wants us to: unique among our sessions.
    pub(super) fn picked_uplink(&self, mode: FTeidMode) -> Option<Tunnel> {
        let low = u32::try_from(self.seid & u64::from(u32::MAX)).unwrap_or(0);
        match mode {
            FTeidMode::Choose => None,
            FTeidMode::Explicit(address) => Some(Tunnel { teid: Teid(low), address }),
        }
    }
}

impl Smf {
    /// Takes up sessions, as many as the window allows; the association goes after the last.
    pub(super) fn pump(&mut self, now: Time) {
        while self.phase.is_up() && self.has_room() {
            let Some(index) = self.sessions.pop_due(now) else { break };
            self.take_up(index, now);
        }
        if self.stopping && self.phase.is_up() && self.requests.is_empty() && self.sessions.is_idle() {
            self.release(now);
        }
    }

    /// What the user plane has and should not, or only has in half, is deleted first.
    fn take_up(&mut self, index: usize, now: Time) {
        let Some(session) = self.sessions.get(index) else { return };
        match (session.remote, self.stopping, session.up) {
            (Some(remote), true, _) | (Some(remote), false, false) => self.delete(index, remote, now),
            (None, false, _) => self.establish(index, now),
            (Some(remote), false, true) => self.grant(index, remote, now),
            (None, true, _) => {}
        }
    }

    /// Notes what is wanted of a session; the last word counts. One that is not up comes up awake.
    pub(super) fn wish(&mut self, index: usize, wish: Wish, now: Time) {
        if self.sessions.get(index).is_some_and(|session| session.up) {
            self.sessions.set_wish(index, Some(wish));
            self.sessions.queue(index, now);
        }
    }

    fn grant(&mut self, index: usize, remote: Remote, now: Time) {
        let wish = self.sessions.set_wish(index, None);
        let Some((of, phrases)) = self.about(index) else { return };
        let asked = match wish {
            Some(Wish::Sleep) => Some((Purpose::Sleep(index), phrases.idle(of))),
            Some(Wish::Wake) => Some((Purpose::Wake(index), phrases.wake(of))),
            Some(Wish::Change(change)) => {
                phrases.change(of, change).map(|request| (Purpose::Change(index, change), request))
            }
            None => None,
        };
        if let Some((purpose, request)) = asked {
            self.ask_session((purpose, remote.seid), request, now);
        }
    }

    fn establish(&mut self, index: usize, now: Time) {
        self.sessions.renew_seid(index);
        let Some((of, phrases)) = self.about(index) else { return };
        let restoration = phrases.restoration(of);
        let is_restored = restoration.is_some();
        let request = restoration.unwrap_or_else(|| phrases.establishment(of));
        self.sessions.set_restored(index, is_restored);
        // The user plane has no SEID for it yet (TS 29.244 7.2.2.4.2).
        self.ask_session((Purpose::Establish(index), 0), request, now);
    }

    /// Opens the downlink, now that the user plane has the session.
    pub(super) fn modify(&mut self, index: usize, remote: Remote, now: Time) {
        let Some((of, phrases)) = self.about(index) else { return };
        let request = phrases.activation(of);
        self.ask_session((Purpose::Modify(index), remote.seid), request, now);
    }

    fn delete(&mut self, index: usize, remote: Remote, now: Time) {
        let Some((of, phrases)) = self.about(index) else { return };
        let request = phrases.deletion(of);
        self.ask_session((Purpose::Delete(index), remote.seid), request, now);
    }

    fn about(&self, index: usize) -> Option<(About<'_>, &'static dyn Phrases)> {
        let about = About { settings: &self.settings, session: self.sessions.get(index)? };
        Some((about, self.settings.dialect.phrases()))
    }

    fn ask_session(&mut self, (purpose, seid): (Purpose, u64), request: impl Into<Body>, now: Time) {
        let priority = self.settings.dialect.phrases().priority();
        let message = Message { priority, ..Message::session(seid, messages::UNNUMBERED, request) };
        self.ask(purpose, message, now);
    }
}

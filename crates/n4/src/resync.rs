//! A data plane that is lost, and one that is there: the one that was lost, or another life of it, which counts from zero.
//!
//! A million sessions cannot be looked at in one go: control planes would hear nothing of us meanwhile and give us up. So a session
//! learns which life counts it when it wakes ([`Sessions::counted_by`](crate::registry::Sessions::counted_by)), before anything else
//! is done about it; and those that measure something are attended to by portions, between which all else is done.

use crate::interface::Level;
use crate::node::Node;
use crate::paging;
use crate::sessions::Session;
use machine::Time;
use rules::Seid;
use std::time::Duration;

/// After the data plane has come back, sessions are asked about within this time, not all at once.
const REFRESH_MS: u64 = 10_000;
/// Sessions attended to in one go, and the pause before the next ones: of a million sessions, the last is attended to some
/// 15 s later.
const PORTION: usize = 64;
const BETWEEN_PORTIONS: Duration = Duration::from_millis(1);

/// Sessions that have yet to be attended to since the data plane came, in the same order in every run, and when the next are.
#[derive(Debug, Default)]
pub(crate) struct Refreshing {
    sessions: std::vec::IntoIter<Seid>,
    at: Option<Time>,
}

impl Refreshing {
    pub(crate) const fn next_due(&self) -> Option<Time> {
        self.at
    }
}

impl Node {
    /// The data plane is there, in this life of it.
    pub(crate) fn data_path_found(&mut self, epoch: u64) {
        self.epoch = Some(epoch);
        self.hear_of_paths();
        self.sessions.counted_by(epoch);
        self.refreshing = Refreshing { sessions: self.sessions.all().into_iter(), at: Some(self.now) };
        self.refresh_some();
    }

    /// What is under way may never be done. What has been, and waits for a control plane alone, goes on waiting for it.
    pub(crate) fn data_path_lost(&mut self) {
        let is_under_way = !self.sessions.pending().is_empty();
        let has_ended = std::mem::take(&mut self.plane_leaves);
        // One that has ended as it was told to is not lost, unless something was under way.
        if is_under_way || !has_ended {
            let level = if is_under_way { Level::Warning } else { Level::Info };
            self.note(level, "the data plane is lost: what it has not confirmed is taken back".to_owned());
        }
        (self.epoch, self.lost_ms) = (None, self.wall_ms());
        self.refreshing = Refreshing::default();
        self.out_of_step();
        self.endings.lost(self.now);
        self.hear_no_more_of_paths();
        self.sessions.lost();
        for seid in self.sessions.pending() {
            if !self.sessions.look(seid, Session::has_been_deleted) {
                self.fail(seid, None);
            }
        }
    }

    /// Attends to some of the sessions that have not been since the data plane came. Those that are gone are passed over; new ones
    /// begin with it.
    pub(crate) fn refresh_some(&mut self) {
        if self.refreshing.at.is_none_or(|at| at > self.now) {
            return;
        }
        for _ in 0..PORTION {
            let Some(seid) = self.refreshing.sessions.next() else {
                return self.refreshing = Refreshing::default();
            };
            self.refresh(seid);
            // One after the other: all of them awake would be many times as large.
            self.sessions.rest(self.wall_ms());
        }
        self.refreshing.at = Some(self.now + BETWEEN_PORTIONS);
    }

    /// Whoever measures nothing sleeps on, unless packets of its user are kept until a moment. What the data plane was asked before it went it answers no more.
    fn refresh(&mut self, seid: Seid) {
        if self.sessions.look(seid, Session::is_metered) {
            self.close_changed(seid, None);
            let refresh_ms = self.wall_ms() + seid.0 % REFRESH_MS;
            let session = self.sessions.get_mut(seid);
            session.into_iter().for_each(|session| session.meter.refresh_ms = Some(refresh_ms));
            self.attend(seid);
        } else if self.sessions.look(seid, paging::is_extended) {
            self.attend(seid);
        }
    }
}

//! Taking leave of control planes, as an operator orders, of all or of one. Of all: each is asked to release its association within a time (TS 29.244
//! 6.2.7.3, 6.2.8). Nobody associates any more, or who was released would be back at once with new sessions, until the
//! process ends or the order is taken back. A process that starts before the time is up goes on: it was not stopped for that. Who is
//! released alone may associate again once the time is over or it has released us, but is not asked to.

use crate::ending::{Lost, Then};
use crate::exchange::Purpose;
use crate::interface::{Level, Output};
use crate::node::Node;
use crate::peers::Association;
use machine::Time;
use pfcp::{AssociationUpdateRequest, Cause, Message, flags};
use std::collections::BTreeMap;
use std::time::Duration;

/// When their sessions have ended, control planes are told what these used, for so long at most.
const FAREWELL: Duration = Duration::from_secs(30);

impl Node {
    /// Takes leave: until the time is up no session is made; then all sessions end, what they used is told, and the associations
    /// are over, whether or not they were released. What is to be done.
    pub fn leave(&mut self, within: Duration, now: Time) -> Vec<Output> {
        self.now = self.now.max(now);
        self.peers.leave(self.now + within);
        self.save_node();
        let until = self.now + within;
        let all: Vec<String> = self.associations();
        all.iter().for_each(|node_id| self.release_association(node_id, until));
        std::mem::take(&mut self.out)
    }

    /// Takes leave of one control plane, in the same way. Nothing is done where none is associated by this Node ID. What is to be
    /// done.
    pub fn leave_one(&mut self, node_id: &str, within: Duration, now: Time) -> Vec<Output> {
        self.now = self.now.max(now);
        self.release_association(node_id, self.now + within);
        std::mem::take(&mut self.out)
    }

    /// Stays, though it was to leave: control planes may associate, and those who have not released us make sessions again. What
    /// is to be done.
    pub fn stay(&mut self, now: Time) -> Vec<Output> {
        self.now = self.now.max(now);
        if self.peers.stay() {
            self.save_node();
        }
        let all = self.associations();
        all.iter().for_each(|node_id| self.go_on_with(node_id));
        self.unreleased.clear();
        std::mem::take(&mut self.out)
    }

    /// Stays with one control plane, though it was to release us. What is to be done.
    pub fn stay_with(&mut self, node_id: &str, now: Time) -> Vec<Output> {
        self.now = self.now.max(now);
        self.go_on_with(node_id);
        self.unreleased.remove(node_id);
        std::mem::take(&mut self.out)
    }

    /// Sessions that the data plane was told to let go are over; the others stay. Whose association is over has left.
    fn go_on_with(&mut self, node_id: &str) {
        let has_left = self.has_left(node_id);
        let is_it = |it: &&mut Association| it.ends.is_some() && !has_left;
        let Some(association) = self.peers.get_mut(node_id).filter(is_it) else { return };
        (association.ends, association.farewell, association.is_to_hear) = (None, None, false);
        let gone = std::mem::take(&mut association.parted);
        if self.endings.know_parting(node_id) {
            self.give_up_ending(node_id, None);
        }
        self.remember_endings(node_id);
        if gone > 0 {
            let text = format!("no leave is taken of {node_id}, but {gone} of its sessions had gone already");
            self.note(Level::Warning, text);
        }
    }

    /// Sessions of a control plane that have gone, as it did not release us in time.
    pub fn parted_with(&self, node_id: &str) -> usize {
        self.peers.get(node_id).map_or(0, |association| association.parted)
    }

    /// Control planes whose association was over, or is about to be, as they had not released us in time; and how many of their
    /// sessions ended for that. Those of former orders, until one is taken back. Some may be associated again by now.
    pub fn unreleased(&self) -> BTreeMap<String, usize> {
        let ends = |association: &Association| association.farewell.is_some() && !association.is_over();
        let is_over = |node_id: &str| !self.peers.get(node_id).is_some_and(ends);
        let over = self.unreleased.iter().filter(|(node_id, _)| is_over(node_id));
        over.map(|(node_id, ended)| (node_id.clone(), *ended)).collect()
    }

    /// An operator may order it of ever others, and never take that back.
    pub(crate) fn was_not_released(&mut self, node_id: &str, sessions: usize) {
        if self.unreleased.len() >= self.config.limits.peers {
            self.unreleased.pop_first();
        }
        self.unreleased.insert(node_id.to_owned(), sessions);
    }

    /// The process is stopped, and not by a fault. Once nobody is left, leave has been taken: the next start serves again.
    pub fn stopped(&mut self) -> Vec<Output> {
        if self.leaving().is_empty() && self.peers.stay() {
            self.save_node();
        }
        std::mem::take(&mut self.out)
    }

    /// Node IDs of the control planes that are associated, but for those that have left and whose sessions are ending.
    pub fn associations(&self) -> Vec<String> {
        let associated = self.peers.iter().filter(|association| !association.is_over());
        associated.map(|association| association.record.node_id.clone()).collect()
    }

    /// Whether a control plane is to release us, and has not yet.
    pub(crate) fn is_leaving(&self, node_id: &str) -> bool {
        self.peers.get(node_id).is_some_and(|association| association.ends.is_some())
    }

    /// Who is left while leave is taken: Node IDs of those whose release has not come yet or whose sessions are ending, and addresses of
    /// those who may answer yet that they associate.
    pub fn leaving(&self) -> Vec<String> {
        let leaves = self.peers.leaves().is_some();
        let left = self.peers.iter().filter(|it| it.ends.is_some() || (leaves && it.is_over()));
        let left = left.map(|association| association.record.node_id.clone());
        let asked = self.peers.asked_to_associate().filter(|_| leaves);
        left.chain(asked.map(|address| address.to_string())).collect()
    }

    /// Whether a control plane has left, and does not associate anew as soon as its sessions have ended.
    fn has_left(&self, node_id: &str) -> bool {
        let is_over = self.peers.get(node_id).is_some_and(Association::is_over);
        is_over && !self.endings.know_return(node_id)
    }

    /// Asks a control plane to release its association before we have left, unless it has left, or its time is up: what its sessions
    /// used is being told, and that is not put off.
    pub(crate) fn release_association(&mut self, node_id: &str, until: Time) {
        let has_left = self.has_left(node_id);
        let is_there = |it: &&mut Association| !has_left && it.farewell.is_none();
        let Some(association) = self.peers.get_mut(node_id).filter(is_there) else { return };
        association.ends = Some(until);
        self.unreleased.remove(node_id);
        self.remember_endings(node_id);
        self.ask_to_leave(node_id, until - self.now);
    }

    /// Whoever was asked before we were restarted may not have heard.
    pub(crate) fn remind_leaving(&mut self) {
        for (node_id, ends) in self.peers.take_unheard() {
            self.ask_to_leave(&node_id, ends - self.now);
        }
    }

    fn ask_to_leave(&mut self, node_id: &str, within: Duration) {
        if let Some(association) = self.peers.get(node_id) {
            let address = association.record.address;
            let request = AssociationUpdateRequest {
                association_release_request: Some(flags::RELEASE_SARR),
                graceful_release_period: Some(flags::timer(Some(within.as_secs()))),
                ..AssociationUpdateRequest::new(self.config.node_id.clone())
            };
            let purpose = Purpose::Leave(node_id.to_owned());
            self.ask(address, purpose, |sequence| Message::node(sequence, request));
        }
    }

    pub(crate) fn answered_leave(&mut self, node_id: &str, cause: Cause) {
        if !cause.is_accepted() {
            let number = cause.number();
            self.note(Level::Warning, format!("{node_id} does not want to release us: cause {number}"));
        }
    }

    /// Associations whose release was asked for and whose time has run out.
    pub(crate) fn end_associations(&mut self) {
        for node_id in self.peers.ended(self.now) {
            if self.is_farewell_over(&node_id) {
                self.note(
                    Level::Warning,
                    format!("the association with {node_id} is over: it was not released in time"),
                );
                self.forget_untold(&node_id);
                self.end_association(node_id);
            }
        }
    }

    /// There was no time to tell more.
    fn forget_untold(&mut self, node_id: &str) {
        let untold = self.losses.forget(node_id);
        if untold > 0 {
            let text = format!("what {untold} of {node_id}'s sessions used was not told");
            self.note(Level::Warning, text);
        }
    }

    /// The last of its sessions has ended: from now on it is told what they used. The next look at associations that are over finds
    /// whether that is done.
    pub(crate) fn bid_farewell(&mut self, node_id: &str) {
        let until = self.now + FAREWELL;
        self.peers.get_mut(node_id).into_iter().for_each(|it| it.farewell = Some(until));
    }

    /// Its sessions end, and it is told what they used: whether that is done, or has taken too long.
    fn is_farewell_over(&mut self, node_id: &str) -> bool {
        let farewell = self.peers.get(node_id).and_then(|association| association.farewell);
        if farewell.is_none() {
            self.was_not_released(node_id, self.sessions.count_of(node_id));
            self.bid_farewell(node_id);
            self.end_sessions_of(node_id.to_owned(), Lost::Parting, Then::Told);
        }
        // Sessions of which it has yet to hear end by portions.
        let ends = self.peers.get(node_id).is_some_and(|association| association.is_ending);
        !ends && (self.losses.are_told(node_id) || farewell.is_some_and(|until| until <= self.now))
    }
}

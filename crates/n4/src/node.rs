//! The machine: what comes in, what is due, and who is asked and answered.

mod datagrams;
mod restoration;

use crate::asking::Requests;
use crate::config::{Config, Limits};
use crate::ending::Endings;
use crate::exchange::Key;
use crate::few_kinds::FewKinds;
use crate::few_lines::FewLines;
use crate::interface::{Counters, Input, Output, Start};
use crate::late::Lates;
use crate::load::Figure;
use crate::losses::Losses;
use crate::paths::News;
use crate::peers::Peers;
use crate::pfds::Pfds;
use crate::pools::Pools;
use crate::predefined::Renewal;
use crate::registry::Sessions;
use crate::report::Reports;
use crate::resync::Refreshing;
use crate::room::{Going, Stale};
use crate::sequences::Sequences;
use crate::tunnels::Tunnels;
use dplink::Desired;
use machine::{AnswerCache, AnswerLimits, Clock, Overdue, Time};
use rules::{Interface, Seid};
use session::{NodeRecord, SessionRecord};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

/// A PFCP node of a user plane.
#[derive(Debug)]
pub struct Node {
    pub(crate) config: Config,
    pub(crate) recovery_time_stamp: u32,
    pub(crate) peers: Peers,
    pub(crate) sessions: Sessions,
    pub(crate) tunnels: Tunnels,
    pub(crate) pools: Pools,
    pub(crate) pfds: Pfds,
    pub(crate) reports: Reports,
    pub(crate) answers: AnswerCache<Key>,
    pub(crate) requests: Requests,
    pub(crate) sequences: Sequences,
    /// Of requests the data plane works on, in order; some may be done already.
    pub(crate) deadlines: VecDeque<(Time, Seid, u64)>,
    /// When the data plane confirmed anything last.
    pub(crate) confirmed: Option<Time>,
    /// Sessions that are over, of which the database keeps the last answer until then.
    pub(crate) over: VecDeque<(Time, Seid)>,
    /// When sessions are attended to next.
    pub(crate) timers: BTreeSet<(Time, Seid)>,
    /// The life of the data plane, while it is there.
    pub(crate) epoch: Option<u64>,
    pub(crate) refreshing: Refreshing,
    pub(crate) renewal: Renewal,
    pub(crate) endings: Endings,
    /// Sessions that may go for the room they leave, and those that give way to others.
    pub(crate) stale: Stale,
    pub(crate) going: Going,
    /// When the link to it broke last, or we started.
    pub(crate) lost_ms: u64,
    /// The data plane has said that it ends.
    pub(crate) plane_leaves: bool,
    /// Of our last question about usage.
    pub(crate) token: u64,
    /// The moment of our zero.
    pub(crate) since_1900_ms: u64,
    /// By how much the time of day is ahead of moments.
    pub(crate) clock_ahead_ms: i64,
    /// Sessions that may wait for a time of day, which jumped, and when to look at some.
    pub(crate) to_look_at: Vec<Seid>,
    pub(crate) look_again: Option<Time>,
    pub(crate) load: Figure,
    pub(crate) overload: Figure,
    /// Percent of requests that control planes are asked to leave out.
    pub(crate) reduction: u8,
    /// GTP-U peers that do not answer, by the side they are on, and since when.
    pub(crate) failed_paths: BTreeMap<(Interface, IpAddr), Time>,
    /// Of these, those that the data plane has not told of since we started, and when they are taken for recovered.
    pub(crate) unheard_paths: BTreeSet<(Interface, IpAddr)>,
    pub(crate) paths_due: Option<Time>,
    /// What control planes have not confirmed of paths, by Node ID.
    pub(crate) path_news: BTreeMap<String, News>,
    /// What the data plane lost and may not take back.
    pub(crate) losses: Losses,
    /// Sessions that are gone but for their last counts.
    pub(crate) late: Lates,
    pub(crate) few_lines: FewLines,
    pub(crate) few_kinds: FewKinds,
    /// Control planes that had not released us when their time was up, and how many of their sessions end for that, until the next
    /// order.
    pub(crate) unreleased: BTreeMap<String, usize>,
    pub(crate) counters: Counters,
    /// The highest number of a charging data record.
    pub(crate) last_cdr: u64,
    /// Sessions that are gone and not charged yet, and until when their last counts are waited for; some may have come.
    pub(crate) leaving: BTreeMap<Seid, Box<SessionRecord>>,
    pub(crate) leaving_until: VecDeque<(Time, Seid)>,
    /// Nothing can be kept now.
    pub(crate) cannot_keep: bool,
    /// Requests that were refused since the database takes nothing.
    pub(crate) unkept: u64,
    pub(crate) out: Vec<Output>,
    pub(crate) now: Time,
}

impl Node {
    /// A node that goes on where `start` stopped. Nothing is sent until it is asked what is due.
    pub fn new(config: Config, start: Start) -> Self {
        let stamp = start.node.recovery_time_stamp;
        let clock = Clock { now_ms: 0, ahead_ms: start.node.clock_ahead_ms };
        // The moment of our zero: moments go on where they were in our former life.
        let since_1900_ms = clock.moment(start.since_1900_ms);
        let limits = config.limits;
        let known = (start.associations, start.forgotten);
        let peers = Peers::new(&config, known, (start.node.leaves_ms, since_1900_ms));
        let mut node = Self {
            recovery_time_stamp: stamp,
            sessions: Sessions::new((stamp, start.node.reserved_seids), limits.sessions),
            tunnels: Tunnels::new(stamp, &limits, &config.gtpu),
            pools: Pools::new(&config.ue_pools, stamp),
            pfds: Pfds::new(start.pfds),
            reports: Reports::default(),
            answers: AnswerCache::new(answer_limits(&config)),
            requests: Requests::new((config.t1, config.n1), limits.requests, limits.peers),
            // Peers may remember the requests of our former life by their numbers.
            sequences: Sequences::new(start.node.reserved_sequences, since_1900_ms),
            deadlines: VecDeque::new(),
            confirmed: None,
            over: VecDeque::new(),
            timers: BTreeSet::new(),
            epoch: None,
            refreshing: Refreshing::default(),
            renewal: Renewal::after(&start.told, &config.predefined),
            endings: Endings::default(),
            stale: Stale::default(),
            going: Going::default(),
            lost_ms: since_1900_ms,
            plane_leaves: false,
            token: 0,
            since_1900_ms,
            clock_ahead_ms: clock.ahead_ms,
            to_look_at: vec![],
            look_again: None,
            load: Figure::default(),
            overload: Figure::default(),
            reduction: 0,
            failed_paths: start.paths.iter().map(|path| ((path.side, path.peer), Time::ZERO)).collect(),
            unheard_paths: start.paths.iter().map(|path| (path.side, path.peer)).collect(),
            paths_due: None,
            path_news: Self::news_unheard_of(&peers),
            peers,
            losses: Losses::default(),
            late: Lates::default(),
            few_lines: FewLines::default(),
            few_kinds: FewKinds::default(),
            unreleased: BTreeMap::new(),
            counters: Counters::default(),
            last_cdr: start.last_cdr,
            leaving: BTreeMap::new(),
            leaving_until: VecDeque::new(),
            cannot_keep: false,
            unkept: 0,
            out: vec![],
            now: Time::ZERO,
            config,
        };
        node.take_up(&start.sessions);
        node
    }

    /// What the next process is to know of this one.
    pub(crate) fn save_node(&mut self) {
        let until_ms = |until: Time| self.since_1900_ms + until.since_zero().as_millis() as u64;
        self.out.push(Output::SaveNode(NodeRecord {
            recovery_time_stamp: self.recovery_time_stamp,
            leaves_ms: self.peers.leaves().map(until_ms),
            clock_ahead_ms: self.clock_ahead_ms,
            reserved_seids: self.sessions.reserved(),
            reserved_sequences: Some(self.sequences.reserved()),
        }));
    }

    /// Our name of a new session.
    pub(crate) fn new_seid(&mut self) -> Seid {
        let before = self.sessions.reserved();
        let seid = self.sessions.new_seid();
        if self.sessions.reserved() != before {
            self.save_node();
        }
        seid
    }

    /// Takes what came, at `now`, and says what is to be done.
    pub fn handle(&mut self, input: Input<'_>, now: Time) -> Vec<Output> {
        self.now = self.now.max(now);
        match input {
            Input::Datagram { from, bytes } => self.datagram(from, bytes),
            Input::DataPath(notice) => self.data_path(notice),
            Input::DataPathLost => self.data_path_lost(),
            Input::UserPlanePath { side, peer, is_up } => self.user_plane_path((side, peer), is_up),
            Input::TimeOfDay { since_1900_ms } => self.time_of_day(since_1900_ms),
            Input::Waited(waited) => self.waited(waited),
            Input::Tick => self.tick(),
        }
        self.let_go();
        self.sessions.rest(self.wall_ms());
        let saved = self.sessions.saved().map(|(seid, packed)| Output::SaveSession(seid, packed));
        saved.chain(self.out.drain(..)).collect()
    }

    /// Whether the database takes what is to be kept. While it does not, requests that would make something to be kept are
    /// refused, by the cause for a failure of the system (TS 29.244 8.2.1); what ends something is done.
    pub const fn set_keeping(&mut self, keeps: bool) {
        self.cannot_keep = !keeps;
    }

    /// When a [`Input::Tick`] next has something to do.
    pub fn next_due(&self) -> Option<Time> {
        let late = self.deadlines.front().map(|(deadline, ..)| *deadline);
        let timer = self.timers.first().map(|(at, _)| *at);
        let over = self.over.front().map(|(until, _)| *until);
        let (leaving, lost, news) = (self.leaving_due(), self.losses.next_due(), self.news_due());
        [
            self.requests.next_due(),
            self.peers.next_due(),
            late,
            timer,
            over,
            leaving,
            lost,
            news,
            self.look_again,
            self.refreshing.next_due(),
            self.renewal.next_due(),
            self.endings.next_due(),
            self.few_lines.next_due(),
            self.few_kinds.next_due(),
            self.unkept_due(),
            self.paths_due,
            self.late.next_due(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// How all sessions should be: what a data plane that resynchronises must be told.
    pub fn desired(&self) -> impl Iterator<Item = Desired> {
        self.sessions.desired(&self.config)
    }

    /// When what sessions there are began, in seconds since 1900: outlives restarts as they do.
    pub const fn recovery_time_stamp(&self) -> u32 {
        self.recovery_time_stamp
    }

    /// Our SEIDs of all sessions, in no order.
    pub fn all(&self) -> Vec<Seid> {
        self.sessions.all()
    }

    /// How a session should be now, confirmed or not; nothing where it should not be.
    pub fn desired_of(&self, session: Seid) -> Option<Desired> {
        self.sessions.desired_of(session, &self.config)
    }

    /// What has been counted.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How many sessions there are, confirmed or not.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// How many tunnel endpoints of ours are in use.
    pub fn tunnels(&self) -> usize {
        self.tunnels.len()
    }

    /// How many users' addresses of our pools are in use.
    pub fn addresses(&self) -> usize {
        self.pools.len()
    }

    fn tick(&mut self) {
        for overdue in self.requests.overdue(self.now) {
            match overdue {
                Overdue::Resend(asking) => self.resend(asking),
                Overdue::GaveUp(sequence, asking) => {
                    self.next_stand_in(&asking);
                    self.tell_elsewhere(&asking);
                    if !self.tell_stand_in(&asking) {
                        self.unanswered(sequence, &asking);
                    }
                }
            }
        }
        self.answers.expire(self.now);
        self.fail_late();
        self.attend_due();
        self.look_at_some();
        self.refresh_some();
        self.renew_some();
        self.end_more();
        self.end_unkept();
        self.sum_up_few();
        self.unheard_have_recovered();
        self.erase_old();
        self.charge_late();
        self.give_up_counts();
        self.tell_losses();
        self.tell_news_again();
        self.end_patience();
        self.end_associations();
        self.release_silent();
        self.end_stale();
        self.remind_leaving();
        self.tell_capabilities();
        for (node_id, address) in self.peers.to_ask(self.now) {
            self.ask_whether_alive(node_id, address);
        }
        for address in self.peers.tell_of_crash() {
            self.ask_whether_alive(address.to_string(), address);
        }
        for address in self.peers.wanted_now(self.now) {
            self.ask_to_associate(address);
        }
    }
}

const fn answer_limits(config: &Config) -> AnswerLimits {
    let Limits { answers: requests, answer_octets: octets, .. } = config.limits;
    AnswerLimits { lifetime: config.answer_lifetime, requests, octets }
}

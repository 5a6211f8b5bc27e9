//! The machine: what comes in, what is due, and who is asked and answered.

use crate::asking::Requests;
use crate::config::{Config, Limits};
use crate::ending::Endings;
use crate::exchange::{Asked, Key, SEQUENCES, VERSION_NOT_SUPPORTED, digest};
use crate::interface::{Counters, Input, Output, Start};
use crate::late::Lates;
use crate::load::Figure;
use crate::losses::Losses;
use crate::paths::News;
use crate::peers::Peers;
use crate::pfds::Pfds;
use crate::pools::Pools;
use crate::predefined::Renewal;
use crate::refusal::{self, Procedure, Refusal};
use crate::registry::Sessions;
use crate::report::Reports;
use crate::resync::Refreshing;
use crate::room::{Going, Stale};
use crate::strangers::Strangers;
use crate::tunnels::Tunnels;
use dplink::Desired;
use machine::{AnswerCache, AnswerLimits, Clock, Overdue, Seen, Time};
use pfcp::{Body, Cause, DecodeError, ErrorKind, Header, Message, VersionNotSupportedResponse};
use rules::{Instance, Interface, Pdi, Rules, Seid};
use session::{NodeRecord, Packed, SessionRecord};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

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
    /// Of our last request.
    pub(crate) sequence: u32,
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
    pub(crate) strangers: Strangers,
    pub(crate) counters: Counters,
    /// The highest number of a charging data record.
    pub(crate) last_cdr: u64,
    /// Sessions that are gone and not charged yet, and until when their last counts are waited for; some may have come.
    pub(crate) leaving: BTreeMap<Seid, Box<SessionRecord>>,
    pub(crate) leaving_until: VecDeque<(Time, Seid)>,
    /// Nothing can be kept now.
    cannot_keep: bool,
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
            sequence: (since_1900_ms / 64) as u32 % SEQUENCES,
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
            strangers: Strangers::default(),
            counters: Counters::default(),
            last_cdr: start.last_cdr,
            leaving: BTreeMap::new(),
            leaving_until: VecDeque::new(),
            cannot_keep: false,
            out: vec![],
            now: Time::ZERO,
            config,
        };
        node.take_up(&start.sessions);
        node
    }

    /// Goes on where the former process ended.
    fn take_up(&mut self, sessions: &[Packed]) {
        self.find_outdated();
        self.restore_all(sessions);
        self.renew_all();
        self.resume_endings();
    }

    /// What the next process is to know of this one.
    pub(crate) fn save_node(&mut self) {
        let until_ms = |until: Time| self.since_1900_ms + until.since_zero().as_millis() as u64;
        self.out.push(Output::SaveNode(NodeRecord {
            recovery_time_stamp: self.recovery_time_stamp,
            leaves_ms: self.peers.leaves().map(until_ms),
            clock_ahead_ms: self.clock_ahead_ms,
            reserved_seids: self.sessions.reserved(),
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

    fn restore_all(&mut self, kept: &[Packed]) {
        // The database has found that all can be read.
        for mut record in kept.iter().filter_map(|packed| packed.record().ok()) {
            self.restore_charging(&mut record);
            self.restore_answer(&record);
            match record.usage.is_over {
                true => {
                    self.sessions.pass_over(record.seid);
                    self.over.push_back((Time::ZERO + self.config.answer_lifetime, record.seid));
                }
                false => self.restore(record),
            }
        }
    }

    fn restore(&mut self, record: SessionRecord) {
        self.tunnels.restore(&record, self.recovery_time_stamp);
        for address in record.extras.iter().flat_map(|extras| &extras.addresses) {
            self.pools.claim_again(*address, self.instance_of(&record, *address), record.seid);
        }
        self.reports.reindex(record.seid, &Rules::default(), &record.rules);
        let seid = self.sessions.restore(record);
        self.restore_meters(seid);
        self.wake(seid, Some(Time::ZERO));
        self.sessions.rest(self.wall_ms());
    }

    /// The network in which a session has an address, where there are several.
    pub(crate) fn instance_of(&self, record: &SessionRecord, address: IpAddr) -> Option<Instance> {
        self.config.has_instances().then(|| instance_of(record, address))
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
            self.strangers_due(),
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
                Overdue::Resend(asking) => self.send_bytes(asking.to, asking.bytes),
                Overdue::GaveUp(sequence, asking) => {
                    self.next_stand_in(&asking);
                    self.tell_elsewhere(&asking);
                    self.unanswered(sequence, &asking);
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
        self.sum_up_strangers();
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

    fn datagram(&mut self, from: SocketAddr, bytes: &[u8]) {
        self.counters.received += 1;
        if !self.config.allows(from.ip()) {
            self.counters.not_allowed += 1;
            return self.note_not_allowed(from);
        }
        let digest = digest(bytes);
        match pfcp::decode(bytes) {
            Ok(message) => {
                let procedure = Procedure::of(message.body.message_type());
                let key = Key { from, sequence: message.sequence, digest };
                self.message(&Asked { key, priority: message.priority, procedure }, message);
            }
            Err(error) => self.undecodable(from, &error),
        }
    }

    fn message(&mut self, asked: &Asked, message: Message) {
        self.hear(asked.key.from);
        match &message.body {
            Body::HeartbeatRequest(request) => self.heartbeat(asked, request),
            body if asked.procedure.is_none() => self.response(asked.key.from, message.sequence, body),
            _ => self.request(asked, message.seid.unwrap_or(0), &message.body),
        }
    }

    /// What a stranger asks is refused the same again: nobody's answer gives way to that.
    fn request(&mut self, asked: &Asked, seid: u64, body: &Body) {
        let from = asked.key.from;
        let is_known = self.peers.speaking_from(from.ip()).next().is_some()
            || self.owned(from, Seid(seid)).is_ok()
            || match body {
                Body::AssociationSetupRequest(_) => true,
                Body::SessionEstablishmentRequest(request) => self.is_named_there(from.ip(), request),
                _ => false,
            };
        let seen = match is_known {
            true => self.answers.begin(asked.key, self.now),
            false => self.answers.seen(&asked.key),
        };
        match seen {
            Seen::New => self.new_request(asked, seid, body),
            Seen::InProgress => self.counters.repeated += 1,
            Seen::Answered(bytes) => {
                let bytes = bytes.to_vec();
                self.counters.repeated += 1;
                self.send_bytes(asked.key.from, bytes);
            }
        }
    }

    fn new_request(&mut self, asked: &Asked, seid: u64, body: &Body) {
        let (done, cp_seid) = match body {
            body if self.cannot_keep && !is_an_end(body) => self.not_kept(asked, seid, body),
            Body::AssociationSetupRequest(request) => (self.set_up(asked, request), None),
            Body::AssociationUpdateRequest(request) => (self.update(asked, request), None),
            Body::AssociationReleaseRequest(request) => (self.release(asked, request), None),
            Body::PfdManagementRequest(request) => (self.manage_pfds(asked, request), None),
            Body::SessionSetDeletionRequest(request) => (self.delete_set(asked, request), None),
            Body::SessionSetModificationRequest(request) => (self.modify_set(asked, request), None),
            Body::SessionEstablishmentRequest(request) => {
                (self.establish(asked, request), Some(request.cp_f_seid.seid))
            }
            _ => (self.queue(asked, Seid(seid), body), None),
        };
        if let Err(refusal) = done {
            self.refuse(asked, cp_seid, refusal);
        }
    }

    /// Refused without a look at what is asked for, but by whom.
    fn not_kept(&self, asked: &Asked, seid: u64, body: &Body) -> (Result<(), Refusal>, Option<u64>) {
        let cp_seid = match body {
            Body::SessionEstablishmentRequest(request) => Ok(Some(request.cp_f_seid.seid)),
            Body::SessionModificationRequest(_) => self.owned(asked.key.from, Seid(seid)).map(Some),
            _ => Ok(None),
        };
        match cp_seid {
            Ok(cp_seid) => (Err(Refusal::of(Cause::SystemFailure)), cp_seid),
            Err(refusal) => (Err(refusal), None),
        }
    }

    /// A request about a session waits for the one before it.
    fn queue(&mut self, asked: &Asked, seid: Seid, body: &Body) -> Result<(), Refusal> {
        self.owned(asked.key.from, seid)?;
        self.spoken_of(seid);
        let waiting = self.config.limits.waiting;
        let session = self.sessions.get_mut(seid).ok_or(Refusal::of(Cause::SessionContextNotFound))?;
        if session.pending.is_none() {
            self.session_request(asked, seid, body);
        } else if session.waiting.len() < waiting {
            session.waiting.push(*asked, body.clone());
        } else {
            let cp_seid = session.record.cp_f_seid.seid;
            self.refuse(asked, Some(cp_seid), Refusal::of(Cause::PfcpEntityInCongestion));
        }
        Ok(())
    }

    /// A session is its owner's: to anyone else it is not there.
    fn owned(&self, from: SocketAddr, seid: Seid) -> Result<u64, Refusal> {
        let session = self.sessions.get(seid).filter(|session| self.may_speak(from.ip(), session));
        let is_known = self.peers.speaking_from(from.ip()).next().is_some();
        session.map(|session| session.record.cp_f_seid.seid).ok_or(Refusal::of(match is_known {
            true => Cause::SessionContextNotFound,
            false => Cause::NoEstablishedPfcpAssociation,
        }))
    }

    pub(crate) fn session_request(&mut self, asked: &Asked, seid: Seid, body: &Body) {
        let cp_seid = self.sessions.get(seid).map(|session| session.record.cp_f_seid.seid);
        let done = match body {
            Body::SessionModificationRequest(request) => self.modify(asked, seid, request),
            _ => {
                self.delete(asked, seid);
                Ok(())
            }
        };
        if let Err(refusal) = done {
            self.refuse(asked, cp_seid, refusal);
        }
    }

    /// What cannot be read is answered where an answer is due, and needs no memory: it comes out the same again.
    fn undecodable(&mut self, from: SocketAddr, error: &DecodeError) {
        let Some(header) = error.header else {
            self.counters.garbage += 1;
            return;
        };
        let procedure = Procedure::of(header.message_type);
        let key = Key { from, sequence: header.sequence, digest: 0 };
        let asked = Asked { key, priority: header.priority, procedure };
        match (error.kind, refusal::of_decoding(error.kind)) {
            (ErrorKind::UnsupportedVersion(_), _) if header.message_type != VERSION_NOT_SUPPORTED => {
                self.send(from, &Message::node(header.sequence, VersionNotSupportedResponse::default()));
            }
            (_, Some(refusal)) if procedure.is_some() => {
                self.refuse(&asked, self.cp_seid(from, &header, error), refusal);
            }
            (_, Some(_)) => self.bad_response(from, &header),
            (_, None) => self.counters.garbage += 1,
        }
    }

    /// The sender's name for the session an unreadable request is about.
    fn cp_seid(&self, from: SocketAddr, header: &Header, error: &DecodeError) -> Option<u64> {
        let told = error.cp_f_seid.map(|f_seid| f_seid.seid);
        told.or_else(|| self.owned(from, Seid(header.seid?)).ok())
    }
}

/// Nobody asks for it again.
const fn is_an_end(body: &Body) -> bool {
    use Body::{AssociationReleaseRequest, SessionDeletionRequest, SessionSetDeletionRequest};
    matches!(body, SessionDeletionRequest(_) | SessionSetDeletionRequest(_) | AssociationReleaseRequest(_))
}

const fn answer_limits(config: &Config) -> AnswerLimits {
    let Limits { answers: requests, answer_octets: octets, .. } = config.limits;
    AnswerLimits { lifetime: config.answer_lifetime, requests, octets }
}

/// The network in which a session has an address.
fn instance_of(record: &SessionRecord, address: IpAddr) -> Instance {
    let has = |pdi: &&Pdi| match address {
        IpAddr::V4(address) => pdi.ue_ipv4 == Some(address),
        IpAddr::V6(address) => pdi.ue_ipv6.is_some_and(|prefix| prefix.contains(&address)),
    };
    let pdis = record.rules.pdrs.iter().map(|pdr| &pdr.pdi).filter(has);
    let mut instances = pdis.map(|pdi| pdi.instance).filter(|instance| *instance != Instance::DEFAULT);
    instances.next().unwrap_or_default()
}

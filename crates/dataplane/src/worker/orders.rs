//! What a worker does for the control side between two vectors, and what it tells it.

use super::{Leg, Listing, RING, Worker};
use crate::counters::{Counters, DropReason};
use crate::explain::Explain;
use crate::frame::{Meta, Packet};
use crate::graph::NodeId;
use crate::nodes;
use crate::port::Port;
use crate::side::Side;
use crate::state::{
    Admitted, Installation, Installed, Interim, Key, Loading, Parcel, Refusal, Removal, Session,
    SessionIndex, Sessions, State, USED_MAX, Used,
};
use crate::trace::Tracer;
use dplink::{Event, UsageCounts};
use rules::{Interface, OuterHeaderCreation, SeenMac, Seid, UrrId};

/// Orders obeyed between two vectors, so that control never holds up traffic.
const ORDERS_PER_TURN: usize = 16;

/// From the control side.
#[derive(Debug)]
pub(crate) enum Order {
    /// Put a session in force.
    Install(Box<Installation>),
    /// Take a session out of force.
    Remove(Box<Removal>),
    /// Tell what a session has used.
    Query(Box<Query>),
    /// Fill in the counters.
    Count(Box<Counters>),
    /// Trace packets, in place of what is traced now; nothing ends that.
    Trace(Option<Box<Tracer>>),
    /// Say what would happen to a packet.
    Explain(Box<Explain>),
    /// List some more peers.
    List(Box<Listing>),
    /// Put content rules in force.
    Load(Box<Loading>),
    /// Tell the MAC addresses of a session; the list has the room.
    Macs(Seid, Vec<SeenMac>),
    /// Tell of the MAC addresses of all sessions that have somebody ask for them.
    AllMacs,
    /// Take nothing from ports any more.
    End,
    /// Tell again what a session waits for its control plane to hear of.
    TellAgain(Seid),
    /// Do a step of a session's way to another worker.
    Move(Leg, Box<Parcel>),
    /// Tell of some more sessions what they have counted since they told last.
    Interim(Box<Interim>),
    /// Tell how busy you have been.
    Busy,
    /// Tell peers from now on that this is when we began.
    RecoveryTimeStamp(u32),
    /// All sessions have been ordered that there were: what leads to none leads nowhere.
    NoMoreSessions,
}

/// What a session has used, asked for and told.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) seid: Seid,
    /// Empty for all.
    pub(crate) urrs: Vec<UrrId>,
    /// Comes back.
    pub(crate) token: u64,
    /// Thresholds begin anew.
    pub(crate) is_reported: bool,
    /// The answer; has the room for all URRs.
    pub(crate) counts: Vec<UsageCounts>,
}

/// How busy a worker has been until now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Busy {
    /// That packets took.
    pub(crate) cycles: u64,
    /// What the clock says, in cycles.
    pub(crate) clock: u64,
    /// Packets taken from ports and from other workers.
    pub(crate) packets: u64,
}

/// To the control side, which frees what the worker no longer needs: a worker allocates and frees nothing.
#[derive(Debug)]
pub(crate) enum Report {
    /// In force; with the one it replaced.
    Installed { seid: Seid, revision: u64, installed: Installed },
    /// Not in force, and why.
    Refused { installation: Box<Installation>, refusal: Refusal },
    /// Out of force, if it ever was in.
    Removed(Box<Removal>),
    /// What a session has used.
    Queried(Box<Query>),
    /// A URR has something to tell.
    Used(Used),
    /// What some sessions have counted since they told last.
    Interim(Box<Interim>),
    /// The counters, and the number of sessions.
    Counted { counters: Box<Counters>, sessions: usize },
    /// What was traced, if anything was.
    Traced(Option<Box<Tracer>>),
    /// What would happen to a packet.
    Explained(Box<Explain>),
    /// Some peers, and perhaps more to come.
    Listed(Box<Listing>),
    /// Content rules are in force; with those they replaced.
    Loaded { revision: u64, _old: Box<Loading> },
    /// Something was seen on the wire.
    Event(Event),
    /// The MAC addresses of a session have changed.
    MacsChanged(Seid),
    /// The MAC addresses of a session.
    Macs(Seid, Vec<SeenMac>),
    /// A step of a session's way to another worker is done.
    Moved(Leg, Box<Parcel>),
    /// How busy it has been.
    Busy(Busy),
    /// It takes nothing from ports any more; and whether no packet was under way when it was asked.
    Ending { is_quiet: bool },
    /// Nothing to tell.
    Done,
}

impl<P: Port> Worker<P> {
    pub(super) fn obey(&mut self) {
        self.obeyed = 0;
        if self.withheld.is_some() && !self.tell_withheld() {
            return;
        }
        self.tell_used();
        for _ in 0..ORDERS_PER_TURN {
            // An order is taken only when its report is sure to fit, and what may have to be told before it: no
            // acknowledgement is ever lost.
            if self.reports.slots() <= USED_MAX {
                return;
            }
            let Ok(order) = self.orders.pop() else { break };
            self.obeyed += 1;
            let report = self.execute(order);
            self.tell_used();
            // What others have to know is on its way before anybody is told that it is done.
            if !self.state.steering.post.is_told() {
                self.withheld = Some(report);
                return;
            }
            self.report(report);
        }
        if self.looking.is_some() {
            self.look_at_flows();
        }
        if self.reports.slots() > 0
            && let Some(over) = self.tracer.take_if(|tracer| tracer.is_over(self.state.now_ns))
        {
            self.report(Report::Traced(Some(over)));
        }
        while self.reports.slots() > RING / 2
            && let Some(event) = self.state.next_event()
        {
            self.report(Report::Event(event));
        }
        self.tell_rest();
        while self.reports.slots() > RING / 2
            && let Some(session) = self.state.switch.next_changed()
        {
            if let Some(seid) = self.state.sessions.get(session).map(|session| session.seid) {
                self.report(Report::MacsChanged(seid));
            }
        }
    }

    /// Tells what is due of usage in the order in which it was counted, and before the answer to an order tells more: a
    /// count that is less than one before is taken for one that began anew.
    fn tell_used(&mut self) {
        if self.state.used.is_empty() {
            return;
        }
        // What does not leave is taken back before it is told.
        self.send();
        let count = self.state.used.len().min(self.reports.slots());
        for used in self.state.used.drain(..count) {
            let pushed = self.reports.push(Report::Used(used));
            debug_assert!(pushed.is_ok(), "there is room for so many");
        }
        self.state.has_let_out();
    }

    /// Whether nothing is withheld any more.
    #[cold]
    fn tell_withheld(&mut self) -> bool {
        let is_told = self.reports.slots() > 0 && self.state.steering.post.is_told();
        if let Some(report) = self.withheld.take_if(|_| is_told) {
            self.report(report);
        }
        is_told
    }

    pub(super) fn report(&mut self, report: Report) {
        let pushed = self.reports.push(report);
        debug_assert!(pushed.is_ok(), "room was checked before");
    }

    fn execute(&mut self, order: Order) -> Report {
        // What an order before it has set free was counted by rules that may change now, or be asked.
        self.send();
        match order {
            Order::Install(installation) => self.install(installation),
            Order::Remove(removal) => self.remove(removal),
            Order::Query(mut query) => {
                self.settle(query.seid, false);
                self.state.sessions.query(&mut query, self.state.now_ns);
                Report::Queried(query)
            }
            Order::Interim(mut interim) => {
                self.state.sessions.tell_interim(&mut interim, self.state.now_ns);
                Report::Interim(interim)
            }
            Order::Count(counters) => self.count(counters),
            Order::Trace(tracer) => Report::Traced(std::mem::replace(&mut self.tracer, tracer)),
            Order::Explain(mut explain) => {
                self.explain(&mut explain);
                Report::Explained(explain)
            }
            Order::Load(loading) => {
                let _old = self.state.load(loading);
                Report::Loaded { revision: self.state.content.counts().revision, _old }
            }
            Order::Macs(seid, mut macs) => {
                if let Some(session) = self.state.sessions.by_seid(seid) {
                    self.state.switch.list(session, &mut macs);
                }
                Report::Macs(seid, macs)
            }
            Order::End => {
                self.is_ending = true;
                Report::Ending { is_quiet: self.is_quiet() }
            }
            Order::AllMacs => {
                self.state.switch.change_all();
                Report::Done
            }
            Order::RecoveryTimeStamp(stamp) => {
                self.state.recovery_time_stamp = Some(stamp);
                Report::Done
            }
            Order::NoMoreSessions => {
                self.state.awaits_sessions = false;
                Report::Done
            }
            Order::TellAgain(seid) => {
                self.tell_again(seid);
                Report::Done
            }
            Order::Move(leg, parcel) => self.go(leg, parcel),
            Order::Busy => self.busy(),
            Order::List(mut listing) => {
                self.list_peers(&mut listing);
                Report::Listed(listing)
            }
        }
    }

    fn busy(&self) -> Report {
        let books = self.counters.books();
        let packets = books.received + books.handed_in;
        Report::Busy(Busy { cycles: self.busy_cycles, clock: (self.clock)(), packets })
    }

    /// What was counted, and what is there now.
    fn count(&mut self, mut counters: Box<Counters>) -> Report {
        self.counters.held = self.held() as u64;
        self.counters.flows = self.state.flows.len() as u64;
        [self.counters.pdrs, self.counters.pdrs_most] = self.state.sessions.pdr_room();
        self.counters.paths = self.state.sessions.peers.counts(self.state.now_ns);
        self.counters.content = self.state.content.counts();
        self.counters.gave_way = self.fair_share.gave_way();
        for (lane, port) in self.lanes.iter().zip(&mut self.counters.ports) {
            port.missed = lane.port.missed();
        }
        counters.copy_from(&self.counters);
        Report::Counted { counters, sessions: self.state.sessions.len() }
    }

    fn install(&mut self, mut installation: Box<Installation>) -> Report {
        let (seid, revision) = (installation.seid, installation.revision);
        if installation.unwanted.is_any() {
            // What an order of this turn has woken is kept again, if it is, before it is dropped.
            self.resume();
        }
        self.settle(seid, false);
        self.settle_held_of(seid);
        let admitted = match self.admit(&mut installation) {
            Ok(admitted) => admitted,
            Err(refusal) => return Report::Refused { installation, refusal },
        };
        let before = self.resumed.len();
        // Not where the change is refused, and not under its rules: nobody knows which of them these packets would match.
        if installation.unwanted.is_any() {
            self.drop_unwanted(seid, &installation.unwanted);
        }
        let State { sessions, ports, routes, now_ns, steering, switch, .. } = &mut self.state;
        let ethernet = installation.ethernet.take();
        let way = |peer| State::way(ports, routes, peer);
        let mut installed = sessions.install((admitted, installation), *now_ns, way);
        steering.announce(installed.spent.keys(), keys(sessions.get(installed.index)));
        overtake(sessions, installed.spent.keys(), installed.index);
        installed.spent.ethernet = switch.enter(installed.index, ethernet);
        installed.spent.inherited.iter_mut().for_each(|inherited| self.state.inherit(inherited));
        self.wake(installed.index, before);
        installed.spent.end_markers.iter().for_each(|tunnel| self.send_end_marker(*tunnel));
        Report::Installed { seid, revision, installed }
    }

    fn admit(&mut self, installation: &mut Installation) -> Result<Admitted, Refusal> {
        let State { sessions, switch, .. } = &mut self.state;
        let place = sessions.by_seid(installation.seid);
        if installation.ethernet.is_some() && !switch.has_room(place) {
            return Err(Refusal::EthernetSessions);
        }
        sessions.admit(installation)
    }

    fn remove(&mut self, mut removal: Box<Removal>) -> Report {
        self.settle(removal.seid, true);
        self.state.forget_connections(removal.seid);
        self.settle_held_of(removal.seid);
        let now_ns = self.state.now_ns;
        let removed = self.state.sessions.remove(removal.seid, now_ns, &mut removal.usage);
        removal.gone = removed.map(|(index, session)| {
            self.state.steering.announce(&session.keys, &[]);
            self.drop_kept(Some(index));
            (session, self.state.switch.leave(index))
        });
        Report::Removed(removal)
    }

    /// Counts what flows of a session have used that wait to be of an application.
    fn settle(&mut self, seid: Seid, goes: bool) {
        if let Some(session) = self.state.sessions.by_seid(seid) {
            self.state.settle_session(session, goes);
        }
    }

    fn settle_held_of(&mut self, seid: Seid) {
        if let Some(session) = self.state.sessions.by_seid(seid) {
            self.settle_held(session);
        }
    }

    /// Tells a peer that nothing more comes through a tunnel (TS 29.281 7.3.2).
    fn send_end_marker(&mut self, tunnel: OuterHeaderCreation) {
        let Some(mut buffer) = self.lanes.first_mut().and_then(|lane| lane.port.allocate()) else { return };
        self.counters.created += 1;
        let way = self.state.any_way(&[Interface::Access, Interface::Core], tunnel.address);
        let teid = tunnel.teid();
        let written =
            way.zip(teid).and_then(|(way, teid)| nodes::write_end_marker(&mut buffer, way.ends, teid));
        let (Some(way), Some(())) = (way, written) else {
            return self.discard(buffer, DropReason::NoRoute);
        };
        let mut meta = Meta::new(way.next_hop.port, Side::of(Interface::Access));
        meta.next_hop = way.next_hop;
        self.vector.push(Packet { buffer, meta });
        self.run(NodeId::EthernetOutput, None);
    }
}

/// What is the session's from now on may have been within networks of others.
fn overtake(sessions: &mut Sessions, before: &[Key], index: SessionIndex) {
    if sessions.framed.is_empty() {
        return;
    }
    let key_at = |sessions: &Sessions, at| keys(sessions.get(index)).get(at).copied();
    let mut at = 0;
    while let Some(key) = key_at(sessions, at) {
        if !before.contains(&key) {
            sessions.overtake(key);
        }
        at += 1;
    }
}

fn keys(session: Option<&Session>) -> &[Key] {
    session.map_or(&[], |session| &session.keys)
}

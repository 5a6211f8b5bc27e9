//! Says what would happen to a packet, and by which rule, from the classifier and the steps the packet path uses.
//! Nothing is sent, counted or charged, and nobody is asked for an Ethernet address.

use crate::config::PortConfig;
use crate::content::{ContentRules, Detected};
use crate::counters::DropReason;
use crate::frame::{Meta, NextHop, PortIndex};
use crate::side::Side;
use crate::state::{
    Behind, FlowKey, HotStep, Key, Kind, Place, Ports, SessionIndex, State, StepIndex, WholeStep, user_key,
};
use crate::trace::name;
use arrayvec::ArrayVec;
use dplink::{
    ExplainedAction, ExplainedApplication, ExplainedHop, ExplainedQer, ExplainedTunnel, ExplainedUrr,
    Explanation, Outcome, Question,
};
use packet::FiveTuple;
use rules::{
    Application, Arrival, Direction, Interface, Mismatch, OuterHeader, PdrId, Qfi, Seid, Teid, limits,
};
use std::net::IpAddr;

/// Tunnels of a session a packet is thought into, if its own is not named.
const TUNNELS_MAX: usize = 8;

/// A question, and what is found out about it.
#[derive(Debug)]
pub(crate) struct Explain {
    /// Comes back.
    pub(crate) token: u64,
    question: Question,
    finding: Finding,
}

#[derive(Debug, Default)]
struct Finding {
    session: Option<Seid>,
    teid: Option<Teid>,
    qfi: Option<Qfi>,
    pdr: Option<PdrId>,
    pdrs: u16,
    action: Option<ExplainedAction>,
    qers: ArrayVec<ExplainedQer, { limits::QERS_PER_PDR }>,
    urrs: ArrayVec<ExplainedUrr, { limits::URRS_PER_PDR }>,
    next_hop: Option<(NextHop, bool)>,
    /// Where it goes in the place of where it was sent.
    redirect: Option<IpAddr>,
    fate: Option<Seen>,
    taken_as: Option<TakenAs>,
    /// Has the room.
    tried: Vec<(PdrId, Mismatch)>,
}

/// What would become of the packet.
#[derive(Clone, Copy, Debug)]
enum Seen {
    Sent,
    Kept,
    Answered,
    Dropped(DropReason),
}

/// Of what application the packet's flow was taken to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TakenAs {
    /// As the question says.
    Asked,
    /// As its flow is known to be.
    Known(Detected),
    /// Its first packets would be looked at.
    Unknown,
}

/// A tunnel of ours by its port.
type Tunnel = (PortIndex, Teid);

impl Explain {
    /// With the memory it will need.
    pub(crate) fn new(token: u64, question: Question) -> Self {
        let room = if question.is_verbose { limits::PDRS } else { 0 };
        let finding = Finding { tried: Vec::with_capacity(room), ..Finding::default() };
        Self { token, question, finding }
    }

    /// Finds it out.
    pub(crate) fn answer(&mut self, state: &mut State) {
        let fate = match self.find(state) {
            Ok(step) => self.follow(state, step),
            Err(reason) => Seen::Dropped(reason),
        };
        self.finding.fate = Some(fate);
    }

    /// The step the packet takes.
    fn find(&mut self, state: &State) -> Result<StepIndex, DropReason> {
        let (found, tunnels) = self.find_session(state)?;
        let session = state.sessions.get(found).ok_or(DropReason::NoSession)?;
        (self.finding.session, self.finding.pdrs) = (Some(session.seid), session.pdrs);
        // It is of IP packets that is asked; an IPv4 packet in such a tunnel is one of these frames.
        if state.switch.carries(found) {
            return Err(DropReason::FrameLikePacket);
        }
        let classifier = &session.classifier;
        let (taken_as, application) = known(&self.question, state, session.looks.application);
        self.finding.taken_as = taken_as;
        let find = |application| {
            let arrivals = arrivals(&self.question, &tunnels, state, classifier.qfis());
            let mut arrivals = arrivals.map(move |packet| Arrival { application, ..packet });
            arrivals.find_map(|packet| Some((packet, classifier.find(&packet)?)))
        };
        // What is not known yet goes by the rules of any application where there are no others.
        let waits = taken_as == Some(TakenAs::Unknown);
        let taken = find(application).or_else(|| waits.then(|| find(Application::Any))?);
        let arrivals = arrivals(&self.question, &tunnels, state, classifier.qfis());
        let packet = taken.map(|(packet, _)| packet).or_else(|| arrivals.clone().next());
        let packet = packet.ok_or(DropReason::NoTunnel)?;
        (self.finding.teid, self.finding.qfi) = (packet.teid, packet.qfi);
        let number = taken.map(|(_, number)| number);
        let pdr = |number| state.sessions.pdr(session, number);
        if self.question.is_verbose {
            let before = 0..number.unwrap_or(usize::from(session.pdrs));
            let tried = before.filter_map(|at| Some((pdr(at), classifier.mismatch(at, &packet)?)));
            self.finding.tried.extend(tried.take(limits::PDRS));
        }
        let number = number.ok_or(DropReason::NoPdr)?;
        self.finding.pdr = Some(pdr(number));
        Ok(session.step(number))
    }

    /// The session, and the tunnels of it that the packet may come in.
    fn find_session(
        &self,
        state: &State,
    ) -> Result<(SessionIndex, ArrayVec<Tunnel, TUNNELS_MAX>), DropReason> {
        let question = &self.question;
        let goes = |(port, teid): Tunnel, direction| {
            state.source_behind(Ports::key(port, teid.0)).direction() == direction
        };
        if let Some(teid) = question.teid {
            let mut tunnels = state.ports.iter().map(|(port, _)| (port, teid));
            let found = tunnels.find_map(|(port, teid)| {
                let session = state.sessions.by_tunnel(Ports::key(port, teid.0))?;
                goes((port, teid), direction(question)).then_some((session, (port, teid)))
            });
            let (session, tunnel) = found.ok_or(DropReason::NoTunnel)?;
            return Ok((session, ArrayVec::from_iter([tunnel])));
        }
        let key = user_key(question.ue);
        let user = key.map(|key| (key, question.instance)).ok_or(DropReason::NoSession)?;
        let behind = || match state.behind(Key::User(user.0, user.1))? {
            Behind::Here(session) => Some(session),
            Behind::At(_) => None,
        };
        let found = state.sessions.by_user(user).or_else(behind).ok_or(DropReason::NoSession)?;
        let session = state.sessions.get(found).ok_or(DropReason::NoSession)?;
        let tunnels = session.keys.iter().filter_map(|key| match key {
            Key::Tunnel(key) if !question.is_down => Some(Ports::tunnel(*key)),
            _ => None,
        });
        let from_user = |tunnel: &Tunnel| goes(*tunnel, Direction::Uplink);
        Ok((found, tunnels.filter(from_user).take(TUNNELS_MAX).collect()))
    }

    /// What the step does, as `far` and the nodes behind it do it.
    fn follow(&mut self, state: &mut State, at: StepIndex) -> Seen {
        let at = match state.sessions.cells.step(at).may_yield() {
            true => state.beyond_quota(at).unwrap_or(at),
            false => at,
        };
        let step = state.sessions.cells.whole(at);
        let redirected = self.redirect(state, at);
        self.finding.redirect = redirected.unwrap_or_default();
        self.note_action(state, &step);
        self.note_rates(state, &step, at);
        self.note_usage(state, &step);
        self.note_next_hop(state, &step);
        let is_plain = matches!(step.kind, Kind::Plain | Kind::Enrich) && !step.tunnels();
        let original = if self.question.is_down { self.question.ue } else { self.question.remote };
        let to_ourselves = [original, self.destination()].into_iter().any(|to| state.ports.is_ours(to));
        match step.kind {
            Kind::Drop | Kind::DropAndNotify => Seen::Dropped(DropReason::FarDrop),
            Kind::GateClosed => Seen::Dropped(DropReason::GateClosed),
            Kind::Keep | Kind::KeepAndNotify => Seen::Kept,
            Kind::Redirect | Kind::Reset if self.question.protocol == packet::protocol::TCP => Seen::Answered,
            Kind::Redirect | Kind::Reset => Seen::Dropped(DropReason::Redirected),
            _ if is_plain && to_ourselves => Seen::Dropped(DropReason::ToOurselves),
            _ if redirected.is_err() => Seen::Dropped(redirected.err().unwrap_or(DropReason::Redirected)),
            _ if self.finding.qers.iter().any(|qer| !qer.admits) => Seen::Dropped(DropReason::RateExceeded),
            _ if !step.stands_in() && self.finding.urrs.iter().any(|urr| urr.is_used_up) => {
                Seen::Dropped(DropReason::QuotaExhausted)
            }
            _ if self.finding.next_hop.is_none() => Seen::Dropped(DropReason::NoRoute),
            _ => Seen::Sent,
        }
    }

    fn destination(&self) -> IpAddr {
        let remote = self.finding.redirect.unwrap_or(self.question.remote);
        if self.question.is_down { self.question.ue } else { remote }
    }

    /// Where the packet goes in the place of where it was sent, as `readdress` does it.
    fn redirect(&self, state: &State, at: StepIndex) -> Result<Option<IpAddr>, DropReason> {
        let (elsewhere, step) = (state.readdress(at), state.sessions.cells.step(at));
        let session = state.sessions.get(step.session).filter(|_| step.may_readdress());
        let Some(session) = session.map(|session| session.seid) else { return Ok(None) };
        let (key, remote) = (flow_key(&self.question).of_session(step.session), self.question.remote);
        if self.question.is_down {
            let is_known = elsewhere.is_none() || state.server_of((session, &key)).is_some();
            return if is_known { Ok(None) } else { Err(DropReason::Redirected) };
        }
        let Some(elsewhere) = elsewhere else { return Ok(None) };
        let Question { protocol, ports, .. } = self.question;
        // Without ports it is a fragment whose first one nobody has seen.
        let is_told = ports.is_some() || !packet::protocol::has_ports(protocol);
        let to = elsewhere.like(remote).filter(|_| is_told && packet::address::is_known(protocol));
        let to = to.ok_or(DropReason::Redirected)?;
        match state.is_taken((session, &key.readdressed(remote, to)), remote) {
            true => Err(DropReason::RedirectTaken),
            false => Ok(Some(to)),
        }
    }

    fn note_action(&mut self, state: &State, step: &HotStep) {
        let tunnel = step.tunnels().then(|| ExplainedTunnel {
            header: match step.is_udp() {
                true => OuterHeader::Udp(step.teid as u16),
                false => OuterHeader::Gtpu(Teid(step.teid)),
            },
            ends: state.sessions.peers.way(step.peer).map(|way| way.ends),
            qfi: step.qfi(),
            reflective: step.is_reflective(),
        });
        self.finding.action = Some(match step.kind {
            Kind::Drop | Kind::DropAndNotify => ExplainedAction::Drop,
            Kind::GateClosed => ExplainedAction::GateClosed,
            Kind::Keep => ExplainedAction::Buffer { notify: false },
            Kind::KeepAndNotify => ExplainedAction::Buffer { notify: true },
            Kind::Redirect => ExplainedAction::Redirect,
            Kind::Reset => ExplainedAction::Reset,
            Kind::Plain | Kind::Tunnel | Kind::Enrich => ExplainedAction::Forward {
                to: step.to().interface(),
                tunnel,
                dscp: step.dscp(),
                duplicates: step.has_duplicates(),
                redirect: self.finding.redirect,
            },
        });
    }

    fn note_rates(&mut self, state: &mut State, step: &WholeStep, at: StepIndex) {
        let direction = direction(&self.question);
        for place in step.lists().meters() {
            let (of, moment) = ((step.base(at), *place), (state.now_ns, state.burst_ns));
            let qer =
                state.sessions.get(step.session).and_then(|it| it.accounts.get(usize::from(*place))?.qer);
            let Some(qer) = qer else { continue };
            let qer = ExplainedQer {
                qer,
                limit_kbps: state.sessions.limit_kbps(of, direction),
                admits: state.sessions.admits(of, direction, moment),
            };
            let _ = self.finding.qers.try_push(qer);
        }
    }

    fn note_usage(&mut self, state: &mut State, step: &WholeStep) {
        for place in step.lists().usages() {
            let Some((ledger, account)) = state.sessions.ledger(step.session, *place) else { continue };
            let urr = ExplainedUrr {
                urr: ledger.urr,
                uplink_bytes: account.count.bytes[Direction::Uplink as usize],
                downlink_bytes: account.count.bytes[Direction::Downlink as usize],
                is_used_up: ledger.is_used_up(&account.count),
            };
            let _ = self.finding.urrs.try_push(urr);
        }
    }

    fn note_next_hop(&mut self, state: &State, step: &HotStep) {
        let next_hop = match step.kind {
            Kind::Tunnel | Kind::Enrich if step.tunnels() => {
                state.sessions.peers.way(step.peer).map(|way| way.next_hop)
            }
            Kind::Plain | Kind::Enrich => state.routes.find(step.to(), self.destination()),
            _ => None,
        };
        let is_resolved = |hop| state.ports.is_own(hop) || state.neighbours.is_known(hop, state.now_ns);
        self.finding.next_hop = next_hop.map(|hop| (hop, is_resolved(hop)));
    }

    /// As it is told.
    pub(crate) fn into_explanation(
        self,
        ports: &[PortConfig],
        content: Option<&ContentRules>,
    ) -> Explanation {
        let application = self.finding.taken_as.map(|taken_as| match taken_as {
            TakenAs::Asked => ExplainedApplication::Asked,
            TakenAs::Unknown => ExplainedApplication::Unknown,
            TakenAs::Known(detected) => {
                let name = content.and_then(|content| detected.name(content));
                name.map_or(ExplainedApplication::None, |name| ExplainedApplication::Known(name.to_owned()))
            }
        });
        let Finding { session, teid, qfi, pdr, pdrs, action, qers, urrs, next_hop, fate, tried, .. } =
            self.finding;
        Explanation {
            session,
            teid,
            qfi,
            pdr,
            pdrs,
            application,
            action,
            qers: qers.into_iter().collect(),
            urrs: urrs.into_iter().collect(),
            next_hop: next_hop.map(|(hop, is_resolved)| ExplainedHop {
                port: name(ports, hop.port),
                address: hop.address,
                is_resolved,
            }),
            outcome: match fate.unwrap_or(Seen::Dropped(DropReason::Unfinished)) {
                Seen::Sent => Outcome::Sent,
                Seen::Kept => Outcome::Kept,
                Seen::Answered => Outcome::Answered,
                Seen::Dropped(reason) => Outcome::Dropped { reason: reason.name().to_owned() },
            },
            tried,
        }
    }
}

/// Of what application the packet is, where the session's rules ask.
fn known(question: &Question, state: &State, is_asked_for: bool) -> (Option<TakenAs>, Application) {
    if let Some(application) = &question.application {
        return (Some(TakenAs::Asked), Application::Of(application.tag()));
    }
    if !is_asked_for || !state.content.is_loaded() {
        return (None, Application::None);
    }
    let key = flow_key(question);
    let place =
        Place { key: &key, hash: state.flows.hash(&key), ..Meta::new(0, Side::of(Interface::Access)).flow() };
    match state.flows.detected(place) {
        Detected::NOT_YET => (Some(TakenAs::Unknown), Application::None),
        detected => (Some(TakenAs::Known(detected)), state.content.application(detected)),
    }
}

fn flow_key(question: &Question) -> FlowKey {
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    };
    let (source_port, destination_port) = question.ports.unwrap_or_default();
    let up = FiveTuple {
        source: number(question.ue),
        destination: number(question.remote),
        source_port,
        destination_port,
        protocol: question.protocol,
        version: if question.ue.is_ipv4() { 4 } else { 6 },
        ..FiveTuple::default()
    };
    FlowKey::new(&up, Direction::Uplink).within(question.instance)
}

fn direction(question: &Question) -> Direction {
    if question.is_down { Direction::Downlink } else { Direction::Uplink }
}

/// The packet in every tunnel and QoS flow it may come in: without a QFI first, then with those PDRs ask for.
fn arrivals<'a>(
    question: &'a Question,
    tunnels: &'a [Tunnel],
    state: &'a State,
    qfis: u64,
) -> impl Iterator<Item = Arrival> + Clone + 'a {
    let plain = (question.is_down && question.teid.is_none()).then_some((Interface::Core, None));
    let tunnels = tunnels.iter().map(|(port, teid)| {
        let source = state.source_behind(Ports::key(*port, teid.0));
        (source, Some(*teid))
    });
    plain.into_iter().chain(tunnels).flat_map(move |(source, teid)| {
        // Only tunnels have QoS flows.
        let named = question.qfi.filter(|_| teid.is_some());
        let asked = if named.is_none() && teid.is_some() { qfis } else { 0 };
        let asked = (0..=Qfi::MAX).filter(move |qfi| asked >> qfi & 1 == 1).map(Qfi::new);
        std::iter::once(named).chain(asked).map(move |qfi| arrival(question, (source, teid), qfi))
    })
}

fn arrival(question: &Question, (source, teid): (Interface, Option<Teid>), qfi: Option<Qfi>) -> Arrival {
    Arrival {
        source,
        instance: question.instance,
        teid,
        qfi,
        ue: question.ue,
        remote: question.remote,
        protocol: question.protocol,
        ue_port: question.ports.map(|(user, _)| user),
        remote_port: question.ports.map(|(_, remote)| remote),
        traffic_class: question.traffic_class,
        spi: None,
        flow_label: question.ue.is_ipv6().then_some(0),
        application: Application::None,
    }
}

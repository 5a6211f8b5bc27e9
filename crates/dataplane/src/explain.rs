//! Says what would happen to a packet, and by which rule, from the classifier and the steps the packet path uses.
//! Nothing is sent, counted or charged, and nobody is asked for an Ethernet address.

mod pdr;

use crate::config::{PolicyConfig, PortConfig};
use crate::content::{ContentRules, Detected};
use crate::counters::DropReason;
use crate::frame::NextHop;
use crate::nodes::may_leave;
use crate::state::{FlowKey, HotStep, Kind, PolicyIndex, State, Steered, StepIndex, WholeStep};
use crate::trace::name;
use arrayvec::ArrayVec;
use dplink::{
    ExplainedAction, ExplainedApplication, ExplainedHop, ExplainedQer, ExplainedTunnel, ExplainedUrr,
    Explanation, Outcome, Question,
};
use packet::{FiveTuple, ipv6};
use rules::{Direction, Mismatch, OuterHeader, PdrId, Qfi, Seid, Teid, limits};
use std::net::IpAddr;

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
    /// Where it goes in the place of where it was sent, or, to the user, from whom it comes in the place of its sender.
    redirect: Option<IpAddr>,
    /// What says the way.
    policy: Option<PolicyIndex>,
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
    KeptBeyondQuota,
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
    /// As its addresses, ports and protocol say, by which its first packet would be decided.
    ByAddress(Detected),
    /// Its first packets would be looked at.
    Unknown,
}

impl Explain {
    /// With the memory it will need.
    pub(crate) fn new(token: u64, question: Question) -> Self {
        let room = if question.is_verbose { limits::PDRS } else { 0 };
        let finding = Finding { tried: Vec::with_capacity(room), ..Finding::default() };
        Self { token, question, finding }
    }

    /// Finds it out, where it is known by which steps there is room for one more packet to be kept.
    pub(crate) fn answer(&mut self, state: &mut State, has_room: impl Fn(&WholeStep) -> bool) {
        let fate = match self.find(state) {
            Ok(step) => self.follow(state, step, has_room),
            Err(reason) => Seen::Dropped(reason),
        };
        self.finding.fate = Some(fate);
    }

    /// What the step does, as `far` and the nodes behind it do it.
    fn follow(&mut self, state: &mut State, at: StepIndex, has_room: impl Fn(&WholeStep) -> bool) -> Seen {
        let at = match state.sessions.cells.step(at).may_yield() {
            true => state.beyond_quota(at).unwrap_or(at),
            false => at,
        };
        let step = state.sessions.cells.whole(at);
        let redirected = self.redirect(state, at);
        self.finding.redirect = redirected.unwrap_or_default();
        self.finding.policy = step.policy();
        self.note_action(state, &step);
        self.note_rates(state, &step, at);
        self.note_usage(state, &step);
        self.note_next_hop(state, &step);
        let is_plain = matches!(step.kind, Kind::Plain | Kind::Enrich) && !step.tunnels();
        let leaves = match is_plain {
            true => may_leave(&state.ports, &header(&self.question), self.question.ue.is_ipv6()),
            false => Ok(()),
        };
        match step.kind {
            Kind::Drop | Kind::DropAndNotify => Seen::Dropped(DropReason::FarDrop),
            Kind::GateClosed => Seen::Dropped(DropReason::GateClosed),
            Kind::Keep | Kind::KeepAndNotify if !has_room(&step) => Seen::Dropped(DropReason::BufferFull),
            Kind::Keep | Kind::KeepAndNotify if step.stands_in() => Seen::KeptBeyondQuota,
            Kind::Keep | Kind::KeepAndNotify => Seen::Kept,
            Kind::Redirect | Kind::Reset if self.question.protocol == packet::protocol::TCP => Seen::Answered,
            Kind::Redirect | Kind::Reset => Seen::Dropped(DropReason::Redirected),
            _ if leaves.is_err() => Seen::Dropped(leaves.err().unwrap_or(DropReason::IpNotForUs)),
            _ if is_plain && state.ports.is_ours(self.destination()) => {
                Seen::Dropped(DropReason::ToOurselves)
            }
            _ if redirected.is_err() => Seen::Dropped(redirected.err().unwrap_or(DropReason::Redirected)),
            _ if !step.stands_in() && self.finding.urrs.iter().any(|urr| urr.is_used_up) => {
                Seen::Dropped(DropReason::QuotaExhausted)
            }
            _ if self.finding.qers.iter().any(|qer| !qer.admits) => Seen::Dropped(DropReason::RateExceeded),
            _ if self.finding.next_hop.is_none() => Seen::Dropped(match self.led(state) {
                Steered::Nowhere => DropReason::NoPolicyHop,
                Steered::ByRoutes | Steered::To(_) => DropReason::NoRoute,
            }),
            _ => Seen::Sent,
        }
    }

    fn destination(&self) -> IpAddr {
        let remote = self.finding.redirect.unwrap_or(self.question.remote);
        if self.question.is_down { self.question.ue } else { remote }
    }

    /// Where the packet goes in the place of where it was sent, or whom the user has it from in the place of its sender, as `readdress`
    /// does it.
    fn redirect(&self, state: &State, at: StepIndex) -> Result<Option<IpAddr>, DropReason> {
        let (elsewhere, step) = (state.readdress(at), state.sessions.cells.step(at));
        let owner = state.sessions.cells.session(at);
        let session = state.sessions.get(owner).filter(|_| step.may_readdress());
        let Some(session) = session.map(|session| session.seid) else { return Ok(None) };
        let (key, remote) = (flow_key(&self.question).of_session(owner), self.question.remote);
        if self.question.is_down {
            let server = state.server_of((session, &key));
            let is_lost = server.is_none() && elsewhere.is_some();
            return if is_lost { Err(DropReason::Redirected) } else { Ok(server) };
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
            let Some((ledger, count)) = state.sessions.ledger((step.session, *place)) else { continue };
            let [uplink_bytes, downlink_bytes] = count.bytes();
            let is_used_up = ledger.is_used_up(&count);
            let urr = ExplainedUrr { urr: ledger.urr, uplink_bytes, downlink_bytes, is_used_up };
            let _ = self.finding.urrs.try_push(urr);
        }
    }

    fn note_next_hop(&mut self, state: &State, step: &HotStep) {
        let next_hop = match step.kind {
            Kind::Tunnel | Kind::Enrich if step.tunnels() => {
                state.sessions.peers.way(step.peer).map(|way| way.next_hop)
            }
            Kind::Plain | Kind::Enrich => match self.led(state) {
                Steered::ByRoutes => state.routes.find(step.to(), self.destination()),
                Steered::To(next_hop) => Some(next_hop),
                Steered::Nowhere => None,
            },
            _ => None,
        };
        let is_resolved = |hop| state.ports.is_own(hop) || state.neighbours.is_known(hop, state.now_ns);
        self.finding.next_hop = next_hop.map(|hop| (hop, is_resolved(hop)));
    }

    fn led(&self, state: &State) -> Steered {
        let led = |policy| state.policies.lead(policy, self.question.ue.is_ipv6());
        self.finding.policy.map_or(Steered::ByRoutes, led)
    }

    /// As it is told.
    pub(crate) fn into_explanation(
        self,
        (ports, policies): (&[PortConfig], &[PolicyConfig]),
        content: Option<&ContentRules>,
    ) -> Explanation {
        let named =
            |detected: Detected| content.and_then(|content| detected.name(content)).map(str::to_owned);
        let application = self.finding.taken_as.map(|taken_as| match taken_as {
            TakenAs::Asked => ExplainedApplication::Asked,
            TakenAs::Unknown => ExplainedApplication::Unknown,
            TakenAs::ByAddress(detected) => ExplainedApplication::ByAddress(named(detected)),
            TakenAs::Known(detected) => {
                named(detected).map_or(ExplainedApplication::None, ExplainedApplication::Known)
            }
        });
        let Finding {
            session, teid, qfi, pdr, pdrs, action, qers, urrs, next_hop, fate, tried, policy, ..
        } = self.finding;
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
            policy: policy.and_then(|policy| policies.get(policy.place())).map(|policy| policy.name.clone()),
            next_hop: next_hop.map(|(hop, is_resolved)| ExplainedHop {
                port: name(ports, hop.port),
                address: hop.address,
                is_resolved,
            }),
            outcome: match fate.unwrap_or(Seen::Dropped(DropReason::Unfinished)) {
                Seen::Sent => Outcome::Sent,
                Seen::Kept => Outcome::Kept,
                Seen::KeptBeyondQuota => Outcome::KeptBeyondQuota,
                Seen::Answered => Outcome::Answered,
                Seen::Dropped(reason) => Outcome::Dropped { reason: reason.name().to_owned() },
            },
            tried,
        }
    }
}

fn flow_key(question: &Question) -> FlowKey {
    FlowKey::new(&tuple(question), Direction::Uplink).within(question.instance)
}

/// As it goes up.
fn tuple(question: &Question) -> FiveTuple {
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    };
    let (source_port, destination_port) = question.ports.unwrap_or_default();
    FiveTuple {
        source: number(question.ue),
        destination: number(question.remote),
        source_port,
        destination_port,
        spi: question.spi.unwrap_or_default(),
        protocol: question.protocol,
        tos: question.traffic_class,
        version: if question.ue.is_ipv4() { 4 } else { 6 },
        ..FiveTuple::default()
    }
}

/// The front of the packet's header, as far as routers look at it.
fn header(question: &Question) -> [u8; ipv6::LENGTH] {
    let (ue, remote) = (question.ue, question.remote);
    let (from, to) = if question.is_down { (remote, ue) } else { (ue, remote) };
    let mut header = [0; ipv6::LENGTH];
    match (from, to) {
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            (header[0], header[6]) = (0x60, question.protocol);
            header[8..24].copy_from_slice(&from.octets());
            header[24..].copy_from_slice(&to.octets());
        }
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            (header[0], header[9]) = (0x45, question.protocol);
            header[12..16].copy_from_slice(&from.octets());
            header[16..20].copy_from_slice(&to.octets());
        }
        // Nobody asks of such a packet; it is of no version.
        _ => {}
    }
    header
}

fn direction(question: &Question) -> Direction {
    if question.is_down { Direction::Downlink } else { Direction::Uplink }
}

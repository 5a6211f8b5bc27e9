//! Which PDR takes the packet: in every tunnel and QoS flow it may come in, by the classifier of its session.

use super::{Explain, TakenAs, direction, flow_key, header, tuple};
use crate::content::Detected;
use crate::counters::DropReason;
use crate::frame::{Meta, PortIndex};
use crate::nodes::is_from_nobody;
use crate::side::Side;
use crate::state::{
    Bearing, Behind, Key, Place, Ports, Session, SessionIndex, State, StepIndex, View, user_key,
};
use arrayvec::ArrayVec;
use dplink::Question;
use packet::protocol;
use rules::{Application, Arrival, Direction, Interface, Qfi, Teid, limits};

/// Tunnels of a session a packet is thought into, if its own is not named.
const TUNNELS_MAX: usize = 8;

/// A tunnel of ours by its port.
type Tunnel = (PortIndex, Teid);

impl Explain {
    /// The step the packet takes.
    pub(super) fn find(&mut self, state: &State) -> Result<StepIndex, DropReason> {
        let (found, tunnels) = self.find_session(state)?;
        let session = state.sessions.get(found).ok_or(DropReason::NoSession)?;
        (self.finding.session, self.finding.pdrs) = (Some(session.seid), session.pdrs);
        // It is of IP packets that is asked; an IPv4 packet in such a tunnel is one of these frames.
        if state.switch.carries(found) {
            return Err(DropReason::FrameLikePacket);
        }
        let is_plain = self.question.is_down && self.question.teid.is_none();
        if is_plain && is_from_nobody(&state.ports, &header(&self.question), self.question.protocol) {
            return Err(DropReason::IpNotForUs);
        }
        let classifier = &session.classifier;
        let (taken_as, application) = known(&self.question, state, found);
        self.finding.taken_as = taken_as;
        let all = || arrivals(&self.question, &tunnels, state, classifier.qfis());
        let find = |application| {
            let mut arrivals = all().map(|packet| Arrival { application, ..packet });
            arrivals.find_map(|packet| Some((packet, classifier.find(&packet)?)))
        };
        // What is not known yet goes by the rules of any application where there are no others, and a handshake where others end it.
        let waits = taken_as == Some(TakenAs::Unknown);
        let usual = find(application).or_else(|| waits.then(|| find(Application::Any))?);
        let may_begin = waits && self.question.protocol == protocol::TCP;
        let other = usual.filter(|_| may_begin).and_then(|usual| by_application(state, session, usual));
        let taken = other.or(usual);
        let packet = taken.map(|(packet, _)| packet).or_else(|| all().next());
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
}

/// By which rule for an application a handshake goes, and the place of that, where the rule in this place ends it.
fn by_application(
    state: &State,
    session: &Session,
    (packet, number): (Arrival, usize),
) -> Option<(Arrival, usize)> {
    let ends = matches!(state.bearing(session.step(number)), Bearing::Stops | Bearing::Answers);
    let passes = |at| state.bearing(at) == Bearing::Passes;
    let other = ends.then(|| session.find_application(&packet, passes))?;
    Some((packet, other?))
}

/// Of what application the packet is, where the session's rules ask.
fn known(question: &Question, state: &State, of: SessionIndex) -> (Option<TakenAs>, Application) {
    let session = state.sessions.get(of);
    let is_asked_for = session.is_some_and(|session| session.looks.application);
    if let Some(application) = &question.application {
        return (Some(TakenAs::Asked), Application::Of(application.tag()));
    }
    if !is_asked_for || !state.content.is_loaded() {
        return (None, Application::None);
    }
    let key = flow_key(question);
    let place =
        Place { key: &key, hash: state.flows.hash(&key), ..Meta::new(0, Side::of(Interface::Access)).flow() };
    let waits = || state.content.waits((&key, place.hash), of).is_some();
    let first = || View::of_no_packet(tuple(question), key.network()).held_by(session);
    let (taken_as, detected) = match state.flows.detected(place) {
        Detected::NOT_YET if waits() => return (Some(TakenAs::Unknown), Application::None),
        Detected::NOT_YET => match state.content.foresee(&first(), state.now_ns) {
            Some(detected) => (TakenAs::ByAddress(detected), detected),
            None => return (Some(TakenAs::Unknown), Application::None),
        },
        detected => (TakenAs::Known(detected), detected),
    };
    (Some(taken_as), state.content.application(detected))
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
        spi: question.spi,
        flow_label: question.ue.is_ipv6().then_some(question.flow_label),
        application: Application::None,
    }
}

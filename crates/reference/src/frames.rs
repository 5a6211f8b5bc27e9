//! Ethernet PDU sessions (TS 23.501 5.6.10.2): frames between users and their data networks, which learn as bridges do (IEEE 802.1Q
//! 8.6, 8.7), and as ARCHITECTURE.md says where that leaves room:
//!
//! * Of a user's unicast frame, one to another user of the network goes there, by the rules for frames from the network; one to the
//!   sender's own side is dropped; any other leaves into the network. One from the network to nobody's address is dropped.
//! * Frames for a group go to all other users of the network, and a user's into the network, too.
//! * An address is of who used it last. A session has as many as are used here.
//! * Bytes are those of the frame. Nothing of it is changed; one to the user leaves by a tunnel or not at all.

use crate::Reference;
use crate::billing::Bill;
use crate::enforcement::{FrameAction, Moment};
use crate::forwarding::towards;
use crate::frame_detection::{FrameArrival, first_pdr};
use crate::meters::Load;
use crate::outcome::{Fate, Outcome};
use crate::reason::DropReason;
use crate::setup::{Mac, Network};
use rules::{Direction, Instance, Rules, Seid};

/// Octets of a frame besides its payload: addresses, type and two tags.
const HEADERS: usize = 14 + 2 * 4;

/// An address, the network it is known in, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Station {
    mac: Mac,
    network: Instance,
    session: Seid,
}

pub(crate) fn carries_frames(rules: &Rules) -> bool {
    rules.pdrs.iter().any(|pdr| pdr.pdi.ethernet.is_some())
}

/// The network whose frames a session takes outside tunnels.
fn network_of(rules: &Rules) -> Option<Instance> {
    let plain = rules.pdrs.iter().map(|pdr| &pdr.pdi).find(|pdi| pdi.f_teid.is_none());
    plain.filter(|pdi| pdi.ethernet.is_some()).map(|pdi| pdi.instance)
}

const fn is_group([first, ..]: Mac) -> bool {
    first & 1 == 1
}

impl Reference {
    /// Of a session's addresses, those of its network stay.
    pub(crate) fn keep_stations(&mut self, session: Seid, rules: Option<&Rules>) {
        let network = rules.and_then(network_of);
        self.stations.retain(|known| known.session != session || Some(known.network) == network);
    }

    /// A frame from a data network.
    pub(crate) fn receive_frame(&mut self, port: usize, bytes: &[u8]) -> Result<Outcome, DropReason> {
        let place = port.checked_sub(self.setup.ports.len()).ok_or(DropReason::Unfinished)?;
        let network = self.setup.frame_ports.get(place).ok_or(DropReason::Unfinished)?.network;
        let arrival = FrameArrival { port, network, tunnel: None, relayed: vec![], bytes: bytes.to_vec() };
        let (to, from) = arrival.stations().ok_or(DropReason::EthernetTruncated)?;
        if is_group(from) {
            return Err(DropReason::FrameSource);
        }
        self.stations.retain(|known| (known.mac, known.network) != (from, network.1));
        if is_group(to) {
            let mut outcome = Outcome::of(Fate::Consumed);
            self.serve_others(None, &arrival, &mut outcome);
            return Ok(outcome);
        }
        let session = self.session_of_station(to, network.1).ok_or(DropReason::FrameUnknownStation)?;
        self.serve_frame(session, &arrival)
    }

    /// A frame in a tunnel of a session.
    pub(crate) fn receive_frame_in_tunnel(
        &mut self,
        session: usize,
        arrival: &FrameArrival,
    ) -> Result<Outcome, DropReason> {
        let (_, mac) = arrival.stations().ok_or(DropReason::EthernetTruncated)?;
        if is_group(mac) {
            return Err(DropReason::FrameSource);
        }
        let known = self.sessions.get(session).ok_or(DropReason::NoSession)?;
        let network = network_of(&known.rules).filter(|_| arrival.direction() == Direction::Uplink);
        if let Some(network) = network {
            let session = known.seid;
            self.stations.retain(|known| (known.mac, known.network) != (mac, network));
            self.stations.push(Station { mac, network, session });
        }
        self.serve_frame(session, arrival)
    }

    fn session_of_station(&self, mac: Mac, network: Instance) -> Option<usize> {
        let known = self.stations.iter().find(|known| (known.mac, known.network) == (mac, network));
        self.place(known?.session)
    }

    /// A frame that a session's rules are for.
    fn serve_frame(&mut self, session: usize, arrival: &FrameArrival) -> Result<Outcome, DropReason> {
        let rules = &self.sessions.get(session).ok_or(DropReason::NoSession)?.rules;
        let pdr = first_pdr(rules, arrival).map_err(|()| DropReason::FrameTags)?;
        let pdr = pdr.ok_or(DropReason::NoPdr)?.clone();
        let load = Load { direction: arrival.direction(), length: arrival.bytes.len() as u64 };
        let moment = Moment { now_ns: self.now_ns, setup: &self.setup, part_of: None, waits: false };
        let deciding = self.sessions.get_mut(session).ok_or(DropReason::NoSession)?;
        let action = deciding.decide_frame(&pdr, load, moment);
        let shared = deciding.shared_meters();
        self.sessions.iter_mut().for_each(|other| other.adopt(&shared));
        let bill = Bill::new((session, &pdr), load);
        match action? {
            FrameAction::Buffer => Ok(Outcome::of(Fate::Kept)),
            FrameAction::Forward(to, marks) if to.outer_header_creation.is_some() => {
                let marks = arrival.tunnel.map_or(marks, |tunnel| marks.beside(&tunnel));
                match self.relay_into_tunnel(&arrival.bytes, &to, (marks, &arrival.relayed)) {
                    Ok((next_hop, packet)) => self.transmit_counted(next_hop, packet, Some(bill)),
                    Err(reason) => self.not_sent(&bill, reason),
                }
            }
            FrameAction::Forward(..) if arrival.direction() == Direction::Downlink => {
                self.not_sent(&bill, DropReason::NoRoute)
            }
            FrameAction::Forward(to, _) => self.bridge(session, (arrival, &bill), towards(&to)),
        }
    }

    fn not_sent(&mut self, bill: &Bill, reason: DropReason) -> Result<Outcome, DropReason> {
        self.take_back(bill);
        Err(reason)
    }

    /// A user's frame goes into its network, or to users there.
    fn bridge(
        &mut self,
        session: usize,
        (arrival, bill): (&FrameArrival, &Bill),
        network: Network,
    ) -> Result<Outcome, DropReason> {
        let (to, _) = arrival.stations().ok_or(DropReason::EthernetTruncated)?;
        let turned = FrameArrival { network, tunnel: None, relayed: vec![], ..arrival.clone() };
        if is_group(to) {
            let mut outcome = self.send_frame(network, &arrival.bytes).into();
            self.serve_others(Some(session), &turned, &mut outcome);
            return Ok(outcome);
        }
        match self.session_of_station(to, network.1) {
            Some(other) if other == session => self.not_sent(bill, DropReason::FrameToItself),
            Some(other) => self.serve_frame(other, &turned),
            None => match self.send_frame(network, &arrival.bytes) {
                Ok(outcome) => Ok(outcome),
                Err(reason) => self.not_sent(bill, reason),
            },
        }
    }

    /// A copy for every user of a network but one.
    fn serve_others(&mut self, but: Option<usize>, arrival: &FrameArrival, outcome: &mut Outcome) {
        let is_of = |rules: &Rules| network_of(rules) == Some(arrival.network.1);
        let places = (0..self.sessions.len()).filter(|at| Some(*at) != but);
        let others: Vec<usize> =
            places.filter(|at| self.sessions.get(*at).is_some_and(|other| is_of(&other.rules))).collect();
        for other in others {
            let copy = self.serve_frame(other, arrival).into();
            outcome.add_copy(copy);
        }
    }

    /// The first port of the network sends it, if it is not too long.
    fn send_frame(&self, network: Network, bytes: &[u8]) -> Result<Outcome, DropReason> {
        let mut ports = (self.setup.ports.len()..).zip(&self.setup.frame_ports);
        let (at, port) = ports.find(|(_, port)| port.network == network).ok_or(DropReason::NoRoute)?;
        match bytes.len() > usize::from(port.mtu) + HEADERS {
            true => Err(DropReason::MtuExceeded),
            false => Ok(Outcome::sent(at, bytes.to_vec())),
        }
    }
}

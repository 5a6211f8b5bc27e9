//! Our user plane in the place of a recorded one: it gets what that one got, and must send what that one sent.

use super::gtpu::{END_MARKER, ERROR_INDICATION, G_PDU, Gtpu, with_hops, with_teid};
use super::{Said, gtpu, moved, neighbour, place};
use crate::pcap;
use dataplane::Route;
use matrix::{N3, N6, UserPlane, node_config, plane_config};
use packet::ethernet::{self, Header, IPV4, IPV6, MacAddress};
use pfcp::{Body, Cause, CreatedPdr, FTeid, Message};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};

/// A radio that is in no recording.
const RADIO: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 99);

/// What was seen and was the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// PFCP requests answered with the same cause.
    pub answered: usize,
    /// Reports of ours beside each recorded one.
    pub reported: usize,
    /// Reports that crossed a request which makes them needless.
    pub crossed: usize,
    /// What the recorded one sent in tunnels, and ours: all of it, packets that came from N6, and end markers.
    pub tunnelled: usize,
    pub from_network: usize,
    pub end_markers: usize,
    /// Packets that ours sent to N6, where nothing was recorded.
    pub to_network: usize,
    /// Router solicitations that only ours took where the rules lead.
    pub to_control_plane: usize,
}

pub struct Stand {
    plane: UserPlane,
    /// Where the recorded one speaks PFCP and GTP-U.
    n4: Ipv4Addr,
    address: Ipv4Addr,
    /// What it sends in tunnels.
    tunnelled: BTreeSet<Vec<u8>>,
    /// Ours by the recorded ones: SEIDs, TEIDs, and sequence numbers of reports.
    seids: BTreeMap<u64, u64>,
    teids: BTreeMap<u32, u32>,
    sequences: BTreeMap<u32, u32>,
    /// Control planes' SEIDs by those of the recorded user plane, and its SEIDs by requests it has not answered.
    cp_seids: BTreeMap<u64, u64>,
    under_way: BTreeMap<(Ipv4Addr, u32), u64>,
    /// What we sent, and not yet heard of in the recording.
    answers: BTreeMap<(Ipv4Addr, u32), Body>,
    reports: Vec<Message>,
    in_tunnels: Vec<Gtpu>,
    to_network: Vec<Vec<u8>>,
    pub counts: Counts,
}

impl Stand {
    pub fn new((n4, address): (Ipv4Addr, Ipv4Addr), tunnelled: BTreeSet<Vec<u8>>) -> Self {
        Self {
            plane: UserPlane::over(one_armed(), over_both_families()),
            n4,
            address,
            tunnelled,
            seids: BTreeMap::new(),
            teids: BTreeMap::new(),
            sequences: BTreeMap::new(),
            cp_seids: BTreeMap::new(),
            under_way: BTreeMap::new(),
            answers: BTreeMap::new(),
            reports: vec![],
            in_tunnels: vec![],
            to_network: vec![],
            counts: Counts::default(),
        }
    }

    /// The next thing that was recorded.
    pub fn hear(&mut self, said: &Said) {
        match said {
            Said::Pfcp(from, to, message) if *to == self.n4 => self.told(*from, message),
            Said::Pfcp(from, to, message) if *from == self.n4 => self.tells(*to, message),
            Said::Gtpu(from, to, bytes) if *to == self.address => self.takes(*from, bytes),
            Said::Gtpu(from, to, bytes) if *from == self.address => self.gives(*to, bytes),
            _ => {}
        }
    }

    /// Nothing of ours is left that the recorded one did not send, too.
    pub fn end(&self) {
        assert!(self.in_tunnels.is_empty(), "{:?}", self.in_tunnels);
        assert!(self.to_network.is_empty(), "{:?}", self.to_network);
        assert!(self.reports.is_empty(), "{:?}", self.reports);
        assert!(self.plane.worker.books().balanced());
    }

    /// A control plane says something.
    fn told(&mut self, from: Ipv4Addr, message: &Message) {
        let mut message = message.clone();
        match &message.body {
            Body::SessionReportResponse(_) => match self.sequences.remove(&message.sequence) {
                Some(ours) => message.sequence = ours,
                None => return,
            },
            Body::SessionEstablishmentRequest(request) => self.associate(from, &request.node_id.clone()),
            body if !matches!(body.message_type(), 5 | 9 | 52 | 54) => return,
            _ => {}
        }
        self.under_way.extend(message.seid.map(|seid| ((from, message.sequence), seid)));
        message.seid = message.seid.map(|seid| self.seids.get(&seid).copied().unwrap_or(seid));
        moved(&mut message.body, self.address);
        self.ask(from, &message);
    }

    /// Where the recording began after they had associated.
    fn associate(&mut self, from: Ipv4Addr, node_id: &pfcp::NodeId) {
        if self.plane.saved.associations.contains_key(&node_id.to_string()) {
            return;
        }
        let setup = pfcp::request::setup(node_id.clone(), 1);
        self.ask(from, &Message::node(0xFF_FFFF, setup));
    }

    fn ask(&mut self, from: Ipv4Addr, message: &Message) {
        let from = SocketAddrV4::new(from, pfcp::PORT);
        let told = self.plane.datagram(from.into(), &pfcp::encode(message));
        self.sort(told);
        self.collect();
    }

    /// What our node says goes where it is looked for.
    fn sort(&mut self, told: Vec<matrix::Datagram>) {
        for (to, bytes) in told {
            let std::net::IpAddr::V4(to) = to.ip() else { panic!("PFCP to {to}") };
            let message = pfcp::decode(&bytes).unwrap();
            match message.body {
                Body::SessionReportRequest(_) => self.reports.push(message),
                Body::HeartbeatRequest(_) => {}
                body => drop(self.answers.insert((to, message.sequence), body)),
            }
        }
    }

    /// The recorded user plane says something.
    fn tells(&mut self, to: Ipv4Addr, message: &Message) {
        if let Body::SessionReportRequest(_) = message.body {
            return self.compare_report(message);
        }
        self.under_way.remove(&(to, message.sequence));
        let Some(ours) = self.answers.remove(&(to, message.sequence)) else { return };
        if ours.message_type() == message.body.message_type() {
            self.compare(&ours, message);
            self.counts.answered += 1;
        }
    }

    /// Ours has reported the same, unless it already had what came of a request that the recorded one had yet to answer.
    fn compare_report(&mut self, message: &Message) {
        let of_same = |ours: &Message| match (&ours.body, &message.body) {
            (Body::SessionReportRequest(ours_of), Body::SessionReportRequest(then)) => {
                (ours.seid, ours_of.report_type) == (message.seid, then.report_type)
            }
            _ => false,
        };
        let Some(at) = self.reports.iter().position(of_same) else {
            let is_crossed = |seid| self.cp_seids.get(seid).copied() == message.seid;
            assert!(
                self.under_way.values().any(is_crossed),
                "no report like {message:?}\n{:?}",
                self.drops()
            );
            self.counts.crossed += 1;
            return;
        };
        let ours = self.reports.remove(at);
        self.sequences.insert(message.sequence, ours.sequence);
        self.counts.reported += 1;
    }

    /// The same cause; and what the recorded one chose stands for what ours chose from now on.
    fn compare(&mut self, ours: &Body, message: &Message) {
        let then = &message.body;
        let ((cause, chosen), (cause_then, chosen_then)) = (said_in(ours), said_in(then));
        assert_eq!(cause, cause_then, "{ours:?} {then:?} {:?}", self.plane.notes.last());
        for (ours, then) in chosen.iter().zip(&chosen_then) {
            assert_eq!(ours.0, then.0, "{ours:?} {then:?}");
            self.teids.insert(then.1, ours.1);
        }
        assert_eq!(chosen.len(), chosen_then.len());
        if let (Body::SessionEstablishmentResponse(ours), Body::SessionEstablishmentResponse(then)) =
            (ours, then)
        {
            self.seids.extend(then.up_f_seid.zip(ours.up_f_seid).map(|(then, ours)| (then.seid, ours.seid)));
            self.cp_seids.extend(then.up_f_seid.zip(message.seid).map(|(up, cp_seid)| (up.seid, cp_seid)));
        }
    }

    /// A packet of a user's that nobody recorded; what leaves by N6, and in tunnels.
    pub fn user_sends(&mut self, teid: u32, packet: &[u8]) -> (Vec<Vec<u8>>, Vec<Gtpu>) {
        let length = (packet.len() as u16).to_be_bytes();
        let message = [&[0x30, G_PDU][..], &length, &teid.to_be_bytes(), packet].concat();
        let [from, to] = [RADIO, matrix::N3_ADDRESS].map(|address| SocketAddrV4::new(address, gtpu::PORT));
        self.arrive(N3, &pcap::packet(from, to, &message));
        (std::mem::take(&mut self.to_network), std::mem::take(&mut self.in_tunnels))
    }

    /// One for a user; what leaves in tunnels, and what the control plane is told.
    pub fn network_sends(&mut self, packet: &[u8]) -> (Vec<Gtpu>, Vec<Message>) {
        self.arrive(N6, packet);
        (std::mem::take(&mut self.in_tunnels), std::mem::take(&mut self.reports))
    }

    /// Something came to the recorded one in a tunnel.
    fn takes(&mut self, from: Ipv4Addr, bytes: &[u8]) {
        let message = Gtpu::read(place(from, self.address), bytes);
        let teid = self.teids.get(&message.teid).copied().unwrap_or(message.teid);
        let mut bytes = with_teid(bytes, teid);
        if message.kind == ERROR_INDICATION {
            self.move_peer(&mut bytes);
        }
        let port = gtpu::PORT;
        let to = SocketAddrV4::new(matrix::N3_ADDRESS, port);
        self.arrive(N3, &pcap::packet(SocketAddrV4::new(message.peer, port), to, &bytes));
        if message.kind == G_PDU && !self.tunnelled.contains(&message.inner) {
            self.expect_in_network(&message.inner);
        }
    }

    /// Of an Error Indication: whose tunnel is gone (TS 29.281 8.4).
    fn move_peer(&self, bytes: &mut [u8]) {
        let at = bytes.windows(3).position(|ie| ie == [133, 0, 4]).expect("a GTP-U peer address") + 3;
        let peer = Ipv4Addr::from(<[u8; 4]>::try_from(&bytes[at..at + 4]).unwrap());
        bytes[at..at + 4].copy_from_slice(&place(peer, self.address).octets());
    }

    /// What was not recorded going on in a tunnel went to the data network, where nothing was recorded.
    fn expect_in_network(&mut self, inner: &[u8]) {
        let wanted = with_hops(inner, -1);
        match self.to_network.iter().position(|packet| *packet == wanted) {
            Some(at) => {
                self.to_network.remove(at);
                self.counts.to_network += 1;
            }
            None => self.expect_at_control_plane(inner),
        }
    }

    /// Open5GS does not do as it is told with solicitations of users who have no prefix: ours takes them to the control plane.
    fn expect_at_control_plane(&mut self, inner: &[u8]) {
        assert_eq!(
            gtpu::icmpv6(inner),
            Some(gtpu::SOLICITATION),
            "{inner:?} went nowhere: {:?}",
            self.drops()
        );
        let at = self.in_tunnels.iter().position(|ours| ours.inner == inner);
        self.in_tunnels.remove(at.expect("where the rules lead"));
        self.counts.to_control_plane += 1;
    }

    /// The recorded one sent something in a tunnel. Where nothing had come to it, that came from N6.
    fn gives(&mut self, to: Ipv4Addr, bytes: &[u8]) {
        let mut wanted = Gtpu::read(place(to, self.address), bytes);
        if wanted.kind == END_MARKER {
            // The tunnel ends, and so do all its QoS flows (TS 23.502 4.9.1.2.2): Open5GS names one of them, ours none.
            wanted.qfi = None;
            self.counts.end_markers += 1;
        }
        if !self.in_tunnels.contains(&wanted) && wanted.kind == G_PDU {
            self.arrive(N6, &with_hops(&wanted.inner, 1));
            self.counts.from_network += 1;
        }
        let at = self.in_tunnels.iter().position(|ours| *ours == wanted);
        let at = at
            .unwrap_or_else(|| panic!("not sent: {wanted:?}, but {:?}\n{:?}", self.in_tunnels, self.drops()));
        self.in_tunnels.remove(at);
        self.counts.tunnelled += 1;
    }

    /// A packet comes in by a port and goes its way.
    fn arrive(&mut self, port: usize, packet: &[u8]) {
        let mut frame = vec![0; ethernet::LENGTH];
        let mac = plane_config().ports[port].mac;
        let ethertype = if packet[0] >> 4 == 4 { IPV4 } else { IPV6 };
        Header::new(mac, MacAddress([2, 9, 9, 9, 9, 9]), ethertype).write(&mut frame).unwrap();
        frame.extend_from_slice(packet);
        self.plane.receive(port, &frame);
        self.plane.settle();
        let told = self.plane.told();
        self.sort(told);
        self.collect();
    }

    /// Why packets of ours went nowhere.
    fn drops(&self) -> Vec<(String, u64)> {
        self.plane.worker.counters().named_drops()
    }

    fn collect(&mut self) {
        self.in_tunnels.extend(self.plane.sent(N3).iter().map(|frame| Gtpu::sent(frame)));
        for frame in self.plane.sent(N6) {
            match neighbour::answer(&frame) {
                Some(answer) => {
                    self.plane.receive(N6, &answer);
                    self.plane.settle();
                    self.collect();
                }
                None => self.to_network.push(frame[ethernet::LENGTH..].to_vec()),
            }
        }
    }
}

/// As the recorded ones have, one address for tunnels of both sides.
fn one_armed() -> n4::Config {
    n4::Config { gtpu: vec![n4::GtpuAddress::access(matrix::N3_ADDRESS)], ..node_config() }
}

/// The data network is reached over IPv6, too.
fn over_both_families() -> dataplane::Config {
    let mut config = plane_config();
    config.ports[N6].address6 = Some("2001:db8:6::2/64".parse().unwrap());
    let via = "2001:db8:6::1".parse().unwrap();
    config.routes.push(Route { prefix: "::/0".parse().unwrap(), via, instance: None });
    config
}

/// The cause, and the endpoints that were chosen, by PDR.
fn said_in(body: &Body) -> (Option<Cause>, Vec<(u16, u32)>) {
    let (cause, created): (Cause, &[CreatedPdr]) = match body {
        Body::SessionEstablishmentResponse(response) => (response.cause, &response.created_pdrs),
        Body::SessionModificationResponse(response) => (response.cause, &response.created_pdrs),
        Body::SessionDeletionResponse(response) => (response.cause, &[]),
        Body::AssociationSetupResponse(response) => (response.cause, &[]),
        Body::AssociationReleaseResponse(response) => (response.cause, &[]),
        _ => return (None, vec![]),
    };
    let teid = |pdr: &CreatedPdr| match pdr.local_f_teid {
        Some(FTeid::Explicit { teid, .. }) => Some((pdr.pdr_id, teid)),
        _ => None,
    };
    let mut chosen: Vec<(u16, u32)> = created.iter().filter_map(teid).collect();
    chosen.sort_unstable();
    (Some(cause), chosen)
}

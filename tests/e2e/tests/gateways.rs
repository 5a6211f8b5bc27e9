//! One node as SGW-U and PGW-U of the same user: two sessions, chained over S5-U inside it.

use crate::Test;
use anyhow::{Context, Result, bail, ensure};
use lab::address::{GNB_N3, PFCP_PORT, SERVER, SMF_N4, UE, UPF_N3, UPF_N4, UPF_N6};
use lab::anchorline::Node;
use lab::config::Driver;
use lab::measure::Ping;
use lab::{Core, Lab};
use pfcp::{
    ApplyAction, Body, Cause, CreateFar, CreatePdr, CreatedPdr, DestinationInterface, FSeid, FTeid,
    ForwardingParameters, HeartbeatResponse, Message, NodeId, NodeReportResponse, OuterHeaderCreation,
    OuterHeaderRemoval, Pdi, PdnType, SessionEstablishmentRequest, SessionReportResponse, SourceInterface,
    UeIpAddress, UsageReport, request,
};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const TESTS: &[Test] = &[("one_node_is_sgw_u_and_pgw_u_of_one_user", Core::Engine, chained)];

const GTPU_PORT: u16 = 2152;
/// The eNB's end of S1-U, and the PGW-U's of S5-U, as its control plane gives it.
pub(crate) const ENB_TEID: u32 = 0x200;
const PGW_TEID: u32 = 0x51;

fn chained(lab: &Lab) -> Result<()> {
    let node = Node::start(lab, Driver::AfPacket)?;
    let mut control = ControlPlane::associate(lab)?;
    let created = control.establish(1, sgw())?;
    let (s1_teid, s1_address) = endpoint(&created, 1)?;
    let (s5_teid, s5_address) = endpoint(&created, 2)?;
    ensure!((s1_address, s5_address) == (UPF_N3, UPF_N6), "endpoints at {s1_address} and {s5_address}");
    control.establish(2, pgw(s5_teid))?;
    node.wait_sessions(2)?;

    let radio = Radio::open(lab, s1_teid)?;
    for number in 0..50 {
        radio.ping(number)?;
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let answering = scope.spawn(|| radio.answer(&is_over));
        let pinged = Ping::run(&lab.dn, UE, (20, Duration::from_millis(20)));
        is_over.store(true, Ordering::Relaxed);
        let answered = answering.join().map_err(|_| anyhow::anyhow!("the eNB panicked"))??;
        pinged?.expect_no_loss()?;
        ensure!(answered >= 20, "the eNB answered {answered}");
        anyhow::Ok(())
    })?;
    node.wait_balance()?;
    node.stop()
}

/// SGW-C and PGW-C in one.
pub(crate) struct ControlPlane {
    socket: UdpSocket,
    sequence: u32,
}

impl ControlPlane {
    pub(crate) fn associate(lab: &Lab) -> Result<Self> {
        let socket = lab.ran.inside(|| Ok(UdpSocket::bind((SMF_N4, PFCP_PORT))?))?;
        socket.connect((UPF_N4, PFCP_PORT))?;
        socket.set_read_timeout(Some(Duration::from_secs(3)))?;
        let mut control = Self { socket, sequence: 0 };
        let setup = request::setup(NodeId::Ipv4(SMF_N4), 1);
        let number = control.number();
        match control.ask(&Message::node(number, setup))? {
            Body::AssociationSetupResponse(response) if response.cause.is_accepted() => Ok(control),
            other => bail!("no association: {other:?}"),
        }
    }

    fn establish(
        &mut self,
        seid: u64,
        (pdrs, fars): (Vec<CreatePdr>, Vec<CreateFar>),
    ) -> Result<Vec<CreatedPdr>> {
        let (node_id, f_seid) = (NodeId::Ipv4(SMF_N4), FSeid::new(seid, SMF_N4.into()));
        let request = SessionEstablishmentRequest {
            pdn_type: Some(PdnType::Ipv4),
            ..SessionEstablishmentRequest::new(node_id, f_seid, pdrs, fars)
        };
        let number = self.number();
        match self.ask(&Message::session(0, number, request))? {
            Body::SessionEstablishmentResponse(response) if response.cause.is_accepted() => {
                Ok(response.created_pdrs)
            }
            other => bail!("no session: {other:?}"),
        }
    }

    pub(crate) fn number(&mut self) -> u32 {
        self.sequence += 1;
        self.sequence
    }

    /// Hears what the node asks for so long, and confirms it: what was used.
    pub(crate) fn listen(&self, time: Duration) -> Result<Vec<UsageReport>> {
        let (until, mut reports, mut bytes) = (Instant::now() + time, vec![], [0; 65_535]);
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            self.socket.set_read_timeout(Some(left))?;
            let Ok(length) = self.socket.recv(&mut bytes) else { break };
            let Message { sequence, body, .. } = pfcp::decode(bytes.get(..length).unwrap_or_default())?;
            let answer = match body {
                Body::HeartbeatRequest(_) => Message::node(sequence, HeartbeatResponse::new(1)),
                Body::SessionReportRequest(request) => {
                    reports.extend(request.usage_reports);
                    Message::session(0, sequence, SessionReportResponse::of(Cause::RequestAccepted))
                }
                // Of a path to a base station that does not say whether it is there.
                Body::NodeReportRequest(_) => Message::node(
                    sequence,
                    NodeReportResponse::new(NodeId::Ipv4(SMF_N4), Cause::RequestAccepted),
                ),
                other => bail!("the node says {other:?}"),
            };
            self.socket.send(&pfcp::encode(&answer))?;
        }
        self.socket.set_read_timeout(Some(Duration::from_secs(3)))?;
        Ok(reports)
    }

    pub(crate) fn ask(&self, request: &Message) -> Result<Body> {
        self.socket.send(&pfcp::encode(request))?;
        let mut bytes = [0; 65_535];
        loop {
            let length = self.socket.recv(&mut bytes).context("no answer on PFCP")?;
            let message = pfcp::decode(bytes.get(..length).unwrap_or_default())?;
            if !matches!(message.body, Body::HeartbeatRequest(_)) {
                return Ok(message.body);
            }
        }
    }
}

pub(crate) fn endpoint(created: &[CreatedPdr], pdr: u16) -> Result<(u32, Ipv4Addr)> {
    let created = created.iter().find(|created| created.pdr_id == pdr);
    match created.and_then(|created| created.local_f_teid) {
        Some(FTeid::Explicit { teid, ipv4: Some(address), .. }) => Ok((teid, address)),
        other => bail!("PDR {pdr} is at {other:?}"),
    }
}

/// S1-U and S5-U: both tunnels' ends are ours to choose.
fn sgw() -> (Vec<CreatePdr>, Vec<CreateFar>) {
    let choose = FTeid::choose(None);
    let to_pgw = (DestinationInterface::Core, Some((PGW_TEID, UPF_N3)));
    let to_enb = (DestinationInterface::Access, Some((ENB_TEID, GNB_N3)));
    let s1 = pdi(SourceInterface::Access, Some(choose));
    let s5 = pdi(SourceInterface::Core, Some(choose));
    (vec![pdr(1, s1), pdr(2, s5)], vec![far(1, to_pgw), far(2, to_enb)])
}

/// S5-U and SGi.
fn pgw(s5_teid: u32) -> (Vec<CreatePdr>, Vec<CreateFar>) {
    let given = FTeid::ipv4(PGW_TEID, UPF_N3);
    let s5 = pdi(SourceInterface::Access, Some(given));
    let ue = UeIpAddress { ipv4: Some(UE), is_destination: true, ..UeIpAddress::default() };
    let sgi = Pdi { ue_ip_addresses: vec![ue], ..pdi(SourceInterface::Core, None) };
    let to_sgw = (DestinationInterface::Access, Some((s5_teid, UPF_N6)));
    (vec![pdr(1, s5), pdr(2, sgi)], vec![far(1, (DestinationInterface::Core, None)), far(2, to_sgw)])
}

pub(crate) fn pdi(source_interface: SourceInterface, f_teid: Option<FTeid>) -> Pdi {
    Pdi { f_teid, ..Pdi::new(source_interface) }
}

/// With the FAR of its number.
pub(crate) fn pdr(number: u16, pdi: Pdi) -> CreatePdr {
    let removal = OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IPV4);
    let outer_header_removal = pdi.f_teid.map(|_| removal);
    CreatePdr { outer_header_removal, ..request::pdr((number, number.into()), 255, pdi) }
}

/// Side, and the tunnel's other end.
type Destination = (DestinationInterface, Option<(u32, Ipv4Addr)>);

pub(crate) fn far(far_id: u32, (destination_interface, tunnel): Destination) -> CreateFar {
    let to = ForwardingParameters {
        outer_header_creation: tunnel.map(|(teid, address)| OuterHeaderCreation::GtpuIpv4 { teid, address }),
        ..ForwardingParameters::new(destination_interface)
    };
    request::far(far_id, ApplyAction::new(ApplyAction::FORW), Some(to))
}

/// An eNB and the user behind it: whole packets, in and out of GTP-U.
pub(crate) struct Radio {
    socket: UdpSocket,
    /// The SGW-U's end of S1-U.
    teid: u32,
}

/// GTP-U header, IPv4 header and ICMP header.
const GTPU: usize = 8;
const IPV4: usize = 20;

impl Radio {
    pub(crate) fn open(lab: &Lab, teid: u32) -> Result<Self> {
        let socket = lab.ran.inside(|| Ok(UdpSocket::bind((GNB_N3, GTPU_PORT))?))?;
        socket.connect((UPF_N3, GTPU_PORT))?;
        socket.set_read_timeout(Some(Duration::from_millis(500)))?;
        Ok(Self { socket, teid })
    }

    fn send(&self, packet: &[u8]) -> Result<()> {
        let length = u16::try_from(packet.len())?.to_be_bytes();
        let message = [&[0x30, 255][..], &length, &self.teid.to_be_bytes(), packet].concat();
        self.socket.send(&message).map(drop).context("cannot send on S1-U")
    }

    /// The next user's packet; `None` where none comes in time.
    fn receive(&self) -> Result<Option<Vec<u8>>> {
        let mut bytes = [0; 2048];
        let Ok(length) = self.socket.recv(&mut bytes) else { return Ok(None) };
        let message = bytes.get(..length).unwrap_or_default();
        match message.split_first_chunk::<GTPU>() {
            // Whether we are there (TS 29.281 7.2.1).
            Some(([_, 1, ..], _)) => self.receive(),
            Some(([0x30, 255, _, _, teid @ ..], packet)) if *teid == ENB_TEID.to_be_bytes() => {
                Ok(Some(packet.to_vec()))
            }
            _ => bail!("on S1-U came {message:02x?}"),
        }
    }

    /// Asks a server, and has its answer.
    pub(crate) fn ping(&self, number: u16) -> Result<()> {
        self.send(&echo(8, (UE, SERVER), &[&number.to_be_bytes()[..], &[7; 58]].concat()))?;
        let answer = self.receive()?.with_context(|| format!("no answer to ping {number}"))?;
        let expected = echo(0, (SERVER, UE), &[&number.to_be_bytes()[..], &[7; 58]].concat());
        ensure!(answer.get(IPV4..) == expected.get(IPV4..), "the answer is {answer:02x?}");
        Ok(())
    }

    /// Answers whoever pings the user, until it is over; how often.
    fn answer(&self, is_over: &AtomicBool) -> Result<u32> {
        let mut answered = 0;
        while !is_over.load(Ordering::Relaxed) {
            let Some(packet) = self.receive()? else { continue };
            ensure!(packet.get(IPV4) == Some(&8), "no ping: {packet:02x?}");
            self.send(&echo(0, (UE, SERVER), packet.get(IPV4 + 4..).unwrap_or_default()))?;
            answered += 1;
        }
        Ok(answered)
    }
}

/// An ICMP echo message (RFC 792), from its identifier on given.
fn echo(kind: u8, (from, to): (Ipv4Addr, Ipv4Addr), rest: &[u8]) -> Vec<u8> {
    let with_checksum = |mut bytes: Vec<u8>, at: usize| {
        let sum = checksum(&bytes).to_be_bytes();
        if let Some(place) = bytes.get_mut(at..at + 2) {
            place.copy_from_slice(&sum);
        }
        bytes
    };
    let icmp = with_checksum([&[kind, 0, 0, 0][..], rest].concat(), 2);
    let length = (IPV4 + icmp.len()) as u16;
    let [high, low] = length.to_be_bytes();
    let header = [&[0x45, 0, high, low, 0, 1, 0, 0, 64, 1, 0, 0][..], &from.octets(), &to.octets()].concat();
    [with_checksum(header, 10), icmp].concat()
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let octet = |pair: &[u8], at: usize| u32::from(pair.get(at).copied().unwrap_or_default());
    let words = bytes.chunks(2).map(|pair| octet(pair, 0) << 8 | octet(pair, 1));
    let sum = words.sum::<u32>();
    let sum = (sum >> 16) + (sum & 0xffff);
    !((sum >> 16) + (sum & 0xffff)) as u16
}

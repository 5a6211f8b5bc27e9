//! PFCP messages longer than packets: they come and go as fragments (TS 29.244 6.1 leaves that to IP), up to the longest
//! datagram there is.

use crate::Test;
use crate::gateways::ControlPlane;
use anyhow::{Result, bail, ensure};
use lab::address::SMF_N4;
use lab::anchorline::Node;
use lab::config::Driver;
use lab::{Core, Lab, command};
use pfcp::{
    ApplyAction, Body, Cause, CreateFar, CreatePdr, CreateUrr, FSeid, FTeid, HeartbeatRequest, Message,
    NodeId, Pdi, PdnType, RawIe, ReportingTriggers, SessionDeletionRequest, SessionEstablishmentRequest,
    SourceInterface, flags, request,
};

pub(crate) const TESTS: &[Test] =
    &[("messages_longer_than_packets_come_and_go", Core::Engine, longer_than_packets)];

/// As many rules as a session may have, and as many of them that are told of at its end.
const PDRS: u16 = 1_000;
const URRS: u32 = 250;
/// What fits a UDP datagram over IPv4.
const LONGEST: usize = 65_507;
/// An IE of a vendor, which nobody has to know.
const VENDOR: u16 = 0x8001;

fn longer_than_packets(lab: &Lab) -> Result<()> {
    let node = Node::start(lab, Driver::AfPacket)?;
    let mut control = ControlPlane::associate(lab)?;
    let before = Fragments::of(lab)?;
    let seid = many_rules(&mut control)?;
    node.wait_sessions(1)?;
    many_reports(&mut control, seid)?;
    let after = Fragments::of(lab)?;
    ensure!(after.reassembled > before.reassembled, "no message came in fragments");
    ensure!(after.fragmented >= before.fragmented + 2, "no two answers went in fragments");
    longest(&mut control)?;
    node.stop()
}

/// A session with all rules it may have; our name for it.
fn many_rules(control: &mut ControlPlane) -> Result<u64> {
    let number = control.number();
    let request = Message::session(0, number, establishment());
    let length = pfcp::encode(&request).len();
    ensure!((50_000..=LONGEST).contains(&length), "the request has {length} octets");
    match control.ask(&request)? {
        Body::SessionEstablishmentResponse(response) => {
            ensure!(response.cause == Cause::RequestAccepted, "refused: {response:?}");
            let created = response.created_pdrs.len();
            ensure!(created == usize::from(PDRS), "{created} endpoints");
            response.up_f_seid.map(|f_seid| f_seid.seid).ok_or_else(|| anyhow::anyhow!("no F-SEID"))
        }
        other => bail!("no session: {other:?}"),
    }
}

/// All that was used is told at once.
fn many_reports(control: &mut ControlPlane, seid: u64) -> Result<()> {
    let number = control.number();
    match control.ask(&Message::session(seid, number, SessionDeletionRequest::default()))? {
        Body::SessionDeletionResponse(response) => {
            ensure!(
                response.usage_reports.len() == URRS as usize,
                "{} reports",
                response.usage_reports.len()
            );
            Ok(())
        }
        other => bail!("not deleted: {other:?}"),
    }
}

/// Nothing is cut off: what stands last in the longest datagram is read.
fn longest(control: &mut ControlPlane) -> Result<()> {
    let number = control.number();
    let padded = |octets: usize| {
        let padding = RawIe { ie: VENDOR, value: vec![0; octets] };
        Message::node(number, HeartbeatRequest { recovery_time_stamp: 1, carried: vec![padding] })
    };
    let without = pfcp::encode(&padded(0)).len();
    let request = padded(LONGEST - without);
    ensure!(pfcp::encode(&request).len() == LONGEST, "the request is no datagram");
    match control.ask(&request)? {
        Body::HeartbeatResponse(_) => Ok(()),
        other => bail!("no heartbeat: {other:?}"),
    }
}

/// What the node's namespace did with datagrams longer than packets.
struct Fragments {
    /// Put together.
    reassembled: u64,
    /// Taken apart.
    fragmented: u64,
}

impl Fragments {
    fn of(lab: &Lab) -> Result<Self> {
        let text = lab.upf.run("cat /proc/net/snmp", command::SHORT)?;
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Ip: "));
        let (Some(names), Some(values)) = (lines.next(), lines.next()) else { bail!("no counters: {text}") };
        let counter = |name: &str| -> Result<u64> {
            let mut pairs = names.split_whitespace().zip(values.split_whitespace());
            match pairs.find(|(other, _)| *other == name) {
                Some((_, value)) => Ok(value.parse()?),
                None => bail!("there is no {name}"),
            }
        };
        Ok(Self { reassembled: counter("ReasmOKs")?, fragmented: counter("FragOKs")? })
    }
}

/// All PDRs have an endpoint of their own, and each is measured.
fn establishment() -> SessionEstablishmentRequest {
    let urr = |urr_id| CreateUrr::new(urr_id, flags::METHOD_VOLUM, ReportingTriggers::new(0));
    let (node_id, f_seid) = (NodeId::Ipv4(SMF_N4), FSeid::new(1, SMF_N4.into()));
    let fars = vec![CreateFar::new(1, ApplyAction::new(ApplyAction::DROP))];
    SessionEstablishmentRequest {
        create_urrs: (1..=URRS).map(urr).collect(),
        pdn_type: Some(PdnType::Ipv4),
        ..SessionEstablishmentRequest::new(node_id, f_seid, (1..=PDRS).map(pdr).collect(), fars)
    }
}

fn pdr(pdr_id: u16) -> CreatePdr {
    let pdi = Pdi { f_teid: Some(FTeid::choose(None)), ..Pdi::new(SourceInterface::Access) };
    let urr_ids = vec![u32::from(pdr_id) % URRS + 1];
    CreatePdr { urr_ids, ..request::pdr((pdr_id, 1), pdr_id.into(), pdi) }
}

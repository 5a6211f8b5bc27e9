//! The SMF of free5GC to an intermediate UPF: N3 on one side, N9 on the other, and packets for some networks leave the usual way
//! there (INTEROP: free5GC SMF, ULCL).

use super::free5gc::{asleep, dnn, establishment, into_radio, metered, named, short, told, up};
use super::plain::{
    DOWNLINK_FAR, DOWNLINK_PDR, FLOW_DOWNLINK_PDR, FLOW_UPLINK_PDR, PRECEDENCE, UPLINK_FAR, UPLINK_PDR,
    pdr_at, removal,
};
use super::{About, Branch, Change, Endpoint, Phrases};
use crate::smf::messages;
use crate::tunnel::Tunnel;
use pfcp::request::{self, far, pdr, updates};
use pfcp::{
    ApplyAction, CreateFar, CreatePdr, DestinationInterface, FTeid, ForwardingParameters, Pdi, SdfFilter,
    SessionEstablishmentRequest, SessionModificationRequest, SourceInterface, UeIpAddress, flags,
};

const BRANCH_UPLINK_FAR: u32 = 3;
const BRANCH_DOWNLINK_FAR: u32 = 4;
/// Before the way that all others take.
const BRANCH_PRECEDENCE: u32 = 30;
/// TEIDs of N9 are numbered beside those of N3, one for each way.
const N9_TEIDS: u32 = 0x0010_0000;
const BRANCH_TEIDS: u32 = 0x0020_0000;

pub(super) struct Free5gcIUpf;

impl Phrases for Free5gcIUpf {
    /// Uplink packets go to the anchor; downlink packets are dropped until N2 has told of the radio.
    fn establishment(&self, of: About<'_>) -> SessionEstablishmentRequest {
        let pdrs = [up(of, UPLINK_PDR, PRECEDENCE), from_anchor(of, (DOWNLINK_PDR, DOWNLINK_FAR), N9_TEIDS)];
        let fars = vec![
            far(UPLINK_FAR, short(ApplyAction::FORW), Some(to_core(of.session.plan.beyond))),
            far(DOWNLINK_FAR, short(ApplyAction::DROP), None),
        ];
        establishment(of, pdrs.map(metered).to_vec(), fars)
    }

    fn activation(&self, of: About<'_>) -> SessionModificationRequest {
        told(of, updates(vec![into_radio(of.session.plan.downlink, 0)]))
    }

    fn idle(&self, of: About<'_>) -> SessionModificationRequest {
        asleep(of)
    }

    fn change(&self, of: About<'_>, change: Change) -> Option<SessionModificationRequest> {
        let request = match change {
            Change::Handover(to) => updates(vec![into_radio(to, flags::PFCPSM_SNDEM)]),
            Change::Branch(to) => branch(of, &to),
            Change::EndBranch => request::removals(
                &[FLOW_DOWNLINK_PDR, FLOW_UPLINK_PDR],
                &[BRANCH_UPLINK_FAR, BRANCH_DOWNLINK_FAR],
                &[],
            ),
            _ => return None,
        };
        Some(told(of, request))
    }

    fn pdr_at(&self, endpoint: Endpoint) -> Option<u16> {
        pdr_at(endpoint)
    }

    /// Messages about sessions have the MP flag.
    fn priority(&self) -> Option<u8> {
        Some(0)
    }
}

/// Neither network instance nor UE address: the tunnel says it all.
fn from_anchor(of: About<'_>, ids: (u16, u32), teids: u32) -> CreatePdr {
    let low = u32::try_from(of.session.seid & u64::from(u32::MAX)).unwrap_or_default();
    let f_teid = of.settings.n9.map(|n9| FTeid::ipv4(teids | low, n9));
    let pdi = Pdi { f_teid, ..Pdi::new(SourceInterface::Core) };
    CreatePdr { outer_header_removal: Some(removal()), ..pdr(ids, PRECEDENCE, pdi) }
}

/// Into an anchor's tunnel, or out.
fn to_core(tunnel: Option<Tunnel>) -> ForwardingParameters {
    ForwardingParameters {
        network_instance: dnn(),
        outer_header_creation: tunnel.map(messages::outer_header),
        ..ForwardingParameters::new(DestinationInterface::Core)
    }
}

fn to_radio(far_id: u32, tunnel: Tunnel) -> CreateFar {
    let to = ForwardingParameters {
        network_instance: dnn(),
        outer_header_creation: Some(messages::outer_header(tunnel)),
        ..ForwardingParameters::new(DestinationInterface::Access)
    };
    far(far_id, short(ApplyAction::FORW), Some(to))
}

/// Another pair of PDRs at the radio's tunnel, with FARs of their own: packets for the network leave by another anchor's tunnel,
/// or here, and those back come in by the same way.
fn branch(of: About<'_>, to: &Branch) -> SessionModificationRequest {
    let mut up = up(of, FLOW_UPLINK_PDR, BRANCH_PRECEDENCE);
    up.far_id = Some(BRANCH_UPLINK_FAR);
    up.pdi.sdf_filters = vec![SdfFilter::flow(description(of, to))];
    let ids = (FLOW_DOWNLINK_PDR, BRANCH_DOWNLINK_FAR);
    let down = match to.beyond {
        Some(_) => from_anchor(of, ids, BRANCH_TEIDS),
        None => from_network(of, ids),
    };
    SessionModificationRequest {
        create_pdrs: vec![metered(up), metered(down)],
        create_fars: vec![
            far(BRANCH_UPLINK_FAR, short(ApplyAction::FORW), Some(to_core(to.beyond))),
            to_radio(BRANCH_DOWNLINK_FAR, of.session.plan.downlink),
        ],
        ..SessionModificationRequest::default()
    }
}

/// An anchor's PDR says that the UE's address is the destination, where others leave that out.
fn from_network(of: About<'_>, ids: (u16, u32)) -> CreatePdr {
    let ue = UeIpAddress { ipv4: Some(of.session.plan.ue), is_destination: true, ..UeIpAddress::default() };
    pdr(ids, PRECEDENCE, Pdi { ue_ip_addresses: vec![ue], ..named(of, SourceInterface::Core) })
}

fn description(of: About<'_>, to: &Branch) -> String {
    let (ue, network) = (of.session.plan.ue.to_string(), format!("{}/{}", to.network.0, to.network.1));
    let (from, to) = if to.is_turned { (ue, network) } else { (network, ue) };
    format!("permit out ip from {from} to {to}")
}

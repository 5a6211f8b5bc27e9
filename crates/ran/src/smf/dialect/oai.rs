//! The SMF of OpenAirInterface (INTEROP: OAI SMF): everything is said in full, with zeros, and reports are asked for by the
//! second.

use super::plain::{
    DOWNLINK_FAR, DOWNLINK_PDR, QER, UPLINK_FAR, UPLINK_PDR, URR, activation, explicit, pdr_at,
};
use super::{About, Change, Endpoint, Phrases};
use crate::smf::messages::{self, far_into, ue};
use pfcp::request::{self, far, pdr, qer, updates};
use pfcp::{
    ApplyAction, CreatePdr, CreateUrr, DestinationInterface, EthernetPacketFilter, FTeid,
    ForwardingParameters, OuterHeaderRemoval, Pdi, PdnType, RedirectInformation, ReportingTriggers,
    SessionEstablishmentRequest, SessionModificationRequest, SourceInterface, UpdatePdr, Volumes, flags,
};

/// What the PCC rule said, or nothing did.
const PRECEDENCE: u32 = 0;

/// PDRs with it share an endpoint.
const CHOOSE_ID: u8 = 42;
/// 3GPP Interface Types (TS 29.244 8.2.118): where there is none to tell, 0 all the same.
const N3: u8 = 11;
const NO_TYPE: u8 = 0;
/// The Ethertype of the frames that its PCC rule is about.
const IPV4: u16 = 0x0800;

pub(super) struct Oai;

impl Phrases for Oai {
    /// Downlink packets are dropped until the radio is known; so long nothing is said of QoS flow and outer header, either.
    fn establishment(&self, of: About<'_>) -> SessionEstablishmentRequest {
        let plan = &of.session.plan;
        let with = |pdr| CreatePdr { qer_ids: vec![QER], urr_ids: vec![URR], ..pdr };
        let up = Pdi { qfis: vec![], ..uplink_pdi(of, FTeid::choose(Some(CHOOSE_ID))) };
        let up = with(pdr((UPLINK_PDR, UPLINK_FAR), PRECEDENCE, up));
        let down = with(pdr((DOWNLINK_PDR, DOWNLINK_FAR), PRECEDENCE, named(of, SourceInterface::Core)));
        let to_core = ForwardingParameters {
            redirect_information: plan.portal.clone().map(RedirectInformation::Url),
            ..ForwardingParameters::new(DestinationInterface::Core)
        };
        let fars =
            vec![far(UPLINK_FAR, forward(), Some(to_core)), far(DOWNLINK_FAR, ApplyAction::short(1), None)];
        SessionEstablishmentRequest {
            create_urrs: vec![urr()],
            create_qers: vec![qer(QER, messages::mbr(plan), Some(plan.qfi.value()))],
            // Of no other sessions is it told.
            pdn_type: plan.ethernet.then_some(PdnType::Ethernet),
            ..messages::establishment(of, vec![up, down], fars)
        }
    }

    /// The uplink PDR is sent again as a whole, now with its QoS flow and the outer header's removal.
    fn activation(&self, of: About<'_>) -> SessionModificationRequest {
        let removal = OuterHeaderRemoval {
            description: OuterHeaderRemoval::GTPU_UDP_IPV4,
            extension_header_deletion: Some(0),
        };
        let whole = of.uplink().map(|uplink| UpdatePdr {
            outer_header_removal: Some(removal),
            precedence: Some(PRECEDENCE),
            pdi: Some(uplink_pdi(of, explicit(uplink))),
            far_id: Some(UPLINK_FAR),
            urr_ids: vec![URR],
            ..UpdatePdr::new(UPLINK_PDR)
        });
        SessionModificationRequest { update_pdrs: whole.into_iter().collect(), ..activation(of) }
    }

    /// It asks for no End Marker.
    fn change(&self, _of: About<'_>, change: Change) -> Option<SessionModificationRequest> {
        match change {
            Change::Handover(to) => {
                Some(updates(vec![far_into(DOWNLINK_FAR, DestinationInterface::Access, to)]))
            }
            Change::QueryUsage => Some(request::query(URR)),
            _ => None,
        }
    }

    fn pdr_at(&self, endpoint: Endpoint) -> Option<u16> {
        pdr_at(endpoint).filter(|_| endpoint == Endpoint::Uplink)
    }
}

const fn forward() -> ApplyAction {
    ApplyAction::short(ApplyAction::FORW as u8)
}

/// No network instance. Of frames there is no UE address, and filters of both directions for what the PCC rule names.
fn named(of: About<'_>, source: SourceInterface) -> Pdi {
    let plan = &of.session.plan;
    let is_downlink = source != SourceInterface::Access;
    let interface_type = Some(if is_downlink { NO_TYPE } else { N3 });
    let pdi = Pdi { interface_type, ..Pdi::new(source) };
    if !plan.ethernet {
        return Pdi { ue_ip_addresses: ue(plan, is_downlink), ..pdi };
    }
    let filter = EthernetPacketFilter { ethertype: Some(IPV4), ..EthernetPacketFilter::default() };
    Pdi {
        ethernet_pdu_session_information: is_downlink.then_some(flags::ETHERNET_ETHI),
        ethernet_packet_filters: vec![filter],
        ..pdi
    }
}

fn uplink_pdi(of: About<'_>, f_teid: FTeid) -> Pdi {
    let qfis = vec![of.session.plan.qfi.value()];
    Pdi { f_teid: Some(f_teid), qfis, ..named(of, SourceInterface::Access) }
}

/// Written into the program: every 10 s, after 1,000 bytes down, and after 5 s.
fn urr() -> CreateUrr {
    CreateUrr {
        urr_id: URR,
        measurement_method: flags::METHOD_VOLUM | flags::METHOD_DURAT,
        reporting_triggers: ReportingTriggers::new(
            ReportingTriggers::PERIO | ReportingTriggers::VOLTH | ReportingTriggers::TIMTH,
        ),
        measurement_period: Some(10),
        volume_threshold: Some(Volumes { downlink: Some(1_000), ..Volumes::default() }),
        time_threshold: Some(5),
        ..CreateUrr::default()
    }
}

//! The SMF of OpenAirInterface (INTEROP: OAI SMF): everything is said in full, with zeros, and reports are asked for by the
//! second.

use super::plain::{
    DOWNLINK_FAR, DOWNLINK_PDR, QER, UPLINK_FAR, UPLINK_PDR, URR, activation, explicit, pdr_at,
};
use super::{About, Change, Endpoint, Phrases};
use crate::smf::messages::{self, far_into, ue};
use pfcp::request::{self, far, pdr, qer, updates};
use pfcp::{
    ApplyAction, CreatePdr, CreateUrr, DestinationInterface, FTeid, ForwardingParameters, OuterHeaderRemoval,
    Pdi, ReportingTriggers, SessionEstablishmentRequest, SessionModificationRequest, SourceInterface,
    UpdatePdr, Volumes, flags,
};

/// What the PCC rule said, or nothing did.
const PRECEDENCE: u32 = 0;

pub(super) struct Oai;

impl Phrases for Oai {
    /// Downlink packets are dropped until the radio is known.
    fn establishment(&self, of: About<'_>) -> SessionEstablishmentRequest {
        // No CHOOSE ID.
        let up = uplink_pdi(of, FTeid::choose(None));
        let down = named(of, SourceInterface::Core);
        let removal = OuterHeaderRemoval {
            description: OuterHeaderRemoval::GTPU_UDP_IPV4,
            extension_header_deletion: Some(0),
        };
        let with = |pdr| CreatePdr { qer_ids: vec![QER], urr_ids: vec![URR], ..pdr };
        let up = with(pdr((UPLINK_PDR, UPLINK_FAR), PRECEDENCE, up));
        let up = CreatePdr { outer_header_removal: Some(removal), ..up };
        let down = with(pdr((DOWNLINK_PDR, DOWNLINK_FAR), PRECEDENCE, down));
        let fars = vec![
            far(UPLINK_FAR, forward(), Some(ForwardingParameters::new(DestinationInterface::Core))),
            far(DOWNLINK_FAR, ApplyAction::short(1), None),
        ];
        let plan = &of.session.plan;
        SessionEstablishmentRequest {
            create_urrs: vec![urr()],
            create_qers: vec![qer(QER, messages::mbr(plan), Some(plan.qfi.value()))],
            ..messages::establishment(of, vec![up, down], fars)
        }
    }

    /// The uplink PDR is sent again as a whole.
    fn activation(&self, of: About<'_>) -> SessionModificationRequest {
        let whole = of.uplink().map(|uplink| UpdatePdr {
            pdr_id: UPLINK_PDR,
            precedence: Some(PRECEDENCE),
            pdi: Some(uplink_pdi(of, explicit(uplink))),
            far_id: Some(UPLINK_FAR),
            urr_ids: vec![URR],
            qer_ids: vec![QER],
            ..UpdatePdr::default()
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

/// No network instance, and a 3GPP Interface Type that says nothing.
fn named(of: About<'_>, source: SourceInterface) -> Pdi {
    let ue_ip_addresses = ue(&of.session.plan, source != SourceInterface::Access);
    Pdi { ue_ip_addresses, interface_type: Some(0), ..Pdi::new(source) }
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

//! The SMF of OpenAirInterface (INTEROP: OAI SMF): everything is said in full, with zeros, and reports are asked for by the
//! second.

use super::plain::{
    DOWNLINK_FAR, DOWNLINK_PDR, QER, UPLINK_FAR, UPLINK_PDR, URR, activation, explicit, pdr_at,
};
use super::{About, Change, Endpoint, Phrases};
use crate::smf::messages::{self, far_into, ue};
use pfcp::request::{self, far, far_action, pdr, qer, updates};
use pfcp::{
    ApplyAction, CreateBar, CreatePdr, CreateUrr, DestinationInterface, EthernetPacketFilter, FTeid,
    ForwardingParameters, OuterHeaderRemoval, Pdi, PdnType, RedirectInformation, ReportingTriggers,
    SessionEstablishmentRequest, SessionModificationRequest, SourceInterface, UpdateFar, UpdatePdr, Volumes,
    flags,
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

/// Whose only PDR is for packets to a user who sleeps.
const PAGING_PDR: u16 = 5;
const PAGING_FAR: u32 = 5;
/// Made each time the user sleeps.
const BAR: u8 = 1;

pub(super) struct Oai {
    /// The downlink has rules only while the radio is known, and others while the user sleeps.
    pub(super) is_downlink_later: bool,
}

impl Phrases for Oai {
    /// Downlink packets are dropped until the radio is known; so long nothing is said of QoS flow and outer header, either.
    fn establishment(&self, of: About<'_>) -> SessionEstablishmentRequest {
        let plan = &of.session.plan;
        let up = Pdi { qfis: vec![], ..uplink_pdi(of, FTeid::choose(Some(CHOOSE_ID))) };
        let up = CreatePdr {
            qer_ids: vec![QER],
            urr_ids: vec![URR],
            ..pdr((UPLINK_PDR, UPLINK_FAR), PRECEDENCE, up)
        };
        let down = downlink_pdr(of);
        let to_core = ForwardingParameters {
            redirect_information: plan.portal.clone().map(RedirectInformation::Url),
            ..ForwardingParameters::new(DestinationInterface::Core)
        };
        let (up_far, down_far) = (
            far(UPLINK_FAR, forward(), Some(to_core)),
            far(DOWNLINK_FAR, ApplyAction::short(ApplyAction::DROP as u8), None),
        );
        let (pdrs, fars) = match self.is_downlink_later {
            true => (vec![up], vec![up_far]),
            false => (vec![up, down], vec![up_far, down_far]),
        };
        SessionEstablishmentRequest {
            create_urrs: vec![urr()],
            create_qers: vec![qer(QER, messages::mbr(plan), Some(plan.qfi.value()))],
            // Of no other sessions is it told.
            pdn_type: plan.ethernet.then_some(PdnType::Ethernet),
            ..messages::establishment(of, pdrs, fars)
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
        let opened = if self.is_downlink_later { opened(of) } else { activation(of) };
        SessionModificationRequest { update_pdrs: whole.into_iter().collect(), ..opened }
    }

    fn idle(&self, of: About<'_>) -> SessionModificationRequest {
        if self.is_downlink_later { paging(of) } else { buffered() }
    }

    fn wake(&self, of: About<'_>) -> SessionModificationRequest {
        if !self.is_downlink_later {
            return activation(of);
        }
        let over = request::removals(&[PAGING_PDR], &[PAGING_FAR], &[]);
        let SessionModificationRequest { create_pdrs, create_fars, .. } = opened(of);
        SessionModificationRequest { create_pdrs, create_fars, ..over }
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

fn downlink_pdr(of: About<'_>) -> CreatePdr {
    let down = pdr((DOWNLINK_PDR, DOWNLINK_FAR), PRECEDENCE, named(of, SourceInterface::Core));
    CreatePdr { qer_ids: vec![QER], urr_ids: vec![URR], ..down }
}

/// The downlink's rules come with the radio.
fn opened(of: About<'_>) -> SessionModificationRequest {
    let into_radio = ForwardingParameters {
        outer_header_creation: Some(messages::outer_header(of.session.plan.downlink)),
        ..ForwardingParameters::new(DestinationInterface::Access)
    };
    SessionModificationRequest {
        create_pdrs: vec![downlink_pdr(of)],
        create_fars: vec![far(DOWNLINK_FAR, forward(), Some(into_radio))],
        ..SessionModificationRequest::default()
    }
}

const fn kept() -> ApplyAction {
    ApplyAction::short((ApplyAction::BUFF | ApplyAction::NOCP) as u8)
}

/// Rules for a user who sleeps take the place of those for the radio: one PDR for whatever is for the user, without QER and URR,
/// and a FAR without BAR.
fn paging(of: About<'_>) -> SessionModificationRequest {
    let pdi = Pdi { interface_type: None, ..named(of, SourceInterface::Core) };
    SessionModificationRequest {
        create_pdrs: vec![pdr((PAGING_PDR, PAGING_FAR), PRECEDENCE, pdi)],
        create_fars: vec![far(PAGING_FAR, kept(), None)],
        ..request::removals(&[DOWNLINK_PDR], &[DOWNLINK_FAR], &[])
    }
}

/// With the BAR, which is never removed.
fn buffered() -> SessionModificationRequest {
    let update = UpdateFar { bar_id: Some(BAR), ..far_action(DOWNLINK_FAR, kept()) };
    SessionModificationRequest { create_bar: Some(CreateBar::new(BAR)), ..updates(vec![update]) }
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

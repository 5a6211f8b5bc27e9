//! The SMF of free5GC to an anchor behind an intermediate UPF: N9 on one side, N6 on the other.

use super::free5gc::{asleep, dnn, establishment, into_radio, metered, named, short, told, up};
use super::plain::{DOWNLINK_FAR, DOWNLINK_PDR, PRECEDENCE, UPLINK_FAR, UPLINK_PDR, pdr_at};
use super::{About, Change, Endpoint, Phrases};
use crate::smf::messages;
use pfcp::request::{far, pdr, updates};
use pfcp::{
    ApplyAction, DestinationInterface, ForwardingParameters, Pdi, SessionEstablishmentRequest,
    SessionModificationRequest, SourceInterface,
};

pub(super) struct Free5gcPsa;

impl Phrases for Free5gcPsa {
    /// The other end of N9 is known: downlink packets go there at once.
    fn establishment(&self, of: About<'_>) -> SessionEstablishmentRequest {
        let plan = &of.session.plan;
        let ue_ip_addresses = messages::ue(plan, true);
        let down = Pdi { ue_ip_addresses, ..named(of, SourceInterface::Core) };
        let down = pdr((DOWNLINK_PDR, DOWNLINK_FAR), PRECEDENCE, down);
        let to_core = ForwardingParameters {
            network_instance: dnn(),
            ..ForwardingParameters::new(DestinationInterface::Core)
        };
        let to_other = ForwardingParameters {
            outer_header_creation: Some(messages::outer_header(plan.downlink)),
            ..ForwardingParameters::new(DestinationInterface::Access)
        };
        let fars = vec![
            far(UPLINK_FAR, short(ApplyAction::FORW), Some(to_core)),
            far(DOWNLINK_FAR, short(ApplyAction::FORW), Some(to_other)),
        ];
        establishment(of, vec![metered(up(of, UPLINK_PDR, PRECEDENCE)), metered(down)], fars)
    }

    /// The same again.
    fn activation(&self, of: About<'_>) -> SessionModificationRequest {
        told(of, updates(vec![into_radio(of.session.plan.downlink, 0)]))
    }

    fn idle(&self, of: About<'_>) -> SessionModificationRequest {
        asleep(of)
    }

    /// Another intermediate UPF.
    fn change(&self, of: About<'_>, change: Change) -> Option<SessionModificationRequest> {
        match change {
            Change::Handover(to) => Some(told(of, updates(vec![into_radio(to, pfcp::flags::PFCPSM_SNDEM)]))),
            _ => None,
        }
    }

    fn pdr_at(&self, endpoint: Endpoint) -> Option<u16> {
        pdr_at(endpoint)
    }

    fn priority(&self) -> Option<u8> {
        Some(0)
    }
}

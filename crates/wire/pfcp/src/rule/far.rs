//! Forwarding Action Rules.

use crate::fields::group;
use crate::value::{
    ApplyAction, DestinationInterface, HeaderEnrichment, NetworkInstance, OuterHeaderCreation,
    RedirectInformation,
};

group! {
    /// Forwarding Parameters (TS 29.244 7.5.2.3-2).
    ForwardingParameters {
        /// Where to.
        destination_interface: one DestinationInterface = DESTINATION_INTERFACE,
        /// The network it belongs to.
        network_instance: opt NetworkInstance = NETWORK_INSTANCE,
        /// The header to put on.
        outer_header_creation: opt OuterHeaderCreation = OUTER_HEADER_CREATION,
        /// ToS or traffic class of the outer header, and its mask.
        transport_level_marking: opt u16 = TRANSPORT_LEVEL_MARKING,
        /// Where users are sent instead.
        redirect_information: opt RedirectInformation = REDIRECT_INFORMATION,
        /// What requests get.
        header_enrichment: opt HeaderEnrichment = HEADER_ENRICHMENT,
        /// The traffic endpoint of the other direction.
        linked_traffic_endpoint_id: opt u8 = TRAFFIC_ENDPOINT_ID,
        /// N3, N6, S1-U ... for people and statistics.
        interface_type: opt u8 = TGPP_INTERFACE_TYPE,
    }
}

group! {
    /// Duplicating Parameters (TS 29.244 7.5.2.3-3).
    DuplicatingParameters {
        /// Where to.
        destination_interface: one DestinationInterface = DESTINATION_INTERFACE,
        /// The header to put on.
        outer_header_creation: opt OuterHeaderCreation = OUTER_HEADER_CREATION,
        /// ToS or traffic class of the outer header, and its mask.
        transport_level_marking: opt u16 = TRANSPORT_LEVEL_MARKING,
    }
}

group! {
    /// Update Duplicating Parameters (TS 29.244 7.5.4.3-3): what is absent stays.
    #[derive(Default)]
    UpdateDuplicatingParameters {
        /// New destination.
        destination_interface: set DestinationInterface = DESTINATION_INTERFACE,
        /// New header.
        outer_header_creation: set OuterHeaderCreation = OUTER_HEADER_CREATION,
        /// New marking.
        transport_level_marking: set u16 = TRANSPORT_LEVEL_MARKING,
    }
}

group! {
    /// Create FAR (TS 29.244 7.5.2.3-1).
    CreateFar {
        /// Its name in the session.
        far_id: one u32 = FAR_ID,
        /// What to do.
        apply_action: one ApplyAction = APPLY_ACTION,
        /// Where and how.
        forwarding_parameters: opt ForwardingParameters = FORWARDING_PARAMETERS,
        /// Where copies go.
        duplicating_parameters: all DuplicatingParameters = DUPLICATING_PARAMETERS,
        /// How to buffer.
        bar_id: opt u8 = BAR_ID,
    }
}

group! {
    /// Update Forwarding Parameters (TS 29.244 7.5.4.3-2): what is absent stays.
    #[derive(Default)]
    UpdateForwardingParameters {
        /// New destination.
        destination_interface: set DestinationInterface = DESTINATION_INTERFACE,
        /// New network.
        network_instance: set NetworkInstance = NETWORK_INSTANCE,
        /// New header.
        outer_header_creation: set OuterHeaderCreation = OUTER_HEADER_CREATION,
        /// New marking.
        transport_level_marking: set u16 = TRANSPORT_LEVEL_MARKING,
        /// Where users are sent instead, anew.
        redirect_information: set RedirectInformation = REDIRECT_INFORMATION,
        /// What requests get, anew.
        header_enrichment: set HeaderEnrichment = HEADER_ENRICHMENT,
        /// The bits of [`crate::flags`].
        pfcpsm_req_flags: set u8 = PFCPSMREQ_FLAGS,
        /// The new traffic endpoint of the other direction.
        linked_traffic_endpoint_id: set u8 = TRAFFIC_ENDPOINT_ID,
        /// N3, N6, S1-U ... for people and statistics.
        interface_type: set u8 = TGPP_INTERFACE_TYPE,
    }
}

group! {
    /// Update FAR (TS 29.244 7.5.4.3-1): what is absent stays.
    #[derive(Default)]
    UpdateFar {
        /// The rule.
        far_id: one u32 = FAR_ID,
        /// New action.
        apply_action: set ApplyAction = APPLY_ACTION,
        /// New parameters.
        update_forwarding_parameters: set UpdateForwardingParameters = UPDATE_FORWARDING_PARAMETERS,
        /// The same, by the name they have in a Create FAR: one control plane in use says so.
        forwarding_parameters: set UpdateForwardingParameters = FORWARDING_PARAMETERS,
        /// New parameters of copies, in the order of those before.
        update_duplicating_parameters: each UpdateDuplicatingParameters = UPDATE_DUPLICATING_PARAMETERS,
        /// How to buffer.
        bar_id: set u8 = BAR_ID,
    }
}

impl UpdateFar {
    /// New parameters, by whichever name.
    pub const fn parameters(&self) -> Option<&UpdateForwardingParameters> {
        match &self.update_forwarding_parameters {
            None => self.forwarding_parameters.as_ref(),
            told => told.as_ref(),
        }
    }
}

group! {
    /// Remove FAR (TS 29.244 7.5.4.7).
    #[derive(Default)]
    RemoveFar {
        /// The rule.
        far_id: one u32 = FAR_ID,
    }
}

//! Packet Detection Rules.

use super::ethernet::EthernetPacketFilter;
use crate::fields::group;
use crate::value::{
    FTeid, NetworkInstance, OuterHeaderRemoval, PoolIdentity, SdfFilter, SourceInterface, UeIpAddress,
};

group! {
    /// PDI (TS 29.244 7.5.2.2-2): all that is there must match.
    Pdi {
        /// Where the packet comes from.
        source_interface: one SourceInterface = SOURCE_INTERFACE,
        /// The tunnel it comes in.
        f_teid: opt FTeid = F_TEID,
        /// The network it belongs to.
        network_instance: opt NetworkInstance = NETWORK_INSTANCE,
        /// The user's address; some send several, for IPv4 and IPv6.
        ue_ip_addresses: all UeIpAddress = UE_IP_ADDRESS,
        /// Stands for a tunnel and an address declared elsewhere.
        traffic_endpoint_id: opt u8 = TRAFFIC_ENDPOINT_ID,
        /// ETHI: the bits of [`crate::flags`].
        ethernet_pdu_session_information: opt u8 = ETHERNET_PDU_SESSION_INFORMATION,
        /// Any of these.
        ethernet_packet_filters: all EthernetPacketFilter = ETHERNET_PACKET_FILTER,
        /// Any of these.
        sdf_filters: all SdfFilter = SDF_FILTER,
        /// As in the control plane's catalogue.
        application_id: opt Vec<u8> = APPLICATION_ID,
        /// Any of these.
        qfis: all u8 = QFI,
        /// N3, N6, S1-U ... for people and statistics.
        interface_type: opt u8 = TGPP_INTERFACE_TYPE,
    }
}

group! {
    /// Create PDR (TS 29.244 7.5.2.2-1).
    CreatePdr {
        /// Its name in the session.
        pdr_id: one u16 = PDR_ID,
        /// Lower is matched first.
        precedence: opt u32 = PRECEDENCE,
        /// What it matches.
        pdi: one Pdi = PDI,
        /// Which headers to take off.
        outer_header_removal: opt OuterHeaderRemoval = OUTER_HEADER_REMOVAL,
        /// What to do.
        far_id: opt u32 = FAR_ID,
        /// What to count.
        urr_ids: all u32 = URR_ID,
        /// How much may pass.
        qer_ids: all u32 = QER_ID,
        /// Names of rules known beforehand.
        activate_predefined_rules: all Vec<u8> = ACTIVATE_PREDEFINED_RULES,
        /// From which of our pools the user's address is.
        ue_ip_address_pool: opt PoolIdentity = UE_IP_ADDRESS_POOL_IDENTITY,
    }
}

group! {
    /// Created PDR (TS 29.244 7.5.3.2).
    CreatedPdr {
        /// The rule.
        pdr_id: one u16 = PDR_ID,
        /// The tunnel endpoint chosen for it.
        local_f_teid: opt FTeid = F_TEID,
        /// The addresses chosen for it.
        ue_ip_addresses: all UeIpAddress = UE_IP_ADDRESS,
    }
}

group! {
    /// Update PDR (TS 29.244 7.5.4.2).
    #[derive(Default)]
    UpdatePdr {
        /// The rule.
        pdr_id: one u16 = PDR_ID,
        /// New outer header removal.
        outer_header_removal: set OuterHeaderRemoval = OUTER_HEADER_REMOVAL,
        /// New precedence.
        precedence: set u32 = PRECEDENCE,
        /// Replaces the whole PDI.
        pdi: set Pdi = PDI,
        /// New FAR.
        far_id: set u32 = FAR_ID,
        /// Replaces the whole list, if there are any.
        urr_ids: each u32 = URR_ID,
        /// Replaces the whole list, if there are any.
        qer_ids: each u32 = QER_ID,
        /// Names of rules known beforehand.
        activate_predefined_rules: each Vec<u8> = ACTIVATE_PREDEFINED_RULES,
        /// Names of rules known beforehand.
        deactivate_predefined_rules: each Vec<u8> = DEACTIVATE_PREDEFINED_RULES,
    }
}

group! {
    /// Remove PDR (TS 29.244 7.5.4.6).
    #[derive(Default)]
    RemovePdr {
        /// The rule.
        pdr_id: one u16 = PDR_ID,
    }
}

//! Traffic endpoints: what several PDIs have in common, said once (TS 29.244 5.2.1A.2, feature PDIU).

use crate::fields::group;
use crate::value::{FTeid, NetworkInstance, PoolIdentity, UeIpAddress};

group! {
    /// Create Traffic Endpoint (TS 29.244 7.5.2.7).
    #[derive(Default)]
    CreateTrafficEndpoint {
        /// Its name in the session.
        traffic_endpoint_id: one u8 = TRAFFIC_ENDPOINT_ID,
        /// The tunnel packets come in.
        local_f_teid: opt FTeid = F_TEID,
        /// The network it belongs to.
        network_instance: opt NetworkInstance = NETWORK_INSTANCE,
        /// The user's address, or one of each family.
        ue_ip_addresses: all UeIpAddress = UE_IP_ADDRESS,
        /// Any of these.
        qfis: all u8 = QFI,
        /// ETHI: the bits of [`crate::flags`].
        ethernet_pdu_session_information: opt u8 = ETHERNET_PDU_SESSION_INFORMATION,
        /// From which of our pools the user's address is.
        ue_ip_address_pool: opt PoolIdentity = UE_IP_ADDRESS_POOL_IDENTITY,
        /// N3, N6, S1-U ... for people and statistics.
        interface_type: opt u8 = TGPP_INTERFACE_TYPE,
    }
}

group! {
    /// Created Traffic Endpoint (TS 29.244 7.5.3.5).
    #[derive(Default)]
    CreatedTrafficEndpoint {
        /// The traffic endpoint.
        traffic_endpoint_id: one u8 = TRAFFIC_ENDPOINT_ID,
        /// The tunnel endpoint chosen for it.
        local_f_teid: opt FTeid = F_TEID,
        /// The address chosen for it.
        ue_ip_addresses: all UeIpAddress = UE_IP_ADDRESS,
    }
}

group! {
    /// Update Traffic Endpoint (TS 29.244 7.5.4.13): what is absent stays.
    #[derive(Default)]
    UpdateTrafficEndpoint {
        /// The traffic endpoint.
        traffic_endpoint_id: one u8 = TRAFFIC_ENDPOINT_ID,
        /// New tunnel.
        local_f_teid: set FTeid = F_TEID,
        /// New network.
        network_instance: set NetworkInstance = NETWORK_INSTANCE,
        /// Replaces the whole list, if there are any.
        ue_ip_addresses: each UeIpAddress = UE_IP_ADDRESS,
        /// Replaces the whole list, if there are any.
        qfis: each u8 = QFI,
        /// N3, N6, S1-U ... for people and statistics.
        interface_type: set u8 = TGPP_INTERFACE_TYPE,
    }
}

group! {
    /// Remove Traffic Endpoint (TS 29.244 7.5.4.14).
    #[derive(Default)]
    RemoveTrafficEndpoint {
        /// The traffic endpoint.
        traffic_endpoint_id: one u8 = TRAFFIC_ENDPOINT_ID,
    }
}

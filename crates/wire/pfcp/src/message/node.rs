//! Node related messages (TS 29.244 7.4).

use crate::fields::{Value, group};
use crate::value::{
    Cause, CpFunctionFeatures, CpIpAddress, NetworkInstance, NodeId, PoolIdentity, UpFunctionFeatures,
};
use crate::{ErrorKind, ie};

group! {
    /// Heartbeat Request (7.4.2.1).
    #[derive(Default)]
    HeartbeatRequest {
        /// Seconds since 1900 at the sender's last restart.
        recovery_time_stamp: one u32 = RECOVERY_TIME_STAMP,
    }
}

group! {
    /// Heartbeat Response (7.4.2.2).
    #[derive(Default)]
    HeartbeatResponse {
        /// Seconds since 1900 at the sender's last restart.
        recovery_time_stamp: one u32 = RECOVERY_TIME_STAMP,
    }
}

group! {
    /// UE IP Address Pool Information (7.4.4.1-3): one pool a user plane chooses addresses from.
    #[derive(Default)]
    PoolInformation {
        /// Its name.
        identity: one PoolIdentity = UE_IP_ADDRESS_POOL_IDENTITY,
        /// The network it belongs to.
        network_instance: opt NetworkInstance = NETWORK_INSTANCE,
        /// The bits of [`crate::flags`].
        ip_version: opt u8 = IP_VERSION,
    }
}

group! {
    /// PFCP Session Retention Information (7.4.4.1-2): sessions that outlive the restart of their control plane.
    #[derive(Default)]
    SessionRetentionInformation {
        /// Where the control planes are whose sessions stay; all of them where none is named.
        cp_pfcp_entities: all CpIpAddress = CP_PFCP_ENTITY_IP_ADDRESS,
    }
}

impl SessionRetentionInformation {
    /// The value of the IE.
    pub fn of_octets(octets: &[u8]) -> Result<Self, ErrorKind> {
        Self::read(octets, ie::PFCP_SESSION_RETENTION_INFORMATION)
    }
}

group! {
    /// Association Setup Request (7.4.4.1).
    AssociationSetupRequest {
        /// The sender.
        node_id: one NodeId = NODE_ID,
        /// Seconds since 1900 at the sender's last restart.
        recovery_time_stamp: one u32 = RECOVERY_TIME_STAMP,
        /// What the sender can do, if it is a user plane.
        up_function_features: opt UpFunctionFeatures = UP_FUNCTION_FEATURES,
        /// What the sender can do, if it is a control plane.
        cp_function_features: opt CpFunctionFeatures = CP_FUNCTION_FEATURES,
        /// Pools the sender chooses users' addresses from, if it is a user plane.
        pools: all PoolInformation = UE_IP_ADDRESS_POOL_INFORMATION,
        /// The set of control planes the sender belongs to.
        smf_set_id: opt Vec<u8> = SMF_SET_ID,
        /// Where the other control planes of its set are.
        alternatives: all CpIpAddress = ALTERNATIVE_SMF_IP_ADDRESS,
    }
}

group! {
    /// Association Setup Response (7.4.4.2).
    AssociationSetupResponse {
        /// The sender.
        node_id: one NodeId = NODE_ID,
        /// How it ended.
        cause: one Cause = CAUSE,
        /// Seconds since 1900 at the sender's last restart.
        recovery_time_stamp: one u32 = RECOVERY_TIME_STAMP,
        /// What the sender can do, if it is a user plane.
        up_function_features: opt UpFunctionFeatures = UP_FUNCTION_FEATURES,
        /// What the sender can do, if it is a control plane.
        cp_function_features: opt CpFunctionFeatures = CP_FUNCTION_FEATURES,
        /// Pools the sender chooses users' addresses from, if it is a user plane.
        pools: all PoolInformation = UE_IP_ADDRESS_POOL_INFORMATION,
        /// The set of control planes the sender belongs to.
        smf_set_id: opt Vec<u8> = SMF_SET_ID,
        /// Where the other control planes of its set are.
        alternatives: all CpIpAddress = ALTERNATIVE_SMF_IP_ADDRESS,
    }
}

group! {
    /// Association Update Request (7.4.4.3).
    AssociationUpdateRequest {
        /// The sender.
        node_id: one NodeId = NODE_ID,
        /// What the sender can do now, if it is a user plane.
        up_function_features: opt UpFunctionFeatures = UP_FUNCTION_FEATURES,
        /// What the sender can do now, if it is a control plane.
        cp_function_features: opt CpFunctionFeatures = CP_FUNCTION_FEATURES,
        /// A user plane asks to be released.
        association_release_request: opt u8 = PFCP_ASSOCIATION_RELEASE_REQUEST,
        /// How long a release may take.
        graceful_release_period: opt u8 = GRACEFUL_RELEASE_PERIOD,
        /// Pools the sender chooses users' addresses from now, if it is a user plane.
        pools: all PoolInformation = UE_IP_ADDRESS_POOL_INFORMATION,
        /// The set of control planes the sender belongs to now.
        smf_set_id: opt Vec<u8> = SMF_SET_ID,
        /// Where the other control planes of its set are now.
        alternatives: all CpIpAddress = ALTERNATIVE_SMF_IP_ADDRESS,
    }
}

group! {
    /// Association Update Response (7.4.4.4).
    AssociationUpdateResponse {
        /// The sender.
        node_id: one NodeId = NODE_ID,
        /// How it ended.
        cause: one Cause = CAUSE,
        /// What the sender can do, if it is a user plane.
        up_function_features: opt UpFunctionFeatures = UP_FUNCTION_FEATURES,
        /// What the sender can do, if it is a control plane.
        cp_function_features: opt CpFunctionFeatures = CP_FUNCTION_FEATURES,
    }
}

group! {
    /// Association Release Request (7.4.4.5).
    AssociationReleaseRequest {
        /// The sender.
        node_id: one NodeId = NODE_ID,
    }
}

group! {
    /// Association Release Response (7.4.4.6).
    AssociationReleaseResponse {
        /// The sender.
        node_id: one NodeId = NODE_ID,
        /// How it ended.
        cause: one Cause = CAUSE,
    }
}

group! {
    /// Version Not Supported Response (7.4.4.7): its header says it all.
    #[derive(Default)]
    VersionNotSupportedResponse {}
}

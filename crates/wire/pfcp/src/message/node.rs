//! Node related messages (TS 29.244 7.4).

use crate::fields::group;
use crate::value::{Cause, CpFunctionFeatures, NodeId, UpFunctionFeatures};

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

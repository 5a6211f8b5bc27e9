//! Requests about many sessions at once (TS 29.244 7.4.6), and reports about none of them (7.4.5).

use crate::fields::group;
use crate::value::{Cause, CpIpAddress, FqCsid, NodeId, RemoteGtpuPeer};

group! {
    /// Session Set Deletion Request (7.4.6.1).
    SessionSetDeletionRequest {
        /// The sender.
        node_id: one NodeId = NODE_ID,
        /// All sessions of any of these sets.
        fq_csids: all FqCsid = FQ_CSID,
    }
}

group! {
    /// Session Set Deletion Response (7.4.6.2).
    SessionSetDeletionResponse {
        /// The sender.
        node_id: one NodeId = NODE_ID,
        /// How it ended.
        cause: one Cause = CAUSE,
        /// The IE to blame.
        offending_ie: opt u16 = OFFENDING_IE,
    }
}

group! {
    /// PFCP Session Change Info (7.4.7.1): which sessions, and where their messages go from now on.
    SessionChangeInfo {
        /// All sessions of any of these sets.
        fq_csids: all FqCsid = FQ_CSID,
        /// All sessions of any of these groups.
        group_ids: all Vec<u8> = GROUP_ID,
        /// All sessions whose CP F-SEID has any of these addresses.
        cp_ip_addresses: all CpIpAddress = CP_IP_ADDRESS,
        /// The control plane that takes them.
        alternative: one CpIpAddress = ALTERNATIVE_SMF_IP_ADDRESS,
    }
}

group! {
    /// Session Set Modification Request (7.4.7.1).
    SessionSetModificationRequest {
        /// The sender.
        node_id: one NodeId = NODE_ID,
        /// What changes.
        changes: some SessionChangeInfo = PFCP_SESSION_CHANGE_INFO,
    }
}

group! {
    /// Session Set Modification Response (7.4.7.2).
    SessionSetModificationResponse {
        /// The sender.
        node_id: one NodeId = NODE_ID,
        /// How it ended.
        cause: one Cause = CAUSE,
        /// The IE to blame.
        offending_ie: opt u16 = OFFENDING_IE,
    }
}

group! {
    /// User Plane Path Failure Report, User Plane Path Recovery Report or Peer UP Restart Report (7.4.5.1.2, 7.4.5.1.3 and
    /// 7.4.5.1.7).
    #[derive(Default)]
    PathReport {
        /// Peers that no longer answer, answer again, or were restarted.
        peers: some RemoteGtpuPeer = REMOTE_GTP_U_PEER,
    }
}

group! {
    /// Node Report Request (7.4.5.1).
    NodeReportRequest {
        /// The sender.
        node_id: one NodeId = NODE_ID,
        /// The bits of [`crate::flags`].
        report_type: one u8 = NODE_REPORT_TYPE,
        /// Paths that failed.
        failed: opt PathReport = USER_PLANE_PATH_FAILURE_REPORT,
        /// Paths that are well again.
        recovered: opt PathReport = USER_PLANE_PATH_RECOVERY_REPORT,
        /// Peers that were restarted.
        restarted: opt PathReport = PEER_UP_RESTART_REPORT,
    }
}

group! {
    /// Node Report Response (7.4.5.2).
    NodeReportResponse {
        /// The sender.
        node_id: one NodeId = NODE_ID,
        /// How it ended.
        cause: one Cause = CAUSE,
        /// The IE to blame.
        offending_ie: opt u16 = OFFENDING_IE,
    }
}

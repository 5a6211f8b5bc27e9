//! Session related messages (TS 29.244 7.5).

use super::load::{LoadControlInformation, OverloadControlInformation};
use crate::fields::group;
use crate::rule::{
    CreateBar, CreateFar, CreatePdr, CreateQer, CreateTrafficEndpoint, CreateUrr, CreatedPdr,
    CreatedTrafficEndpoint, QueryUrr, RemoveBar, RemoveFar, RemovePdr, RemoveQer, RemoveTrafficEndpoint,
    RemoveUrr, UpdateBar, UpdateFar, UpdatePdr, UpdateQer, UpdateTrafficEndpoint, UpdateUrr, UsageReport,
};
use crate::value::{Cause, FSeid, FailedRuleId, FqCsid, NodeId, PdnType};

group! {
    /// Session Establishment Request (7.5.2).
    SessionEstablishmentRequest {
        /// The control plane.
        node_id: one NodeId = NODE_ID,
        /// The control plane's name for the session.
        cp_f_seid: one FSeid = F_SEID,
        /// How to recognise packets.
        create_pdrs: some CreatePdr = CREATE_PDR,
        /// What to do with them.
        create_fars: some CreateFar = CREATE_FAR,
        /// What to count.
        create_urrs: all CreateUrr = CREATE_URR,
        /// How much may pass.
        create_qers: all CreateQer = CREATE_QER,
        /// How to buffer.
        create_bar: opt CreateBar = CREATE_BAR,
        /// What PDIs have in common.
        create_traffic_endpoints: all CreateTrafficEndpoint = CREATE_TRAFFIC_ENDPOINT,
        /// What the user's packets are.
        pdn_type: opt PdnType = PDN_TYPE,
        /// After so many seconds without packets the control plane wants to know.
        user_plane_inactivity_timer: opt u32 = USER_PLANE_INACTIVITY_TIMER,
        /// Who the user is.
        user_id: opt Vec<u8> = USER_ID,
        /// The data network.
        apn_dnn: opt Vec<u8> = APN_DNN,
        /// The slice.
        s_nssai: opt Vec<u8> = S_NSSAI,
        /// The bits of [`crate::flags`].
        pfcpse_req_flags: opt u8 = PFCPSEREQ_FLAGS,
        /// The sets of sessions it belongs to: what they share may fail together (TS 23.007).
        fq_csids: all FqCsid = FQ_CSID,
        /// The group it belongs to.
        group_id: opt Vec<u8> = GROUP_ID,
    }
}

group! {
    /// Session Establishment Response (7.5.3).
    SessionEstablishmentResponse {
        /// The user plane.
        node_id: one NodeId = NODE_ID,
        /// How it ended.
        cause: one Cause = CAUSE,
        /// The IE to blame.
        offending_ie: opt u16 = OFFENDING_IE,
        /// The user plane's name for the session, if there now is one.
        up_f_seid: opt FSeid = F_SEID,
        /// What was chosen for PDRs.
        created_pdrs: all CreatedPdr = CREATED_PDR,
        /// What was chosen for traffic endpoints.
        created_traffic_endpoints: all CreatedTrafficEndpoint = CREATED_TRAFFIC_ENDPOINT,
        /// The rule to blame.
        failed_rule_id: opt FailedRuleId = FAILED_RULE_ID,
        /// How busy the user plane is.
        load: opt LoadControlInformation = LOAD_CONTROL_INFORMATION,
        /// How much less the control plane should send.
        overload: opt OverloadControlInformation = OVERLOAD_CONTROL_INFORMATION,
    }
}

group! {
    /// Session Modification Request (7.5.4).
    #[derive(Default)]
    SessionModificationRequest {
        /// The control plane's new name for the session.
        cp_f_seid: opt FSeid = F_SEID,
        /// The control plane of the same set that takes the session over.
        node_id: opt NodeId = NODE_ID,
        /// PDRs to remove.
        remove_pdrs: all RemovePdr = REMOVE_PDR,
        /// FARs to remove.
        remove_fars: all RemoveFar = REMOVE_FAR,
        /// URRs to remove.
        remove_urrs: all RemoveUrr = REMOVE_URR,
        /// QERs to remove.
        remove_qers: all RemoveQer = REMOVE_QER,
        /// The BAR to remove.
        remove_bar: opt RemoveBar = REMOVE_BAR,
        /// PDRs to create.
        create_pdrs: all CreatePdr = CREATE_PDR,
        /// FARs to create.
        create_fars: all CreateFar = CREATE_FAR,
        /// URRs to create.
        create_urrs: all CreateUrr = CREATE_URR,
        /// QERs to create.
        create_qers: all CreateQer = CREATE_QER,
        /// The BAR to create.
        create_bar: opt CreateBar = CREATE_BAR,
        /// Traffic endpoints to create.
        create_traffic_endpoints: all CreateTrafficEndpoint = CREATE_TRAFFIC_ENDPOINT,
        /// Traffic endpoints to update.
        update_traffic_endpoints: all UpdateTrafficEndpoint = UPDATE_TRAFFIC_ENDPOINT,
        /// Traffic endpoints to remove, with all PDRs that name them.
        remove_traffic_endpoints: all RemoveTrafficEndpoint = REMOVE_TRAFFIC_ENDPOINT,
        /// PDRs to update.
        update_pdrs: all UpdatePdr = UPDATE_PDR,
        /// FARs to update.
        update_fars: all UpdateFar = UPDATE_FAR,
        /// URRs to update.
        update_urrs: all UpdateUrr = UPDATE_URR,
        /// QERs to update.
        update_qers: all UpdateQer = UPDATE_QER,
        /// The BAR to update.
        update_bar: opt UpdateBar = UPDATE_BAR,
        /// URRs to report at once.
        query_urrs: all QueryUrr = QUERY_URR,
        /// Comes back in their reports.
        query_urr_reference: opt u32 = QUERY_URR_REFERENCE,
        /// Another, or 0 for none.
        user_plane_inactivity_timer: set u32 = USER_PLANE_INACTIVITY_TIMER,
        /// The bits of [`crate::flags`].
        pfcpsm_req_flags: opt u8 = PFCPSMREQ_FLAGS,
        /// Replaces the sets of sessions it belongs to, if there are any.
        fq_csids: each FqCsid = FQ_CSID,
        /// Another group.
        group_id: set Vec<u8> = GROUP_ID,
    }
}

group! {
    /// Session Modification Response (7.5.5).
    SessionModificationResponse {
        /// How it ended.
        cause: one Cause = CAUSE,
        /// The IE to blame.
        offending_ie: opt u16 = OFFENDING_IE,
        /// What was chosen for PDRs.
        created_pdrs: all CreatedPdr = CREATED_PDR,
        /// What was chosen for traffic endpoints.
        created_traffic_endpoints: all CreatedTrafficEndpoint = CREATED_TRAFFIC_ENDPOINT,
        /// The rule to blame.
        failed_rule_id: opt FailedRuleId = FAILED_RULE_ID,
        /// How busy the user plane is.
        load: opt LoadControlInformation = LOAD_CONTROL_INFORMATION,
        /// How much less the control plane should send.
        overload: opt OverloadControlInformation = OVERLOAD_CONTROL_INFORMATION,
        /// Of URRs queried or removed.
        usage_reports: all UsageReport = USAGE_REPORT_IN_MODIFICATION,
    }
}

group! {
    /// Session Deletion Request (7.5.6): its header says it all.
    #[derive(Default)]
    SessionDeletionRequest {}
}

group! {
    /// Session Deletion Response (7.5.7).
    SessionDeletionResponse {
        /// How it ended.
        cause: one Cause = CAUSE,
        /// The IE to blame.
        offending_ie: opt u16 = OFFENDING_IE,
        /// How busy the user plane is.
        load: opt LoadControlInformation = LOAD_CONTROL_INFORMATION,
        /// How much less the control plane should send.
        overload: opt OverloadControlInformation = OVERLOAD_CONTROL_INFORMATION,
        /// The last of all URRs.
        usage_reports: all UsageReport = USAGE_REPORT_IN_DELETION,
    }
}

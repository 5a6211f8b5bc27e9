//! Reports a user plane makes (TS 29.244 7.5.8 and 7.5.9).

use crate::fields::group;
use crate::rule::{UpdateBarInReport, UsageReport};
use crate::value::{Cause, CpIpAddress, DownlinkDataServiceInformation, FSeid, FTeid, ReportType};

group! {
    /// Downlink Data Report (7.5.8.2).
    #[derive(Default)]
    DownlinkDataReport {
        /// The rules that saw packets.
        pdr_ids: some u16 = PDR_ID,
        /// What the packets were, in the order of the rules.
        service_information: all DownlinkDataServiceInformation = DOWNLINK_DATA_SERVICE_INFORMATION,
    }
}

group! {
    /// Error Indication Report (7.5.8.4).
    #[derive(Default)]
    ErrorIndicationReport {
        /// The peer's tunnels that are no more.
        remote_f_teids: some FTeid = F_TEID,
    }
}

group! {
    /// Session Report Request (7.5.8.1).
    #[derive(Default)]
    SessionReportRequest {
        /// Which reports follow.
        report_type: one ReportType = REPORT_TYPE,
        /// Packets came for a user that cannot be reached now.
        downlink_data_report: opt DownlinkDataReport = DOWNLINK_DATA_REPORT,
        /// What was used.
        usage_reports: all UsageReport = USAGE_REPORT_IN_REPORT,
        /// A peer sent an Error Indication.
        error_indication_report: opt ErrorIndicationReport = ERROR_INDICATION_REPORT,
        /// Another control plane's name for the session, where this one of its set has none yet.
        old_cp_f_seid: opt FSeid = F_SEID,
        /// The bits of [`crate::flags`].
        pfcpsrreq_flags: opt u8 = PFCPSRREQ_FLAGS,
    }
}

group! {
    /// Session Report Response (7.5.9).
    SessionReportResponse {
        /// How it ended.
        cause: one Cause = CAUSE,
        /// The IE to blame.
        offending_ie: opt u16 = OFFENDING_IE,
        /// Buffer otherwise from now on.
        update_bar: opt UpdateBarInReport = UPDATE_BAR_IN_SESSION_REPORT,
        /// The bits of [`crate::flags`].
        pfcpsrrsp_flags: opt u8 = PFCPSRRSP_FLAGS,
        /// The control plane's new name for the session.
        cp_f_seid: opt FSeid = F_SEID,
        /// Who is to hear of the session instead.
        alternative: opt CpIpAddress = ALTERNATIVE_SMF_IP_ADDRESS,
    }
}

impl SessionReportResponse {
    /// One that says no more than how it ended.
    pub const fn of(cause: Cause) -> Self {
        Self {
            cause,
            offending_ie: None,
            update_bar: None,
            pfcpsrrsp_flags: None,
            cp_f_seid: None,
            alternative: None,
            carried: vec![],
        }
    }
}

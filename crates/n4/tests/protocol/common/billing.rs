//! A control plane that adds up what it is told of usage.

use super::{Lab, SINCE_1900_MS, SMF, smf};
use pfcp::*;
use rules::{Seid, UrrId};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// All reports, by URR and UR-SEQN: one that comes again is the same.
#[derive(Debug, Default)]
pub struct Bill {
    pub reports: BTreeMap<(u32, u32), UsageReport>,
    /// In the order they came.
    pub order: Vec<UsageReport>,
}

impl Bill {
    pub fn add(&mut self, reports: &[UsageReport]) {
        for report in reports {
            let known = self.reports.insert((report.urr_id, report.ur_seqn), report.clone());
            assert!(known.is_none_or(|known| known == *report), "two reports of one number: {report:?}");
            self.order.push(report.clone());
        }
    }

    /// Bytes from and to the user.
    pub fn sums(&self) -> BTreeMap<UrrId, (u64, u64)> {
        let mut sums = BTreeMap::<UrrId, (u64, u64)>::new();
        for report in self.reports.values() {
            let octets = report.volume_measurement.unwrap_or_default().octets;
            let (uplink, downlink) = (octets.uplink.unwrap_or(0), octets.downlink.unwrap_or(0));
            assert_eq!(octets.total.unwrap_or(0), uplink + downlink);
            let sum = sums.entry(UrrId(report.urr_id)).or_default();
            *sum = (sum.0 + uplink, sum.1 + downlink);
        }
        sums
    }
}

pub fn urr(urr_id: u32, triggers: u32) -> CreateUrr {
    CreateUrr {
        urr_id,
        measurement_method: flags::METHOD_VOLUM | flags::METHOD_DURAT,
        reporting_triggers: ReportingTriggers::new(triggers),
        ..CreateUrr::default()
    }
}

pub fn total(octets: u64) -> Option<Volumes> {
    Some(Volumes { total: Some(octets), ..Volumes::default() })
}

/// What the data plane has left of a session's first URR's quota, which is of so many bytes in all.
pub fn left(lab: &Lab, session: Seid) -> i64 {
    let urr = &lab.in_force[&session].rules.urrs[0];
    let counter = &lab.plane.sessions[&session][&urr.id];
    let (uplink, downlink) = counter.quota_from;
    let quota = urr.volume_quota.unwrap().total.unwrap() as i64;
    quota + uplink + downlink - (counter.uplink + counter.downlink) as i64
}

/// A session whose rules all use these URRs.
pub fn metered(cp_seid: u64, urrs: Vec<CreateUrr>) -> SessionEstablishmentRequest {
    let mut request = smf::establishment(cp_seid);
    let ids: Vec<u32> = urrs.iter().map(|urr| urr.urr_id).collect();
    request.create_pdrs.iter_mut().for_each(|pdr| pdr.urr_ids.clone_from(&ids));
    request.create_urrs = urrs;
    request
}

impl Lab {
    pub fn establish(&mut self, request: SessionEstablishmentRequest) -> Seid {
        let sequence = self.trace.len() as u32;
        match self.ask(SMF, &Message::session(0, sequence, request)) {
            Body::SessionEstablishmentResponse(response) => {
                assert_eq!(response.cause, Cause::RequestAccepted, "{:?}", self.notes);
                Seid(response.up_f_seid.unwrap().seid)
            }
            other => panic!("{other:?}"),
        }
    }

    pub fn modify(&mut self, seid: Seid, request: SessionModificationRequest) -> SessionModificationResponse {
        let sequence = self.trace.len() as u32;
        match self.ask(SMF, &Message::session(seid.0, sequence, request)) {
            Body::SessionModificationResponse(response) => response,
            other => panic!("{other:?}"),
        }
    }

    pub fn delete(&mut self, seid: Seid) -> SessionDeletionResponse {
        let sequence = self.trace.len() as u32;
        match self.ask(SMF, &Message::session(seid.0, sequence, SessionDeletionRequest::default())) {
            Body::SessionDeletionResponse(response) => response,
            other => panic!("{other:?}"),
        }
    }

    /// Takes the reports that were sent, in order: to whom, and what.
    pub fn reports(&mut self) -> Vec<(SocketAddr, Message)> {
        let is_report =
            |sent: &mut (SocketAddr, Message)| matches!(sent.1.body, Body::SessionReportRequest(_));
        self.sent.extract_if(.., is_report).collect()
    }

    /// The control plane receives all reports, puts what was used on its bill, and confirms it or not.
    pub fn bill(&mut self, bill: &mut Bill, session: Seid, confirms: bool) {
        loop {
            let reports = self.reports();
            if reports.is_empty() {
                return;
            }
            for (_, message) in reports {
                let Body::SessionReportRequest(request) = &message.body else { continue };
                bill.add(&request.usage_reports);
                if confirms {
                    let response = SessionReportResponse::of(Cause::RequestAccepted);
                    self.tell(SMF, &Message::session(session.0, message.sequence, response));
                }
            }
        }
    }
}

/// A session that uses these URRs.
pub fn lab(urrs: Vec<CreateUrr>) -> (Lab, Seid) {
    let mut lab = Lab::associated();
    let session = lab.establish(metered(77, urrs));
    (lab, session)
}

/// The one report that was sent, confirmed.
pub fn reported(lab: &mut Lab, session: Seid) -> Vec<UsageReport> {
    let mut bill = Bill::default();
    lab.bill(&mut bill, session, true);
    bill.order
}

pub fn seconds(lab: &mut Lab, seconds: u64) {
    lab.pass(Duration::from_secs(seconds));
}

pub fn octets(report: &UsageReport) -> (u64, u64) {
    let octets = report.volume_measurement.unwrap().octets;
    (octets.uplink.unwrap(), octets.downlink.unwrap())
}

pub fn now_s(lab: &Lab) -> u32 {
    (SINCE_1900_MS / 1_000 + lab.now.since_zero().as_secs()) as u32
}

/// The answer to a modification, which is accepted.
pub fn accepted(
    lab: &mut Lab,
    session: Seid,
    request: SessionModificationRequest,
) -> SessionModificationResponse {
    let answer = lab.modify(session, request);
    assert_eq!(answer.cause, Cause::RequestAccepted, "{:?}", lab.notes);
    answer
}

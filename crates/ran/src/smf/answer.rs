//! What the user plane asks, and our answers.

use super::dialect::{MACS_URR, URR};
use super::session::Wish;
use super::{Event, Smf};
use machine::{Seen, Time};
use pfcp::{
    AssociationReleaseResponse, AssociationSetupResponse, AssociationUpdateRequest,
    AssociationUpdateResponse, Body, Cause, CpFunctionFeatures, HeartbeatResponse, Message,
    NodeReportRequest, NodeReportResponse, ReportType, SessionReportRequest, SessionReportResponse,
    UsageReport, flags,
};
use std::net::{IpAddr, SocketAddrV4};

impl Smf {
    /// A request that comes again gets the answer it got (TS 29.244 6.4).
    pub(super) fn request(&mut self, from: SocketAddrV4, message: &Message, now: Time) {
        let key = (from, message.sequence);
        let bytes = match self.answers.begin(key, now) {
            Seen::Answered(bytes) => bytes.to_vec(),
            Seen::InProgress => return,
            Seen::New => {
                let Some(answer) = self.answer(message, now) else { return self.answers.forget(&key) };
                let bytes = pfcp::encode(&answer);
                self.answers.answer(&key, bytes.clone());
                bytes
            }
        };
        self.outputs.push(super::Output::Send(from, bytes));
    }

    fn answer(&mut self, message: &Message, now: Time) -> Option<Message> {
        let body: Body = match &message.body {
            Body::HeartbeatRequest(request) => {
                self.note_recovery(request.recovery_time_stamp, now);
                HeartbeatResponse::new(self.settings.recovery_time_stamp).into()
            }
            Body::AssociationSetupRequest(request) => {
                self.asked_to_associate(request.node_id.clone(), request.recovery_time_stamp, now);
                self.setup_response().into()
            }
            Body::AssociationUpdateRequest(request) => {
                self.asked_to_leave(request, now);
                self.update_response().into()
            }
            // Only a control plane releases (TS 29.244 6.2.8.1).
            Body::AssociationReleaseRequest(_) => self.release_response().into(),
            Body::NodeReportRequest(request) => {
                self.node_reported(request);
                NodeReportResponse::new(self.settings.node_id.clone(), Cause::RequestAccepted).into()
            }
            Body::SessionReportRequest(request) => return Some(self.report(message, request, now)),
            _ => return None,
        };
        Some(Message::node(message.sequence, body))
    }

    /// Sessions stay where they are: who is behind the path may come back.
    fn node_reported(&mut self, request: &NodeReportRequest) {
        for (report, is_up) in [(&request.failed, false), (&request.recovered, true)] {
            for peer in report.iter().flat_map(|report| &report.peers) {
                let address = peer.ipv4.map(IpAddr::V4).or(peer.ipv6.map(IpAddr::V6));
                address.into_iter().for_each(|address| self.event(Event::Path(address, is_up)));
            }
        }
        for peer in request.restarted.iter().flat_map(|report| &report.peers) {
            let address = peer.ipv4.map(IpAddr::V4).or(peer.ipv6.map(IpAddr::V6));
            address.into_iter().for_each(|address| self.event(Event::PeerRestarted(address)));
        }
    }

    fn setup_response(&self) -> AssociationSetupResponse {
        let cause = if self.stopping { Cause::RequestRejected } else { Cause::RequestAccepted };
        AssociationSetupResponse {
            cp_function_features: Some(CpFunctionFeatures::of(self.settings.dialect.phrases().features())),
            ..AssociationSetupResponse::new(
                self.settings.node_id.clone(),
                cause,
                self.settings.recovery_time_stamp,
            )
        }
    }

    /// The user plane asks to be released. Sessions are deleted at once, and the association is released after the last: that is
    /// within any Graceful Release Period (TS 29.244 6.2.7.3).
    fn asked_to_leave(&mut self, request: &AssociationUpdateRequest, now: Time) {
        let is_asked =
            request.association_release_request.is_some_and(|asked| asked & flags::RELEASE_SARR != 0);
        if is_asked && self.phase.is_up() && !self.stopping {
            self.event(Event::ReleaseAsked);
            self.stop(now);
        }
    }

    /// New features change nothing for us.
    fn update_response(&self) -> AssociationUpdateResponse {
        AssociationUpdateResponse::new(self.settings.node_id.clone(), Cause::RequestAccepted)
    }

    fn release_response(&self) -> AssociationReleaseResponse {
        AssociationReleaseResponse::new(self.settings.node_id.clone(), Cause::ServiceNotSupported)
    }

    /// The answer goes by the user plane's SEID, 0 where we know no such session (TS 29.244 7.2.2.4.2).
    fn report(&mut self, message: &Message, request: &SessionReportRequest, now: Time) -> Message {
        let found = message.seid.and_then(|seid| self.sessions.find(seid));
        let known = found.and_then(|(index, session)| Some((index, session.remote?.seid)));
        let cause = known.map_or(Cause::SessionContextNotFound, |_| Cause::RequestAccepted);
        if let Some((index, _)) = known {
            self.reported(index, request, now);
        }
        let answer = SessionReportResponse::of(cause);
        Message::session(known.map_or(0, |(_, seid)| seid), message.sequence, answer)
    }

    fn reported(&mut self, index: usize, request: &SessionReportRequest, now: Time) {
        if request.report_type.contains(ReportType::ERIR) {
            self.event(Event::ErrorIndicationReport(index));
        }
        if request.report_type.contains(ReportType::DLDR) {
            self.event(Event::Paged(index));
            self.wish(index, Wish::Wake, now);
        }
        if request.report_type.contains(ReportType::UPIR) {
            self.event(Event::Inactive(index));
        }
        self.used(index, &request.usage_reports);
    }

    /// What a UE used goes on its account.
    pub(super) fn used(&mut self, index: usize, reports: &[UsageReport]) {
        for report in reports {
            // URRs count their reports each for itself, and others may count the same packets another way.
            match report.urr_id {
                MACS_URR => {
                    let told = report.ethernet_traffic_information.clone();
                    told.into_iter().for_each(|told| self.event(Event::Macs(index, told)));
                }
                URR => self.sessions.account(index).into_iter().for_each(|account| account.add(report)),
                _ => {}
            }
        }
    }
}

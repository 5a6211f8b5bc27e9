//! Start and stop of an application's traffic: what control planes hear of it (TS 29.244 5.4.11 and 7.5.8.3).

use crate::common::billing::*;
use crate::common::{Lab, SMF, config, smf};
use dplink::{Notice, Start, UsageCause, UsageCounts};
use n4::{Config, Input, Predefined, PredefinedRule};
use pfcp::UsageReportTrigger as Trigger;
use pfcp::*;
use rules::{ApplicationId, PdrId, Seid, UrrId};

const START: u32 = 1 << 4;
const STOPT: u32 = 1 << 5;
const STOPS_S: u64 = 60;

const FLOW: &str = "permit out 6 from 203.0.113.80 443 to 10.60.0.1 40000";

/// A session whose PDRs, both counted by URR 1, are of these applications.
fn of(applications: [&str; 2], triggers: u32) -> SessionEstablishmentRequest {
    let mut request = metered(77, vec![urr(1, triggers)]);
    for (pdr, application) in request.create_pdrs.iter_mut().zip(applications) {
        pdr.pdi.application_id = (!application.is_empty()).then(|| application.into());
    }
    request
}

fn start(pdr: Option<u16>) -> Start {
    Start {
        pdr: pdr.map(PdrId),
        ue: smf::UE.into(),
        remote: [203, 0, 113, 80].into(),
        protocol: 6,
        ue_port: Some(40_000),
        remote_port: Some(443),
    }
}

/// The data plane tells of a first packet; what the control plane hears then.
fn starts(lab: &mut Lab, session: Seid, start: Option<Start>) -> UsageReport {
    let bytes = 100 * (1 + lab.trace.len() as u64);
    let counts = UsageCounts {
        urr: UrrId(1),
        uplink_bytes: bytes,
        uplink_packets: bytes / 100,
        first_packet_age_ms: Some(0),
        last_packet_age_ms: Some(0),
        ..UsageCounts::default()
    };
    let cause = UsageCause::StartOfTraffic(start);
    lab.handle(Input::DataPath(&Notice::Usage { session, cause, counts: vec![counts] }));
    seconds(lab, 1);
    reported(lab, session).pop().unwrap()
}

/// The control plane answers in time: else it would be asked less and less often.
fn stops(lab: &mut Lab, session: Seid) -> UsageReport {
    let mut told = (0..2 * STOPS_S).flat_map(|_| {
        seconds(lab, 1);
        reported(lab, session)
    });
    told.next().unwrap()
}

fn text(octets: &[u8]) -> &str {
    std::str::from_utf8(octets).unwrap()
}

fn detected(report: &UsageReport) -> &ApplicationDetectionInformation {
    report.application_detection_information.as_ref().unwrap()
}

/// There is no room for the flow in an answer to a deletion (7.5.7.2): of a start that nobody heard of, what was used is told.
#[test]
fn a_start_that_was_not_heard_of_is_told_without_its_flow_at_the_end() {
    let mut lab = Lab::associated();
    let session = lab.establish(of(["video", ""], START));
    lab.goes_silent();
    seconds(&mut lab, 30);
    let cause = UsageCause::StartOfTraffic(Some(start(Some(1))));
    let counts =
        UsageCounts { urr: UrrId(1), uplink_bytes: 100, uplink_packets: 1, ..UsageCounts::default() };
    lab.handle(Input::DataPath(&Notice::Usage { session, cause, counts: vec![counts] }));
    seconds(&mut lab, 1);
    let gone = lab.delete(session);
    let [begun, rest] = &gone.usage_reports[..] else { panic!("{:?}", gone.usage_reports) };
    assert_eq!(begun.usage_report_trigger, Trigger(Trigger::START));
    assert_eq!(rest.usage_report_trigger, Trigger(Trigger::TERMR));
    for report in [begun, rest] {
        assert_eq!(report.application_detection_information, None);
        assert_eq!((report.ue_ip_address, &report.network_instance), (None, &None));
    }
}

#[test]
fn a_start_tells_the_flow_and_its_stop_the_same_instance() {
    let mut lab = Lab::associated();
    let session = lab.establish(of(["video", "video"], START | STOPT));
    let mut instances = vec![];
    for _ in 0..2 {
        let report = starts(&mut lab, session, Some(start(Some(2))));
        assert_eq!(report.usage_report_trigger, Trigger(Trigger::START));
        let started = detected(&report);
        assert_eq!(text(&started.application_id), "video");
        let [flow] = &started.flow_information[..] else { panic!("one flow") };
        assert_eq!((flow.direction, text(&flow.description)), (FlowInformation::BIDIRECTIONAL, FLOW));
        // Whoever knows the flow can ask for it: it reads as an SDF filter.
        text(&flow.description).parse::<rules::FlowDescription>().unwrap();
        assert_eq!((report.ue_ip_address, &report.network_instance), (None, &None), "the PDI says it");
        let instance = started.application_instance_id.clone().unwrap();
        let report = stops(&mut lab, session);
        assert_eq!(report.usage_report_trigger, Trigger(Trigger::STOPT));
        let stopped = detected(&report);
        assert_eq!(text(&stopped.application_id), "video");
        assert_eq!(stopped.application_instance_id.as_ref(), Some(&instance));
        assert!(stopped.flow_information.is_empty());
        instances.push(instance);
    }
    assert_ne!(instances[0], instances[1]);
}

/// RADI: neither flow nor instance. A control plane that hears of stops alone was told of no instance either.
#[test]
fn what_is_not_wanted_is_not_told() {
    let mut lab = Lab::associated();
    let mut request = of(["video", "video"], START | STOPT);
    request.create_urrs[0].measurement_information = Some(flags::MEASUREMENT_RADI);
    let session = lab.establish(request);
    let bare = |report: &UsageReport| {
        let ApplicationDetectionInformation { application_id, application_instance_id, .. } =
            detected(report);
        assert!(detected(report).flow_information.is_empty());
        assert_eq!((text(application_id), application_instance_id), ("video", &None));
    };
    bare(&starts(&mut lab, session, Some(start(Some(1)))));
    bare(&stops(&mut lab, session));
    let update = UpdateUrr {
        urr_id: 1,
        measurement_information: Some(0),
        reporting_triggers: Some(ReportingTriggers::new(STOPT)),
        ..UpdateUrr::default()
    };
    lab.modify(session, SessionModificationRequest { update_urrs: vec![update], ..Default::default() });
    let counts = UsageCounts {
        urr: UrrId(1),
        uplink_bytes: 1 << 20,
        last_packet_age_ms: Some(0),
        ..Default::default()
    };
    let cause = UsageCause::StartOfTraffic(Some(start(Some(1))));
    lab.handle(Input::DataPath(&Notice::Usage { session, cause, counts: vec![counts] }));
    bare(&stops(&mut lab, session));
}

/// A packet of no application, or of one that is not certain, starts traffic and no application.
#[test]
fn only_what_is_certain_is_told_as_an_application() {
    let told = |applications, start| {
        let mut lab = Lab::associated();
        let session = lab.establish(of(applications, START));
        let report = starts(&mut lab, session, start);
        let information = report.application_detection_information;
        information.map(|information| text(&information.application_id).to_owned())
    };
    let name = |name: &str| Some(name.to_owned());
    assert_eq!(told(["video", "voice"], Some(start(Some(1)))), name("video"));
    assert_eq!(told(["video", "voice"], Some(start(Some(2)))), name("voice"));
    assert_eq!(told(["video", "voice"], Some(start(None))), None);
    assert_eq!(told(["video", "video"], Some(start(None))), name("video"));
    assert_eq!(told(["video", ""], Some(start(Some(2)))), None);
    assert_eq!(told(["", ""], Some(start(Some(1)))), None);
    assert_eq!(told(["video", "video"], None), None);
}

/// Without an address in the PDI, the report says whose traffic it is, and in which network.
#[test]
fn the_user_is_told_where_the_rule_does_not_say() {
    let network_instances = ["access", "internet"].map(str::to_owned).to_vec();
    let mut lab = Lab::associated_with(Config { network_instances, ..config() });
    let mut request = of(["video", "video"], START);
    request.create_pdrs[0].pdi.ue_ip_addresses.clear();
    request.create_pdrs[0].pdi.network_instance = Some(NetworkInstance::text("access"));
    let session = lab.establish(request);
    let report = starts(&mut lab, session, Some(start(Some(1))));
    let address = UeIpAddress { ipv4: Some(smf::UE), ..UeIpAddress::default() };
    assert_eq!(report.ue_ip_address, Some(address));
    assert_eq!(report.network_instance.unwrap().name().as_deref(), Some("internet"));
}

/// The PDR that the data plane names is one that stands for an activated rule.
#[test]
fn an_application_of_a_predefined_rule_is_told() {
    let video =
        PredefinedRule { application: ApplicationId::new("video"), ..PredefinedRule::new("v".to_owned()) };
    let predefined = Predefined::new(vec![video], &[]).unwrap();
    let mut lab = Lab::associated_with(Config { predefined, ..config() });
    let mut request = of(["", ""], START);
    request.create_pdrs.iter_mut().for_each(|pdr| pdr.activate_predefined_rules = vec![b"v".to_vec()]);
    let session = lab.establish(request);
    let pdr = lab.in_force[&session].rules.pdrs.iter().find(|pdr| pdr.pdi.application.is_some()).unwrap().id;
    assert!(pdr.0 > 2, "not one of the control plane's");
    let report = starts(&mut lab, session, Some(start(Some(pdr.0))));
    assert_eq!(text(&detected(&report).application_id), "video");
}

/// What has started is known after a restart, and a data plane that lost its memory starts nothing anew.
#[test]
fn a_start_outlives_both_engines() {
    let mut lab = Lab::associated();
    let session = lab.establish(of(["video", "video"], START | STOPT));
    let started = starts(&mut lab, session, Some(start(Some(2))));
    lab.restart();
    let other = Start { ue_port: Some(1), ..start(Some(2)) };
    let counts =
        UsageCounts { urr: UrrId(1), uplink_bytes: 10, last_packet_age_ms: Some(0), ..Default::default() };
    let cause = UsageCause::StartOfTraffic(Some(other));
    lab.handle(Input::DataPath(&Notice::Usage { session, cause, counts: vec![counts] }));
    seconds(&mut lab, 2);
    assert!(
        reported(&mut lab, session).iter().all(|report| report.usage_report_trigger.0 & Trigger::START == 0)
    );
    let stopped = stops(&mut lab, session);
    assert_eq!(detected(&stopped).application_instance_id, detected(&started).application_instance_id);
}

/// TS 29.244 8.2.1, cause 81: no packet would ever match. PFDs tell of applications, too; and what a PDR has already it may
/// name again.
#[test]
fn an_application_that_nobody_knows_is_refused() {
    let mut lab = Lab::associated();
    let named = |cp_seid, name: &str| {
        let mut request = smf::establishment(cp_seid);
        request.create_pdrs[1].pdi.application_id = Some(name.as_bytes().to_vec());
        request
    };
    let ask = |lab: &mut Lab, request: SessionEstablishmentRequest| match lab
        .ask(SMF, &Message::session(0, request.cp_f_seid.seid as u32, request))
    {
        Body::SessionEstablishmentResponse(response) => response,
        other => panic!("{other:?}"),
    };
    assert_eq!(lab.node.applications(), None);
    lab.node.know_applications(["video"].map(Box::from).into());
    assert_eq!(lab.node.applications(), Some(["video".to_owned()].into()));
    let refused = ask(&mut lab, named(701, "vidoe"));
    let why = (refused.cause, refused.offending_ie, refused.failed_rule_id);
    assert_eq!(why, (Cause::UnknownApplicationId, Some(ie::APPLICATION_ID), Some(FailedRuleId::Pdr(2))));
    let session = Seid(ask(&mut lab, named(702, "video")).up_f_seid.unwrap().seid);
    lab.node.know_applications(std::collections::BTreeSet::new());
    let update = |name: &str| {
        let pdi = Pdi {
            application_id: Some(name.as_bytes().to_vec()),
            ..named(703, name).create_pdrs[1].pdi.clone()
        };
        let update = UpdatePdr { pdr_id: 2, pdi: Some(pdi), ..UpdatePdr::default() };
        SessionModificationRequest { update_pdrs: vec![update], ..Default::default() }
    };
    assert_eq!(lab.modify(session, update("video")).cause, Cause::RequestAccepted);
    assert_eq!(lab.modify(session, update("games")).cause, Cause::UnknownApplicationId);
}

/// A session of whose first traffic a report is on its way when an application starts: that waits to be told.
fn reporting_and_started() -> (Lab, Seid, u32) {
    const VOLTH: u32 = 1 << 1;
    let mut lab = Lab::associated();
    let mut request = of(["video", ""], START | VOLTH);
    request.create_urrs[0].volume_threshold = total(1_000);
    let session = lab.establish(request);
    for (bytes, cause) in
        [(1_000, UsageCause::VolumeThreshold), (1_100, UsageCause::StartOfTraffic(Some(start(Some(1)))))]
    {
        let counts = UsageCounts {
            urr: UrrId(1),
            uplink_bytes: bytes,
            uplink_packets: bytes / 100,
            ..UsageCounts::default()
        };
        lab.handle(Input::DataPath(&Notice::Usage { session, cause, counts: vec![counts] }));
    }
    let reports = lab.reports();
    let [(_, report)] = &reports[..] else { panic!("{reports:?}") };
    (lab, session, report.sequence)
}

fn confirm(lab: &mut Lab, sequence: u32) {
    let response = SessionReportResponse::of(Cause::RequestAccepted);
    lab.tell(SMF, &Message::session(0, sequence, response));
}

fn has_no_flow(report: &UsageReport) {
    assert_eq!(report.application_detection_information, None);
    assert_eq!((report.ue_ip_address, &report.network_instance), (None, &None));
}

/// Nor is there room for what began last (TS 29.244 table 7.5.7.2-2).
#[test]
fn a_start_that_was_not_told_is_told_without_its_flow_at_the_end() {
    let (mut lab, session, sequence) = reporting_and_started();
    lab.tell(SMF, &Message::session(session.0, 900, SessionDeletionRequest::default()));
    confirm(&mut lab, sequence);
    let Body::SessionDeletionResponse(gone) = lab.answer(900).body else { panic!("an answer") };
    let [report] = &gone.usage_reports[..] else { panic!("{:?}", gone.usage_reports) };
    assert_eq!(report.usage_report_trigger, Trigger(Trigger::START | Trigger::TERMR));
    has_no_flow(report);
}

/// The next report, once the one before is confirmed: that it has begun.
fn the_start(lab: &mut Lab, session: Seid, sequence: u32) -> UsageReport {
    confirm(lab, sequence);
    seconds(lab, 1);
    let reports = reported(lab, session);
    let [report] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!(report.usage_report_trigger, Trigger(Trigger::START));
    report.clone()
}

/// Nor in an answer to a modification (TS 29.244 table 7.5.5.2-1): what has begun is told in the next report, with its flow.
#[test]
fn a_start_is_not_told_by_an_answer_to_a_query() {
    let (mut lab, session, sequence) = reporting_and_started();
    let query = SessionModificationRequest {
        query_urrs: vec![QueryUrr { urr_id: 1, ..QueryUrr::default() }],
        ..Default::default()
    };
    let answer = lab.modify(session, query);
    let [report] = &answer.usage_reports[..] else { panic!("{:?}", answer.usage_reports) };
    assert_eq!(report.usage_report_trigger, Trigger(Trigger::IMMER));
    has_no_flow(report);
    let report = &the_start(&mut lab, session, sequence);
    assert_eq!(text(&detected(report).application_id), "video");
}

/// Of a URR that goes there is no next report.
#[test]
fn a_start_of_a_urr_that_goes_is_told_without_its_flow() {
    let (mut lab, session, _) = reporting_and_started();
    let request = SessionModificationRequest {
        remove_urrs: vec![RemoveUrr { urr_id: 1, carried: vec![] }],
        ..Default::default()
    };
    let answer = lab.modify(session, request);
    let [report] = &answer.usage_reports[..] else { panic!("{:?}", answer.usage_reports) };
    assert_eq!(report.usage_report_trigger, Trigger(Trigger::START | Trigger::TERMR));
    has_no_flow(report);
}

/// By whose name there is another one at once, and that tells of starts: it has told none, and nobody else would.
#[test]
fn a_start_of_a_urr_that_is_created_again_is_told_with_its_flow() {
    const VOLTH: u32 = 1 << 1;
    let again = |triggers| SessionModificationRequest {
        remove_urrs: vec![RemoveUrr { urr_id: 1, carried: vec![] }],
        create_urrs: vec![CreateUrr { volume_threshold: total(5_000), ..urr(1, triggers) }],
        ..Default::default()
    };
    let (mut lab, session, sequence) = reporting_and_started();
    let answer = lab.modify(session, again(START | VOLTH));
    let [report] = &answer.usage_reports[..] else { panic!("{:?}", answer.usage_reports) };
    assert_eq!(report.usage_report_trigger, Trigger(Trigger::TERMR));
    has_no_flow(report);
    let report = &the_start(&mut lab, session, sequence);
    let [flow] = &detected(report).flow_information[..] else { panic!("one flow") };
    assert_eq!(text(&flow.description), FLOW);
    // One that does not tell of starts leaves it to the last report of the other.
    let (mut lab, session, _) = reporting_and_started();
    let answer = lab.modify(session, again(VOLTH));
    assert_eq!(answer.usage_reports[0].usage_report_trigger, Trigger(Trigger::START | Trigger::TERMR));
}

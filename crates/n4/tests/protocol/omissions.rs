//! A request with everything in it, and what becomes of it when its IEs stand in the wrong groups or its end is missing; and
//! changes of what is not there. What is left out, emptied, cut or doubled is in `sweeps`.

use crate::common::billing::{metered, urr};
use crate::common::smf::{self, establishment, path_switch};
use crate::common::{Lab, SMF, at};
use pfcp::*;
use pfcp_mutate::{around, parse, places, write};

fn everything() -> SessionEstablishmentRequest {
    let mut request = metered(77, vec![urr(1, 0b111)]);
    request.create_urrs[0].measurement_period = Some(60);
    let copy = DuplicatingParameters {
        destination_interface: DestinationInterface::LiFunction,
        outer_header_creation: Some(smf::tunnel(9)),
        transport_level_marking: Some(0xB8FC),
        carried: vec![],
    };
    request.create_fars[0].apply_action = ApplyAction::new(ApplyAction::FORW | ApplyAction::DUPL);
    request.create_fars[0].duplicating_parameters = vec![copy];
    let rates = Some(Rates { uplink_kbps: 1, downlink_kbps: 2 });
    request.create_qers = vec![CreateQer { mbr: rates, gbr: rates, rqi: Some(1), ..smf::qer(1) }];
    request.create_pdrs.iter_mut().for_each(|pdr| pdr.qer_ids = vec![1]);
    let flow_description = Some("permit out ip from any to assigned".to_owned());
    request.create_pdrs[1].pdi.sdf_filters.push(SdfFilter { flow_description, ..SdfFilter::default() });
    request.create_bar = Some(CreateBar {
        bar_id: 1,
        downlink_data_notification_delay: Some(1),
        suggested_buffering_packets_count: Some(9),
        carried: vec![],
    });
    request.create_fars[1].bar_id = Some(1);
    request
}

type Told = (Cause, Option<u16>, Option<FailedRuleId>);

/// What a body is answered with. Refused, it leaves nothing; accepted, it leaves a session that makes sense.
fn told(body: &[u8]) -> Told {
    let mut datagram = vec![0x21, 50];
    datagram.extend((body.len() as u16 + 12).to_be_bytes());
    datagram.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    datagram.extend(body);
    let mut lab = Lab::associated();
    lab.receive(at(SMF), &datagram);
    let Body::SessionEstablishmentResponse(response) = lab.answer(1).body else { panic!("an answer") };
    if response.cause.is_accepted() {
        assert!(lab.in_force.values().all(|session| session.rules.check() == Ok(())));
    } else {
        let left = (lab.node.sessions(), lab.node.tunnels(), lab.saved.len(), lab.told.len());
        assert_eq!(left, (0, 0, 0, 0), "{response:?}");
    }
    (response.cause, response.offending_ie, response.failed_rule_id)
}

/// Every IE moved into every group: it is not what it was there, and nothing panics or is left behind.
#[test]
fn what_is_in_the_wrong_group_is_refused_or_carried() {
    let message = pfcp::encode(&Message::session(0, 1, everything()));
    let (whole, _) = parse(&message[16..]);
    let groups = || (0..whole.len()).filter(|at| whole[*at].is_group());
    let mut refused = 0;
    for way in &places(&whole) {
        for group in groups().filter(|group| *group != way[0]) {
            let mut changed = whole.clone();
            let (_, list, at) = around(&mut changed, way).unwrap();
            let moved = list[at].clone();
            changed[group].children.push(moved.clone());
            let (_, list, at) = around(&mut changed, way).unwrap();
            list.remove(at);
            let (cause, offending, failed) = told(&write(&changed));
            let named = offending.is_some() || failed.is_some();
            assert!(cause.is_accepted() || named, "{} in {}", ie::Name(moved.ie), ie::Name(whole[group].ie));
            refused += usize::from(!cause.is_accepted());
        }
    }
    assert!(refused > 100, "{refused}");
}

/// A message that says it is longer than it is, or ends before its IEs do.
#[test]
fn a_message_of_another_length_than_it_says_is_refused_or_dropped() {
    let whole = pfcp::encode(&Message::session(0, 1, everything()));
    for cut in 1..whole.len() {
        let mut lab = Lab::associated();
        lab.sent.clear();
        lab.receive(at(SMF), &whole[..cut]);
        let accepted = lab.sent.iter().any(|(_, sent)| match &sent.body {
            Body::SessionEstablishmentResponse(response) => response.cause.is_accepted(),
            _ => false,
        });
        assert!(!accepted, "{cut}");
        assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.told.len()), (0, 0, 0), "{cut}");
        // And as if it had been meant so: what is cut is an IE, or something mandatory is missing.
        if cut >= 16 {
            let mut shorter = whole[..cut].to_vec();
            shorter[2..4].copy_from_slice(&(cut as u16 - 4).to_be_bytes());
            lab.receive(at(SMF), &shorter);
            assert_eq!(lab.in_force.len(), lab.node.sessions());
        }
    }
}

type Change = fn(&mut SessionModificationRequest);

#[test]
fn rules_that_are_not_there_cannot_be_updated() {
    let cases: [(FailedRuleId, Change); 5] = [
        (FailedRuleId::Pdr(9), |r| r.update_pdrs.push(UpdatePdr { pdr_id: 9, ..Default::default() })),
        (FailedRuleId::Far(9), |r| r.update_fars.push(UpdateFar { far_id: 9, ..Default::default() })),
        (FailedRuleId::Qer(9), |r| r.update_qers.push(UpdateQer { qer_id: 9, ..Default::default() })),
        (FailedRuleId::Urr(9), |r| r.update_urrs.push(UpdateUrr { urr_id: 9, ..Default::default() })),
        (FailedRuleId::Bar(9), |r| r.update_bar = Some(UpdateBar { bar_id: 9, ..Default::default() })),
    ];
    let mut lab = Lab::associated();
    let session = lab.establish(everything());
    let before = (lab.desired(), lab.node.tunnels(), lab.saved.clone());
    for (rule, change) in cases {
        let mut request = path_switch(5);
        request.create_pdrs.push(smf::uplink(40, smf::choose(None)));
        change(&mut request);
        let response = lab.modify(session, request);
        assert_eq!(response.cause, Cause::RuleCreationModificationFailure);
        assert_eq!(response.failed_rule_id, Some(rule));
        assert!(response.created_pdrs.is_empty() && response.usage_reports.is_empty());
        assert_eq!((lab.desired(), lab.node.tunnels(), lab.saved.clone()), before);
    }
}

/// In an update an IE without octets takes away what it names, and nothing else.
#[test]
fn what_is_empty_in_an_update_is_taken_away() {
    let mut lab = Lab::associated();
    let session = lab.establish(everything());
    let none = |ie| RawIe { ie, value: vec![] };
    let carried = vec![none(ie::URR_ID), none(ie::QER_ID)];
    let request = SessionModificationRequest {
        update_pdrs: vec![UpdatePdr { pdr_id: 2, carried, ..UpdatePdr::default() }],
        update_urrs: vec![UpdateUrr {
            urr_id: 1,
            // No period, no periodic reports.
            reporting_triggers: Some(ReportingTriggers::new(2)),
            carried: vec![none(ie::MEASUREMENT_PERIOD), none(ie::VOLUME_THRESHOLD)],
            ..UpdateUrr::default()
        }],
        update_fars: vec![UpdateFar { far_id: 2, carried: vec![none(ie::BAR_ID)], ..UpdateFar::default() }],
        remove_bar: Some(RemoveBar { bar_id: 1, carried: vec![] }),
        ..SessionModificationRequest::default()
    };
    assert_eq!(lab.modify(session, request).cause, Cause::RequestAccepted);
    let rules = &lab.in_force[&session].rules;
    assert!(rules.pdrs[1].urrs.is_empty() && rules.pdrs[1].qers.is_empty());
    assert!(!rules.pdrs[0].urrs.is_empty() && !rules.pdrs[0].qers.is_empty());
    assert_eq!((rules.urrs[0].measurement_period_s, rules.fars[1].bar, rules.bars.len()), (None, None, 0));
    assert_eq!(lab.node.sessions(), 1);
    // The whole of it again, by another name of the owner's.
    assert_ne!(lab.establish(SessionEstablishmentRequest { ..establishment(78) }), session);
}

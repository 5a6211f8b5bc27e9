//! Answers that have no room for all they tell of usage.

use crate::common::billing::*;
use crate::common::{Lab, OTHER, SMF, US, at, config, smf};
use n4::{Config, Limits};
use pfcp::*;
use rules::{Seid, UrrId};

/// What a datagram over IPv4 holds.
const DATAGRAM: usize = 65_507;
const REFERENCE: u32 = 7;
/// As many as a session may have.
const URRS: u32 = 250;

/// Of a control plane with these features (TS 29.244 8.2.58), and a session of as many URRs as one may have.
fn lab(features: &[CpFeature]) -> (Lab, Seid) {
    let mut lab = associated(config(), features);
    let session = lab.establish(of_many_urrs(77));
    lab.traffic(session, (10, 20), true);
    (lab, session)
}

fn associated(config: Config, features: &[CpFeature]) -> Lab {
    let mut lab = Lab::new(config);
    let mut setup = smf::setup(SMF, 1);
    setup.cp_function_features = Some(CpFunctionFeatures::of(features));
    lab.ask(SMF, &Message::node(0xFFF0, setup));
    lab
}

fn of_many_urrs(cp_seid: u64) -> SessionEstablishmentRequest {
    let rule = |id| CreateUrr { measurement_information: Some(flags::MEASUREMENT_MNOP), ..urr(id, 0) };
    let mut request = metered(cp_seid, vec![]);
    request.create_urrs = (1..=URRS).map(rule).collect();
    for (pdr, ids) in request.create_pdrs.iter_mut().zip([[1, 2], [2, URRS]]) {
        pdr.urr_ids = ids.to_vec();
    }
    request
}

fn additional(carried: &[RawIe]) -> usize {
    let is_it = |other: &&RawIe| other.ie == ie::ADDITIONAL_USAGE_REPORTS_INFORMATION;
    let value = carried.iter().find(is_it).map(|it| u16::from_be_bytes([it.value[0], it.value[1]]));
    value.unwrap_or(0).into()
}

fn largest_sent(lab: &Lab, from: usize) -> usize {
    let sent = lab.trace[from..].iter().filter(|(from, ..)| *from == at(US));
    sent.map(|(_, _, octets)| octets.len()).max().unwrap()
}

/// Everything, each once, as it was counted.
fn is_all(lab: &Lab, bill: &Bill) {
    let mut urrs: Vec<u32> = bill.order.iter().map(|report| report.urr_id).collect();
    urrs.sort_unstable();
    assert_eq!(urrs, (1..=URRS).collect::<Vec<u32>>());
    let counted = lab.plane.counted.clone();
    let sums = bill.sums();
    assert!(
        counted.iter().all(|(urr, sum)| sums.get(urr) == Some(sum))
            && sums[&UrrId(URRS)] == counted[&UrrId(URRS)]
    );
}

fn query_all() -> SessionModificationRequest {
    SessionModificationRequest {
        pfcpsm_req_flags: Some(flags::PFCPSM_QAURR),
        query_urr_reference: Some(REFERENCE),
        ..SessionModificationRequest::default()
    }
}

/// One at a time, over a restart, and nothing newer before.
#[test]
fn what_an_answer_has_no_room_for_comes_in_requests_behind_it() {
    let (mut lab, session) = lab(&[]);
    let before = lab.trace.len();
    let answer = lab.modify(session, query_all());
    let mut bill = Bill::default();
    bill.add(&answer.usage_reports);
    assert!(
        answer.usage_reports.len() < 200
            && additional(&answer.carried) == URRS as usize - answer.usage_reports.len()
    );
    lab.reports();
    lab.restart();
    lab.pass(std::time::Duration::from_secs(1));
    let mut requests = 0;
    loop {
        let reports = lab.reports();
        let [(_, message)] = &reports[..] else { break };
        let Body::SessionReportRequest(request) = &message.body else { panic!() };
        bill.add(&request.usage_reports);
        let response = SessionReportResponse::of(Cause::RequestAccepted);
        lab.tell(SMF, &Message::session(session.0, message.sequence, response));
        requests += 1;
    }
    is_all(&lab, &bill);
    assert!(bill.order.iter().all(|report| report.query_urr_reference == Some(REFERENCE)));
    assert!(requests >= 2 && largest_sent(&lab, before) < 9_000, "{requests}");
    assert_eq!(lab.saved[&session].usage.further, Vec::<Vec<u8>>::new());
}

/// Who takes nothing of it is not given ever more.
#[test]
fn a_session_with_too_much_to_tell_is_not_changed() {
    let (mut lab, session) = lab(&[]);
    let causes: Vec<Cause> = (0..40).map(|_| lab.modify(session, query_all()).cause).collect();
    assert_eq!((causes[0], causes[39]), (Cause::RequestAccepted, Cause::PfcpEntityInCongestion));
    let waiting = lab.saved[&session].usage.further.len();
    assert!((64..70).contains(&waiting), "{waiting}");
}

#[test]
fn the_answer_to_a_deletion_is_no_longer_than_a_datagram_and_the_rest_follows() {
    let mut here = vec![];
    for features in [&[][..], &[CpFeature::Ardr]] {
        let (mut lab, session) = lab(features);
        let before = lab.trace.len();
        let answer = lab.delete(session);
        let mut bill = Bill::default();
        bill.add(&answer.usage_reports);
        here.push(answer.usage_reports.len());
        for (to, message) in lab.reports() {
            let Body::SessionReportRequest(request) = message.body else { panic!() };
            assert_eq!((to, message.seid), (at(SMF), Some(77)));
            bill.add(&request.usage_reports);
        }
        assert_eq!(additional(&answer.carried), URRS as usize - answer.usage_reports.len());
        is_all(&lab, &bill);
        assert!(largest_sent(&lab, before) <= DATAGRAM);
    }
    // Only who says that it expects more (ARDR) gets less than a datagram holds.
    assert!(here[0] == URRS as usize && here[1] < 100, "{here:?}");
}

/// Of a session that we end there is no answer, and what it has yet to tell is more than a datagram holds.
#[test]
fn what_is_told_of_a_session_that_we_end_is_no_longer_than_a_packet_each() {
    let (mut lab, session) = lab(&[]);
    let mut bill = Bill::default();
    for _ in 0..4 {
        bill.add(&lab.modify(session, query_all()).usage_reports);
        lab.traffic(session, (10, 20), true);
    }
    let before = lab.trace.len();
    let outputs = lab.node.leave_one(&SMF.to_string(), std::time::Duration::ZERO, lab.time());
    lab.carry_out_all(outputs);
    lab.pass(std::time::Duration::from_secs(1));
    assert_eq!(lab.node.sessions(), 0);
    let all: usize = lab.trace[before..].iter().map(|(_, _, octets)| octets.len()).sum();
    assert!(all > DATAGRAM, "{all}");
    assert!(largest_sent(&lab, before) < 9_000, "{}", largest_sent(&lab, before));
    lab.bill(&mut bill, session, false);
    let (sums, counted) = (bill.sums(), lab.plane.counted.clone());
    assert!(counted.iter().all(|(urr, sum)| sums.get(urr) == Some(sum)), "{sums:?} {counted:?}");
}

/// What is told of sessions that are gone is in the share of who had them: others are told as before.
#[test]
fn who_takes_nothing_that_follows_its_deletions_leaves_others_their_places() {
    // Beside these there are 64 for what is not about sessions.
    let limits = Limits { requests: 8, peers: 2, ..Limits::default() };
    let mut lab = associated(Config { limits, ..config() }, &[CpFeature::Ardr]);
    lab.associate(OTHER, 1);
    let of_other = SessionEstablishmentRequest {
        node_id: NodeId::Ipv4(OTHER),
        cp_f_seid: FSeid::new(1, OTHER.into()),
        ..metered(1, vec![CreateUrr { volume_threshold: total(1_000), ..urr(1, 1 << 1) }])
    };
    let answer = lab.ask(OTHER, &Message::session(0, 1, of_other));
    let Body::SessionEstablishmentResponse(response) = answer else { panic!("{answer:?}") };
    let other = Seid(response.up_f_seid.unwrap().seid);
    for cp_seid in 1..=30 {
        let mut request = of_many_urrs(cp_seid);
        request.create_pdrs.truncate(1);
        let session = lab.establish(request);
        lab.delete(session);
    }
    assert!(lab.reports().len() <= 8);
    lab.traffic(other, (400, 600), false);
    assert!(matches!(lab.reports()[..], [(to, _)] if to == at(OTHER)));
}

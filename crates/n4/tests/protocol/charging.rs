//! What of sessions' usage goes into charging data records.

use crate::common::billing::*;
use crate::common::{Lab, SMF, config, smf};
use ::charging::{Cause as Closed, Cdr, Conditions, Key, OWN_METERS, Policy, Rating};
use n4::{Charging, Config, Predefined, PredefinedRule};
use pfcp::*;
use proptest::prelude::*;
use rules::{ApplicationId, BitRates, Seid, UrrId};
use std::collections::BTreeMap;

const HOUR_S: u64 = 3_600;

const fn key(rating_group: u32) -> Key {
    Key { rating_group, service_id: None }
}

/// Everything is charged under 1; URRs 10 to 19 under 10; the rule "video" under 20, service 7.
fn charging(policy: Policy) -> Config {
    let video_key = Key { rating_group: 20, service_id: Some(7) };
    let video = PredefinedRule { key: Some(video_key), ..PredefinedRule::new("video".to_owned()) };
    let rating = Rating::new(Some(key(1)), vec![(10..=19, key(10))], [video_key]).unwrap();
    let predefined = Predefined::new(vec![video], &[]).unwrap();
    Config { predefined, charging: Some(Charging { rating, policy }), ..config() }
}

fn lab_of(policy: Policy, urrs: Vec<CreateUrr>) -> (Lab, Seid) {
    let mut lab = Lab::associated_with(charging(policy));
    let session = lab.establish(metered(77, urrs));
    (lab, session)
}

fn volumes(cdr: &Cdr) -> Vec<(u32, u64, u64)> {
    let told = |it: &::charging::Container| (it.key.rating_group, it.uplink_bytes, it.downlink_bytes);
    cdr.containers.iter().map(told).collect()
}

#[test]
fn a_session_without_urrs_is_charged_by_a_meter_of_our_own() {
    let (mut lab, session) = lab_of(Policy::default(), vec![]);
    let rules = &lab.in_force[&session].rules;
    let own = rules.urrs[0].id;
    assert!(own.0 >= OWN_METERS && rules.pdrs.iter().all(|pdr| pdr.urrs == [own].into()));
    lab.traffic(session, (100, 900), true);
    assert!(lab.delete(session).usage_reports.is_empty(), "nobody asked for reports");
    let [cdr] = &lab.cdrs[..] else { panic!("{:?}", lab.cdrs) };
    assert_eq!((cdr.cause, volumes(cdr)), (Closed::NormalRelease, vec![(1, 100, 900)]));
    assert_eq!((cdr.session.seid, cdr.session.cp_seid), (session.0, 77));
    assert!(lab.saved.is_empty());
}

#[test]
fn a_urr_that_is_mapped_is_charged_and_told_alike() {
    let (mut lab, session) = lab_of(Policy::default(), vec![urr(10, 0)]);
    assert_eq!(lab.in_force[&session].rules.urrs.len(), 1, "no meter of our own");
    lab.traffic(session, (5, 6), false);
    let told = lab.delete(session).usage_reports;
    assert_eq!((octets(&told[0]), volumes(&lab.cdrs[0])), ((5, 6), vec![(10, 5, 6)]));
}

#[test]
fn a_urr_that_is_not_mapped_is_told_and_the_default_is_charged() {
    let (mut lab, session) = lab_of(Policy::default(), vec![urr(2, 0)]);
    lab.traffic(session, (5, 6), false);
    let told = lab.delete(session).usage_reports;
    assert_eq!((told.len(), octets(&told[0]), volumes(&lab.cdrs[0])), (1, (5, 6), vec![(1, 5, 6)]));
}

#[test]
fn predefined_rules_bring_their_rating_groups() {
    let mut lab = Lab::associated_with(charging(Policy::default()));
    let mut request = smf::establishment(78);
    request.create_pdrs[1].activate_predefined_rules = vec![b"video".to_vec()];
    let session = lab.establish(request);
    let meters: Vec<UrrId> = lab.in_force[&session].rules.urrs.iter().map(|urr| urr.id).collect();
    assert_eq!(meters.len(), 2);
    lab.traffic(session, (1, 2), false);
    lab.delete(session);
    let cdr = &lab.cdrs[0];
    assert_eq!(volumes(cdr), [(1, 1, 2), (20, 1, 2)]);
    assert_eq!(cdr.containers[1].key.service_id, Some(7));
}

/// Flows of the application go by the rule's PDR, all others by the one that activates it; each has a meter of its own.
#[test]
fn an_application_is_charged_under_the_key_of_its_rule() {
    let mut config = charging(Policy::default());
    let key = Key { rating_group: 20, service_id: Some(7) };
    let application = ApplicationId::new("video");
    let video = PredefinedRule { key: Some(key), application, ..PredefinedRule::new("video".to_owned()) };
    config.predefined = Predefined::new(vec![video], &[]).unwrap();
    let mut lab = Lab::associated_with(config);
    let mut request = smf::establishment(79);
    request.create_pdrs[1].activate_predefined_rules = vec![b"video".to_vec()];
    let session = lab.establish(request);
    let pdrs = &lab.in_force[&session].rules.pdrs;
    let (of_video, others): (Vec<_>, Vec<_>) = pdrs.iter().partition(|pdr| pdr.pdi.application.is_some());
    assert_eq!((of_video.len(), of_video[0].urrs.len(), others.is_empty()), (1, 1, false));
    assert!(others.iter().all(|pdr| pdr.urrs.len() == 1 && pdr.urrs != of_video[0].urrs), "{others:?}");
}

/// As [`charging`], and content rules' rating group 30 and its service 7 are charged under.
fn by_content() -> Config {
    let content = [key(30), Key { rating_group: 30, service_id: Some(7) }];
    let rating = Rating::new(Some(key(1)), vec![(10..=19, key(10))], content).unwrap();
    let charging = Charging { rating: rating.with_content(content), policy: Policy::default() };
    Config { charging: Some(charging), ..config() }
}

/// In the order in which they are tried: what it is a part of by its tunnel and direction, its application, its meters.
fn tried(lab: &Lab, session: Seid) -> Vec<(rules::Interface, Option<ApplicationId>, Vec<UrrId>)> {
    let mut pdrs = lab.in_force[&session].rules.pdrs.clone();
    pdrs.sort_by_key(|pdr| (pdr.precedence, pdr.id));
    pdrs.into_iter().map(|pdr| (pdr.pdi.source_interface, pdr.pdi.application, pdr.urrs.to_vec())).collect()
}

#[test]
fn what_content_rules_say_the_rating_group_of_is_charged_under_it() {
    let mut lab = Lab::associated_with(by_content());
    let session = lab.establish(metered(80, vec![]));
    let rating = lab.config.charging.clone().unwrap().rating;
    let part = |service_id| {
        let key = Key { rating_group: 30, service_id };
        (Some(ApplicationId::of_charging(30, service_id)), vec![UrrId(rating.own_meter(key).unwrap())])
    };
    let rest = (None, vec![UrrId(rating.own_meter(key(1)).unwrap())]);
    let tried = tried(&lab, session);
    assert_eq!(tried.len(), 6);
    for pdrs in tried.chunks(3) {
        let [first, second, third] = pdrs else { panic!("{pdrs:?}") };
        assert!([first.0, second.0].iter().all(|interface| *interface == third.0), "{pdrs:?}");
        let mut parts = [first, second].map(|(_, application, urrs)| (application.clone(), urrs.clone()));
        parts.sort();
        let mut expected = [part(None), part(Some(7))];
        expected.sort();
        assert_eq!((parts, (third.1.clone(), third.2.clone())), (expected, rest.clone()));
    }
    lab.traffic(session, (100, 900), false);
    lab.delete(session);
    let told = lab.cdrs[0].containers.iter().map(|it| (it.key, it.uplink_bytes, it.downlink_bytes));
    let keys = [key(1), key(30), Key { rating_group: 30, service_id: Some(7) }];
    assert_eq!(told.collect::<Vec<_>>(), keys.map(|key| (key, 100, 900)));
}

#[test]
fn what_is_mapped_or_predefined_or_of_an_application_is_not_split() {
    let mut lab = Lab::associated_with(by_content());
    let mut request = metered(81, vec![urr(10, 0)]);
    let session = lab.establish(request.clone());
    assert_eq!(lab.in_force[&session].rules.pdrs.len(), request.create_pdrs.len());
    request = metered(82, vec![]);
    request.create_pdrs.iter_mut().for_each(|pdr| pdr.pdi.application_id = Some(b"video".to_vec()));
    let session = lab.establish(request.clone());
    let before = lab.in_force[&session].rules.pdrs.len();
    assert_eq!(before, request.create_pdrs.len());
}

/// A packet kept for part of a PDR is told of as the PDR's.
#[test]
fn control_planes_hear_of_their_own_pdrs_alone() {
    let mut lab = Lab::associated_with(by_content());
    let mut request = metered(77, vec![]);
    request.create_fars[1].apply_action = ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP);
    let own: Vec<u16> = request.create_pdrs.iter().map(|pdr| pdr.pdr_id).collect();
    let session = lab.establish(request);
    let pdrs = lab.in_force[&session].rules.pdrs.clone();
    let part = pdrs
        .iter()
        .find(|pdr| pdr.pdi.application.is_some() && pdr.pdi.source_interface == rules::Interface::Core);
    let pdr = part.unwrap().id;
    assert!(!own.contains(&pdr.0));
    let event = dplink::Event::DownlinkData { session, pdr, qfi: None, traffic_class: 0 };
    lab.handle(n4::Input::DataPath(&dplink::Notice::Event(event)));
    let reports = lab.reports();
    let [(_, Message { body: Body::SessionReportRequest(request), .. })] = &reports[..] else {
        panic!("{reports:?}")
    };
    let told = &request.downlink_data_report.as_ref().unwrap().pdr_ids;
    assert!(told.len() == 1 && own.contains(&told[0]), "{told:?}");
}

#[test]
fn control_planes_may_not_use_ids_of_ours() {
    let mut lab = Lab::associated_with(charging(Policy::default()));
    match lab.ask(SMF, &Message::session(0, 5, metered(77, vec![urr(OWN_METERS + 3, 0)]))) {
        Body::SessionEstablishmentResponse(response) => {
            assert_eq!(response.failed_rule_id, Some(FailedRuleId::Urr(OWN_METERS + 3)));
        }
        other => panic!("{other:?}"),
    }
}

/// The data plane tells of parts of a record's volume limit; that is nobody else's concern.
#[test]
fn control_planes_hear_nothing_of_thresholds_of_ours() {
    let (mut lab, session) =
        lab_of(Policy { volume_limit_bytes: 8_000, ..Policy::default() }, vec![urr(10, 0)]);
    (0..9).for_each(|_| lab.traffic(session, (600, 400), false));
    seconds(&mut lab, 60);
    assert!(lab.reports().is_empty());
    assert_eq!(lab.cdrs[0].cause, Closed::VolumeLimit);
    // One that the control plane has set is left alone.
    let mut own = urr(11, 1 << 1);
    own.volume_threshold = total(500);
    let session = lab.establish(metered(78, vec![own]));
    let threshold = lab.in_force[&session].rules.urrs[0].volume_threshold;
    assert_eq!(threshold.and_then(|threshold| threshold.total), Some(500));
}

#[test]
fn records_tell_whose_they_are() {
    let imsi = vec![1, 8, 0x00, 0x01, 0x01, 0x32, 0x54, 0x76, 0x98, 0xF0];
    let supi = [&[16, 20][..], b"imsi-001010234567890"].concat();
    for user_id in [imsi, supi] {
        let mut lab = Lab::associated_with(charging(Policy::default()));
        let mut request = metered(77, vec![]);
        request.user_id = Some(user_id);
        request.apn_dnn = Some(b"\x03ims".to_vec());
        request.s_nssai = Some(vec![1, 0, 0, 9]);
        let session = lab.establish(request);
        lab.delete(session);
        let user = &lab.cdrs[0].session.user;
        assert_eq!((user.imsi.as_deref(), user.dnn.as_deref()), (Some("001010234567890"), Some("ims")));
        assert_eq!(user.slice.unwrap().sd, Some([0, 0, 9]));
        assert!(user.ipv4.is_some());
    }
}

#[test]
fn records_tell_all_of_a_delegated_prefix() {
    for (length, told) in [(Some(56), "2001:db8:7:100::/56"), (None, "2001:db8:7:105::/64")] {
        let mut lab = Lab::associated_with(charging(Policy::default()));
        let mut request = metered(77, vec![]);
        request.create_pdrs[1].pdi.ue_ip_addresses = vec![UeIpAddress {
            ipv6: Some("2001:db8:7:105::1".parse().unwrap()),
            ipv6_prefix_length: length,
            is_destination: true,
            ..UeIpAddress::default()
        }];
        let session = lab.establish(request);
        lab.delete(session);
        let (address, length) = lab.cdrs[0].session.user.ipv6.unwrap();
        assert_eq!(format!("{address}/{length}"), told);
    }
}

#[test]
fn records_are_closed_on_time_with_the_counts_of_then() {
    let (mut lab, session) = lab_of(Policy::default(), vec![]);
    lab.traffic(session, (7, 0), true);
    seconds(&mut lab, HOUR_S - 1);
    assert!(lab.cdrs.is_empty());
    seconds(&mut lab, 1);
    assert_eq!((lab.cdrs[0].cause, volumes(&lab.cdrs[0])), (Closed::TimeLimit, vec![(1, 7, 0)]));
    seconds(&mut lab, 3 * HOUR_S);
    assert_eq!(lab.cdrs.len(), 1, "nothing was used");
    lab.traffic(session, (8, 0), true);
    lab.delete(session);
    assert_eq!((lab.cdrs[1].sequence, volumes(&lab.cdrs[1])), (2, vec![(1, 8, 0)]));
    assert_eq!(lab.cdrs[1].opened_ms, lab.cdrs[0].closed_ms);
}

#[test]
fn tariffs_split_what_was_used() {
    // The lab's day begins at some second of it: the next full minute of the next hour is a tariff time.
    let minute = |lab: &Lab| (now_s(lab) % 86_400 / 60 + 30) % 1_440;
    let tariff_minutes = vec![minute(&Lab::new(config()))];
    let (mut lab, session) = lab_of(Policy { tariff_minutes, ..Policy::default() }, vec![]);
    lab.traffic(session, (1, 0), true);
    seconds(&mut lab, 1_801);
    lab.traffic(session, (2, 0), true);
    lab.delete(session);
    assert_eq!(volumes(&lab.cdrs[0]), [(1, 1, 0), (1, 2, 0)]);
    assert_eq!(lab.cdrs[0].containers[0].conditions, Conditions::TARIFF_SWITCH);
}

#[test]
fn records_are_closed_when_they_are_full() {
    let (mut lab, session) = lab_of(Policy { volume_limit_bytes: 8_000, ..Policy::default() }, vec![]);
    (0..9).for_each(|_| lab.traffic(session, (600, 400), false));
    assert_eq!((lab.cdrs[0].cause, volumes(&lab.cdrs[0])), (Closed::VolumeLimit, vec![(1, 4_800, 3_200)]));
    lab.delete(session);
    assert_eq!(volumes(&lab.cdrs[1]), [(1, 600, 400)]);
}

/// The user's tunnel leads to a node, or the user sleeps.
fn lead(lab: &mut Lab, session: Seid, to: Option<[u8; 4]>) {
    let mut request = smf::path_switch(9);
    let update = &mut request.update_fars[0];
    match to {
        Some(to) => {
            let parameters = update.update_forwarding_parameters.as_mut().unwrap();
            let (teid, address) = (9, to.into());
            parameters.outer_header_creation = Some(OuterHeaderCreation::GtpuIpv4 { teid, address });
        }
        None => {
            let apply_action = Some(ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP));
            *update = UpdateFar { apply_action, ..UpdateFar::new(2) };
        }
    }
    assert_eq!(lab.modify(session, request).cause, Cause::RequestAccepted);
}

#[test]
fn a_handover_splits_what_was_used_before_and_after_it() {
    let (mut lab, session) = lab_of(Policy::default(), vec![]);
    let nodes = [[10, 30, 0, 98], [10, 30, 0, 99], [10, 30, 0, 98]];
    for (bytes, node) in (1..).zip(nodes) {
        lead(&mut lab, session, Some(node));
        lab.traffic(session, (bytes, 0), true);
    }
    // Asleep, and awake again elsewhere.
    lead(&mut lab, session, None);
    lead(&mut lab, session, Some([10, 30, 0, 97]));
    lead(&mut lab, session, None);
    lab.delete(session);
    let cdr = &lab.cdrs[0];
    assert_eq!(volumes(cdr), [(1, 1, 0), (1, 2, 0), (1, 3, 0)]);
    let told = cdr.containers.iter().map(|it| (it.conditions, it.serving_nodes.clone()));
    let moved = nodes.map(|node| (Conditions::SERVING_NODE_CHANGE, vec![node.into()]));
    assert_eq!(told.collect::<Vec<_>>(), moved);
    let all = [[10, 30, 0, 98], [10, 30, 0, 99], [10, 30, 0, 97]].map(std::net::IpAddr::from);
    assert_eq!(cdr.session.serving_nodes, all);
}

/// A rule that is switched on brings a rate; a PDR goes by another QER; and what changes no rate splits nothing.
#[test]
fn what_changes_the_qos_splits_what_was_used_before_and_after_it() {
    let rates = BitRates { uplink_kbps: 100, downlink_kbps: 100 };
    let slow = PredefinedRule { mbr: Some(rates), ..PredefinedRule::new("slow".to_owned()) };
    let plain = PredefinedRule::new("plain".to_owned());
    let predefined = Predefined::new(vec![slow, plain], &[]).unwrap();
    let config = Config { predefined, ..charging(Policy::default()) };
    let mut lab = Lab::associated_with(config);
    let mut request = smf::establishment(78);
    request.create_qers.push(CreateQer { qer_id: 9, ..smf::qer(9) });
    let session = lab.establish(request);
    let activate =
        |name: &[u8]| UpdatePdr { activate_predefined_rules: vec![name.to_vec()], ..UpdatePdr::new(2) };
    let other_qer = UpdatePdr { qer_ids: vec![9], ..UpdatePdr::new(1) };
    for (packets, update) in [(1, activate(b"plain")), (2, activate(b"slow")), (4, other_qer)] {
        lab.traffic(session, (packets, 0), true);
        let request = SessionModificationRequest { update_pdrs: vec![update], ..Default::default() };
        assert_eq!(lab.modify(session, request).cause, Cause::RequestAccepted);
    }
    lab.traffic(session, (8, 0), true);
    lab.delete(session);
    assert_eq!(volumes(&lab.cdrs[0]), [(1, 3, 0), (1, 4, 0), (1, 8, 0)]);
    let conditions: Vec<Conditions> = lab.cdrs[0].containers.iter().map(|it| it.conditions).collect();
    assert_eq!(conditions, [Conditions::QOS_CHANGE, Conditions::QOS_CHANGE, Conditions::SESSION_END]);
}

#[test]
fn a_urr_that_is_removed_is_charged_to_its_end() {
    let (mut lab, session) = lab_of(Policy::default(), vec![urr(10, 0)]);
    lab.traffic(session, (3, 0), true);
    let update = |pdr_id| UpdatePdr {
        pdr_id,
        carried: vec![RawIe { ie: ie::URR_ID, value: vec![] }],
        ..UpdatePdr::default()
    };
    let request = SessionModificationRequest {
        remove_urrs: vec![RemoveUrr { urr_id: 10, carried: vec![] }],
        update_pdrs: vec![update(1), update(2)],
        ..SessionModificationRequest::default()
    };
    assert_eq!(lab.modify(session, request).cause, Cause::RequestAccepted);
    lab.traffic(session, (4, 0), true);
    lab.delete(session);
    assert_eq!(volumes(&lab.cdrs[0]), [(10, 3, 0), (1, 4, 0)]);
    assert_eq!(lab.cdrs[0].containers[0].conditions, Conditions::SERVICE_STOP);
}

#[test]
fn a_session_whose_owner_restarts_is_charged_to_its_end() {
    let (mut lab, session) = lab_of(Policy::default(), vec![]);
    lab.traffic(session, (3, 0), true);
    lab.associate(SMF, 2);
    assert_eq!((lab.cdrs[0].cause, volumes(&lab.cdrs[0])), (Closed::AbnormalRelease, vec![(1, 3, 0)]));
    assert!(lab.saved.is_empty() && lab.over.is_empty());
    assert!(!lab.in_force.contains_key(&session));
}

#[test]
fn nothing_is_charged_unless_the_operator_wants_it() {
    let (mut lab, session) = crate::common::billing::lab(vec![urr(10, 0)]);
    lab.traffic(session, (3, 0), true);
    lab.delete(session);
    assert!(lab.cdrs.is_empty());
}

#[test]
fn the_default_may_be_not_to_charge() {
    let rating = Rating::new(None, vec![(10..=19, key(10))], []).unwrap();
    let charging = Some(Charging { rating, policy: Policy::default() });
    let mut lab = Lab::associated_with(Config { charging, ..config() });
    let session = lab.establish(metered(77, vec![urr(2, 0)]));
    assert_eq!(lab.in_force[&session].rules.urrs.len(), 1);
    lab.traffic(session, (3, 0), true);
    lab.delete(session);
    assert_eq!(volumes(&lab.cdrs[0]), []);
}

/// A session that was dropped is charged by the next process, if this one dies before the data plane has spoken.
#[test]
fn a_session_that_was_leaving_when_the_process_died_is_charged() {
    let (mut lab, session) = lab_of(Policy { volume_limit_bytes: 8_000, ..Policy::default() }, vec![]);
    lab.traffic(session, (1_000, 0), false);
    lab.obedience = crate::common::Obedience::Waits;
    lab.tell(SMF, &Message::node(900, smf::setup(SMF, 2)));
    assert!(lab.cdrs.is_empty() && lab.over.contains_key(&session));
    lab.orders.clear();
    lab.obedience = crate::common::Obedience::Obeys;
    lab.restart();
    assert_eq!((lab.cdrs[0].cause, volumes(&lab.cdrs[0])), (Closed::AbnormalRelease, vec![(1, 1_000, 0)]));
    assert!(lab.over.is_empty());
    lab.restart();
    assert_eq!(lab.cdrs.len(), 1);
}

/// The data plane that has removed it says nothing.
#[test]
fn a_session_whose_last_counts_never_come_is_charged_with_what_is_known() {
    let (mut lab, session) = lab_of(Policy { volume_limit_bytes: 8_000, ..Policy::default() }, vec![]);
    lab.traffic(session, (1_000, 0), false);
    lab.obedience = crate::common::Obedience::Waits;
    lab.tell(SMF, &Message::node(900, smf::setup(SMF, 2)));
    seconds(&mut lab, 2);
    assert_eq!(volumes(&lab.cdrs[0]), [(1, 1_000, 0)]);
    assert!(lab.notes.iter().any(|note| note.contains("has not told the last counts")));
    assert!(lab.over.is_empty());
}

/// The control plane engine alone starts with another configuration.
#[test]
fn what_is_charged_under_another_key_from_a_restart_on_is_measured_anew() {
    let (mut lab, session) = lab_of(Policy::default(), vec![]);
    lab.traffic(session, (3, 0), true);
    let policy = Policy::default();
    let rating = Rating::new(Some(key(5)), vec![], []).unwrap();
    lab.config.charging = Some(Charging { rating, policy });
    lab.restart();
    lab.handle(n4::Input::Tick);
    lab.traffic(session, (4, 0), true);
    lab.delete(session);
    assert_eq!(lab.cdrs.iter().flat_map(volumes).collect::<Vec<_>>(), [(1, 3, 0), (5, 4, 0)]);
}

#[test]
fn a_session_that_is_charged_no_longer_has_a_last_record() {
    let (mut lab, session) = lab_of(Policy { volume_limit_bytes: 8_000, ..Policy::default() }, vec![]);
    lab.traffic(session, (1_000, 0), false);
    lab.config.charging = None;
    seconds(&mut lab, 1);
    lab.restart();
    lab.handle(n4::Input::Tick);
    assert_eq!(lab.cdrs[0].cause, Closed::ManagementIntervention);
    lab.delete(session);
    assert_eq!(lab.cdrs.len(), 1);
}

#[test]
fn records_go_on_after_a_restart_of_either_process() {
    let (mut lab, session) = lab_of(Policy::default(), vec![]);
    lab.traffic(session, (3, 0), true);
    seconds(&mut lab, HOUR_S);
    lab.restart();
    lab.traffic(session, (4, 0), true);
    seconds(&mut lab, HOUR_S);
    assert_eq!(lab.cdrs.iter().flat_map(volumes).collect::<Vec<_>>(), [(1, 3, 0), (1, 4, 0)]);
    lab.restart_plane();
    lab.traffic(session, (5, 0), true);
    lab.delete(session);
    assert_eq!(volumes(&lab.cdrs[2]), [(1, 5, 0)]);
}

/// What the lab counted, by key.
fn counted(
    lab: &Lab,
    of: impl Fn(&crate::common::plane::Plane) -> &BTreeMap<UrrId, (u64, u64)>,
) -> BTreeMap<u32, (u64, u64)> {
    let mut sums = BTreeMap::<u32, (u64, u64)>::new();
    for (urr, (uplink, downlink)) in of(&lab.plane) {
        let group = if urr.0 == 10 { 10 } else { 1 };
        if urr.0 == 10 || urr.0 >= OWN_METERS {
            let sum = sums.entry(group).or_default();
            *sum = (sum.0 + uplink, sum.1 + downlink);
        }
    }
    sums.retain(|_, sum| *sum != (0, 0));
    sums
}

fn charged(cdrs: &[Cdr]) -> BTreeMap<u32, (u64, u64)> {
    let mut sums = BTreeMap::<u32, (u64, u64)>::new();
    for (group, uplink, downlink) in cdrs.iter().flat_map(volumes) {
        let sum = sums.entry(group).or_default();
        *sum = (sum.0 + uplink, sum.1 + downlink);
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever gets lost and whoever restarts: what was counted is in records once.
    #[test]
    fn what_was_counted_is_charged_once(
        steps in prop::collection::vec((0u8..9, 0u64..4_000, 0u64..2_000), 1..40),
        is_mapped in any::<bool>(),
    ) {
        let policy = Policy {
            volume_limit_bytes: 9_000,
            containers: 3,
            tariff_minutes: vec![0, 480, 960],
            ..Policy::default()
        };
        let (mut lab, session) = lab_of(policy, vec![urr(if is_mapped { 10 } else { 2 }, 0)]);
        for (what, uplink, downlink) in steps {
            lab.sent.clear();
            match what {
                0 => lab.restart(),
                1 => seconds(&mut lab, uplink),
                2 => {
                    let all = Some(flags::PFCPSM_QAURR);
                    lab.modify(session, SessionModificationRequest { pfcpsm_req_flags: all, ..Default::default() });
                }
                3 => seconds(&mut lab, downlink * 10),
                4 => {
                    // What a process has not asked about since it started, it does not know.
                    seconds(&mut lab, 11);
                    lab.restart_plane();
                }
                what => lab.traffic(session, (uplink, downlink), what % 2 == 0),
            }
        }
        lab.sent.clear();
        lab.delete(session);
        prop_assert_eq!(charged(&lab.cdrs), counted(&lab, |plane| &plane.counted));
        let serials: Vec<u64> = lab.cdrs.iter().map(|cdr| cdr.serial).collect();
        prop_assert_eq!(serials, (1..=lab.cdrs.len() as u64).collect::<Vec<_>>());
        prop_assert!(lab.cdrs.last().is_some_and(|cdr| !cdr.cause.is_partial()));
    }
}

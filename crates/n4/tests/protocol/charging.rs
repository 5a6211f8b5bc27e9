//! What of sessions' usage goes into charging data records, and under which key.

use crate::common::billing::*;
use crate::common::{Lab, SMF, config, smf};
use ::charging::{Cause as Closed, Cdr, Key, OWN_METERS, Policy, Rating};
use n4::{Charging, Config, Predefined, PredefinedRule};
use pfcp::*;
use rules::{ApplicationId, Seid, UrrId};

pub(crate) const fn key(rating_group: u32) -> Key {
    Key { rating_group, service_id: None }
}

/// Everything is charged under 1; URRs 10 to 19 under 10; the rule "video" under 20, service 7.
pub(crate) fn charging(policy: Policy) -> Config {
    let video_key = Key { rating_group: 20, service_id: Some(7) };
    let video = PredefinedRule { key: Some(video_key), ..PredefinedRule::new("video".to_owned()) };
    let rating = Rating::new(Some(key(1)), vec![(10..=19, key(10))], [video_key]).unwrap();
    let predefined = Predefined::new(vec![video], &[]).unwrap();
    Config { predefined, charging: Some(Charging { rating, policy }), ..config() }
}

pub(crate) fn lab_of(policy: Policy, urrs: Vec<CreateUrr>) -> (Lab, Seid) {
    let mut lab = Lab::associated_with(charging(policy));
    let session = lab.establish(metered(77, urrs));
    (lab, session)
}

pub(crate) fn volumes(cdr: &Cdr) -> Vec<(u32, u64, u64)> {
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

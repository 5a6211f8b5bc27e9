//! Rules the operator knows by name.

use crate::common::personas::{accepted, established, rules};
use crate::common::smf::{self, establishment};
use crate::common::{Lab, SMF};
use dplink::{Event, Notice};
use n4::{Config, Input, Predefined, PredefinedError, PredefinedRule};
use pfcp::*;
use rules::{BitRates, FarId, Pdr, PdrId, Rules, Seid};

fn filter(text: &str) -> rules::SdfFilter {
    rules::SdfFilter { flow: Some(text.parse().unwrap()), ..Default::default() }
}

pub(crate) fn rule(name: &str, description: &str) -> PredefinedRule {
    PredefinedRule { filters: vec![filter(description)], ..PredefinedRule::new(name.to_owned()) }
}

fn table() -> Predefined {
    let mbr = Some(BitRates { uplink_kbps: 1_000, downlink_kbps: 2_000 });
    let video = PredefinedRule { mbr, ..rule("video", "permit out ip from 203.0.113.0/24 to assigned") };
    let ads = PredefinedRule { drops: true, ..rule("ads", "permit out ip from 198.51.100.0/24 to assigned") };
    let last = PredefinedRule { precedence: Some(900), ..PredefinedRule::new("rest".to_owned()) };
    let family = ("family".to_owned(), vec!["ads".to_owned(), "video".to_owned()]);
    Predefined::new(vec![video, ads, last], &[family]).unwrap()
}

pub(crate) fn lab() -> Lab {
    Lab::associated_with(Config { predefined: table(), ..crate::common::config() })
}

pub(crate) fn activating(names: &[&str]) -> SessionEstablishmentRequest {
    let mut request = establishment(77);
    let names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
    request.create_pdrs.iter_mut().for_each(|pdr| pdr.activate_predefined_rules.clone_from(&names));
    request
}

/// The rules of the downlink, by precedence as the data plane takes them.
pub(crate) fn downlink(rules: &Rules) -> Vec<&Pdr> {
    let mut pdrs: Vec<&Pdr> = rules.pdrs.iter().filter(|pdr| pdr.pdi.f_teid.is_none()).collect();
    pdrs.sort_by_key(|pdr| (pdr.precedence, pdr.id));
    pdrs
}

pub(crate) fn update(pdr_id: u16, on: &[&str], off: &[&str]) -> SessionModificationRequest {
    let octets = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect();
    let update = UpdatePdr {
        pdr_id,
        activate_predefined_rules: octets(on),
        deactivate_predefined_rules: octets(off),
        ..UpdatePdr::default()
    };
    SessionModificationRequest { update_pdrs: vec![update], ..SessionModificationRequest::default() }
}

#[test]
fn a_pdr_stands_for_the_rules_it_activates() {
    let mut lab = lab();
    let (session, created) = established(&mut lab, activating(&["video"]));
    assert_eq!(created.iter().map(|pdr| pdr.pdr_id).collect::<Vec<_>>(), [1]);
    let rules = rules(&lab, session);
    rules.check().unwrap();
    assert_eq!((rules.pdrs.len(), rules.qers.len()), (2, 1));
    let [video] = downlink(rules)[..] else { panic!("{rules:?}") };
    assert_eq!((video.pdi.ue_ipv4, video.far), (Some(smf::UE), FarId(2)));
    assert_eq!(video.pdi.sdf_filters, [filter("permit out ip from 203.0.113.0/24 to assigned")]);
    assert_eq!((video.precedence, &video.qers[..]), (255, &[rules.qers[0].id][..]));
    // Both directions share one rate.
    assert!(rules.pdrs.iter().all(|pdr| pdr.qers == video.qers));
    // What the control plane asked for is what is kept.
    assert_eq!(lab.saved[&session].rules.pdrs.len(), 2);
    assert!(lab.saved[&session].rules.qers.is_empty());
}

/// As a PDR that names it itself (TS 29.244 8.2.1, cause 81). Who has activated it keeps it.
#[test]
fn a_rule_for_an_application_that_nobody_knows_is_not_activated() {
    let of = |name: &str| PredefinedRule {
        application: rules::ApplicationId::new(&format!("{name}-app")),
        ..PredefinedRule::new(name.to_owned())
    };
    let groups = [("all", vec!["video", "ads"]), ("lost", vec!["ads"])];
    let groups =
        groups.map(|(name, rules)| (name.to_owned(), rules.into_iter().map(str::to_owned).collect()));
    let predefined = Predefined::new(vec![of("video"), of("ads")], &groups).unwrap();
    let mut lab = Lab::associated_with(Config { predefined, ..crate::common::config() });
    lab.node.know_applications(["video-app".into()].into());
    let (session, _) = established(&mut lab, activating(&["video"]));
    for refused in ["ads", "lost"] {
        let answer = lab.modify(session, update(1, &[refused], &[]));
        let why = (answer.cause, answer.offending_ie, answer.failed_rule_id);
        let blamed = (Some(ie::ACTIVATE_PREDEFINED_RULES), Some(FailedRuleId::Pdr(1)));
        assert_eq!(why, (Cause::UnknownApplicationId, blamed.0, blamed.1), "{refused}");
    }
    accepted(&lab.modify(session, update(1, &["all"], &[])));
    lab.node.know_applications(Default::default());
    accepted(&lab.modify(session, update(1, &["all", "video"], &[])));
    assert!(!lab.node.has_pfds_of("video-app"));
}

#[test]
fn a_group_activates_its_rules_in_order() {
    let mut lab = lab();
    let (session, _) = established(&mut lab, activating(&["family", "video", "rest"]));
    let rules = rules(&lab, session);
    rules.check().unwrap();
    let [ads, video, rest] = downlink(rules)[..] else { panic!("{rules:?}") };
    let action = |pdr: &Pdr| rules.fars.iter().find(|far| far.id == pdr.far).unwrap().apply_action;
    assert_eq!((action(ads), ads.far.0 >> 31), (rules::ApplyAction::Drop, 1));
    assert_eq!((video.far, rest.far), (FarId(2), FarId(2)));
    assert!(rest.pdi.sdf_filters.is_empty() && !video.pdi.sdf_filters.is_empty());
}

/// Beside the control plane's rules for all of the user's packets, behind which they would do nothing.
#[test]
fn rules_without_a_place_go_before_all_else_and_others_by_their_own() {
    let mut lab = lab();
    let mut request = establishment(77);
    let mut activating = smf::downlink(3, Some(smf::UE));
    activating.precedence = None;
    activating.activate_predefined_rules = vec![b"rest".to_vec(), b"family".to_vec()];
    request.create_pdrs[1].precedence = Some(1);
    request.create_pdrs.push(activating);
    let (session, _) = established(&mut lab, request);
    let [ads, video, own, rest] = downlink(rules(&lab, session))[..] else { panic!("four") };
    assert_eq!((ads.far.0 >> 31, &video.pdi.sdf_filters, own.id), (1, &table_filters("video"), PdrId(2)));
    assert_eq!([ads, video, own, rest].map(|pdr| pdr.precedence), [0, 0, 1, 900]);
}

fn table_filters(name: &str) -> Vec<rules::SdfFilter> {
    table().named(name).flat_map(|rule| rule.filters.clone()).collect()
}

#[test]
fn rules_are_switched_on_and_off() {
    let mut lab = lab();
    let (session, _) = established(&mut lab, establishment(77));
    let plain = rules(&lab, session).clone();
    accepted(&lab.modify(session, update(2, &["video"], &[])));
    assert_eq!(downlink(rules(&lab, session))[0].pdi.sdf_filters.len(), 1);
    accepted(&lab.modify(session, update(2, &["ads"], &["video"])));
    let [ads] = downlink(rules(&lab, session))[..] else { panic!("one") };
    assert_eq!(ads.far.0 >> 31, 1);
    accepted(&lab.modify(session, update(2, &[], &["ads"])));
    assert_eq!(*rules(&lab, session), plain);
    assert_eq!(lab.saved[&session].extras, None);
}

#[test]
fn a_pdr_with_filters_of_its_own_is_there_besides() {
    let mut lab = lab();
    let mut request = activating(&["video"]);
    let flow_description = Some("permit out ip from 192.0.2.0/24 to assigned".to_owned());
    request.create_pdrs[1].pdi.sdf_filters = vec![SdfFilter { flow_description, ..SdfFilter::default() }];
    let (session, _) = established(&mut lab, request);
    assert_eq!(downlink(rules(&lab, session)).len(), 2);
}

#[test]
fn identifiers_never_clash_with_the_control_planes() {
    let mut lab = lab();
    let mut request = activating(&["family"]);
    request.create_pdrs[0].pdr_id = u16::MAX;
    request.create_qers = vec![CreateQer { qer_id: 1 << 31, ..smf::qer(1) }];
    request.create_fars.push(smf::far(1 << 31, ApplyAction::DROP, None));
    let (session, _) = established(&mut lab, request);
    rules(&lab, session).check().unwrap();
    assert_eq!(rules(&lab, session).pdrs.len(), 4);
    // A rule created where one of ours was makes room for itself.
    let create = smf::downlink(u16::MAX - 1, Some(smf::UE));
    accepted(
        &lab.modify(session, SessionModificationRequest { create_pdrs: vec![create], ..Default::default() }),
    );
    rules(&lab, session).check().unwrap();
    assert_eq!(rules(&lab, session).pdrs.len(), 5);
}

/// Operators know a rule by its name, not by an ID that the control plane has never heard of.
#[test]
fn it_is_known_which_pdrs_come_of_which_rules() {
    let mut lab = lab();
    let (session, _) = established(&mut lab, activating(&["family"]));
    let made = lab.node.come_of_predefined(session);
    let names: Vec<(&str, bool)> = made.iter().map(|it| (it.rule.as_str(), it.drops)).collect();
    assert_eq!(names, [("ads", true), ("video", false), ("ads", true), ("video", false)]);
    for it in &made {
        let pdr = rules(&lab, session).pdrs.iter().find(|pdr| pdr.id == it.pdr).unwrap();
        let filters = |name| if name == "ads" { "198.51.100.0/24" } else { "203.0.113.0/24" };
        assert!(format!("{:?}", pdr.pdi.sdf_filters).contains(filters(&it.rule)), "{pdr:?} of {it:?}");
    }
    let (plain, _) = established(&mut lab, establishment(78));
    assert!(lab.node.come_of_predefined(plain).is_empty());
    assert!(lab.node.come_of_predefined(Seid(1)).is_empty());
}

#[test]
fn packets_kept_are_told_of_by_the_control_planes_rule() {
    let mut lab = lab();
    let mut request = activating(&["video"]);
    request.create_fars[1].apply_action =
        pfcp::ApplyAction::new(pfcp::ApplyAction::BUFF | pfcp::ApplyAction::NOCP);
    let (session, _) = established(&mut lab, request);
    let pdr = downlink(rules(&lab, session))[0].id;
    assert_ne!(pdr, PdrId(2));
    let event = Event::DownlinkData { session, pdr, qfi: None, traffic_class: 0 };
    lab.handle(Input::DataPath(&Notice::Event(event)));
    let (_, message) = lab.reports().remove(0);
    let Body::SessionReportRequest(report) = message.body else { panic!("{message:?}") };
    assert_eq!(report.downlink_data_report.unwrap().pdr_ids, [2]);
}

#[test]
fn names_that_are_not_known_are_refused() {
    let mut lab = lab();
    let (session, _) = established(&mut lab, activating(&["video"]));
    let before = (lab.desired(), lab.saved.clone());
    for (request, ie) in [
        (update(2, &["gold"], &[]), ie::ACTIVATE_PREDEFINED_RULES),
        (update(2, &["ads"], &["gold"]), ie::DEACTIVATE_PREDEFINED_RULES),
        (update(2, &["\u{80}"], &[]), ie::ACTIVATE_PREDEFINED_RULES),
    ] {
        let response = lab.modify(session, request);
        let told = (response.cause, response.offending_ie, response.failed_rule_id);
        assert_eq!(told, (Cause::UnknownPredefinedRule, Some(ie), Some(FailedRuleId::Pdr(2))));
    }
    assert_eq!((lab.desired(), lab.saved.clone()), before);
    // As some write it.
    let mut request = update(2, &[], &[]);
    request.update_pdrs[0].activate_predefined_rules.push(b"ads\0".to_vec());
    accepted(&lab.modify(session, request));
}

#[test]
fn too_many_rates_for_a_pdr_are_refused_by_its_name() {
    let mut lab = lab();
    let mut request = activating(&["video"]);
    request.create_qers = (1..=8).map(smf::qer).collect();
    request.create_pdrs[1].qer_ids = (1..=8).collect();
    let Body::SessionEstablishmentResponse(response) = lab.ask(SMF, &Message::session(0, 1, request)) else {
        panic!("an answer")
    };
    let told = (response.cause, response.failed_rule_id);
    assert_eq!(told, (Cause::NoResourcesAvailable, Some(FailedRuleId::Pdr(2))));
    assert_eq!((lab.node.sessions(), lab.node.tunnels()), (0, 0));
}

#[test]
fn a_restart_goes_by_the_table_of_now() {
    let mut lab = lab();
    let (session, _) = established(&mut lab, activating(&["video"]));
    let before = rules(&lab, session).clone();
    lab.restart();
    assert_eq!(*rules(&lab, session), before);
    // The rule is no more: what the PDR itself says is left of it.
    lab.config.predefined = Predefined::default();
    lab.restart();
    lab.restart_plane();
    let left = rules(&lab, session);
    assert!(left.pdrs.len() == 2 && left.pdrs.iter().all(|pdr| pdr.pdi.sdf_filters.is_empty()));
}

#[test]
fn the_feature_is_advertised_if_there_are_rules() {
    for (config, has) in
        [(Config { predefined: table(), ..crate::common::config() }, true), (crate::common::config(), false)]
    {
        let mut lab = Lab::new(config);
        let Body::AssociationSetupResponse(response) = lab.ask(SMF, &Message::node(1, smf::setup(SMF, 5)))
        else {
            panic!("an answer")
        };
        assert_eq!(response.up_function_features.unwrap().contains(UpFeature::Adpdp), has);
    }
}

#[test]
fn tables_that_cannot_be_are_refused() {
    let one = || rule("a", "permit out ip from any to assigned");
    let names = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let group = |name: &str, members: &str| vec![(name.to_owned(), names(members))];
    let error = |rules, groups: &[(String, Vec<String>)]| Predefined::new(rules, groups).unwrap_err();
    assert_eq!(error(vec![one(), one()], &[]), PredefinedError::Twice("a".to_owned()));
    assert_eq!(error(vec![one()], &group("a", "a")), PredefinedError::Twice("a".to_owned()));
    assert_eq!(
        error(vec![one()], &group("g", "a,b")),
        PredefinedError::Unknown("g".to_owned(), "b".to_owned())
    );
    assert_eq!(error(vec![rule("", "permit out ip from any to assigned")], &[]), PredefinedError::Name);
    let many = PredefinedRule { filters: vec![filter("permit out ip from any to assigned"); 65], ..one() };
    assert!(matches!(error(vec![many], &[]), PredefinedError::Impossible(..)));
    assert_eq!(error(vec![one(); 4_097], &[]), PredefinedError::TooMany);
    let mut lab = lab();
    let _: Seid = established(&mut lab, activating(&["rest"])).0;
}

#[test]
fn the_group_that_has_a_rule_is_known() {
    let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let table = table();
    assert_eq!(table.group_with(&of(&["rest", "video"])), Some(("family", "video")));
    for free in [&["rest"][..], &["family"], &["video", "family"], &["gold"]] {
        assert_eq!(table.group_with(&of(free)), None, "{free:?}");
    }
}

/// What a carrier has: 45 static rules by name, and five more that come and go, each of an application.
#[test]
fn static_rules_stay_while_dynamic_ones_come_and_go() {
    const STATIC: u32 = 45;
    let service = |number: u32| rules::ApplicationId::new(&format!("service-{number}"));
    let table: Vec<PredefinedRule> = (0..STATIC)
        .map(|number| PredefinedRule {
            precedence: Some(100 + number),
            application: service(number),
            ..PredefinedRule::new(format!("pcc-{number}"))
        })
        .collect();
    let all = table.iter().map(|rule| rule.name.clone()).collect();
    let predefined = Predefined::new(table, &[("zte".to_owned(), all)]).unwrap();
    let mut lab = Lab::associated_with(Config { predefined, ..crate::common::config() });
    let (session, _) = established(&mut lab, activating(&["zte"]));
    let of_application = |rules: &Rules| -> Vec<_> {
        downlink(rules).into_iter().filter_map(|pdr| pdr.pdi.application.clone()).collect()
    };
    let in_order: Vec<_> = (0..STATIC).filter_map(service).collect();
    assert_eq!(of_application(rules(&lab, session)), in_order);

    let dynamic = |number: u32| {
        let mut pdr = smf::downlink(number as u16, Some(smf::UE));
        pdr.precedence = Some(10 + number);
        pdr.pdi.application_id = Some(format!("service-{number}").into());
        pdr
    };
    let create_pdrs = (STATIC..STATIC + 5).map(dynamic).collect();
    accepted(&lab.modify(
        session,
        SessionModificationRequest { create_pdrs, ..SessionModificationRequest::default() },
    ));
    let now = rules(&lab, session);
    now.check().unwrap();
    let expected: Vec<_> = (STATIC..STATIC + 5).chain(0..STATIC).filter_map(service).collect();
    assert_eq!(of_application(now), expected);

    let remove_pdrs = (STATIC..STATIC + 5)
        .map(|number| RemovePdr { pdr_id: number as u16, ..RemovePdr::default() })
        .collect();
    accepted(&lab.modify(
        session,
        SessionModificationRequest { remove_pdrs, ..SessionModificationRequest::default() },
    ));
    assert_eq!(of_application(rules(&lab, session)), in_order);
}

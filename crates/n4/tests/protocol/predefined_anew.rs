//! An operator changes predefined rules while sessions have them.

use crate::common::billing::{Bill, total, urr};
use crate::common::personas::{established, rules};
use crate::common::smf::establishment;
use crate::common::{Lab, SMF, at, config};
use n4::{Config, Predefined, PredefinedRule};
use pfcp::*;
use rules::{BitRates, Seid};
use std::time::Duration;

fn rule(name: &str) -> PredefinedRule {
    let description = "permit out ip from 203.0.113.0/24 to assigned".parse().unwrap();
    let filter = rules::SdfFilter { flow: Some(description), ..Default::default() };
    PredefinedRule { filters: vec![filter], ..PredefinedRule::new(name.to_owned()) }
}

fn held(name: &str, kbps: u64) -> PredefinedRule {
    PredefinedRule { mbr: Some(BitRates { uplink_kbps: kbps, downlink_kbps: kbps }), ..rule(name) }
}

fn table(rules: Vec<PredefinedRule>) -> Predefined {
    Predefined::new(rules, &[("all".to_owned(), vec!["video".to_owned()])]).unwrap()
}

fn lab(predefined: Predefined) -> Lab {
    Lab::associated_with(Config { predefined, ..config() })
}

/// A session of this name of the control plane's, whose PDRs activate these.
fn session(lab: &mut Lab, name: u64, rules: &[&str]) -> Seid {
    let mut request = establishment(name);
    let address = std::net::Ipv4Addr::new(10, 60, 1, name as u8);
    for pdr in &mut request.create_pdrs {
        let names = rules.iter().map(|name| name.as_bytes().to_vec());
        pdr.activate_predefined_rules = names.collect();
        pdr.pdi.ue_ip_addresses.iter_mut().for_each(|ue| ue.ipv4 = ue.ipv4.map(|_| address));
    }
    established(lab, request).0
}

fn put(lab: &mut Lab, table: Predefined) {
    let now = lab.time();
    let outputs = lab.node.put_predefined(table.clone(), now);
    lab.config.predefined = table;
    lab.carry_out_all(outputs);
    lab.pass(Duration::from_secs(1));
    assert_eq!(lab.node.unrenewed(), 0);
}

fn rate(lab: &Lab, session: Seid) -> Option<u64> {
    rules(lab, session).qers.iter().find_map(|qer| qer.mbr).map(|mbr| mbr.uplink_kbps)
}

#[test]
fn sessions_that_activate_what_has_changed_are_told_anew_and_no_others() {
    let mut lab = lab(table(vec![held("video", 1_000), held("voice", 50)]));
    let by_name = session(&mut lab, 1, &["video"]);
    let by_group = session(&mut lab, 2, &["all"]);
    let others = [session(&mut lab, 3, &["voice"]), session(&mut lab, 4, &[])];
    let before = lab.in_force.clone();
    put(&mut lab, table(vec![held("video", 2_000), held("voice", 50), rule("more")]));
    assert_eq!([by_name, by_group].map(|session| rate(&lab, session)), [Some(2_000); 2]);
    for session in [by_name, by_group] {
        assert_eq!(lab.in_force[&session].revision, before[&session].revision + 1);
    }
    others.iter().for_each(|session| assert_eq!(lab.in_force[session], before[session]));
    // What the data plane has is what the node would say again, to it or in its next life.
    assert_eq!(lab.in_force, lab.desired());
    lab.restart();
    assert_eq!(rate(&lab, by_name), Some(2_000));
    // Who has none of it may have it now.
    let fresh = session(&mut lab, 5, &["more"]);
    assert_eq!(rules(&lab, fresh).pdrs[0].pdi.sdf_filters.len(), 1);
}

/// Without the rules, what the PDR itself says is left of it: nobody's packets are dropped for that.
#[test]
fn a_pdr_whose_rules_are_taken_away_goes_on_by_itself() {
    let mut lab = lab(table(vec![held("video", 1_000), rule("more")]));
    let known = session(&mut lab, 1, &["more"]);
    let plain = session(&mut lab, 2, &[]);
    assert_eq!(rules(&lab, known).pdrs[0].pdi.sdf_filters.len(), 1);
    put(&mut lab, table(vec![held("video", 1_000)]));
    let left = rules(&lab, known);
    left.check().unwrap();
    assert!(left.pdrs.iter().all(|pdr| pdr.pdi.sdf_filters.is_empty() && pdr.qers.is_empty()));
    assert_eq!(left.pdrs.len(), rules(&lab, plain).pdrs.len());
    // It has activated them all the same: they are there again when the operator puts them back.
    put(&mut lab, table(vec![held("video", 1_000), rule("more")]));
    assert_eq!(rules(&lab, known).pdrs[0].pdi.sdf_filters.len(), 1);
}

/// The control plane cannot know that the operator has taken away what it activated.
#[test]
fn what_is_active_can_be_deactivated_though_the_node_has_it_no_more() {
    let mut lab = lab(table(vec![held("video", 1_000), rule("more"), rule("other")]));
    let session = session(&mut lab, 1, &["more"]);
    put(&mut lab, table(vec![held("video", 1_000), rule("other")]));
    let change = |lab: &mut Lab, pdr_id, gone: &[u8], activated: &[&str]| {
        let update = UpdatePdr {
            pdr_id,
            deactivate_predefined_rules: vec![gone.to_vec()],
            activate_predefined_rules: activated.iter().map(|name| name.as_bytes().to_vec()).collect(),
            ..UpdatePdr::default()
        };
        lab.modify(session, SessionModificationRequest { update_pdrs: vec![update], ..Default::default() })
            .cause
    };
    assert_eq!(change(&mut lab, 1, b"more\0", &["other"]), Cause::RequestAccepted);
    assert_eq!(change(&mut lab, 2, b"more", &[]), Cause::RequestAccepted);
    // It is active nowhere: nobody knows it.
    assert_eq!(change(&mut lab, 1, b"more", &[]), Cause::UnknownPredefinedRule);
    put(&mut lab, table(vec![held("video", 1_000), rule("more"), rule("other")]));
    // Only what was activated in its place is there.
    let filters = rules(&lab, session).pdrs.iter().map(|pdr| pdr.pdi.sdf_filters.len());
    assert_eq!(filters.sum::<usize>(), 1);
}

/// Whatever changes meanwhile: each octet is told once.
#[test]
fn nothing_of_what_is_used_is_lost_or_told_twice() {
    let mut lab = lab(table(vec![rule("video")]));
    let mut request = establishment(1);
    request.create_urrs.push(CreateUrr { volume_threshold: total(1_000_000), ..urr(1, 1 << 1) });
    for pdr in &mut request.create_pdrs {
        (pdr.urr_ids, pdr.activate_predefined_rules) = (vec![1], vec![b"video".to_vec()]);
    }
    let (session, _) = established(&mut lab, request);
    for kbps in 1..=20 {
        lab.traffic(session, (700, 300), false);
        let rules = if kbps % 5 == 0 { vec![rule("video")] } else { vec![held("video", kbps)] };
        put(&mut lab, table(rules));
    }
    let last = lab.delete(session);
    let mut bill = Bill::default();
    bill.add(&last.usage_reports);
    assert_eq!(bill.sums().into_values().collect::<Vec<_>>(), [(14_000, 6_000)]);
}

/// With the first of all rules comes the feature ADPDP; it goes with the last.
#[test]
fn control_planes_are_told_that_there_are_rules_by_name() {
    let mut lab = lab(Predefined::default());
    let told = |lab: &mut Lab| {
        let is_update = |(peer, message): &(_, Message)| {
            *peer == at(SMF) && matches!(message.body, Body::AssociationUpdateRequest(_))
        };
        let count = lab.sent.iter().filter(|sent| is_update(sent)).count();
        lab.sent.clear();
        count > 0
    };
    told(&mut lab);
    put(&mut lab, table(vec![rule("video")]));
    assert!(told(&mut lab), "there are some");
    session(&mut lab, 1, &["video"]);
}

/// One that cannot have the new rules keeps those it had, and somebody hears of it.
#[test]
fn a_session_that_cannot_have_them_keeps_what_it_had() {
    let mut lab = lab(table(vec![held("video", 1_000)]));
    let known = session(&mut lab, 1, &["video"]);
    let before = lab.in_force[&known].clone();
    // As many PDRs as no session may have.
    let many: Vec<String> = (0..3_000).map(|number| format!("rule-{number}")).collect();
    let rules: Vec<PredefinedRule> = many.iter().map(|name| rule(name)).collect();
    put(&mut lab, Predefined::new(rules, &[("video".to_owned(), many)]).unwrap());
    assert_eq!(lab.in_force[&known], before);
    assert!(
        lab.notes.iter().any(|note| note.contains("keeps the predefined rules it had")),
        "{:?}",
        lab.notes
    );
}

/// A restart of the control plane engine alone goes by another configuration (SIGHUP), and the data plane is told, once.
#[test]
fn sessions_follow_a_configuration_that_has_changed() {
    let mut lab = lab(table(vec![held("video", 1_000), held("voice", 50)]));
    let [known, other] = [session(&mut lab, 1, &["video"]), session(&mut lab, 2, &["voice"])];
    lab.pass(Duration::from_secs(5));
    let before = lab.in_force.clone();
    lab.restart();
    lab.pass(Duration::from_secs(5));
    assert_eq!(lab.in_force, before, "nothing has changed");
    lab.config.predefined = table(vec![held("video", 2_000), held("voice", 50)]);
    lab.restart();
    lab.pass(Duration::from_secs(1));
    assert_eq!((rate(&lab, known), &lab.in_force[&other]), (Some(2_000), &before[&other]));
    assert_eq!(lab.in_force, lab.desired());
    lab.pass(Duration::from_secs(5));
    let told = lab.in_force.clone();
    lab.restart();
    lab.pass(Duration::from_secs(5));
    assert_eq!(lab.in_force, told, "it has been told");
}

/// Another one comes at once, and it is the one before.
#[test]
fn a_configuration_that_is_taken_back_at_once_holds() {
    let mut lab = lab(table(vec![held("video", 1_000)]));
    let known = session(&mut lab, 1, &["video"]);
    lab.pass(Duration::from_secs(5));
    for kbps in [2_000, 1_000, 2_000] {
        lab.config.predefined = table(vec![held("video", kbps)]);
        lab.restart();
        lab.pass(Duration::from_millis(100));
        assert_eq!(rate(&lab, known), Some(kbps));
    }
    put(&mut lab, table(vec![held("video", 3_000)]));
    lab.config.predefined = table(vec![held("video", 2_000)]);
    lab.restart();
    lab.pass(Duration::from_millis(100));
    assert_eq!(rate(&lab, known), Some(2_000));
}

/// A process that ends amid it leaves some by the old rules: the next one goes on.
#[test]
fn what_a_process_has_not_got_to_the_next_one_does() {
    let mut lab = lab(table(vec![held("video", 1_000)]));
    let sessions: Vec<Seid> = (1..=100).map(|name| session(&mut lab, name, &["video"])).collect();
    lab.pass(Duration::from_secs(5));
    let (table, now) = (table(vec![held("video", 2_000)]), lab.time());
    let outputs = lab.node.put_predefined(table.clone(), now);
    lab.config.predefined = table;
    lab.carry_out_all(outputs);
    lab.handle(n4::Input::Tick);
    assert!(lab.node.unrenewed() > 0);
    lab.restart();
    lab.pass(Duration::from_secs(1));
    assert!(sessions.iter().all(|session| rate(&lab, *session) == Some(2_000)));
    assert_eq!(lab.in_force, lab.desired());
}

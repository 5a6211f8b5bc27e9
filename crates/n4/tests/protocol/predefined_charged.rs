//! Predefined rules change while sessions that have them are charged: what was used before and after is told apart, as where a
//! control plane changes the rules.

use crate::common::billing::{metered, seconds, urr};
use crate::common::{Lab, Obedience, SMF, config};
use ::charging::{Cdr, Conditions, Key, Policy, Rating};
use n4::{Charging, Config, Predefined, PredefinedRule};
use pfcp::*;
use proptest::prelude::*;
use rules::{BitRates, Redirect, SdfFilter, Seid, UrrId};

const VIDEO: Key = Key { rating_group: 20, service_id: None };
const NEWS: Key = Key { rating_group: 30, service_id: None };
const DEFAULT: Key = Key { rating_group: 1, service_id: None };

/// Whatever matches no rule is charged under 1, and URR 10 under 10.
fn charging(rules: Vec<PredefinedRule>) -> Config {
    let mapped = Key { rating_group: 10, service_id: None };
    let rating = Rating::new(Some(DEFAULT), vec![(10..=10, mapped)], [VIDEO, NEWS]).unwrap();
    // The data plane tells of every 1,000 octets by itself.
    let policy = Policy { volume_limit_bytes: 8_000, ..Policy::default() };
    let charging = Some(Charging { rating, policy });
    Config { predefined: table(rules), charging, ..config() }
}

fn table(rules: Vec<PredefinedRule>) -> Predefined {
    Predefined::new(rules, &[]).unwrap()
}

fn rule(kbps: Option<u64>, key: Option<Key>) -> PredefinedRule {
    let mbr = kbps.map(|kbps| BitRates { uplink_kbps: kbps, downlink_kbps: kbps });
    PredefinedRule { mbr, key, ..PredefinedRule::new("video".to_owned()) }
}

/// A session whose PDRs all stand for the rule "video".
fn session(lab: &mut Lab, urrs: Vec<CreateUrr>) -> Seid {
    let mut request = metered(77, urrs);
    let names = || vec![b"video".to_vec()];
    request.create_pdrs.iter_mut().for_each(|pdr| pdr.activate_predefined_rules = names());
    lab.establish(request)
}

fn put(lab: &mut Lab, rules: Vec<PredefinedRule>) {
    begin(lab, rules);
    seconds(lab, 1);
}

/// Sessions do not follow before time passes.
fn begin(lab: &mut Lab, rules: Vec<PredefinedRule>) {
    let (now, table) = (lab.time(), table(rules));
    lab.config.predefined = table.clone();
    let outputs = lab.node.put_predefined(table, now);
    lab.carry_out_all(outputs);
}

fn modify(lab: &mut Lab, session: Seid, precedence: u32) {
    let update = UpdatePdr { precedence: Some(precedence), ..UpdatePdr::new(1) };
    let request = SessionModificationRequest { update_pdrs: vec![update], ..Default::default() };
    assert_eq!(lab.modify(session, request).cause, Cause::RequestAccepted);
}

fn told(cdrs: &[Cdr]) -> Vec<(u32, u64, Conditions)> {
    let all = cdrs.iter().flat_map(|cdr| &cdr.containers);
    all.map(|it| (it.key.rating_group, it.uplink_bytes, it.conditions)).collect()
}

/// As one that is switched on or off by a control plane.
#[test]
fn a_rate_that_changes_splits_what_was_used_before_and_after_it() {
    let mut lab = Lab::associated_with(charging(vec![rule(Some(100), Some(VIDEO))]));
    let session = session(&mut lab, vec![]);
    for (bytes, kbps) in [(1, Some(200)), (2, None), (4, None), (8, Some(50))] {
        // What is used is only known to the data plane: it is asked.
        lab.traffic(session, (bytes, 0), true);
        put(&mut lab, vec![rule(kbps, Some(VIDEO))]);
    }
    lab.traffic(session, (16, 0), true);
    lab.delete(session);
    let (changed, end) = (Conditions::QOS_CHANGE, Conditions::SESSION_END);
    assert_eq!(told(&lab.cdrs), [(20, 1, changed), (20, 2, changed), (20, 12, changed), (20, 16, end)]);
}

#[test]
fn a_rating_group_whose_rule_goes_is_charged_to_its_end_and_another_begins() {
    let mut lab = Lab::associated_with(charging(vec![rule(None, Some(VIDEO))]));
    let session = session(&mut lab, vec![]);
    lab.traffic(session, (1, 0), true);
    put(&mut lab, vec![rule(None, Some(NEWS))]);
    let of_video = &lab.saved[&session].charging.as_ref().unwrap().own;
    assert_eq!(of_video.len(), 1, "the meter is gone");
    lab.traffic(session, (2, 0), true);
    put(&mut lab, vec![]);
    lab.traffic(session, (4, 0), true);
    put(&mut lab, vec![rule(None, Some(VIDEO))]);
    lab.traffic(session, (8, 0), true);
    lab.delete(session);
    let (changed, end) = (Conditions::CONFIGURATION_CHANGE, Conditions::SESSION_END);
    assert_eq!(told(&lab.cdrs), [(20, 1, changed), (30, 2, changed), (1, 4, changed), (20, 8, end)]);
}

#[test]
fn the_urr_of_a_control_plane_is_told_apart_as_well() {
    let mut lab = Lab::associated_with(charging(vec![rule(Some(100), None)]));
    let session = session(&mut lab, vec![urr(10, 0)]);
    lab.traffic(session, (1, 0), true);
    put(&mut lab, vec![rule(Some(200), None)]);
    lab.traffic(session, (2, 0), true);
    lab.delete(session);
    let (changed, end) = (Conditions::QOS_CHANGE, Conditions::SESSION_END);
    assert_eq!(told(&lab.cdrs), [(10, 1, changed), (10, 2, end)]);
}

/// What a rule is for and does is what is charged: filters, drops, redirections, marks. One that a session has not costs
/// it nothing.
#[test]
fn what_changes_no_rate_splits_what_was_used_as_well() {
    let mut lab = Lab::associated_with(charging(vec![rule(Some(100), Some(VIDEO))]));
    let session = session(&mut lab, vec![]);
    let plain = || rule(Some(100), Some(VIDEO));
    let filter = "permit out 6 from any 80 to assigned".parse().unwrap();
    let changes = [
        PredefinedRule { filters: vec![SdfFilter { flow: Some(filter), ..SdfFilter::default() }], ..plain() },
        PredefinedRule { drops: true, ..plain() },
        PredefinedRule { redirect: Redirect::new("http://portal.example/"), ..plain() },
        PredefinedRule { dscp: Some(46), ..plain() },
    ];
    for (at, change) in changes.iter().enumerate() {
        lab.traffic(session, (1 << at, 0), true);
        put(&mut lab, vec![change.clone()]);
    }
    let other = PredefinedRule { name: "other".to_owned(), ..rule(Some(1), None) };
    lab.traffic(session, (16, 0), true);
    put(&mut lab, vec![changes[3].clone(), other]);
    lab.traffic(session, (32, 0), true);
    lab.delete(session);
    let (changed, end) = (Conditions::CONFIGURATION_CHANGE, Conditions::SESSION_END);
    let expected = [(20, 1, changed), (20, 2, changed), (20, 4, changed), (20, 8, changed), (20, 48, end)];
    assert_eq!(told(&lab.cdrs), expected);
}

/// The data plane still has what the new table has not: it is charged when it tells the last of it, and once.
#[test]
fn a_change_amid_a_modification_charges_nothing_twice() {
    [true, false].into_iter().for_each(change_amid_a_modification);
}

/// Whether it is the session's turn to follow before the modification is done, or afterwards.
fn change_amid_a_modification(comes_first: bool) {
    let mut lab = Lab::associated_with(charging(vec![rule(Some(100), Some(VIDEO))]));
    let session = session(&mut lab, vec![]);
    lab.traffic(session, (1_000, 0), false);
    lab.traffic(session, (1, 0), true);
    let update = UpdatePdr { precedence: Some(9), ..UpdatePdr::new(1) };
    let request = SessionModificationRequest { update_pdrs: vec![update], ..Default::default() };
    lab.obedience = Obedience::Waits;
    lab.tell(SMF, &Message::session(session.0, 500, request));
    let orders = std::mem::take(&mut lab.orders);
    begin(&mut lab, vec![rule(Some(200), Some(NEWS))]);
    seconds(&mut lab, u64::from(comes_first));
    assert!(lab.orders.is_empty(), "it waits for what is under way");
    (lab.orders, lab.obedience) = (orders, Obedience::Obeys);
    lab.obey();
    lab.answer(500);
    seconds(&mut lab, 1);
    assert_eq!(lab.in_force, lab.desired());
    lab.traffic(session, (2, 0), true);
    lab.delete(session);
    let (changed, end) = (Conditions::QOS_CHANGE, Conditions::SESSION_END);
    assert_eq!(told(&lab.cdrs), [(20, 1_001, changed), (30, 2, end)], "{comes_first}");
}

/// So it is of one that is done before the session's turn to follow has come.
#[test]
fn a_modification_before_a_session_follows_charges_nothing_twice() {
    let mut lab = Lab::associated_with(charging(vec![rule(Some(100), Some(VIDEO))]));
    let session = session(&mut lab, vec![]);
    lab.traffic(session, (1_000, 0), false);
    begin(&mut lab, vec![rule(Some(200), Some(NEWS))]);
    modify(&mut lab, session, 9);
    lab.traffic(session, (1, 0), true);
    seconds(&mut lab, 1);
    lab.traffic(session, (2, 0), true);
    lab.delete(session);
    let sum = |key: Key| -> u64 {
        let all = told(&lab.cdrs).into_iter().filter(|(group, ..)| *group == key.rating_group);
        all.map(|(_, bytes, _)| bytes).sum()
    };
    // From the modification on the data plane goes by the new table.
    assert_eq!((sum(VIDEO), sum(NEWS)), (1_000, 3));
}

/// Where the data plane goes before it has told, what is known must do; what it counts afterwards is charged, too.
#[test]
fn a_data_plane_that_goes_amid_it_keeps_no_container_open() {
    let mut lab = Lab::associated_with(charging(vec![rule(Some(100), Some(VIDEO))]));
    let session = session(&mut lab, vec![]);
    lab.traffic(session, (1, 0), true);
    lab.handle(n4::Input::Tick);
    lab.obedience = Obedience::Waits;
    put(&mut lab, vec![rule(Some(200), Some(VIDEO))]);
    lab.obedience = Obedience::Obeys;
    lab.handle(n4::Input::DataPathLost);
    lab.orders.clear();
    lab.connect();
    seconds(&mut lab, 15);
    lab.traffic(session, (2, 0), true);
    lab.delete(session);
    let sum: u64 = told(&lab.cdrs).iter().map(|(_, bytes, _)| bytes).sum();
    assert_eq!((sum, lab.cdrs.len()), (3, 1), "{:?}", told(&lab.cdrs));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever becomes of the rules, and whoever restarts: what was counted under a key is charged under it, once.
    #[test]
    fn what_was_counted_is_charged_once_under_its_key(
        steps in prop::collection::vec((0_u8..10, 1_u64..4_000), 1..40),
    ) {
        let mut lab = Lab::associated_with(charging(vec![rule(None, Some(VIDEO))]));
        let session = session(&mut lab, vec![]);
        for (what, number) in steps {
            lab.sent.clear();
            let kbps = (number % 3 > 0).then_some(number % 3);
            match what {
                0 => put(&mut lab, vec![]),
                1 => put(&mut lab, vec![rule(kbps, Some(VIDEO))]),
                2 => put(&mut lab, vec![rule(kbps, Some(NEWS))]),
                3 => lab.restart(),
                4 => seconds(&mut lab, number),
                5 => modify(&mut lab, session, number as u32),
                6 => begin(&mut lab, vec![rule(kbps, [Some(VIDEO), Some(NEWS), None][number as usize % 3])]),
                _ => lab.traffic(session, (number, 0), number % 2 == 0),
            }
        }
        lab.sent.clear();
        lab.delete(session);
        let own = |key| UrrId(lab.config.charging.as_ref().unwrap().rating.own_meter(key).unwrap());
        for key in [VIDEO, NEWS, DEFAULT] {
            let counted = lab.plane.counted.get(&own(key)).map_or(0, |counted| counted.0);
            let containers = lab.cdrs.iter().flat_map(|cdr| &cdr.containers).filter(|it| it.key == key);
            prop_assert_eq!(containers.map(|it| it.uplink_bytes).sum::<u64>(), counted, "{:?}", key);
        }
    }
}

/// The configuration is another after a restart of the control plane engine alone (SIGHUP): the same.
#[test]
fn a_rate_that_changes_with_the_configuration_splits_what_was_used() {
    let mut lab = Lab::associated_with(charging(vec![rule(Some(100), Some(VIDEO))]));
    let session = session(&mut lab, vec![]);
    seconds(&mut lab, 1);
    lab.traffic(session, (1, 0), true);
    lab.config.predefined = table(vec![rule(Some(200), Some(VIDEO))]);
    lab.restart();
    seconds(&mut lab, 5);
    lab.traffic(session, (2, 0), true);
    lab.restart();
    seconds(&mut lab, 5);
    lab.delete(session);
    let (changed, end) = (Conditions::QOS_CHANGE, Conditions::SESSION_END);
    assert_eq!(told(&lab.cdrs), [(20, 1, changed), (20, 2, end)]);
}

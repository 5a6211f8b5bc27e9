use super::*;
use crate::error::{RuleError, RuleRef};
use crate::fixture::{GNB, bar, drop_far, pdi, pdr, qer, rules, towards, urr};
use crate::ids::Teid;
use crate::intent::{PacketRate, limits};
use std::time::{Duration, Instant};

const TUNNEL: OuterHeaderCreation = OuterHeaderCreation::gtpu(Teid(9), GNB);

fn update_far(rules: &Rules, update: FarUpdate) -> Result<Rules, RuleError> {
    rules.change(Change { update_fars: vec![update], ..Change::default() })
}

/// The plain session with FAR 2 forwarding into a tunnel, marked.
fn with_tunnel() -> Rules {
    let mut rules = rules();
    rules.fars[1].forwarding = Some(ForwardingParameters {
        outer_header_creation: Some(TUNNEL),
        dscp: Some(46),
        policy: None,
        ..towards(Interface::Access)
    });
    rules
}

#[test]
fn an_update_far_gives_the_downlink_its_tunnel() {
    let forwarding = ForwardingUpdate {
        destination_interface: Some(Interface::Access),
        instance: Some(Instance::of("ims")),
        outer_header_creation: Some(Some(TUNNEL)),
        dscp: Some(Some(46)),
        policy: None,
    };
    let update = FarUpdate {
        id: FarId(2),
        apply_action: Some(ApplyAction::Forward),
        forwarding: Some(forwarding),
        ..FarUpdate::default()
    };
    let next = update_far(&rules(), update).unwrap();
    assert_eq!(next.fars[1].apply_action, ApplyAction::Forward);
    let expected = with_tunnel().fars[1].forwarding;
    let expected = expected.map(|to| ForwardingParameters { instance: Instance::of("ims"), ..to });
    assert_eq!(next.fars[1].forwarding, expected);
}

#[test]
fn a_path_switch_keeps_what_it_does_not_name() {
    let new = OuterHeaderCreation::gtpu(Teid(5), GNB);
    let to = ForwardingUpdate { outer_header_creation: Some(Some(new)), ..ForwardingUpdate::default() };
    let update = FarUpdate { id: FarId(2), forwarding: Some(to), ..FarUpdate::default() };
    let forwarding = update_far(&with_tunnel(), update).unwrap().fars[1].forwarding.unwrap();
    assert_eq!(forwarding.destination_interface, Interface::Access);
    assert_eq!(forwarding.outer_header_creation, Some(new));
    assert_eq!(forwarding.dscp, Some(46));
}

#[test]
fn a_tunnel_and_a_marking_can_be_taken_away() {
    let to = ForwardingUpdate {
        outer_header_creation: Some(None),
        dscp: Some(None),
        ..ForwardingUpdate::default()
    };
    let update = FarUpdate { id: FarId(2), forwarding: Some(to), ..FarUpdate::default() };
    let next = update_far(&with_tunnel(), update).unwrap();
    assert_eq!(next.fars[1].forwarding, Some(towards(Interface::Access)));
}

#[test]
fn a_first_tunnel_needs_an_interface() {
    let update =
        FarUpdate { id: FarId(2), forwarding: Some(ForwardingUpdate::default()), ..FarUpdate::default() };
    let refused = RuleError::NoForwardingParameters(RuleRef::Far(FarId(2)));
    assert_eq!(update_far(&rules(), update), Err(refused));
}

#[test]
fn going_idle_buffers_by_a_bar_and_waking_forgets_it() {
    let mut rules = with_tunnel();
    rules.bars = vec![bar(1)];
    let idle = FarUpdate {
        id: FarId(2),
        apply_action: Some(ApplyAction::Buffer),
        notify: Some(true),
        bar: Some(Some(BarId(1))),
        ..FarUpdate::default()
    };
    let idle = update_far(&rules, idle).unwrap();
    assert_eq!((idle.fars[1].apply_action, idle.fars[1].notify), (ApplyAction::Buffer, true));
    assert_eq!(idle.fars[1].bar, Some(BarId(1)));
    assert!(idle.fars[1].forwarding.is_some(), "kept for the way back");
    let awake = FarUpdate { id: FarId(2), notify: Some(false), bar: Some(None), ..FarUpdate::default() };
    let awake = update_far(&idle, awake).unwrap();
    assert_eq!((awake.fars[1].notify, awake.fars[1].bar), (false, None));
}

#[test]
fn copies_are_replaced_as_a_list() {
    let copy = ForwardingParameters { outer_header_creation: Some(TUNNEL), ..towards(Interface::Core) };
    let update =
        |duplicates| FarUpdate { id: FarId(1), duplicates: Some(duplicates), ..FarUpdate::default() };
    let tapped = update_far(&rules(), update(vec![copy])).unwrap();
    assert_eq!(tapped.fars[0].duplicates, [copy]);
    let pause = FarUpdate { id: FarId(1), duplicating: Some(true), ..FarUpdate::default() };
    let paused = update_far(&tapped, pause).unwrap();
    assert_eq!((paused.fars[0].duplicating, &*paused.fars[0].duplicates), (true, &[copy][..]));
    assert_eq!(update_far(&tapped, update(vec![])).unwrap(), rules());
}

#[test]
fn a_qer_is_updated_field_by_field() {
    let rates = BitRates { uplink_kbps: 1_000, downlink_kbps: 2_000 };
    let mut rules = rules();
    rules.qers = vec![crate::Qer { mbr: Some(rates), qfi: Qfi::new(9), ..qer(1) }];
    let change = |update| Change { update_qers: vec![update], ..Change::default() };
    let gates = Some((Gate::Closed, Gate::Open));
    let next = rules.change(change(QerUpdate { id: QerId(1), gates, ..QerUpdate::default() })).unwrap();
    assert_eq!(next.qers[0], crate::Qer { uplink_gate: Gate::Closed, ..rules.qers[0].clone() });
    let packet_rates = PacketRates { uplink: Some(PacketRate { packets: 9, window_s: 60 }), downlink: None };
    let update = QerUpdate {
        mbr: Some(None),
        packet_rates: Some(packet_rates),
        correlation: Some(Some(7)),
        gbr: Some(Some(rates)),
        qfi: Some(None),
        reflective: Some(true),
        id: QerId(1),
        gates: None,
    };
    let next = rules.change(change(update)).unwrap();
    let (gbr, correlation) = (Some(rates), Some(7));
    assert_eq!(next.qers[0], crate::Qer { gbr, correlation, packet_rates, reflective: true, ..qer(1) });
    let none = QerUpdate { id: QerId(1), correlation: Some(None), ..QerUpdate::default() };
    assert_eq!(next.change(change(none)).unwrap().qers[0].correlation, None);
}

#[test]
fn a_urr_gets_a_new_quota_and_keeps_its_threshold() {
    let volume = |total| Some(Volume { total: Some(total), ..Volume::default() });
    let mut rules = rules();
    rules.urrs = vec![crate::Urr { volume_threshold: volume(10), time_quota_s: Some(5), ..urr(1) }];
    let update = UrrUpdate {
        id: UrrId(1),
        volume_quota: Some(volume(100)),
        time_quota_s: Some(None),
        quota_far: Some(Some(FarId(2))),
        ..UrrUpdate::default()
    };
    let next = rules.change(Change { update_urrs: vec![update], ..Change::default() }).unwrap();
    let expected = crate::Urr {
        volume_threshold: volume(10),
        volume_quota: volume(100),
        quota_grant: 1,
        quota_far: Some(FarId(2)),
        ..urr(1)
    };
    assert_eq!(next.urrs[0], expected);
    let same = UrrUpdate { id: UrrId(1), volume_quota: Some(volume(100)), ..UrrUpdate::default() };
    let again = next.change(Change { update_urrs: vec![same], ..Change::default() }).unwrap();
    assert_eq!(again.urrs, [crate::Urr { quota_grant: 2, ..expected }]);
}

#[test]
fn a_urr_in_the_place_of_another_has_a_quota_of_its_own() {
    let old = Rules { urrs: vec![crate::Urr { quota_grant: 7, ..urr(1) }], ..rules() };
    let create = Rules { urrs: vec![urr(1)], ..Rules::default() };
    let change = Change { remove_urrs: vec![UrrId(1)], create, ..Change::default() };
    assert_eq!(old.change(change).unwrap().urrs[0].quota_grant, 8);
}

#[test]
fn a_bar_is_updated() {
    let mut rules = rules();
    rules.bars = vec![crate::Bar { suggested_packets: Some(7), ..bar(1) }];
    let update = BarUpdate {
        id: BarId(1),
        notification_delay_50ms: Some(4),
        suggested_packets: Some(None),
        ..BarUpdate::default()
    };
    let next = rules.change(Change { update_bars: vec![update], ..Change::default() }).unwrap();
    assert_eq!(next.bars, [crate::Bar { notification_delay_50ms: 4, ..bar(1) }]);
}

#[test]
fn a_pdr_is_moved_to_other_rules() {
    let create =
        Rules { fars: vec![drop_far(3)], qers: vec![qer(1)], urrs: vec![urr(1)], ..Rules::default() };
    let update = PdrUpdate {
        id: PdrId(1),
        precedence: Some(1),
        far: Some(FarId(3)),
        qers: Some(vec![QerId(1)].into()),
        urrs: Some(vec![UrrId(1)].into()),
        ..PdrUpdate::default()
    };
    let next = rules().change(Change { create, update_pdrs: vec![update], ..Change::default() }).unwrap();
    let expected = crate::Pdr {
        precedence: 1,
        far: FarId(3),
        qers: vec![QerId(1)].into(),
        urrs: vec![UrrId(1)].into(),
        ..rules().pdrs[0].clone()
    };
    assert_eq!(next.pdrs, [expected, rules().pdrs[1].clone()]);
}

#[test]
fn removing_the_far_of_a_pdr_is_refused() {
    let change = Change { remove_fars: vec![FarId(1)], ..Change::default() };
    assert!(matches!(rules().change(change), Err(RuleError::Dangling(RuleRef::Pdr(PdrId(1)), _))));
}

/// As one control plane in use says nothing but the removal (TS 29.244 6.3.3.3).
#[test]
fn a_removed_rule_is_named_nowhere() {
    let mut before = rules();
    before.qers = vec![qer(1), qer(2)];
    before.urrs = vec![urr(1), crate::Urr { linked: vec![UrrId(1)], quota_far: Some(FarId(3)), ..urr(2) }];
    before.bars = vec![bar(1)];
    before.fars.push(drop_far(3));
    before.fars[1].bar = Some(BarId(1));
    before.pdrs[0].qers = vec![QerId(1), QerId(2)].into();
    before.pdrs[0].urrs = vec![UrrId(1), UrrId(2)].into();
    let change = Change {
        remove_fars: vec![FarId(3)],
        remove_qers: vec![QerId(1)],
        remove_urrs: vec![UrrId(1)],
        remove_bars: vec![BarId(1)],
        ..Change::default()
    };
    let after = before.change(change).unwrap();
    assert_eq!((&after.pdrs[0].qers[..], &after.pdrs[0].urrs[..]), (&[QerId(2)][..], &[UrrId(2)][..]));
    assert_eq!((&after.urrs[..], &after.fars), (&[urr(2)][..], &rules().fars));
}

#[test]
fn what_a_change_says_of_a_removed_rule_itself_holds() {
    let mut before = rules();
    before.qers = vec![qer(1)];
    before.pdrs[0].qers = vec![QerId(1)].into();
    let update = |qers| PdrUpdate { id: PdrId(1), qers: Some(qers), ..PdrUpdate::default() };
    let change =
        |qers| Change { remove_qers: vec![QerId(1)], update_pdrs: vec![update(qers)], ..Change::default() };
    assert!(matches!(before.change(change(vec![QerId(1)].into())), Err(RuleError::Dangling(..))));
    assert_eq!(before.change(change(vec![].into())), Ok(rules()));
    // One in its place is named as the old one was.
    let create = Rules { qers: vec![qer(1)], ..Rules::default() };
    let change = Change { remove_qers: vec![QerId(1)], create, ..Change::default() };
    assert_eq!(before.change(change), Ok(before.clone()));
}

#[test]
fn a_refused_change_leaves_everything_as_it_was() {
    let before = rules();
    let change = Change { remove_pdrs: vec![PdrId(1)], remove_bars: vec![BarId(1)], ..Change::default() };
    assert_eq!(before.change(change), Err(RuleError::Unknown(RuleRef::Bar(BarId(1)))));
    assert_eq!(before, rules());
}

#[test]
fn unknown_rules_are_named() {
    let refused = |change: Change| rules().change(change).unwrap_err();
    let unknown = |rule| RuleError::Unknown(rule);
    let gone = RuleRef::Pdr(PdrId(40));
    assert_eq!(refused(Change { remove_pdrs: vec![PdrId(40)], ..Change::default() }), unknown(gone));
    let update = PdrUpdate { id: PdrId(40), ..PdrUpdate::default() };
    assert_eq!(refused(Change { update_pdrs: vec![update], ..Change::default() }), unknown(gone));
    let update = QerUpdate { id: QerId(3), ..QerUpdate::default() };
    let change = Change { update_qers: vec![update], ..Change::default() };
    assert_eq!(refused(change), unknown(RuleRef::Qer(QerId(3))));
    let change = Change { remove_urrs: vec![UrrId(4)], ..Change::default() };
    assert_eq!(refused(change), unknown(RuleRef::Urr(UrrId(4))));
}

#[test]
fn removing_a_rule_twice_is_refused() {
    let change = Change { remove_pdrs: vec![PdrId(1), PdrId(1)], ..Change::default() };
    assert_eq!(rules().change(change), Err(RuleError::Unknown(RuleRef::Pdr(PdrId(1)))));
}

fn restated(rules: &Rules, mut change: Change) -> (Vec<RuleRef>, Result<Rules, RuleError>) {
    (change.restate(rules), rules.change(change))
}

#[test]
fn rules_that_are_gone_can_be_removed_again() {
    let change = Change {
        remove_pdrs: vec![PdrId(1), PdrId(40)],
        remove_fars: vec![FarId(40)],
        remove_qers: vec![QerId(3)],
        remove_urrs: vec![UrrId(4)],
        remove_bars: vec![BarId(5)],
        ..Change::default()
    };
    let (again, after) = restated(&rules(), change);
    assert_eq!(again.len(), 5, "{again:?}");
    assert_eq!(after, rules().change(Change { remove_pdrs: vec![PdrId(1)], ..Change::default() }));
    // Of what is there, one removal is enough.
    let twice = Change { remove_pdrs: vec![PdrId(1), PdrId(1)], ..Change::default() };
    assert_eq!(restated(&rules(), twice).1, Err(RuleError::Unknown(RuleRef::Pdr(PdrId(1)))));
}

#[test]
fn rules_that_are_there_can_be_created_again() {
    let mut before = rules();
    (before.qers, before.bars) = (vec![qer(1)], vec![bar(1)]);
    before.urrs =
        vec![urr(1), crate::Urr { time_quota_s: Some(5), quota_grant: 3, starts_awaited: 2, ..urr(2) }];
    before.pdrs[0].qers = vec![QerId(1)].into();
    before.fars[1].bar = Some(BarId(1));
    let create = Rules {
        fars: vec![drop_far(1)],
        qers: vec![crate::Qer { qfi: Qfi::new(7), ..qer(1) }],
        urrs: vec![
            crate::Urr { time_quota_s: Some(9), ..urr(1) },
            crate::Urr { time_quota_s: Some(5), ..urr(2) },
        ],
        bars: vec![crate::Bar { suggested_packets: Some(7), ..bar(1) }],
        ..Rules::default()
    };
    let (again, after) = restated(&before, Change { create: create.clone(), ..Change::default() });
    assert_eq!(again.len(), 5, "{again:?}");
    let after = after.unwrap();
    assert_eq!((&after.qers, &after.bars, &after.pdrs), (&create.qers, &create.bars, &before.pdrs));
    assert_eq!(after.fars, [before.fars[1].clone(), drop_far(1)]);
    // One goes on as it was, and the other begins.
    let begun = crate::Urr { time_quota_s: Some(9), quota_grant: before.urrs[0].quota_grant + 1, ..urr(1) };
    assert_eq!(after.urrs, [before.urrs[1].clone(), begun]);

    let twice = Rules { bars: vec![bar(1), bar(1)], ..Rules::default() };
    let refused = Err(RuleError::Duplicate(RuleRef::Bar(BarId(1))));
    assert_eq!(restated(&before, Change { create: twice, ..Change::default() }).1, refused);
    let pdr = Rules { pdrs: vec![before.pdrs[0].clone()], ..Rules::default() };
    let refused = Err(RuleError::Duplicate(RuleRef::Pdr(PdrId(1))));
    assert_eq!(restated(&before, Change { create: pdr, ..Change::default() }).1, refused);
}

#[test]
fn a_rule_can_be_replaced_within_one_change() {
    let create = Rules { fars: vec![drop_far(2)], ..Rules::default() };
    let change = Change { remove_fars: vec![FarId(2)], create, ..Change::default() };
    assert_eq!(rules().change(change), Ok(rules()));
}

/// A thousand of each updated and five hundred of each replaced: quadratic work would take many times the bound.
#[test]
fn a_change_of_a_thousand_rules_takes_linear_time() {
    let all = 1..=limits::PDRS as u16;
    let full = Rules {
        pdrs: all.clone().map(|id| pdr(id, pdi(Interface::Core), id.into())).collect(),
        fars: all.clone().map(|id| drop_far(id.into())).collect(),
        qers: all.clone().map(|id| qer(id.into())).collect(),
        urrs: all.clone().map(|id| urr(id.into())).collect(),
        bars: vec![],
    };
    let doomed = || all.clone().take(500);
    let create = Rules {
        pdrs: full.pdrs.iter().take(500).cloned().collect(),
        fars: full.fars.iter().take(500).cloned().collect(),
        ..Rules::default()
    };
    let change = Change {
        remove_pdrs: doomed().map(PdrId).collect(),
        remove_fars: doomed().map(|id| FarId(id.into())).collect(),
        create,
        update_pdrs: all.clone().map(|id| PdrUpdate { id: PdrId(id), ..PdrUpdate::default() }).collect(),
        update_fars: all
            .clone()
            .map(|id| FarUpdate { id: FarId(id.into()), ..FarUpdate::default() })
            .collect(),
        ..Change::default()
    };
    let rounds: Vec<Change> = (0..5).map(|_| change.clone()).collect();
    let fastest = rounds.into_iter().map(|change| timed(&full, change)).min().unwrap();
    assert!(fastest < Duration::from_millis(20), "{fastest:?}");
}

fn timed(rules: &Rules, change: Change) -> Duration {
    let start = Instant::now();
    let next = rules.change(change).unwrap();
    let taken = start.elapsed();
    assert_eq!(next.pdrs.len(), limits::PDRS);
    taken
}

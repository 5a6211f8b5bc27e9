//! Volume quotas: what their end stops, where packets go then, and who is told.

use super::observe::{explain, question};
use super::usage::{downlink, query, told, with_urr};
use crate::counters::DropReason;
use crate::fixture::{Bench, METERED, N3, N6, metered};
use dplink::{Command, Desired, Notice, Outcome, UsageCause};
use rules::{
    ApplyAction, Far, FarId, ForwardingParameters, Instance, Interface, OuterHeaderCreation, Rules, Seid,
    Since, Teid, Triggers, Urr, UrrId, Volume,
};

#[test]
fn a_new_quota_lets_packets_pass_again_and_the_same_one_does_not() {
    let mut bench = Bench::new();
    let mut rules = metered();
    bench.put(METERED, 1, rules.clone());
    bench.settle();
    let pass = |bench: &mut Bench| {
        (0..4).for_each(|_| bench.receive(N6, &downlink(32)));
        bench.settle();
        bench.sent(N3).len()
    };
    assert_eq!(pass(&mut bench), 2);
    rules.pdrs[0].precedence = 7;
    bench.put(METERED, 2, rules.clone());
    bench.settle();
    assert_eq!(pass(&mut bench), 0);
    let former = query(&mut bench).quota_grant;
    rules.urrs[0].quota_grant += 1;
    bench.put(METERED, 3, rules);
    bench.settle();
    assert_eq!(pass(&mut bench), 2);
    // Counts say under which they were told.
    assert_eq!([former, query(&mut bench).quota_grant], [1, 2]);
}

/// Who gives it says from where it counts: that may be before this session came here. Each packet takes 60 bytes.
#[test]
fn a_quota_counts_from_where_it_says() {
    let mut bench = Bench::new();
    let mut rules = metered();
    let mut revision = 0;
    let mut pass = |bench: &mut Bench, rules: &Rules| {
        revision += 1;
        bench.put(METERED, revision, rules.clone());
        (0..6).for_each(|_| bench.receive(N6, &downlink(32)));
        bench.settle();
        bench.sent(N3).len()
    };
    let since = |downlink| Some(Since { uplink: 0, downlink });
    rules.urrs[0].volume_quota = Some(Volume { total: Some(240), ..Volume::default() });
    rules.urrs[0].quota_since = since(-70);
    assert_eq!(pass(&mut bench, &rules), 3, "170 are left");
    rules.urrs[0].quota_since = since(60);
    assert_eq!(pass(&mut bench, &rules), 0, "it is the same quota");
    rules.urrs[0].quota_grant += 1;
    assert_eq!(pass(&mut bench, &rules), 2, "of 240, 120 are used");
    rules.urrs[0].volume_quota = Some(Volume { total: Some(300), ..Volume::default() });
    assert_eq!(pass(&mut bench, &rules), 1, "it is more of the same");
    rules.urrs[0].quota_grant += 1;
    rules.urrs[0].quota_since = None;
    assert_eq!(pass(&mut bench, &rules), 5, "from here");
}

/// The rules of [`METERED`], and what its URR's packets do once 100 bytes have passed.
fn with_quota_far(far: Far) -> Rules {
    let mut rules = metered();
    rules.urrs[0].quota_far = Some(far.id);
    rules.fars.push(far);
    rules
}

/// Into a tunnel to a station of the core.
fn portal() -> Far {
    let tunnel = OuterHeaderCreation::gtpu(Teid(0x999), [10, 50, 0, 1].into());
    let forwarding = ForwardingParameters {
        destination_interface: Interface::Core,
        instance: Instance::DEFAULT,
        outer_header_creation: Some(tunnel),
        dscp: None,
        policy: None,
    };
    Far { id: FarId(3), forwarding: Some(forwarding), ..metered().fars[0].clone() }
}

/// A quota for URR 1 of 100 bytes, of which each packet takes 60.
#[test]
fn beyond_a_quota_packets_go_by_its_far_until_there_is_a_new_one() {
    let mut bench = Bench::new();
    let rules = with_quota_far(portal());
    bench.put(METERED, 1, rules.clone());
    bench.settle();
    let mut causes = Vec::new();
    for _ in 0..4 {
        bench.receive(N6, &downlink(32));
        causes.extend(told(&bench.settle()));
    }
    assert_eq!(causes, [(UsageCause::VolumeQuota, 120)], "told once, by the packet that uses it up");
    assert_eq!((bench.sent(N3).len(), bench.sent(N6).len()), (2, 2));
    assert_eq!(query(&mut bench).downlink_packets, 4, "what leaves is counted, wherever it goes");
    let mut more = rules;
    more.urrs[0].quota_grant += 1;
    bench.put(METERED, 2, more);
    bench.settle();
    bench.receive(N6, &downlink(32));
    bench.settle();
    assert_eq!((bench.sent(N3).len(), bench.sent(N6).len()), (1, 0));
    assert!(bench.worker.books().balanced());
}

/// Where the FAR keeps packets, they go once there is a new quota.
#[test]
fn a_quota_may_be_waited_for() {
    let mut bench = Bench::new();
    let wait = Far { id: FarId(3), apply_action: ApplyAction::Buffer, ..metered().fars[0].clone() };
    let mut rules = with_quota_far(wait);
    bench.put(METERED, 1, rules.clone());
    bench.settle();
    for _ in 0..3 {
        bench.receive(N6, &downlink(32));
        bench.settle();
    }
    assert_eq!((bench.sent(N3).len(), bench.worker.books().held), (2, 1));
    // Nobody sleeps.
    let asked = || question([10, 60, 0, METERED as u8], true);
    assert_eq!(explain(&mut bench, asked()).outcome, Outcome::KeptBeyondQuota);
    rules.urrs[0].quota_grant += 1;
    bench.put(METERED, 2, rules.clone());
    bench.settle();
    assert_eq!((bench.sent(N3).len(), bench.worker.books().held), (1, 0));
    // Of three that come together two are too many for what is left; then one.
    (0..3).for_each(|_| bench.receive(N6, &downlink(32)));
    bench.settle();
    assert_eq!((bench.sent(N3).len(), bench.worker.books().held), (1, 2));
    assert_eq!(explain(&mut bench, asked()).outcome, Outcome::Dropped { reason: "buffer_full".to_owned() });
    rules.urrs[0].volume_quota = Some(Volume { total: Some(60), ..Volume::default() });
    for (revision, waiting) in [(3, 1), (4, 0)] {
        rules.urrs[0].quota_grant += 1;
        bench.put(METERED, revision, rules.clone());
        bench.settle();
        assert_eq!((bench.sent(N3).len(), bench.worker.books().held), (1, waiting));
    }
    assert_eq!(bench.worker.counters().drops[DropReason::QuotaExhausted as usize], 0);
}

/// Where a packet of a vector uses the quota up, those behind it go elsewhere already.
#[test]
fn no_vector_overdraws_a_quota() {
    let mut bench = Bench::new();
    bench.put(METERED, 1, with_quota_far(portal()));
    bench.settle();
    (0..10).for_each(|_| bench.receive(N6, &downlink(32)));
    bench.settle();
    let late = bench.worker.counters().drops[DropReason::QuotaExhausted as usize];
    assert_eq!((bench.sent(N3).len(), bench.sent(N6).len(), late), (2, 8, 0));
    (0..10).for_each(|_| bench.receive(N6, &downlink(32)));
    bench.settle();
    assert_eq!((bench.sent(N3).len(), bench.sent(N6).len()), (0, 10));
}

/// [`with_quota_far`], and a second URR with a quota of so many bytes that has no FAR, named first or last.
fn with_an_end(far: Far, total: u64, is_first: bool) -> Rules {
    let mut rules = with_quota_far(far);
    let volume_quota = Some(Volume { total: Some(total), ..Volume::default() });
    rules.urrs.push(Urr { id: UrrId(2), volume_quota, quota_far: None, ..rules.urrs[0].clone() });
    let named = if is_first { [2, 1] } else { [1, 2] }.map(UrrId);
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = named.to_vec().into());
    rules
}

/// TS 29.244 5.2.2.2.1 is of each URR by itself: whichever is named first, and used up first, one that terminates does so, from the
/// next packet of a vector on.
#[test]
fn a_quota_without_a_far_ends_what_another_leads_on() {
    for (is_first, are_together) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut bench = Bench::new();
        bench.put(METERED, 1, with_an_end(portal(), 240, is_first));
        bench.settle();
        let mut causes = Vec::new();
        for _ in 0..10 {
            bench.receive(N6, &downlink(32));
            if !are_together {
                causes.extend(told(&bench.settle()));
            }
        }
        causes.extend(told(&bench.settle()));
        let case = format!("first: {is_first}, together: {are_together}");
        assert_eq!((bench.sent(N3).len(), bench.sent(N6).len()), (2, 2), "{case}");
        assert_eq!(bench.worker.counters().drops[DropReason::QuotaExhausted as usize], 6, "{case}");
        assert_eq!(causes, [(UsageCause::VolumeQuota, 120), (UsageCause::VolumeQuota, 240)], "{case}");
        assert!(bench.worker.books().balanced());
    }
}

/// Then packets go by the FAR of their PDR, in a vector as alone: one that keeps them does so again.
#[test]
fn a_quota_without_a_far_ends_what_stands_in_from_the_next_packet_on() {
    let mut bench = Bench::new();
    let mut rules = with_an_end(portal(), 120, false);
    rules.urrs[0].volume_quota = Some(Volume { total: Some(0), ..Volume::default() });
    rules.fars[1].apply_action = ApplyAction::Buffer;
    bench.put(METERED, 1, rules);
    bench.settle();
    (0..4).for_each(|_| bench.receive(N6, &downlink(32)));
    bench.settle();
    assert_eq!((bench.sent(N6).len(), bench.worker.books().held), (2, 2));
    assert_eq!(bench.worker.counters().drops[DropReason::QuotaExhausted as usize], 0);
}

/// Of two quotas of nothing, the one that ends packets is missed first.
#[test]
fn a_quota_of_nothing_that_ends_packets_is_told_before_one_that_leads_them_on() {
    for is_first in [false, true] {
        let mut bench = Bench::new();
        let mut rules = with_an_end(portal(), 0, is_first);
        rules.urrs[0].volume_quota = rules.urrs[1].volume_quota;
        let whose = |bench: &mut Bench| {
            bench.receive(N6, &downlink(32));
            let urr = |notice| match notice {
                Notice::Usage { cause: UsageCause::VolumeQuota, counts, .. } => {
                    counts.first().map(|it| it.urr)
                }
                _ => None,
            };
            bench.settle().into_iter().find_map(urr)
        };
        bench.put(METERED, 1, rules.clone());
        bench.settle();
        assert_eq!([whose(&mut bench), whose(&mut bench)], [Some(UrrId(2)), None]);
        rules.urrs[1].quota_grant += 1;
        rules.urrs[1].volume_quota = Some(Volume { total: Some(1_000), ..Volume::default() });
        bench.put(METERED, 2, rules);
        bench.settle();
        assert_eq!([whose(&mut bench), whose(&mut bench)], [Some(UrrId(1)), None]);
        assert_eq!(bench.sent(N6).len(), 2);
    }
}

/// It was never used up: who gave it is told by the first packet that misses it, wherever that goes, once for each time it is given,
/// and again where it may not have been heard.
#[test]
fn a_quota_of_nothing_is_told_by_the_first_packet_that_misses_it() {
    for goes_on in [true, false] {
        let mut bench = Bench::new();
        let mut rules = with_quota_far(portal());
        rules.urrs[0].volume_quota = Some(Volume { total: Some(0), ..Volume::default() });
        rules.urrs[0].quota_far = rules.urrs[0].quota_far.filter(|_| goes_on);
        let ends = |bench: &mut Bench| {
            bench.receive(N6, &downlink(32));
            told(&bench.settle()).into_iter().map(|(cause, _)| cause).collect::<Vec<_>>()
        };
        for grant in 2..4 {
            rules.urrs[0].quota_grant = grant;
            bench.put(METERED, grant.into(), rules.clone());
            assert_eq!(told(&bench.settle()), []);
            assert_eq!([ends(&mut bench), ends(&mut bench)], [vec![UsageCause::VolumeQuota], vec![]]);
        }
        bench.engine.handle(Command::ResyncBegin { recovery_time_stamp: 7 }).unwrap();
        bench.engine.handle(Command::Put(Desired::new(Seid(METERED), 3, rules))).unwrap();
        bench.engine.handle(Command::ResyncEnd).unwrap();
        bench.settle();
        assert_eq!([ends(&mut bench), ends(&mut bench)], [vec![UsageCause::VolumeQuota], vec![]]);
        assert_eq!((bench.sent(N3).len(), bench.sent(N6).len()), (0, if goes_on { 6 } else { 0 }));
    }
}

/// TS 29.244 5.4.11: who waits for traffic to start may let none pass until then.
#[test]
fn a_start_is_told_by_a_packet_that_there_is_no_quota_for() {
    let mut bench = Bench::new();
    let quota = Some(Volume { total: Some(0), ..Volume::default() });
    let (id, triggers) = (UrrId(1), Triggers::START_OF_TRAFFIC);
    bench.put(METERED, 1, with_urr(Urr { id, triggers, volume_quota: quota, ..Urr::default() }));
    bench.settle();
    bench.receive(N6, &downlink(32));
    let causes = told(&bench.settle());
    assert!(matches!(causes[..], [(UsageCause::StartOfTraffic(Some(_)), 0), (UsageCause::VolumeQuota, 0)]));
    bench.receive(N6, &downlink(32));
    assert_eq!((told(&bench.settle()), bench.sent(N3).len()), (vec![], 0));
}

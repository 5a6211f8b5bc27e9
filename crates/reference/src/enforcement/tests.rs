use super::*;
use crate::detection::first_pdr;
use crate::ip::{self, UserPacket};
use crate::meters::{UNITS_PER_NS, cost};
use crate::setup::PortSetup;
use ipnet::Ipv4Net;
use rules::{
    BitRates, DroppedDownlink, FTeid, FarId, Instance, Interface, PacketRate, PacketRates, Pdi, PdrId, Teid,
    Urr, Volume,
};
use std::net::Ipv4Addr;

const US: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 2);
const UE: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);
const TEID: Teid = Teid(1);
const BURST_NS: u64 = 10_000_000;
const MS: u64 = 1_000_000;

fn f_teid() -> FTeid {
    FTeid { teid: TEID, address: US.into() }
}

/// One PDR each way, both with all QERs and URRs, both forwarding.
fn rules(qers: Vec<Qer>, urrs: Vec<Urr>) -> Rules {
    let pdr = |id, source_interface, f_teid: Option<FTeid>| Pdr {
        id: PdrId(id),
        precedence: 1,
        pdi: Pdi {
            source_interface,
            instance: Instance::DEFAULT,
            f_teid,
            ue_ipv4: Some(UE),
            ue_ipv6: None,
            framed_routes: vec![],
            qfis: vec![],
            sdf_filters: vec![],
            application: None,
            ethernet: None,
        },
        outer_header_removal: f_teid.is_some(),
        far: FarId(1),
        qers: qers.iter().map(|qer| qer.id).collect(),
        urrs: urrs.iter().map(|urr| urr.id).collect(),
    };
    let destination_interface = Interface::Core;
    let forwarding = ForwardingParameters {
        destination_interface,
        instance: Instance::DEFAULT,
        outer_header_creation: None,
        dscp: None,
        policy: None,
    };
    let far = Far {
        id: FarId(1),
        apply_action: ApplyAction::Forward,
        notify: false,
        forwarding: Some(forwarding),
        duplicating: false,
        duplicates: vec![],
        bar: None,
        redirect: None,
        enrichment: None,
    };
    let pdrs = vec![pdr(1, Interface::Access, Some(f_teid())), pdr(2, Interface::Core, None)];
    Rules { pdrs, fars: vec![far], qers, urrs, bars: vec![] }
}

fn qer(id: u32, kbps: u64) -> Qer {
    Qer {
        id: QerId(id),
        uplink_gate: Gate::Open,
        downlink_gate: Gate::Open,
        mbr: Some(BitRates { uplink_kbps: kbps, downlink_kbps: kbps }),
        packet_rates: PacketRates::default(),
        correlation: None,
        gbr: None,
        qfi: None,
        reflective: false,
    }
}

fn urr(id: u32) -> Urr {
    Urr { id: UrrId(id), ..Urr::default() }
}

fn quota(total: Option<u64>, uplink: Option<u64>) -> Option<Volume> {
    Some(Volume { total, uplink, downlink: None })
}

/// An IP packet of so many bytes.
fn arrival(source: Interface, bytes: usize) -> Arrival {
    let new = ip::New { protocol: ip::ICMP, traffic_class: 0, hops: 64 };
    let payload = vec![0; bytes - 20];
    let (from, to, tunnel) = match source {
        Interface::Access => (
            UE,
            SERVER,
            Some(crate::detection::Tunnel {
                f_teid: f_teid(),
                qfi: None,
                reflective: false,
                paging_policy: None,
            }),
        ),
        _ => (SERVER, UE, None),
    };
    let packet = UserPacket::read(&ip::packet(from.into(), to.into(), new, &payload)).unwrap();
    Arrival { port: 0, source, instance: Instance::DEFAULT, tunnel, relayed: vec![], packet }
}

/// One port of the core side.
fn setup(address: Ipv4Addr) -> Setup {
    let port = PortSetup {
        interface: Interface::Core,
        instance: Instance::DEFAULT,
        mac: [2; 6],
        ipv4: Ipv4Net::new(address, 24).unwrap(),
        ipv6: None,
        mtu: 1_500,
        vlan: None,
        mss_clamp: false,
    };
    Setup { burst_ns: BURST_NS, catch_up_ns: 0, ..Setup::new(vec![port]) }
}

fn decide(
    session: &mut Session,
    arrival: &Arrival,
    moment: Moment<'_>,
) -> Result<ForwardingParameters, DropReason> {
    let pdr = first_pdr(&session.rules, arrival).unwrap().clone();
    match session.decide(&pdr, arrival, moment)?.action {
        Action::Forward(to) => Ok(to),
        // Kept, for these tests.
        Action::Buffer => Ok(ForwardingParameters {
            destination_interface: Interface::Core,
            instance: Instance::DEFAULT,
            outer_header_creation: None,
            dscp: None,
            policy: None,
        }),
        Action::Stop(stopped, _) => Err(stopped.reason()),
        Action::Drop(reason) => Err(reason),
        Action::Answer => Err(DropReason::Redirected),
    }
}

/// The reason of the drop, if it is one.
fn send(session: &mut Session, source: Interface, bytes: usize, now_ns: u64) -> Option<DropReason> {
    let setup = setup(Ipv4Addr::new(10, 50, 0, 2));
    decide(session, &arrival(source, bytes), Moment { now_ns, setup: &setup, part_of: None, waits: false })
        .err()
}

#[test]
fn a_byte_at_a_megabit_takes_eight_microseconds() {
    assert_eq!(cost(1, 1_000), 8_000 * UNITS_PER_NS);
    assert_eq!(cost(1_500, 100_000_000), 120 * UNITS_PER_NS);
}

/// 8 Mb/s offered to 1 Mb/s for ten seconds: 1,250 packets of 1,000 bytes, and what the burst lets ahead.
#[test]
fn a_rate_is_held_each_way_for_itself() {
    let mut session = Session::new(Seid(1), rules(vec![qer(1, 1_000)], vec![]), &[], 0);
    for source in [Interface::Access, Interface::Core] {
        let passed = (0..10_000).filter(|ms| send(&mut session, source, 1_000, ms * MS).is_none()).count();
        assert!((1_250..=1_252).contains(&passed), "{passed}");
    }
}

/// The burst is 10 ms: at 800 kb/s, where a packet of 1,000 bytes takes 10 ms, two pass at once and not three.
#[test]
fn a_packet_passes_while_the_meter_is_not_further_ahead_than_the_burst() {
    let mut session = Session::new(Seid(1), rules(vec![qer(1, 800)], vec![]), &[], 0);
    let mut at = |now_ns| send(&mut session, Interface::Access, 1_000, now_ns);
    let refused = Some(DropReason::RateExceeded);
    assert_eq!([at(0), at(0), at(0)], [None, None, refused]);
    assert_eq!([at(10 * MS - 1), at(10 * MS)], [refused, None]);
}

/// Three in a minute, which begins with the first.
#[test]
fn packets_are_limited_in_windows() {
    let uplink = Some(PacketRate { packets: 3, window_s: 60 });
    let packet_rates = PacketRates { uplink, downlink: None };
    let limited = Qer { mbr: None, packet_rates, ..qer(1, 1) };
    let mut session = Session::new(Seid(1), rules(vec![limited], vec![]), &[], 0);
    let passed = |session: &mut Session, source, seconds: std::ops::Range<u64>| {
        seconds.filter(|second| send(session, source, 100, second * 1_000 * MS).is_none()).count()
    };
    assert_eq!(passed(&mut session, Interface::Access, 5..65), 3);
    assert_eq!(passed(&mut session, Interface::Access, 65..67), 2);
    assert_eq!(passed(&mut session, Interface::Core, 5..65), 60);
}

/// A slow meter in front of a fast one must not eat the fast one's allowance.
#[test]
fn a_packet_that_one_meter_refuses_is_charged_to_none() {
    let mut session = Session::new(Seid(1), rules(vec![qer(1, 80), qer(2, 800)], vec![]), &[], 0);
    assert_eq!(send(&mut session, Interface::Access, 1_000, 0), None);
    let fast = session.meters[1].uplink.arrival;
    assert_eq!(fast, 10 * MS * UNITS_PER_NS);
    assert_eq!(send(&mut session, Interface::Access, 1_000, 0), Some(DropReason::RateExceeded));
    assert_eq!(session.meters[1].uplink.arrival, fast);
}

#[test]
fn new_rules_do_not_refill_a_meter() {
    let mut session = Session::new(Seid(1), rules(vec![qer(1, 80)], vec![]), &[], 0);
    assert_eq!(send(&mut session, Interface::Access, 1_000, 0), None);
    session.replace(rules(vec![qer(2, 80), qer(1, 80)], vec![]), &[], 0);
    assert_eq!(send(&mut session, Interface::Access, 1_000, 0), Some(DropReason::RateExceeded));
}

/// 1,000 bytes take 100 ms at 80 kb/s; what is left of them after half of that takes 20 ms at 200 kb/s, and 10 ms are let ahead.
#[test]
fn a_session_that_raises_a_shared_rate_shortens_what_is_left_to_wait() {
    let shared = |kbps| rules(vec![Qer { correlation: Some(1), ..qer(1, kbps) }], vec![]);
    let mut first = Session::new(Seid(1), shared(80), &[], 0);
    assert_eq!(send(&mut first, Interface::Access, 1_000, 0), None);
    let mut other = Session::new(Seid(2), shared(200), &first.shared_meters(), 50 * MS);
    let mut at = |now_ns| send(&mut other, Interface::Access, 1_000, now_ns);
    assert_eq!([at(60 * MS - 1), at(60 * MS)], [Some(DropReason::RateExceeded), None]);
}

#[test]
fn the_packet_that_crosses_a_quota_passes_and_the_next_does_not() {
    let limited = Urr { volume_quota: quota(Some(2_500), None), ..urr(1) };
    let mut session = Session::new(Seid(1), rules(vec![], vec![limited.clone(), urr(2)]), &[], 0);
    let pass = [Interface::Access, Interface::Core, Interface::Access];
    assert!(pass.iter().all(|source| send(&mut session, *source, 1_000, 0).is_none()));
    for source in [Interface::Access, Interface::Core] {
        assert_eq!(send(&mut session, source, 1_000, 0), Some(DropReason::QuotaExhausted));
    }
    let counts = UsageCounts {
        urr: UrrId(1),
        uplink_bytes: 2_000,
        downlink_bytes: 1_000,
        uplink_packets: 2,
        downlink_packets: 1,
        ..UsageCounts::default()
    };
    assert_eq!(session.counts(), [counts, UsageCounts { urr: UrrId(2), ..counts }]);
    // The same grant again gives nothing; another counts from now.
    session.replace(rules(vec![], vec![limited.clone()]), &[], 0);
    assert_eq!(send(&mut session, Interface::Core, 1_000, 0), Some(DropReason::QuotaExhausted));
    session.replace(rules(vec![], vec![Urr { quota_grant: 1, ..limited }]), &[], 0);
    assert_eq!(send(&mut session, Interface::Core, 1_000, 0), None);
    assert_eq!(session.counts()[0].downlink_bytes, 2_000);
}

/// One direction's limit reached is the quota reached (TS 29.244 5.2.2.2): nothing passes either way.
#[test]
fn a_quota_of_one_direction_stops_both() {
    let limited = Urr { volume_quota: quota(None, Some(1_000)), ..urr(1) };
    let mut session = Session::new(Seid(1), rules(vec![], vec![limited]), &[], 0);
    assert_eq!(send(&mut session, Interface::Core, 5_000, 0), None);
    assert_eq!(send(&mut session, Interface::Access, 1_000, 0), None);
    for source in [Interface::Access, Interface::Core] {
        assert_eq!(send(&mut session, source, 1_000, 0), Some(DropReason::QuotaExhausted));
    }
}

/// Both ways, by one limit for all that no rule limits; what a rule limits is held to that alone.
#[test]
fn the_nodes_own_limit_is_for_who_has_none() {
    // 40 kbit/s are 50 octets each 10 ms, and twice as much comes.
    let setup = Setup { session_mbr: qer(9, 40).mbr, ..setup(Ipv4Addr::new(10, 50, 0, 2)) };
    let passed = |qers: Vec<Qer>| {
        let mut session = Session::new(Seid(1), rules(qers, vec![]), &[], 0);
        [Interface::Access, Interface::Core].map(|source| {
            let moment =
                |at: u64| Moment { now_ns: at * 10 * MS, setup: &setup, part_of: None, waits: false };
            (0..100).filter(|at| decide(&mut session, &arrival(source, 100), moment(*at)).is_ok()).count()
        })
    };
    let up = |uplink_kbps| Qer { mbr: Some(BitRates { uplink_kbps, downlink_kbps: 0 }), ..qer(1, 0) };
    let few = PacketRates { uplink: Some(PacketRate { packets: 7, window_s: 9 }), downlink: None };
    assert_eq!(passed(vec![]), [51, 51]);
    assert_eq!(passed(vec![up(800)]), [100, 51], "0 is no limit");
    assert_eq!(passed(vec![Qer { mbr: None, packet_rates: few, ..qer(1, 0) }]), [7, 51]);
}

#[test]
fn a_rate_of_zero_is_none() {
    let mut session = Session::new(Seid(1), rules(vec![qer(1, 0)], vec![]), &[], 0);
    for _ in 0..10 {
        assert_eq!(send(&mut session, Interface::Access, 1_000_000, 0), None);
    }
}

/// A packet that would not be sent anyway costs nobody anything.
#[test]
fn what_cannot_leave_is_neither_counted_nor_charged() {
    let mut session = Session::new(Seid(1), rules(vec![qer(1, 80)], vec![urr(1)]), &[], 0);
    let mut last = arrival(Interface::Access, 1_000);
    last.packet.header.hops = 1;
    let beside_us = setup(Ipv4Addr::new(203, 0, 113, 2));
    let moment = Moment { now_ns: 0, setup: &beside_us, part_of: None, waits: false };
    assert_eq!(decide(&mut session, &last, moment), Err(DropReason::TtlExpired));
    let long = arrival(Interface::Access, 1_501);
    assert_eq!(decide(&mut session, &long, moment), Err(DropReason::MtuExceeded));
    let ours = setup(SERVER);
    let to_us = decide(
        &mut session,
        &arrival(Interface::Access, 1_000),
        Moment { now_ns: 0, setup: &ours, part_of: None, waits: false },
    );
    assert_eq!(to_us, Err(DropReason::ToOurselves));
    assert_eq!((session.counts()[0].uplink_packets, session.meters[0].uplink.arrival), (0, 0));
}

#[test]
fn what_qos_drops_is_counted_before_qos_only() {
    let urrs = vec![Urr { before_qos: true, ..urr(1) }, urr(2), Urr { inactive: true, ..urr(3) }];
    let mut session = Session::new(Seid(1), rules(vec![qer(1, 80)], urrs.clone()), &[], 0);
    assert_eq!(send(&mut session, Interface::Access, 1_000, 0), None);
    assert_eq!(send(&mut session, Interface::Access, 1_000, 0), Some(DropReason::RateExceeded));
    let shut = Qer { uplink_gate: Gate::Closed, ..qer(1, 80) };
    session.replace(rules(vec![shut], urrs), &[], 0);
    assert_eq!(send(&mut session, Interface::Access, 1_000, 0), Some(DropReason::GateClosed));
    let bytes: Vec<u64> = session.counts().iter().map(|counts| counts.uplink_bytes).collect();
    assert_eq!(bytes, [3_000, 1_000, 0]);
}

#[test]
fn what_is_dropped_or_kept_by_a_far_is_neither_counted_nor_charged() {
    for action in [ApplyAction::Drop, ApplyAction::Buffer] {
        let mut held = rules(vec![qer(1, 80)], vec![Urr { before_qos: true, ..urr(1) }]);
        held.fars[0].apply_action = action;
        let mut session = Session::new(Seid(1), held, &[], 0);
        let dropped = send(&mut session, Interface::Core, 1_000, 0);
        assert_eq!(dropped, (action == ApplyAction::Drop).then_some(DropReason::FarDrop));
        assert_eq!((session.counts()[0].downlink_packets, session.meters[0].downlink.arrival), (0, 0));
    }
}

#[test]
fn what_was_kept_and_is_not_wanted_counts_as_dropped() {
    let threshold = DroppedDownlink { packets: Some(9), bytes: None };
    let mut asleep = rules(vec![], vec![Urr { dropped_downlink: Some(threshold), ..urr(1) }]);
    asleep.fars[0].apply_action = ApplyAction::Buffer;
    let mut session = Session::new(Seid(1), asleep.clone(), &[], 0);
    for source in [Interface::Core, Interface::Access] {
        assert_eq!(send(&mut session, source, 1_000, 0), None);
    }
    assert_eq!(session.counts()[0].dropped_downlink_packets, 0);
    (0..2).for_each(|_| session.replace(asleep.clone(), &[], 0));
    let counts = session.counts()[0];
    assert_eq!((counts.dropped_downlink_packets, counts.dropped_downlink_bytes), (1, 1_000));
}

#[test]
fn a_used_up_quota_may_lead_elsewhere() {
    let limited = Urr { volume_quota: quota(Some(0), None), quota_far: Some(FarId(2)), ..urr(1) };
    let mut portal = rules(vec![], vec![limited]);
    let mut other = portal.fars[0].clone();
    other.id = FarId(2);
    other.forwarding.as_mut().unwrap().destination_interface = Interface::SgiLan;
    portal.fars.push(other);
    let mut session = Session::new(Seid(1), portal, &[], 0);
    let setup = setup(US);
    let to = decide(
        &mut session,
        &arrival(Interface::Access, 100),
        Moment { now_ns: 0, setup: &setup, part_of: None, waits: false },
    )
    .unwrap();
    assert_eq!(to.destination_interface, Interface::SgiLan);
}

/// Whichever is named first (TS 29.244 5.2.2.2.1 is of each URR by itself).
#[test]
fn a_used_up_quota_without_a_far_ends_what_others_lead_on() {
    let leading = Urr { volume_quota: quota(Some(1_000), None), quota_far: Some(FarId(2)), ..urr(1) };
    let ending = Urr { volume_quota: quota(Some(2_000), None), ..urr(2) };
    for urrs in [[leading.clone(), ending.clone()], [ending, leading]] {
        let mut rules = rules(vec![], urrs.into());
        let other = Far { id: FarId(2), ..rules.fars[0].clone() };
        rules.fars.push(other);
        let mut session = Session::new(Seid(1), rules, &[], 0);
        let sent: Vec<_> = (0..4).map(|_| send(&mut session, Interface::Access, 1_000, 0)).collect();
        let ended = Some(DropReason::QuotaExhausted);
        assert_eq!(sent, [None, None, ended, ended]);
    }
}

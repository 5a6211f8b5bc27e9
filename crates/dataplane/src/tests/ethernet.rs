//! Sessions that carry Ethernet frames, beyond what goldens show: limits, usage, paging, MAC addresses told, workers.

use crate::config::{Config, ConfigError};
use crate::counters::DropReason;
use crate::fixture::{Bench, FRAMES, N3, N6E, ethernet, with_ethernet};
use crate::worker::connect;
use dplink::{Command, Event, Notice, UsageCause};
use rules::{ApplyAction, Interface, Rules, SdfFilter, Seid, Triggers, Urr, UrrId, Volume};

const A: [u8; 6] = [2, 0, 0, 0, 10, 1];
const HOST: [u8; 6] = [2, 0, 0, 0, 12, 1];

pub(super) fn frame(from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
    [&to[..], &from, &[0x88, 0x92], &[7; 46]].concat()
}

/// The frame from the gNB with a user's frame in the tunnel of a session: as a golden has it, with another TEID and frame.
pub(super) fn in_tunnel(session: u64, frame: &[u8]) -> Vec<u8> {
    let mut all = crate::golden::file("frame_user/not_ip").remove(0);
    assert_eq!(all.len(), 50 + 60, "no container, and a frame of 60 bytes");
    all[46..50].copy_from_slice(&(0xff + session as u32).to_be_bytes());
    all[50..].copy_from_slice(frame);
    all
}

fn bench_with(change: impl Fn(&mut Rules)) -> Bench {
    let mut bench = Bench::over(&with_ethernet());
    for session in FRAMES {
        let mut rules = ethernet(session);
        change(&mut rules);
        assert_eq!(bench.put(session, 1, rules), None);
    }
    let notices = bench.settle();
    assert!(matches!(notices[..], [Notice::Applied { .. }, Notice::Applied { .. }, ..]), "{notices:?}");
    bench
}

fn asking(rules: &mut Rules) {
    rules.urrs = vec![Urr {
        id: UrrId(1),
        triggers: Triggers::MAC_ADDRESSES,
        ethernet_inactivity_s: Some(10),
        ..Urr::default()
    }];
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![UrrId(1)].into());
}

fn send(bench: &mut Bench, port: usize, frame: &[u8]) {
    bench.receive(port, frame);
    bench.now_ns += 1_000;
    bench.worker.turn(bench.now_ns);
    assert!(bench.worker.books().balanced(), "{:?}", bench.worker.books());
}

fn drops(bench: &Bench, reason: DropReason) -> u64 {
    bench.worker.counters().drops[reason as usize]
}

fn macs(notices: Vec<Notice>) -> Vec<(u64, Vec<[u8; 6]>)> {
    let told = notices.into_iter().filter_map(|notice| match notice {
        Notice::Macs { session, macs } => Some((session.0, macs.iter().map(|seen| seen.mac).collect())),
        _ => None,
    });
    let mut told: Vec<_> = told.collect();
    told.sort();
    told
}

/// A frame is not split, but the tunnel's datagram around it.
#[test]
fn a_frame_too_long_for_its_tunnel_goes_in_fragments() {
    let mut config = with_ethernet();
    config.ports[N3].mtu = 600;
    let mut bench = Bench::over(&config);
    assert_eq!(bench.put(120, 1, ethernet(120)), None);
    bench.settle();
    send(&mut bench, N3, &in_tunnel(120, &frame(A, HOST)));
    bench.sent(N3);
    let long = [&frame(HOST, A)[..], &[7; 1_000]].concat();
    send(&mut bench, N6E, &long);
    let sent = bench.sent(N3);
    let parts: Vec<_> = sent.iter().map(|frame| packet::ipv4::Packet::parse(&frame[14..]).unwrap()).collect();
    assert_eq!(parts.len(), 2);
    let whole: Vec<u8> = parts.iter().flat_map(|part| part.payload()).copied().collect();
    assert!(whole.ends_with(&long) && whole.len() - long.len() <= 24, "UDP, GTP-U and the frame");
    // A frame behind it in the vector stays behind it.
    bench.receive(N6E, &long);
    send(&mut bench, N6E, &frame(HOST, A));
    let lengths: Vec<usize> = bench.sent(N3).iter().map(Vec::len).collect();
    assert_eq!((lengths.len(), lengths[2]), (3, 14 + 36 + 60), "{lengths:?}");
}

/// The tags are the user's, behind the addresses.
#[test]
fn stations_are_told_with_their_tags() {
    let tagged = |tags: &[u8]| [&HOST[..], &A, tags, &[0x88, 0x92], &[7; 46][tags.len()..]].concat();
    for (tags, c_vlan, s_vlan) in [
        (&[0x81, 0, 0x60, 10][..], Some(10), None),
        (&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 10][..], Some(10), Some(7)),
        (&[0x91, 0, 0, 7, 0x81, 0, 0, 10][..], Some(10), Some(7)),
    ] {
        let mut bench = bench_with(asking);
        bench.settle();
        send(&mut bench, N3, &in_tunnel(120, &tagged(tags)));
        let told = bench.settle().into_iter().find_map(|notice| match notice {
            Notice::Macs { macs, .. } => Some(macs),
            _ => None,
        });
        assert_eq!(told, Some(vec![rules::SeenMac { mac: A, c_vlan, s_vlan }]));
    }
}

#[test]
fn stations_are_told_where_somebody_asks_and_when_they_are_silent() {
    let mut bench = bench_with(asking);
    bench.settle();
    send(&mut bench, N3, &in_tunnel(120, &frame(A, HOST)));
    assert_eq!(macs(bench.settle()), [(120, vec![A])]);
    send(&mut bench, N3, &in_tunnel(120, &frame(A, HOST)));
    assert_eq!(macs(bench.settle()), [], "nothing new");
    // It moves to the other user.
    send(&mut bench, N3, &in_tunnel(121, &frame(A, HOST)));
    assert_eq!(macs(bench.settle()), [(120, vec![]), (121, vec![A])]);
    // A control plane that has just come hears how things are.
    bench.engine.handle(Command::ResyncBegin { recovery_time_stamp: 7 }).unwrap();
    for session in FRAMES {
        let mut rules = ethernet(session);
        asking(&mut rules);
        assert!(matches!(bench.put(session, 1, rules), Some(Notice::Applied { .. })));
    }
    bench.engine.handle(Command::ResyncEnd).unwrap();
    assert_eq!(macs(bench.settle()), [(120, vec![]), (121, vec![A])]);
    bench.now_ns += 11_000_000_000;
    assert_eq!(macs(bench.settle()), [(121, vec![])]);
    send(&mut bench, N6E, &frame(HOST, A));
    assert_eq!(drops(&bench, DropReason::FrameUnknownStation), 1);
}

/// A later fragment shows no ports, but of which protocol it is.
#[test]
fn a_rule_for_a_protocol_takes_later_fragments_too() {
    let udp = "permit out 17 from any to assigned".parse().unwrap();
    let filter = SdfFilter { flow: Some(udp), ..SdfFilter::default() };
    let mut bench = bench_with(|rules| {
        rules.pdrs.iter_mut().for_each(|pdr| pdr.pdi.sdf_filters = vec![filter.clone()]);
    });
    for (protocol, count) in [(17, 1), (6, 0)] {
        let mut ip = [7; 46];
        packet::ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), protocol, 26)
            .unwrap()
            .write(&mut ip)
            .unwrap();
        (ip[7], ip[10], ip[11]) = (5, 0, 0);
        let checksum = packet::checksum::of(&ip[..20]);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        let frame = [&HOST[..], &A, &[8, 0], &ip].concat();
        send(&mut bench, N3, &in_tunnel(120, &frame));
        assert_eq!(bench.sent(N6E).len(), count, "{protocol}");
    }
}

/// Whatever stands for the address of a port of frames in its configuration.
#[test]
fn a_port_of_frames_has_no_address() {
    let ports = crate::state::Ports::new(&with_ethernet().ports).unwrap();
    assert!(!ports.is_ours_ipv4([0; 4]) && ports.is_ours_ipv4([10, 50, 0, 2]));
}

#[test]
fn nobody_who_did_not_ask_is_told() {
    let mut bench = bench_with(|_| ());
    send(&mut bench, N3, &in_tunnel(120, &frame(A, HOST)));
    assert_eq!(macs(bench.settle()), []);
}

#[test]
fn a_session_that_changes_keeps_its_stations_and_one_that_goes_does_not() {
    let mut bench = bench_with(|_| ());
    send(&mut bench, N3, &in_tunnel(120, &frame(A, HOST)));
    bench.put(120, 2, ethernet(120));
    bench.settle();
    send(&mut bench, N6E, &frame(HOST, A));
    assert_eq!(bench.sent(N3).len(), 1);
    bench.engine.handle(Command::Delete { session: Seid(120) }).unwrap();
    bench.settle();
    send(&mut bench, N6E, &frame(HOST, A));
    assert_eq!((bench.sent(N3).len(), drops(&bench, DropReason::FrameUnknownStation)), (0, 1));
}

#[test]
fn frames_are_counted_as_they_are_carried_and_held_to_quotas() {
    let mut bench = bench_with(|rules| {
        asking(rules);
        rules.urrs[0].volume_quota = Some(Volume { uplink: Some(120), ..Volume::default() });
        rules.urrs[0].quota_grant = 1;
        rules.urrs[0].triggers = Triggers::VOLUME_QUOTA;
    });
    for _ in 0..3 {
        send(&mut bench, N3, &in_tunnel(120, &frame(A, HOST)));
    }
    send(&mut bench, N6E, &frame(HOST, A));
    assert_eq!((bench.sent(N6E).len(), drops(&bench, DropReason::QuotaExhausted)), (2, 2));
    let used = bench.settle().into_iter().find_map(|notice| match notice {
        Notice::Usage { cause: UsageCause::VolumeQuota, counts, .. } => Some(counts[0]),
        _ => None,
    });
    assert_eq!(used.map(|counts| (counts.uplink_bytes, counts.uplink_packets)), Some((120, 2)));
}

#[test]
fn a_sleeping_users_frames_are_kept_and_go_when_it_wakes() {
    let mut bench = bench_with(|_| ());
    send(&mut bench, N3, &in_tunnel(120, &frame(A, HOST)));
    let mut asleep = ethernet(120);
    (asleep.fars[1].apply_action, asleep.fars[1].notify) = (ApplyAction::Buffer, true);
    bench.put(120, 2, asleep);
    bench.settle();
    send(&mut bench, N6E, &frame(HOST, A));
    assert_eq!(bench.sent(N3).len(), 0);
    let told =
        |notice: &Notice| matches!(notice, Notice::Event(Event::DownlinkData { session: Seid(120), .. }));
    assert!(bench.settle().iter().any(told));
    bench.put(120, 3, ethernet(120));
    bench.settle();
    let sent = bench.sent(N3);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0][50..], frame(HOST, A)[..]);
    assert!(bench.worker.books().balanced());
}

#[test]
fn copies_and_stations_are_limited() {
    let mut bench = bench_with(|_| ());
    for _ in 0..3 {
        send(&mut bench, N6E, &frame(HOST, [0xff; 6]));
    }
    assert_eq!((bench.sent(N3).len(), drops(&bench, DropReason::FrameCopies)), (4, 2));
    for n in 0..9 {
        send(&mut bench, N3, &in_tunnel(120, &frame([2, 0, 0, 0, 1, n], HOST)));
    }
    assert_eq!((bench.sent(N6E).len(), drops(&bench, DropReason::MacTableFull)), (8, 1));
    bench.now_ns += 2_000_000_000;
    bench.wires[N3].0.borrow_mut().buffers = Some(1);
    send(&mut bench, N6E, &frame(HOST, [0xff; 6]));
    assert_eq!((bench.sent(N3).len(), drops(&bench, DropReason::NotCopied)), (1, 1));
}

#[test]
fn more_sessions_than_configured_are_refused() {
    let mut config = with_ethernet();
    config.limits.ethernet_sessions = 1;
    let mut bench = Bench::over(&config);
    for session in FRAMES {
        bench.put(session, 1, ethernet(session));
    }
    let notices = bench.settle();
    assert!(matches!(notices[..], [Notice::Applied { .. }, Notice::Refused { session: Seid(121), .. }]));
    // One that is there may change.
    bench.put(120, 2, ethernet(120));
    assert!(matches!(bench.settle()[..], [Notice::Applied { .. }]));
}

#[test]
fn ports_of_ethernet_are_of_the_core_and_one_of_each_network() {
    let refused = |config: &Config| connect(config, Vec::<crate::fixture::TestPort>::new(), || 0).err();
    let mut access = with_ethernet();
    access.ports[N6E].interface = Interface::Access;
    assert_eq!(refused(&access), Some(ConfigError::EthernetAccess("n6e".to_owned())));
    let mut twins = with_ethernet();
    twins.ports.push(twins.ports[N6E].clone());
    assert_eq!(refused(&twins), Some(ConfigError::TwoEthernetPorts));
}

/// A downlink FAR that leads back to the network would make a copy of a copy for ever.
#[test]
fn frames_for_users_do_not_go_back_into_the_network() {
    let mut bench = bench_with(|rules| {
        let to = rules.fars[1].forwarding.as_mut().unwrap();
        (to.destination_interface, to.outer_header_creation) = (Interface::Core, None);
    });
    send(&mut bench, N6E, &frame(HOST, [0xff; 6]));
    assert_eq!((bench.sent(N6E).len(), drops(&bench, DropReason::NoRoute)), (0, 2));
}

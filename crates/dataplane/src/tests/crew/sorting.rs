//! Packets that are handed over unread.

use super::*;
use crate::NodeId;
use crate::worker::BURST;
use packet::vlan::{CUSTOMER, Tag, push};
use packet::{Buffer, gtpu};

/// A stranger's worker, and a session of the other one.
fn strangers_door(team: &Team) -> (usize, u64) {
    let session = (4..=16).find(|session| team.owner(*session) == 1).unwrap();
    (0, session)
}

/// A datagram in two.
fn in_parts(frame: &[u8]) -> [Vec<u8>; 2] {
    let cut = 14 + 20 + 24;
    let part = |bytes: &[u8], place: u16| {
        let mut part = [&frame[..34], bytes].concat();
        let length = (part.len() - 14) as u16;
        part[16..18].copy_from_slice(&length.to_be_bytes());
        part[20..22].copy_from_slice(&place.to_be_bytes());
        part[24..26].fill(0);
        let sum = packet::checksum::of(&part[14..34]);
        part[24..26].copy_from_slice(&sum.to_be_bytes());
        part
    };
    [part(&frame[34..cut], 0x2000), part(&frame[cut..], 3)]
}

/// What nobody can tell at first sight is read here, and what comes behind it does not overtake it.
#[test]
fn packets_keep_their_order_whatever_comes_between_them() {
    let mut team = Team::of(2, 16);
    let (door, session) = strangers_door(&team);
    for port in 0..700 {
        let frame = from_user(session, address(session), port);
        match port % 97 {
            7 => in_parts(&frame).iter().for_each(|part| team.receive(door, N3, part)),
            _ => team.receive(door, N3, &frame),
        }
        if port % 151 == 5 {
            let mut end_marker = vec![0; 16];
            let length = gtpu::write_end_marker(&mut end_marker, 0x999).unwrap();
            let mut datagram = vec![0; 8];
            packet::udp::Header::new(2152, 2152, length).unwrap().write(&mut datagram).unwrap();
            datagram.extend(&end_marker[..length]);
            team.receive(door, N3, &from_gnb(&datagram, 17));
        }
    }
    team.settle();
    let sent = team.sent(N6).concat();
    let ports: Vec<u16> = sent.iter().map(|frame| u16::from_be_bytes([frame[34], frame[35]])).collect();
    assert_eq!(ports, (0..700).collect::<Vec<u16>>());
    let [sorted, read] = [NodeId::UsualInput, NodeId::Reassembly]
        .map(|node| [0, 1].map(|worker: usize| team.workers[worker].counters().nodes[node as usize].packets));
    assert!(sorted[1] > 100 && read[0] > 0 && read[1] == 0, "{sorted:?} {read:?}");
}

/// By whom frames are read is no matter to what is counted at the port.
#[test]
fn octets_are_counted_once_whoever_reads_them() {
    let mut config = config();
    config.limits.sessions = 64;
    config.ports[N3].vlan = Some(30);
    let mut team = Team::over(&config, &Crew::of(2));
    team.meet();
    (4..=16).for_each(|session| team.put(session, 1, rules(session)));
    team.settle();
    let (mut octets, mut frames) = ([0; 2], 0);
    for session in 4..=16 {
        let mut up = HeapBuffer::new(&from_user(session, address(session), 7));
        push(&mut up, CUSTOMER, Tag::new(30)).unwrap();
        octets[N3] += up.data().len() as u64;
        team.wires[0][N3].0.borrow_mut().to_worker.push_back(up);
        let down = to_user(session as u8);
        octets[N6] += down.len() as u64;
        team.receive(0, N6, &down);
        frames += 1;
    }
    team.settle();
    let sums = [N3, N6].map(|port| {
        let of = |worker: &Worker<TestPort>| worker.counters().ports[port].received_bytes;
        team.workers.iter().map(of).sum::<u64>()
    });
    assert_eq!(sums, octets);
    let sent = [N3, N6].map(|port| team.sent(port).concat().len());
    assert_eq!(sent, [frames; 2]);
    assert!(team.workers[0].books().handed_out > 0);
}

/// Nor is it where a worker does not keep up with what it is handed.
#[test]
fn octets_that_find_no_room_are_counted_too() {
    let mut team = Team::of(2, 16);
    let (door, session) = strangers_door(&team);
    let frame = from_user(session, address(session), 7);
    for _ in 0..2_000 {
        team.receive(door, N3, &frame);
    }
    while team.workers[door].turn(1) > 0 {}
    let lost = team.drops(door, DropReason::HandoffFull);
    let port = team.workers[door].counters().ports[N3];
    assert_eq!((port.received, port.received_bytes), (2_000, lost * frame.len() as u64));
    assert!(lost > 0);
}

/// A worker that has more to hand over than it can drops of who has most, as one that has more to forward does.
#[test]
fn whoever_has_most_gives_way_before_it_is_handed_over() {
    let mut team = Team::of(2, 16);
    let (door, heavy) = strangers_door(&team);
    let frames: Vec<Vec<u8>> = (0..BURST as u64)
        .map(|at| if at % 16 < 10 { heavy } else { 4 + at / 16 * 5 % 13 + at % 3 })
        .map(|session| from_user(session.min(16), address(session.min(16)), 7))
        .collect();
    for _ in 0..3_000 {
        frames.iter().for_each(|frame| team.receive(door, N3, frame));
        for at in [door, 1 - door] {
            team.workers[at].turn(team.now_ns);
        }
    }
    team.settle();
    let gave_way = team.drops(door, DropReason::UserShare);
    assert!(gave_way > 0 && team.drops(1 - door, DropReason::UserShare) == 0, "{gave_way}");
    let received: u64 = team.workers.iter().map(|worker| worker.counters().ports[N3].received_bytes).sum();
    let all: usize = frames.iter().map(|frame| frame.len() * 3_000).sum();
    assert_eq!(received, all as u64);
    let sent = team.sent(N6).concat();
    let of_heavy = sent.iter().filter(|frame| frame[26..30] == address(heavy).octets()).count() as u64;
    let offered =
        frames.iter().filter(|frame| frame[62..66] == address(heavy).octets()).count() as u64 * 3_000;
    assert_eq!(of_heavy + gave_way, offered, "nobody else gave way");
}

/// What takes a worker's time is seen in its nodes, though nothing that it hands over comes to the graph.
#[test]
fn sorting_is_charged_to_the_node_that_hands_over() {
    let mut config = config();
    config.limits.sessions = 64;
    let mut team = Team::timed(&config, &Crew { distributors: 1, ..Crew::of(2) }, going_on);
    team.meet();
    team.put(4, 1, rules(4));
    team.settle();
    (0..3).for_each(|_| team.receive(0, N6, &to_user(4)));
    team.settle();
    let steer = team.workers[0].counters().nodes[NodeId::Steer as usize];
    assert_eq!((steer.packets, steer.vectors), (3, 1));
    assert!(steer.cycles > 0);
    assert_eq!(team.sent(N3)[1].len(), 3);
}

/// Goes on with each look.
fn going_on() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static CYCLES: AtomicU64 = AtomicU64::new(0);
    CYCLES.fetch_add(7, Ordering::Relaxed)
}

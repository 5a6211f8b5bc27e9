//! Packets that are long for their way.

use super::drops;
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, TestPort, config, rules};
use crate::worker::connect;
use dplink::{Command, Desired};
use packet::HeapBuffer;
use rules::Seid;

/// A frame of an IPv4 packet of so many bytes, which may be split.
pub(super) fn long(bytes: usize) -> Vec<u8> {
    let header = packet::ipv4::Header::new([203, 0, 113, 80].into(), [10, 60, 0, 1].into(), 17, bytes - 20);
    let mut frame = vec![2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, 8, 0];
    frame.resize(14 + bytes, 0);
    header.unwrap().fragmentable(7).write(&mut frame[14..]).unwrap();
    frame
}

#[test]
fn fragments_are_created_and_the_books_balance() {
    let mut bench = Bench::new();
    // 3000 bytes, 1432 of payload each: three fragments.
    bench.receive(N6, &long(3000));
    bench.worker.turn(bench.now_ns);
    let books = bench.worker.books();
    assert_eq!((books.received, books.created, books.sent), (1, 2, 3));
    assert!(books.balanced());
    assert_eq!(bench.sent(N3).iter().map(|frame| frame.len() - 14 - 44 - 20).sum::<usize>(), 2980);
}

/// Of a flow, what is split leaves where it came: nothing that came behind it in the same vector overtakes it.
#[test]
fn what_is_split_is_not_overtaken_by_its_flow() {
    let mut bench = Bench::new();
    [100, 3_000, 200, 2_000, 2_000, 300].into_iter().for_each(|bytes| bench.receive(N6, &long(bytes)));
    bench.worker.turn(bench.now_ns);
    let lengths: Vec<usize> = bench.sent(N3).iter().map(|frame| frame.len() - 14 - 44).collect();
    assert_eq!(lengths, [100, 1_452, 1_452, 136, 200, 1_452, 568, 1_452, 568, 300]);
    assert!(bench.worker.books().balanced());
}

/// However many do, and the ports' lists are short of room.
#[test]
fn a_vector_of_long_and_short_packets_keeps_its_order() {
    let mut bench = Bench::new();
    (0..64).for_each(|_| [2_000, 100].into_iter().for_each(|bytes| bench.receive(N6, &long(bytes))));
    bench.worker.turn(bench.now_ns);
    let sent = bench.sent(N3);
    assert_eq!(sent.len(), 3 * 64);
    let lengths = |frames: &[Vec<u8>]| frames.iter().map(|frame| frame.len() - 58).collect::<Vec<_>>();
    assert!(sent.chunks(3).all(|frames| lengths(frames) == [1_452, 568, 100]));
    assert!(bench.worker.books().balanced());
}

#[test]
fn without_memory_for_all_fragments_none_is_sent() {
    let mut bench = Bench::new();
    bench.wires[N3].0.borrow_mut().buffers = Some(2);
    bench.receive(N6, &long(3000));
    bench.worker.turn(bench.now_ns);
    assert_eq!(bench.sent(N3).len(), 0);
    assert_eq!(drops(&bench, DropReason::NotSplit), 1);
    assert!(bench.worker.books().balanced());
}

#[test]
fn fragments_of_a_vector_are_limited() {
    let mut bench = Bench::new();
    // A burst of packets of two fragments has room; a port is given half of a turn.
    (0..256).for_each(|_| bench.receive(N6, &long(2_000)));
    bench.worker.turn(bench.now_ns);
    bench.worker.turn(bench.now_ns);
    assert_eq!((bench.sent(N3).len(), drops(&bench, DropReason::NotSplit)), (512, 0));
    // Nine fragments each: the 114th packet has none.
    (0..128).for_each(|_| bench.receive(N6, &long(12_500)));
    bench.worker.turn(bench.now_ns);
    assert_eq!((bench.sent(N3).len(), drops(&bench, DropReason::NotSplit)), (113 * 9, 15));
    assert!(bench.worker.books().balanced());
}

/// A side may have ports of several MTUs: that of the port the packet leaves by counts.
#[test]
fn a_narrow_port_does_not_hinder_its_neighbour() {
    let mut config = config();
    let mut narrow = config.ports[N6].clone();
    (narrow.name, narrow.mtu) = ("narrow".to_owned(), 600);
    (narrow.address, narrow.address6) = ("10.70.0.2/24".parse().unwrap(), None);
    config.ports.push(narrow);
    let wires = [TestPort::default(), TestPort::default(), TestPort::default()];
    let (mut engine, mut worker) = connect(&config, wires.to_vec(), || 0).unwrap();
    worker.know(N6 as u8, packet::ethernet::MacAddress([9; 6]), std::net::Ipv4Addr::new(10, 50, 0, 1));
    engine.handle(Command::Put(Desired::new(Seid(1), 1, rules(1)))).unwrap();
    worker.turn(1);
    let up = crate::golden::file("session/found");
    let mut long = up[0].clone();
    // The user's packet grows to 1000 bytes, and all lengths with it.
    let inner = 14 + 44;
    long.resize(inner + 1000, 0);
    for (at, length) in [(16, 1044u16), (38, 1024), (44, 1008), (inner + 2, 1000), (inner + 24, 980)] {
        long[at..at + 2].copy_from_slice(&length.to_be_bytes());
    }
    for at in [14, inner] {
        long[at + 10..at + 12].fill(0);
        let checksum = packet::checksum::of(&long[at..at + 20]);
        long[at + 10..at + 12].copy_from_slice(&checksum.to_be_bytes());
    }
    wires[N3].0.borrow_mut().to_worker.push_back(HeapBuffer::new(&long));
    worker.turn(2);
    assert_eq!(wires[N6].0.borrow().from_worker.len(), 1, "{:?}", worker.counters().named_drops());
    assert_eq!(worker.counters().nodes[crate::NodeId::PathMtu as usize].packets, 1);
}

/// A router's word that what left in this frame was too long: no more than so many bytes of IP pass.
fn too_long(frame: &[u8], mtu: u16) -> Vec<u8> {
    let mut told = vec![0; 600];
    told[..14].copy_from_slice(&[2, 0, 0, 0, 3, 2, 2, 0, 0, 0, 3, 1, 8, 0]);
    let error = packet::icmp::Error::FragmentationNeeded { mtu };
    let length = packet::icmp::write_error(error, &frame[14..], [10, 30, 0, 254].into(), &mut told[14..]);
    told.truncate(14 + length.unwrap());
    told
}

/// Bytes of IP in each frame that leaves, and whether others may fragment it.
fn leaves(bench: &mut Bench, bytes: usize) -> Vec<(usize, bool)> {
    bench.receive(N6, &long(bytes));
    bench.worker.turn(bench.now_ns);
    let sent = bench.sent(N3);
    sent.iter().map(|frame| (frame.len() - 14, frame[20] & 0x40 == 0)).collect()
}

#[test]
fn a_tunnel_is_as_wide_as_routers_on_its_way_say() {
    let mut bench = Bench::new();
    bench.receive(N6, &long(1_400));
    bench.worker.turn(bench.now_ns);
    let sent = bench.sent(N3).remove(0);
    assert_eq!(sent.len() - 14, 1_444);
    bench.receive(N3, &too_long(&sent, 1_300));
    bench.worker.turn(bench.now_ns);
    assert_eq!(bench.worker.counters().consumed, 1);
    // What is as long as before comes in two, for the other end to put together; what passes is as it was.
    assert_eq!(leaves(&mut bench, 1_400), [(1_300, true), (20 + 1_424 - 1_280, true)]);
    assert_eq!(leaves(&mut bench, 1_256), [(1_300, false)]);
    // After ten minutes more may pass.
    bench.now_ns += 600_000_000_000;
    bench.worker.turn(bench.now_ns);
    bench.meet_neighbours();
    bench.sent(N3);
    assert_eq!(leaves(&mut bench, 1_400), [(1_444, false)]);
    assert!(bench.worker.books().balanced());
}

#[test]
fn who_quotes_what_we_did_not_send_is_not_listened_to() {
    let mut bench = Bench::new();
    bench.receive(N6, &long(1_400));
    bench.worker.turn(bench.now_ns);
    let sent = bench.sent(N3).remove(0);
    let (ours, router) = ([10, 30, 0, 2], [10, 30, 0, 254]);
    let headed = |frame: &[u8], source: [u8; 4], to: [u8; 4], protocol: u8| {
        let mut frame = frame.to_vec();
        let header = packet::ipv4::Header::new(source.into(), to.into(), protocol, frame.len() - 34);
        header.unwrap().write(&mut frame[14..]).unwrap();
        frame
    };
    let mut damaged = too_long(&sent, 1_300);
    damaged[14 + 20 + 7] ^= 1;
    let of_tcp = too_long(&headed(&sent, ours, [10, 30, 0, 1], 6), 1_300);
    // About somebody else's datagram, but told us.
    let foreign = too_long(&headed(&sent, [10, 30, 0, 99], [10, 30, 0, 1], 17), 1_300);
    for told in [damaged, of_tcp, headed(&foreign, router, ours, 1)] {
        bench.receive(N3, &told);
    }
    bench.worker.turn(bench.now_ns);
    assert_eq!(leaves(&mut bench, 1_400), [(1_444, false)]);
    assert_eq!(bench.worker.counters().consumed, 0);
    assert!(bench.worker.books().balanced());
}

/// A frame of an IPv6 packet of so many bytes to the user of [`rules`] 4.
fn long6(bytes: usize) -> Vec<u8> {
    let (server, user) = ("2001:db8:ff::80".parse().unwrap(), "2001:db8:60::1".parse().unwrap());
    let mut frame = vec![2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, 0x86, 0xdd];
    frame.resize(14 + bytes, 0);
    packet::ipv6::Header::new(server, user, 17, bytes - 40).unwrap().write(&mut frame[14..]).unwrap();
    packet::udp::Header::new(53, 4_000, bytes - 48).unwrap().write(&mut frame[54..]).unwrap();
    frame
}

/// Where its way takes less, the tunnel's datagrams are split, or those who obey would never get a packet through.
#[test]
fn a_tunnel_takes_what_every_link_of_ipv6_takes() {
    let mut config = config();
    config.ports[N3].mtu = 1300;
    let mut bench = Bench::over(&config);
    let mut rules = rules(4);
    rules.pdrs.iter_mut().for_each(|pdr| pdr.pdi.ue_ipv6 = Some("2001:db8:60::/64".parse().unwrap()));
    bench.put(4, 1, rules);
    bench.settle();
    for (bytes, frames, told) in [(1_264, 1, 0), (1_265, 2, 0), (1_280, 2, 0), (1_281, 0, 1)] {
        bench.receive(N6, &long6(bytes));
        bench.settle();
        let (sent, back) = (bench.sent(N3), bench.sent(N6));
        assert_eq!((sent.len(), back.len()), (frames, told), "{bytes}");
        assert!(sent.iter().all(|frame| frame.len() <= 14 + 1_300));
        for frame in back {
            assert_eq!((&frame[54..56], &frame[58..62]), (&[2, 0][..], &[0, 0, 5, 0][..]), "of 1,280");
        }
    }
    assert_eq!(drops(&bench, DropReason::MtuExceeded), 0);
    assert!(bench.worker.books().balanced());
}

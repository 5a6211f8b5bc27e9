//! Packets that can be told from the kernel's own, sent and received.

use anchorline_dpdk::{Mbuf, Mempool, Port, RxQueue, TxQueue};
use packet::Buffer;
use std::time::{Duration, Instant};

/// How long a test waits for its packets.
const PATIENCE: Duration = Duration::from_secs(3);

/// Sends all, patiently.
pub fn send_all(tx: &mut TxQueue, packets: &mut Vec<Mbuf>) {
    let start = Instant::now();
    while !packets.is_empty() {
        tx.send(packets);
        assert!(start.elapsed() < PATIENCE, "{} packets are not taken", packets.len());
    }
}

/// Receives until `wanted` packets fulfil the condition, patiently; others are dropped.
pub fn receive(rx: &mut RxQueue, wanted: usize, condition: impl Fn(&Mbuf) -> bool) -> Vec<Mbuf> {
    let (start, mut packets) = (Instant::now(), Vec::new());
    while packets.len() < wanted && start.elapsed() < PATIENCE {
        rx.receive(&mut packets, 64);
        packets.retain(&condition);
    }
    packets
}

/// A broadcast frame of the type for local experiments (IEEE 802, 0x88b5), its payload counting up from `seed`.
pub fn frame(seed: u8, length: usize) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, seed, 0x88, 0xb5]);
    frame.extend((0..length.saturating_sub(14)).map(|at| seed.wrapping_add(u8::try_from(at % 256).unwrap())));
    frame
}

/// Whether it is one of [`frame`]'s.
pub fn is_ours(packet: &Mbuf) -> bool {
    packet.data().get(12..14) == Some(&[0x88, 0xb5])
}

/// Waits for both links.
pub fn wait_for_links(ports: [&Port; 2]) {
    let start = Instant::now();
    while ports.iter().any(|port| !port.link().is_ok_and(|link| link.up)) {
        assert!(start.elapsed() < PATIENCE, "{} and {} do not come up", ports[0].device(), ports[1].device());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends `bursts` times 32 frames of many lengths each way and expects every one, whole and in order, at the other end.
pub fn exchange(pool: &Mempool, a: &mut Port, b: &mut Port, bursts: u8) {
    wait_for_links([a, b]);
    let (mut a_rx, mut a_tx) = (a.take_rx_queues().remove(0), a.take_tx_queues().remove(0));
    let (mut b_rx, mut b_tx) = (b.take_rx_queues().remove(0), b.take_tx_queues().remove(0));
    for burst in 0..bursts {
        one_way(pool, (&mut a_tx, &mut b_rx), burst);
        one_way(pool, (&mut b_tx, &mut a_rx), burst);
    }
}

/// Sends frames of this length each way and expects them whole at the other end.
pub fn exchange_long(pool: &Mempool, ports: [&mut Port; 2], length: usize) {
    let [a, b] = ports;
    wait_for_links([a, b]);
    let (mut a_rx, mut a_tx) = (a.take_rx_queues().remove(0), a.take_tx_queues().remove(0));
    let (mut b_rx, mut b_tx) = (b.take_rx_queues().remove(0), b.take_tx_queues().remove(0));
    for (tx, rx) in [(&mut a_tx, &mut b_rx), (&mut b_tx, &mut a_rx)] {
        let frames: Vec<Vec<u8>> = (0..16).map(|n| frame(n, length)).collect();
        let received = pass(pool, (tx, rx), &frames);
        assert!(
            received.iter().map(Mbuf::data).eq(frames.iter().map(Vec::as_slice)),
            "{} come",
            received.len()
        );
    }
}

/// Closes both ends of a memif, one after the other: a driver that closes while its own thread hears that the
/// other end has closed frees its memory twice.
pub fn close_memif(server: Port, client: Port) {
    drop(server);
    std::thread::sleep(Duration::from_millis(50));
    drop(client);
}

fn one_way(pool: &Mempool, (tx, rx): (&mut TxQueue, &mut RxQueue), burst: u8) {
    let frames: Vec<Vec<u8>> = (0..32).map(|n| frame(burst ^ n, 60 + usize::from(n) * 46)).collect();
    let received = pass(pool, (tx, rx), &frames);
    let as_sent =
        frames.iter().zip(&received).take_while(|(sent, received)| *sent == received.data()).count();
    assert_eq!((received.len(), as_sent), (32, 32), "received, as they were sent; burst {burst}");
}

/// Sends frames, which are all to be taken, and what comes of them at the other end.
fn pass(pool: &Mempool, (tx, rx): (&mut TxQueue, &mut RxQueue), frames: &[Vec<u8>]) -> Vec<Mbuf> {
    let mut packets = frames.iter().map(|frame| pool.packet(frame).unwrap()).collect::<Vec<_>>();
    let (start, mut received) = (Instant::now(), Vec::new());
    while received.len() < frames.len() && start.elapsed() < PATIENCE {
        // Some drivers finish sending with the next call, and some can send only once the other end has looked.
        tx.send(&mut packets);
        received.append(&mut poll(rx));
    }
    assert_eq!(packets.len(), 0, "not taken");
    received
}

fn poll(rx: &mut RxQueue) -> Vec<Mbuf> {
    let mut packets = Vec::with_capacity(64);
    rx.receive(&mut packets, 64);
    packets.retain(is_ours);
    packets
}

//! Ports on interfaces of the kernel, in a network namespace of each test's own.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]

mod common;

use anchorline_dpdk::{Error, LinkState, Mbuf, Port, PortConfig};
use common::namespace::{in_namespace, ip, quiet, veth};
use common::traffic::{exchange, exchange_long, frame, is_ours, receive, send_all, wait_for_links};
use common::{eal, open, pool};
use packet::Buffer;
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn af_packet_carries_packets_over_a_veth_pair() {
    in_namespace(|| {
        veth("v0", "v1");
        let pool = pool();
        let (mut a, mut b) = (open("net_af_packet0,iface=v0", &pool), open("net_af_packet1,iface=v1", &pool));
        assert_eq!((a.capabilities().driver.as_str(), a.promiscuous()), ("net_af_packet", true));
        assert_eq!(a.capabilities().firmware, None, "there is no card");
        exchange(&pool, &mut a, &mut b, 8);
        drop((a, b));
        assert_eq!(pool.in_use(), 0);
    });
}

/// Longer ones than the driver says: N3 has to carry users' packets of 1,500 octets in tunnels. An octet more than fits is cut off.
#[test]
fn af_packet_carries_what_its_rings_have_room_for() {
    in_namespace(|| {
        veth("w0", "w1");
        for end in ["w0", "w1"] {
            ip(&format!("link set {end} mtu 2026"));
        }
        let pool = pool();
        let config = |device: &str, mtu| PortConfig { mtu, ..PortConfig::new(device) };
        let open = |device: &str| Port::open(eal(), &config(device, 1_964), &pool).unwrap();
        let (mut a, mut b) = (open("net_af_packet9,iface=w0"), open("net_af_packet10,iface=w1"));
        // One tag may be in the frame, and another beside it.
        exchange_long(&pool, [&mut a, &mut b], 14 + 4 + 1_964);
        drop((a, b));
        let error = Port::open(eal(), &config("net_af_packet9,iface=w0", 1_965), &pool).unwrap_err();
        assert_eq!(
            error.to_string(),
            "an MTU of 1965 bytes does not fit device \"net_af_packet9,iface=w0\": 46 to 1964 bytes do"
        );
    });
}

/// The kernel would put them together, and what comes of it is longer than a place of the ring.
#[test]
fn fragments_come_as_they_were_sent() {
    in_namespace(|| {
        veth("f0", "f1");
        let pool = pool();
        let mut port = open("net_af_packet5,iface=f1", &pool);
        wait_for_links([&port, &port]);
        ip("address add 10.0.0.1/24 dev f0");
        let sender = std::net::UdpSocket::bind("10.0.0.1:0").unwrap();
        sender.send_to(&[7; 4_000], "10.0.0.2:9").unwrap();
        let of_ipv4 = |packet: &Mbuf| packet.data().get(12..14) == Some(&[8, 0]);
        let received = receive(&mut port.take_rx_queues()[0], 3, of_ipv4);
        let lengths: Vec<usize> = received.iter().map(|packet| packet.data().len() - 34).collect();
        assert_eq!(lengths, [1_480, 1_480, 8 + 4_000 - 2 * 1_480]);
    });
}

#[test]
fn what_a_ring_has_no_room_for_is_counted_as_missed() {
    in_namespace(|| {
        veth("l0", "l1");
        let pool = pool();
        let mut a = open("net_af_packet6,iface=l0", &pool);
        let mut b = open("net_af_packet7,iface=l1,framecnt=64", &pool);
        let mut packets = (0..200).map(|n| pool.packet(&frame(n, 100)).unwrap()).collect();
        send_all(&mut a.take_tx_queues()[0], &mut packets);
        let received = receive(&mut b.take_rx_queues()[0], 64, is_ours).len() as u64;
        let missed = b.stats().unwrap().rx_missed;
        assert!(missed > 0 && received + missed == 200, "{received} received, {missed} missed");
        assert_eq!(b.counter().stats().unwrap().rx_missed, missed, "they are counted once");
    });
}

#[test]
fn a_port_tells_what_becomes_of_its_interface() {
    in_namespace(|| {
        veth("s0", "s1");
        ip("link set s0 mtu 1400");
        let pool = pool();
        let port = open("net_af_packet8,iface=s0", &pool);
        let counter = port.counter();
        assert_eq!(
            (counter.link(), counter.narrowed()),
            (Some(LinkState::Up), Some(1_400)),
            "from the start"
        );
        for (mtu, narrowed) in
            [(1_000, Some(1_000)), (1_500, None), (2_000, None), (1_600, None), (1_499, Some(1_499))]
        {
            ip(&format!("link set s0 mtu {mtu}"));
            assert_eq!(counter.narrowed(), narrowed, "{mtu}");
        }
        ip("link set s1 down");
        let start = Instant::now();
        // The kernel may take a second to tell of a carrier that is gone.
        while counter.link() == Some(LinkState::Up) && start.elapsed() < Duration::from_secs(3) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(counter.link(), Some(LinkState::Down), "there is no carrier");
        ip("link delete s0");
        assert_eq!(counter.link(), Some(LinkState::Gone));
        veth("s0", "s1");
        assert_eq!(counter.link(), Some(LinkState::Replaced));
    });
}

#[test]
fn a_tap_port_speaks_with_the_kernel() {
    if !Path::new("/dev/net/tun").exists() {
        return eprintln!("skipped: there is no /dev/net/tun");
    }
    in_namespace(|| {
        let pool = pool();
        let mut tap = open("net_tap0,iface=t0", &pool);
        quiet("t0");
        let kernel = PortConfig::new("net_af_packet2,iface=t0");
        let mut twin = Port::open(eal(), &kernel, &pool).unwrap();
        exchange(&pool, &mut tap, &mut twin, 8);
        drop((tap, twin));
        assert_eq!(pool.in_use(), 0);
        wait_until_gone(&kernel);
    });
}

/// A program another test runs at that moment may hold the TAP a little longer.
fn wait_until_gone(config: &PortConfig) {
    let (start, pool) = (Instant::now(), pool());
    while !matches!(Port::open(eal(), config, &pool), Err(Error::NoInterface { .. })) {
        assert!(start.elapsed() < Duration::from_secs(3), "{config:?} is still there");
    }
}

#[test]
fn a_tap_port_gives_its_interface_the_mtu() {
    in_namespace(|| {
        let config = PortConfig { mtu: 1430, ..PortConfig::new("net_tap1,iface=t1") };
        let _tap = Port::open(eal(), &config, &pool()).unwrap();
        let shown = std::process::Command::new("ip").args(["link", "show", "t1"]).output().unwrap();
        assert!(String::from_utf8_lossy(&shown.stdout).contains(" mtu 1430 "));
    });
}

/// Its driver holds back what is longer, and all that comes after it.
#[test]
fn a_tap_port_takes_no_larger_mtu_than_its_driver() {
    in_namespace(|| {
        let pool = pool();
        let config = |mtu| PortConfig { mtu, ..PortConfig::new("net_tap2,iface=t2") };
        let error = Port::open(eal(), &config(1_505), &pool).unwrap_err();
        assert!(error.to_string().ends_with(": 46 to 1504 bytes do"), "{error}");
        let mut tap = Port::open(eal(), &config(1_504), &pool).unwrap();
        quiet("t2");
        let twin = PortConfig { mtu: 1_504, ..PortConfig::new("net_af_packet11,iface=t2") };
        let mut twin = Port::open(eal(), &twin, &pool).unwrap();
        exchange_long(&pool, [&mut tap, &mut twin], 14 + 1_504);
    });
}

/// The driver keeps the packets it lent to the kernel when it closes, so they are not counted.
#[test]
fn af_xdp_carries_packets_over_a_veth_pair() {
    in_namespace(|| {
        veth("x0", "x1");
        let pool = pool();
        let mut a = match Port::open(eal(), &PortConfig::new("net_af_xdp0,iface=x0"), &pool) {
            Err(error @ Error::NoPrivilege { .. }) => return eprintln!("skipped: {error}"),
            port => port.unwrap(),
        };
        let mut b = open("net_af_xdp1,iface=x1", &pool);
        assert_eq!(a.capabilities().driver, "net_af_xdp");
        exchange(&pool, &mut a, &mut b, 64);
    });
}

#[test]
fn a_port_has_several_queues() {
    in_namespace(|| {
        veth("q0", "q1");
        let pool = pool();
        let config = |device: &str| PortConfig { rx_queues: 2, tx_queues: 2, ..PortConfig::new(device) };
        let port = |device| Port::open(eal(), &config(device), &pool).unwrap();
        let (mut a, mut b) =
            (port("net_af_packet3,iface=q0,qpairs=2"), port("net_af_packet4,iface=q1,qpairs=2"));
        let (mut tx, mut rx) = (a.take_tx_queues(), b.take_rx_queues());
        assert_eq!((tx.len(), rx.len(), tx[1].index(), rx[1].index()), (2, 2, 1, 1));
        let mut packets = (0..32).map(|n| pool.packet(&frame(n, 100)).unwrap()).collect();
        let mut others = (0..32).map(|n| pool.packet(&frame(n, 100)).unwrap()).collect();
        send_all(&mut tx[0], &mut packets);
        send_all(&mut tx[1], &mut others);
        let (start, mut received) = (Instant::now(), Vec::new());
        while received.len() < 64 && start.elapsed() < Duration::from_secs(3) {
            rx.iter_mut().for_each(|rx| _ = rx.receive(&mut received, 64));
            received.retain(is_ours);
        }
        assert_eq!(received.len(), 64);
    });
}

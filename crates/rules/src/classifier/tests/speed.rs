//! How long a search takes: `cargo test --release -p anchorline-rules -- --ignored --nocapture speed`.

use super::random::{Scale, packet, session};
use crate::fixture::{UE, pdi, pdr, rules};
use crate::*;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Nanoseconds for one search, the best of some rounds over all packets.
fn time(classifier: &Classifier, packets: &[Arrival]) -> f64 {
    let round = || {
        let start = Instant::now();
        for packet in packets {
            black_box(black_box(classifier).find(black_box(packet)));
        }
        start.elapsed().as_secs_f64() * 1e9 / packets.len() as f64
    };
    (0..20).map(|_| round()).fold(f64::MAX, f64::min)
}

fn print(what: &str, rules: &Rules, packets: &[Arrival]) -> f64 {
    let program = compile(rules).unwrap();
    let compiled = (0..5).map(|_| compile_time(rules)).min().unwrap();
    let found = packets.iter().filter(|packet| program.classifier.find(packet).is_some()).count();
    let (taken, bytes) = (time(&program.classifier, packets), program.classifier.heap_bytes());
    println!(
        "{what:40} {taken:7.1} ns, {bytes:8} bytes, compiled in {compiled:?}, {:3} % found",
        100 * found / packets.len()
    );
    taken
}

fn compile_time(rules: &Rules) -> Duration {
    let start = Instant::now();
    black_box(compile(black_box(rules))).unwrap();
    start.elapsed()
}

fn to_user(random: &mut Pcg64, remote: Ipv4Addr, remote_port: u16) -> Arrival {
    Arrival {
        source: Interface::Core,
        instance: Instance::DEFAULT,
        teid: None,
        qfi: None,
        ue: UE.into(),
        remote: remote.into(),
        protocol: 17,
        ue_port: Some(random.random()),
        remote_port: Some(remote_port),
        traffic_class: 0,
        spi: None,
        flow_label: None,
        application: Application::None,
    }
}

/// The shortest prefix and the longest port range of filters.
#[derive(Clone, Copy)]
struct Width(u8, u16);

const NARROW: Width = Width(12, 200);

/// A packet's address and ports each match one filter in five, but seldom the same.
const WIDE: Width = Width(2, 26_000);

/// One filter by 5-tuple: a prefix and a range of ports at the far end, ports at the user's.
fn five_tuple(random: &mut Pcg64, Width(shortest, longest): Width) -> SdfFilter {
    let range = |random: &mut Pcg64| {
        let first: u16 = random.random();
        PortRange { first, last: first.saturating_add(random.random_range(0..longest)) }
    };
    let length = random.random_range(shortest..=(shortest + 2).max(shortest * 32 / 12));
    let remote = ipnet::Ipv4Net::new(random.random::<u32>().into(), length).unwrap();
    let flow = FlowDescription {
        protocol: [Some(6), Some(17), None][random.random_range(0..3)],
        remote: FlowEnd { addresses: Some(ipnet::IpNet::from(remote).into()), ports: vec![range(random)] },
        user: FlowEnd { addresses: None, ports: vec![range(random)] },
    };
    SdfFilter { flow: Some(flow), ..SdfFilter::default() }
}

/// PDRs of 5-tuple filters, and packets that each match one of them.
fn five_tuples(pdrs: u16, filters: usize, width: Width) -> (Rules, Vec<Arrival>) {
    let mut random = Pcg64::seed_from_u64(1);
    let pdrs = (0..pdrs).map(|id| {
        let sdf_filters = (0..filters).map(|_| five_tuple(&mut random, width)).collect();
        pdr(id, Pdi { sdf_filters, ..pdi(Interface::Core) }, 2)
    });
    let rules = Rules { pdrs: pdrs.collect(), ..rules() };
    let packets = (0..2_000).map(|_| matching(&mut random, &rules)).collect();
    (rules, packets)
}

fn matching(random: &mut Pcg64, rules: &Rules) -> Arrival {
    let pdi = &rules.pdrs[random.random_range(0..rules.pdrs.len())].pdi;
    let filter = &pdi.sdf_filters[random.random_range(0..pdi.sdf_filters.len())];
    let flow = filter.flow.as_ref().unwrap();
    let Some(ipnet::IpNet::V4(prefix)) = flow.remote.addresses.map(|wanted| wanted.prefix) else {
        unreachable!()
    };
    let packet = to_user(random, prefix.addr(), flow.remote.ports[0].first);
    Arrival { protocol: flow.protocol.unwrap_or(6), ue_port: Some(flow.user.ports[0].last), ..packet }
}

/// Packets whose address and ports stand in different filters: the worst that a user can send who knows all of them.
fn mixed(random: &mut Pcg64, rules: &Rules) -> Arrival {
    let (one, other) = (matching(random, rules), matching(random, rules));
    Arrival { remote_port: other.remote_port, ue_port: matching(random, rules).ue_port, ..one }
}

/// The slowest of them, each searched alone some times.
fn slowest(classifier: &Classifier, packets: &[Arrival]) -> f64 {
    packets.iter().map(|packet| time(classifier, &[*packet; 8])).fold(0.0, f64::max)
}

fn plain() -> (Rules, Vec<Arrival>) {
    let mut random = Pcg64::seed_from_u64(2);
    (rules(), (0..2_000).map(|_| to_user(&mut random, Ipv4Addr::new(8, 8, 8, 8), 53)).collect())
}

#[test]
#[ignore = "measures; only a release build is worth it"]
fn speed() {
    let (rules, packets) = plain();
    assert!(print("2 PDRs without filters", &rules, &packets) < 10.0);
    for (pdrs, filters) in [(2, 1), (2, 4), (8, 1), (16, 1), (17, 1), (2, 8), (32, 1), (100, 1), (300, 1)] {
        let (rules, packets) = five_tuples(pdrs, filters, NARROW);
        print(&format!("{pdrs} PDRs of {filters} 5-tuples"), &rules, &packets);
    }
    for filters in [1, 2, 4] {
        let (rules, packets) = five_tuples(1_000, filters, NARROW);
        let taken = print(&format!("1000 PDRs of {filters} 5-tuples"), &rules, &packets);
        assert!(taken < 400.0);
        let mut random = Pcg64::seed_from_u64(4);
        let packets: Vec<Arrival> = (0..20_000).map(|_| mixed(&mut random, &rules)).collect();
        let taken = print(&format!("1000 PDRs of {filters} 5-tuples, mixed packets"), &rules, &packets);
        assert!(taken < 400.0);
        let classifier = compile(&rules).unwrap().classifier;
        println!("{:40} {:7.1} ns", "the slowest of them", slowest(&classifier, &packets));
    }
    for filters in [1, 2, 4] {
        let (rules, packets) = five_tuples(1_000, filters, WIDE);
        print(&format!("1000 PDRs of {filters} wide 5-tuples"), &rules, &packets);
        let mut random = Pcg64::seed_from_u64(4);
        let packets: Vec<Arrival> = (0..20_000).map(|_| mixed(&mut random, &rules)).collect();
        print(&format!("1000 PDRs of {filters} wide 5-tuples, mixed packets"), &rules, &packets);
        let classifier = compile(&rules).unwrap().classifier;
        println!("{:40} {:7.1} ns", "the slowest of them", slowest(&classifier, &packets));
    }
    for seed in 0..4 {
        let mut random = Pcg64::seed_from_u64(seed);
        let rules = session(&mut random, Scale::LARGE);
        let packets: Vec<Arrival> = (0..2_000).map(|_| packet(&mut random, &rules)).collect();
        print(&format!("{} PDRs of random filters", rules.pdrs.len()), &rules, &packets);
    }
    let mut random = Pcg64::seed_from_u64(3);
    let packets: Vec<Arrival> = (0..2_000).map(|_| of_nobody(&mut random)).collect();
    print("the fullest session, packets of nobody", &super::fullest(), &packets);
}

fn of_nobody(random: &mut Pcg64) -> Arrival {
    let (remote, port) = (Ipv4Addr::from_bits(random.random()), random.random());
    to_user(random, remote, port)
}

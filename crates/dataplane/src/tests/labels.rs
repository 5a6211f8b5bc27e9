//! Filters with flow labels and security parameter indices: what is found of a flow lasts where its packets cannot differ, and
//! explanations know of both.

use super::to_user;
use crate::fixture::{Bench, N3, N6, SIX, rules, six};
use crate::graph::{Hop, NodeId};
use dplink::{Command, Notice, Question};
use rules::{ApplyAction, Far, FarId, Instance, Pdr, PdrId, Rules, SdfFilter};

const LABEL: u32 = 0xbeef;
const SPI: u32 = 0x1234_5678;

/// Packets to the user that a filter finds are dropped by PDR 3.
fn without(mut rules: Rules, filter: SdfFilter) -> Rules {
    let mut pdr = Pdr { id: PdrId(3), precedence: 1, far: FarId(3), ..rules.pdrs[1].clone() };
    pdr.pdi.sdf_filters = vec![filter];
    rules.pdrs.push(pdr);
    rules.fars.push(Far { id: FarId(3), apply_action: ApplyAction::Drop, ..rules.fars[1].clone() });
    rules
}

fn by_label() -> SdfFilter {
    SdfFilter { flow_label: Some(LABEL), ..SdfFilter::default() }
}

/// Nodes a packet from the core went by.
fn nodes(bench: &mut Bench, frame: &[u8]) -> Vec<&'static str> {
    let mut hops: Vec<Hop> = Vec::new();
    bench.receive(N6, frame);
    bench.worker.turn_traced(bench.now_ns, Some(&mut hops));
    hops.iter().map(|hop| NodeId::name(hop.node)).collect()
}

/// UDP to the user of [`SIX`].
fn to_six(flow_label: u32) -> Vec<u8> {
    let [from, to] =
        ["2001:db8:ff::80", "2001:db8:60::1"].map(|host| host.parse::<std::net::Ipv6Addr>().unwrap());
    let first = (6 << 28 | flow_label).to_be_bytes();
    let header = [&first[..], &[0, 8, 17, 64], &from.octets(), &to.octets()].concat();
    [&to_user(1)[..12], &[0x86, 0xdd], &header, &[0; 8]].concat()
}

#[test]
fn a_filter_with_a_flow_label_leaves_flows_of_ipv4_alone() {
    let mut bench = Bench::new();
    bench.put(1, 2, without(rules(1), by_label()));
    bench.settle();
    assert!(nodes(&mut bench, &to_user(1)).contains(&"classify"));
    let second = nodes(&mut bench, &to_user(1));
    assert!(second.contains(&"verdict") && !second.contains(&"classify"), "{second:?}");
    assert_eq!(bench.sent(N3).len(), 2);
}

#[test]
fn packets_of_one_flow_of_ipv6_go_each_by_its_label() {
    let mut bench = Bench::full();
    bench.put(SIX, 2, without(six(), by_label()));
    bench.settle();
    let sent = [1, LABEL, 1, LABEL].map(|label| {
        nodes(&mut bench, &to_six(label));
        bench.settle();
        bench.sent(N3).len()
    });
    assert_eq!(sent, [1, 0, 1, 0]);
}

fn explained(bench: &mut Bench, question: Question) -> Option<PdrId> {
    bench.engine.handle(Command::Explain { token: 5, question }).unwrap();
    match bench.settle().pop() {
        Some(Notice::Explanation { token: 5, explanation }) => explanation.pdr,
        other => panic!("{other:?}"),
    }
}

fn question(protocol: u8) -> Question {
    Question {
        is_down: true,
        ue: "2001:db8:60::1".parse().unwrap(),
        instance: Instance::DEFAULT,
        remote: "2001:db8:ff::80".parse().unwrap(),
        protocol,
        ports: (protocol == 17).then_some((0, 0)),
        traffic_class: 0,
        spi: None,
        flow_label: 0,
        qfi: None,
        teid: None,
        is_verbose: false,
        application: None,
    }
}

#[test]
fn questions_have_flow_labels_and_security_parameter_indices() {
    let mut bench = Bench::full();
    bench.put(SIX, 2, without(six(), by_label()));
    bench.settle();
    let labelled = Question { flow_label: LABEL, ..question(17) };
    assert_eq!(explained(&mut bench, labelled), Some(PdrId(3)));
    assert_eq!(explained(&mut bench, question(17)), Some(PdrId(2)));
    bench.put(SIX, 3, without(six(), SdfFilter { spi: Some(SPI), ..SdfFilter::default() }));
    bench.settle();
    let esp = Question { spi: Some(SPI), ..question(packet::protocol::ESP) };
    assert_eq!(explained(&mut bench, esp), Some(PdrId(3)));
    assert_eq!(explained(&mut bench, question(packet::protocol::ESP)), Some(PdrId(2)));
}

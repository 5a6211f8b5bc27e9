//! Ports that are on a VLAN.

use super::to_user;
use crate::counters::DropReason;
use crate::fixture::{N3, N6, TestPort, config, rules};
use crate::worker::{Worker, connect};
use dplink::{Command, Desired};
use packet::HeapBuffer;
use packet::ethernet::MacAddress;
use packet::vlan::{CUSTOMER, Tag, Tags, push};
use rules::Seid;
use std::net::Ipv4Addr;

/// N3 is on VLAN 30, N6 on 60.
fn bench() -> (Worker<TestPort>, [TestPort; 2]) {
    let mut config = config();
    (config.ports[N3].vlan, config.ports[N6].vlan) = (Some(30), Some(60));
    let wires = [TestPort::default(), TestPort::default()];
    let (mut engine, mut worker) = connect(&config, wires.to_vec(), || 0).unwrap();
    worker.know(N3 as u8, MacAddress([3; 6]), crate::fixture::GNB);
    worker.know(N6 as u8, MacAddress([6; 6]), Ipv4Addr::new(10, 50, 0, 1));
    engine.handle(Command::Put(Desired::new(Seid(1), 1, rules(1)))).unwrap();
    worker.turn(1);
    (worker, wires)
}

fn tagged(frame: &[u8], id: u16) -> HeapBuffer {
    let mut buffer = HeapBuffer::new(frame);
    push(&mut buffer, CUSTOMER, Tag { priority: 5, ..Tag::new(id) }).unwrap();
    buffer
}

#[test]
fn a_frame_of_the_vlan_goes_the_usual_way_and_leaves_in_the_other_vlan() {
    let (mut worker, wires) = bench();
    wires[N6].0.borrow_mut().to_worker.push_back(tagged(&to_user(1), 60));
    worker.turn(2);
    let sent = std::mem::take(&mut wires[N3].0.borrow_mut().from_worker);
    let tags = Tags::parse(&sent[0]).unwrap();
    assert_eq!((tags.outer, tags.inner, tags.ethertype), (Some(Tag::new(30)), None, 0x0800));
    assert_eq!(worker.counters().ports[N3].sent_bytes, 42 + 44 + 4);
    assert_eq!(worker.counters().ports[N6].received_bytes, to_user(1).len() as u64 + 4);
    assert_eq!(worker.counters().nodes[crate::NodeId::EthernetInput as usize].packets, 0);
    assert!(worker.books().balanced());
}

#[test]
fn frames_of_other_vlans_and_of_none_are_dropped() {
    let (mut worker, wires) = bench();
    let frames = [
        tagged(&to_user(1), 61),
        tagged(&to_user(1), 0),
        HeapBuffer::new(&to_user(1)),
        HeapBuffer::new(&[1]),
    ];
    wires[N6].0.borrow_mut().to_worker.extend(frames);
    worker.turn(2);
    assert_eq!(worker.counters().drops[DropReason::OtherVlan as usize], 4);
    assert_eq!(worker.counters().ports[N6].received_bytes, 3 * to_user(1).len() as u64 + 2 * 4 + 1);
    assert!(wires[N3].0.borrow().from_worker.is_empty());
    assert!(worker.books().balanced());
}

#[test]
fn a_frame_without_room_for_its_tag_is_dropped() {
    let (mut worker, wires) = bench();
    // What the tunnel and Ethernet take beyond the header that goes, and no more.
    let mut cramped = HeapBuffer::with_headroom(&to_user(1), 44 + 3);
    push(&mut cramped, CUSTOMER, Tag::new(60)).unwrap();
    wires[N6].0.borrow_mut().to_worker.push_back(cramped);
    worker.turn(2);
    assert_eq!(worker.counters().drops[DropReason::NoHeadroom as usize], 1);
    assert!(worker.books().balanced());
}

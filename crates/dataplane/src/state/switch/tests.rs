use super::*;
use rules::Instance;

const A: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const B: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const NET: Instance = Instance::DEFAULT;

fn program() -> Option<Box<EthernetProgram>> {
    let mut rules = crate::fixture::ethernet(1);
    rules.urrs = vec![rules::Urr {
        id: rules::UrrId(1),
        triggers: rules::Triggers::MAC_ADDRESSES,
        ethernet_inactivity_s: Some(10),
        ..rules::Urr::default()
    }];
    rules::compile(&rules).unwrap().ethernet
}

fn switch() -> Switch {
    switch_of(3)
}

fn switch_of(macs: usize) -> Switch {
    let limits = Limits { macs, ethernet_sessions: 2, ..Limits::default() };
    let mut switch = Switch::new(&limits);
    switch.enter(SessionIndex(7), program());
    switch.enter(SessionIndex(8), program());
    switch
}

fn seen(switch: &Switch, session: u32) -> Vec<SeenMac> {
    let mut macs = Vec::with_capacity(MACS_PER_SESSION);
    switch.list(SessionIndex(session), &mut macs);
    macs
}

fn macs(switch: &Switch, session: u32) -> Vec<[u8; 6]> {
    seen(switch, session).iter().map(|seen| seen.mac).collect()
}

const UNTAGGED: Vlans = (None, None);

fn changed(switch: &mut Switch) -> Vec<u32> {
    let mut all: Vec<u32> = std::iter::from_fn(|| switch.next_changed()).map(|session| session.0).collect();
    all.sort_unstable();
    all
}

#[test]
fn an_address_is_behind_the_session_that_used_it_last() {
    let mut switch = switch();
    assert_eq!(changed(&mut switch), [7, 8], "who asks is told how things are");
    switch.learn(SessionIndex(7), (A, UNTAGGED), 1).unwrap();
    switch.learn(SessionIndex(7), (A, UNTAGGED), 2).unwrap();
    assert_eq!((switch.find(A, NET), changed(&mut switch)), (Some(SessionIndex(7)), vec![7]));
    switch.learn(SessionIndex(8), (A, UNTAGGED), 3).unwrap();
    assert_eq!((switch.find(A, NET), changed(&mut switch)), (Some(SessionIndex(8)), vec![7, 8]));
    assert_eq!((macs(&switch, 7), macs(&switch, 8)), (vec![], vec![A.0]));
    assert_eq!(switch.find(A, Instance::of("other")), None);
    switch.forget(A, NET);
    assert_eq!((switch.find(A, NET), changed(&mut switch)), (None, vec![8]));
}

#[test]
fn a_station_is_told_with_its_tags_and_with_others_once_it_is_silent_with_those() {
    let mut switch = switch();
    changed(&mut switch);
    let [ten, twenty] = [(Some(10), None), (Some(20), Some(7))];
    let told = |(c_vlan, s_vlan): Vlans| vec![SeenMac { mac: A.0, c_vlan, s_vlan }];
    switch.learn(SessionIndex(7), (A, ten), 0).unwrap();
    assert_eq!((seen(&switch, 7), changed(&mut switch)), (told(ten), vec![7]));
    for second in 1..30 {
        switch.learn(SessionIndex(7), (A, twenty), second * SECOND_NS).unwrap();
        switch.learn(SessionIndex(7), (A, ten), second * SECOND_NS).unwrap();
    }
    assert_eq!((seen(&switch, 7), changed(&mut switch)), (told(ten), vec![]));
    switch.learn(SessionIndex(7), (A, twenty), 39 * SECOND_NS).unwrap();
    assert_eq!((seen(&switch, 7), changed(&mut switch)), (told(twenty), vec![7]));
}

#[test]
fn silent_addresses_are_forgotten() {
    let mut switch = switch();
    switch.learn(SessionIndex(7), (A, UNTAGGED), 0).unwrap();
    switch.learn(SessionIndex(7), (B, UNTAGGED), 5 * SECOND_NS).unwrap();
    switch.expire(10 * SECOND_NS);
    assert_eq!(macs(&switch, 7), [B.0]);
}

#[test]
fn limits_hold_and_places_come_back() {
    let mut switch = switch();
    let mac = |n| MacAddress([2, 0, 0, 0, 1, n]);
    (0..3).for_each(|n| switch.learn(SessionIndex(7), (mac(n), UNTAGGED), 0).unwrap());
    assert_eq!(switch.learn(SessionIndex(8), (A, UNTAGGED), 0), Err(DropReason::MacTableFull));
    assert!(!switch.has_room(Some(SessionIndex(9))) && switch.has_room(Some(SessionIndex(8))));
    switch.leave(SessionIndex(7));
    assert!(switch.has_room(None) && switch.find(mac(0), NET).is_none());
    (0..3).for_each(|n| switch.learn(SessionIndex(8), (mac(n), UNTAGGED), 0).unwrap());
    assert_eq!(changed(&mut switch), [8]);
}

/// What it may not have takes nothing from others: neither places, nor the address it names.
#[test]
fn a_session_beyond_its_limit_takes_nothing() {
    let mut switch = switch_of(2 * MACS_PER_SESSION);
    let mac = |session: u8, n: usize| MacAddress([2, 0, 0, session, (n >> 8) as u8, n as u8]);
    switch.learn(SessionIndex(8), (mac(8, 0), UNTAGGED), 0).unwrap();
    (0..MACS_PER_SESSION).for_each(|n| switch.learn(SessionIndex(7), (mac(7, n), UNTAGGED), 0).unwrap());
    for n in 0..1_000 {
        let refused = switch.learn(SessionIndex(7), (mac(9, n), UNTAGGED), 0);
        assert_eq!(refused, Err(DropReason::MacTableFull));
    }
    assert_eq!(switch.learn(SessionIndex(7), (mac(8, 0), UNTAGGED), 0), Err(DropReason::MacTableFull));
    assert_eq!(switch.find(mac(8, 0), NET), Some(SessionIndex(8)));
    (1..MACS_PER_SESSION).for_each(|n| switch.learn(SessionIndex(8), (mac(8, n), UNTAGGED), 0).unwrap());
}

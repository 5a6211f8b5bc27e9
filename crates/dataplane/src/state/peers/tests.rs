use super::super::paths::AT_ONCE;
use super::*;
use rules::Interface;

const S: u64 = 1_000_000_000;

fn name(last: u8) -> Name {
    (Side::of(Interface::Access), [10, 30, 0, last].into())
}

fn peers(limit: usize) -> Peers {
    Peers::new(limit, Echo::default())
}

#[test]
fn a_peer_is_remembered_without_tunnels_until_its_place_is_needed() {
    let mut peers = peers(2);
    let first = peers.enter(name(1), || None);
    peers.leave(first);
    assert_eq!(peers.room(), 2);
    assert_eq!(peers.enter(name(1), || None), first, "a modification gives the tunnel back");
    let second = peers.enter(name(2), || None);
    assert_eq!(peers.room(), 0);
    peers.leave(second);
    assert_eq!((peers.room(), peers.enter(name(3), || None)), (1, second));
    assert_eq!((peers.room(), peers.counts(0).peers), (0, 2));
}

#[test]
fn a_peer_without_tunnels_is_forgotten_in_time() {
    let mut peers = peers(4);
    let index = peers.enter(name(1), || None);
    peers.leave(index);
    peers.look(0);
    peers.look(MEMORY_NS);
    assert!(peers.by_name.contains_key(&name(1)));
    peers.look(MEMORY_NS + 1);
    assert_eq!((peers.by_name.len(), peers.idle, peers.room()), (0, 0, 4));
    assert_eq!(peers.enter(name(2), || None), index);
}

/// Nobody is asked where no route leads.
#[test]
fn a_peer_without_a_route_is_no_failure() {
    let mut peers = peers(1);
    peers.enter(name(1), || None);
    for second in 0..100 {
        let due = peers.look(second * S);
        assert!(due.questions.is_empty() && due.changes.is_empty());
    }
    let mut list = Vec::with_capacity(1);
    assert_eq!(peers.list(0, 0, &mut list), None);
    assert_eq!(list.first().map(|peer| peer.path), Some(PathState::NoRoute));
}

/// A way that leads anywhere.
fn way() -> Option<Way> {
    let mut config = crate::fixture::config();
    config.limits = crate::Limits { sessions: 1, pdrs: 2, flows: 8, kept: 1, ..config.limits };
    let punting = crate::state::Punting::new(&config.ports, |_| 0);
    let state =
        crate::state::State::new(&config, None, (crate::steering::Steering::alone(), punting)).ok()?;
    crate::state::State::way(
        &state.ports,
        &state.routes,
        (Side::of(Interface::Access), crate::fixture::GNB.into()),
    )
}

/// No turn asks many, none lists many, and nobody is left out.
#[test]
fn many_peers_are_asked_and_listed_piece_by_piece() {
    let mut peers = peers(600);
    for number in 0..600_u16 {
        let [high, low] = number.to_be_bytes();
        peers.enter((Side::of(Interface::Access), [10, 30, high, low].into()), way);
    }
    let mut asked = Vec::new();
    for _ in 0..20 {
        asked.push(peers.look(1).questions.len());
    }
    assert!(asked.iter().all(|asked| *asked <= AT_ONCE));
    assert_eq!((asked.iter().sum::<usize>(), peers.counts(0).requests), (600, 600));
    let (mut list, mut from, mut turns) = (Vec::with_capacity(600), Some(0), 0);
    while let Some(next) = from {
        (from, turns) = (peers.list(next, 1, &mut list), turns + 1);
    }
    let mut addresses: Vec<IpAddr> = list.iter().map(|peer| peer.address).collect();
    addresses.dedup();
    assert_eq!((addresses.len(), turns), (600, 3));
}

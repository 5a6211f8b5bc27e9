//! Changes to messages: what senders get wrong, and what nobody would send.

use crate::datagram::Datagram;
use crate::dice::Dice;
use crate::tree::{self, Tree, Way};

/// Octets a value may grow by.
const LONGER: usize = 8;
/// Message types, and one beyond.
const TYPES: usize = 58;

/// Changes one thing; a message without IEs gets one of the donor's, or another header.
pub fn mutate(datagram: &mut Datagram, donor: &Datagram, dice: &mut Dice) {
    let ways = tree::places(&datagram.body);
    if dice.once_in(16) {
        return header(datagram, donor, dice);
    }
    match dice.one_of(&ways).cloned() {
        Some(way) if !dice.once_in(5) => change(&mut datagram.body, &way, dice),
        _ => splice(&mut datagram.body, donor, dice),
    }
}

fn change(body: &mut Vec<Tree>, way: &Way, dice: &mut Dice) {
    let kind = dice.below(12);
    if kind == 0 {
        return move_elsewhere(body, way, dice);
    }
    let Some((_, list, at)) = tree::around(body, way) else { return };
    match kind {
        1 => drop(list.remove(at)),
        2 => list.extend_from_within(at..=at),
        3 => {
            let other = dice.below(list.len());
            list.swap(at, other);
        }
        _ => list.get_mut(at).into_iter().for_each(|tree| alter(tree, kind, dice)),
    }
}

/// The IE's own number, length or value.
fn alter(tree: &mut Tree, kind: usize, dice: &mut Dice) {
    match kind {
        4 => tree.ie = dice.one_of(pfcp::ie::ALL).map_or(tree.ie, |(ie, _)| *ie),
        5 => tree.lie = Some(lie(tree.value.len(), dice)),
        6 => (tree.value, tree.children) = (vec![], vec![]),
        7 => drop(tree.value.pop()),
        8 => tree.value.extend((0..=dice.below(LONGER)).map(|_| dice.number() as u8)),
        9 => {
            let octet = if dice.once_in(2) { 0 } else { u8::MAX };
            tree.value.fill(octet);
        }
        _ => {
            let (at, bit) = (dice.below(tree.value.len()), dice.below(8));
            tree.value.get_mut(at).into_iter().for_each(|octet| *octet ^= 1 << bit);
        }
    }
}

/// A length that is not true: near it, or far beyond.
fn lie(length: usize, dice: &mut Dice) -> u16 {
    let near = (length + 4).saturating_sub(dice.below(8));
    if dice.once_in(4) { dice.number() as u16 } else { near as u16 }
}

/// Into any group, or out of all.
fn move_elsewhere(body: &mut Vec<Tree>, way: &Way, dice: &mut Dice) {
    let Some((_, list, at)) = tree::around(body, way) else { return };
    let moved = list.remove(at);
    insert(body, moved, dice);
}

fn insert(body: &mut Vec<Tree>, tree: Tree, dice: &mut Dice) {
    let ways = tree::places(body);
    let is_group = |way: &&Way| {
        tree::around(&mut body.clone(), way)
            .is_some_and(|(_, list, at)| list.get(at).is_some_and(Tree::is_group))
    };
    let groups: Vec<Way> = ways.iter().filter(is_group).cloned().collect();
    let chosen = groups.get(dice.below(groups.len() + 1));
    let place = chosen.and_then(|way| tree::around(body, way)).and_then(|(_, list, at)| list.get_mut(at));
    match place {
        Some(group) => group.children.push(tree),
        None => body.push(tree),
    }
}

/// An IE of another message: in the place of one of that number, or anywhere.
fn splice(body: &mut Vec<Tree>, donor: &Datagram, dice: &mut Dice) {
    let mut donated = donor.body.clone();
    let ways = tree::places(&donated);
    let taken = dice.one_of(&ways).and_then(|way| tree::around(&mut donated, way));
    let Some(taken) = taken.and_then(|(_, list, at)| list.get(at).cloned()) else { return };
    let mut same = tree::places(body);
    same.retain(|way| number(body, way) == Some(taken.ie));
    let place = dice.one_of(&same).filter(|_| !dice.once_in(3)).cloned();
    match place.as_ref().and_then(|way| tree::around(body, way)).and_then(|(_, list, at)| list.get_mut(at)) {
        Some(place) => *place = taken,
        None => insert(body, taken, dice),
    }
}

fn number(body: &mut Vec<Tree>, way: &Way) -> Option<u16> {
    tree::around(body, way).and_then(|(_, list, at)| list.get(at)).map(|tree| tree.ie)
}

fn header(datagram: &mut Datagram, donor: &Datagram, dice: &mut Dice) {
    match dice.below(8) {
        0 => datagram.first[0] ^= 1 << dice.below(8),
        1 => datagram.first[1] = dice.below(TYPES) as u8,
        2 => datagram.lie = Some(lie(datagram.write().len(), dice)),
        3 => datagram.seid = datagram.seid.map(|_| 0),
        4 => datagram.seid = donor.seid.or(datagram.seid),
        5 => datagram.seid = datagram.seid.map(|seid| seid ^ (1 << dice.below(64))),
        6 => datagram.sequence = donor.sequence,
        _ => datagram.rest.extend((0..=dice.below(LONGER)).map(|_| dice.number() as u8)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn request(pdr_id: u16) -> Datagram {
        let remove = pfcp::RemovePdr { pdr_id, carried: vec![] };
        let request = pfcp::SessionModificationRequest { remove_pdrs: vec![remove; 3], ..Default::default() };
        Datagram::read(&pfcp::encode(&pfcp::Message::session(1, 2, request))).unwrap()
    }

    #[test]
    fn a_seed_says_what_changes_and_others_change_other_things() {
        let (whole, donor) = (request(1), request(2));
        let changed = |seed| {
            let mut changed = whole.clone();
            mutate(&mut changed, &donor, &mut Dice::new(seed));
            changed.write()
        };
        assert!((0..500).all(|seed| changed(seed) == changed(seed)));
        let different: BTreeSet<Vec<u8>> = (0..500).map(changed).collect();
        assert!(different.len() > 100, "{}", different.len());
        let sound = different.iter().filter(|bytes| Datagram::is_sound(bytes)).count();
        assert!(sound * 4 > different.len() * 3, "{sound} of {} get beyond the header", different.len());
        let read = different.iter().filter(|bytes| pfcp::decode(bytes).is_ok()).count();
        assert!(read * 5 > different.len(), "{read} of {} are read", different.len());
    }
}

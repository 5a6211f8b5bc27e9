//! Does what an operator orders.

use super::control::{Done, Order};
use super::predefined::{Granted, Tables, Wish};
use machine::Time;
use n4::{Node, Output};
use session::Change;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// What is to be carried out and kept, and what the operator is told.
#[derive(Default)]
pub(super) struct Obeyed {
    pub(super) outputs: Vec<Output>,
    pub(super) changes: Vec<Change>,
    pub(super) done: Done,
}

/// Does what concerns the node and its predefined rules.
pub(super) fn obey(node: &mut Node, tables: &mut Tables, order: Order, now: Time) -> Obeyed {
    let (mut gone, mut unreleased) = (0, BTreeMap::new());
    let (outputs, asked) = match order {
        Order::Release { grace_s, peer: None } => leave(node, grace_s, now),
        Order::Release { grace_s, peer: Some(peer) } => leave_one(node, (&node_id(peer), grace_s), now),
        Order::Stay { peer: None } => {
            gone = node.associations().iter().map(|peer| node.parted_with(peer) as u64).sum();
            unreleased = node.unreleased();
            stay(node, now)
        }
        Order::Stay { peer: Some(peer) } => {
            let peer = node_id(peer);
            gone = node.parted_with(&peer) as u64;
            unreleased = node.unreleased();
            unreleased.retain(|other, _| *other == peer);
            stay_with(node, &peer, now)
        }
        Order::Leaving => {
            unreleased = node.unreleased();
            (vec![], node.leaving())
        }
        Order::Associations => {
            let done = Done { associations: node.overview(now), ..Done::default() };
            return Obeyed { done, ..Obeyed::default() };
        }
        Order::Applications => {
            let done = Done { applications: node.applications(), ..Done::default() };
            return Obeyed { done, ..Obeyed::default() };
        }
        Order::ComeOfPredefined(seid) => {
            let done = Done { come_of: node.come_of_predefined(seid), ..Done::default() };
            return Obeyed { done, ..Obeyed::default() };
        }
        Order::Predefined(wish) => return predefined(node, tables, wish, now),
    };
    let unreleased = unreleased.into_iter().map(|(peer, sessions)| (peer, sessions as u64)).collect();
    Obeyed { outputs, done: Done { asked, gone, unreleased, ..Done::default() }, ..Obeyed::default() }
}

/// Whatever is wrong changes nothing.
fn predefined(node: &mut Node, tables: &mut Tables, wish: Wish, now: Time) -> Obeyed {
    let (changed, does) = match wish {
        Wish::List => {
            let granted = Granted { entries: tables.entries(), ..Granted::default() };
            return granted_by(node, granted);
        }
        Wish::Put { text } => (tables.put(&text), "put"),
        Wish::Remove { names } => (tables.remove(&names), "removed"),
    };
    let changed = match changed {
        Ok(changed) => changed,
        Err(why) => return granted_by(node, Granted { refused: Some(why), ..Granted::default() }),
    };
    let entries = tables.commit(&changed);
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    tracing::info!("predefined rules and groups are {does}: {}", names.join(", "));
    let outputs = node.put_predefined(changed.table, now);
    let obeyed = granted_by(node, Granted { entries, ..Granted::default() });
    Obeyed { outputs, changes: changed.changes, ..obeyed }
}

fn granted_by(node: &Node, granted: Granted) -> Obeyed {
    let predefined = Some(Granted { unrenewed: node.unrenewed(), ..granted });
    Obeyed { done: Done { predefined, ..Done::default() }, ..Obeyed::default() }
}

/// As control planes are known, however it was typed.
fn node_id(typed: String) -> String {
    match typed.parse::<IpAddr>() {
        Ok(address) => address.to_string(),
        Err(_) => typed.to_ascii_lowercase(),
    }
}

/// Asks all to release us; who they are.
fn leave(node: &mut Node, grace_s: u64, now: Time) -> (Vec<Output>, Vec<String>) {
    let outputs = node.leave(Duration::from_secs(grace_s), now);
    let asked = node.leaving();
    let all = if asked.is_empty() { "nobody".to_owned() } else { asked.join(", ") };
    tracing::info!("leave is taken: nobody may associate, asked to release us within {grace_s} s: {all}");
    (outputs, asked)
}

/// Asks one; nobody, if it is not associated.
fn leave_one(node: &mut Node, (peer, grace_s): (&String, u64), now: Time) -> (Vec<Output>, Vec<String>) {
    let outputs = node.leave_one(peer, Duration::from_secs(grace_s), now);
    let asked: Vec<String> = node.leaving().into_iter().filter(|other| other == peer).collect();
    if !asked.is_empty() {
        tracing::info!("{peer} is asked to release us within {grace_s} s");
    }
    (outputs, asked)
}

/// Takes the order to leave back; who is associated.
fn stay(node: &mut Node, now: Time) -> (Vec<Output>, Vec<String>) {
    let outputs = node.stay(now);
    tracing::info!("no leave is taken: control planes may associate");
    (outputs, node.associations())
}

/// Takes it back for one; nobody, if it is not associated, or has left.
fn stay_with(node: &mut Node, peer: &String, now: Time) -> (Vec<Output>, Vec<String>) {
    let outputs = node.stay_with(peer, now);
    let known: Vec<String> = node.associations().into_iter().filter(|other| other == peer).collect();
    if !known.is_empty() {
        tracing::info!("no leave is taken of {peer}");
    }
    (outputs, known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_id_is_found_however_it_is_typed() {
        let known = |typed: &str| node_id(typed.to_owned());
        assert_eq!(known("SMF.Example"), "smf.example");
        assert_eq!(known("2001:DB8:0:0::1"), "2001:db8::1");
        assert_eq!(known("10.40.0.9"), "10.40.0.9");
    }
}

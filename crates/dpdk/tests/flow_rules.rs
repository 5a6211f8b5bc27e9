//! Flow rules: drivers that have none say so, and those that have some are asked.

#![allow(clippy::unwrap_used, reason = "tests speak plainly")]

mod common;

use anchorline_dpdk::{Error, Port};
use common::namespace::in_namespace;
use common::{open, pool};
use std::path::Path;
use steer::{Action, Budget, ExactRules, Family, Item, Rss, RssType, Rule, Setup, Takes, Target};

/// The user's address in the tunnel chooses the queue.
fn inner_hash() -> Rule {
    let rss = Rss { types: vec![RssType::Ipv4, RssType::SourceOnly], ..Rss::default() };
    let pattern = vec![Item::Eth, Item::Ipv4, Item::Udp, Item::Gtpu, Item::Ipv4];
    Rule::new(pattern, Action::Rss(rss))
}

fn to_queue(layers: Vec<Item>) -> Rule {
    Rule::new(layers, Action::Queue(0))
}

fn refusal(result: Result<(), Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_driver_without_flow_rules_says_so() {
    for device in ["net_null0", "net_ring0"] {
        let mut port = open(device, &pool());
        let sentence = refusal(port.validate_rule(&inner_hash()));
        let expected = format!(
            "device \"{device}\" does not take the flow rule \"pattern eth / ipv4 / udp / gtpu / ipv4 / end actions rss \
             types ipv4 l3-src-only end key_len 0 queues end / end\": Function not implemented"
        );
        assert_eq!(sentence, expected);
        assert!(matches!(port.create_rule(&inner_hash()), Err(Error::FlowRule { .. })));
        assert!(refusal(port.flush_rules()).contains("cannot be freed of its flow rules: "));
    }
}

#[test]
fn a_driver_without_flow_rules_is_given_no_exact_ones() {
    let mut port = open("net_null2", &pool());
    let (takes, refused) = Takes::ask(&mut port, Family::Ice);
    assert!(!takes.any() && refused.len() == 2, "{refused:?}");
    assert!(refused.iter().all(|words| words.ends_with("Function not implemented")), "{refused:?}");
    let mut rules = ExactRules::new(port, (Family::Ice, Takes { tunnels: true, ..takes }), 8);
    let mut budget = Budget::new(|| 0);
    for session in 0..2 {
        rules.lead((session, Target::Tunnel(7)), 0, &mut budget);
    }
    let state = rules.state();
    assert_eq!((state.installed, state.refused, state.words.len()), (0, 2, 1), "{state:?}");
}

#[test]
fn what_only_other_cards_have_is_refused() {
    let mut port = open("net_null1", &pool());
    for (setup, expected) in [
        (
            Setup::Profile("/nowhere.pkgo"),
            "cannot be taught a profile: /nowhere.pkgo cannot be read (No such file",
        ),
        (Setup::FlowType { pctype: 22, flow_type: 26 }, "cannot be given a flow type: its driver cannot"),
        (
            Setup::HashWords { pctype: 22, words: vec![15, 16] },
            "cannot be told what to hash: its driver cannot",
        ),
    ] {
        let sentence = refusal(port.set(&setup));
        assert!(sentence.contains(expected), "{sentence}");
    }
    let queues = port.take_rx_queues();
    let sentence = refusal(port.set(&Setup::HashWords { pctype: 22, words: vec![15] }));
    assert!(sentence.ends_with("workers have its queues: it cannot stand still"), "{sentence}");
    drop(queues);
}

/// The TAP driver turns rules into those of the kernel's classifier (tc flower), which not every kernel has: what it
/// checks itself it checks here, and to put a rule in force it asks the kernel.
#[test]
fn a_tap_takes_rules_it_understands() {
    if !Path::new("/dev/net/tun").exists() {
        return eprintln!("skipped: there is no /dev/net/tun");
    }
    in_namespace(|| {
        let mut port = open("net_tap7,iface=t7", &pool());
        let plain = to_queue(vec![Item::Eth, Item::Ipv4, Item::UdpTo(2152)]);
        port.validate_rule(&plain).unwrap();
        port.validate_rule(&to_queue(vec![Item::Eth, Item::To([10, 0, 0, 1].into()), Item::Tcp])).unwrap();
        for rule in [inner_hash(), to_queue(vec![Item::Eth, Item::Ipv4, Item::Udp, Item::GtpuTeid(7)])] {
            let sentence = refusal(port.validate_rule(&rule));
            assert!(
                sentence.starts_with("device \"net_tap7,iface=t7\" does not take the flow rule"),
                "{sentence}"
            );
        }
        put_in_force(&mut port, &plain);
        port.flush_rules().unwrap();
    });
}

fn put_in_force(port: &mut Port, rule: &Rule) {
    match port.create_rule(rule) {
        Ok(id) => {
            port.destroy_rule(id).unwrap();
            assert!(refusal(port.destroy_rule(id)).ends_with("there is no such rule"));
        }
        Err(error) => {
            println!("this kernel: {error}");
            assert!(matches!(error, Error::FlowRule { .. }), "{error}");
        }
    }
}

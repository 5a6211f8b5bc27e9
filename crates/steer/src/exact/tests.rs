//! The set against a card that may refuse, is full, and takes its time.

use super::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// It holds so many rules, and each call takes so long.
struct Model {
    now_us: Rc<Cell<u64>>,
    cost_us: u64,
    room: usize,
    refuses: Option<&'static str>,
    rules: BTreeMap<u64, String>,
    calls: u64,
}

impl Model {
    fn call(&mut self) -> u64 {
        self.now_us.set(self.now_us.get() + self.cost_us);
        self.calls += 1;
        self.calls
    }

    fn judge(&self, rule: &Rule) -> Result<(), String> {
        match self.refuses.filter(|word| rule.to_string().contains(word)) {
            Some(word) => Err(format!("the rule \"{rule}\": no {word}")),
            None => Ok(()),
        }
    }
}

impl ExactCard for Model {
    type Handle = u64;

    fn validate(&self, rule: &Rule) -> Result<(), String> {
        self.judge(rule)
    }

    fn create(&mut self, rule: &Rule) -> Result<u64, String> {
        let handle = self.call();
        self.judge(rule)?;
        if self.rules.len() >= self.room {
            return Err(format!("the rule \"{rule}\": no room"));
        }
        self.rules.insert(handle, rule.to_string());
        Ok(handle)
    }

    fn destroy(&mut self, handle: u64) -> Result<(), String> {
        self.call();
        self.rules.remove(&handle).map(drop).ok_or_else(|| "there is no such rule".to_owned())
    }
}

fn model(cost_us: u64) -> Model {
    let now_us = Rc::new(Cell::new(0));
    Model { now_us, cost_us, room: usize::MAX, refuses: None, rules: BTreeMap::new(), calls: 0 }
}

/// Rules of a family on a card, with time that passes as calls take it.
fn rules(family: Family, card: Model, limit: usize) -> (ExactRules<Model>, Budget, Rc<Cell<u64>>) {
    let now_us = card.now_us.clone();
    let clock = now_us.clone();
    let takes = Takes { tunnels: true, addresses: true, prefixes: family == Family::Mlx5 };
    (ExactRules::new(card, (family, takes), limit), Budget::new(move || clock.get()), now_us)
}

const fn tunnel(session: u64) -> (u64, Target) {
    (session, Target::Tunnel(0x100 + session as u32))
}

#[test]
fn a_target_is_led_until_its_session_ends() {
    let (mut rules, mut budget, _) = rules(Family::Ice, model(0), 16);
    let address = Target::Address([10, 60, 0, 1].into());
    rules.lead(tunnel(1), 2, &mut budget);
    rules.lead((1, address), 2, &mut budget);
    rules.lead(tunnel(2), 3, &mut budget);
    let state = rules.state();
    assert_eq!((state.limit, state.installed), (16, 5));
    assert_eq!(state.rules, [(tunnel(1).1, 2), (tunnel(2).1, 3), (address, 2)]);
    let lines: Vec<&str> = rules.card().rules.values().map(String::as_str).collect();
    assert_eq!(
        lines[0],
        "pattern eth / ipv4 / udp / gtpu teid is 0x00000101 / end actions queue index 2 / end"
    );
    assert_eq!(lines[2], "pattern eth / ipv4 dst is 10.60.0.1 / end actions queue index 2 / end");
    rules.end(1);
    assert_eq!(rules.card().rules.len(), 5, "it goes when there is time");
    rules.withdraw(&mut budget);
    assert_eq!((rules.card().rules.len(), rules.state().rules), (2, vec![(tunnel(2).1, 3)]));
    rules.end(1);
    rules.withdraw(&mut budget);
    assert_eq!((rules.state().refused, rules.sessions.len(), rules.over.len()), (0, 1, 0));
}

#[test]
fn what_a_session_leaves_goes_and_the_rest_stays() {
    let (mut rules, mut budget, _) = rules(Family::Mlx5, model(0), 16);
    let prefix = (1, Target::Prefix(0x2001_0db8_0060_0000));
    rules.lead(tunnel(1), 1, &mut budget);
    rules.lead(prefix, 1, &mut budget);
    // Not its own.
    rules.leave((2, prefix.1));
    rules.leave(tunnel(1));
    rules.withdraw(&mut budget);
    assert_eq!(rules.state().rules, [(prefix.1, 1)]);
    let line = rules.card().rules.values().next().unwrap();
    assert!(line.contains("ipv6 dst spec 2001:db8:60:: dst prefix 64 /"), "{line}");
}

/// A control plane gives a tunnel anew before the session that had it is gone from its worker.
#[test]
fn no_rule_of_another_session_leads_what_is_claimed() {
    let (mut rules, mut budget, _) = rules(Family::Mlx5, model(0), 16);
    let again = (9, tunnel(1).1);
    rules.lead(tunnel(1), 1, &mut budget);
    rules.claim(tunnel(1), &mut budget);
    assert_eq!(rules.state().installed, 1, "its own stays");
    rules.claim(again, &mut budget);
    assert_eq!((rules.state().installed, rules.card().rules.len()), (0, 0));
    rules.lead(tunnel(1), 1, &mut budget);
    rules.lead(again, 3, &mut budget);
    assert_eq!(rules.state().rules, [(again.1, 3)]);
    rules.end(1);
    rules.withdraw(&mut budget);
    assert_eq!((rules.state().rules, rules.card().rules.len()), (vec![(again.1, 3)], 1));
    // Of a session of the same name that ended, too.
    rules.end(9);
    rules.claim(again, &mut budget);
    assert_eq!(rules.card().rules.len(), 0);
    rules.lead(again, 2, &mut budget);
    rules.withdraw(&mut budget);
    assert_eq!(rules.state().rules, [(again.1, 2)], "what is led anew is not over");
}

#[test]
fn there_is_a_limit_and_what_is_taken_out_makes_room() {
    let (mut rules, mut budget, _) = rules(Family::Ice, model(0), 5);
    (1..=3).for_each(|session| rules.lead(tunnel(session), 0, &mut budget));
    let state = rules.state();
    assert_eq!((state.installed, state.over_limit, state.refused), (4, 1, 0));
    rules.end(2);
    rules.withdraw(&mut budget);
    rules.lead(tunnel(3), 0, &mut budget);
    assert_eq!((rules.state().installed, rules.state().over_limit), (4, 1));
    let (rules, ..) = self::rules(Family::Iavf, model(0), 10_000);
    assert_eq!(rules.state().limit, 128);
}

#[test]
fn of_many_the_first_are_told() {
    let (mut rules, mut budget, _) = rules(Family::Mlx5, model(0), 16_384);
    (0..1_100).rev().for_each(|session| rules.lead(tunnel(session), 3, &mut budget));
    let state = rules.state();
    assert_eq!((state.led, state.rules.len()), (1_100, TOLD_MAX));
    assert_eq!((state.rules[0].0, state.rules[TOLD_MAX - 1].0), (tunnel(0).1, tunnel(1_023).1));
}

/// Two milliseconds in a row, then a tenth of the time; nothing is made up for later.
#[test]
fn a_burst_costs_no_more_than_the_budget() {
    let (mut rules, mut budget, now_us) = rules(Family::Mlx5, model(300), 1_000);
    (1..=100).for_each(|session| rules.lead(tunnel(session), 0, &mut budget));
    let state = rules.state();
    // A tenth of what passes meanwhile comes back.
    assert_eq!((state.installed, state.over_budget), (8, 92));
    assert_eq!(now_us.get(), 2_400);
    now_us.set(now_us.get() + 10_000);
    (101..=200).for_each(|session| rules.lead(tunnel(session), 0, &mut budget));
    assert_eq!((rules.state().installed, rules.state().over_budget), (12, 188));
    // What is taken out costs, too.
    (1..=200).for_each(|session| rules.end(session));
    rules.withdraw(&mut budget);
    assert_eq!(rules.state().installed, 12);
    now_us.set(now_us.get() + 1_000_000);
    rules.withdraw(&mut budget);
    assert_eq!(rules.state().installed, 12 - 8);
    now_us.set(now_us.get() + 1_000_000);
    rules.withdraw(&mut budget);
    assert_eq!((rules.state().installed, rules.card().rules.len()), (0, 0));
}

#[test]
fn a_refusal_is_counted_and_remembered_and_nothing_is_left_of_it() {
    let (mut rules, mut budget, _) = rules(Family::Ice, Model { refuses: Some("gtp_psc"), ..model(0) }, 100);
    rules.lead(tunnel(1), 0, &mut budget);
    rules.lead(tunnel(2), 0, &mut budget);
    let state = rules.state();
    assert_eq!((state.installed, state.refused, rules.card().rules.len()), (0, 2, 0));
    assert!(state.words.len() == 1 && state.words[0].ends_with("no gtp_psc"), "{state:?}");
    rules.lead((3, Target::Address([10, 60, 0, 3].into())), 0, &mut budget);
    assert_eq!(rules.state().installed, 1);
}

#[test]
fn a_card_that_is_full_is_left_alone_until_it_has_lost_a_rule() {
    let (mut rules, mut budget, _) = rules(Family::Mlx5, Model { room: 2, ..model(0) }, 100);
    (1..=50).for_each(|session| rules.lead(tunnel(session), 0, &mut budget));
    assert_eq!((rules.state().installed, rules.state().refused), (2, 48));
    assert_eq!(rules.card().calls, 2 + u64::from(REFUSALS));
    rules.end(1);
    rules.withdraw(&mut budget);
    rules.lead(tunnel(60), 0, &mut budget);
    assert_eq!((rules.state().installed, rules.state().refused), (2, 48));
}

#[test]
fn a_card_is_asked_for_each_kind_and_keeps_nothing_of_it() {
    let ask = |family, refuses| {
        let mut card = Model { refuses, ..model(0) };
        let (takes, refused) = Takes::ask(&mut card, family);
        assert!(card.rules.is_empty(), "{:?}", card.rules);
        ((takes.tunnels, takes.addresses, takes.prefixes), refused.len(), card.calls)
    };
    assert_eq!(ask(Family::I40e, None), ((true, true, false), 0, 12));
    assert_eq!(ask(Family::Ice, None), ((true, true, false), 0, 6));
    assert_eq!(ask(Family::Mlx5, None), ((true, true, true), 0, 6));
    assert_eq!(ask(Family::Mlx5, Some("gtpu")), ((false, true, true), 1, 4));
    assert_eq!(ask(Family::Ice, Some("queue")), ((false, false, false), 2, 0));
    assert_eq!(ask(Family::Other, None), ((false, false, false), 0, 0));
    assert!(Takes { prefixes: true, ..Takes::default() }.any() && !Takes::default().any());
}

#[test]
fn a_kind_that_the_card_does_not_take_is_not_tried() {
    let (mut rules, mut budget, _) = rules(Family::Ice, model(0), 100);
    rules.lead((1, Target::Prefix(1 << 63)), 0, &mut budget);
    assert_eq!((rules.card().calls, rules.state().refused), (0, 0));
}

//! Exact rules of cards: sessions that are elsewhere than a card's hash leads their packets.

use super::*;
use crate::engine::{Directors, Wish};
use crate::fixture::{SIX, six};
use dplink::Spread;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use steer::{Budget, ExactCard, ExactRules, Family, Item, Rule, Table, Takes, Target};

/// Workers, and the queues of each card.
const WORKERS: usize = 4;

/// A card that hashes users' addresses, up and down, and before that obeys exact rules.
#[derive(Clone, Default)]
struct Nic(Rc<RefCell<BTreeMap<u64, Rule>>>);

impl ExactCard for Nic {
    type Handle = u64;

    fn validate(&self, _: &Rule) -> Result<(), String> {
        Ok(())
    }

    fn create(&mut self, rule: &Rule) -> Result<u64, String> {
        let mut rules = self.0.borrow_mut();
        let handle = rules.keys().last().map_or(0, |last| last + 1);
        rules.insert(handle, rule.clone());
        Ok(handle)
    }

    fn destroy(&mut self, rule: u64) -> Result<(), String> {
        self.0.borrow_mut().remove(&rule).map(drop).ok_or_else(|| "there is none".to_owned())
    }
}

fn ipv4(frame: &[u8], at: usize) -> IpAddr {
    <[u8; 4]>::try_from(&frame[at..at + 4]).unwrap().into()
}

/// Whether a layer of a rule's pattern is in a frame; `tunnelled` ones have no container.
fn has(item: &Item, frame: &[u8], tunnelled: bool) -> bool {
    match item {
        Item::Eth | Item::Ipv4 => true,
        Item::Udp => frame[23] == 17,
        Item::UdpTo(port) => frame[23] == 17 && frame[36..38] == port.to_be_bytes(),
        Item::GtpuTeid(teid) => tunnelled && frame[46..50] == teid.to_be_bytes(),
        Item::To(address) => ipv4(frame, 30) == *address,
        _ => false,
    }
}

impl Nic {
    fn queue(&self, frame: &[u8]) -> usize {
        let tunnelled = frame[23] == 17 && frame[36..38] == 2152_u16.to_be_bytes();
        let rules = self.0.borrow();
        let rule = rules.values().find(|rule| rule.pattern.iter().all(|item| has(item, frame, tunnelled)));
        let user = ipv4(frame, if tunnelled { 62 } else { 30 });
        match rule.map(|rule| &rule.action) {
            Some(steer::Action::Queue(queue)) => (*queue).into(),
            _ => steer::queue_of_address(user, true, Table::new(WORKERS as u16, 7).unwrap()).into(),
        }
    }

    fn rules(&self) -> usize {
        self.0.borrow().len()
    }
}

/// Workers behind two cards of a family.
struct Behind {
    team: Team,
    nics: [Nic; 2],
    directors: Directors<Nic>,
}

impl Behind {
    /// With at most so many rules a card; `None` knows of no exact rules at all.
    fn new(family: Family, limit: Option<usize>) -> Self {
        let mut config = config();
        config.limits.sessions = 64;
        config.limits.pdrs = 256;
        let crew = Crew { spread: vec![Spread::InnerHash; 2], ..Crew::of(WORKERS) };
        let mut team = Team::over(&config, &crew);
        team.meet();
        let nics = [Nic::default(), Nic::default()];
        let takes = Takes { tunnels: true, addresses: true, prefixes: family == Family::Mlx5 };
        let rules = |nic: &Nic| limit.map(|limit| ExactRules::new(nic.clone(), (family, takes), limit));
        let directors = Directors::new(nics.iter().map(rules).collect(), Budget::new(|| 0));
        team.engine.lead_exactly(directors.cards());
        Self { team, nics, directors }
    }

    fn put(&mut self, session: u64, revision: u64, rules: Rules) {
        self.team.put(session, revision, rules);
        self.obey();
    }

    fn obey(&mut self) {
        self.directors.obey(self.team.engine.leads());
    }

    fn settle(&mut self) -> Vec<Notice> {
        let told = self.team.settle();
        self.obey();
        told
    }

    /// Sessions 4 to 12, which have to be together: wherever the function of their addresses would have them.
    fn crowd(&mut self) {
        (4..=12).for_each(|session| self.put(session, 1, sharing(session)));
        assert_eq!(self.settle().len(), 9);
    }

    /// A packet of each session each way, from where the cards lead it; how many were handed over, and how many arrived.
    fn traffic(&mut self, sessions: std::ops::RangeInclusive<u64>) -> (u64, usize) {
        let handed = |team: &Team| team.workers.iter().map(|worker| worker.books().handed_out).sum::<u64>();
        let before = handed(&self.team);
        for session in sessions {
            let (up, down) = (from_user(session, address(session), 1), to_user(session as u8));
            self.team.receive(self.nics[N3].queue(&up), N3, &up);
            self.team.receive(self.nics[N6].queue(&down), N6, &down);
        }
        self.settle();
        let arrived = [N3, N6].map(|port| self.team.sent(port).concat().len());
        (handed(&self.team) - before, arrived.iter().sum())
    }

    fn rules(&self) -> [usize; 2] {
        [0, 1].map(|port| self.nics[port].rules())
    }

    /// Sessions of these that a card's hash leads elsewhere than they are.
    fn astray(&self, sessions: std::ops::RangeInclusive<u64>) -> Vec<u64> {
        let hash = Nic::default();
        sessions.filter(|session| hash.queue(&to_user(*session as u8)) != self.team.owner(*session)).collect()
    }
}

/// Of a rate that all such sessions have in common.
fn sharing(session: u64) -> Rules {
    let mut rules = rules(session);
    rules.qers[0].mbr = Some(rules::BitRates { uplink_kbps: 1_000, downlink_kbps: 1_000 });
    rules.qers[0].correlation = Some(7);
    rules
}

#[test]
fn a_session_that_is_elsewhere_is_led_to_its_worker_and_nothing_is_handed_over() {
    let mut without = Behind::new(Family::Ice, None);
    without.crowd();
    let astray = without.astray(4..=12).len() as u64;
    assert!(astray > 3, "{astray}");
    assert_eq!(without.traffic(4..=12), (2 * astray, 18));
    for (family, up, down) in [(Family::I40e, 2, 4), (Family::Ice, 2, 1), (Family::Mlx5, 1, 1)] {
        let mut with = Behind::new(family, Some(1_024));
        with.crowd();
        assert_eq!(with.astray(4..=12).len() as u64, astray);
        assert_eq!(with.rules(), [up, down].map(|rules| rules * astray as usize), "{family}");
        assert_eq!(with.traffic(4..=12), (0, 18), "{family}");
    }
}

#[test]
fn sessions_that_the_hash_leads_right_have_no_rules() {
    let mut behind = Behind::new(Family::Ice, Some(1_024));
    (4..=16).for_each(|session| behind.put(session, 1, rules(session)));
    assert_eq!((behind.settle().len(), behind.astray(4..=16).len()), (13, 0));
    assert_eq!((behind.rules(), behind.traffic(4..=16)), ([0, 0], (0, 26)));
}

/// Beyond the limit they are handed over as without rules.
#[test]
fn what_there_is_no_room_for_is_handed_over() {
    let mut behind = Behind::new(Family::Mlx5, Some(2));
    behind.crowd();
    let astray = behind.astray(4..=12).len() as u64;
    assert_eq!((behind.rules(), behind.traffic(4..=12)), ([2, 2], (2 * (astray - 2), 18)));
    let state = behind.directors.state(N6).unwrap();
    assert_eq!((state.installed, state.over_limit, state.refused), (2, astray - 2, 0));
}

/// The first of the crowd, and one that is not where its address says.
fn strays(behind: &mut Behind) -> u64 {
    behind.crowd();
    behind.astray(4..=12)[0]
}

#[test]
fn rules_are_there_before_a_session_is_and_go_after_it() {
    let mut behind = Behind::new(Family::Mlx5, Some(1_024));
    let stray = strays(&mut behind);
    let before = behind.rules();
    behind.team.ask(Command::Delete { session: Seid(stray) });
    behind.obey();
    assert_eq!(behind.rules(), before.map(|rules| rules - 1));
    // No worker has even read the order.
    behind.put(stray, 5, sharing(stray));
    assert_eq!(behind.rules(), before);
    assert_eq!((behind.settle(), behind.traffic(stray..=stray)), (vec![applied(stray, 5)], (0, 2)));
    assert_eq!(behind.team.engine.handle(Command::Delete { session: Seid(stray) }).unwrap(), None);
    behind.obey();
    assert_eq!(behind.rules(), before, "it is still there");
    behind.settle();
    assert_eq!(behind.rules(), before.map(|rules| rules - 1));
}

/// What is in an old queue would be overtaken by what is in a new one.
#[test]
fn a_session_that_moves_keeps_the_rules_it_has_and_gets_none() {
    let mut behind = Behind::new(Family::Mlx5, Some(1_024));
    (4..=16).for_each(|session| behind.put(session, 1, rules(session)));
    behind.settle();
    let from = behind.team.owner(5);
    let away = |owner: usize| ((owner + 1) % WORKERS) as u8;
    behind.team.engine.want(Wish::asked(1), Seid(5), away(from)).unwrap();
    behind.settle();
    assert_eq!((behind.astray(4..=16), behind.rules()), (vec![5], [0, 0]));
    assert_eq!(behind.traffic(5..=5), (2, 2));
    // By a modification neither.
    behind.put(5, 2, rules(5));
    assert_eq!((behind.settle(), behind.rules()), (vec![applied(5, 2)], [0, 0]));
}

#[test]
fn a_session_that_has_rules_and_moves_is_handed_on_from_where_they_lead() {
    let mut behind = Behind::new(Family::Mlx5, Some(1_024));
    behind.put(9, 1, two_addresses(9).0);
    behind.settle();
    let from = behind.team.owner(9);
    assert_eq!((behind.rules(), behind.traffic(9..=9)), ([1, 1], (0, 2)));
    let led = |behind: &Behind| [N3, N6].map(|port| behind.directors.state(port).unwrap().rules);
    let before = led(&behind);
    behind.team.engine.want(Wish::asked(1), Seid(9), ((from + 1) % WORKERS) as u8).unwrap();
    behind.settle();
    assert_ne!(behind.team.owner(9), from);
    assert_eq!((led(&behind), behind.traffic(9..=9)), (before, (2, 2)));
}

/// Users of a data plane that was started anew have never ceased to send.
#[test]
fn sessions_that_come_again_get_no_rules() {
    let mut behind = Behind::new(Family::Mlx5, Some(1_024));
    behind.team.ask(Command::ResyncBegin { recovery_time_stamp: 7 });
    behind.crowd();
    behind.team.ask(Command::ResyncEnd);
    assert_eq!(behind.rules(), [0, 0]);
    assert!(behind.traffic(4..=12).0 > 0);
    behind.put(13, 1, sharing(13));
    behind.put(14, 1, sharing(14));
    behind.settle();
    let astray = behind.astray(13..=14).len();
    assert!(astray > 0 && behind.rules() == [astray; 2], "{astray}");
}

#[test]
fn what_a_session_gives_up_is_led_no_longer() {
    let mut behind = Behind::new(Family::Mlx5, Some(1_024));
    let stray = strays(&mut behind);
    let before = behind.rules();
    let mut moved = sharing(stray);
    moved.pdrs[0].pdi.f_teid = rules(40).pdrs[0].pdi.f_teid;
    behind.put(stray, 2, moved);
    assert_eq!(behind.rules(), before, "it may be refused");
    behind.settle();
    // The new tunnel has no rule: the session was there before.
    assert_eq!(behind.rules(), [before[0] - 1, before[1]]);
}

/// The worker has not let go of the session that had them yet.
#[test]
fn a_tunnel_and_an_address_that_are_given_anew_are_not_led_to_the_old_worker() {
    let mut behind = Behind::new(Family::Mlx5, Some(1_024));
    let stray = strays(&mut behind);
    let before = behind.rules();
    behind.team.engine.handle(Command::Delete { session: Seid(stray) }).unwrap();
    behind.obey();
    let mut heir = rules(stray);
    heir.qers[0].correlation = None;
    behind.put(40, 1, heir);
    assert_eq!(behind.rules(), before.map(|rules| rules - 1));
    behind.settle();
    assert_eq!(behind.rules(), before.map(|rules| rules - 1));
    assert_eq!(behind.traffic(stray..=stray), (0, 2));
}

/// A session that its worker refuses leaves no rules behind.
#[test]
fn a_session_that_is_refused_leaves_no_rule() {
    let mut behind = Behind::new(Family::Mlx5, Some(1_024));
    behind.crowd();
    let before = behind.rules();
    for session in 20..=26 {
        let mut too_large = sharing(session);
        for at in 0..400 {
            let mut pdr = too_large.pdrs[1].clone();
            let mut far = too_large.fars[1].clone();
            far.id = rules::FarId(100 + u32::from(at));
            let to = far.forwarding.as_mut().unwrap().outer_header_creation.as_mut().unwrap();
            to.header = rules::OuterHeader::Gtpu(Teid(0x9000 + u32::from(at)));
            (pdr.id, pdr.precedence, pdr.far) = (rules::PdrId(100 + at), u32::from(at) + 300, far.id);
            too_large.pdrs.push(pdr);
            too_large.fars.push(far);
        }
        behind.put(session, 1, too_large);
    }
    assert!(behind.rules()[0] > before[0]);
    let told = behind.settle();
    assert!(told.iter().all(|told| matches!(told, Notice::Refused { .. })), "{told:?}");
    assert_eq!((told.len(), behind.rules()), (7, before));
}

/// Of a user who has a prefix, too, which the hash leads elsewhere than the address.
fn two_addresses(session: u64) -> (Rules, u64) {
    let table = Table::new(WORKERS as u16, 7).unwrap();
    let owner = Nic::default().queue(&to_user(session as u8));
    let network = |prefix: u64| std::net::Ipv6Addr::from_bits(u128::from(prefix) << 64);
    let is_away =
        |prefix: &u64| usize::from(steer::queue_of_address(network(*prefix).into(), true, table)) != owner;
    let prefix = (0x2001_0db8_0060_0000..).find(is_away).unwrap();
    let mut both = rules(session);
    let mut second = both.pdrs[1].clone();
    (second.id, second.pdi.ue_ipv4) = (rules::PdrId(3), None);
    second.pdi.ue_ipv6 = Some(format!("{}/64", network(prefix)).parse().unwrap());
    both.pdrs.push(second);
    (both, prefix)
}

impl Behind {
    /// All that is led, of both cards.
    fn targets(&self) -> Vec<Target> {
        let rules = |port| self.directors.state(port).unwrap().rules;
        [N3, N6].into_iter().flat_map(rules).map(|(target, _)| target).collect()
    }
}

/// A second address is led by its own hash; a tunnel is shared by both.
#[test]
fn of_a_user_with_two_addresses_what_is_led_elsewhere_has_rules() {
    for (family, prefixes) in [(Family::Mlx5, 1), (Family::Ice, 0)] {
        let mut behind = Behind::new(family, Some(1_024));
        let (both, prefix) = two_addresses(9);
        behind.put(9, 1, both);
        behind.settle();
        assert!(behind.astray(9..=9).is_empty());
        let expected = [Target::Tunnel(0x108), Target::Prefix(prefix)];
        assert_eq!(behind.targets(), expected[..1 + prefixes], "{family}");
    }
}

/// A card that hashes whole addresses spreads those of one user.
#[test]
fn a_prefix_is_elsewhere_wherever_it_is_if_the_card_hashes_whole_addresses() {
    let led = |family| {
        let mut behind = Behind::new(family, Some(1_024));
        behind.put(SIX, 1, six());
        assert_eq!(behind.settle(), [applied(SIX, 1)]);
        behind.targets()
    };
    let tunnel = Target::Tunnel(0xff + SIX as u32);
    assert_eq!(led(Family::Ice), []);
    assert_eq!(led(Family::I40e), [tunnel]);
    assert_eq!(led(Family::Mlx5), [tunnel, Target::Prefix(0x2001_0db8_0060_0000)]);
}

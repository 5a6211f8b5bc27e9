//! A card made of our rules: it does with a packet what they say, and both directions of a user meet in one worker, in the
//! queue of their class. It takes rules at their word; whether a real card does is not what this shows.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]

use anchorline_steer::{
    Action, Class, Family, Item, KEY, Request, Rss, RssType, Rule, Setup, Side, Step, Table,
    queue_of_address, script, toeplitz,
};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Entries of the cards' tables, as bits.
const TABLE_BITS: u32 = 9;

/// A header of a packet, from the outside in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Layer {
    Eth,
    Ip { source: IpAddr, destination: IpAddr, class: u8 },
    Udp(u16),
    Tcp,
    Gtpu(u32),
    Psc { pdu_type: u8, qfi: u8 },
}

fn fits(item: Item, layer: Layer) -> bool {
    match (item, layer) {
        (Item::Eth, Layer::Eth) | (Item::Udp, Layer::Udp(_)) | (Item::Tcp, Layer::Tcp) => true,
        (Item::Ipv4, Layer::Ip { source, .. }) => source.is_ipv4(),
        (Item::Ipv6, Layer::Ip { source, .. }) => source.is_ipv6(),
        (Item::Ipv4Tos(octet), Layer::Ip { source, class, .. }) => source.is_ipv4() && class == octet,
        (Item::Ipv6Class(octet), Layer::Ip { source, class, .. }) => source.is_ipv6() && class == octet,
        (Item::Ipv4Dscp(dscp), Layer::Ip { source, class, .. }) => source.is_ipv4() && class >> 2 == dscp,
        (Item::Ipv6Dscp(dscp), Layer::Ip { source, class, .. }) => source.is_ipv6() && class >> 2 == dscp,
        (Item::To(address), Layer::Ip { destination, .. }) => address == destination,
        (Item::UdpTo(port), Layer::Udp(to)) => port == to,
        (Item::Gtpu, Layer::Gtpu(_)) | (Item::Psc, Layer::Psc { .. }) => true,
        (Item::GtpuTeid(wanted), Layer::Gtpu(teid)) => wanted == teid,
        (Item::PscType(wanted), Layer::Psc { pdu_type, .. }) => wanted == pdu_type,
        (Item::PscQfi(wanted), Layer::Psc { qfi, .. }) => wanted == qfi,
        _ => false,
    }
}

/// How many layers a rule's pattern goes down, if it fits. A container nobody asks for is passed over.
fn depth(rule: &Rule, packet: &[Layer]) -> Option<usize> {
    let mut at = 0;
    for item in &rule.pattern {
        let asks = matches!(item, Item::Psc | Item::PscType(_) | Item::PscQfi(_));
        if matches!(packet.get(at), Some(Layer::Psc { .. })) && !asks {
            at += 1;
        }
        if !fits(*item, *packet.get(at)?) {
            return None;
        }
        at += 1;
    }
    Some(at)
}

fn address(packet: &[Layer], depth: usize, source_only: bool) -> IpAddr {
    let addresses = packet[..depth].iter().rev().find_map(|layer| match layer {
        Layer::Ip { source, destination, .. } => Some((*source, *destination)),
        _ => None,
    });
    let (source, destination) = addresses.unwrap();
    if source_only { source } else { destination }
}

fn octets(address: IpAddr, types: &[RssType]) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) if types.contains(&RssType::Prefix64) => address.octets()[..8].to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// The card.
struct Card {
    rules: Vec<Rule>,
    setups: Vec<Setup>,
    queues: u16,
    /// What the driver takes for being told to hash nothing: with no type, what the call is for, `ice` does nothing.
    off: Option<Setup>,
}

impl Card {
    fn of(request: &Request, side: Side) -> Self {
        let mut card = Self {
            off: match request.family {
                Family::Ice => Some(Setup::NothingKnownRss),
                Family::Iavf => Some(Setup::NoDefaultRss),
                _ => None,
            },
            rules: Vec::new(),
            setups: Vec::new(),
            queues: request.total_queues().try_into().unwrap(),
        };
        for step in script(request, side).unwrap().steps {
            match step {
                Step::Create(rule) => card.rules.push(rule),
                Step::Set(setup) => card.setups.push(setup),
                Step::Note(_) | Step::Unmet(_) => {}
            }
        }
        card.rules.sort_by_key(|rule| rule.priority);
        card
    }

    fn matching<'a>(&'a self, packet: &'a [Layer]) -> impl Iterator<Item = (&'a Rss, usize)> {
        self.rules.iter().filter(|rule| !rule.pattern.is_empty()).filter_map(|rule| match &rule.action {
            Action::Rss(rss) => Some((rss, depth(rule, packet)?)),
            _ => None,
        })
    }

    /// The hash by the first rule that says what is hashed.
    fn hash(&self, packet: &[Layer]) -> u32 {
        let is_off = |off: &Setup| self.setups.iter().any(|setup| setup == off);
        assert!(self.off.as_ref().is_none_or(is_off), "rules of the driver's own are more specific");
        let (rss, depth) = self.matching(packet).find(|(rss, _)| !rss.types.is_empty()).unwrap();
        let source = rss.types.contains(&RssType::SourceOnly) || rss.types.contains(&RssType::Gtpu);
        if rss.types.contains(&RssType::Gtpu) {
            let words = |of: u8| {
                self.setups.iter().find_map(|setup| match setup {
                    Setup::HashWords { pctype, words } if *pctype == of => Some(words.clone()),
                    _ => None,
                })
            };
            // The words of the inner source address, all of it.
            assert_eq!((words(22), words(23)), (Some(vec![15, 16]), Some((13..=20).collect())));
        }
        toeplitz(&KEY, &octets(address(packet, depth, source), &rss.types))
    }

    /// The queues of the first rule that names some; one for a class of one worker.
    fn group(&self, packet: &[Layer]) -> Option<Vec<u16>> {
        self.rules.iter().filter(|rule| !rule.pattern.is_empty() && depth(rule, packet).is_some()).find_map(
            |rule| match &rule.action {
                Action::Rss(rss) if !rss.queues.is_empty() => Some(rss.queues.clone()),
                Action::Queue(queue) => Some(vec![*queue]),
                _ => None,
            },
        )
    }

    /// Queues that the table leads to: all there are, unless somebody says otherwise.
    fn table(&self) -> u16 {
        let told = self.setups.iter().find_map(|setup| match setup {
            Setup::Table(queues) => Some(*queues),
            _ => None,
        });
        told.unwrap_or(self.queues)
    }

    fn queue(&self, packet: &[Layer]) -> u16 {
        let hash = self.hash(packet);
        match self.group(packet) {
            Some(queues) => queues[usize::try_from(hash).unwrap() % queues.len()],
            None => Table::new(self.table(), TABLE_BITS).unwrap().queue(hash),
        }
    }
}

const GNB: [&str; 2] = ["192.0.2.1", "2001:db8:1::1"];
const SERVER: [&str; 2] = ["198.51.100.7", "2001:db8:2::7"];

/// A packet of a user, up in a tunnel over either family with or without a container, and down plain.
fn packets(ue: IpAddr, outer: usize, qfi: Option<u8>, class: u8) -> (Vec<Layer>, Vec<Layer>) {
    let gnb: IpAddr = GNB[outer].parse().unwrap();
    let server: IpAddr = SERVER[usize::from(ue.is_ipv6())].parse().unwrap();
    let tunnel = Layer::Ip { source: gnb, destination: gnb, class: 0 };
    let mut up = vec![Layer::Eth, tunnel, Layer::Udp(2152), Layer::Gtpu(7)];
    up.extend(qfi.map(|qfi| Layer::Psc { pdu_type: 1, qfi }));
    up.extend([Layer::Ip { source: ue, destination: server, class }, Layer::Tcp]);
    let down = vec![Layer::Eth, Layer::Ip { source: server, destination: ue, class }, Layer::Udp(443)];
    (up, down)
}

fn ue() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|address| IpAddr::V4(Ipv4Addr::from(address))),
        any::<u128>().prop_map(|address| IpAddr::V6(Ipv6Addr::from(address)))
    ]
}

fn families() -> impl Strategy<Value = Family> {
    prop::sample::select(vec![Family::I40e, Family::Ice, Family::Iavf, Family::Mlx5])
}

proptest! {
    #[test]
    fn both_directions_of_a_user_meet(
        family in families(), workers in 1_u16..=64, ue in ue(), outer in 0..2_usize, qfi in proptest::option::of(0..64_u8),
        class: u8,
    ) {
        let request = Request::new(family, workers);
        let (up, down) = packets(ue, outer, qfi, class);
        let queue = Card::of(&request, Side::Access).queue(&up);
        prop_assert!(queue < workers);
        prop_assert_eq!(queue, Card::of(&request, Side::Core).queue(&down));
        // And where the library says they do, on cards whose table is filled in turn.
        let table = Table::new(workers, TABLE_BITS).unwrap();
        if family != Family::Mlx5 {
            prop_assert_eq!(queue, queue_of_address(ue, family.hashes_prefix64(), table));
        }
    }

    /// A class has queues of its own, and the worker is the same in each.
    #[test]
    fn a_class_changes_the_queue_and_not_the_worker(
        family in prop::sample::select(vec![Family::Ice, Family::Iavf, Family::Mlx5]), bits in 0..5_u32, ue in ue(),
        outer in 0..2_usize, ecn in 0..4_u8,
    ) {
        let workers = 1 << bits;
        let classes = vec![
            Class { qfis: vec![1, 5], dscps: vec![46], pcps: vec![] },
            Class { qfis: vec![2], dscps: vec![34, 36], pcps: vec![] },
        ];
        let request = Request { classes, ..Request::new(family, workers) };
        let (access, core) = (Card::of(&request, Side::Access), Card::of(&request, Side::Core));
        let mut workers_seen = Vec::new();
        for (qfi, dscp, group) in [(9, 0, 0), (1, 46, 1), (5, 46, 1), (2, 34, 2), (2, 36, 2)] {
            let (up, down) = packets(ue, outer, Some(qfi), dscp << 2 | ecn);
            let (up, down) = (access.queue(&up), core.queue(&down));
            prop_assert_eq!((up / workers, down / workers), (group, group));
            workers_seen.extend([up % workers, down % workers]);
        }
        prop_assert!(workers_seen.iter().all(|worker| *worker == workers_seen[0]), "{:?}", workers_seen);
    }
}

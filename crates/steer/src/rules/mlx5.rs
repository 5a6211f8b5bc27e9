//! NVIDIA ConnectX with flow steering by the device (`dv_flow_en=1`).
//!
//! What the guide of the driver says, and the rules rest on: GTP-U is parsed when the firmware says so
//! (`FLEX_PARSER_PROFILE_ENABLE=3`); the container is matched in groups other than 0; level 2 hashes inside the tunnel;
//! one side of the addresses can be hashed alone; masks are free, so a DSCP is one rule; the device's table is filled with
//! the queues of a rule over and over. It cannot hash a prefix: users with
//! several IPv6 addresses are spread, and a worker hands their packets over. So are tunnels that come in on the core side.
//! Behind a jump nothing is as it was before: what no rule of the group takes is dropped, so the last rule takes everything.

use super::{VERSIONS, steered};
use crate::request::{Class, Request, Side};
use crate::rule::{Action, Item, Rss, RssType, Rule};
use crate::{KEY, Step, Target};

/// TS 29.281 4.4.2.3.
const GTPU_PORT: u16 = 2152;
/// Octets of key the device takes.
const KEY_LENGTH: usize = 40;
/// Priorities within the group: sessions, classes, the rest of users' packets, and what is no user's (ARP, echo...).
const SESSIONS: u32 = 0;
const CLASSES: u32 = 1;
const REST: u32 = 2;
const NO_USERS: u32 = 3;

pub(super) fn steps(request: &Request, side: Side) -> Vec<Step> {
    let mut steps = vec![
        Step::note(
            "the firmware must parse GTP-U: mlxconfig -d DEVICE set FLEX_PARSER_PROFILE_ENABLE=3, then reset it",
        ),
        Step::Create(Rule::new(vec![Item::Eth], Action::Jump(1))),
    ];
    steps.extend(super::unmet(request, "queue groups by VLAN priority (name QFIs and DSCPs)", |c| {
        !c.pcps.is_empty()
    }));
    steps.extend(steered(request, side));
    for (number, class) in request.classes.iter().enumerate() {
        let queues = request.listed(&request.queues(Some(number)));
        steps.push(Step::Note(format!("class {number}: its queues, hashed as the rest is")));
        match side {
            Side::Access => steps.extend(by_qfi(class, &queues)),
            Side::Core => steps.extend(by_dscp(class, &queues)),
        }
    }
    let queues = request.listed(&request.queues(None));
    steps.push(Step::note("the rest: up the source address inside, down the destination address"));
    steps.extend(match side {
        Side::Access => uplink(REST, None, &queues),
        Side::Core => downlink(&queues),
    });
    steps.push(Step::note("what is no user's: ARP, neighbour discovery, GTP-U messages of nodes, fragments"));
    steps.extend(queues.first().map(|queue| rule(NO_USERS, vec![Item::Eth], Action::Queue(*queue))));
    steps
}

fn rule(priority: u32, pattern: Vec<Item>, action: Action) -> Step {
    Step::Create(Rule { group: 1, priority, pattern, action })
}

fn rss(level: u32, types: [RssType; 2], queues: &[u16]) -> Action {
    let key = KEY.get(..KEY_LENGTH).unwrap_or(&KEY).to_vec();
    Action::Rss(Rss { types: types.to_vec(), level, key, queues: queues.to_vec() })
}

/// Tunnels over both outer families, with this container if any.
fn uplink(priority: u32, container: Option<Item>, queues: &[u16]) -> Vec<Step> {
    let mut steps = Vec::new();
    for outer in [Item::Ipv4, Item::Ipv6] {
        for (inner, kind) in VERSIONS {
            let before = [Item::Eth, outer, Item::UdpTo(GTPU_PORT), Item::Gtpu];
            let pattern = before.into_iter().chain(container).chain([inner]).collect();
            steps.push(rule(priority, pattern, rss(2, [kind, RssType::SourceOnly], queues)));
        }
    }
    steps
}

fn by_qfi(class: &Class, queues: &[u16]) -> Vec<Step> {
    class.qfis.iter().flat_map(|qfi| uplink(CLASSES, Some(Item::PscQfi(*qfi)), queues)).collect()
}

fn by_dscp(class: &Class, queues: &[u16]) -> Vec<Step> {
    let items = class
        .dscps
        .iter()
        .flat_map(|dscp| [(Item::Ipv4Dscp(*dscp), RssType::Ipv4), (Item::Ipv6Dscp(*dscp), RssType::Ipv6)]);
    let step =
        |(ip, kind)| rule(CLASSES, vec![Item::Eth, ip], rss(1, [kind, RssType::DestinationOnly], queues));
    items.map(step).collect()
}

fn downlink(queues: &[u16]) -> Vec<Step> {
    let step = |(ip, kind)| rule(REST, vec![Item::Eth, ip], rss(1, [kind, RssType::DestinationOnly], queues));
    VERSIONS.map(step).to_vec()
}

/// Where the rules of [`steps`] are, before all of them.
pub(super) fn exact(target: Target, queue: u16) -> Vec<Rule> {
    let pattern = match target {
        Target::Tunnel(teid) => vec![Item::Eth, Item::Ipv4, Item::UdpTo(GTPU_PORT), Item::GtpuTeid(teid)],
        Target::Address(address) => vec![Item::Eth, Item::To(address)],
        Target::Prefix(prefix) => vec![Item::Eth, Item::ToPrefix(prefix)],
    };
    vec![Rule { group: 1, priority: SESSIONS, pattern, action: Action::Queue(queue) }]
}

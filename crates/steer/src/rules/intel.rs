//! Intel 800 series with the comms DDP package, as physical function (ice) and as virtual function (iavf).
//!
//! What the drivers (`ice_hash.c`, `ice_fdir_filter.c`, `iavf_hash.c`) and their test plans (advanced RSS for GTPU, flow
//! director) say, and the rules rest on: RSS rules take patterns without values but for the container's PDU type, and no
//! queues; an inner IP pattern covers all transports above it while no more specific rule is there, so the default RSS is
//! off. The two drivers are told so in different words: what `iavf` does with no type of packet, `ice` does only with one
//! that it makes no rule for. Flow director leads to a group of queues, contiguous and a power of two, in which the RSS hash
//! chooses; it matches a QFI, and a type of service as a whole octet, so that a DSCP takes four rules, one for each ECN.

use super::{VERSIONS, group, hash, steered, unmet};
use crate::request::{Class, Request, Side};
use crate::rule::{Action, Item, RssType, Rule};
use crate::{Family, KEY, Setup, Step, Target};

/// PDU types of the container (TS 38.415 5.5.3.1).
const DOWN: u8 = 0;
const UP: u8 = 1;

pub(super) fn steps(request: &Request, side: Side) -> Vec<Step> {
    let no_hash = if request.family == Family::Ice { Setup::NothingKnownRss } else { Setup::NoDefaultRss };
    let mut steps = vec![Step::Set(no_hash), Step::Set(Setup::Key(KEY.to_vec()))];
    if !request.classes.is_empty() {
        steps.push(Step::Set(Setup::Table(request.workers)));
    }
    if request.family == Family::Iavf {
        steps.insert(0, Step::note("a virtual function of an E810 whose host has the comms package; of a 700 series none of this"));
    }
    steps.extend(match side {
        Side::Access => uplink(),
        Side::Core => downlink(),
    });
    steps.extend(groups(request, side));
    steps.extend(steered(request, side));
    steps
}

fn types(kind: RssType, end: RssType) -> Vec<RssType> {
    let prefix = (kind == RssType::Ipv6).then_some(RssType::Prefix64);
    [kind, end].into_iter().chain(prefix).collect()
}

/// Tunnels with and without a container (N3, S1-U), over both outer families.
fn tunnels(pdu_type: u8, end: RssType) -> Vec<Step> {
    let mut steps = Vec::new();
    for outer in [Item::Ipv4, Item::Ipv6] {
        for (inner, kind) in VERSIONS {
            for container in [Some(Item::PscType(pdu_type)), None] {
                let before = [Item::Eth, outer, Item::Udp, Item::Gtpu];
                let pattern = before.into_iter().chain(container).chain([inner]).collect();
                steps.push(Step::Create(Rule::new(pattern, hash(types(kind, end)))));
            }
        }
    }
    steps
}

fn uplink() -> Vec<Step> {
    let mut steps = vec![Step::note("uplink: the source address inside (of IPv6 its first 64 bits)")];
    steps.extend(tunnels(UP, RssType::SourceOnly));
    steps
}

fn downlink() -> Vec<Step> {
    let mut steps = vec![Step::note("downlink: the destination address (of IPv6 its first 64 bits)")];
    for (ip, kind) in VERSIONS {
        let pattern = vec![Item::Eth, ip];
        steps.push(Step::Create(Rule::new(pattern, hash(types(kind, RssType::DestinationOnly)))));
    }
    steps.push(Step::note("downlink in tunnels (N9, S5): the destination address inside"));
    steps.extend(tunnels(DOWN, RssType::DestinationOnly));
    steps
}

fn groups(request: &Request, side: Side) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    steps.extend(unmet(request, "queue groups by VLAN priority (name QFIs and DSCPs)", |c| {
        !c.pcps.is_empty()
    }));
    if request.workers < 2 && !request.classes.is_empty() {
        steps.push(Step::note("a group has two queues at least: with one worker each class is one queue"));
    }
    for (number, class) in request.classes.iter().enumerate() {
        let patterns = match side {
            Side::Access => by_qfi(class),
            Side::Core => by_dscp(class),
        };
        if !patterns.is_empty() {
            steps.push(Step::Note(format!("class {number}: first its queues, then the hash within them")));
        }
        let queues = request.queues(Some(number));
        let action = match queues.as_slice() {
            [only] => Action::Queue(*only),
            _ => group(queues),
        };
        steps.extend(patterns.into_iter().map(|pattern| Step::Create(Rule::new(pattern, action.clone()))));
    }
    steps
}

fn by_qfi(class: &Class) -> Vec<Vec<Item>> {
    let outer = |qfi: u8| {
        [Item::Ipv4, Item::Ipv6].map(|ip| vec![Item::Eth, ip, Item::Udp, Item::Gtpu, Item::PscQfi(qfi)])
    };
    class.qfis.iter().flat_map(|qfi| outer(*qfi)).collect()
}

/// Without a transport, which means with any: beside such a rule the E810's flow director takes none with UDP or TCP.
fn by_dscp(class: &Class) -> Vec<Vec<Item>> {
    let octets = class.dscps.iter().flat_map(|dscp| (0..4).map(move |ecn| dscp << 2 | ecn));
    let items = octets.flat_map(|octet| [Item::Ipv4Tos(octet), Item::Ipv6Class(octet)]);
    items.map(|ip| vec![Item::Eth, ip]).collect()
}

/// A rule without a transport is about all of them, and beside it the driver takes none with UDP or TCP. Flow director masks no
/// addresses, so a prefix is no target.
pub(super) fn exact(target: Target, queue: u16) -> Vec<Rule> {
    let patterns = match target {
        Target::Tunnel(teid) => [None, Some(Item::Psc)]
            .map(|container| {
                let tunnel = [Item::Eth, Item::Ipv4, Item::Udp, Item::GtpuTeid(teid)];
                tunnel.into_iter().chain(container).collect()
            })
            .to_vec(),
        Target::Address(address) => vec![vec![Item::Eth, Item::To(address)]],
        Target::Prefix(_) => Vec::new(),
    };
    patterns.into_iter().map(|pattern| Rule::new(pattern, Action::Queue(queue))).collect()
}

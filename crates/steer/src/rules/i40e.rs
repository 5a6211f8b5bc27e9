//! Intel 700 series with the DDP profile for GTP.
//!
//! What the driver (`i40e_hash.c`, `i40e_flow.c`) and its test plans (DDP GTP, queue region) say, and the rules rest on:
//! RSS rules take patterns without values and no queues; the queues are set by a rule without pattern. For tunnels only
//! the type `gtpu` is taken, and *what* is hashed is set by words of the field vector: inner IPv4 source 15 and 16, inner
//! IPv6 source 13 to 20 (a prefix would be fewer, but a rule for plain IPv6 always hashes the whole address, and both
//! sides must hash the same). That one address hashes alike in words 15 and 16 and as destination in words 27 and 28
//! follows from the card's usual hash, which is Toeplitz over the chosen words without gaps; it has not been run, nor
//! whether the profile looks behind a PDU session container. Flow director leads to one queue, never to a group, and knows no QFI;
//! groups are chosen by VLAN priority alone.

use super::{group, hash, steered, unmet};
use crate::request::{Request, Side};
use crate::rule::{Action, Item, Rss, RssType, Rule};
use crate::{KEY, Setup, Step, Target};

/// Where the profile is loaded from, through the driver: this file and no other, as it is.
pub const PROFILE: &str = "/lib/firmware/intel/i40e/ddp/gtp.pkgo";

/// Packet types of the profile with IPv4 and IPv6 inside, with the flow types given to them.
const GTPU_IPV4: (u8, u8) = (22, 26);
const GTPU_IPV6: (u8, u8) = (23, 23);

pub(super) fn steps(request: &Request, side: Side) -> Vec<Step> {
    let mut steps = vec![Step::note("queues of the workers, and the key")];
    let all = Rss { queues: request_queues(request), ..Rss::default() };
    steps.push(Step::Create(Rule::new(vec![], Action::Rss(all))));
    steps.push(Step::Create(Rule::new(vec![], Action::Rss(Rss { key: KEY.to_vec(), ..Rss::default() }))));
    steps.extend(match side {
        Side::Access => uplink(),
        Side::Core => downlink(),
    });
    steps.extend(groups(request));
    steps.extend(steered(request, side));
    steps
}

/// With groups the table holds the queues of all groups, because a group's must be in it; without a group for them,
/// packets would be spread over all. So the rest is a group too: that of priority 0.
fn request_queues(request: &Request) -> Vec<u16> {
    let grouped = request.classes.iter().any(|class| !class.pcps.is_empty());
    let classes = (0..request.classes.len()).map(Some).filter(|_| grouped);
    std::iter::once(None).chain(classes).flat_map(|class| request.queues(class)).collect()
}

fn uplink() -> Vec<Step> {
    let mut steps = vec![
        Step::note("uplink: the profile that parses GTP-U, then the source address inside"),
        Step::Set(Setup::Profile(PROFILE)),
    ];
    for (pctype, flow_type) in [GTPU_IPV4, GTPU_IPV6] {
        steps.push(Step::Set(Setup::FlowType { pctype, flow_type }));
    }
    steps.push(Step::Set(Setup::HashWords { pctype: GTPU_IPV4.0, words: vec![15, 16] }));
    steps.push(Step::Set(Setup::HashWords { pctype: GTPU_IPV6.0, words: (13..=20).collect() }));
    for inner in [Item::Ipv4, Item::Ipv6] {
        for outer in [Item::Ipv4, Item::Ipv6] {
            let pattern = vec![Item::Eth, outer, Item::Udp, Item::Gtpu, inner];
            steps.push(Step::Create(Rule::new(pattern, hash(vec![RssType::Gtpu]))));
        }
    }
    steps
}

fn downlink() -> Vec<Step> {
    let mut steps = vec![Step::note("downlink: the destination address")];
    for (ip, kind) in super::VERSIONS {
        for transport in [None, Some(Item::Udp), Some(Item::Tcp), Some(Item::Sctp)] {
            let pattern = [Item::Eth, ip].into_iter().chain(transport).collect();
            // The type `ipv4` on patterns with ports too: the driver then hashes no ports, and of SCTP no tag.
            steps.push(Step::Create(Rule::new(pattern, hash(vec![kind, RssType::DestinationOnly]))));
        }
    }
    steps
}

fn groups(request: &Request) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    steps.extend(unmet(request, "queue groups by QFI (its flow director leads to one queue)", |c| {
        !c.qfis.is_empty()
    }));
    steps.extend(unmet(request, "queue groups by DSCP (only VLAN priorities choose a group)", |c| {
        !c.dscps.is_empty()
    }));
    if request.classes.iter().all(|class| class.pcps.is_empty()) {
        return steps;
    }
    steps.push(Step::note("groups of queues by VLAN priority; what no class names is in the first group"));
    let class_of = |pcp: u8| request.classes.iter().position(|class| class.pcps.contains(&pcp));
    for pcp in 0..8 {
        let queues = request.queues(class_of(pcp));
        steps.push(Step::Create(Rule::new(vec![Item::VlanPriority(pcp)], group(queues))));
    }
    steps
}

/// By packet type: in tunnels by what is inside, plain packets by transport. Addresses count as a whole, so a prefix is no target.
pub(super) fn exact(target: Target, queue: u16) -> Vec<Rule> {
    let patterns = match target {
        Target::Tunnel(teid) => [Item::Ipv4, Item::Ipv6]
            .map(|inner| vec![Item::Eth, Item::Ipv4, Item::Udp, Item::GtpuTeid(teid), inner])
            .to_vec(),
        Target::Address(address) => [None, Some(Item::Udp), Some(Item::Tcp), Some(Item::Sctp)]
            .map(|transport| [Item::Eth, Item::To(address)].into_iter().chain(transport).collect())
            .to_vec(),
        Target::Prefix(_) => Vec::new(),
    };
    patterns.into_iter().map(|pattern| Rule::new(pattern, Action::Queue(queue))).collect()
}

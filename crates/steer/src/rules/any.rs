//! Any other card whose driver takes rules of the usual form: TEIDs on the access side, which this node chooses so that they lead
//! to their users' workers, and users' addresses on the core side.
//!
//! That a driver takes `gtpu` as what is hashed says that it knows of TEIDs; that it hashes nothing else then, by the key of the rule,
//! is what DPDK's documentation of `RTE_ETH_RSS_GTPU` and `rte_flow_action_rss` has it do. A card that does otherwise leads packets
//! astray, which costs a hand-over each.

use super::{VERSIONS, unmet};
use crate::request::{Request, Side};
use crate::rule::{Action, Item, Rss, RssType, Rule};
use crate::{KEY, Step};

/// Octets of key that every card takes.
const KEY_LENGTH: usize = 40;

pub(super) fn steps(request: &Request, side: Side) -> Vec<Step> {
    let is_asked = |class: &crate::Class| *class != crate::Class::default();
    let mut steps: Vec<Step> = unmet(request, "classes", is_asked).into_iter().collect();
    // Cards fill their tables with the queues of a rule over and over.
    let queues = request.listed(&request.queues(None));
    match side {
        Side::Access => {
            steps.push(Step::note("uplink: the TEID"));
            for outer in [Item::Ipv4, Item::Ipv6] {
                let pattern = vec![Item::Eth, outer, Item::Udp, Item::Gtpu];
                steps.push(Step::Create(Rule::new(pattern, rss(vec![RssType::Gtpu], &queues))));
            }
        }
        Side::Core => {
            steps.push(Step::note("downlink: the destination address"));
            for (ip, kind) in VERSIONS {
                let types = vec![kind, RssType::DestinationOnly];
                steps.push(Step::Create(Rule::new(vec![Item::Eth, ip], rss(types, &queues))));
            }
        }
    }
    steps
}

fn rss(types: Vec<RssType>, queues: &[u16]) -> Action {
    let key = KEY.get(..KEY_LENGTH).unwrap_or(&KEY).to_vec();
    Action::Rss(Rss { types, level: 1, key, queues: queues.to_vec() })
}

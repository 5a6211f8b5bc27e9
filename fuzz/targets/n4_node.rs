//! A node that hears any sequence of datagrams, from two peers, over a data plane that obeys, refuses or is silent.
//! The input is a list of datagrams: two bytes of length, one of who sends it and what the data plane does, then the
//! datagram.

#![no_main]

use dplink::{Notice, UsageCause, UsageCounts};
use machine::Time;
use n4::{Config, Input, Node, Output, Predefined, PredefinedRule, Start, UePool};
use rules::UrrId;
use session::NodeRecord;
use std::net::{Ipv4Addr, SocketAddr};

fn node() -> Node {
    let address = Ipv4Addr::new(10, 40, 0, 2);
    let mut config = Config::new(pfcp::NodeId::Ipv4(address), address, Ipv4Addr::new(10, 30, 0, 2));
    // A pool and rules by name, both with short names that the fuzzer finds soon.
    config.ue_pools.extend("10.70.0.0/28".parse().ok().map(|prefix| UePool {
        name: "p".to_owned(),
        prefix,
        network_instance: None,
    }));
    config.predefined = Predefined::new(vec![PredefinedRule::new("a".to_owned())], &[]).unwrap_or_default();
    let node = NodeRecord { recovery_time_stamp: 3_900_000_000 };
    Node::new(
        config,
        Start { node, associations: vec![], sessions: vec![], pfds: vec![], last_cdr: 0, since_1900_ms: 3_900_000_000_000 },
    )
}

/// What a data plane in this mood says about an output.
fn notice(output: Output, mood: u8) -> Option<Notice> {
    match (output, mood & 3) {
        (Output::Put(put), 0 | 1) => {
            Some(Notice::Applied { session: put.session, revision: put.revision, removed: vec![] })
        }
        (Output::Put(put), 2) => {
            Some(Notice::Refused { session: put.session, revision: put.revision, reason: String::new() })
        }
        (Output::Delete(session), 0..=2) => Some(Notice::Removed { session, usage: vec![] }),
        (Output::QueryUsage { session, urrs, token, .. }, 0 | 1) => {
            let count =
                |urr: UrrId| UsageCounts { urr, uplink_bytes: u64::from(mood), ..UsageCounts::default() };
            let counts = urrs.into_iter().map(count).collect();
            Some(Notice::Usage { session, cause: UsageCause::Query(token), counts })
        }
        _ => None,
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut node = node();
    let mut rest = bytes;
    let mut now_ms = 0;
    while let [high, low, mood, after @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(after.len());
        let (datagram, after) = after.split_at(length);
        rest = after;
        now_ms += u64::from(mood >> 3) * 100;
        let now = Time::from_millis(now_ms);
        let from = SocketAddr::from(([10, 40, 0, 1 + (mood >> 2 & 1)], 8805));
        let mut waiting = node.handle(Input::Datagram { from, bytes: datagram }, now);
        waiting.extend(node.handle(Input::Tick, now));
        let path = Input::UserPlanePath { peer: [10, 30, 0, 7].into(), is_up: mood & 4 != 0 };
        waiting.extend(node.handle(path, now));
        while let Some(output) = waiting.pop() {
            if let Some(notice) = notice(output, *mood) {
                waiting.extend(node.handle(Input::DataPath(&notice), now));
            }
        }
    }
});

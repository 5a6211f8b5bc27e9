//! Conversations of control planes with a node, from the first message to the last: together they say everything that is
//! obeyed. What becomes of them when a message is changed, tests of bad input, of the table of information elements and
//! of random changes ask alike.

mod buffering;
pub mod effects;
mod endpoints;
mod ethernet;
mod nodes;
mod refused;
mod sessions;
mod sets;
mod stage;
pub mod state;
pub mod tables;
mod updates;

#[allow(unused_imports, reason = "each test needs some of them")]
pub use stage::{About, Conversation, Stage, Step, blamed, cause, is_request, read_body};

use ::charging::{Key, Policy, Rating};
use n4::{Charging, Config, Predefined, PredefinedRule, UePool};
use std::net::Ipv4Addr;

const VIDEO: Key = Key { rating_group: 20, service_id: Some(7) };

/// All of them, with one in which nothing is done.
pub fn with_refusals() -> Vec<Conversation> {
    all().into_iter().chain([refused::whole()]).collect()
}

/// All in which everything is done as it is said.
pub fn all() -> Vec<Conversation> {
    vec![
        sessions::whole(),
        sessions::networks(),
        sessions::applications(),
        updates::quotas(),
        updates::by_another_name(),
        endpoints::whole(),
        endpoints::pools(),
        endpoints::framed(),
        ethernet::whole(),
        buffering::whole(),
        sets::moved(),
        sets::redirected(),
        sets::taken_over(),
        sets::ended(),
        nodes::associations(),
        nodes::restarted(),
        nodes::retained(),
        nodes::silent(),
        nodes::updated(),
        nodes::told_anew(),
        nodes::paths(),
        nodes::applications(),
        nodes::lost(),
    ]
}

/// A node with something of everything an operator may provide.
pub fn config() -> Config {
    let default = Key { rating_group: 1, service_id: None };
    let mapped = Key { rating_group: 10, service_id: None };
    let video = PredefinedRule { key: Some(VIDEO), ..PredefinedRule::new("video".to_owned()) };
    let rules = vec![video, PredefinedRule::new("ads".to_owned())];
    let rating = Rating::new(Some(default), vec![(10..=19, mapped)], [VIDEO]).unwrap();
    let mut config = Config {
        network_instances: ["internet", "ims"].map(str::to_owned).to_vec(),
        forwarding_policies: ["mec", "bras"].map(n4::ForwardingPolicy::of_any).to_vec(),
        predefined: Predefined::new(rules, &[]).unwrap(),
        charging: Some(Charging { rating, policy: Policy::default() }),
        ue_pools: vec![pool("users", "10.70.0.0/28"), pool("others", "10.71.0.0/28")],
        ..crate::common::config()
    };
    config.limits.sessions = 10;
    // Only tunnels of a control plane that says so end there.
    let n3 = n4::InterfaceTypes::of([11]);
    config.gtpu.push(n4::GtpuAddress { interface_types: n3, ..n4::GtpuAddress::access(OTHER_N3) });
    config
}

fn pool(name: &str, prefix: &str) -> UePool {
    let network_instance = Some("internet".to_owned());
    UePool { name: name.to_owned(), prefix: prefix.parse().unwrap(), network_instance }
}

/// Where GTP-U is served besides.
const OTHER_N3: Ipv4Addr = Ipv4Addr::new(10, 31, 0, 2);

/// A control plane's third address.
pub const THIRD: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 7);

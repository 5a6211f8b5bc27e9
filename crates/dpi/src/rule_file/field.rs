//! Keys and values of a rule.

use super::error::{What, Why};
use crate::matching::{Conditions, Layer, PortRange, Rule};
use ipnet::IpNet;
use std::net::IpAddr;

/// All keys.
#[rustfmt::skip]
pub(super) const KEYS: [&str; 17] = [
    "id", "precedence", "rating-group", "service", "application", "host", "path", "url", "host-regex", "url-regex", "network", "port",
    "protocol", "layer", "ech", "dscp", "any",
];

/// Protocols that have a name here.
pub(super) const PROTOCOLS: [(&str, u8); 6] =
    [("tcp", 6), ("udp", 17), ("sctp", 132), ("icmp", 1), ("icmpv6", 58), ("esp", 50)];

/// What was read of a rule so far.
#[derive(Debug, Default)]
pub(super) struct Fields {
    id: Option<u32>,
    precedence: Option<u32>,
    rating_group: Option<u32>,
    service: Option<u32>,
    application: Option<Box<str>>,
    is_any: bool,
    when: Conditions,
}

impl Fields {
    /// Takes one value of a key.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Result<(), What> {
        let Some(key) = KEYS.into_iter().find(|known| *known == key) else {
            return Err(What::Key(key.to_owned()));
        };
        let refuse = |why| What::Value { key, value: value.to_owned(), why };
        let when = &mut self.when;
        match key {
            "id" => number(&mut self.id, key, value),
            "precedence" => number(&mut self.precedence, key, value),
            "rating-group" => number(&mut self.rating_group, key, value),
            "service" => number(&mut self.service, key, value),
            "application" => once(&mut self.application, key, value.into()),
            "host" => {
                value.parse().map(|host| when.hosts.push(host)).map_err(|why| refuse(Why::Pattern(why)))
            }
            "path" => {
                value.parse().map(|path| when.paths.push(path)).map_err(|why| refuse(Why::Pattern(why)))
            }
            "url" => self.url(value),
            "host-regex" => once(&mut when.host_regex, key, value.to_owned()),
            "url-regex" => once(&mut when.url_regex, key, value.to_owned()),
            "network" => network(value).map(|network| when.networks.push(network)).map_err(refuse),
            "port" => ports(value).map(|ports| when.ports.push(ports)).map_err(refuse),
            "protocol" => {
                protocol(value).map_err(refuse).and_then(|value| once(&mut when.protocol, key, value))
            }
            "layer" => layer(value).map(|layer| when.layers.push(layer)).map_err(refuse),
            "ech" if when.ech => Err(What::Twice(key)),
            "ech" => {
                when.ech = true;
                Ok(())
            }
            "dscp" => dscp(value).map_err(refuse).and_then(|value| once(&mut when.dscp, key, value)),
            _ => {
                self.is_any = true;
                Ok(())
            }
        }
    }

    /// One host with one path.
    fn url(&mut self, value: &str) -> Result<(), What> {
        if !self.when.hosts.is_empty() || !self.when.paths.is_empty() {
            return Err(What::Twice("url"));
        }
        let refuse = |why| What::Value { key: "url", value: value.to_owned(), why };
        let at = value.find('/').ok_or_else(|| refuse(Why::Allowed("a host, then a path: a.example/b*")))?;
        let (host, path) = value.split_at_checked(at).unwrap_or_default();
        self.when.hosts.push(host.parse().map_err(|why| refuse(Why::Pattern(why)))?);
        self.when.paths.push(path.parse().map_err(|why| refuse(Why::Pattern(why)))?);
        Ok(())
    }

    /// The rule, if it is one.
    pub(super) fn rule(self) -> Result<Rule, What> {
        let all = self.when == Conditions::default();
        match (all, self.is_any) {
            (true, false) => return Err(What::NoCondition),
            (false, true) => return Err(What::NotAny),
            _ => {}
        }
        Ok(Rule {
            id: self.id.ok_or(What::Missing("id"))?,
            precedence: self.precedence.ok_or(What::Missing("precedence"))?,
            rating_group: self.rating_group.ok_or(What::Missing("rating-group"))?,
            service: self.service,
            application: self.application,
            when: self.when,
        })
    }
}

/// Whether several values of a key stand with commas between. Paths may have commas of their own.
pub(super) fn is_list(key: &str) -> bool {
    matches!(key, "host" | "network" | "port" | "layer")
}

/// Whether it stands without a value.
pub(super) fn is_flag(key: &str) -> bool {
    matches!(key, "any" | "ech")
}

fn once<T>(place: &mut Option<T>, key: &'static str, value: T) -> Result<(), What> {
    if place.replace(value).is_some() { Err(What::Twice(key)) } else { Ok(()) }
}

fn number(place: &mut Option<u32>, key: &'static str, value: &str) -> Result<(), What> {
    let why = Why::Allowed("a number from 0 to 4294967295");
    let number = value.parse().map_err(|_| What::Value { key, value: value.to_owned(), why })?;
    once(place, key, number)
}

fn network(value: &str) -> Result<IpNet, Why> {
    let network = value.parse::<IpNet>().or_else(|_| value.parse::<IpAddr>().map(IpNet::from));
    let network = network.map_err(|_| Why::Allowed("a network such as 192.0.2.0/24, or an address"))?;
    if network.trunc() == network { Ok(network) } else { Err(Why::Allowed("bits beyond the prefix are set")) }
}

fn ports(value: &str) -> Result<PortRange, Why> {
    let refused = Why::Allowed("a port, or two such as 5000-5999, the lower first");
    let (first, last) = value.split_once('-').unwrap_or((value, value));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(PortRange { first, last }),
        _ => Err(refused),
    }
}

fn protocol(value: &str) -> Result<u8, Why> {
    let named = PROTOCOLS.into_iter().find(|(name, _)| *name == value).map(|(_, number)| number);
    named
        .or_else(|| value.parse().ok())
        .ok_or(Why::Allowed("tcp, udp, sctp, icmp, icmpv6, esp or a number from 0 to 255"))
}

fn layer(value: &str) -> Result<Layer, Why> {
    value.parse().map_err(|()| Why::Allowed("http, http2, tls, quic, dns, stun or rtp"))
}

fn dscp(value: &str) -> Result<u8, Why> {
    let number = value.parse().ok().filter(|number| *number < 64);
    number.ok_or(Why::Allowed("a number from 0 to 63"))
}

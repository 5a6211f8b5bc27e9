//! Keys and values of a rule.

use super::error::{Mistakes, What, Why};
use crate::matching::{Conditions, Layer, PathPattern, PortRange, Rule, behind_scheme, dots};
use ipnet::IpNet;
use std::net::IpAddr;

/// All keys.
#[rustfmt::skip]
pub(super) const KEYS: [&str; 18] = [
    "id", "precedence", "rating-group", "service", "application", "host", "path", "url", "host-regex", "url-regex", "network", "port",
    "protocol", "layer", "ech", "alpn", "dscp", "any",
];

/// Protocols that have a name here.
const PROTOCOLS: [(&str, u8); 6] =
    [("tcp", 6), ("udp", 17), ("sctp", 132), ("icmp", 1), ("icmpv6", 58), ("esp", 50)];

/// So many of [`KEYS`], the first, are needed; conditions are those from here on, but for the last.
const NEEDED: usize = 3;
const FIRST_CONDITION: usize = 5;

const FLAG: Why =
    Why::Allowed("no value in a line; in a table yes, 1 or its own name, else the cell is empty");

/// What was read of a rule so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    id: Option<u32>,
    precedence: Option<u32>,
    rating_group: Option<u32>,
    service: Option<u32>,
    application: Option<Box<str>>,
    when: Conditions,
    /// Which of [`KEYS`] stand here, whatever their values.
    stands: [bool; KEYS.len()],
    /// What is wrong with them.
    wrong: Vec<What>,
    /// A condition may hide behind a key that is none.
    is_misread: bool,
    /// What seems to be missing may stand behind quotes that are not closed.
    is_cut: bool,
}

impl Fields {
    /// Takes one value of a key, or none.
    pub(super) fn take(&mut self, key: &str, value: Option<&str>) {
        if let Err(what) = self.try_take(key, value) {
            self.refuse(what);
        }
    }

    /// Something is wrong that has been told already.
    pub(super) fn forgive(&mut self, what: &What) {
        match what {
            What::Missing(key) => self.stand(key).map_or((), drop),
            _ => self.is_misread = true,
        }
    }

    /// Something is wrong. Told once, and no more of it than is told of a file.
    pub(super) fn refuse(&mut self, what: What) {
        self.is_misread |= matches!(what, What::Key(_));
        self.is_cut |= what == What::Quotes;
        if self.wrong.len() < Mistakes::MAX && !self.wrong.contains(&what) {
            self.wrong.push(what);
        }
    }

    fn stand(&mut self, key: &str) -> Result<&'static str, What> {
        let mut places = KEYS.into_iter().zip(&mut self.stands);
        let (known, stands) =
            places.find(|(known, _)| *known == key).ok_or_else(|| What::Key(key.to_owned()))?;
        *stands = true;
        Ok(known)
    }

    fn try_take(&mut self, key: &str, value: Option<&str>) -> Result<(), What> {
        let key = self.stand(key)?;
        let value = match value {
            None if is_flag(key) => "",
            Some(value) if is_flag(key) => {
                return Err(What::Value { key, value: value.to_owned(), why: FLAG });
            }
            None => return Err(What::NoValue(key.to_owned())),
            Some(value) => value,
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
            "path" => path(value).map(|path| when.paths.push(path)).map_err(refuse),
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
            "alpn" => alpn(value).map(|name| when.alpn.push(name)).map_err(refuse),
            "dscp" => dscp(value).map_err(refuse).and_then(|value| once(&mut when.dscp, key, value)),
            _ => Ok(()),
        }
    }

    /// One host with one path, as browsers show it or without the scheme.
    fn url(&mut self, value: &str) -> Result<(), What> {
        if !self.when.hosts.is_empty() || !self.when.paths.is_empty() {
            return Err(What::Twice("url"));
        }
        let refuse = |why| What::Value { key: "url", value: value.to_owned(), why };
        let plain = behind_scheme(value);
        if plain.starts_with('/') {
            return Err(refuse(Why::Allowed("a URL begins with a host; path= is for paths of any host")));
        }
        let at = plain.find('/').ok_or_else(|| refuse(Why::Allowed("a host, then a path: a.example/b*")))?;
        let (host, of_it) = plain.split_at_checked(at).unwrap_or_default();
        if host.ends_with(':') && of_it.starts_with("//") {
            return Err(refuse(Why::Allowed("it begins with http:// or https://, or with a host")));
        }
        self.when.hosts.push(host.parse().map_err(|why| refuse(Why::Pattern(why)))?);
        self.when.paths.push(path(of_it).map_err(refuse)?);
        Ok(())
    }

    /// The number of the rule, if it says one.
    pub(super) const fn id(&self) -> Option<u32> {
        self.id
    }

    /// The rule, and what is wrong with it. What it does not say that it should is 0 where something is.
    pub(super) fn rule(mut self) -> (Rule, Vec<What>) {
        if !self.is_cut {
            self.find_missing();
        }
        let rule = Rule {
            id: self.id.unwrap_or_default(),
            precedence: self.precedence.unwrap_or_default(),
            rating_group: self.rating_group.unwrap_or_default(),
            service: self.service,
            application: self.application,
            when: self.when,
        };
        (rule, self.wrong)
    }

    fn find_missing(&mut self) {
        let [.., is_any] = self.stands;
        let conditions = self.stands.get(FIRST_CONDITION..KEYS.len() - 1);
        let has_conditions = conditions.is_some_and(|stand| stand.contains(&true));
        for (key, _) in KEYS.into_iter().zip(self.stands).take(NEEDED).filter(|(_, stands)| !stands) {
            self.refuse(What::Missing(key));
        }
        match (has_conditions, is_any) {
            (false, false) if !self.is_misread => self.refuse(What::NoCondition),
            (true, true) => self.refuse(What::NotAny),
            _ => {}
        }
    }
}

/// Keys that every rule has.
pub(super) fn needed() -> impl Iterator<Item = &'static str> {
    KEYS.into_iter().take(NEEDED)
}

/// A protocol as the key `protocol` says it.
pub(super) fn protocol_name(number: u8) -> String {
    let known = PROTOCOLS.into_iter().find(|(_, known)| *known == number);
    known.map_or_else(|| number.to_string(), |(name, _)| name.to_owned())
}

/// Whether several values of a key stand with commas between, in a line. Paths may have commas of their own.
pub(super) fn is_list(key: &str) -> bool {
    matches!(key, "host" | "network" | "port" | "layer" | "alpn")
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

/// Requests' paths are asked as servers resolve them: they never have such a segment, and end where a fragment is named.
fn path(value: &str) -> Result<PathPattern, Why> {
    if dots::are_in(value.as_bytes()) {
        return Err(Why::Allowed("segments of one dot or two are resolved before: write what is left of it"));
    }
    if value.contains('#') {
        return Err(Why::Allowed("a path ends before #, which no server looks behind"));
    }
    value.parse().map_err(Why::Pattern)
}

/// A name as IANA has it. Those of other octets are values that nobody understands (RFC 8701).
fn alpn(value: &str) -> Result<Box<str>, Why> {
    let is_name = value.len() <= 255 && value.bytes().all(|octet| octet.is_ascii_graphic() && octet != b'"');
    let refused = Why::Allowed("a name of up to 255 visible letters, such as h2, http/1.1 or dot");
    if is_name && !value.is_empty() { Ok(value.into()) } else { Err(refused) }
}

fn dscp(value: &str) -> Result<u8, Why> {
    let number = value.parse().ok().filter(|number| *number < 64);
    number.ok_or(Why::Allowed("a number from 0 to 63"))
}

//! What users contact: 50,000 applications, each with its name or its addresses, and the rule that tells it from the
//! others. A set of content rules made from [`applications`] and flows made by [`crate::Flows`] therefore agree.
//!
//! Applications below [`NAMED`] are told by what they say (L7): three quarters by a host, a sixth by a domain, the
//! rest by the beginning of a path on a host that is another application otherwise. Those above are told by addresses
//! alone (L3) or by addresses and port (L4). All names end in `.example` (RFC 2606) and all servers are in
//! 198.18.0.0/15 (RFC 2544), so nothing here is anybody's.

use crate::profile::Transport;
use ipnet::Ipv4Net;
use packet::ipv4;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Applications told by name: those with numbers below.
pub const NAMED: u32 = 40_000;
/// Applications told by addresses: those with the next numbers.
pub const ADDRESSED: u32 = 10_000;
/// All of them.
pub const APPLICATIONS: u32 = NAMED + ADDRESSED;

/// How traffic of an application is told from other traffic. Where two match, the one further down decides.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Match {
    /// Any host of a domain, such as `amberfield1f.news.example`.
    Domain(String),
    /// This host alone.
    Host(String),
    /// A request in the clear for a path that begins so.
    Url {
        /// The host.
        host: String,
        /// The beginning of the path.
        prefix: String,
    },
    /// A server in this network.
    Network(Ipv4Net),
    /// A server in this network, on this port.
    Port {
        /// Where the servers are.
        network: Ipv4Net,
        /// IP protocol number.
        protocol: u8,
        /// The server's port.
        port: u16,
    },
}

/// One application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Application {
    /// Its number, below [`APPLICATIONS`].
    pub id: u32,
    /// How its traffic is told.
    pub told_by: Match,
}

/// All applications, by number.
pub fn applications() -> impl Iterator<Item = Application> {
    (0..APPLICATIONS).filter_map(application)
}

/// The application of this number; `None` beyond [`APPLICATIONS`].
pub fn application(id: u32) -> Option<Application> {
    let told_by = match kind(id)? {
        Kind::Domain => Match::Domain(host(id)?),
        Kind::Host => Match::Host(host(id)?),
        Kind::Url => Match::Url { host: host(id)?, prefix: prefix(id) },
        Kind::Network => Match::Network(network(id)),
        Kind::Port => Match::Port { network: network(id), protocol: ipv4::UDP, port: port(id) },
    };
    Some(Application { id, told_by })
}

/// PCC rules of the `zte` profile, 45 of them static: services that its content rules belong to.
pub const SERVICES: u32 = 50;

/// The service that an application belongs to, by number.
pub const fn service(id: u32) -> u32 {
    id % SERVICES
}

/// The name of a service: an Application ID.
pub fn service_name(service: u32) -> String {
    format!("service-{service}")
}

/// As a line of a content rule file: its id is the application's number, its rating group and application those of the
/// service.
impl fmt::Display for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, service) = (self.id, service(self.id));
        let name = service_name(service);
        let (precedence, condition) = match &self.told_by {
            Match::Url { host, prefix } => (100, format!("url={host}{prefix}*")),
            Match::Host(host) => (200, format!("host={host}")),
            Match::Domain(domain) => (300, format!("host=.{domain}")),
            Match::Port { network, protocol, port } => {
                (400, format!("network={network} protocol={protocol} port={port}"))
            }
            Match::Network(network) => (500, format!("network={network}")),
        };
        write!(f, "id={id} precedence={precedence} rating-group={service} application={name} {condition}")
    }
}

/// The host of a named application, its domain where it has many; `None` from [`NAMED`] on.
pub fn host(id: u32) -> Option<String> {
    match kind(id)? {
        Kind::Domain => Some(domain(id)),
        Kind::Host => Some(format!("{}.{}", pick(FRONTS, id), domain(id))),
        Kind::Url => host(id.checked_sub(1)?),
        Kind::Network | Kind::Port => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Domain,
    Host,
    Url,
    Network,
    Port,
}

fn kind(id: u32) -> Option<Kind> {
    match (id, id % 10, id / 2 % 2) {
        (APPLICATIONS.., _, _) => None,
        (NAMED.., _, 0) => Some(Kind::Network),
        (NAMED.., _, _) => Some(Kind::Port),
        (_, 0 | 1, _) => Some(Kind::Domain),
        // Its host is that of the application before it.
        (_, 9, _) => Some(Kind::Url),
        _ => Some(Kind::Host),
    }
}

fn domain(id: u32) -> String {
    format!("{}{}{id:x}.{}.example", pick(COLOURS, id), pick(PLACES, id / 32), pick(TRADES, id / 7))
}

fn prefix(id: u32) -> String {
    format!("/app/{}/", pick(PLACES, id / 10))
}

/// The host that one flow of an application contacts.
pub(crate) fn contacted(id: u32, variant: u16) -> Option<String> {
    match kind(id)? {
        Kind::Domain => Some(format!("{}{}.{}", pick(FRONTS, variant.into()), variant >> 3 & 3, domain(id))),
        _ => host(id),
    }
}

/// The path that one flow of an application asks for.
pub(crate) fn path(id: u32, variant: u16) -> String {
    let root = if kind(id) == Some(Kind::Url) { prefix(id) } else { format!("/{}/", pick(ROOTS, id)) };
    format!("{root}{}/{variant:x}?v={}", pick(COLOURS, variant.into()), variant >> 5)
}

/// What a flow really belongs to when an application is drawn for it: only a request in the clear shows its path.
pub(crate) fn visible(id: u32, transport: Transport) -> u32 {
    if transport != Transport::Http && kind(id) == Some(Kind::Url) { id.saturating_sub(1) } else { id }
}

const SERVERS: u32 = u32::from_be_bytes([198, 18, 0, 0]);
/// Behind two servers for each named application.
const ADDRESSED_SERVERS: u32 = SERVERS + 0x1_4000;

/// One of the servers of an application: there are two, four where they share a network with another application's.
pub(crate) fn server(id: u32, variant: u16) -> Ipv4Addr {
    let variant = u32::from(variant);
    match kind(id) {
        Some(Kind::Network) => Ipv4Addr::from(u32::from(network(id).addr()) + variant % 2),
        Some(Kind::Port) => Ipv4Addr::from(u32::from(network(id).addr()) + variant % 4),
        _ => Ipv4Addr::from(SERVERS.wrapping_add(2 * id) + variant % 2),
    }
}

/// A server's other address: that of RFC 3849 with its IPv4 address in the last four octets.
pub(crate) fn server_v6(address: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d] = address.octets().map(u16::from);
    Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, a << 8 | b, c << 8 | d)
}

/// One of two resolvers.
pub(crate) fn resolver(user: u32) -> Ipv4Addr {
    Ipv4Addr::from(SERVERS + 0x1_ff35 + user % 2)
}

/// Told by addresses alone: two servers. Told by port: four, with the ports of two applications.
fn network(id: u32) -> Ipv4Net {
    let number = id.saturating_sub(NAMED);
    let (address, length) = match kind(id) {
        Some(Kind::Network) => (ADDRESSED_SERVERS + number * 2, 31),
        _ => (ADDRESSED_SERVERS + number / 2 * 4, 30),
    };
    Ipv4Net::new(Ipv4Addr::from(address), length).unwrap_or_default()
}

/// The server's port of an application told by addresses. Even, as RTP has it (RFC 3550 11).
pub(crate) fn port(id: u32) -> u16 {
    30_100 + 2 * (id % 750) as u16
}

fn pick(words: &[&'static str], number: u32) -> &'static str {
    words.get(number as usize % words.len().max(1)).copied().unwrap_or_default()
}

const FRONTS: &[&str] = &["www", "m", "api", "cdn", "img", "static", "play", "edge"];
const ROOTS: &[&str] = &["img", "js", "video", "news", "v1", "v2", "assets", "search"];
const TRADES: &[&str] = &["shop", "news", "media", "cloud", "games", "bank"];
#[rustfmt::skip]
const COLOURS: &[&str] = &[
    "amber", "azure", "beige", "black", "blue", "bronze", "brown", "coral", "cream", "cyan", "ebony", "emerald",
    "gold", "grey", "green", "indigo", "ivory", "jade", "khaki", "lilac", "lime", "magenta", "maroon", "mint",
    "navy", "ochre", "olive", "orange", "pink", "purple", "ruby", "silver",
];
#[rustfmt::skip]
const PLACES: &[&str] = &[
    "bay", "beach", "bridge", "canyon", "castle", "cave", "cliff", "coast", "creek", "delta", "desert", "dune",
    "field", "ford", "forest", "garden", "glacier", "grove", "harbour", "hill", "island", "lagoon", "lake", "marsh",
    "meadow", "mill", "oasis", "peak", "plain", "ridge", "valley", "wharf",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_applications_are_told_by_the_same() {
        let all: Vec<_> = applications().collect();
        assert_eq!(all.len() as u32, APPLICATIONS);
        let distinct: HashSet<_> = all.iter().map(|application| &application.told_by).collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(application(APPLICATIONS), None);
    }

    /// What a rule engine would say, the slow way, of applications near this one.
    fn matches(told_by: &Match, (host, path): (&str, &str), (server, port): (Ipv4Addr, u16)) -> bool {
        match told_by {
            Match::Domain(domain) => host.ends_with(&format!(".{domain}")),
            Match::Host(name) => host == name,
            Match::Url { host: name, prefix } => host == name && path.starts_with(prefix),
            Match::Network(network) => network.contains(&server),
            Match::Port { network, port: number, .. } => network.contains(&server) && port == *number,
        }
    }

    #[test]
    fn what_a_flow_says_is_told_by_its_own_application_and_decides_last() {
        for id in (0..300).chain(NAMED - 50..NAMED + 300).chain(APPLICATIONS - 50..APPLICATIONS) {
            for variant in [0, 1, 0x2a5b, u16::MAX] {
                let host = contacted(id, variant).unwrap_or_default();
                let said = (host.as_str(), path(id, variant));
                let at = (server(id, variant), port(id));
                let near = id.saturating_sub(20)..id + 20;
                let found = near.filter_map(application);
                let found = found.filter(|one| matches(&one.told_by, (said.0, &said.1), at));
                let last =
                    found.max_by_key(|one| matches!(one.told_by, Match::Url { .. } | Match::Port { .. }));
                assert_eq!(last.map(|one| one.id), Some(id), "{said:?} {at:?}");
            }
        }
    }

    #[test]
    fn servers_of_named_applications_are_nobody_elses() {
        let mut seen = HashSet::new();
        for id in (0..APPLICATIONS).filter(|id| !matches!(kind(*id), Some(Kind::Port))) {
            assert!(seen.insert(server(id, 0)) && seen.insert(server(id, 1)), "{id}");
        }
        assert!(!seen.contains(&resolver(0)) && !seen.contains(&resolver(1)));
        let range: Ipv4Net = "198.18.0.0/15".parse().unwrap();
        assert!(seen.iter().all(|server| range.contains(server)) && range.contains(&resolver(1)));
    }

    #[test]
    fn names_are_names() {
        for id in 0..NAMED {
            let host = contacted(id, u16::MAX).unwrap();
            assert!(
                host.len() <= 64 && host.split('.').all(|label| (1..=63).contains(&label.len())),
                "{host}"
            );
        }
    }
}

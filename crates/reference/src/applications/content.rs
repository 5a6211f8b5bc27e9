//! Content rules (docs/content-rules.md), searched from one end to the other.

use super::path;
use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;

/// What the first packets of a flow were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// HTTP/1.x in the clear.
    Http,
    /// TLS over TCP.
    Tls,
    /// DNS.
    Dns,
    /// RTP.
    Rtp,
}

/// Which application a flow is of, and when. Of several values of one condition any must hold; none is always so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentRule {
    /// No two rules share it.
    pub id: u32,
    /// The lowest counts, and among equals the lowest id.
    pub precedence: u32,
    /// `None`: what it matches is of no application.
    pub application: Option<String>,
    /// As rules are written: `a.example`, `*.a.example`, `.a.example`.
    pub hosts: Vec<String>,
    /// As rules are written: `/a`, `/a*`.
    pub paths: Vec<String>,
    /// Of the server.
    pub networks: Vec<IpNet>,
    /// Of the server, first and last.
    pub ports: Vec<(u16, u16)>,
    /// Of IP.
    pub protocol: Option<u8>,
    /// What the first packets were.
    pub layers: Vec<Layer>,
    /// Differentiated services code point.
    pub dscp: Option<u8>,
    /// The ClientHello has Encrypted ClientHello, or what looks like one.
    pub ech: bool,
}

/// What is known of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) server: IpAddr,
    /// 0 where there is none.
    pub(crate) port: u16,
    pub(crate) protocol: u8,
    pub(crate) dscp: u8,
    pub(crate) said: Said,
}

/// What its first packets said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) layer: Option<Layer>,
    /// In lower case.
    pub(crate) host: Option<String>,
    pub(crate) path: Option<String>,
    /// The ClientHello has Encrypted ClientHello.
    pub(crate) is_encrypted: bool,
}

impl ContentRule {
    fn matches(&self, facts: &Facts) -> bool {
        let Said { layer, host, path, is_encrypted } = &facts.said;
        let has_host = |name: &String| host.as_ref().is_some_and(|host| is_host(name, host));
        let path = path.as_deref().map(path::resolved);
        let has_path = |form: &String| path.as_ref().is_some_and(|path| is_path(form, path));
        // A lookup of a host is not with that host.
        let is_other_lookup = *layer == Some(Layer::Dns) && !self.layers.contains(&Layer::Dns);
        let may_be_of_host = self.hosts.is_empty() || !is_other_lookup;
        any(&self.hosts, has_host)
            && may_be_of_host
            && any(&self.paths, has_path)
            && any(&self.networks, |network| network.contains(&facts.server))
            && any(&self.ports, |(first, last)| (*first..=*last).contains(&facts.port))
            && any(&self.layers, |wanted| *layer == Some(*wanted))
            && self.protocol.is_none_or(|protocol| protocol == facts.protocol)
            && self.dscp.is_none_or(|dscp| dscp == facts.dscp)
            && (*is_encrypted || !self.ech)
    }

    /// Requests of one connection may differ in what it asks for.
    fn asks_for_requests(&self) -> bool {
        let may_be_of_http = self.layers.is_empty() || self.layers.contains(&Layer::Http);
        let asks = !self.hosts.is_empty() || !self.paths.is_empty();
        asks && may_be_of_http && !self.ech && self.protocol.is_none_or(|protocol| protocol == crate::ip::TCP)
    }
}

fn any<T>(values: &[T], holds: impl Fn(&T) -> bool) -> bool {
    values.is_empty() || values.iter().any(holds)
}

fn is_host(name: &str, host: &str) -> bool {
    let is_below = |domain: &str| host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    match (name.strip_prefix("*."), name.strip_prefix('.')) {
        (Some(domain), _) => is_below(domain),
        (_, Some(domain)) => host == domain || is_below(domain),
        _ => host == name,
    }
}

fn is_path(form: &str, path: &str) -> bool {
    form.strip_suffix('*').map_or(path == form, |begin| path.starts_with(begin))
}

/// Of what application a flow is, of which this is known.
pub(crate) fn application_of(rules: &[ContentRule], facts: &Facts) -> Option<String> {
    let matching = rules.iter().filter(|rule| rule.matches(facts));
    matching.min_by_key(|rule| (rule.precedence, rule.id))?.application.clone()
}

/// Whether later requests of a connection may be of other applications than the first.
pub(crate) fn tell_requests_apart(rules: &[ContentRule]) -> bool {
    rules.iter().any(ContentRule::asks_for_requests)
}

/// As a line of a rule file.
impl fmt::Display for ContentRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "id={} precedence={} rating-group=1", self.id, self.precedence)?;
        self.application.iter().try_for_each(|name| write!(f, " application={name}"))?;
        list(f, "host", &self.hosts)?;
        self.paths.iter().try_for_each(|path| write!(f, " path={path}"))?;
        list(f, "network", &self.networks)?;
        list(
            f,
            "port",
            &self.ports.iter().map(|(first, last)| format!("{first}-{last}")).collect::<Vec<_>>(),
        )?;
        list(f, "layer", &self.layers)?;
        self.protocol.iter().try_for_each(|protocol| write!(f, " protocol={protocol}"))?;
        self.dscp.iter().try_for_each(|dscp| write!(f, " dscp={dscp}"))?;
        f.write_str(if self.ech { " ech" } else { "" })?;
        let nothing = Self { id: self.id, precedence: self.precedence, ..Self::default() };
        let is_for_all = Self { application: None, ..self.clone() } == nothing;
        f.write_str(if is_for_all { " any" } else { "" })
    }
}

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, key: &str, values: &[T]) -> fmt::Result {
    let texts: Vec<String> = values.iter().map(T::to_string).collect();
    if texts.is_empty() { Ok(()) } else { write!(f, " {key}={}", texts.join(",")) }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Tls => "tls",
            Self::Dns => "dns",
            Self::Rtp => "rtp",
        })
    }
}

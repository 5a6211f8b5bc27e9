//! What of a rule is still to be checked when it was found.

use super::pattern::{HostPattern, PathPattern};
use super::regexes::Automaton;
use super::rule::{Facts, Layer, PortRange};
use ipnet::IpNet;

/// Facts as rules are compared with them.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) facts: Facts<'a>,
    /// In lower case.
    pub(super) host: Option<&'a [u8]>,
    /// It is a lookup, and rules are being found by the host that is looked up.
    pub(super) is_lookup_of_host: bool,
}

/// What most rules say beside what they are found by: 20 bytes, so that it costs one cache line at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    /// The only range of ports, or any.
    pub(super) ports: PortRange,
    pub(super) protocol: Option<u8>,
    pub(super) dscp: Option<u8>,
    /// Bits of the layers, none of which is any; and [`OF_HOSTS`].
    pub(super) layers: u8,
    pub(super) ech: bool,
    /// Whether there is [`More`], and which.
    pub(super) more: Option<u32>,
}

const _: () = assert!(size_of::<Check>() == 20);

/// The rule asks for a host: it is for lookups of that host only where it names them.
pub(super) const OF_HOSTS: u8 = 1 << Layer::ALL.len();

impl Check {
    /// Nothing is left to be checked.
    pub(super) fn is_empty(&self) -> bool {
        self.ports == PortRange::ANY
            && (self.protocol, self.dscp, self.layers & !OF_HOSTS, self.ech, self.more)
                == (None, None, 0, false, None)
    }

    /// Whether all of it holds, but for [`More`].
    #[inline]
    pub(super) fn holds(&self, facts: &Facts<'_>) -> bool {
        self.ports.contains(facts.server_port)
            && self.protocol.is_none_or(|protocol| protocol == facts.protocol)
            && self.dscp.is_none_or(|dscp| dscp == facts.dscp)
            && (!self.ech || facts.ech)
            && self.is_for(facts.layer)
    }

    #[inline]
    fn is_for(&self, layer: Option<Layer>) -> bool {
        let is_named = self.layers & layer.map_or(0, Layer::bit) != 0;
        let is_any = self.layers & !OF_HOSTS == 0;
        is_named || is_any && (self.layers == 0 || layer != Some(Layer::Dns))
    }
}

/// What few rules say. Lists that are empty are any.
#[derive(Debug, Default)]
pub(super) struct More {
    pub(super) hosts: Vec<HostPattern>,
    pub(super) paths: Vec<PathPattern>,
    pub(super) networks: Vec<IpNet>,
    pub(super) ports: Vec<PortRange>,
    pub(super) host_regex: Option<Automaton>,
    pub(super) url_regex: Option<Automaton>,
    pub(super) alpn: Vec<Box<str>>,
}

impl More {
    pub(super) fn is_empty(&self) -> bool {
        self.hosts.is_empty()
            && self.paths.is_empty()
            && self.networks.is_empty()
            && self.ports.is_empty()
            && self.host_regex.is_none()
            && self.url_regex.is_none()
            && self.alpn.is_empty()
    }

    /// Whether all of it holds.
    pub(super) fn holds(&self, view: &View<'_>) -> bool {
        let View { facts, host, .. } = view;
        let url = host.zip(facts.path);
        any_of(&self.ports, |range| range.contains(facts.server_port))
            && any_of(&self.networks, |network| network.contains(&facts.server))
            && any_of(&self.hosts, |pattern| host.is_some_and(|host| pattern.matches(host)))
            && any_of(&self.alpn, |name| {
                let mut offered = facts.alpn;
                offered.any(|protocol| protocol == name.as_bytes())
            })
            && any_of(&self.paths, |pattern| facts.path.is_some_and(|path| pattern.matches(path)))
            && self
                .host_regex
                .as_ref()
                .is_none_or(|regex| host.is_some_and(|host| regex.is_found([host, b""])))
            && self
                .url_regex
                .as_ref()
                .is_none_or(|regex| url.is_some_and(|(host, path)| regex.is_found([host, path])))
    }
}

fn any_of<T>(list: &[T], holds: impl Fn(&T) -> bool) -> bool {
    list.is_empty() || list.iter().any(holds)
}

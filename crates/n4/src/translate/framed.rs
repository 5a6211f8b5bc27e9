//! Networks behind users (framed routes, TS 29.244 5.16). They are written as RADIUS writes them (TS 29.061 16.4).

use crate::refusal::Refusal;
use ipnet::{IpNet, Ipv4Net};
use pfcp::{Cause, RawIe, ie};
use std::net::Ipv4Addr;

/// What is routed.
const ROUTES: [u16; 2] = [ie::FRAMED_ROUTE, ie::FRAMED_IPV6_ROUTE];

/// Whether any IE says something of networks behind the user.
pub(super) fn are_named(carried: &[RawIe]) -> bool {
    carried.iter().any(|other| ROUTES.contains(&other.ie))
}

/// All networks, each once, in the order they are named. An IE without octets names none.
pub(crate) fn routes(carried: &[RawIe]) -> Result<Vec<IpNet>, Refusal> {
    carried.iter().try_for_each(routing)?;
    let mut routes = Vec::new();
    for named in carried.iter().filter(|other| ROUTES.contains(&other.ie) && !other.value.is_empty()) {
        let blamed = Refusal::blaming(Cause::RuleCreationModificationFailure, named.ie);
        let route = route(named).ok_or(blamed)?;
        if !routes.contains(&route) {
            routes.push(route);
        }
    }
    Ok(routes)
}

/// As a control plane would write them.
pub(super) fn written(routes: &[IpNet]) -> impl Iterator<Item = RawIe> {
    let number =
        |route: &IpNet| if route.addr().is_ipv4() { ie::FRAMED_ROUTE } else { ie::FRAMED_IPV6_ROUTE };
    routes.iter().map(move |route| RawIe { ie: number(route), value: route.to_string().into_bytes() })
}

/// Framed-Routing (TS 29.244 8.2.110, RFC 2865 5.10): routing protocols are not spoken with users.
fn routing(other: &RawIe) -> Result<(), Refusal> {
    match other.ie == ie::FRAMED_ROUTING && other.value.iter().any(|octet| *octet != 0) {
        true => Err(Refusal::unsupported(ie::FRAMED_ROUTING)),
        false => Ok(()),
    }
}

/// A prefix, and behind a space what does not matter here, since the user is the gateway: its address and metrics (RFC 2865
/// 5.22, RFC 3162 2.5).
fn route(named: &RawIe) -> Option<IpNet> {
    let text = str::from_utf8(&named.value).ok()?;
    let prefix = text.trim_end_matches('\0').split_ascii_whitespace().next()?;
    let net = match prefix.contains('/') {
        true => prefix.parse().ok()?,
        false => by_class(prefix.parse().ok()?)?,
    };
    let is_ipv4 = matches!(net, IpNet::V4(_));
    Some(net.trunc()).filter(|_| is_ipv4 == (named.ie == ie::FRAMED_ROUTE))
}

/// IPv4 without a length has that of its class, A, B or C (RFC 2865 5.22).
fn by_class(address: Ipv4Addr) -> Option<IpNet> {
    let length = match address.octets() {
        [0..=127, ..] => 8,
        [128..=191, ..] => 16,
        [192..=223, ..] => 24,
        _ => return None,
    };
    Ipv4Net::new(address, length).ok().map(IpNet::V4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(ie: u16, text: &str) -> Option<String> {
        route(&RawIe { ie, value: text.as_bytes().to_vec() }).map(|net| net.to_string())
    }

    #[test]
    fn routes_are_read_as_radius_writes_them() {
        let ipv4 = |text| read(ie::FRAMED_ROUTE, text);
        assert_eq!(ipv4("192.168.1.9/24 192.168.1.1 1 2 -1 3 400").as_deref(), Some("192.168.1.0/24"));
        assert_eq!(ipv4("192.168.1.0/24\0").as_deref(), Some("192.168.1.0/24"));
        for (class, net) in [("10.1.2.3", "10.0.0.0/8"), ("172.16.9.9 0.0.0.0 1", "172.16.0.0/16")] {
            assert_eq!(ipv4(class).as_deref(), Some(net));
        }
        assert_eq!(ipv4("192.168.7.7").as_deref(), Some("192.168.7.0/24"));
        for bad in ["", " ", "192.168.1.0/33", "a/24", "224.0.0.1", "2001:db8::/48"] {
            assert_eq!(ipv4(bad), None, "{bad:?}");
        }
        let ipv6 = |text| read(ie::FRAMED_IPV6_ROUTE, text);
        assert_eq!(ipv6("2001:db8:1::/48 :: 1").as_deref(), Some("2001:db8:1::/48"));
        assert_eq!(ipv6("10.0.0.0/8"), None);
        let written: Vec<RawIe> =
            written(&["10.0.0.0/8".parse().unwrap(), "2001:db8::/32".parse().unwrap()]).collect();
        assert_eq!(
            routes(&written).unwrap().iter().map(IpNet::to_string).collect::<Vec<_>>(),
            ["10.0.0.0/8", "2001:db8::/32"]
        );
    }
}

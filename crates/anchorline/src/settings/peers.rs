//! `[n4]`: which control planes are asked, and which are spoken with.

use super::values::strictly;
use config::{Refusal, Spanned};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};

/// Prefixes of control planes that are allowed.
const ALLOWED_MAX: usize = 256;

/// A control plane: its address, with or without a port.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Peer(pub(super) SocketAddr);

impl TryFrom<String> for Peer {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let with_port = text.parse().ok();
        let alone = || text.parse().ok().map(|address| SocketAddr::new(address, pfcp::PORT));
        with_port.or_else(alone).map(Self).ok_or("a control plane is an IP address, with or without a port")
    }
}

/// Who is asked to associate is one host, named once, and somebody else: the node would wait for itself for ever.
pub(super) fn asked(peers: Vec<Spanned<Peer>>, served: &[SocketAddr]) -> Result<Vec<SocketAddr>, Refusal> {
    let mut asked: Vec<SocketAddr> = Vec::with_capacity(peers.len());
    for peer in peers {
        let address = peer.get_ref().0;
        if served.contains(&address) {
            let message = "PFCP is served there by this node itself: name a control plane's address";
            return Err(Refusal::of(&peer, message));
        }
        if is_of_no_host(address) {
            return Err(Refusal::of(&peer, format!("at {address} there is no control plane to be asked")));
        }
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        if asked.contains(&address) {
            return Err(Refusal::of(
                &peer,
                format!("{address} is named twice: a control plane is asked once"),
            ));
        }
        asked.push(address);
    }
    Ok(asked)
}

fn is_of_no_host(address: SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    ip.is_unspecified() || ip.is_multicast() || is_broadcast || address.port() == 0
}

/// Whom PFCP is spoken with: everybody, where nobody is named.
pub(super) fn allowed(named: Option<Spanned<Vec<Spanned<String>>>>) -> Result<Vec<IpNet>, Refusal> {
    let everybody = || vec![Ipv4Net::default().into(), Ipv6Net::default().into()];
    let Some(named) = named else { return Ok(everybody()) };
    let count = named.get_ref().len();
    if count > ALLOWED_MAX {
        return Err(Refusal::of(&named, format!("{count} prefixes are more than the {ALLOWED_MAX} allowed")));
    }
    let prefixes: Result<Vec<IpNet>, Refusal> = named.get_ref().iter().map(prefix).collect();
    Ok(IpNet::aggregate(&prefixes?))
}

/// An address alone is that host's.
fn prefix(text: &Spanned<String>) -> Result<IpNet, Refusal> {
    let host = || text.get_ref().parse::<IpAddr>().ok().map(IpNet::from);
    let strictly = strictly::<IpNet>(text.get_ref()).map_err(|why| Refusal::of(text, why))?;
    let Some(prefix) = strictly.ok().or_else(host) else {
        let message = "this is a prefix of IP addresses, like \"10.40.0.0/16\" or \"2001:db8::/32\"";
        return Err(Refusal::of(text, message));
    };
    whole(prefix).map_err(|why| Refusal::of(text, why)).map(|()| prefix)
}

/// Whether nothing stands behind the length of a prefix: who wrote a bit there has mistaken the length, or the address.
pub(super) fn whole(prefix: IpNet) -> Result<(), String> {
    match prefix == prefix.trunc() {
        true => Ok(()),
        false => Err(format!("{prefix} has bits behind its length: is {} meant?", prefix.trunc())),
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::file::check;

    const EXAMPLE: &str = include_str!("../../../../config/upf.toml");

    fn allow(value: &str) -> Result<Vec<String>, String> {
        let text = EXAMPLE.replace("associate = []", &format!("associate = []\nallow = {value}"));
        assert_ne!(text, EXAMPLE);
        let n4 = config::parse(&text, check).map_err(|error| error.to_string())?.n4;
        Ok(n4.allow.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn everybody_is_spoken_with_unless_some_are_named() {
        let everybody = config::parse(EXAMPLE, check).unwrap().n4.allow;
        assert_eq!(everybody.iter().map(ToString::to_string).collect::<Vec<_>>(), ["0.0.0.0/0", "::/0"]);
        assert_eq!(allow("[]").unwrap(), Vec::<String>::new());
        let some = allow("[\"10.40.0.0/17\", \"10.40.128.0/17\", \"10.41.0.9\", \"2001:db8::/32\"]").unwrap();
        assert_eq!(some, ["10.40.0.0/16", "10.41.0.9/32", "2001:db8::/32"]);
        let shown = EXAMPLE.replace("# allow = ", "allow = ");
        assert_eq!(
            config::parse(&shown, check).unwrap().n4.allow.len(),
            2,
            "what the example shows is right"
        );
    }

    #[test]
    fn a_node_does_not_associate_with_itself() {
        let text = EXAMPLE.replacen("# also_listen", "also_listen", 1);
        let asked = |value: &str| {
            let text = text.replace("associate = []", &format!("associate = {value}"));
            let n4 = config::parse(&text, check).map_err(|error| error.to_string())?.n4;
            Ok::<_, String>(n4.associate.len())
        };
        assert_eq!(asked("[\"10.40.0.3\", \"10.40.0.2:8806\", \"2001:db8:40::3\"]"), Ok(3));
        let line = 1 + text.lines().position(|line| line == "associate = []").unwrap();
        for own in ["10.40.0.2", "10.40.0.2:8805", "2001:db8:40::2"] {
            let refused = asked(&format!("[\"10.40.0.3\", \"{own}\"]")).unwrap_err();
            let expected =
                format!("line {line}: associate = [\"10.40.0.3\", \"{own}\"]: PFCP is served there");
            assert!(refused.contains(&expected), "{refused}");
        }
    }

    #[test]
    fn a_control_plane_is_one_host_that_is_named_once() {
        let refused = |value: &str| {
            let text = EXAMPLE.replace("associate = []", &format!("associate = {value}"));
            config::parse(&text, check).map_err(|error| error.to_string()).err().unwrap_or_default()
        };
        for (value, why) in [
            ("[\"10.40.0.3\", \"10.40.0.3\"]", "10.40.0.3:8805 is named twice"),
            ("[\"10.40.0.3\", \"10.40.0.3:8805\"]", "10.40.0.3:8805 is named twice"),
            ("[\"10.40.0.3\", \"::ffff:10.40.0.3\"]", "10.40.0.3:8805 is named twice"),
            ("[\"0.0.0.0\"]", "at 0.0.0.0:8805 there is no control plane"),
            ("[\"255.255.255.255\"]", "there is no control plane"),
            ("[\"224.0.0.1\"]", "there is no control plane"),
            ("[\"[ff02::1]:8805\"]", "there is no control plane"),
            ("[\"10.40.0.3:0\"]", "at 10.40.0.3:0 there is no control plane"),
        ] {
            assert!(refused(value).contains(why), "{value}: {}", refused(value));
        }
    }

    #[test]
    fn a_wrong_prefix_is_named_with_its_line() {
        let first = EXAMPLE.lines().position(|line| line == "associate = []").unwrap() + 2;
        for (value, line, why) in [
            ("[\n  \"10.40.0.0/16\",\n  \"10.40.0.0/33\",\n]", first + 2, "like \"10.40.0.0/16\""),
            ("[\"smf.example\"]", first, "this is a prefix of IP addresses"),
            ("[\"10.40.0.9/16\"]", first, "is 10.40.0.0/16 meant?"),
            ("[\"2001:db8::1/32\"]", first, "is 2001:db8::/32 meant?"),
            (&format!("[{}]", "\"10.0.0.0/8\",".repeat(257)), first, "more than the 256 allowed"),
        ] {
            let refused = allow(value).unwrap_err();
            assert!(refused.contains(&format!("line {line}:")) && refused.contains(why), "{line}: {refused}");
            let key = if line == first { "allow = [" } else { "10.40.0.0/33" };
            assert!(refused.contains(key), "{refused}");
        }
    }
}

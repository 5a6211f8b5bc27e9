//! Where users are sent instead (TS 29.244 8.2.20).

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of a URL at most: the answer with it fits a packet that every link takes.
const URL_MAX: usize = 1_000;

/// Where users are sent instead (8 bytes, as few FARs say so): a URL, or addresses. As text, a URL begins with `http://` or
/// `https://` and has up to 1,000 octets in all, none of them a blank or a control, so that it is one field of one header;
/// addresses are one, or one of each IP version with a comma between.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Redirect(Box<RedirectTo>);

/// What kind of place it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedirectTo {
    /// Requests of HTTP are answered with it.
    Url(Box<str>),
    /// Packets are sent there.
    Addresses(RedirectAddresses),
}

/// Addresses of a host that users are connected with in the place of others, one of each IP version at most, and one at
/// least (RFC 4006 8.38 and 8.39).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedirectAddresses {
    ipv4: Option<Ipv4Addr>,
    ipv6: Option<Ipv6Addr>,
}

impl Redirect {
    /// `None` for what is neither such a URL nor such addresses.
    pub fn new(text: &str) -> Option<Self> {
        Self::by_url(text).or_else(|| {
            let address = |text: &str| text.trim().parse::<IpAddr>().ok();
            match text.split_once(',') {
                Some((one, other)) => Self::by_addresses(address(one)?, Some(address(other)?)),
                None => Self::by_addresses(address(text)?, None),
            }
        })
    }

    /// To a URL; `None` for what is none that users can be sent to.
    pub fn by_url(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
        let is_sound =
            !rest.is_empty() && url.len() <= URL_MAX && url.bytes().all(|octet| octet.is_ascii_graphic());
        is_sound.then(|| Self(Box::new(RedirectTo::Url(url.into()))))
    }

    /// To an address, or to two, which are then of both IP versions. `None` for two of one version, and for addresses
    /// that no host beyond a link has.
    pub fn by_addresses(one: IpAddr, other: Option<IpAddr>) -> Option<Self> {
        let mut addresses = RedirectAddresses { ipv4: None, ipv6: None };
        for address in [Some(one), other].into_iter().flatten() {
            let is_second = match address {
                _ if !is_of_a_host(address) => return None,
                IpAddr::V4(address) => addresses.ipv4.replace(address).is_some(),
                IpAddr::V6(address) => addresses.ipv6.replace(address).is_some(),
            };
            if is_second {
                return None;
            }
        }
        Some(Self(Box::new(RedirectTo::Addresses(addresses))))
    }

    /// Where to.
    pub fn to(&self) -> &RedirectTo {
        &self.0
    }
}

/// Whether packets to an address are forwarded by routers, to one host: not to this host, a link or a group (RFC 1122 3.2.1.3,
/// RFC 4291 2.5 and 2.7).
fn is_of_a_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !matches!(address.octets(), [0 | 127 | 224.., ..]) && !address.is_link_local(),
        IpAddr::V6(address) => {
            let is_of_this_host = address.is_unspecified() || address.is_loopback();
            !is_of_this_host && !address.is_multicast() && !address.is_unicast_link_local()
        }
    }
}

impl RedirectAddresses {
    /// That of an IPv4 host.
    pub const fn ipv4(&self) -> Option<Ipv4Addr> {
        self.ipv4
    }

    /// That of an IPv6 host.
    pub const fn ipv6(&self) -> Option<Ipv6Addr> {
        self.ipv6
    }

    /// The one of the IP version of another; `None` where there is none.
    pub fn like(&self, other: IpAddr) -> Option<IpAddr> {
        match other {
            IpAddr::V4(_) => self.ipv4.map(IpAddr::V4),
            IpAddr::V6(_) => self.ipv6.map(IpAddr::V6),
        }
    }
}

impl fmt::Display for Redirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to() {
            RedirectTo::Url(url) => f.write_str(url),
            RedirectTo::Addresses(addresses) => addresses.fmt(f),
        }
    }
}

impl fmt::Display for RedirectAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.ipv4, self.ipv6) {
            (Some(ipv4), Some(ipv6)) => write!(f, "{ipv4},{ipv6}"),
            (Some(ipv4), None) => ipv4.fmt(f),
            (None, Some(ipv6)) => ipv6.fmt(f),
            (None, None) => Ok(()),
        }
    }
}

impl TryFrom<String> for Redirect {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(&text).ok_or(
            "users are sent to a URL, which begins with http:// or https:// and has up to 1,000 visible ASCII characters, \
             or to the address of a host, or one of IPv4 and one of IPv6 with a comma between",
        )
    }
}

impl From<Redirect> for String {
    fn from(redirect: Redirect) -> Self {
        redirect.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_cannot_end_its_field() {
        for sound in ["http://portal.example", "https://a.example/buy?more=1&x=%20"] {
            assert_eq!(*Redirect::new(sound).unwrap().to(), RedirectTo::Url(sound.into()));
        }
        let long = format!("http://{}", "a".repeat(URL_MAX));
        for unsound in
            ["", "portal.example", "http://", "http://a b", "http://a\r\nSet-Cookie: x", "http://ä", &long]
        {
            assert_eq!(Redirect::new(unsound), None, "{unsound:?}");
        }
    }

    #[test]
    fn an_address_is_that_of_a_host_and_there_is_one_of_a_version() {
        for (text, like) in [
            ("192.0.2.80", ["192.0.2.80", "-"]),
            ("2001:db8::80", ["-", "2001:db8::80"]),
            ("2001:db8::80, 192.0.2.80", ["192.0.2.80", "2001:db8::80"]),
        ] {
            let redirect = Redirect::new(text).unwrap();
            let RedirectTo::Addresses(to) = redirect.to() else { panic!("{text}") };
            let own = ["198.51.100.1", "2001:db8:1::1"].map(|other| to.like(other.parse().unwrap()));
            assert_eq!(own.map(|own| own.map_or("-".to_owned(), |own| own.to_string())), like, "{text}");
            assert_eq!(Redirect::try_from(String::from(redirect.clone())), Ok(redirect), "as it is stored");
        }
        for unsound in [
            "192.0.2.80,192.0.2.81",
            "192.0.2.80,",
            "192.0.2.80:80",
            "0.0.0.0",
            "127.0.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "169.254.1.1",
            "::",
            "::1",
            "ff02::1",
            "fe80::1",
            "192.0.2.80,fe80::1",
        ] {
            assert_eq!(Redirect::new(unsound), None, "{unsound:?}");
        }
    }
}

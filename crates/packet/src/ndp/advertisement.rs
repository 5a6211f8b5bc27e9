//! Router advertisements (RFC 4861 4.2).

use super::message::Malformed;
use super::option::{DNS_SERVERS, MTU, Options, PREFIX, SOURCE_LINK_ADDRESS, Writer};
use crate::ethernet::MacAddress;
use std::net::Ipv6Addr;

const MANAGED: u8 = 0x80;
const OTHER: u8 = 0x40;
const ON_LINK: u8 = 0x80;
const AUTONOMOUS: u8 = 0x40;
/// Bytes of the message before its options.
const FIXED: usize = 16;

/// What a router tells its link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouterAdvertisement<'a> {
    /// Hops that packets should begin with; 0: not said.
    pub hop_limit: u8,
    /// Addresses are to be had by DHCPv6.
    pub managed: bool,
    /// Other configuration is to be had by DHCPv6.
    pub other: bool,
    /// How long it is a default router; 0: it is none.
    pub lifetime_s: u16,
    /// How long a neighbour counts as reachable; 0: not said.
    pub reachable_ms: u32,
    /// Time between solicitations; 0: not said.
    pub retransmit_ms: u32,
    /// Its Ethernet address; none on links without.
    pub source_link: Option<MacAddress>,
    /// MTU of the link, in bytes.
    pub mtu: Option<u32>,
    /// The prefix of the link. A session of 3GPP has one (TS 23.501 5.8.2.2.2).
    pub prefix: Option<Prefix>,
    /// DNS servers (RFC 8106).
    pub dns: Option<Dns<'a>>,
}

/// A prefix of a link (RFC 4861 4.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The prefix; the other bits are 0.
    pub address: Ipv6Addr,
    /// How many bits count.
    pub length: u8,
    /// Its addresses are reached without a router. Not so on links of 3GPP (TS 29.061 11.2.1.3.2a).
    pub on_link: bool,
    /// Stations make their addresses of it.
    pub autonomous: bool,
    /// How long it is valid; `u32::MAX`: for ever.
    pub valid_s: u32,
    /// How long addresses made of it are preferred; `u32::MAX`: for ever.
    pub preferred_s: u32,
}

/// Addresses of DNS servers (RFC 8106 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dns<'a> {
    /// How long they may be used; `u32::MAX`: for ever.
    pub lifetime_s: u32,
    /// The octets of their addresses; 1 to 127.
    pub servers: &'a [[u8; 16]],
}

impl<'a> RouterAdvertisement<'a> {
    /// Reads the message behind type, code and checksum; of several options of a kind, the first counts.
    pub(super) fn read(body: &'a [u8]) -> Result<Self, Malformed> {
        let Some((fixed, options)) = body.split_first_chunk::<{ FIXED - 4 }>() else {
            return Err(Malformed::Truncated);
        };
        let [hop_limit, flags, life_high, life_low, a, b, c, d, e, f, g, h] = *fixed;
        let mut read = Self {
            hop_limit,
            managed: flags & MANAGED != 0,
            other: flags & OTHER != 0,
            lifetime_s: u16::from_be_bytes([life_high, life_low]),
            reachable_ms: u32::from_be_bytes([a, b, c, d]),
            retransmit_ms: u32::from_be_bytes([e, f, g, h]),
            ..Self::default()
        };
        for option in Options::of(options) {
            let (kind, content) = option?;
            read.note(kind, content).ok_or(Malformed::Option)?;
        }
        Ok(read)
    }

    fn note(&mut self, kind: u8, content: &'a [u8]) -> Option<()> {
        match kind {
            SOURCE_LINK_ADDRESS if self.source_link.is_none() => {
                self.source_link = Some(MacAddress(content.try_into().ok()?));
            }
            MTU if self.mtu.is_none() => {
                let [_, _, mtu @ ..] = <[u8; 6]>::try_from(content).ok()?;
                self.mtu = Some(u32::from_be_bytes(mtu));
            }
            PREFIX if self.prefix.is_none() => self.prefix = Some(Prefix::read(content)?),
            DNS_SERVERS if self.dns.is_none() => self.dns = Some(Dns::read(content)?),
            _ => {}
        }
        Some(())
    }

    /// Writes the message behind type, code and checksum.
    pub(super) fn write(&self, to: &mut Writer<'_>) -> Option<()> {
        let managed = if self.managed { MANAGED } else { 0 };
        let other = if self.other { OTHER } else { 0 };
        to.add(&[self.hop_limit, managed | other])?;
        to.add(&self.lifetime_s.to_be_bytes())?;
        to.add(&self.reachable_ms.to_be_bytes())?;
        to.add(&self.retransmit_ms.to_be_bytes())?;
        to.add_link_address(SOURCE_LINK_ADDRESS, self.source_link)?;
        if let Some(mtu) = self.mtu {
            to.add(&[MTU, 1, 0, 0])?;
            to.add(&mtu.to_be_bytes())?;
        }
        if let Some(prefix) = self.prefix {
            prefix.write(to)?;
        }
        self.dns.map_or(Some(()), |dns| dns.write(to))
    }
}

impl Prefix {
    fn read(content: &[u8]) -> Option<Self> {
        let [length, flags, v0, v1, v2, v3, p0, p1, p2, p3, _, _, _, _, address @ ..] =
            <[u8; 30]>::try_from(content).ok()?;
        (length <= 128).then_some(Self {
            address: address.into(),
            length,
            on_link: flags & ON_LINK != 0,
            autonomous: flags & AUTONOMOUS != 0,
            valid_s: u32::from_be_bytes([v0, v1, v2, v3]),
            preferred_s: u32::from_be_bytes([p0, p1, p2, p3]),
        })
    }

    fn write(&self, to: &mut Writer<'_>) -> Option<()> {
        let on_link = if self.on_link { ON_LINK } else { 0 };
        let autonomous = if self.autonomous { AUTONOMOUS } else { 0 };
        to.add(&[PREFIX, 4, self.length, on_link | autonomous])?;
        to.add(&self.valid_s.to_be_bytes())?;
        to.add(&self.preferred_s.to_be_bytes())?;
        to.add(&[0; 4])?;
        to.add(&self.address.octets())
    }
}

impl<'a> Dns<'a> {
    fn read(content: &'a [u8]) -> Option<Self> {
        let (lifetime, servers) = content.get(2..)?.split_first_chunk()?;
        let (servers, rest) = servers.as_chunks();
        let whole = !servers.is_empty() && rest.is_empty();
        whole.then_some(Self { lifetime_s: u32::from_be_bytes(*lifetime), servers })
    }

    fn write(&self, to: &mut Writer<'_>) -> Option<()> {
        let units = u8::try_from(1 + 2 * self.servers.len()).ok()?;
        to.add(&[DNS_SERVERS, units, 0, 0])?;
        to.add(&self.lifetime_s.to_be_bytes())?;
        to.add(self.servers.as_flattened())
    }
}

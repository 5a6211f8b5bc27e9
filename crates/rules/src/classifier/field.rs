//! What is looked at in a packet, as numbers, and which numbers a filter takes.

use super::matcher::{Filter, Matcher};
use crate::compile::Arrival;
use crate::list::Mostly1;
use crate::sdf::{Addresses, PortRange, TrafficClass};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::IpAddr;

/// Numbers from the first to the second, both included.
pub(super) type Span = (u128, u128);

/// All numbers.
pub(super) const ANY: Span = (0, u128::MAX);

/// The last address of each version.
const IPV4: u128 = u32::MAX as u128;
const IPV6: u128 = u128::MAX;

/// Stands for what a packet does not have. A filter may ask for this very number; the matcher then says no.
const ABSENT: u32 = u32::MAX;

/// A field of at most 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Narrow {
    Source,
    Teid,
    Qfi,
    Protocol,
    UePort,
    RemotePort,
    UeIpv4,
    RemoteIpv4,
    /// The upper four bits of the traffic class: so every mask becomes a few spans.
    ClassHigh,
    ClassLow,
    Spi,
    FlowLabel,
}

/// A field of 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wide {
    UeIpv6,
    RemoteIpv6,
}

/// What an [`Index`](super::index::Index) has dimensions of.
pub(super) trait Field: Copy + 'static {
    /// Holds the field's numbers.
    type Key: Copy + Ord + TryFrom<u128>;

    /// All fields.
    const ALL: &[Self];

    /// The packet's number; `None` where the field says nothing of the packet, being of the other IP version.
    fn key(self, packet: &Arrival) -> Option<Self::Key>;

    /// The numbers that match one filter of a matcher, or the matcher without filters. They may be too many.
    fn spans(self, matcher: &Matcher, filter: Option<&Filter>, spans: &mut Vec<Span>);
}

impl Field for Narrow {
    type Key = u32;

    const ALL: &[Self] = &[
        Self::Source,
        Self::Teid,
        Self::Qfi,
        Self::Protocol,
        Self::UePort,
        Self::RemotePort,
        Self::UeIpv4,
        Self::RemoteIpv4,
        Self::ClassHigh,
        Self::ClassLow,
        Self::Spi,
        Self::FlowLabel,
    ];

    #[inline]
    fn key(self, packet: &Arrival) -> Option<u32> {
        Some(match self {
            Self::Source => packet.source as u32,
            Self::Teid => packet.teid.map_or(0, |teid| teid.0),
            Self::Qfi => packet.qfi.map_or(ABSENT, |qfi| qfi.value().into()),
            Self::Protocol => packet.protocol.into(),
            Self::UePort => packet.ue_port.map_or(ABSENT, u32::from),
            Self::RemotePort => packet.remote_port.map_or(ABSENT, u32::from),
            Self::UeIpv4 => return ipv4(packet.ue),
            Self::RemoteIpv4 => return ipv4(packet.remote),
            Self::ClassHigh => (packet.traffic_class >> 4).into(),
            Self::ClassLow => (packet.traffic_class & 15).into(),
            Self::Spi => packet.spi.unwrap_or(ABSENT),
            Self::FlowLabel => packet.flow_label.unwrap_or(ABSENT),
        })
    }

    fn spans(self, matcher: &Matcher, filter: Option<&Filter>, spans: &mut Vec<Span>) {
        let class = filter.and_then(|filter| filter.traffic_class);
        match self {
            Self::Source => spans.push(match matcher.teid() {
                Some(_) => ANY,
                None => one(matcher.source as u32),
            }),
            Self::Teid => spans.push(one(matcher.teid().map_or(0, |teid| teid.0))),
            Self::Qfi => match matcher.qfi_mask() {
                0 => spans.push(ANY),
                mask => members(|qfi| mask >> qfi & 1 == 1, 64, spans),
            },
            Self::Protocol => spans.push(one_or_any(filter.and_then(|filter| filter.protocol))),
            Self::UePort => ports(filter.map(|filter| &filter.user_ports), spans),
            Self::RemotePort => ports(filter.map(|filter| &filter.remote_ports), spans),
            Self::UeIpv4 => {
                let own = matcher.ue_ipv4.map(|address| span_of_ipv4(address.into()));
                let wanted = spans_of(filter.and_then(|filter| filter.user), IPV4, in_ipv4);
                user((matcher, own), wanted, in_ipv4, spans);
            }
            Self::RemoteIpv4 => {
                let wanted = spans_of(filter.and_then(|filter| filter.remote), IPV4, in_ipv4);
                spans.extend(wanted.into_iter().flatten());
            }
            Self::ClassHigh => nibble(class.map(|class| (class.value >> 4, class.mask >> 4)), spans),
            Self::ClassLow => nibble(class.map(|TrafficClass { value, mask }| (value, mask & 15)), spans),
            Self::Spi => spans.push(one_or_any(filter.and_then(|filter| filter.spi))),
            Self::FlowLabel => spans.push(one_or_any(filter.and_then(|filter| filter.flow_label))),
        }
    }
}

impl Field for Wide {
    type Key = u128;

    const ALL: &[Self] = &[Self::UeIpv6, Self::RemoteIpv6];

    #[inline]
    fn key(self, packet: &Arrival) -> Option<u128> {
        match self {
            Self::UeIpv6 => ipv6(packet.ue),
            Self::RemoteIpv6 => ipv6(packet.remote),
        }
    }

    fn spans(self, matcher: &Matcher, filter: Option<&Filter>, spans: &mut Vec<Span>) {
        match self {
            Self::UeIpv6 => {
                let own = matcher.ue_ipv6().map(span_of_ipv6);
                let wanted = spans_of(filter.and_then(|filter| filter.user), IPV6, in_ipv6);
                user((matcher, own), wanted, in_ipv6, spans);
            }
            Self::RemoteIpv6 => {
                let wanted = spans_of(filter.and_then(|filter| filter.remote), IPV6, in_ipv6);
                spans.extend(wanted.into_iter().flatten());
            }
        }
    }
}

fn one(number: impl Into<u128>) -> Span {
    let number = number.into();
    (number, number)
}

fn one_or_any(number: Option<impl Into<u128>>) -> Span {
    number.map_or(ANY, one)
}

fn ports(ranges: Option<&Mostly1<PortRange>>, spans: &mut Vec<Span>) {
    match ranges.filter(|ranges| !ranges.is_empty()) {
        None => spans.push(ANY),
        Some(ranges) => spans.extend(ranges.iter().map(|range| (range.first.into(), range.last.into()))),
    }
}

/// The numbers below `end` that are members, as spans.
fn members(is_member: impl Fn(u32) -> bool, end: u32, spans: &mut Vec<Span>) {
    for number in (0..end).filter(|number| is_member(*number)).map(u128::from) {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => spans.push((number, number)),
        }
    }
}

/// Four bits under a mask.
fn nibble(wanted: Option<(u8, u8)>, spans: &mut Vec<Span>) {
    match wanted {
        Some((value, mask)) if mask != 0 => {
            let (value, mask) = (u32::from(value & mask), u32::from(mask));
            members(|bits| bits & mask == value, 16, spans);
        }
        _ => spans.push(ANY),
    }
}

/// What the PDI says of the user's address of one IP version, `own` being that of a single one, as far as a filter wants it;
/// nothing: no packet of that version matches. Spans may overlap.
fn user(
    (matcher, own): (&Matcher, Option<Span>),
    wanted: [Option<Span>; 2],
    span_of: impl Fn(IpNet) -> Option<Span>,
    spans: &mut Vec<Span>,
) {
    if matcher.is_of_any_user() {
        return spans.extend(wanted.into_iter().flatten());
    }
    let routes = matcher.framed_routes().iter().filter_map(|route| span_of(*route));
    let both = |span| wanted.into_iter().flatten().filter_map(move |wanted| intersection(span, wanted));
    spans.extend(own.into_iter().chain(routes).flat_map(both));
}

/// The addresses of one IP version, the last of which is given, that a filter wants: of inverted ones what is below and what is
/// above. None: no packet of that version matches.
fn spans_of(
    wanted: Option<Addresses>,
    last: u128,
    span_of: impl Fn(IpNet) -> Option<Span>,
) -> [Option<Span>; 2] {
    let Some(Addresses { prefix, inverted }) = wanted else { return [Some(ANY), None] };
    match span_of(prefix) {
        Some((begin, end)) if inverted => {
            let below = begin.checked_sub(1).map(|end| (0, end));
            let above = end.checked_add(1).filter(|begin| *begin <= last).map(|begin| (begin, last));
            [below, above]
        }
        span => [span, None],
    }
}

fn in_ipv4(net: IpNet) -> Option<Span> {
    match net {
        IpNet::V4(net) => Some(span_of_ipv4(net)),
        IpNet::V6(_) => None,
    }
}

fn in_ipv6(net: IpNet) -> Option<Span> {
    match net {
        IpNet::V4(_) => None,
        IpNet::V6(net) => Some(span_of_ipv6(net)),
    }
}

fn span_of_ipv4(net: Ipv4Net) -> Span {
    (net.network().to_bits().into(), net.broadcast().to_bits().into())
}

fn span_of_ipv6(net: Ipv6Net) -> Span {
    (net.network().to_bits(), net.broadcast().to_bits())
}

fn intersection(one: Span, other: Span) -> Option<Span> {
    let both = (one.0.max(other.0), one.1.min(other.1));
    (both.0 <= both.1).then_some(both)
}

fn ipv4(address: IpAddr) -> Option<u32> {
    match address {
        IpAddr::V4(address) => Some(address.to_bits()),
        IpAddr::V6(_) => None,
    }
}

fn ipv6(address: IpAddr) -> Option<u128> {
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(address.to_bits()),
    }
}

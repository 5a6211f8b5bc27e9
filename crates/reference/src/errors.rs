//! Tells senders why their packets go no further (RFC 792, RFC 1812 4.3, RFC 1191; RFC 4443, RFC 8201).

use crate::Reference;
use crate::bytes::u8_at;
use crate::detection::{Arrival, first_pdr};
use crate::icmp::icmp_message;
use crate::ip::{self, ICMP, ICMPV6, UserPacket};
use crate::outcome::Outcome;
use crate::reason::DropReason;
use crate::setup::{Network, network};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// No answer over IPv4 is longer (RFC 1812 4.3.2.3).
const LONGEST_V4: usize = 576;
/// Every link of IPv6 takes packets of so many octets (RFC 8200 5), and no answer is longer (RFC 4443 2.4 c).
pub(crate) const LEAST_MTU_V6: usize = 1280;
/// Internetwork control (RFC 1812 4.3.2.5).
const PRECEDENCE: u8 = 0xc0;
const HOPS: u8 = 64;

/// Why a packet goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    NoHopLeft,
    /// It is longer than so many octets, and not to be split.
    TooLong(usize),
    NoRoute,
}

impl Stopped {
    pub(crate) const fn reason(self) -> DropReason {
        match self {
            Self::NoHopLeft => DropReason::TtlExpired,
            Self::TooLong(_) => DropReason::MtuExceeded,
            Self::NoRoute => DropReason::NoRoute,
        }
    }
}

impl Reference {
    /// Turns a packet that was to leave on a side into the error about it, or drops it.
    pub(crate) fn tell(
        &mut self,
        session: usize,
        about: &Arrival,
        (stopped, side): (Stopped, Network),
    ) -> Outcome {
        let reason = Err(stopped.reason());
        let answer = if self.icmp_errors { self.error(about, stopped) } else { None };
        let Some(answer) = answer else { return reason.into() };
        let sent = match about.tunnel {
            Some(_) => self.send_to_user(session, side, &answer),
            None => self.send_to_server(about, answer),
        };
        sent.unwrap_or(reason).into()
    }

    /// By the tunnel that the session's rules choose for a packet to the user from there; at no charge. `None` where they
    /// choose none.
    fn send_to_user(
        &mut self,
        session: usize,
        (source, instance): Network,
        answer: &[u8],
    ) -> Option<Result<Outcome, DropReason>> {
        let packet = UserPacket::read(answer)?;
        let session = self.sessions.get(session)?;
        let arrival = Arrival { port: 0, source, instance, tunnel: None, relayed: vec![], packet };
        let pdr = first_pdr(&session.rules, &arrival)?;
        let (to, marks) = session.tunnel_of(pdr)?;
        let routed = self.put_into_tunnel(answer, &to, marks);
        Some(routed.and_then(|(next_hop, packet)| self.transmit(next_hop, packet)))
    }

    fn send_to_server(&mut self, about: &Arrival, answer: Vec<u8>) -> Option<Result<Outcome, DropReason>> {
        let sender = about.packet.header.source;
        // Who says to be us is not.
        if self.setup.is_ours(sender) {
            return None;
        }
        let next_hop = self.setup.next_hop(network(about.source, about.instance), sender);
        Some(next_hop.ok_or(DropReason::NoRoute).and_then(|next_hop| self.transmit(next_hop, answer)))
    }

    /// The error, from our address where the packet came in; `None` where there must not be one.
    fn error(&self, about: &Arrival, stopped: Stopped) -> Option<Vec<u8>> {
        let here = self.setup.ports.get(about.port)?;
        match about.packet.header.source {
            IpAddr::V4(sender) => error_v4(&about.packet, stopped, (here.ipv4.addr(), sender)),
            IpAddr::V6(sender) => {
                // An IPv6 user's tunnel may run over IPv4, on a port without IPv6; and all ports may be without.
                let ours = here.ipv6.or_else(|| self.setup.ports.iter().find_map(|port| port.ipv6));
                let ours = ours.map_or_else(|| here.made_of_mac(), |net| net.addr());
                error_v6(&about.packet, stopped, (ours, sender))
            }
        }
    }
}

fn error_v4(about: &UserPacket, stopped: Stopped, (us, sender): (Ipv4Addr, Ipv4Addr)) -> Option<Vec<u8>> {
    let upper = about.header.upper(&about.bytes)?;
    let to_group = about.header.destination.is_multicast()
        || about.header.destination == IpAddr::V4(Ipv4Addr::BROADCAST);
    // From this network, this host, a group, or what is reserved (RFC 1122 3.2.1.3).
    let [network, ..] = sender.octets();
    let from_nobody = matches!(network, 0 | 127 | 224..);
    if upper.is_later_fragment() || to_group || from_nobody {
        return None;
    }
    // No errors about errors: unreachable, source quench, redirect, time exceeded, parameter problem.
    if about.protocol == ICMP && matches!(u8_at(&about.bytes, upper.at)?, 3 | 4 | 5 | 11 | 12) {
        return None;
    }
    let (kind, value) = match stopped {
        Stopped::NoHopLeft => ([11, 0], 0),
        Stopped::TooLong(room) => ([3, 4], room as u32),
        Stopped::NoRoute => ([3, 0], 0),
    };
    let quoted = about.bytes.get(..about.bytes.len().min(LONGEST_V4 - 20 - 8))?;
    let message = icmp_message(&[], kind, value, quoted);
    let new = ip::New { protocol: ICMP, traffic_class: PRECEDENCE, hops: HOPS };
    Some(ip::packet(us.into(), sender.into(), new, &message))
}

fn error_v6(about: &UserPacket, stopped: Stopped, (us, sender): (Ipv6Addr, Ipv6Addr)) -> Option<Vec<u8>> {
    let upper = about.header.upper(&about.bytes)?;
    if sender.is_multicast() || sender.is_unspecified() {
        return None;
    }
    // No errors about errors, nor about redirects; a later fragment does not show whether it is of one.
    if upper.protocol == ICMPV6
        && (upper.is_later_fragment() || matches!(u8_at(&about.bytes, upper.at)?, ..128 | 137))
    {
        return None;
    }
    let (kind, value) = match stopped {
        Stopped::NoHopLeft | Stopped::NoRoute if about.header.destination.is_multicast() => return None,
        Stopped::NoHopLeft => ([3, 0], 0),
        Stopped::NoRoute => ([1, 0], 0),
        // To less than every link takes, senders would pay no heed.
        Stopped::TooLong(_) if about.bytes.len() <= LEAST_MTU_V6 => return None,
        Stopped::TooLong(room) => ([2, 0], room.max(LEAST_MTU_V6) as u32),
    };
    let quoted = about.bytes.get(..about.bytes.len().min(LEAST_MTU_V6 - 40 - 8))?;
    let pseudo = ip::pseudo_header(us, sender, ICMPV6, 8 + quoted.len());
    let message = icmp_message(&pseudo, kind, value, quoted);
    let new = ip::New { protocol: ICMPV6, traffic_class: 0, hops: HOPS };
    Some(ip::packet(us.into(), sender.into(), new, &message))
}

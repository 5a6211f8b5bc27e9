//! Sends users to other addresses (TS 29.244 8.2.20), and lets what comes back seem to come from where they sent it.
//!
//! * What a FAR redirects goes to the address of its IP version; one that has none of it, and a packet whose checksums or
//!   signatures are not known (all but TCP, UDP, ICMP and ICMPv6; AH; routing headers), is dropped, as is a later fragment
//!   whose first one has not been seen.
//! * Where that address, with the ports, is one that the user's packets to somebody else go to, the newer flow has to wait: it is
//!   dropped until one end of the connection has said that it is over. A connection that the user begins with that address himself takes
//!   the place of what was sent there.
//! * ICMP errors are no packets of such a flow, and quote one as each end knows it: one to the user about a packet that went
//!   elsewhere, with the address that the user sent it to, which is the error's source, too, where that would be the other; one from
//!   the user about a packet that came from elsewhere, with the other. One from the user about anything else is dropped.
//! * A packet to the user gets the address that the user sent to, if it answers such packets. A FAR that redirects what goes to
//!   the user drops all else.

use crate::bytes::{put, u8_at, u16_at, u32_at};
use crate::detection::Arrival;
use crate::enforcement::Session;
use crate::ip::{self, ICMP, ICMPV6, TCP, UDP, UserPacket};
use crate::quote::{self, Quote};
use crate::reason::DropReason;
use crate::setup::Setup;
use rules::{Direction, Far, RedirectTo};
use std::net::IpAddr;

const FIN_OR_RST: u8 = 0x05;
const SYN_AND_ACK: u8 = 0x12;
const SYN: u8 = 0x02;

/// A flow of a user as the redirect server has it, and who the user has it with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Redirected {
    flow: Flow,
    server: IpAddr,
    is_over: bool,
    /// What acknowledges the SYN that began it.
    begun: Option<u32>,
    /// Something has come back.
    #[cfg(test)]
    is_answered: bool,
    /// Errors were told about its packets: to the user, by the user.
    #[cfg(test)]
    errors: [bool; 2],
}

/// Both ends, the user's first, and the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) user: (IpAddr, u16),
    pub(crate) remote: (IpAddr, u16),
    pub(crate) protocol: u8,
}

/// Where a packet goes in the end: how long it may be, the way there says.
pub(crate) fn leaves_for(far: &Far, arrival: &Arrival) -> IpAddr {
    let destination = arrival.packet.header.destination;
    let is_up = arrival.source.direction() == Direction::Uplink;
    let elsewhere = far.redirect.as_ref().filter(|_| is_up).and_then(|redirect| match redirect.to() {
        RedirectTo::Addresses(addresses) => addresses.like(destination),
        RedirectTo::Url(_) => None,
    });
    elsewhere.unwrap_or(destination)
}

impl Session {
    /// Whether a server acknowledges the SYN of a connection that was sent to it.
    pub(crate) fn takes_up_redirected(&self, flow: Flow, acknowledgement: u32) -> bool {
        self.redirected.iter().any(|known| known.flow == flow && known.begun == Some(acknowledgement))
    }

    /// The packet with the addresses that it goes on with, where they are others.
    pub(crate) fn readdress(
        &mut self,
        far: &Far,
        arrival: &Arrival,
        setup: &Setup,
    ) -> Result<Option<UserPacket>, DropReason> {
        let elsewhere = far.redirect.as_ref().and_then(|redirect| match redirect.to() {
            RedirectTo::Addresses(addresses) => Some(*addresses),
            RedirectTo::Url(_) => None,
        });
        let packet = &arrival.packet;
        let (source, destination) = (packet.header.source, packet.header.destination);
        let (from, to) = packet.ports.unwrap_or_default();
        let can_change = knows_flow(packet) && can_change(packet);
        let is_signed = packet.spi.unwrap_or(0) != 0;
        match (arrival.source.direction(), elsewhere) {
            (Direction::Uplink, None) => {
                let flow =
                    Flow { user: (source, from), remote: (destination, to), protocol: packet.protocol };
                if can_change && flags(packet) & SYN_AND_ACK == SYN {
                    self.redirected.retain(|known| known.flow != flow);
                }
                Ok(None)
            }
            (Direction::Uplink, Some(elsewhere)) => {
                let other = elsewhere.like(destination).filter(|_| can_change);
                let other = other.ok_or(DropReason::Redirected)?;
                let is_plain = far.forwarding.is_none_or(|to| to.outer_header_creation.is_none());
                if is_plain && setup.is_ours(other) {
                    return Err(DropReason::ToOurselves);
                }
                if quote::is_error(packet) {
                    return self.error_from_user(packet, (destination, other)).map(Some);
                }
                let flow = Flow { user: (source, from), remote: (other, to), protocol: packet.protocol };
                // A later fragment of what is signed is of a flow of its own, which nothing answers.
                if !is_signed {
                    self.redirect(flow, destination, (flags(packet), after_sequence(packet)))?;
                }
                Ok(with_address(packet, other, false))
            }
            (Direction::Downlink, elsewhere) if quote::is_error(packet) => {
                match (self.error_to_user(packet), elsewhere) {
                    (None, Some(_)) => Err(DropReason::Redirected),
                    (told, _) => Ok(told),
                }
            }
            (Direction::Downlink, elsewhere) => {
                let flow =
                    Flow { user: (destination, to), remote: (source, from), protocol: packet.protocol };
                // What is signed answers nothing, as nothing that is goes elsewhere.
                let may_answer = knows_flow(packet) && !is_signed;
                match self.redirected.iter_mut().find(|known| known.flow == flow && may_answer) {
                    Some(known) if can_change => {
                        known.hear(Direction::Downlink, flags(packet));
                        #[cfg(test)]
                        {
                            known.is_answered = true;
                        }
                        Ok(with_address(packet, known.server, true))
                    }
                    None if elsewhere.is_none() => Ok(None),
                    _ => Err(DropReason::Redirected),
                }
            }
        }
    }

    /// `None` where it is about nothing that went elsewhere.
    fn error_to_user(&mut self, packet: &UserPacket) -> Option<UserPacket> {
        let quote = Quote::of(packet)?;
        let flow = quote.flow_up();
        let known = self.redirected.iter_mut().find(|known| known.flow == flow)?;
        #[cfg(test)]
        {
            known.errors[0] = true;
        }
        let told = quote.with_address(packet, known.server, false)?;
        match packet.header.source == flow.remote.0 {
            true => with_address(&told, known.server, true),
            false => Some(told),
        }
    }

    /// The user has it from `server`, and it came from `other`.
    fn error_from_user(
        &mut self,
        packet: &UserPacket,
        (server, other): (IpAddr, IpAddr),
    ) -> Result<UserPacket, DropReason> {
        let quote = Quote::of(packet).filter(|quote| quote.source.0 == server);
        let told = quote.and_then(|quote| {
            let flow = quote.flow_down(other);
            let known = self.redirected.iter_mut().find(|known| known.flow == flow && known.server == server);
            #[cfg(test)]
            {
                known?.errors[1] = true;
            }
            #[cfg(not(test))]
            known?;
            with_address(&quote.with_address(packet, other, true)?, other, false)
        });
        told.ok_or(DropReason::Redirected)
    }

    fn redirect(
        &mut self,
        flow: Flow,
        server: IpAddr,
        (flags, next): (u8, Option<u32>),
    ) -> Result<(), DropReason> {
        let known = self.redirected.iter().position(|known| known.flow == flow);
        if let Some(known) = known.and_then(|known| self.redirected.get_mut(known)) {
            if known.server != server && !known.is_over {
                return Err(DropReason::RedirectTaken);
            }
            known.is_over &= known.server == server;
            known.begun = known.begun.filter(|_| known.server == server);
            known.server = server;
            known.hear(Direction::Uplink, flags);
            known.begin(flags, next);
            return Ok(());
        }
        let mut fresh = Redirected {
            flow,
            server,
            is_over: false,
            begun: None,
            #[cfg(test)]
            is_answered: false,
            #[cfg(test)]
            errors: [false; 2],
        };
        fresh.hear(Direction::Uplink, flags);
        fresh.begin(flags, next);
        self.redirected.push(fresh);
        Ok(())
    }
}

impl Redirected {
    /// Notes which acknowledgement takes up the user's SYN.
    fn begin(&mut self, flags: u8, next: Option<u32>) {
        if flags & SYN_AND_ACK == SYN {
            self.begun = next;
        }
    }

    /// The user begins a connection anew, or one end says that it is over.
    fn hear(&mut self, from: Direction, flags: u8) {
        self.is_over |= flags & FIN_OR_RST != 0;
        if from == Direction::Uplink && flags & SYN_AND_ACK == SYN {
            self.is_over = false;
        }
    }
}

/// Where the upper layer's header begins, if the packet has one.
fn upper(packet: &UserPacket) -> Option<usize> {
    let upper = packet.header.upper(&packet.bytes)?;
    (!upper.is_later_fragment()).then_some(upper.at)
}

/// Whether it is known which ports a packet is of, or that there are none.
fn knows_flow(packet: &UserPacket) -> bool {
    !packet.part.is_some_and(|(_, is_later)| is_later) || packet.follows
}

fn can_change(packet: &UserPacket) -> bool {
    let Some(whole) = packet.header.upper(&packet.bytes) else { return false };
    let needed = match packet.protocol {
        TCP => 18,
        UDP => 8,
        ICMP | ICMPV6 => 4,
        _ => return false,
    };
    let is_there = upper(packet).is_none_or(|at| packet.bytes.len() >= at + needed);
    is_there && !whole.is_bound
}

/// What acknowledges a segment's first octet.
fn after_sequence(packet: &UserPacket) -> Option<u32> {
    let at = upper(packet).filter(|_| packet.protocol == TCP)?;
    u32_at(&packet.bytes, at + 4).map(|sequence| sequence.wrapping_add(1))
}

fn flags(packet: &UserPacket) -> u8 {
    let at = upper(packet).filter(|_| packet.protocol == TCP);
    at.and_then(|at| u8_at(&packet.bytes, at + 13)).unwrap_or(0)
}

/// The packet with another source or destination. Its upper layer's checksum is right afterwards if it was before.
fn with_address(packet: &UserPacket, address: IpAddr, is_source: bool) -> Option<UserPacket> {
    let mut bytes = packet.bytes.clone();
    let (place, new) = match address {
        IpAddr::V4(address) => (if is_source { 12 } else { 16 }, address.octets().to_vec()),
        IpAddr::V6(address) => (if is_source { 8 } else { 24 }, address.octets().to_vec()),
    };
    let old = bytes.get(place..place + new.len())?.to_vec();
    put(&mut bytes, place, &new);
    if address.is_ipv4() {
        ip::renew_checksum_v4(&mut bytes, packet.header.length);
    }
    let field = match packet.protocol {
        TCP => Some(16),
        UDP => Some(6),
        ICMPV6 => Some(2),
        _ => None,
    };
    if let Some(at) = upper(packet).zip(field).map(|(upper, field)| upper + field) {
        let before = u16_at(&bytes, at)?;
        let after = match changed(before, &old, &new) {
            0 if packet.protocol == UDP => 0xffff,
            after => after,
        };
        if before != 0 || packet.protocol != UDP {
            put(&mut bytes, at, &after.to_be_bytes());
        }
    }
    Some(UserPacket { header: ip::read(&bytes)?, bytes, ..packet.clone() })
}

/// RFC 1624, equation 3, word by word.
pub(crate) fn changed(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    let words = |bytes: &[u8]| -> Vec<u16> {
        (0..bytes.len()).step_by(2).filter_map(|at| u16_at(bytes, at)).collect()
    };
    let add = |sum: u16, word: u16| {
        let (sum, carry) = sum.overflowing_add(word);
        sum + u16::from(carry)
    };
    let without = words(old).into_iter().fold(!checksum, |sum, word| add(sum, !word));
    !words(new).into_iter().fold(without, add)
}

#[cfg(test)]
mod tests {
    use crate::Reference;
    use crate::worlds::{Random, World};
    use crate::{DropReason, Fate};
    use rand::SeedableRng;

    /// Or what random worlds are compared for would say nothing of it.
    #[test]
    fn worlds_have_packets_that_go_elsewhere_and_some_that_come_back() {
        let (mut entered, mut taken, mut refused) = (0, 0, 0);
        let (mut answered, mut told) = (0, [0; 2]);
        for seed in 0..100 {
            let world = World::random(seed);
            let mut reference = Reference::new(world.setup.clone()).unwrap();
            world.sessions.iter().for_each(|(seid, rules)| reference.put(*seid, rules.clone()));
            let (random, mut now_ns) = (&mut Random::seed_from_u64(seed), 1);
            for _ in 0..2_000 {
                let (port, frame) = world.packet(random);
                now_ns += World::gap_ns(random);
                match reference.process(port, &frame, now_ns).fate {
                    Fate::Dropped(DropReason::RedirectTaken) => taken += 1,
                    Fate::Dropped(DropReason::Redirected) => refused += 1,
                    _ => {}
                }
            }
            let all = reference.sessions.iter().flat_map(|session| &session.redirected);
            entered += all.clone().count();
            answered += all.clone().filter(|known| known.is_answered).count();
            for (way, told) in told.iter_mut().enumerate() {
                *told += all.clone().filter(|known| known.errors[way]).count();
            }
        }
        assert!(told.iter().all(|told| *told > 3), "{told:?}");
        assert!(
            entered > 500 && taken > 50 && refused > 500 && answered > 20,
            "{entered} {taken} {refused} {answered}"
        );
    }
}

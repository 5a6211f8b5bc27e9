//! Sends users to another address (TS 29.244 8.2.20): what they send there goes to it in the place of its destination, and what
//! comes back gets that as its source, so that neither end but the one that is meant hears of the other. All else of the
//! packet's way is as for others: it is counted, held to rates and routed.
//!
//! An ICMP error is no packet of a flow of its own, but about one: what it quotes is as its receiver knows it (RFC 5508 4.2).
//!
//! PDRs match what arrives (TS 29.244 5.2.1), so what comes back goes by the rules for the address it comes from.

use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::{Control, FlowKey, State};
use packet::address::{End, Sealed, is_known};
use packet::quoted::{self, Quoted};
use packet::{Buffer, protocol};
use rules::{Direction, RedirectAddresses, Seid};
use std::net::IpAddr;

pub(crate) struct Readdress;

impl<B: Buffer> Node<B> for Readdress {
    const ID: NodeId = NodeId::Readdress;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let elsewhere = state.readdress(packet.meta.step);
        let done = match (packet.meta.direction(), elsewhere) {
            (Direction::Uplink, Some(to)) => from_user(state, packet, to),
            (Direction::Uplink, None) => {
                straight_from_user(state, packet);
                Ok(())
            }
            (Direction::Downlink, _) => to_user(state, packet, elsewhere.is_some()),
        };
        if let Err(reason) = done {
            return Next::drop(reason);
        }
        let step = state.sessions.cells.step(packet.meta.step);
        Next::To(super::far::addressed(step, packet.meta.waits.is_some()))
    }
}

/// What cannot be told from parts of other flows, or has checksums that we do not know, cannot go elsewhere.
fn sealed<B: Buffer>(packet: &Packet<B>) -> Option<Sealed> {
    let key = &packet.meta.key;
    let is_told = !key.is_of_addresses() && is_known(key.protocol());
    is_told.then(|| Sealed::of(packet.buffer.data()))?
}

/// What a packet says of its connection.
fn control(sealed: Sealed, packet: &[u8]) -> Control {
    let control = Control::of(sealed.tcp_flags(packet));
    let begins = sealed.tcp_sequence(packet).filter(|_| control.is_syn());
    Control { begins: begins.map(|number| number.wrapping_add(1)), ..control }
}

/// A user who begins a connection with an address itself wants to hear from that, whatever was sent there before between the same ports.
fn straight_from_user<B: Buffer>(state: &mut State, packet: &Packet<B>) {
    let is_syn = sealed(packet).is_some_and(|sealed| control(sealed, packet.buffer.data()).is_syn());
    let session = state.sessions.cells.session(packet.meta.step);
    if let Some(seid) = state.sessions.get(session).filter(|_| is_syn).map(|session| session.seid) {
        state.send_straight((seid, &packet.meta.key.of_session(session)));
    }
}

fn from_user<B: Buffer>(
    state: &mut State,
    packet: &mut Packet<B>,
    to: RedirectAddresses,
) -> Result<(), DropReason> {
    let cells = &state.sessions.cells;
    let is_plain = !cells.step(packet.meta.step).tunnels();
    let session = cells.session(packet.meta.step);
    let server = super::destination(packet.buffer.data()).ok_or(DropReason::Redirected)?;
    let to = to.like(server).ok_or(DropReason::Redirected)?;
    let sealed = sealed(packet).ok_or(DropReason::Redirected)?;
    if is_plain && state.ports.is_ours(to) {
        return Err(DropReason::ToOurselves);
    }
    let key = packet.meta.key.of_session(session).readdressed(server, to);
    let session = state.sessions.get(session).ok_or(DropReason::Redirected)?.seid;
    if is_error(packet) {
        return error_from_user(state, packet, (session, server, to)).ok_or(DropReason::Redirected);
    }
    let control = control(sealed, packet.buffer.data());
    if !state.redirect((session, &key), server, control) {
        return Err(DropReason::RedirectTaken);
    }
    sealed.replace(packet.buffer.data_mut(), End::Destination, to).ok_or(DropReason::Redirected)
}

/// `elsewhere`: the rule is about what comes from where users are sent, and nothing else.
fn to_user<B: Buffer>(state: &mut State, packet: &mut Packet<B>, elsewhere: bool) -> Result<(), DropReason> {
    let session = state.sessions.cells.session(packet.meta.step);
    let key = packet.meta.key.of_session(session);
    let session = state.sessions.get(session).ok_or(DropReason::Redirected)?.seid;
    if is_error(packet) {
        return match error_to_user(state, packet, session) {
            None if elsewhere => Err(DropReason::Redirected),
            _ => Ok(()),
        };
    }
    let sealed = sealed(packet);
    let control = sealed.map_or_else(Control::default, |sealed| control(sealed, packet.buffer.data()));
    match (state.redirected((session, &key), control), sealed) {
        (Some(server), Some(sealed)) => {
            sealed.replace(packet.buffer.data_mut(), End::Source, server).ok_or(DropReason::Redirected)
        }
        (None, _) if !elsewhere => Ok(()),
        _ => Err(DropReason::Redirected),
    }
}

fn is_error<B: Buffer>(packet: &Packet<B>) -> bool {
    let carried = packet.meta.key.protocol();
    matches!(carried, protocol::ICMP | protocol::ICMPV6) && quoted::is_error(packet.buffer.data())
}

/// About a packet that went elsewhere: the user sent it to its server. Who speaks of it is the server, too, or somebody on the way.
/// `None` where it is about no such packet.
fn error_to_user<B: Buffer>(state: &State, packet: &mut Packet<B>, session: Seid) -> Option<()> {
    let data = packet.buffer.data_mut();
    let quoted = Quoted::of(data)?;
    let server = state.server_of((session, &FlowKey::new(quoted.flow(), Direction::Uplink)))?;
    let (source, _) = super::answer::ends(data)?;
    quoted.replace(data, End::Destination, server)?;
    if source == quoted.flow().destination_address() {
        Sealed::of(data)?.replace(data, End::Source, server)?;
    }
    Some(())
}

/// About a packet that the user has from `server` and that came from elsewhere: who sent it knows itself alone. About others it
/// hears nothing (RFC 5508 REQ-5).
fn error_from_user<B: Buffer>(
    state: &State,
    packet: &mut Packet<B>,
    (session, server, to): (Seid, IpAddr, IpAddr),
) -> Option<()> {
    let data = packet.buffer.data_mut();
    let quoted = Quoted::of(data).filter(|quoted| quoted.flow().source_address() == server)?;
    let key = FlowKey::new(quoted.flow(), Direction::Downlink).readdressed(server, to);
    state.server_of((session, &key)).filter(|known| *known == server)?;
    quoted.replace(data, End::Source, to)?;
    Sealed::of(data)?.replace(data, End::Destination, to)
}

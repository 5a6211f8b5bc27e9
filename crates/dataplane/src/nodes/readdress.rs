//! Sends users to another address (TS 29.244 8.2.20): what they send there goes to it in the place of its destination, and what
//! comes back gets that as its source, so that neither end but the one that is meant hears of the other. All else of the
//! packet's way is as for others: it is counted, held to rates and routed.
//!
//! PDRs match what arrives (TS 29.244 5.2.1), so what comes back goes by the rules for the address it comes from.

use crate::counters::DropReason;
use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::Buffer;
use packet::address::{End, Sealed, is_known};
use rules::{Direction, RedirectAddresses};

pub(crate) struct Readdress;

impl<B: Buffer> Node<B> for Readdress {
    const ID: NodeId = NodeId::Readdress;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let elsewhere = state.readdress(packet.meta.step);
        let done = match (packet.meta.direction(), elsewhere) {
            (Direction::Uplink, Some(to)) => from_user(state, packet, to),
            (Direction::Uplink, None) => Ok(()),
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

fn from_user<B: Buffer>(
    state: &mut State,
    packet: &mut Packet<B>,
    to: RedirectAddresses,
) -> Result<(), DropReason> {
    let step = state.sessions.cells.step(packet.meta.step);
    let (is_plain, session) = (!step.tunnels(), step.session);
    let server = super::destination(packet.buffer.data()).ok_or(DropReason::Redirected)?;
    let to = to.like(server).ok_or(DropReason::Redirected)?;
    let sealed = sealed(packet).ok_or(DropReason::Redirected)?;
    if is_plain && state.ports.is_ours(to) {
        return Err(DropReason::ToOurselves);
    }
    let key = packet.meta.key.of_session(session).readdressed(server, to);
    let session = state.sessions.get(session).ok_or(DropReason::Redirected)?.seid;
    let flags = sealed.tcp_flags(packet.buffer.data());
    if !state.redirect((session, &key), server, flags) {
        return Err(DropReason::RedirectTaken);
    }
    sealed.replace(packet.buffer.data_mut(), End::Destination, to).ok_or(DropReason::Redirected)
}

/// `elsewhere`: the rule is about what comes from where users are sent, and nothing else.
fn to_user<B: Buffer>(state: &mut State, packet: &mut Packet<B>, elsewhere: bool) -> Result<(), DropReason> {
    let session = state.sessions.cells.step(packet.meta.step).session;
    let key = packet.meta.key.of_session(session);
    let session = state.sessions.get(session).ok_or(DropReason::Redirected)?.seid;
    let sealed = sealed(packet);
    let flags = sealed.map_or(0, |sealed| sealed.tcp_flags(packet.buffer.data()));
    match (state.redirected((session, &key), flags), sealed) {
        (Some(server), Some(sealed)) => {
            sealed.replace(packet.buffer.data_mut(), End::Source, server).ok_or(DropReason::Redirected)
        }
        (None, _) if !elsewhere => Ok(()),
        _ => Err(DropReason::Redirected),
    }
}

//! ICMP errors about segments whose numbers have been changed: hosts pass those over whose quoted number is of nothing
//! they have under way (RFC 5927 4.1), and would never learn how long a packet passes.
//!
//! An error to the user quotes what the user sent by its own number, one from the user the user's acknowledgement by the
//! server's.
//!
//! One that says to the user how long a packet passes means a packet with the field in it, if the one it is about had it:
//! the user, who is to send the same again, sends less by the field, or it would be too long once more. Of others it is
//! true as it stands; a request that fits with its field is what the next such error would be about. Of our own errors
//! (`path_mtu`) all is true: they are about packets as they came, and nothing leaves here with a field that is longer
//! than our way takes.
//!
//! IPv6 hosts send 1,280 octets whatever they are told (RFC 8201 4), so the connection remembers what passes: what is
//! sent again with a field is cut by that, and requests that do not fit with a field go without.

use crate::frame::Packet;
use crate::state::{Connection, FlowKey, State};
use packet::quoted::{Number, Quoted};
use packet::{Buffer, protocol};
use rules::Direction;

/// Nobody makes us send less at once: what every host takes (RFC 791 3.1).
const PASSES_MIN: u32 = 576;

/// `None`, and the packet as it is, where it is about no connection whose numbers differ.
pub(super) fn renumber<B: Buffer>(state: &mut State, packet: &mut Packet<B>) -> Option<()> {
    let own = packet.meta.key;
    let is_icmp = matches!(own.protocol(), protocol::ICMP | protocol::ICMPV6);
    let quoted = is_icmp.then(|| Quoted::of(packet.buffer.data()))??;
    let session = state.sessions.cells.session(packet.meta.step);
    let direction = packet.meta.direction();
    let way_of_quoted = direction.opposite();
    let key = FlowKey::new(quoted.flow(), way_of_quoted).beside(&own, session);
    // Nobody is told of others' connections, nor speaks of them.
    let hash = (key.user() == own.user()).then(|| state.flows.hash(&key))?;
    let connection = state.connections.get((&key, hash)).filter(|connection| connection.is_shifted())?;
    let data = packet.buffer.data_mut();
    match direction {
        Direction::Downlink => to_user(connection, data, &quoted),
        Direction::Uplink => {
            let number = quoted.number(data, Number::Acknowledgement)?;
            quoted.renumber(data, Number::Acknowledgement, connection.to_server(number))
        }
    }
}

fn to_user(connection: &mut Connection, data: &mut [u8], quoted: &Quoted) -> Option<()> {
    let number = connection.to_user(quoted.number(data, Number::Sequence)?);
    let carried = quoted.carried(data).unwrap_or_default();
    if let Some((_, text)) = connection.covers(number, carried)
        && let Some(mtu) = quoted.mtu(data).filter(|mtu| *mtu >= quoted.least_mtu())
    {
        let passes = u16::try_from(mtu.max(PASSES_MIN)).unwrap_or(u16::MAX);
        connection.passes = connection.passes.min(passes);
        let left = mtu.saturating_sub(text.len() as u32).max(quoted.least_mtu());
        quoted.tell_mtu(data, left)?;
    }
    quoted.renumber(data, Number::Sequence, number)
}

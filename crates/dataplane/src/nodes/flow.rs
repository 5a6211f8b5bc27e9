//! Follows what is known of a packet's flow; packets of unknown flows go by the session's rules.

use crate::frame::Packet;
use crate::graph::{Next, Node, NodeId};
use crate::state::{Beginning, State};
use dpi::extract::may_be_later_request;
use packet::five_tuple::FiveTuple;
use packet::{Buffer, ipv4, protocol, tcp};
use rules::Direction;

pub(crate) struct Flow;

impl Flow {
    /// Asks for the flows that do not stand where most do, of which it is known by now where else they may.
    #[inline(always)]
    pub(crate) fn again<B: Buffer>(state: &State, packet: &mut Packet<B>) {
        packet.meta.line = state.flows.look_again(packet.meta.hash, packet.meta.line);
    }
}

impl<B: Buffer> Node<B> for Flow {
    const ID: NodeId = NodeId::Flow;

    #[inline(always)]
    fn first(state: &State, packet: &mut Packet<B>) {
        packet.meta.line = state.flows.prefetch_tags(packet.meta.hash);
    }

    #[inline(always)]
    fn ahead(state: &State, packet: &mut Packet<B>) {
        packet.meta.line = state.flows.look(packet.meta.hash, packet.meta.line);
    }

    #[inline(always)]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let meta = &mut packet.meta;
        let begins = |may_ask| beginning(packet.buffer.data(), may_ask);
        match state.flows.find(meta.flow(), state.now_ns, begins) {
            Some((step, generation)) => {
                if meta.direction() == Direction::Downlink {
                    // Most likely it will be put into a tunnel.
                    packet.buffer.prefetch_headroom();
                }
                let meta = &mut packet.meta;
                (meta.step, meta.generation) = (step, generation);
                Next::To(NodeId::Verdict)
            }
            None => Next::To(NodeId::Session),
        }
    }
}

/// What may begin with a packet on a connection that is known. Its flags and the first few octets that it carries say of most that
/// nothing does, so that bodies take the usual way; where it `may_ask` for nothing, the flags alone.
#[inline]
pub(super) fn beginning(packet: &[u8], may_ask: bool) -> Beginning {
    if !may_ask && is_of_no_handshake(packet) { Beginning::Nothing } else { read(packet) }
}

#[inline(never)]
fn read(packet: &[u8]) -> Beginning {
    let Ok(found) = FiveTuple::parse(packet) else { return Beginning::Request };
    let segment = packet.get(found.upper..found.total).map(tcp::Segment::parse);
    match segment {
        Some(Ok(segment)) if !found.tuple.fragment => match segment.has(tcp::flag::SYN) {
            true => Beginning::Connection,
            false if may_be_later_request(segment.payload()) => Beginning::Request,
            false => Beginning::Nothing,
        },
        _ => Beginning::Request,
    }
}

/// Of a usual segment, that it is no SYN: whole, over IPv4 without options. All known connections' packets are asked.
#[inline]
fn is_of_no_handshake(packet: &[u8]) -> bool {
    const FLAGS: usize = ipv4::LENGTH + 13;
    const USUAL: u64 = u64::from_le_bytes([0x45, 0, 0, 0, 0, 0, 0, 0]);
    const MATTERS: u64 = u64::from_le_bytes([0xff, 0, 0, 0, 0, 0, 0x3f, 0xff]);
    let Some(header) = packet.first_chunk::<{ FLAGS + 1 }>() else { return false };
    let front = header.first_chunk().map_or(0, |octets| u64::from_le_bytes(*octets));
    let others = header[9] ^ protocol::TCP | header[FLAGS] & tcp::flag::SYN;
    (front ^ USUAL) & MATTERS | u64::from(others) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As [`is_of_no_handshake`], field by field.
    fn by_fields(packet: &[u8]) -> bool {
        let is_whole = packet[6] & 0x3f == 0 && packet[7] == 0;
        packet[0] == 0x45 && is_whole && packet[9] == protocol::TCP && packet[33] & tcp::flag::SYN == 0
    }

    #[test]
    fn headers_are_of_no_handshake_by_words_as_by_fields() {
        let mut packet = [0xff; 40];
        (packet[0], packet[6], packet[7], packet[9], packet[33]) = (0x45, 0x40, 0, protocol::TCP, 0x10);
        assert!(is_of_no_handshake(&packet) && !is_of_no_handshake(&packet[..33]));
        for bit in 0..8 * packet.len() {
            packet[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(is_of_no_handshake(&packet), by_fields(&packet), "bit {bit}");
            packet[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

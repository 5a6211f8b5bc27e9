//! Takes the usual packet to its flow in one step: a user's whole TCP or UDP packet over IPv4, as it comes from the data
//! network, or in a tunnel over IPv4, from the radio or another gateway, with at most a PDU session container. Everything
//! else, and everything at fault, goes the long way from `ethernet_input` on, which comes to the same for usual packets.

use crate::frame::{FlowMarks, Meta, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{FlowKey, Receiver, State};
use packet::{Buffer, ethernet, gtpu, ipv4, protocol, udp};
use rules::Direction;

pub(crate) struct UsualInput;

impl<B: Buffer> Node<B> for UsualInput {
    const ID: NodeId = NodeId::UsualInput;

    #[inline(always)]
    fn ahead(_: &State, packet: &mut Packet<B>) {
        match packet.meta.direction() {
            Direction::Uplink => packet.buffer.prefetch_data(),
            // In no tunnel, most likely.
            Direction::Downlink => packet.buffer.prefetch_front(),
        }
    }

    #[inline(always)]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let receiver = state.ports.receiver(packet.meta.port);
        let frame = packet.buffer.data();
        let found = match packet.meta.direction() {
            Direction::Uplink => tunnel(frame, receiver),
            Direction::Downlink => plain(frame, receiver).or_else(|| tunnel(frame, receiver)),
        };
        let Some(tunnel) = found else { return Next::To(NodeId::EthernetInput) };
        let Meta { port, source, .. } = packet.meta;
        let source = match tunnel.end == PLAIN {
            true => source,
            false => state.source_of_tunnel(port, source, tunnel.teid),
        };
        let inner = frame.get(usize::from(tunnel.end)..tunnel.limit).unwrap_or_default();
        let Some((key, length, class)) = FlowKey::of_usual(inner, source.direction()) else {
            return Next::To(NodeId::EthernetInput);
        };
        let meta = &mut packet.meta;
        meta.source = source;
        (meta.teid, meta.outer) = (tunnel.teid, tunnel.end - ethernet::LENGTH as u8);
        (meta.qfi, meta.marks) = (tunnel.qfi, tunnel.marks);
        (meta.bytes, meta.traffic_class) = (length, class);
        meta.key = state.in_network(key, meta);
        meta.hash = state.flows.hash(&meta.key);
        let next = state.steering.next(meta.port, &meta.key);
        match packet.buffer.keep(usize::from(tunnel.end), usize::from(length)) {
            Some(()) => Next::To(next),
            None => Next::To(NodeId::EthernetInput),
        }
    }
}

/// What stands before the user's packet.
struct Before {
    teid: u32,
    qfi: u8,
    marks: FlowMarks,
    /// Bytes from the front of the frame.
    end: u8,
    /// Where the tunnel's payload ends, or the frame does.
    limit: usize,
}

/// What stands before a packet outside tunnels.
const PLAIN: u8 = ethernet::LENGTH as u8;
/// Ethernet, IPv4, UDP, and the mandatory part of GTP-U.
const TUNNEL: usize = ethernet::LENGTH + ipv4::LENGTH + udp::LENGTH + 8;
/// GTP-U's optional part, and the PDU session container in its shortest form.
const CONTAINER: usize = 8;

#[inline(always)]
fn is_for_us(frame: &[u8], receiver: &Receiver) -> bool {
    frame.first_chunk() == Some(&receiver.mac) && frame.get(12..14) == Some(&ethernet::IPV4.to_be_bytes())
}

#[inline(always)]
fn plain(frame: &[u8], receiver: &Receiver) -> Option<Before> {
    let header: &[u8; ethernet::LENGTH + ipv4::LENGTH] = frame.first_chunk()?;
    let to_us = header[30..34] == receiver.address;
    (is_for_us(frame, receiver) && !to_us).then_some(Before {
        teid: 0,
        qfi: Meta::NO_QFI,
        marks: FlowMarks::NONE,
        end: PLAIN,
        limit: frame.len(),
    })
}

/// Lengths must agree with each other: where they do not, somebody else finds out what that means.
#[inline(always)]
fn tunnel(frame: &[u8], receiver: &Receiver) -> Option<Before> {
    let header: &[u8; TUNNEL + CONTAINER] = frame.first_chunk()?;
    let short = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let ip: &[u8; ipv4::LENGTH] = header[ethernet::LENGTH..].first_chunk()?;
    let (ip_length, udp_length, gtpu_length) = (short(16), short(38), short(44));
    let usual = is_for_us(frame, receiver)
        && header[14] == 0x45
        && short(20) & 0x3fff == 0
        && header[23] == protocol::UDP
        && header[30..34] == receiver.address
        && short(36) == gtpu::PORT
        && header[43] == gtpu::message_type::G_PDU
        && usize::from(ip_length) + ethernet::LENGTH <= frame.len()
        && udp_length.wrapping_add(20) == ip_length
        && gtpu_length.wrapping_add(16) == udp_length
        && FlowKey::sums_up(ip);
    if !usual {
        return None;
    }
    let limit = ethernet::LENGTH + usize::from(ip_length);
    let teid = u32::from_be_bytes([header[46], header[47], header[48], header[49]]);
    // 0 leads nowhere, and is what stands for no tunnel.
    match header[42] {
        _ if teid == 0 => None,
        0x30 => Some(Before { teid, qfi: Meta::NO_QFI, marks: FlowMarks::NONE, end: TUNNEL as u8, limit }),
        // One extension header, the container, one unit of four octets long, of either type.
        0x34 if header[53..55] == [0x85, 1]
            && header[55] & 0xef == 0
            && header[56] & 0x80 == 0
            && header[57] == 0 =>
        {
            // What comes from the radio says other things there.
            let marks = if header[55] == 0 { FlowMarks::of_flow(header[56]) } else { FlowMarks::NONE };
            Some(Before { teid, qfi: header[56] & 0x3f, marks, end: (TUNNEL + CONTAINER) as u8, limit })
        }
        _ => None,
    }
}

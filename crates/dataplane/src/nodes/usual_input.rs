//! Takes the usual packet to its flow in one step: a user's whole TCP or UDP packet over IPv4, as it comes from the data
//! network, or in a tunnel over IPv4, from the radio or another gateway, with at most a PDU session container. Everything
//! else, and everything at fault, goes the long way from `ethernet_input` on, which comes to the same for usual packets.

use crate::frame::{FlowMarks, Meta, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::shape::{
    ALONE, CONTAINER, ETHERTYPE, EXTENSION, FRONT, G_PDU, IPV4, TO_PORT, TUNNEL, WHOLE, differs, word,
};
use crate::state::{FlowKey, Receiver, State};
use packet::checksum::is_intact_header;
use packet::{Buffer, ethernet, ipv4};
use rules::{Direction, Interface};

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
        let Meta { port, source, .. } = packet.meta;
        let receiver = state.ports.receiver(port);
        let frame = packet.buffer.data();
        if source.direction() == Direction::Downlink
            && let Some(before) = plain(frame, receiver)
        {
            return enter(state, packet, (before, source));
        }
        let Some(before) = tunnel(frame, receiver) else { return Next::To(NodeId::EthernetInput) };
        let source = state.source_of_tunnel(port, source, before.teid);
        enter(state, packet, (before, source))
    }
}

/// Notes what tells a packet's flow, behind what stands before it.
#[inline(always)]
fn enter<B: Buffer>(state: &State, packet: &mut Packet<B>, (before, source): (Before, Interface)) -> Next {
    let inner = packet.buffer.data().get(usize::from(before.end)..before.limit).unwrap_or_default();
    let Some((key, length, class)) = FlowKey::of_usual(inner, source.direction()) else {
        return Next::To(NodeId::EthernetInput);
    };
    let meta = &mut packet.meta;
    meta.source = source;
    (meta.teid, meta.outer) = (before.teid, before.end - ethernet::LENGTH as u8);
    (meta.qfi, meta.marks) = (before.qfi, before.marks);
    (meta.bytes, meta.traffic_class) = (length, class);
    meta.key = state.in_network(key, meta);
    meta.hash = state.flows.hash(&meta.key);
    let next = state.steering.next(meta.port, &meta.key);
    match packet.buffer.keep(usize::from(before.end), usize::from(length)) {
        Some(()) => Next::To(next),
        None => Next::To(NodeId::EthernetInput),
    }
}

/// What stands before the user's packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

#[inline(always)]
fn plain(frame: &[u8], receiver: &Receiver) -> Option<Before> {
    let header: &[u8; ethernet::LENGTH + ipv4::LENGTH] = frame.first_chunk()?;
    let to_us = header[30..34] == receiver.address;
    let strange = receiver.strange(word(header, 0)) | differs(word(header, ETHERTYPE), IPV4);
    (strange == 0 && !to_us).then_some(Before {
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
    let strange = receiver.strange(word(header, 0))
        | differs(word(header, ETHERTYPE), FRONT)
        | differs(word(header, 20), WHOLE)
        | differs(word(header, 34), TO_PORT)
        | differs(word(header, 38), G_PDU);
    let usual = strange == 0
        && header[30..34] == receiver.address
        && usize::from(ip_length) + ethernet::LENGTH <= frame.len()
        && udp_length.wrapping_add(20) == ip_length
        && gtpu_length.wrapping_add(16) == udp_length
        && is_intact_header(ip);
    if !usual {
        return None;
    }
    let limit = ethernet::LENGTH + usize::from(ip_length);
    let teid = u32::from_be_bytes([header[46], header[47], header[48], header[49]]);
    // 0 leads nowhere, and is what stands for no tunnel.
    if teid == 0 {
        return None;
    }
    if header[42] & EXTENSION == 0 {
        return Some(Before { teid, qfi: Meta::NO_QFI, marks: FlowMarks::NONE, end: TUNNEL as u8, limit });
    }
    if differs(word(header, TUNNEL), ALONE) != 0 {
        return None;
    }
    // What comes from the radio says other things there.
    let marks = if header[55] == 0 { FlowMarks::of_flow(header[56]) } else { FlowMarks::NONE };
    Some(Before { teid, qfi: header[56] & 0x3f, marks, end: (TUNNEL + CONTAINER) as u8, limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PortConfig;
    use crate::fixture::{N3, config};
    use crate::state::Ports;
    use crate::tests::rates::uplink;
    use packet::{gtpu, protocol};

    /// As [`tunnel`], field by field.
    fn tunnel_by_fields(frame: &[u8], port: &PortConfig) -> Option<Before> {
        let header: &[u8; TUNNEL + CONTAINER] = frame.first_chunk()?;
        let short = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let limit = ethernet::LENGTH + usize::from(short(16));
        let usual = header[..6] == port.mac.0
            && short(12) == ethernet::IPV4
            && header[14] == 0x45
            && !packet::ecn::matters(header[15])
            && short(20) & 0x3fff == 0
            && header[23] == protocol::UDP
            && header[30..34] == port.address.addr().octets()
            && short(36) == gtpu::PORT
            && header[43] == gtpu::message_type::G_PDU
            && limit <= frame.len()
            && short(38).wrapping_add(20) == short(16)
            && short(44).wrapping_add(16) == short(38)
            && packet::checksum::is_intact(&header[14..34]);
        let teid = u32::from_be_bytes([header[46], header[47], header[48], header[49]]);
        let (qfi, marks) = (Meta::NO_QFI, FlowMarks::NONE);
        let bare = Before { teid, qfi, marks, end: TUNNEL as u8, limit };
        match header[42] {
            _ if !usual || teid == 0 => None,
            0x30 => Some(bare),
            0x34 if header[53..55] == [0x85, 1]
                && matches!(header[55], 0 | 0x10)
                && header[56] < 0x80
                && header[57] == 0 =>
            {
                let is_reflective = header[55] == 0 && header[56] & 0x40 != 0;
                let marks = FlowMarks::of_flow(if is_reflective { 0x40 } else { 0 });
                Some(Before { qfi: header[56] & 0x3f, marks, end: (TUNNEL + CONTAINER) as u8, ..bare })
            }
            _ => None,
        }
    }

    /// A G-PDU to the port, with a container of a type and a flow.
    fn with_container(kind: u8, flow: u8) -> Vec<u8> {
        let mut frame = uplink(1, 80);
        frame[42] = 0x34;
        frame.splice(50..50, [0, 0, 0, 0x85, 1, kind, flow, 0]);
        for at in [16, 38, 44] {
            let length = u16::from_be_bytes([frame[at], frame[at + 1]]) + 8;
            frame[at..at + 2].copy_from_slice(&length.to_be_bytes());
        }
        frame[24..26].fill(0);
        let checksum = packet::checksum::of(&frame[14..34]);
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        frame
    }

    #[test]
    fn headers_are_usual_or_not_by_words_as_by_fields() {
        let ports = config().ports;
        let (port, ours) = (&ports[N3], Ports::new(&ports).unwrap());
        let receiver = ours.receiver(N3 as u8);
        let frames =
            [uplink(1, 80), with_container(0x10, 9), with_container(0, 0x49), with_container(0, 0x89)];
        let usual = frames.each_ref().map(|frame| tunnel(frame, receiver).is_some());
        assert_eq!(usual, [true, true, true, false]);
        for mut frame in frames {
            let bits = 8 * (TUNNEL + CONTAINER);
            for one in 0..bits {
                for other in 0..bits {
                    let flip = |frame: &mut [u8]| {
                        frame[one / 8] ^= 1 << (one % 8);
                        // The same bit twice: that one alone is another.
                        frame[other / 8] ^= if one == other { 0 } else { 1 << (other % 8) };
                    };
                    flip(&mut frame);
                    assert_eq!(
                        tunnel(&frame, receiver),
                        tunnel_by_fields(&frame, port),
                        "bits {one}, {other}"
                    );
                    flip(&mut frame);
                }
            }
        }
    }
}

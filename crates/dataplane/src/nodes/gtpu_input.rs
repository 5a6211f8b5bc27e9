//! Reads GTP-U; takes the tunnel's headers off users' packets (TS 29.281).

use super::answer::{Way, ends, replace_by_gtpu};
use super::frame_user::behind_tunnel;
use super::punt::unspoken;
use crate::counters::DropReason;
use crate::frame::{FlowMarks, Meta, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::gtpu::{self, Malformed, Message, message_type};
use packet::{Buffer, ecn, ipv4, ipv6, protocol, udp};

/// The longest list of extension headers.
const NOTIFICATION_MAX: usize = 32;

pub(crate) struct GtpuInput;

impl<B: Buffer> Node<B> for GtpuInput {
    const ID: NodeId = NodeId::GtpuInput;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let message = match read(packet) {
            Ok(message) => message,
            Err(DropReason::GtpuUnknownExtension) => return notify(state, packet),
            Err(reason @ DropReason::NoListener) => return unspoken(state, packet, reason),
            Err(reason) => return Next::drop(reason),
        };
        if message.message_type != message_type::G_PDU {
            return Next::To(NodeId::GtpuPath);
        }
        // No tunnel has it, and who sends to it is not told so (TS 29.281 7.3.1). Elsewhere it stands for no tunnel.
        if message.teid == 0 {
            return Next::drop(DropReason::NoTunnel);
        }
        packet.meta.teid = message.teid;
        let Meta { port, source, teid, .. } = packet.meta;
        packet.meta.source = state.source_of_tunnel(port, source, teid);
        packet.meta.qfi = message.pdu_session.map_or(Meta::NO_QFI, |container| container.qfi);
        let marks = message.pdu_session.as_ref().map_or(FlowMarks::NONE, FlowMarks::of);
        packet.meta.marks = marks.relaying(message.relays);
        let outer = ecn::of(packet.buffer.data()).unwrap_or_default();
        match unwrap(packet, &message) {
            Some(()) => match behind_tunnel(state, &mut packet.meta) {
                None if ecn::matters(outer) => pass_congestion_on(packet, outer),
                None => Next::To(NodeId::UserInput),
                Some(next) => next,
            },
            // Nobody needs more than 255 octets of headers.
            None => Next::drop(DropReason::GtpuExtension),
        }
    }
}

#[inline]
fn read<B: Buffer>(packet: &Packet<B>) -> Result<Message, DropReason> {
    let datagram = packet.buffer.data().get(usize::from(packet.meta.header_length)..).unwrap_or_default();
    let header = udp::Header::parse(datagram).ok_or(DropReason::UdpMalformed)?;
    if header.destination() != gtpu::PORT {
        return Err(DropReason::NoListener);
    }
    if is_damaged(packet.buffer.data(), datagram) {
        return Err(DropReason::UdpChecksum);
    }
    let payload = datagram.get(udp::LENGTH..header.length()).unwrap_or_default();
    Ok(Message::parse(payload)?)
}

/// IPv6 has no checksum of its own, so that of UDP alone says whether we are meant. Tunnels may do without (TS 29.281
/// 4.4.2.0, RFC 6935); over IPv4, IP's own is enough.
#[inline]
fn is_damaged(packet: &[u8], datagram: &[u8]) -> bool {
    let Ok(ip) = ipv6::Packet::parse(packet) else { return false };
    let length = udp::Header::parse(datagram).map_or(0, udp::Header::length);
    let datagram = datagram.get(..length).unwrap_or_default();
    udp::verify(datagram, ip.pseudo_sum(protocol::UDP, length)) == udp::Checksum::Wrong
}

/// Whoever sends a user's packet with an extension header that we should know and do not is told which ones we know, at a
/// bounded rate (TS 29.281 5.2.1, 7.2.3). Other messages are not answered, or two that know different ones might never end.
#[cold]
fn notify<B: Buffer>(state: &mut State, packet: &mut Packet<B>) -> Next {
    let bytes = packet.buffer.data();
    let kind = bytes.get(usize::from(packet.meta.header_length) + udp::LENGTH + 1);
    let is_answered = kind == Some(&message_type::G_PDU) && state.may_indicate(packet.meta.port);
    let ends = ends(bytes).filter(|_| is_answered);
    let mut message = [0; NOTIFICATION_MAX];
    let answered = ends.and_then(|(peer, us)| {
        let length = gtpu::write_supported_extension_headers(&mut message, 0)?;
        let way = Way { source: us, destination: peer, port: gtpu::PORT };
        replace_by_gtpu(&mut packet.buffer, way, message.get(..length)?)
    });
    match answered {
        Some(()) => Next::To(NodeId::IpOutput),
        None => Next::drop(DropReason::GtpuUnknownExtension),
    }
}

/// Leaves the user's packet alone: nothing before it, nothing behind it. The headers stay in the buffer, in front of it,
/// for whoever has to know where it came from.
#[inline]
fn unwrap<B: Buffer>(packet: &mut Packet<B>, message: &Message) -> Option<()> {
    let outer = usize::from(packet.meta.header_length) + udp::LENGTH + message.header_length;
    packet.meta.outer = u8::try_from(outer).ok()?;
    packet.buffer.trim_front(outer)?;
    packet.buffer.truncate(message.total_length - message.header_length)
}

/// What routers on the tunnel's way have said of congestion goes on with the user's packet (RFC 6040 4.2), whatever comes next: another
/// tunnel's header does not repeat it. Packets that are none go on, too, to where that is found out.
#[cold]
fn pass_congestion_on<B: Buffer>(packet: &mut Packet<B>, outer: u8) -> Next {
    let bytes = packet.buffer.data_mut();
    let is_sound = ipv4::Packet::parse(bytes).is_ok() || ipv6::Packet::parse(bytes).is_ok();
    let Some(inner) = ecn::of(bytes).filter(|_| is_sound) else { return Next::To(NodeId::UserInput) };
    match ecn::decapsulated(outer, inner) {
        None => Next::drop(DropReason::NotEct),
        Some(now) => {
            ecn::set(bytes, now);
            Next::To(NodeId::UserInput)
        }
    }
}

impl From<Malformed> for DropReason {
    fn from(fault: Malformed) -> Self {
        match fault {
            Malformed::Truncated => Self::GtpuTruncated,
            Malformed::Version => Self::GtpuVersion,
            Malformed::Extension => Self::GtpuExtension,
            Malformed::UnknownExtension => Self::GtpuUnknownExtension,
        }
    }
}

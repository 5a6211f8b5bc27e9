//! Reads GTP-U; takes the tunnel's headers off users' packets (TS 29.281).

use crate::counters::DropReason;
use crate::frame::{Meta, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::gtpu::{self, Malformed, Message, message_type};
use packet::{Buffer, udp};

pub(crate) struct GtpuInput;

impl<B: Buffer> Node<B> for GtpuInput {
    const ID: NodeId = NodeId::GtpuInput;

    #[inline]
    fn process(_: &mut State, packet: &mut Packet<B>) -> Next {
        let message = match read(packet) {
            Ok(message) => message,
            Err(reason) => return Next::drop(reason),
        };
        if message.message_type != message_type::G_PDU {
            return Next::To(NodeId::GtpuPath);
        }
        packet.meta.teid = message.teid;
        packet.meta.qfi = message.pdu_session.map_or(Meta::NO_QFI, |container| container.qfi);
        match unwrap(packet, &message) {
            Some(()) => Next::To(NodeId::UserInput),
            None => Next::drop(DropReason::GtpuTruncated),
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
    let payload = datagram.get(udp::LENGTH..header.length()).unwrap_or_default();
    Ok(Message::parse(payload)?)
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

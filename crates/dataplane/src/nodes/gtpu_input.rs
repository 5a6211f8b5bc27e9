//! Reads GTP-U; takes the tunnel's headers off users' packets (TS 29.281).

use crate::counters::DropReason;
use crate::frame::{Packet, Tunnel};
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::gtpu::{self, Malformed, Message, message_type};
use packet::{Buffer, udp};
use rules::Interface;

pub(crate) struct GtpuInput;

impl<B: Buffer> Node<B> for GtpuInput {
    const ID: NodeId = NodeId::GtpuInput;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        if state.ports.get(packet.meta.port).interface != Interface::Access {
            return Next::drop(DropReason::NoListener);
        }
        let message = match read(packet) {
            Ok(message) => message,
            Err(reason) => return Next::drop(reason),
        };
        if message.message_type != message_type::G_PDU {
            return Next::To(NodeId::GtpuPath);
        }
        packet.meta.tunnel = Some(Tunnel {
            teid: message.teid,
            address: packet.meta.ip.destination,
            peer: packet.meta.ip.source,
            pdu_session: message.pdu_session,
        });
        match unwrap(packet, &message) {
            Some(()) => Next::To(NodeId::SessionUplink),
            None => Next::drop(DropReason::GtpuTruncated),
        }
    }
}

fn read<B: Buffer>(packet: &Packet<B>) -> Result<Message, DropReason> {
    let datagram = packet.buffer.data().get(packet.meta.ip.header_length..).unwrap_or_default();
    let header = udp::Header::parse(datagram).ok_or(DropReason::UdpMalformed)?;
    if header.destination() != gtpu::PORT {
        return Err(DropReason::NoListener);
    }
    let payload = datagram.get(udp::LENGTH..header.length()).unwrap_or_default();
    Ok(Message::parse(payload)?)
}

/// Leaves the user's packet alone: nothing before it, nothing behind it.
fn unwrap<B: Buffer>(packet: &mut Packet<B>, message: &Message) -> Option<()> {
    packet.buffer.trim_front(packet.meta.ip.header_length + udp::LENGTH + message.header_length)?;
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

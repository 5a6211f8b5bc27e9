//! What a frame says of itself, for whoever traces it. Far from the packet path: it looks closely at everything.

use dplink::{IpSummary, PacketSummary, TunnelSummary};
use packet::five_tuple::FiveTuple;
use packet::gtpu::{self, Message, message_type};
use packet::vlan::Tags;
use packet::{ethernet, protocol, udp};
use rules::Teid;

/// Reads a whole frame.
pub(crate) fn summary(frame: &[u8]) -> PacketSummary {
    summary_and_tuple(frame).0
}

/// The same, and what tells the user's flow.
pub(crate) fn summary_and_tuple(frame: &[u8]) -> (PacketSummary, Option<FiveTuple>) {
    let bytes = frame.len().min(usize::from(u16::MAX)) as u16;
    let Ok(tags) = Tags::parse(frame) else {
        return (PacketSummary { bytes, ..PacketSummary::default() }, None);
    };
    let seen = PacketSummary { bytes, ethertype: tags.ethertype, tunnel: None, ip: None };
    if !matches!(tags.ethertype, ethernet::IPV4 | ethernet::IPV6) {
        return (seen, None);
    }
    let packet = frame.get(tags.length..).unwrap_or_default();
    let (tunnel, user) = tunnel(packet).map_or((None, packet), |(tunnel, inner)| (Some(tunnel), inner));
    let tuple = FiveTuple::parse(user).ok().map(|found| found.tuple);
    (PacketSummary { tunnel, ip: tuple.as_ref().map(ip), ..seen }, tuple)
}

fn ip(tuple: &FiveTuple) -> IpSummary {
    let has_ports = protocol::has_ports(tuple.protocol) && !tuple.fragment;
    IpSummary {
        source: tuple.source_address(),
        destination: tuple.destination_address(),
        protocol: tuple.protocol,
        ports: has_ports.then_some((tuple.source_port, tuple.destination_port)),
        traffic_class: tuple.tos,
    }
}

/// A GTP-U message, and the user's packet inside, if any.
fn tunnel(packet: &[u8]) -> Option<(TunnelSummary, &[u8])> {
    let found = FiveTuple::parse(packet).ok()?;
    let outer = found.tuple;
    if outer.protocol != protocol::UDP || outer.destination_port != gtpu::PORT || outer.fragment {
        return None;
    }
    let payload = packet.get(found.upper..found.total)?.get(udp::LENGTH..)?;
    let message = Message::parse(payload).ok()?;
    let tunnel = TunnelSummary {
        source: outer.source_address(),
        destination: outer.destination_address(),
        teid: Teid(message.teid),
        qfi: message.pdu_session.map(|container| container.qfi),
        message_type: message.message_type,
    };
    let inner = match message.message_type {
        message_type::G_PDU => payload.get(message.header_length..).unwrap_or_default(),
        _ => &[],
    };
    Some((tunnel, inner))
}

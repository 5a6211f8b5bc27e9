//! A packet in one line.

use dplink::{IpSummary, PacketSummary, TunnelSummary};
use packet::{ethernet, gtpu, protocol};
use std::net::{IpAddr, SocketAddr};

/// Length, tunnel and addresses of a frame.
pub(super) fn line(packet: &PacketSummary) -> String {
    let bytes = format!("{} bytes", packet.bytes);
    let tunnel = packet.tunnel.as_ref().map(tunnel);
    let inside = match (&packet.ip, packet.ethertype) {
        (Some(packet), _) => Some(ip(packet)),
        (None, _) if tunnel.is_some() => None,
        (None, ethernet::ARP) => Some("ARP".to_owned()),
        (None, ethernet::IPV4 | ethernet::IPV6) => Some("IP that cannot be read".to_owned()),
        (None, 0) => Some("no Ethernet header".to_owned()),
        (None, other) => Some(format!("EtherType {other:#06x}")),
    };
    [Some(bytes), tunnel, inside].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn tunnel(tunnel: &TunnelSummary) -> String {
    let kind = match tunnel.message_type {
        gtpu::message_type::G_PDU => "GTP-U",
        gtpu::message_type::ECHO_REQUEST => "GTP-U echo request",
        gtpu::message_type::ECHO_RESPONSE => "GTP-U echo response",
        gtpu::message_type::ERROR_INDICATION => "GTP-U Error Indication",
        gtpu::message_type::END_MARKER => "GTP-U end marker",
        _ => "GTP-U message",
    };
    let qfi = tunnel.qfi.map(|qfi| format!(" QFI {qfi}")).unwrap_or_default();
    format!("{kind} {} > {} TEID {}{qfi}", tunnel.source, tunnel.destination, tunnel.teid)
}

fn ip(packet: &IpSummary) -> String {
    let (source, destination) = match packet.ports {
        Some((from, to)) => (with_port(packet.source, from), with_port(packet.destination, to)),
        None => (packet.source.to_string(), packet.destination.to_string()),
    };
    let class = match packet.traffic_class {
        0 => String::new(),
        class => format!(" tos {class:#04x}"),
    };
    format!("{} {source} > {destination}{class}", protocol_name(packet.protocol))
}

/// An address and a port, as they are written.
pub(super) fn with_port(address: IpAddr, port: u16) -> String {
    SocketAddr::new(address, port).to_string()
}

/// What an IP packet carries.
pub(super) fn protocol_name(number: u8) -> String {
    match number {
        protocol::ICMP => "ICMP".to_owned(),
        protocol::TCP => "TCP".to_owned(),
        protocol::UDP => "UDP".to_owned(),
        protocol::ESP => "ESP".to_owned(),
        protocol::ICMPV6 => "ICMPv6".to_owned(),
        protocol::SCTP => "SCTP".to_owned(),
        other => format!("protocol {other}"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use rules::Teid;

    /// A user's UDP packet in a tunnel.
    pub(crate) fn tunnelled() -> PacketSummary {
        let tunnel = TunnelSummary {
            source: [10, 30, 0, 1].into(),
            destination: [10, 30, 0, 2].into(),
            teid: Teid(0x100),
            qfi: Some(9),
            message_type: 255,
        };
        let ip = IpSummary {
            source: [10, 60, 0, 1].into(),
            destination: [8, 8, 8, 8].into(),
            protocol: 17,
            ports: Some((4_000, 53)),
            traffic_class: 0xb8,
        };
        PacketSummary { bytes: 86, ethertype: ethernet::IPV4, tunnel: Some(tunnel), ip: Some(ip) }
    }

    #[test]
    fn a_line_tells_tunnel_and_packet() {
        assert_eq!(
            line(&tunnelled()),
            "86 bytes, GTP-U 10.30.0.1 > 10.30.0.2 TEID 0x00000100 QFI 9, \
             UDP 10.60.0.1:4000 > 8.8.8.8:53 tos 0xb8"
        );
        let arp = PacketSummary { bytes: 60, ethertype: ethernet::ARP, ..PacketSummary::default() };
        assert_eq!(line(&arp), "60 bytes, ARP");
        assert_eq!(line(&PacketSummary { ethertype: 0x88cc, ..arp }), "60 bytes, EtherType 0x88cc");
        assert_eq!(line(&PacketSummary { ethertype: 0, ..arp }), "60 bytes, no Ethernet header");
    }
}

//! From the wire to the session: Ethernet, IP, UDP, GTP-U.

use crate::Reference;
use crate::bytes::{checksum, octets, u16_at};
use crate::congestion;
use crate::detection::{Arrival, Tunnel};
use crate::enforcement::is_of_a_link;
use crate::ethernet::{ARP, IPV4, IPV6, VLAN};
use crate::frame_detection::FrameArrival;
use crate::frames;
use crate::gtpu::{self, Message};
use crate::icmp::{ALL_NODES, ALL_ROUTERS, ToUs, solicited_node};
use crate::ip::{self, Fault, Header, ICMP, ICMPV6, UDP, UserPacket};
use crate::outcome::{Fate, Outcome};
use crate::portal;
use crate::reason::DropReason;
use crate::setup::{Mac, PortSetup};
use rules::{FTeid, ForwardingParameters, Instance, Interface, Pdi, Pdr, Qfi, Teid};
use std::net::{IpAddr, Ipv6Addr};

/// What tags of VLANs begin with: customers', providers', and those of old.
const TAGS: [u16; 3] = [VLAN, 0x88a8, 0x9100];
/// Bytes in front of what is for us, and of a user's packet in a tunnel: no sender needs more.
const HEADERS_MAX: usize = 255;

impl Reference {
    pub(crate) fn receive(&mut self, port: usize, frame: &[u8]) -> Result<Outcome, DropReason> {
        let setup = self.port(port)?;
        let ethertype = u16_at(frame, 12).ok_or(DropReason::EthernetTruncated)?;
        let destination: Mac = octets(frame, 0).ok_or(DropReason::EthernetTruncated)?;
        if ethertype == VLAN {
            return self.receive(port, &without_tag(frame)?);
        }
        let [first, ..] = destination;
        // The lowest bit of the first octet: more than one station. Such a frame holds a question or an announcement;
        // a unicast packet in it is not to be forwarded (RFC 1812 5.3.4).
        let asks = ethertype == ARP || ethertype == IPV6 && frame.get(14 + 24) == Some(&0xff);
        if destination != setup.mac && !(first & 1 == 1 && asks) {
            return Err(DropReason::NotOurMac);
        }
        let payload = frame.get(14..).unwrap_or_default();
        match ethertype {
            IPV4 => self.receive_v4(port, payload),
            IPV6 => self.receive_v6(port, payload),
            ARP => self.receive_arp(port, payload),
            _ => Err(DropReason::UnknownEthertype),
        }
    }

    fn receive_v4(&mut self, port: usize, payload: &[u8]) -> Result<Outcome, DropReason> {
        let header = ip::read_v4(payload).map_err(|fault| match fault {
            Fault::Truncated => DropReason::Ip4Truncated,
            Fault::Version => DropReason::Ip4Version,
            Fault::HeaderLength => DropReason::Ip4HeaderLength,
            Fault::Checksum => DropReason::Ip4Checksum,
        })?;
        // Short frames are padded; what is behind the packet is not part of it.
        let packet = payload.get(..header.total).ok_or(DropReason::Ip4Truncated)?;
        let setup = self.port(port)?;
        if !setup.has(header.destination) {
            return match setup.interface {
                Interface::Access => Err(DropReason::IpNotForUs),
                Interface::Core | Interface::SgiLan => self.receive_plain(port, packet),
            };
        }
        let upper = header.upper(packet).ok_or(DropReason::Ip4Truncated)?;
        let to_us = ToUs { port, packet, header, upper };
        match upper.protocol {
            UDP if upper.is_fragment() => {
                let identification = u16_at(packet, 4).ok_or(DropReason::BadFragment)?;
                self.receive_part(to_us, identification.into())
            }
            _ if upper.is_fragment() => Err(DropReason::Ip4Fragment),
            UDP => self.receive_udp(to_us),
            ICMP => self.receive_icmp(to_us),
            _ => Err(DropReason::NoListener),
        }
    }

    fn receive_v6(&mut self, port: usize, payload: &[u8]) -> Result<Outcome, DropReason> {
        let header = ip::read_v6(payload).map_err(|fault| match fault {
            Fault::Version => DropReason::Ip6Version,
            _ => DropReason::Ip6Truncated,
        })?;
        let packet = payload.get(..header.total).ok_or(DropReason::Ip6Truncated)?;
        let setup = self.port(port)?;
        let (ours, on_link) = (setup.has(header.destination), is_ours_on_link(setup, header.destination));
        if !ours && !on_link {
            // What is of the link does not leave it (RFC 4291 2.5.6).
            let stays = is_link_local(header.source)
                || is_link_local(header.destination)
                || header.destination.is_multicast();
            return match setup.interface {
                Interface::Core | Interface::SgiLan if !stays => self.receive_plain(port, packet),
                _ => Err(DropReason::IpNotForUs),
            };
        }
        let upper = header.upper(packet).ok_or(DropReason::Ip6Extension)?;
        if upper.at > HEADERS_MAX {
            return Err(DropReason::Ip6Extension);
        }
        let to_us = ToUs { port, packet, header, upper };
        match upper.protocol {
            UDP if ours && upper.is_fragment() => {
                self.receive_part(to_us, upper.identification.ok_or(DropReason::BadFragment)?)
            }
            _ if upper.is_fragment() => Err(DropReason::Ip6Fragment),
            UDP if ours => self.receive_udp(to_us),
            ICMPV6 => self.receive_icmpv6(to_us),
            _ => Err(DropReason::NoListener),
        }
    }

    /// A packet to a user, outside any tunnel: its session is that of its destination.
    fn receive_plain(&mut self, port: usize, packet: &[u8]) -> Result<Outcome, DropReason> {
        let mut arrival = self.arrival(port, None, packet)?;
        self.follow_first_fragment(&mut arrival);
        let destination = arrival.packet.header.destination;
        let session = self.session_of_user((arrival.instance, destination)).ok_or(DropReason::NoSession)?;
        if self.is_from_nobody(&arrival.packet) {
            return Err(DropReason::IpNotForUs);
        }
        self.serve(session, &arrival)
    }

    /// Whether a source is no sender's address: none that anybody forwards to (RFC 1812 5.3.7, RFC 4291 2.5.2, 2.5.3, 2.5.6, 2.7), or
    /// our own. From there users may have ICMP: what they hear of packets to other users that the network led back to us.
    fn is_from_nobody(&self, packet: &UserPacket) -> bool {
        let source = packet.header.source;
        let is_icmp = matches!((source, packet.protocol), (IpAddr::V4(_), ICMP) | (IpAddr::V6(_), ICMPV6));
        is_of_a_link(source) || self.setup.is_ours(source) && !is_icmp
    }

    pub(crate) fn receive_udp(&mut self, to_us: ToUs<'_>) -> Result<Outcome, DropReason> {
        let datagram = to_us.payload();
        let [s0, s1, d0, d1, l0, l1, _, _] = octets(datagram, 0).ok_or(DropReason::UdpMalformed)?;
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        if length < 8 || length > datagram.len() {
            return Err(DropReason::UdpMalformed);
        }
        if u16::from_be_bytes([d0, d1]) != gtpu::PORT {
            return Err(DropReason::NoListener);
        }
        let datagram = datagram.get(..length).unwrap_or_default();
        if is_damaged(&to_us.header, datagram) {
            return Err(DropReason::UdpChecksum);
        }
        let message = match Message::read(datagram.get(8..).unwrap_or_default()) {
            // It is about a user's packet: the second octet says so.
            Err(DropReason::GtpuUnknownExtension)
                if self.error_indications && datagram.get(9) == Some(&gtpu::G_PDU) =>
            {
                return self.send_signal(to_us, gtpu::PORT, &gtpu::supported_extension_headers());
            }
            message => message?,
        };
        match message.kind {
            gtpu::G_PDU => self.receive_g_pdu(to_us, &message),
            gtpu::ECHO_REQUEST => {
                let sequence = message.sequence.ok_or(DropReason::GtpuIncomplete)?;
                // To the port the request came from (TS 29.281 4.4.2.2).
                let port = u16::from_be_bytes([s0, s1]);
                self.send_signal(to_us, port, &gtpu::echo_response(sequence))
            }
            gtpu::ERROR_INDICATION => {
                let (teid, peer) =
                    gtpu::read_error_indication(message.payload).ok_or(DropReason::GtpuIncomplete)?;
                Ok(Outcome { error_indication: Some((Teid(teid), peer)), ..Outcome::of(Fate::Consumed) })
            }
            gtpu::END_MARKER => self.receive_end_marker(message.teid, to_us.header.destination),
            gtpu::ECHO_RESPONSE => Ok(Outcome::of(Fate::Consumed)),
            _ => Err(DropReason::GtpuUnknownType),
        }
    }

    /// A user's packet in a tunnel: its session is that of the tunnel.
    fn receive_g_pdu(&mut self, to_us: ToUs<'_>, message: &Message<'_>) -> Result<Outcome, DropReason> {
        if to_us.upper.at + 8 + message.header > HEADERS_MAX {
            return Err(DropReason::GtpuExtension);
        }
        // Of no tunnel; its sender is not told (TS 29.281 7.3.1).
        if message.teid == 0 {
            return Err(DropReason::NoTunnel);
        }
        let address = to_us.header.destination;
        let f_teid = self.setup.canonical(FTeid { teid: Teid(message.teid), address });
        let session = self.session_of_tunnel(f_teid);
        let carries_frames = session.is_some_and(|session| self.carries_frames(session));
        // What frames carry is not looked into.
        let inner = match carries_frames {
            true => message.payload.to_vec(),
            false => congestion::out_of_tunnel(to_us.header.traffic_class, message.payload)?,
        };
        let Some(session) = session else {
            if !self.error_indications {
                return Err(DropReason::NoTunnel);
            }
            let indication = gtpu::error_indication(message.teid, address);
            return self.send_signal(to_us, gtpu::PORT, &indication);
        };
        let container = message.container;
        let tunnel = Tunnel {
            f_teid,
            qfi: container.and_then(|container| Qfi::new(container.qfi)),
            reflective: container.is_some_and(|container| container.reflective),
            paging_policy: container.and_then(|container| container.paging_policy),
        };
        if carries_frames {
            let source = self.first_of_tunnel(session, f_teid).map(|pdr| pdr.pdi.source_interface);
            let (usual, instance) = self.port(to_us.port)?.network();
            let network = (source.unwrap_or(usual), instance);
            let arrival = FrameArrival {
                port: to_us.port,
                network,
                tunnel: Some(tunnel),
                relayed: message.relayed.clone(),
                bytes: inner,
            };
            return self.receive_frame_in_tunnel(session, &arrival);
        }
        let mut arrival = self.arrival(to_us.port, Some(tunnel), &inner)?;
        arrival.relayed.clone_from(&message.relayed);
        // A port may serve tunnels of both sides.
        arrival.source =
            self.first_of_tunnel(session, f_teid).map_or(arrival.source, |pdr| pdr.pdi.source_interface);
        self.follow_first_fragment(&mut arrival);
        self.serve(session, &arrival)
    }

    fn carries_frames(&self, session: usize) -> bool {
        self.sessions.get(session).is_some_and(|known| frames::carries_frames(&known.rules))
    }

    /// The PDR of highest precedence of a tunnel.
    fn first_of_tunnel(&self, session: usize, f_teid: FTeid) -> Option<&Pdr> {
        let pdrs = self.sessions.get(session)?.rules.pdrs.iter();
        pdrs.filter(|pdr| pdr.pdi.f_teid == Some(f_teid)).min_by_key(|pdr| (pdr.precedence, pdr.id))
    }

    /// Nothing more comes through a tunnel: the other end of the one it leads into is told, too (TS 29.281 7.3.2).
    fn receive_end_marker(&mut self, teid: u32, address: IpAddr) -> Result<Outcome, DropReason> {
        let f_teid = self.setup.canonical(FTeid { teid: Teid(teid), address });
        let session = self.session_of_tunnel(f_teid);
        let pdr = session.and_then(|session| Some((session, self.first_of_tunnel(session, f_teid)?)));
        let to = pdr.and_then(|(session, pdr)| {
            let session = self.sessions.get(session)?;
            // Where packets are answered, none goes on that could be the last.
            let forwards = portal::answers(session.far(pdr.far)?).is_none();
            session.tunnel_of(pdr).filter(|_| forwards).map(|(to, _)| to)
        });
        let to = to.filter(|to| to.outer_header_creation.is_some_and(|it| it.teid().is_some()));
        let Some(to) = to else { return Ok(Outcome::of(Fate::Consumed)) };
        let unmarked = ForwardingParameters { dscp: None, ..to };
        let message = |teid| gtpu::message(0x30, gtpu::END_MARKER, teid, &[]);
        let (next_hop, packet) = self.put_message_into_tunnel(&unmarked, message)?;
        self.transmit(next_hop, packet)
    }

    /// Answers with a GTP-U message of ours.
    fn send_signal(&mut self, to_us: ToUs<'_>, port: u16, message: &[u8]) -> Result<Outcome, DropReason> {
        let Header { source: peer, destination: us, .. } = to_us.header;
        let datagram = ip::datagram((us, gtpu::PORT), (peer, port), message);
        let new = ip::New { protocol: UDP, traffic_class: 0, hops: 64 };
        self.send_back(to_us, ip::packet(us, peer, new, &datagram))
    }

    fn arrival(&self, port: usize, tunnel: Option<Tunnel>, bytes: &[u8]) -> Result<Arrival, DropReason> {
        let packet = UserPacket::read(bytes).ok_or(DropReason::UserPacketMalformed)?;
        let (source, instance) = self.port(port)?.network();
        Ok(Arrival { port, source, instance, tunnel, relayed: vec![], packet })
    }

    fn session_of_tunnel(&self, f_teid: FTeid) -> Option<usize> {
        let leads =
            |session: &crate::Session| session.rules.pdrs.iter().any(|pdr| pdr.pdi.f_teid == Some(f_teid));
        self.sessions.iter().position(leads)
    }

    /// The session with a PDR of plain packets for this address in this network. Of IPv6 addresses, the first half decides, for a user
    /// has a link of its own; whether the rest is right is for the PDRs to say. An address that is no user's own is behind the
    /// user with the longest framed route around it (TS 29.244 5.16).
    fn session_of_user(&self, (instance, address): (Instance, IpAddr)) -> Option<usize> {
        let is_own = |pdi: &Pdi| match address {
            IpAddr::V4(address) => pdi.ue_ipv4 == Some(address),
            IpAddr::V6(address) => pdi.ue_ipv6.is_some_and(|prefix| link(prefix.addr()) == link(address)),
        };
        let own = self.sessions.iter().position(|session| plain(session, instance).any(is_own));
        let routes = |at: usize| {
            let session = self.sessions.get(at).into_iter();
            session.flat_map(|session| plain(session, instance)).flat_map(|pdi| &pdi.framed_routes)
        };
        let longest = |at: &usize| {
            let around = routes(*at).filter(|route| route.contains(&address));
            around.map(|route| route.prefix_len()).max()
        };
        let behind = || (0..self.sessions.len()).filter(|at| longest(at).is_some()).max_by_key(longest);
        own.or_else(behind)
    }
}

/// PDIs of packets outside tunnels that come from this network.
fn plain(session: &crate::Session, instance: Instance) -> impl Iterator<Item = &Pdi> {
    let pdis = session.rules.pdrs.iter().map(|pdr| &pdr.pdi);
    pdis.filter(move |pdi| pdi.f_teid.is_none() && pdi.instance == instance)
}

impl Reference {
    /// A frame without the tag of its port's VLAN; a port of one takes frames with that tag alone (IEEE 802.1Q 6.9).
    pub(crate) fn take_off(&self, port: usize, frame: &[u8]) -> Result<Vec<u8>, DropReason> {
        let Some(vlan) = self.port(port)?.vlan else { return Ok(frame.to_vec()) };
        let is_tagged = u16_at(frame, 12).is_some_and(|ethertype| TAGS.contains(&ethertype));
        let id = u16_at(frame, 14).filter(|_| is_tagged && frame.len() >= 18).map(|tag| tag & 0x0fff);
        match id == Some(vlan) {
            true => Ok(untagged(frame)),
            false => Err(DropReason::OtherVlan),
        }
    }

    /// What leaves by ports of VLANs has their tags.
    pub(crate) fn tagged(&self, mut outcome: Outcome) -> Outcome {
        for (port, frame) in &mut outcome.sent {
            if let Some(vlan) = self.setup.ports.get(*port).and_then(|port| port.vlan) {
                let [[t0, t1], [v0, v1]] = [VLAN, vlan].map(u16::to_be_bytes);
                frame.splice(12..12, [t0, t1, v0, v1]);
            }
        }
        outcome
    }
}

fn untagged(frame: &[u8]) -> Vec<u8> {
    [frame.get(..12).unwrap_or_default(), frame.get(16..).unwrap_or_default()].concat()
}

/// A tag may tell a priority and no more: frames of VLANs are for others (IEEE 802.1Q 6.9). One such tag is taken off.
fn without_tag(frame: &[u8]) -> Result<Vec<u8>, DropReason> {
    let [t0, t1, e0, e1] = octets(frame, 14).ok_or(DropReason::EthernetTruncated)?;
    let (vlan, ethertype) = (u16::from_be_bytes([t0, t1]) & 0x0fff, u16::from_be_bytes([e0, e1]));
    if vlan != 0 || ethertype == VLAN {
        return Err(DropReason::OtherVlan);
    }
    Ok(untagged(frame))
}

/// IPv6 has no checksum of its own, so that of UDP alone says whether we are meant (RFC 8200 8.1). Tunnels may do without
/// (TS 29.281 4.4.2.0, RFC 6935); over IPv4, IP's own is enough.
fn is_damaged(header: &Header, datagram: &[u8]) -> bool {
    match (header.source, header.destination) {
        (IpAddr::V6(source), IpAddr::V6(destination)) if u16_at(datagram, 6) != Some(0) => {
            let pseudo = ip::pseudo_header(source, destination, UDP, datagram.len());
            checksum(&[&pseudo, datagram]) != 0
        }
        _ => false,
    }
}

/// The first 64 bits.
fn link(address: Ipv6Addr) -> u128 {
    u128::from(address) >> 64
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// Our address on the link of a port, and the groups that every router hears there (RFC 4291 2.8), where it is on a
/// link of IPv6.
fn is_ours_on_link(setup: &PortSetup, destination: IpAddr) -> bool {
    let (Some(net), Some(link_local)) = (setup.ipv6, setup.link_local()) else { return false };
    let groups = [ALL_NODES, ALL_ROUTERS, solicited_node(net.addr()), solicited_node(link_local)];
    groups.into_iter().chain([link_local]).any(|address| destination == address)
}

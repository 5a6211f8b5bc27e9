//! Sends users to a portal (TS 29.244 8.2.20, HTTP's 302 of RFC 9110 15.4.3), and resets their connections; docs/content-rules.md
//! has the tables. Nothing is forwarded, so nothing is charged or counted.
//!
//! Where the specifications leave room:
//!
//! * Only whole segments of TCP are answered (RFC 9293); what else there is, and what needs no answer, is dropped.
//! * A reset has the number that its receiver expects, and acknowledges, but in the place of somebody else: then it has the numbers of
//!   the segment that it stands for, and acknowledges where that does. Its window is 0, that of others 65,535.
//! * Timestamps are turned round (RFC 7323 3.2), or stay where a reset stands for the segment; a handshake agrees on none.
//! * Whoever asks for a port below 1024, but not 80, is refused. Otherwise what the node says first has a number that nobody
//!   knows but the node ([`Reference::hear_first_number`]); here it is 0.
//! * A segment without ACK says nothing but SYN or RST, and one that says both without it nothing, unless connections are reset anyway at the server's word.
//! * The server's own reset goes on to the user where connections are reset, and is dropped where there is a portal: the user's
//!   connection is with that.
//! * Answers have class 0 and 64 hops. The user gets them by the PDR for a packet from the core side of its network that has the
//!   class, label and SPI of what it answers; what comes from the server, by its own rule first. Where that leads into no tunnel of the access side, by the first that does.

use crate::Reference;
use crate::billing::Bill;
use crate::bytes::{checksum, put, u8_at, u16_at, u32_at};
use crate::detection::{Application, Arrival, first_pdr, first_pdr_of};
use crate::enforcement::{Marks, Session, is_of_a_link};
use crate::forwarding::towards;
use crate::ip::{self, TCP, UserPacket};
use crate::outcome::{Fate, Outcome};
use crate::reason::DropReason;
use crate::redirection::Flow;
use crate::setup::network;
use rules::{ApplyAction, Direction, Far, FarId, ForwardingParameters, Instance, Interface, Pdr, RedirectTo};
use std::net::IpAddr;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const URG: u8 = 0x20;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;

const HTTP: u16 = 80;
const HOPS: u8 = 64;

/// A segment that was read, or is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    ports: (u16, u16),
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) flags: u8,
    pub(crate) stamps: Option<(u32, u32)>,
    /// The urgent pointer, where it counts.
    pub(crate) urgent: Option<u16>,
    pub(crate) payload: Vec<u8>,
}

/// What becomes of a segment: what the user hears, and what the server hears.
type Heard = (Option<Segment>, Option<Segment>);

/// Whether a FAR forwards nothing and answers: the URL, if it has one.
pub(crate) fn answers(far: &Far) -> Option<Option<&str>> {
    let url = far.redirect.as_ref().and_then(|redirect| match redirect.to() {
        RedirectTo::Url(url) => Some(&**url),
        RedirectTo::Addresses(_) => None,
    });
    match far.apply_action {
        ApplyAction::Reset => Some(None),
        ApplyAction::Forward => url.map(Some),
        _ => None,
    }
}

impl Segment {
    /// Of a packet that is whole and has a whole header of TCP.
    fn of(packet: &UserPacket) -> Option<Self> {
        let is_whole = packet.protocol == TCP && packet.part.is_none();
        if is_whole { Self::read(packet) } else { None }
    }

    /// Of a packet that shows a whole header of TCP, as far as it is there.
    pub(crate) fn read(packet: &UserPacket) -> Option<Self> {
        let upper = packet.header.upper(&packet.bytes)?;
        let bytes = packet.bytes.get(upper.at..)?;
        let header = 4 * usize::from(u8_at(bytes, 12)? >> 4);
        let options = bytes.get(20..header)?;
        Some(Self {
            ports: (u16_at(bytes, 0)?, u16_at(bytes, 2)?),
            sequence: u32_at(bytes, 4)?,
            acknowledgement: u32_at(bytes, 8)?,
            flags: u8_at(bytes, 13)?,
            stamps: stamps(options),
            urgent: u16_at(bytes, 18).filter(|_| bytes.get(13).is_some_and(|flags| flags & URG != 0)),
            payload: bytes.get(header..)?.to_vec(),
        })
    }

    const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// It begins a connection and ends it.
    const fn is_contradiction(&self) -> bool {
        self.flags & (SYN | RST | ACK) == SYN | RST
    }

    /// How many numbers it takes (RFC 9293 3.4).
    pub(crate) fn length(&self) -> u32 {
        self.payload.len() as u32 + u32::from(self.has(SYN)) + u32::from(self.has(FIN))
    }

    /// What its receiver says.
    fn answer(&self, flags: u8, payload: &[u8]) -> Self {
        Self {
            ports: (self.ports.1, self.ports.0),
            sequence: if self.has(ACK) { self.acknowledgement } else { 0 },
            acknowledgement: self.sequence.wrapping_add(self.length()),
            flags,
            stamps: self.stamps.map(|(value, echo)| (echo, value)),
            urgent: None,
            payload: payload.to_vec(),
        }
    }

    /// A reset in its place.
    fn reset(&self) -> Self {
        let flags = RST | self.flags & ACK;
        let acknowledgement = if self.has(ACK) { self.acknowledgement } else { 0 };
        Self { flags, acknowledgement, payload: Vec::new(), ..self.clone() }
    }

    /// A method of HTTP, which is of capital letters, and a blank (RFC 9112 3).
    fn is_request(&self) -> bool {
        let blank = self.payload.iter().position(|octet| *octet == b' ').unwrap_or(0);
        let method = self.payload.get(..blank).unwrap_or_default();
        (3..=16).contains(&blank) && method.iter().all(u8::is_ascii_uppercase)
    }

    fn packet(&self, source: IpAddr, destination: IpAddr) -> Vec<u8> {
        let mut bytes = [self.ports.0.to_be_bytes(), self.ports.1.to_be_bytes()].concat();
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.acknowledgement.to_be_bytes());
        bytes.extend([if self.stamps.is_some() { 0x80 } else { 0x50 }, self.flags]);
        bytes.extend(if self.has(RST) { [0, 0] } else { [0xff, 0xff] });
        bytes.extend([0; 4]);
        if let Some((value, echo)) = self.stamps {
            bytes.extend([1, 1, 8, 10]);
            bytes.extend([value.to_be_bytes(), echo.to_be_bytes()].concat());
        }
        bytes.extend(&self.payload);
        let pseudo = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let ends = [source.octets(), destination.octets()].concat();
                [&ends[..], &[0, TCP], &(bytes.len() as u16).to_be_bytes()].concat()
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                ip::pseudo_header(source, destination, TCP, bytes.len())
            }
            _ => Vec::new(),
        };
        let checksum = checksum(&[&pseudo, &bytes]);
        put(&mut bytes, 16, &checksum.to_be_bytes());
        ip::packet(source, destination, ip::New { protocol: TCP, traffic_class: 0, hops: HOPS }, &bytes)
    }
}

/// Value and echo, where a segment has whole ones (RFC 7323 3.2).
fn stamps(options: &[u8]) -> Option<(u32, u32)> {
    let mut at = 0;
    loop {
        at += match u8_at(options, at)? {
            0 => return None,
            1 => 1,
            kind => {
                let length = usize::from(u8_at(options, at + 1)?);
                let is_whole = length >= 2 && at + length <= options.len();
                match (is_whole, kind) {
                    (false, _) => return None,
                    (true, 8) if length == 10 => {
                        return Some((u32_at(options, at + 2)?, u32_at(options, at + 6)?));
                    }
                    (true, 8) => return None,
                    _ => length,
                }
            }
        };
    }
}

/// RFC 9110 15.4.3. What is asked for another time may not be the portal's any more.
fn found(url: &str) -> String {
    let fields = ["Cache-Control: no-store", "Content-Length: 0", "Connection: close"].join("\r\n");
    format!("HTTP/1.1 302 Found\r\nLocation: {url}\r\n{fields}\r\n\r\n")
}

/// Where connections are reset. Of one that only begins, the server knows nothing.
fn without_portal(segment: &Segment, direction: Direction) -> Heard {
    let refusal = segment.answer(RST | ACK, &[]);
    match direction {
        Direction::Uplink if segment.is_contradiction() => (None, None),
        Direction::Uplink if segment.has(RST) => (None, Some(segment.reset())),
        Direction::Uplink if segment.flags & (SYN | ACK) == SYN => (Some(refusal), None),
        Direction::Uplink if segment.has(ACK) => (Some(refusal), Some(segment.reset())),
        Direction::Uplink => (None, None),
        Direction::Downlink if segment.has(RST) => (Some(segment.reset()), None),
        Direction::Downlink => (Some(segment.reset()), Some(refusal)),
    }
}

/// What a user hears that is led to a portal; the connection may be with that, which the server then knows nothing of.
fn from_user(segment: &Segment, url: &str, is_portals: bool) -> Heard {
    let for_server = (!is_portals).then(|| segment.reset());
    let refusal = segment.answer(RST | ACK, &[]);
    if segment.is_contradiction() {
        return (None, None);
    }
    if segment.has(RST) {
        return (None, for_server);
    }
    if segment.flags & (SYN | ACK) == SYN {
        let is_refused = (1..1024).contains(&segment.ports.1) && segment.ports.1 != HTTP;
        let acknowledgement = segment.sequence.wrapping_add(1);
        let accepted =
            Segment { sequence: 0, acknowledgement, stamps: None, ..segment.answer(SYN | ACK, &[]) };
        return (Some(if is_refused { refusal } else { accepted }), None);
    }
    match (segment.has(ACK), segment.has(SYN), segment.payload.is_empty(), segment.has(FIN)) {
        (false, ..) | (_, false, true, false) => (None, None),
        (_, false, true, true) => (Some(segment.answer(ACK, &[])), for_server),
        (_, false, false, _) if segment.is_request() => {
            (Some(segment.answer(FIN | PSH | ACK, found(url).as_bytes())), for_server)
        }
        _ => (Some(refusal), for_server),
    }
}

impl Reference {
    /// The node's number of the handshake of this user, port and server, which nobody else can know: the user has just been told.
    pub fn hear_first_number(&mut self, (user, remote): ((IpAddr, u16), (IpAddr, u16)), number: u32) {
        let flow = Flow { user, remote, protocol: TCP };
        self.first_numbers.retain(|(known, _)| *known != flow);
        self.first_numbers.push((flow, number));
    }

    /// Answers a user's packet in the place of forwarding it.
    pub(crate) fn answer(
        &mut self,
        (place, pdr): (usize, &Pdr),
        far: FarId,
        arrival: &Arrival,
    ) -> Result<Outcome, DropReason> {
        let session = self.sessions.get(place).ok_or(DropReason::NoSession)?;
        let far = session.rules.fars.iter().find(|known| known.id == far).ok_or(DropReason::FarDrop)?.clone();
        let segment = Segment::of(&arrival.packet).ok_or(DropReason::Redirected)?;
        let direction = arrival.source.direction();
        let (user, server) = match (answers(&far).flatten(), direction) {
            (None, _) => without_portal(&segment, direction),
            (Some(url), Direction::Uplink) => {
                from_user(&segment, url, self.is_portals(arrival, (&segment, url)))
            }
            (Some(_), Direction::Downlink) if segment.has(RST) => (None, None),
            (Some(_), Direction::Downlink) => without_portal(&segment, direction),
        };
        let header = &arrival.packet.header;
        let (source, destination) = (header.source, header.destination);
        let (ue, remote) = match direction {
            Direction::Uplink => (source, destination),
            Direction::Downlink => (destination, source),
        };
        let acting = (pdr, &far);
        let for_user = user.map(|segment| segment.packet(remote, ue));
        let for_server = server.map(|segment| segment.packet(ue, remote));
        let to_user = for_user.map(|bytes| self.answer_user(place, (acting, arrival), bytes).into());
        let to_server = for_server.map(|bytes| self.answer_server(place, (acting, arrival), bytes).into());
        let add = |mut first: Outcome, other: Outcome| {
            first.add_copy(other);
            first
        };
        let nothing = Outcome::of(Fate::Dropped(DropReason::Redirected));
        Ok(to_user.into_iter().chain(to_server).reduce(add).unwrap_or(nothing))
    }

    /// Whether the user has its connection with the portal: it has heard what that said first, and at most all that it said.
    fn is_portals(&self, arrival: &Arrival, (segment, url): (&Segment, &str)) -> bool {
        let header = &arrival.packet.header;
        let (user, remote) = ((header.source, segment.ports.0), (header.destination, segment.ports.1));
        let flow = Flow { user, remote, protocol: TCP };
        let number = self.first_numbers.iter().find(|(known, _)| *known == flow).map(|(_, number)| *number);
        let said = found(url).len() as u32 + 1;
        let has_heard = |number: u32| segment.acknowledgement.wrapping_sub(number.wrapping_add(1)) <= said;
        segment.has(ACK) && number.is_some_and(has_heard)
    }

    fn answer_user(
        &mut self,
        place: usize,
        ((pdr, far), arrival): ((&Pdr, &Far), &Arrival),
        bytes: Vec<u8>,
    ) -> Result<Outcome, DropReason> {
        let session = self.sessions.get(place).ok_or(DropReason::Redirected)?;
        let is_down = arrival.source.direction() == Direction::Downlink;
        let (source, instance) = match is_down {
            true => (arrival.source, arrival.instance),
            false => network(Interface::Core, session.user_instance()),
        };
        let mut packet = UserPacket::read(&bytes).ok_or(DropReason::Redirected)?;
        let header = &arrival.packet.header;
        (packet.header.traffic_class, packet.header.flow_label) = (header.traffic_class, header.flow_label);
        packet.spi = arrival.packet.spi;
        let coming = Arrival { port: arrival.port, source, instance, tunnel: None, relayed: vec![], packet };
        let own = is_down.then_some((pdr, far));
        let usual = first_pdr(&session.rules, &coming);
        let mut all: Vec<&Pdr> = session.rules.pdrs.iter().collect();
        all.sort_by_key(|pdr| (pdr.precedence, pdr.id));
        let others = usual.into_iter().chain(all).filter_map(|pdr| Some((pdr, session.far(pdr.far)?)));
        let candidates = own.into_iter().chain(others);
        let is_way = |(to, _): &(ForwardingParameters, Marks)| {
            to.destination_interface == Interface::Access && to.outer_header_creation.is_some()
        };
        let way = candidates.filter_map(|(pdr, far)| session.way(pdr, far)).find(is_way);
        let (to, marks) = way.ok_or(DropReason::Redirected)?;
        let (next_hop, packet) = self.put_into_tunnel(&bytes, &to, marks)?;
        self.transmit(next_hop, packet)
    }

    /// Where its packets went before it was known what they are, or would go but for this. What came from the server goes back to where it came from, but not into a
    /// tunnel.
    fn answer_server(
        &mut self,
        place: usize,
        ((pdr, far), arrival): ((&Pdr, &Far), &Arrival),
        bytes: Vec<u8>,
    ) -> Result<Outcome, DropReason> {
        // Where the rules lead what it answers into a tunnel, the user has not chosen where the answer goes.
        let is_of_tunnel = far.forwarding.as_ref().is_some_and(|to| to.outer_header_creation.is_some());
        let bill = (!is_of_tunnel).then(|| Bill::of_answer(place, arrival));
        let session = self.sessions.get(place).ok_or(DropReason::Redirected)?;
        let packet = UserPacket::read(&bytes).ok_or(DropReason::Redirected)?;
        let destination = packet.header.destination;
        let may_leave = !self.setup.is_ours(destination) && !is_of_a_link(destination);
        if arrival.source.direction() == Direction::Downlink {
            let is_plain = arrival.tunnel.is_none() && may_leave;
            let side = network(arrival.source, arrival.instance);
            let next_hop = self.setup.next_hop(side, destination).ok_or(DropReason::NoRoute);
            return if is_plain {
                self.transmit_counted(next_hop?, bytes, bill)
            } else {
                Err(DropReason::Redirected)
            };
        }
        // What begins the connection goes before it is known of what application that is.
        let unknown = [Application::None, Application::Any]
            .into_iter()
            .filter_map(|application| first_pdr_of(&session.rules, arrival, application));
        let own = unknown.chain([pdr]).filter_map(|pdr| Some((pdr, session.far(pdr.far)?)));
        let ways = own.chain([(pdr, far)]).filter_map(|(pdr, far)| session.way(pdr, far));
        let way = ways.into_iter().find(|(to, _)| to.destination_interface != Interface::Access);
        let (to, marks) = way.ok_or(DropReason::Redirected)?;
        let (next_hop, packet) = match to.outer_header_creation {
            Some(_) => self.put_into_tunnel(&bytes, &to, marks)?,
            None if !may_leave => return Err(DropReason::Redirected),
            None => {
                let mut bytes = bytes;
                if let Some(dscp) = to.dscp {
                    ip::set_dscp(&mut bytes, &packet.header, dscp);
                }
                (self.setup.next_hop(towards(&to), destination).ok_or(DropReason::NoRoute)?, bytes)
            }
        };
        self.transmit_counted(next_hop, packet, bill)
    }
}

impl Session {
    /// The network of the user's addresses.
    pub(crate) fn user_instance(&self) -> Instance {
        let plain = self.rules.pdrs.iter().map(|pdr| &pdr.pdi).filter(|pdi| pdi.f_teid.is_none());
        plain.map(|pdi| pdi.instance).find(|instance| *instance != Instance::DEFAULT).unwrap_or_default()
    }
}

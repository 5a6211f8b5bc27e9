//! How flows begin and end: who says what, in which order.

use crate::origin::{Flow, Origin};
use crate::payload::dns::{self, Family, Question};
use crate::payload::http;
use crate::payload::quic::{self, ConnectionId, Part};
use crate::payload::tls::{self, Client, Hello};
use crate::profile::Transport;
use crate::random::mixed;
use crate::segment::flag;

/// One packet of an opening or an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) uplink: bool,
    pub(crate) say: Say,
}

/// What a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Say {
    Syn,
    SynAck,
    Ack,
    Fin,
    Request,
    Response,
    /// This segment of a ClientHello.
    Hello(u8),
    /// This segment of a server's first flight.
    ServerHello(u8),
    /// The end of a client's handshake.
    Finished,
    /// What lets the client begin its next connection sooner.
    Ticket,
    /// This packet of a ClientHello.
    Initial(u8),
    ServerInitial,
    /// This packet of what a server says after it, in Handshake packets.
    ServerHandshake(u8),
    ClientHandshake,
    Query(Family),
    Answer(Family),
    /// A packet like all others of the flow.
    Media,
}

const fn up(say: Say) -> Step {
    Step { uplink: true, say }
}

const fn down(say: Say) -> Step {
    Step { uplink: false, say }
}

const SYN: Step = up(Say::Syn);
const SYN_ACK: Step = down(Say::SynAck);
const ACK: Step = up(Say::Ack);
const HEARD: Step = down(Say::Ack);
const HTTP: &[Step] = &[SYN, SYN_ACK, ACK, up(Say::Request), HEARD, down(Say::Response)];
/// Of a session that both remember (RFC 5246 7.3): no certificates.
const TLS12: &[Step] =
    &[SYN, SYN_ACK, ACK, up(Say::Hello(0)), HEARD, down(Say::ServerHello(0)), up(Say::Finished)];
const TLS13: &[Step] = &[
    SYN,
    SYN_ACK,
    ACK,
    up(Say::Hello(0)),
    HEARD,
    down(Say::ServerHello(0)),
    down(Say::ServerHello(1)),
    ACK,
    down(Say::ServerHello(2)),
    up(Say::Finished),
    down(Say::Ticket),
];
const TLS13_LARGE: &[Step] = &[
    SYN,
    SYN_ACK,
    ACK,
    up(Say::Hello(0)),
    up(Say::Hello(1)),
    HEARD,
    down(Say::ServerHello(0)),
    down(Say::ServerHello(1)),
    ACK,
    down(Say::ServerHello(2)),
    up(Say::Finished),
    down(Say::Ticket),
];
const QUIC: &[Step] = &[
    up(Say::Initial(0)),
    down(Say::ServerInitial),
    down(Say::ServerHandshake(0)),
    down(Say::ServerHandshake(1)),
    up(Say::ClientHandshake),
];
const QUIC_LARGE: &[Step] = &[
    up(Say::Initial(0)),
    up(Say::Initial(1)),
    down(Say::ServerInitial),
    down(Say::ServerHandshake(0)),
    down(Say::ServerHandshake(1)),
    up(Say::ClientHandshake),
];
const UDP: &[Step] = &[up(Say::Media), down(Say::Media)];
const DNS: &[Step] = &[up(Say::Query(Family::V4)), down(Say::Answer(Family::V4))];
const DNS_BOTH: &[Step] = &[
    up(Say::Query(Family::V4)),
    up(Say::Query(Family::V6)),
    down(Say::Answer(Family::V4)),
    down(Say::Answer(Family::V6)),
];

/// How a TCP connection ends.
pub(crate) const CLOSING: &[Step] = &[up(Say::Fin), down(Say::Fin), ACK];

/// The first packets of a flow over `transport`: all of its handshake, and its first request where that is in the clear.
pub(crate) fn script(transport: Transport, flow: &Flow) -> &'static [Step] {
    match (transport, flow.client(transport)) {
        (Transport::Http, _) => HTTP,
        (Transport::Tls, Client::Tls12) => TLS12,
        (Transport::Tls, Client::Tls13) => TLS13,
        (Transport::Tls, Client::Tls13Large) => TLS13_LARGE,
        (Transport::Quic, Client::Tls13Large) => QUIC_LARGE,
        (Transport::Quic, _) => QUIC,
        (Transport::Udp, _) => UDP,
        (Transport::Dns, _) if flow.variant & 1 == 0 => DNS,
        (Transport::Dns, _) => DNS_BOTH,
    }
}

impl Say {
    /// Flags of TCP.
    pub(crate) const fn flags(self) -> u16 {
        match self {
            Self::Syn => flag::SYN,
            Self::SynAck => flag::SYN | flag::ACK,
            Self::Ack => flag::ACK,
            Self::Fin => flag::FIN | flag::ACK,
            _ => flag::PSH | flag::ACK,
        }
    }

    /// Options of TCP: in a SYN segments of [`SEGMENT`] bytes, selective acknowledgements and a window of 64 KiB by 2^7.
    pub(crate) const fn options(self) -> &'static [u8] {
        match self {
            Self::Syn | Self::SynAck => &[2, 4, (SEGMENT >> 8) as u8, SEGMENT as u8, 1, 1, 4, 2, 1, 3, 3, 7],
            _ => &[],
        }
    }
}

/// Most bytes of a TCP payload: with headers and tunnel it fits 1,500 bytes.
pub(crate) const SEGMENT: usize = 1_360;

/// Writes what first packets say.
#[derive(Default)]
pub(crate) struct Speaker {
    handshake: Vec<u8>,
    payload: Vec<u8>,
}

impl Speaker {
    /// The payload of one packet of `flow`; `None` for parts that a script does not have.
    pub(crate) fn say(&mut self, say: Say, flow: &Flow, origin: &Origin) -> Option<&[u8]> {
        self.payload.clear();
        match say {
            Say::Syn | Say::SynAck | Say::Ack | Say::Fin | Say::Media => {}
            Say::Request => http::request(&mut self.payload, (&flow.host()?, &flow.path()), flow.variant),
            Say::Response => http::response(&mut self.payload),
            Say::Hello(number) => self.hello(number, flow, origin)?,
            Say::ServerHello(number) => self.server_hello(number, flow, origin)?,
            Say::Finished => {
                tls::client_finished(
                    &mut self.payload,
                    flow.client(Transport::Tls),
                    origin.secret(flow.serial),
                );
            }
            Say::Ticket => tls::ticket(&mut self.payload, origin.secret(flow.serial)),
            Say::Initial(number) => self.initial(number, flow, origin)?,
            Say::ServerInitial => self.server_initial(flow, origin)?,
            Say::ServerHandshake(number) => {
                let seed = origin.secret(flow.serial) ^ 1 << 59 ^ u64::from(number);
                quic::server_handshake(&mut self.payload, server_connection_id(flow), seed);
            }
            Say::ClientHandshake => {
                let seed = origin.secret(flow.serial) ^ 1 << 58;
                quic::client_handshake(&mut self.payload, server_connection_id(flow), seed);
            }
            Say::Query(family) => dns::query(&mut self.payload, question(&flow.host()?, family, flow)),
            Say::Answer(family) => {
                dns::answer(&mut self.payload, question(&flow.host()?, family, flow), &flow.found());
            }
        }
        Some(&self.payload)
    }

    fn hello(&mut self, number: u8, flow: &Flow, origin: &Origin) -> Option<()> {
        let host = flow.host()?;
        self.handshake.clear();
        tls::client_record(&mut self.handshake, &client_hello(&host, flow, (Transport::Tls, origin)));
        let segment = self.handshake.chunks(SEGMENT).nth(usize::from(number))?;
        self.payload.extend(segment);
        Some(())
    }

    fn server_hello(&mut self, number: u8, flow: &Flow, origin: &Origin) -> Option<()> {
        self.handshake.clear();
        tls::server_records(&mut self.handshake, flow.client(Transport::Tls), origin.secret(flow.serial));
        let segment = self.handshake.chunks(SEGMENT).nth(usize::from(number))?;
        self.payload.extend(segment);
        Some(())
    }

    fn initial(&mut self, number: u8, flow: &Flow, origin: &Origin) -> Option<()> {
        let host = flow.host()?;
        self.handshake.clear();
        tls::client_hello(&mut self.handshake, &client_hello(&host, flow, (Transport::Quic, origin)));
        let bytes = self.handshake.chunks(quic::CRYPTO_MAX).nth(usize::from(number))?;
        let part = Part { offset: usize::from(number) * quic::CRYPTO_MAX, bytes };
        quic::client_initial(&mut self.payload, first_connection_id(flow, origin), number.into(), part)
    }

    fn server_initial(&mut self, flow: &Flow, origin: &Origin) -> Option<()> {
        self.handshake.clear();
        let client = (flow.client(Transport::Quic), false);
        tls::server_hello(&mut self.handshake, client, origin.secret(flow.serial));
        let part = Part { offset: 0, bytes: &self.handshake };
        let (id, own) = (first_connection_id(flow, origin), server_connection_id(flow));
        quic::server_initial(&mut self.payload, id, own, part)
    }
}

/// The connection ID that a QUIC client makes up for the server; both sides' keys come from it.
fn first_connection_id(flow: &Flow, origin: &Origin) -> ConnectionId {
    mixed(origin.secret(flow.serial)).to_be_bytes()
}

/// The connection ID that a QUIC server gives itself; the client's later packets carry it.
#[inline]
pub(crate) fn server_connection_id(flow: &Flow) -> ConnectionId {
    mixed(flow.serial.into()).to_be_bytes()
}

fn client_hello<'a>(host: &'a str, flow: &Flow, (transport, origin): (Transport, &Origin)) -> Hello<'a> {
    Hello {
        host,
        client: flow.client(transport),
        name_last: flow.variant >> 11 & 1 == 1,
        quic: (transport == Transport::Quic).then_some(quic::TRANSPORT_PARAMETERS),
        seed: origin.secret(flow.serial),
    }
}

fn question<'a>(host: &'a str, family: Family, flow: &Flow) -> Question<'a> {
    let id = flow.variant.rotate_left(7) ^ if family == Family::V6 { 1 } else { 0 };
    Question { id, host, family }
}

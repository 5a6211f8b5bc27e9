//! What the first packets of a flow say, as views over their bytes.
//!
//! A flow that is not classified yet has an [`Inspection`], which takes its packets one after the other and says at each
//! what it found, that it needs more, or that there is nothing to be found. It copies only what one packet does not tell,
//! is bounded in bytes ([`BYTES_MAX`]) and packets ([`SEGMENTS_MAX`], [`DATAGRAMS_MAX`]), and allocates nothing. [`Pool`] keeps a bounded
//! number of them.
//!
//! | found | how | bounds |
//! |---|---|---|
//! | HTTP/1.x | a method, behind empty lines if any, then lines up to that of the host | |
//! | HTTP/2 in the clear | its preface; requests are compressed (HPACK) and are not read | |
//! | TLS | a ClientHello, over several segments and records; at the bounds, part of it | |
//! | QUIC v1, v2 | Initial packets decrypted, CRYPTO frames in any order, over several packets; behind other versions and what servers have instead, on port 443 behind whatever else | 19 pieces that wait, 4 packets a datagram, 2,048 bytes a packet |
//! | DNS over UDP, TCP | a query to port 53 | 64 records; over TCP 2,048 bytes of a query |
//! | STUN | magic cookie and length | |
//! | RTP | two packets of one source in order, or two of RTCP | |
//!
//! Bytes of a TCP stream come by sequence number in any order; gaps are waited for as long as the bounds allow, and what stands
//! beyond them is passed over. Where two segments disagree about a byte, the one counts that a server on Linux takes. What no
//! server takes is no word of the client's: Initial packets in datagrams that are too small, acknowledgements of what the server
//! has not said, segments with timestamps from before those it has taken, urgent octets. What comes with a SYN counts once the
//! server has acknowledged it. Not looked for: protocols in which the server speaks first, drafts of QUIC before version 1.

mod assembly;
pub mod dns;
mod http;
mod media;
mod name;
mod pool;
mod quic;
mod reader;
mod stream;
mod tls;

pub use http::{REQUEST_MIN, Request, later_request, may_be_later_request};
pub use media::{Rtcp, Rtp, Stun};
pub use name::{NAME_MAX, host};
pub use pool::{Pool, Ticket};
pub use quic::Version;
pub use tls::{ClientHello, Protocols};

use arrayvec::ArrayVec;
use assembly::Assembly;
use stream::Progress;

/// Most bytes at the beginning of a flow that are looked at. Browsers' ClientHellos are of 500 to 2,300 bytes.
pub const BYTES_MAX: usize = 4_096;
/// Most segments of a stream with something in them that are looked at: whoever cuts a request smaller has a reason to.
pub const SEGMENTS_MAX: u8 = 64;
/// Most datagrams, which may take decryption.
pub const DATAGRAMS_MAX: u8 = 16;

/// The port of HTTP/3 (RFC 9114 3.1).
const QUIC: u16 = 443;

/// What a flow is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen<'a> {
    /// A request in the clear.
    Http(Request<'a>),
    /// HTTP/2 in the clear. Whom it asks for what is not known.
    Http2,
    /// TLS over TCP.
    Tls(ClientHello<'a>),
    /// QUIC.
    Quic {
        /// Which.
        version: Version,
        /// `None` where the bounds were reached before it was there.
        hello: Option<ClientHello<'a>>,
    },
    /// A lookup.
    Dns(dns::Message<'a>),
    /// Session traversal, which goes before calls and media.
    Stun(Stun),
    /// Media.
    Rtp(Rtp),
    /// What controls media, beside them or between ports of its own.
    Rtcp(Rtcp),
}

impl<'a> Seen<'a> {
    /// The host that the flow is with, as the client said it. A lookup of a host is not with that host.
    pub fn host(&self) -> Option<&'a [u8]> {
        match self {
            Self::Http(request) => request.host,
            Self::Tls(hello) => hello.server_name,
            Self::Quic { hello, .. } => hello.as_ref().and_then(|hello| hello.server_name),
            _ => None,
        }
    }

    fn hello(&self) -> Option<&ClientHello<'a>> {
        match self {
            Self::Tls(hello) => Some(hello),
            Self::Quic { hello, .. } => hello.as_ref(),
            _ => None,
        }
    }

    /// Whether the ClientHello has Encrypted ClientHello. Browsers put a random one into all others (GREASE), so that nobody can tell.
    pub fn is_encrypted(&self) -> bool {
        self.hello().is_some_and(|hello| hello.is_encrypted)
    }

    /// The application protocols that the ClientHello offers, the outer one where there are two.
    pub fn protocols(&self) -> Protocols<'a> {
        self.hello().map_or_else(Protocols::default, |hello| hello.protocols)
    }

    /// Path and query of a request in the clear.
    pub fn path(&self) -> Option<&'a [u8]> {
        match self {
            Self::Http(request) => request.path(),
            _ => None,
        }
    }
}

/// Why nothing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// It begins like no protocol that is looked for.
    Unrecognised,
    /// It begins like one, and then breaks its rules.
    Malformed,
    /// The bounds were reached before anything was found.
    Bounds,
}

/// What comes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// The next packets may say it.
    More,
    /// It is known; the inspection is over.
    Seen(Seen<'a>),
    /// It will not be known; the inspection is over.
    Unknown(Unknown),
}

/// As [`Verdict`], to the inspection itself.
type Look<'a> = Verdict<'a>;

/// A datagram of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The server's port.
    pub server_port: u16,
    /// What UDP carries.
    pub payload: &'a [u8],
}

/// What is kept of a flow while it is looked at.
#[derive(Debug)]
#[repr(C)]
pub struct Inspection {
    packets: u8,
    /// The stream goes to a resolver's port.
    is_to_resolver: bool,
    /// What is assembled came with the SYN, and nobody knows yet whether the server takes it.
    is_early: bool,
    /// Sequence number of the first byte of a stream.
    base: Option<u32>,
    /// The same of the last SYN that said another one.
    again: Option<u32>,
    /// Of the server's stream: the number behind its SYN, and the first that was not seen.
    server: Option<(u32, u32)>,
    /// The last of the client's timestamps that the server has taken, as it says itself.
    echoed: Option<u32>,
    connection: Option<quic::Connection>,
    progress: Progress,
    /// Places of the stream of which an octet is taken out, in order.
    urgent: ArrayVec<u16, { stream::URGENT_MAX }>,
    /// The last two, as the directions have a source each.
    rtp: [Option<Rtp>; 2],
    /// The same.
    rtcp: [Option<Rtcp>; 2],
    /// Last, so that what is read of each packet lies together.
    assembly: Assembly,
}

const _: () = assert!(size_of::<Inspection>() <= 4_352, "a thousand are four megabytes and a bit");

impl Default for Inspection {
    fn default() -> Self {
        Self::new()
    }
}

impl Inspection {
    /// Bytes of it that are read for each packet, its first.
    pub const HEAD: usize = std::mem::offset_of!(Self, assembly) + Assembly::HEAD;

    /// Of a flow of which nothing came yet.
    pub const fn new() -> Self {
        let assembly = Assembly::new();
        Self {
            assembly,
            packets: 0,
            is_to_resolver: false,
            is_early: false,
            base: None,
            again: None,
            server: None,
            echoed: None,
            connection: None,
            progress: Progress::new(),
            urgent: ArrayVec::new_const(),
            rtp: [None; 2],
            rtcp: [None; 2],
        }
    }

    /// The same as a new one, without touching most of its memory.
    pub fn reset(&mut self) {
        self.assembly.clear();
        (self.packets, self.is_to_resolver, self.is_early) = (0, false, false);
        (self.base, self.again, self.server) = (None, None, None);
        (self.echoed, self.connection, self.progress) = (None, None, Progress::new());
        (self.rtp, self.rtcp) = ([None; 2], [None; 2]);
        self.urgent.clear();
    }

    /// Looks at a datagram of either direction; a server's QUIC packets are passed over, and so is what a client says in QUIC before
    /// what can be read, in versions nobody has. Where servers speak QUIC by its port, what is like nothing that is looked for is passed
    /// over, too, as it is by them. On other ports that is the end: most of what is there is no QUIC, and would wait for nothing.
    pub fn datagram<'a>(&'a mut self, datagram: Datagram<'a>) -> Verdict<'a> {
        let last = self.count(DATAGRAMS_MAX);
        let goes_on = || datagram.server_port == QUIC || quic::may_go_on(datagram.payload);
        match self.look_at_datagram(datagram, last) {
            Verdict::Unknown(Unknown::Unrecognised) if goes_on() => or_bounds(Verdict::More, last),
            verdict => verdict,
        }
    }

    fn look_at_datagram<'a>(&'a mut self, datagram: Datagram<'a>, last: bool) -> Verdict<'a> {
        let payload = datagram.payload;
        // What is no DNS there may be anything: tunnels like that port.
        if datagram.server_port == dns::PORT
            && let Some(message) = dns::Message::parse(payload)
        {
            return Verdict::Seen(Seen::Dns(message));
        }
        if self.connection.is_some() || quic::can_begin(payload) {
            let look = quic::look((&mut self.connection, &mut self.assembly), payload, last);
            return or_bounds(look, last);
        }
        if let Some(stun) = Stun::parse(payload) {
            return Verdict::Seen(Seen::Stun(stun));
        }
        or_bounds(self.media(payload), last)
    }

    fn media(&mut self, payload: &[u8]) -> Look<'static> {
        let Some(rtp) = Rtp::parse(payload) else { return self.control(payload) };
        let [last, before] = self.rtp;
        if [last, before].into_iter().flatten().any(|before| rtp.follows(&before)) {
            return Verdict::Seen(Seen::Rtp(rtp));
        }
        self.rtp = [Some(rtp), last];
        Verdict::More
    }

    fn control(&mut self, payload: &[u8]) -> Look<'static> {
        let Some(rtcp) = Rtcp::parse(payload) else { return Verdict::Unknown(Unknown::Unrecognised) };
        let [last, before] = self.rtcp;
        if [last, before].contains(&Some(rtcp)) {
            return Verdict::Seen(Seen::Rtcp(rtcp));
        }
        self.rtcp = [Some(rtcp), last];
        Verdict::More
    }

    /// Looks at the frames of a QUIC packet that somebody else decrypted.
    #[doc(hidden)]
    pub fn frames<'a>(&'a mut self, plain: &[u8]) -> Verdict<'a> {
        let last = self.count(DATAGRAMS_MAX);
        or_bounds(quic::look_at_frames(&mut self.assembly, plain, last), last)
    }

    /// Counts a packet; whether it is the last of so many that are looked at.
    fn count(&mut self, most: u8) -> bool {
        self.packets = self.packets.saturating_add(1);
        self.packets >= most
    }

    /// Packets that had something in them.
    pub const fn packets(&self) -> u8 {
        self.packets
    }

    fn none_yet(&self, last: bool) -> Verdict<'static> {
        or_bounds(Verdict::More, last)
    }
}

fn or_bounds(verdict: Verdict<'_>, last: bool) -> Verdict<'_> {
    match verdict {
        Verdict::More if last => Verdict::Unknown(Unknown::Bounds),
        verdict => verdict,
    }
}

#[cfg(test)]
mod tests;

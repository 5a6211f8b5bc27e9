//! What the first packets of a flow say, as views over their bytes.
//!
//! A flow that is not classified yet has an [`Inspection`], which takes its packets one after the other and says at each
//! what it found, that it needs more, or that there is nothing to be found. It copies only what one packet does not tell,
//! is bounded in bytes ([`BYTES_MAX`]) and packets ([`SEGMENTS_MAX`], [`DATAGRAMS_MAX`]), and allocates nothing. [`Pool`] keeps a bounded
//! number of them.
//!
//! | found | how | bounds |
//! |---|---|---|
//! | HTTP/1.x | a method, behind empty lines if any, then lines up to that of the host | 64 lines |
//! | HTTP/2 in the clear | its preface; requests are compressed (HPACK) and are not read | |
//! | TLS | a ClientHello, over several segments and records; at the bounds, part of it | 64 records |
//! | QUIC v1, v2 | Initial packets decrypted, CRYPTO frames in any order, over several packets; on port 443 behind whatever else | 24 pieces, 4 packets a datagram, 2,048 bytes a packet |
//! | DNS over UDP, TCP | a query to port 53 | 64 records; over TCP 2,048 bytes of a query |
//! | STUN | magic cookie and length | |
//! | RTP | two packets of one source in order, or two of RTCP | |
//!
//! Bytes of a TCP stream come by sequence number in any order; gaps are waited for as long as the bounds allow. Where two
//! segments disagree about a byte, the first counts. What no server takes is no word of the client's: Initial packets in
//! datagrams that are too small, acknowledgements of what the server has not said, segments with timestamps from before
//! those it has taken. What comes with a SYN counts once the server has acknowledged it. Not looked for: protocols in
//! which the server speaks first, drafts of QUIC before version 1.

mod assembly;
pub mod dns;
mod http;
mod media;
mod name;
mod pool;
mod quic;
mod reader;
mod tls;

pub use http::{REQUEST_MIN, Request, later_request, may_be_later_request};
pub use media::{Rtcp, Rtp, Stun};
pub use name::{NAME_MAX, host};
pub use pool::{Pool, Ticket};
pub use quic::Version;
pub use tls::{ClientHello, Protocols};

use assembly::Assembly;

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
            rtp: [None; 2],
            rtcp: [None; 2],
        }
    }

    /// The same as a new one, without touching most of its memory.
    pub fn reset(&mut self) {
        self.assembly.clear();
        (self.packets, self.is_to_resolver, self.is_early) = (0, false, false);
        (self.base, self.again, self.server) = (None, None, None);
        (self.echoed, self.connection) = (None, None);
        (self.rtp, self.rtcp) = ([None; 2], [None; 2]);
    }

    /// Says where the client's stream begins: the sequence number behind its SYN. Without it, the first segment with
    /// something in it is taken for the beginning.
    pub fn begin(&mut self, sequence: u32) {
        self.base.get_or_insert(sequence);
    }

    /// Says that the client's stream goes to port 53, where it may begin with a lookup.
    pub const fn is_to_resolver(&mut self) {
        self.is_to_resolver = true;
    }

    /// Keeps what the client's SYN carries (RFC 7413), which is the beginning of the stream only if the server says so: others
    /// pass it over, and whatever the client says behind the handshake is the beginning (RFC 9293 3.10.7.4).
    pub fn early(&mut self, sequence: u32, payload: &[u8]) {
        self.begin(sequence);
        if self.base != Some(sequence) {
            self.again = Some(sequence);
            return;
        }
        if payload.is_empty() || !self.assembly.is_empty() {
            return;
        }
        self.count(SEGMENTS_MAX);
        self.is_early = self.assembly.insert(0, payload).is_ok();
    }

    /// Whether a server that acknowledges this with its SYN has taken one of the client's, with some, all or nothing of what that
    /// carried.
    pub fn is_answer(&self, acknowledgement: u32) -> bool {
        let taken = self.base.map(|base| acknowledgement.wrapping_sub(base) as usize);
        taken.is_some_and(|taken| taken <= self.assembly.length()) || self.is_of_another(acknowledgement)
    }

    fn is_of_another(&self, acknowledgement: u32) -> bool {
        self.again == Some(acknowledgement)
    }

    /// Forgets what was said before where a server acknowledges a later SYN with its own: it has no part in that one's connection.
    pub fn renew(&mut self, acknowledgement: u32) {
        if self.is_of_another(acknowledgement) {
            self.reset();
            self.begin(acknowledgement);
        }
    }

    /// Looks at what the client's SYN carried, up to this number, which the server's SYN acknowledges.
    pub fn accepted(&mut self, acknowledgement: u32) -> Verdict<'_> {
        let Some(taken) = self.base.map(|base| acknowledgement.wrapping_sub(base) as usize) else {
            return Verdict::More;
        };
        if !self.is_early || taken > self.assembly.length() {
            return Verdict::More;
        }
        self.is_early = false;
        self.assembly.shorten(taken);
        if taken == 0 {
            Verdict::More
        } else {
            look_at_assembled(&mut self.assembly, (self.is_to_resolver, false))
        }
    }

    /// Takes down how far the server's stream has come: the number behind a segment, and whether that is its SYN.
    pub fn answered(&mut self, end: u32, is_syn: bool) {
        match &mut self.server {
            Some((_, next)) if end.wrapping_sub(*next).cast_signed() > 0 => *next = end,
            None if is_syn => self.server = Some((end, end)),
            _ => {}
        }
    }

    /// Whether a server takes a segment that acknowledges this: nothing from before its SYN, and nothing it has not said
    /// (RFC 9293 3.10.7.4). Of servers that nobody has heard, anything may be true.
    pub fn is_acceptable(&self, acknowledgement: u32) -> bool {
        let within =
            |(first, next): (u32, u32)| acknowledgement.wrapping_sub(first) <= next.wrapping_sub(first);
        self.server.is_none_or(within)
    }

    /// Takes down which of the client's timestamps the server echoes (TSecr of a segment that acknowledges something). That is
    /// the one it compares later ones with, or an earlier one (RFC 7323 4.3).
    pub fn echoes(&mut self, timestamp: u32) {
        if self.echoed.is_none_or(|before| is_older(before, timestamp)) {
            self.echoed = Some(timestamp);
        }
    }

    /// Whether a server takes a segment with this timestamp: not one from before what it has taken (PAWS, RFC 7323 5.3). Where
    /// the server speaks of no timestamps, anything may be true.
    pub fn is_fresh(&self, timestamp: u32) -> bool {
        self.echoed.is_none_or(|echoed| !is_older(timestamp, echoed))
    }

    /// Looks at a segment of the client's stream; one with nothing in it changes nothing.
    pub fn segment<'a>(&'a mut self, sequence: u32, payload: &'a [u8]) -> Verdict<'a> {
        if payload.is_empty() {
            return Verdict::More;
        }
        if std::mem::take(&mut self.is_early) {
            // Nobody has seen the server take it.
            self.assembly.clear();
        }
        let last = self.count(SEGMENTS_MAX);
        let base = *self.base.get_or_insert(sequence);
        let Some((offset, fresh)) = place(sequence.wrapping_sub(base), payload) else {
            return self.none_yet(last);
        };
        if offset == 0 && self.assembly.is_empty() {
            // However it is cut into segments.
            let beginning = fresh.get(..BYTES_MAX).unwrap_or(fresh);
            match look_at_stream(beginning, (self.is_to_resolver, false)) {
                Verdict::More => {}
                verdict => return verdict,
            }
        }
        let no_room = self.assembly.insert(offset, fresh).is_err();
        let last = last || no_room || self.assembly.length() == BYTES_MAX;
        if self.assembly.length() == 0 {
            return self.none_yet(last);
        }
        or_bounds(look_at_assembled(&mut self.assembly, (self.is_to_resolver, last)), last)
    }

    /// Looks at a datagram of either direction; a server's QUIC packets are passed over. Where servers speak QUIC, what is like
    /// nothing that is looked for is passed over, too, as it is by them: a client may say it before what it wants, and it may
    /// try versions nobody has.
    pub fn datagram<'a>(&'a mut self, datagram: Datagram<'a>) -> Verdict<'a> {
        let last = self.count(DATAGRAMS_MAX);
        let is_of_quic = datagram.server_port == QUIC;
        match self.look_at_datagram(datagram, last) {
            Verdict::Unknown(Unknown::Unrecognised) if is_of_quic => or_bounds(Verdict::More, last),
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

    /// What is known of a stream of which nothing more is looked at.
    pub fn conclude(&mut self) -> Verdict<'_> {
        let is_stream = self.connection.is_none() && !self.is_early && self.assembly.length() > 0;
        match is_stream {
            true => or_bounds(look_at_assembled(&mut self.assembly, (self.is_to_resolver, true)), true),
            false => Verdict::Unknown(Unknown::Bounds),
        }
    }

    fn none_yet(&self, last: bool) -> Verdict<'static> {
        or_bounds(Verdict::More, last)
    }
}

/// Of timestamps less than half the space apart (RFC 7323 5.2).
const fn is_older(one: u32, other: u32) -> bool {
    other.wrapping_sub(one).cast_signed() > 0
}

fn or_bounds(verdict: Verdict<'_>, last: bool) -> Verdict<'_> {
    match verdict {
        Verdict::More if last => Verdict::Unknown(Unknown::Bounds),
        verdict => verdict,
    }
}

/// Where in the stream a payload stands, without what is before the beginning: keep-alives, old copies. `None` where that
/// is all of it.
fn place(ahead: u32, payload: &[u8]) -> Option<(usize, &[u8])> {
    match ahead.cast_signed() {
        0.. => Some((ahead as usize, payload)),
        behind => {
            let fresh = payload.get(behind.unsigned_abs() as usize..)?;
            (!fresh.is_empty()).then_some((0, fresh))
        }
    }
}

/// What a stream begins with that is perhaps to a resolver, and of which this is perhaps the last that is looked at.
fn look_at_stream(bytes: &[u8], (is_to_resolver, last): (bool, bool)) -> Look<'_> {
    if tls::can_begin(bytes) {
        return tls::look(bytes);
    }
    if http::can_begin(bytes) {
        return http::look(bytes, last);
    }
    match dns::begins(bytes) {
        dns::Begins::Lookup(message) if is_to_resolver => Look::Seen(Seen::Dns(message)),
        dns::Begins::Perhaps if is_to_resolver => Look::More,
        _ => Look::Unknown(Unknown::Unrecognised),
    }
}

fn look_at_assembled(assembly: &mut Assembly, (is_to_resolver, last): (bool, bool)) -> Look<'_> {
    if tls::can_begin(assembly.prefix()) {
        return tls::look_assembled(assembly, last);
    }
    look_at_stream(assembly.prefix(), (is_to_resolver, last))
}

#[cfg(test)]
mod tests;

//! Streams of TCP: where a client's begins, what its server takes of it, and what it begins with.

use super::assembly::{Assembly, NoRoom};
use super::{BYTES_MAX, Inspection, Look, SEGMENTS_MAX, Seen, Unknown, Verdict, or_bounds};
use super::{dns, http, tls};
use arrayvec::ArrayVec;

/// Most octets of a stream that are taken out of it.
pub(super) const URGENT_MAX: usize = 2;

/// How far what is assembled of a stream was looked through, as what it may be by its first byte.
#[derive(Clone, Copy, Debug)]
pub(super) enum Progress {
    None,
    Tls(tls::Progress),
    Other(http::Progress),
}

impl Progress {
    pub(super) const fn new() -> Self {
        Self::None
    }
}

impl Inspection {
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
            look_at_assembled((&mut self.assembly, &mut self.progress), (self.is_to_resolver, false))
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

    /// Takes down that an octet is none of the stream, by what a segment says (RFC 9293 3.8.5): its sequence number, and its urgent
    /// pointer. Servers read such an octet by itself; it is the one before that which the pointer points at (RFC 6093 3.1). To be said before
    /// what the segment has in it, whose beginning may be the stream's.
    pub fn urgent(&mut self, sequence: u32, pointer: u16) {
        self.forget_early();
        let base = *self.base.get_or_insert(sequence);
        let place = sequence.wrapping_add(u32::from(pointer.saturating_sub(1))).wrapping_sub(base) as usize;
        let at = self.urgent.iter().take_while(|other| usize::from(**other) < place).count();
        let is_known = self.urgent.get(at).is_some_and(|other| usize::from(*other) == place);
        // What has been read stays.
        if is_known || place >= BYTES_MAX || place < self.assembly.length() + at {
            return;
        }
        if self.urgent.try_insert(at, place as u16).is_ok() {
            self.assembly.take_out(place - at);
        }
    }

    /// Nobody has seen the server take what came with the SYN.
    fn forget_early(&mut self) {
        if std::mem::take(&mut self.is_early) {
            self.assembly.clear();
        }
    }

    /// Looks at a segment of the client's stream; one with nothing in it changes nothing.
    pub fn segment<'a>(&'a mut self, sequence: u32, payload: &'a [u8]) -> Verdict<'a> {
        if payload.is_empty() {
            return Verdict::More;
        }
        self.forget_early();
        let last = self.count(SEGMENTS_MAX);
        let base = *self.base.get_or_insert(sequence);
        let Some((offset, fresh)) = place(sequence.wrapping_sub(base), payload) else {
            return self.none_yet(last);
        };
        if offset == 0 && self.assembly.is_empty() && self.urgent.is_empty() {
            // However it is cut into segments.
            let beginning = fresh.get(..BYTES_MAX).unwrap_or(fresh);
            match look_at_stream(beginning, (self.is_to_resolver, false)) {
                Verdict::More => {}
                verdict => return verdict,
            }
        }
        self.put(offset, fresh);
        let last = last || self.assembly.length() == BYTES_MAX;
        if self.assembly.length() == 0 {
            return self.none_yet(last);
        }
        let look = look_at_assembled((&mut self.assembly, &mut self.progress), (self.is_to_resolver, last));
        or_bounds(look, last)
    }

    /// Puts bytes of the stream where they belong. What there is no room for is missing, no more: a server may take it before what
    /// stands in front of it has come.
    fn put(&mut self, offset: usize, bytes: &[u8]) {
        let _ = match self.urgent.is_empty() {
            true => self.assembly.insert(offset, bytes),
            false => self.put_without_urgent(offset, bytes),
        };
    }

    /// The same without octets that are taken out. It stays one piece, as what comes in order counts whole.
    #[cold]
    fn put_without_urgent(&mut self, offset: usize, bytes: &[u8]) -> Result<(), NoRoom> {
        let is_urgent = |place: usize| self.urgent.iter().any(|urgent| usize::from(*urgent) == place);
        let before = self.urgent.iter().filter(|urgent| usize::from(**urgent) < offset).count();
        let places = (offset..).zip(bytes).take(BYTES_MAX);
        let left: ArrayVec<u8, BYTES_MAX> =
            places.filter(|(place, _)| !is_urgent(*place)).map(|(_, byte)| *byte).collect();
        self.assembly.insert(offset - before, &left)
    }

    /// What is known of a stream of which nothing more is looked at.
    pub fn conclude(&mut self) -> Verdict<'_> {
        let is_stream = self.connection.is_none() && !self.is_early && self.assembly.length() > 0;
        match is_stream {
            true => or_bounds(
                look_at_assembled((&mut self.assembly, &mut self.progress), (self.is_to_resolver, true)),
                true,
            ),
            false => Verdict::Unknown(Unknown::Bounds),
        }
    }
}

/// Of timestamps less than half the space apart (RFC 7323 5.2).
const fn is_older(one: u32, other: u32) -> bool {
    other.wrapping_sub(one).cast_signed() > 0
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

fn look_at_assembled<'a>(
    (assembly, progress): (&'a mut Assembly, &mut Progress),
    (is_to_resolver, last): (bool, bool),
) -> Look<'a> {
    if matches!(progress, Progress::None) {
        *progress = match tls::can_begin(assembly.prefix()) {
            true => Progress::Tls(tls::Progress::new()),
            false => Progress::Other(http::Progress::new()),
        };
    }
    let is_news = match progress {
        Progress::Tls(tls) if tls.can_begin(assembly.prefix()) => {
            return tls::look_assembled(assembly, tls, last);
        }
        Progress::Other(http) => last || http.has_news(assembly.prefix()),
        Progress::Tls(_) | Progress::None => true,
    };
    if is_news { look_at_stream(assembly.prefix(), (is_to_resolver, last)) } else { Look::More }
}

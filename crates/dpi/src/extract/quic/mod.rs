//! QUIC versions 1 and 2: a client's Initial packets (RFC 9000 17.2.2, RFC 9369), whose keys everybody can derive, and
//! the ClientHello in their CRYPTO frames.

mod frames;
mod header;
mod keys;

use super::assembly::Assembly;
use super::{Look, Seen, Unknown, tls};
use header::{ConnectionId, Packet};
use keys::Keys;

pub use header::Version;
pub(super) use header::may_go_on;

/// Most bytes of an Initial packet that are looked at. They are of 1,200 bytes or a little more (RFC 9000 14.1).
const PACKET_MAX: usize = 2_048;
/// Fewest bytes of a datagram with a client's Initial packet: servers discard others (RFC 9000 14.1).
const DATAGRAM_MIN: usize = 1_200;
/// Fewest bytes of the connection ID that a client gives the server first (RFC 9000 7.2).
const FIRST_ID_MIN: usize = 8;
/// Most packets of one datagram that are looked at (RFC 9000 12.2).
const COALESCED_MAX: usize = 4;

/// A connection whose Initial packets can be read.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    version: Version,
    /// What the keys come from.
    id: ConnectionId,
    keys: Keys,
    /// The client began anew, as a Retry told it to, which happens once (RFC 9000 17.2.5.2).
    is_second: bool,
}

impl Connection {
    fn new(packet: &Packet<'_>, is_second: bool) -> Self {
        let keys = Keys::client(packet.version, &packet.id);
        Self { version: packet.version, id: packet.id.clone(), keys, is_second }
    }
}

/// Whether a datagram that begins so can be a client's first.
pub(super) fn can_begin(bytes: &[u8]) -> bool {
    Packet::parse(bytes).is_some_and(|(packet, _)| packet.is_initial)
}

/// Looks at a client's datagram. The connection is made with the first that is QUIC.
pub(super) fn look<'a>(
    (connection, assembly): (&mut Option<Connection>, &'a mut Assembly),
    datagram: &[u8],
    last: bool,
) -> Look<'a> {
    let mut rest = datagram;
    for _ in 0..COALESCED_MAX {
        let Some((packet, behind)) = Packet::parse(rest) else { break };
        rest = behind;
        let is_taken = packet.is_initial && datagram.len() >= DATAGRAM_MIN;
        if is_taken && read(connection, assembly, &packet).is_none() && connection.is_none() {
            return Look::Unknown(Unknown::Unrecognised);
        }
    }
    match connection {
        Some(connection) => look_assembled((connection.version, assembly), last),
        None => Look::Unknown(Unknown::Unrecognised),
    }
}

/// Decrypts an Initial packet and takes what it carries; `None` where it cannot be read.
fn read(connection: &mut Option<Connection>, assembly: &mut Assembly, packet: &Packet<'_>) -> Option<()> {
    let mut memory = [0; PACKET_MAX];
    if let Some(known) = connection
        && let Some(plain) = known.keys.open(packet, &mut memory)
    {
        return frames::take(plain, assembly);
    }
    // After a Retry, clients begin anew with the connection ID it gave them (RFC 9001 5.2).
    if connection.as_ref().is_some_and(|known| known.is_second || known.id == packet.id) {
        return None;
    }
    if connection.is_none() && packet.id.len() < FIRST_ID_MIN {
        return None;
    }
    let fresh = Connection::new(packet, connection.is_some());
    let plain = fresh.keys.open(packet, &mut memory)?;
    assembly.clear();
    *connection = Some(fresh);
    frames::take(plain, assembly)
}

fn look_assembled((version, assembly): (Version, &Assembly), last: bool) -> Look<'_> {
    let bytes = assembly.prefix();
    let whole = tls::message_length(bytes).is_some_and(|length| length <= bytes.len());
    if !whole && !last {
        return Look::More;
    }
    let hello = if bytes.first() == Some(&1) { tls::message(bytes) } else { None };
    match hello {
        Some(hello) => Look::Seen(Seen::Quic { version, hello: Some(hello) }),
        None if whole => Look::Unknown(Unknown::Malformed),
        None => Look::Seen(Seen::Quic { version, hello: None }),
    }
}

/// Takes the frames of a decrypted Initial packet, as the look at a datagram does: for those who test that.
#[doc(hidden)]
pub(super) fn look_at_frames<'a>(assembly: &'a mut Assembly, plain: &[u8], last: bool) -> Look<'a> {
    let _ = frames::take(plain, assembly);
    look_assembled((Version::V1, assembly), last)
}

#[cfg(test)]
pub(crate) mod tests;

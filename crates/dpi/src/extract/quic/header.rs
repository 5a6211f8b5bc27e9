//! Long headers (RFC 9000 17.2).

use super::DATAGRAM_MIN;
use crate::extract::reader::Reader;
use arrayvec::ArrayVec;

/// Most bytes of a connection ID (RFC 9000 17.2).
const ID_MAX: usize = 20;

/// A connection ID.
pub(super) type ConnectionId = ArrayVec<u8, ID_MAX>;

/// A version whose Initial packets can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// RFC 9000.
    V1,
    /// RFC 9369.
    V2,
}

impl Version {
    const fn of(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::V1),
            0x6b33_43cf => Some(Self::V2),
            _ => None,
        }
    }

    /// The type of Initial packets (RFC 9000 17.2, RFC 9369 3.2).
    const fn initial(self) -> u8 {
        match self {
            Self::V1 => 0,
            Self::V2 => 1,
        }
    }

    /// The type of Retry packets, which have neither length nor packet number.
    const fn retry(self) -> u8 {
        match self {
            Self::V1 => 3,
            Self::V2 => 0,
        }
    }
}

/// Whether a datagram begins as those of QUIC do whose client says later what it wants (RFC 8999 5.1): of a version that nobody has, as
/// long as a server needs it to answer that (RFC 9000 6.1); with the versions that the server has instead (RFC 8999 6); or of ours, but
/// not to be read, as what overtook the client's first.
pub(in super::super) fn may_go_on(datagram: &[u8]) -> bool {
    let mut reader = Reader::new(datagram);
    let Some((first, version)) = reader.u8().zip(reader.u32()) else { return false };
    let ids = [reader.counted8(), reader.counted8()];
    let are_ids = ids.iter().all(|id| id.is_some_and(|id| id.len() <= ID_MAX));
    let has_fixed_bit = first >> 6 == 0b11;
    match version {
        // Of this one the other bits are arbitrary.
        0 => first >> 7 == 1 && are_ids && !reader.rest().is_empty() && reader.rest().len().is_multiple_of(4),
        known if Version::of(known).is_some() => has_fixed_bit && are_ids,
        _ => has_fixed_bit && are_ids && datagram.len() >= DATAGRAM_MIN,
    }
}

/// A packet with a long header, still protected.
#[derive(Clone, Debug)]
pub(super) struct Packet<'a> {
    pub(super) version: Version,
    pub(super) is_initial: bool,
    /// The destination's connection ID.
    pub(super) id: ConnectionId,
    /// All of it.
    pub(super) bytes: &'a [u8],
    /// Where in it the packet number stands.
    pub(super) number_at: usize,
}

impl<'a> Packet<'a> {
    /// The packet at the front of a datagram, and what follows it.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let mut reader = Reader::new(bytes);
        let first = reader.u8()?;
        // Long header, fixed bit.
        if first >> 6 != 0b11 {
            return None;
        }
        let version = Version::of(reader.u32()?)?;
        let id = ConnectionId::try_from(reader.counted8()?).ok()?;
        reader.counted8().filter(|source| source.len() <= ID_MAX)?;
        let kind = first >> 4 & 3;
        if kind == version.retry() {
            return None;
        }
        let is_initial = kind == version.initial();
        if is_initial {
            let token = reader.length()?;
            reader.take(token)?;
        }
        let length = reader.length()?;
        let number_at = bytes.len() - reader.rest().len();
        reader.take(length)?;
        let (bytes, rest) = bytes.split_at_checked(number_at + length)?;
        Some((Self { version, is_initial, id, bytes, number_at }, rest))
    }
}

//! The chain of extension headers (RFC 8200 4, RFC 4302).

use super::header::{LENGTH, Malformed};
use crate::protocol::{AH, DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, ROUTING};

/// No sender needs more; a longer chain is an attack on the receiver's time.
pub const EXTENSIONS_MAX: usize = 8;

const IS_EXTENSION: u64 = 1 << HOP_BY_HOP | 1 << ROUTING | 1 << FRAGMENT | 1 << AH | 1 << DESTINATION_OPTIONS;
const MORE_FRAGMENTS: u16 = 1;
const FRAGMENT_OFFSET: u16 = 0xfff8;

/// What a fragment header says (RFC 8200 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Same for all fragments of a packet.
    pub identification: u32,
    /// Where this part goes, in bytes.
    pub offset: u16,
    /// Whether more follow.
    pub more: bool,
}

/// What a packet carries behind its extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upper {
    /// The upper-layer protocol, or [`crate::protocol::NO_NEXT_HEADER`]. Of a fragment other than the first: the
    /// protocol of the first header in the original packet's fragmentable part.
    pub protocol: u8,
    /// Bytes from the front of the packet to the upper layer.
    pub offset: usize,
    /// The fragment header; also that of an atomic fragment (offset 0, none follow; RFC 6946), which is whole.
    pub fragment: Option<Fragment>,
    /// Security Parameters Index of an authentication header on the way; 0 without.
    pub spi: u32,
    /// Whether there are hop-by-hop options.
    pub hop_by_hop: bool,
    /// Whether its addresses are bound to what it carries: there is a routing header, so that the destination may be another one
    /// than it says, or an authentication header, which signs them.
    pub is_bound: bool,
}

impl Upper {
    /// Of a packet without extension headers.
    #[inline]
    pub(crate) const fn next(protocol: u8) -> Self {
        Self { protocol, offset: LENGTH, fragment: None, spi: 0, hop_by_hop: false, is_bound: false }
    }

    /// A fragment other than the first: there is no upper-layer header in it.
    #[inline]
    pub const fn is_later_fragment(&self) -> bool {
        matches!(self.fragment, Some(Fragment { offset: 1.., .. }))
    }

    /// A part of a packet, and not all of it.
    #[inline]
    pub const fn is_fragment(&self) -> bool {
        matches!(self.fragment, Some(Fragment { offset: 1.., .. } | Fragment { more: true, .. }))
    }
}

#[inline]
pub(super) const fn is_extension(kind: u8) -> bool {
    kind < 64 && IS_EXTENSION >> kind & 1 == 1
}

/// Follows the chain that begins with a header of type `next` at the front of `payload`.
#[inline]
pub(crate) fn behind(next: u8, payload: &[u8]) -> Result<Upper, Malformed> {
    if is_extension(next) { follow(next, payload) } else { Ok(Upper::next(next)) }
}

#[cold]
#[inline(never)]
fn follow(first: u8, payload: &[u8]) -> Result<Upper, Malformed> {
    let mut upper = Upper { hop_by_hop: first == HOP_BY_HOP, ..Upper::next(first) };
    let mut rest = payload;
    for place in 0..EXTENSIONS_MAX {
        // Hop-by-hop options come first or not at all (RFC 8200 4.3).
        if upper.protocol == HOP_BY_HOP && place > 0 {
            return Err(Malformed::Extension);
        }
        rest = step(&mut upper, rest).ok_or(Malformed::Extension)?;
        if !is_extension(upper.protocol) || upper.is_later_fragment() {
            upper.offset = LENGTH + payload.len() - rest.len();
            return Ok(upper);
        }
    }
    Err(Malformed::TooManyExtensions)
}

/// Reads the extension header at the front of `bytes`; returns what follows it.
fn step<'a>(upper: &mut Upper, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let [next, length, a, b, c, d, e, f] = *bytes.first_chunk()?;
    let length = match upper.protocol {
        FRAGMENT => {
            upper.fragment = Some(fragment([a, b], [c, d, e, f]));
            8
        }
        AH => {
            upper.spi = u32::from_be_bytes([c, d, e, f]);
            upper.is_bound = true;
            (usize::from(length) + 2) * 4
        }
        ROUTING => {
            upper.is_bound = true;
            (usize::from(length) + 1) * 8
        }
        _ => (usize::from(length) + 1) * 8,
    };
    upper.protocol = next;
    bytes.get(length..)
}

const fn fragment(place: [u8; 2], identification: [u8; 4]) -> Fragment {
    let place = u16::from_be_bytes(place);
    Fragment {
        identification: u32::from_be_bytes(identification),
        offset: place & FRAGMENT_OFFSET,
        more: place & MORE_FRAGMENTS != 0,
    }
}

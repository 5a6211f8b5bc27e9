//! Which ends of a connection over TCP have said that they say no more: it is over when both have, or one has torn it down (RFC 9293
//! 3.6, 3.10.7.4).

use packet::tcp::flag;
use rules::Direction;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub(crate) struct Ends(u8);

impl Ends {
    pub(crate) const NONE: Self = Self(0);
    const USER: u8 = 1;
    const SERVER: u8 = 2;
    const BOTH: u8 = Self::USER | Self::SERVER;

    /// A segment with these control bits came from the user (up), or from the server. A reset of the user's ends both. One of the
    /// server's does where it is known to be its own, and says no more than an end of its side else: anybody may send it in its name.
    pub(crate) const fn hear(&mut self, (from, flags): (Direction, u8), is_its_own: bool) {
        self.0 |= match from {
            Direction::Uplink if flags & flag::RST != 0 => Self::BOTH,
            Direction::Uplink if flags & flag::FIN != 0 => Self::USER,
            Direction::Downlink if flags & flag::RST != 0 && is_its_own => Self::BOTH,
            Direction::Downlink if flags & (flag::FIN | flag::RST) != 0 => Self::SERVER,
            _ => 0,
        };
    }

    /// Whether one has said so.
    pub(crate) const fn is_any(self) -> bool {
        self.0 != 0
    }

    /// Whether the connection is over.
    pub(crate) const fn are_both(self) -> bool {
        self.0 == Self::BOTH
    }
}

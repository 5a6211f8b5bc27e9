//! The segment of TCP that an ICMP error is about, other numbers for it, and how long it may be.

use super::{ERROR_HEADER, Quoted};
use crate::{checksum, icmp, icmpv6, ipv6, protocol, tcp};

/// Places of numbers in a header of TCP, of what says how long that is and of its control bits.
const SEQUENCE: usize = 4;
const ACKNOWLEDGEMENT: usize = 8;
const DATA_OFFSET: usize = 12;
const FLAGS: usize = 13;
const CHECKSUM: usize = 16;
/// Where an error says what would pass, in two octets or four (RFC 1191 4, RFC 4443 3.2).
const MTU_V4: usize = 6;
const MTU_V6: usize = 4;
/// The shortest MTU there may be (RFC 791 3.2, RFC 8200 5).
const LEAST_MTU_V4: u32 = 68;
const LEAST_MTU_V6: u32 = 1_280;

/// A number in a quoted header of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// That of the first octet.
    Sequence,
    /// The next one that is expected.
    Acknowledgement,
}

impl Quoted {
    /// A number of the quoted segment, as far as that is quoted; `None` where what is quoted is no TCP. A segment whose
    /// control bits are not quoted is taken to acknowledge, as all but the first do.
    pub fn number(&self, packet: &[u8], which: Number) -> Option<u32> {
        let octets = self.segment(packet)?.get(which.place()..)?.first_chunk()?;
        let acknowledges = self.segment(packet)?.get(FLAGS).is_none_or(|flags| flags & tcp::flag::ACK != 0);
        (which == Number::Sequence || acknowledges).then(|| u32::from_be_bytes(*octets))
    }

    /// Gives the quoted segment another number. Checksums that were right are afterwards. `None`, and no change, where it
    /// is not quoted.
    pub fn renumber(&self, packet: &mut [u8], which: Number, number: u32) -> Option<()> {
        let old = self.number(packet, which)?.to_be_bytes();
        let new = number.to_be_bytes();
        let place = self.upper + which.place();
        packet.get_mut(place..)?.first_chunk_mut().map(|octets| *octets = new)?;
        self.follow(packet, &old, &new);
        let field = packet.get_mut(self.upper + CHECKSUM..).and_then(<[u8]>::first_chunk_mut);
        if let Some(field) = field {
            let before = *field;
            *field = checksum::update_bytes(u16::from_be_bytes(before), &old, &new).to_be_bytes();
            let after = *field;
            self.follow(packet, &before, &after);
        }
        Some(())
    }

    /// Octets that the quoted segment carried, as it says itself: a quote may have fewer.
    pub fn carried(&self, packet: &[u8]) -> Option<usize> {
        let quote = packet.get(self.quote..)?;
        let length = |at: usize| Some(usize::from(u16::from_be_bytes(*quote.get(at..)?.first_chunk()?)));
        let total = if self.flow.version == 4 { length(2)? } else { length(4)? + ipv6::LENGTH };
        let words = self.segment(packet)?.get(DATA_OFFSET).map(|octet| usize::from(octet >> 4));
        let header = words.map_or(tcp::LENGTH, |words| words * 4);
        total.checked_sub(self.upper - self.quote + header)
    }

    /// How long a packet would pass, where the error says so: that one was too long.
    pub fn mtu(&self, packet: &[u8]) -> Option<u32> {
        let error = packet.get(self.error..)?.first_chunk::<ERROR_HEADER>()?;
        let [kind, code, _, _, high, low, third, last] = *error;
        let mtu = match self.flow.version {
            4 if icmp::is_too_long(kind, code) => u32::from(u16::from_be_bytes([third, last])),
            6 if icmpv6::is_too_big(kind) => u32::from_be_bytes([high, low, third, last]),
            _ => return None,
        };
        // Routers older than RFC 1191 say nothing.
        (mtu != 0).then_some(mtu)
    }

    /// Says of an error with an MTU that it is another. `None`, and no change, of one without, or where it has no room.
    pub fn tell_mtu(&self, packet: &mut [u8], mtu: u32) -> Option<()> {
        let old = self.mtu(packet)?.to_be_bytes();
        let new = mtu.to_be_bytes();
        match self.flow.version {
            4 => {
                let low = u16::try_from(mtu).ok()?.to_be_bytes();
                *packet.get_mut(self.error + MTU_V4..)?.first_chunk_mut()? = low;
            }
            _ => *packet.get_mut(self.error + MTU_V6..)?.first_chunk_mut()? = new,
        }
        // Of IPv4 the upper halves are zero, before and after.
        self.follow(packet, &old, &new);
        Some(())
    }

    /// What is quoted of it.
    fn segment<'a>(&self, packet: &'a [u8]) -> Option<&'a [u8]> {
        packet.get(self.upper..).filter(|_| self.flow.protocol == protocol::TCP)
    }

    /// The longest packet that every way of its IP version takes.
    pub const fn least_mtu(&self) -> u32 {
        if self.flow.version == 4 { LEAST_MTU_V4 } else { LEAST_MTU_V6 }
    }
}

impl Number {
    const fn place(self) -> usize {
        match self {
            Self::Sequence => SEQUENCE,
            Self::Acknowledgement => ACKNOWLEDGEMENT,
        }
    }
}

//! Splits IPv4 packets (RFC 791 3.2), and IPv6 packets of our own (RFC 8200 4.5). Putting them together again is done elsewhere.

mod v6;

pub use v6::Split6;

use crate::ipv4::{self, LENGTH, Options};
use crate::{Buffer, checksum};

const MORE_FRAGMENTS: u16 = 0x2000;
/// Offsets count units of eight bytes.
const UNIT: usize = 8;
const OFFSET_MAX: usize = 0x1fff;
const HEADER_MAX: usize = 60;

/// Why a packet is not split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSplit {
    /// It is damaged or cut short.
    Malformed(ipv4::Malformed),
    /// An option is cut short, so that it cannot be copied.
    Options,
    /// Its sender forbade it (the DF flag).
    DontFragment,
    /// It fits the MTU as it is.
    Fits,
    /// Not even eight bytes of payload fit beside the header.
    MtuTooSmall,
    /// A fragment already, so far into its packet that its parts' offsets would not fit 13 bits.
    OffsetTooLarge,
}

/// A packet and how it is to be split; the packet itself stays as it is.
#[derive(Clone, Copy, Debug)]
pub struct Split<'a> {
    first: &'a [u8],
    later: [u8; HEADER_MAX],
    later_length: usize,
    payload: &'a [u8],
    /// Payload of each fragment but the last.
    chunk: usize,
    /// Of the packet, which may be a fragment itself.
    offset: usize,
    more: bool,
}

impl<'a> Split<'a> {
    /// Plans the fragments of the IPv4 packet at the front of `packet`, each of at most `mtu` bytes.
    ///
    /// # Errors
    /// Why it is not to be split.
    pub fn plan(packet: &'a [u8], mtu: usize) -> Result<Self, NotSplit> {
        let ip = ipv4::Packet::parse(packet).map_err(NotSplit::Malformed)?;
        if ip.total_length() <= mtu {
            return Err(NotSplit::Fits);
        }
        if ip.dont_fragment() {
            return Err(NotSplit::DontFragment);
        }
        let room = mtu.checked_sub(ip.header_length()).filter(|room| *room >= UNIT);
        let chunk = room.ok_or(NotSplit::MtuTooSmall)? & !(UNIT - 1);
        let (first, _) = packet.split_at_checked(ip.header_length()).ok_or(NotSplit::MtuTooSmall)?;
        let (offset, payload) = (ip.fragment_offset(), ip.payload());
        if (offset + payload.len()) / UNIT > OFFSET_MAX {
            return Err(NotSplit::OffsetTooLarge);
        }
        let (later, later_length) = later_header(first, ip.options()).ok_or(NotSplit::Options)?;
        Ok(Self { first, later, later_length, payload, chunk, offset, more: ip.more_fragments() })
    }

    /// How many fragments there will be, at least two.
    pub const fn count(&self) -> usize {
        self.payload.len().div_ceil(self.chunk)
    }

    /// Writes the fragment of this number, from 0, to the front of `bytes`; returns its length, `None` where there is
    /// no such fragment or no room.
    pub fn write(&self, number: usize, bytes: &mut [u8]) -> Option<usize> {
        let (header, part) = self.parts(number)?;
        let length = header.len() + part.len();
        let (to_header, to_part) = bytes.get_mut(..length)?.split_at_mut_checked(header.len())?;
        to_header.copy_from_slice(header);
        to_part.copy_from_slice(part);
        self.finish(number, to_header, length)?;
        Some(length)
    }

    /// Makes the fragment of this number, from 0, the packet of `buffer`; `None` where there is no such fragment or no
    /// room.
    pub fn write_to<B: Buffer>(&self, number: usize, buffer: &mut B) -> Option<()> {
        let (header, part) = self.parts(number)?;
        buffer.truncate(0)?;
        let bytes = buffer.append(header.len() + part.len())?;
        self.write(number, bytes).map(|_| ())
    }

    /// The header, not yet of this fragment, and the payload of a fragment.
    fn parts(&self, number: usize) -> Option<(&[u8], &[u8])> {
        let from = number.checked_mul(self.chunk).filter(|from| *from < self.payload.len())?;
        let to = (from + self.chunk).min(self.payload.len());
        let header = if number == 0 { self.first } else { self.later.get(..self.later_length)? };
        Some((header, self.payload.get(from..to)?))
    }

    /// Writes into a header what tells fragments apart.
    fn finish(&self, number: usize, header: &mut [u8], length: usize) -> Option<()> {
        let units = u16::try_from((self.offset + number * self.chunk) / UNIT).ok()?;
        let more = self.more || number + 1 < self.count();
        put(header, 2, u16::try_from(length).ok()?)?;
        put(header, 6, units | if more { MORE_FRAGMENTS } else { 0 })?;
        put(header, 10, 0)?;
        let checksum = checksum::of(header);
        put(header, 10, checksum)
    }
}

/// The header of all fragments but the first: with the options that say so themselves, the rest padded with
/// end-of-options marks.
fn later_header(first: &[u8], options: &[u8]) -> Option<([u8; HEADER_MAX], usize)> {
    let mut header = [0; HEADER_MAX];
    let fixed: [u8; LENGTH] = *first.first_chunk()?;
    *header.first_chunk_mut()? = fixed;
    let mut at = LENGTH;
    for option in Options::of(options) {
        let option = option.ok()?;
        if option.is_copied() {
            header.get_mut(at..)?.get_mut(..option.bytes().len())?.copy_from_slice(option.bytes());
            at += option.bytes().len();
        }
    }
    let length = at.next_multiple_of(4);
    *header.first_mut()? = 0x40 | u8::try_from(length / 4).ok()?;
    Some((header, length))
}

fn put(header: &mut [u8], at: usize, value: u16) -> Option<()> {
    *header.get_mut(at..)?.first_chunk_mut()? = value.to_be_bytes();
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeapBuffer;
    use crate::ipv4::{Header, Packet, UDP};
    use proptest::prelude::*;

    /// A packet with these options and this place among fragments.
    fn packet(options: &[u8], flags_fragment: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; LENGTH];
        let header =
            Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), UDP, options.len() + payload.len());
        header.unwrap().fragmentable(0x1234).write(&mut bytes).unwrap();
        bytes.extend(options);
        bytes[0] = 0x40 | (bytes.len() / 4) as u8;
        let header = bytes.len();
        put(&mut bytes, 6, flags_fragment).unwrap();
        put(&mut bytes, 10, 0).unwrap();
        let checksum = checksum::of(&bytes[..header]);
        put(&mut bytes, 10, checksum).unwrap();
        bytes.extend(payload);
        bytes
    }

    fn why_not(packet: &[u8], mtu: usize) -> NotSplit {
        Split::plan(packet, mtu).unwrap_err()
    }

    #[test]
    fn what_is_not_split() {
        let plain = packet(&[], 0, &[7; 100]);
        assert_eq!(why_not(&plain, 120), NotSplit::Fits);
        assert_eq!(why_not(&plain, 27), NotSplit::MtuTooSmall);
        assert_eq!(why_not(&plain, 0), NotSplit::MtuTooSmall);
        assert_eq!(why_not(&packet(&[], 0x4000, &[7; 100]), 60), NotSplit::DontFragment);
        assert_eq!(why_not(&packet(&[0x88, 9, 0, 0], 0, &[7; 100]), 60), NotSplit::Options);
        assert_eq!(why_not(&packet(&[], 0x1fff, &[7; 100]), 60), NotSplit::OffsetTooLarge);
        for length in 0..plain.len() {
            let fault = why_not(&plain[..length], 60);
            assert_eq!(fault, NotSplit::Malformed(ipv4::Malformed::Truncated), "{length} bytes");
        }
        assert_eq!(Split::plan(&plain, 28).unwrap().count(), 13);
    }

    #[test]
    fn options_go_along_where_they_say_so() {
        // Record route (first fragment only), a pad byte, router alert (all fragments).
        let options = [7, 7, 4, 0, 0, 0, 0, 1, 0x94, 4, 0, 0];
        let whole = packet(&options, 0, &[7; 100]);
        let split = Split::plan(&whole, 100).unwrap();
        let mut bytes = [0; 100];
        let length = split.write(0, &mut bytes).unwrap();
        assert_eq!(Packet::parse(&bytes[..length]).unwrap().options(), options);
        let length = split.write(1, &mut bytes).unwrap();
        assert_eq!(Packet::parse(&bytes[..length]).unwrap().options(), [0x94, 4, 0, 0]);
        assert_eq!(split.write(2, &mut bytes), None);
        assert_eq!(split.write(1, &mut bytes[..length - 1]), None);
    }

    proptest! {
        /// Put together by offset, the fragments are the packet.
        #[test]
        fn nothing_is_lost(
            payload in proptest::collection::vec(any::<u8>(), 1..400),
            mtu in 36usize..200,
            units in 0u16..100,
            more: bool,
            option in proptest::option::of(Just([0x94u8, 4, 0, 0])),
        ) {
            let payload = if more { &payload[..payload.len() & !7] } else { &payload[..] };
            let options = option.unwrap_or_default();
            let options = if option.is_some() { &options[..] } else { &[] };
            let place = units | if more { MORE_FRAGMENTS } else { 0 };
            let whole = packet(options, place, payload);
            let Ok(split) = Split::plan(&whole, mtu) else {
                prop_assert!(whole.len() <= mtu);
                return Ok(());
            };
            let mut put_together: Vec<u8> = Vec::new();
            for number in 0..split.count() {
                let mut buffer = HeapBuffer::new(&[0xee; 30]);
                split.write_to(number, &mut buffer).unwrap();
                let fragment = Packet::parse(buffer.data()).unwrap();
                prop_assert!(fragment.total_length() <= mtu && fragment.total_length() == buffer.data().len());
                prop_assert_eq!(fragment.fragment_offset(), usize::from(units) * 8 + put_together.len());
                prop_assert_eq!(fragment.more_fragments(), more || number + 1 < split.count());
                prop_assert_eq!((fragment.identification(), fragment.protocol()), (0x1234, UDP));
                prop_assert_eq!(fragment.options(), options);
                put_together.extend(fragment.payload());
            }
            prop_assert_eq!(put_together, payload);
            prop_assert!(split.count() >= 2);
            prop_assert_eq!(split.write(split.count(), &mut [0; 200]), None);
        }
    }
}

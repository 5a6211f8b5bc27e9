//! Splits IPv6 packets, which their sender alone may do (RFC 8200 4.5).

use crate::Buffer;
use crate::ipv6::{LENGTH, Packet};

/// Bytes of the fragment header.
const FRAGMENT: usize = 8;
const FRAGMENT_HEADER: u8 = 44;
/// Where the type of the next header stands.
const NEXT_HEADER: usize = 6;
/// Offsets count units of eight bytes.
const UNIT: usize = 8;
const MORE_FRAGMENTS: u16 = 1;

/// A packet without extension headers and how it is to be split; the packet itself stays as it is.
#[derive(Clone, Copy, Debug)]
pub struct Split6<'a> {
    header: &'a [u8; LENGTH],
    payload: &'a [u8],
    /// Payload of each fragment but the last.
    chunk: usize,
    identification: u32,
}

impl<'a> Split6<'a> {
    /// Plans the fragments of the packet at the front of `packet`, each of at most `mtu` bytes; `None` where it is no IPv6
    /// packet, fits as it is, or not even eight bytes of payload fit beside the headers. No two packets between the same
    /// addresses may have one `identification` while either is on its way.
    pub fn plan(packet: &'a [u8], mtu: usize, identification: u32) -> Option<Self> {
        let payload = Packet::parse(packet).ok()?.payload();
        let chunk = mtu.checked_sub(LENGTH + FRAGMENT)? & !(UNIT - 1);
        let is_too_long = LENGTH + payload.len() > mtu;
        (is_too_long && chunk > 0).then_some(Self {
            header: packet.first_chunk()?,
            payload,
            chunk,
            identification,
        })
    }

    /// How many fragments there will be.
    pub const fn count(&self) -> usize {
        self.payload.len().div_ceil(self.chunk)
    }

    /// Makes the fragment of this number, from 0, the packet of `buffer`; `None` where there is no such fragment or no
    /// room.
    pub fn write_to<B: Buffer>(&self, number: usize, buffer: &mut B) -> Option<()> {
        let from = number.checked_mul(self.chunk).filter(|from| *from < self.payload.len())?;
        let to = (from + self.chunk).min(self.payload.len());
        let part = self.payload.get(from..to)?;
        let more = if to < self.payload.len() { MORE_FRAGMENTS } else { 0 };
        let (offset, length) = (u16::try_from(from).ok()?, u16::try_from(FRAGMENT + part.len()).ok()?);
        let mut header = *self.header;
        let upper = std::mem::replace(header.get_mut(NEXT_HEADER)?, FRAGMENT_HEADER);
        *header.get_mut(4..)?.first_chunk_mut()? = length.to_be_bytes();
        let [o0, o1] = (offset | more).to_be_bytes();
        let [i0, i1, i2, i3] = self.identification.to_be_bytes();
        buffer.truncate(0)?;
        let bytes = buffer.append(LENGTH + FRAGMENT + part.len())?;
        let (to_header, rest) = bytes.split_first_chunk_mut::<LENGTH>()?;
        *to_header = header;
        let (to_fragment, to_part) = rest.split_first_chunk_mut::<FRAGMENT>()?;
        *to_fragment = [upper, 0, o0, o1, i0, i1, i2, i3];
        to_part.copy_from_slice(part);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeapBuffer;
    use crate::ipv6::Header;
    use crate::protocol::UDP;
    use proptest::prelude::*;

    fn packet(payload: &[u8]) -> Vec<u8> {
        let ends: [std::net::Ipv6Addr; 2] = ["fd00::1", "fd00::2"].map(|end| end.parse().unwrap());
        let mut bytes = vec![0; LENGTH];
        Header::new(ends[0], ends[1], UDP, payload.len()).unwrap().write(&mut bytes).unwrap();
        [bytes, payload.to_vec()].concat()
    }

    #[test]
    fn what_is_not_split() {
        let packet = packet(&[7; 100]);
        assert!(Split6::plan(&packet, 140, 1).is_none(), "it fits");
        assert!(Split6::plan(&packet, 55, 1).is_none(), "not even eight bytes beside the headers");
        assert!(Split6::plan(&packet, 0, 1).is_none());
        assert!(
            (0..packet.len()).all(|length| Split6::plan(&packet[..length], 60, 1).is_none()),
            "cut short"
        );
        assert_eq!(Split6::plan(&packet, 56, 1).unwrap().count(), 13);
    }

    proptest! {
        /// Put together by offset, the fragments are the packet.
        #[test]
        fn nothing_is_lost(payload in proptest::collection::vec(any::<u8>(), 100..400), mtu in 56usize..139) {
            let whole = packet(&payload);
            let split = Split6::plan(&whole, mtu, 0x0102_0304).unwrap();
            let mut put_together: Vec<u8> = Vec::new();
            for number in 0..split.count() {
                let mut buffer = HeapBuffer::new(&[0xee; 30]);
                split.write_to(number, &mut buffer).unwrap();
                let fragment = Packet::parse(buffer.data()).unwrap();
                prop_assert!(buffer.data().len() <= mtu);
                let upper = fragment.upper().unwrap();
                let place = upper.fragment.unwrap();
                prop_assert_eq!(usize::from(place.offset), put_together.len());
                prop_assert_eq!(place.more, number + 1 < split.count());
                prop_assert_eq!((place.identification, upper.protocol), (0x0102_0304, UDP));
                put_together.extend(&fragment.payload()[FRAGMENT..]);
            }
            prop_assert_eq!(put_together, payload);
            prop_assert!(split.count() >= 2);
            prop_assert!(split.write_to(split.count(), &mut HeapBuffer::new(&[0; 200])).is_none());
        }
    }
}

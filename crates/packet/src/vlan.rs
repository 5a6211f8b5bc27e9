//! VLAN tags: 802.1Q, and 802.1ad with two of them (QinQ).

use crate::{Buffer, ethernet};

/// EtherType of a customer tag (802.1Q).
pub const CUSTOMER: u16 = 0x8100;
/// EtherType of a service tag (802.1ad), the outer of two.
pub const SERVICE: u16 = 0x88a8;
/// What the outer of two tags was marked with before 802.1ad.
const SERVICE_OF_OLD: u16 = 0x9100;

/// Bytes a tag adds to a frame.
pub const LENGTH: usize = 4;
/// Both addresses, which stand before the tag.
const ADDRESSES: usize = 12;
const ID: u16 = 0x0fff;
const DROP_ELIGIBLE: u16 = 0x1000;
const PRIORITY_SHIFT: u32 = 13;

/// The content of a tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tag {
    /// VLAN ID, 12 bits; 0 is a tag that only carries a priority.
    pub id: u16,
    /// Priority code point, 0 to 7.
    pub priority: u8,
    /// To be dropped before others.
    pub drop_eligible: bool,
}

impl Tag {
    /// A tag of this VLAN with priority 0.
    pub const fn new(id: u16) -> Self {
        Self { id: id & ID, priority: 0, drop_eligible: false }
    }

    #[inline]
    const fn from_bits(bits: u16) -> Self {
        Self {
            id: bits & ID,
            priority: (bits >> PRIORITY_SHIFT) as u8,
            drop_eligible: bits & DROP_ELIGIBLE != 0,
        }
    }

    #[inline]
    const fn bits(self) -> u16 {
        let drop_eligible = if self.drop_eligible { DROP_ELIGIBLE } else { 0 };
        ((self.priority & 7) as u16) << PRIORITY_SHIFT | drop_eligible | self.id & ID
    }
}

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than its header and tags.
    Truncated,
    /// More than two tags.
    TooManyTags,
}

/// What stands before a frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tags {
    /// The first tag, if any.
    pub outer: Option<Tag>,
    /// The second, if any.
    pub inner: Option<Tag>,
    /// What the payload is.
    pub ethertype: u16,
    /// Bytes before the payload: 14, 18 or 22.
    pub length: usize,
}

#[inline]
const fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, CUSTOMER | SERVICE | SERVICE_OF_OLD)
}

impl Tags {
    /// Reads the header at the front of `frame`.
    ///
    /// # Errors
    /// What is wrong.
    #[inline]
    pub fn parse(frame: &[u8]) -> Result<Self, Malformed> {
        let header = ethernet::Header::parse(frame).ok_or(Malformed::Truncated)?;
        let plain =
            Self { outer: None, inner: None, ethertype: header.ethertype(), length: ethernet::LENGTH };
        if is_tag(plain.ethertype) { plain.read(frame) } else { Ok(plain) }
    }

    fn read(mut self, frame: &[u8]) -> Result<Self, Malformed> {
        let (tag, next) = split(frame, self.length).ok_or(Malformed::Truncated)?;
        self = Self { outer: Some(tag), ethertype: next, length: self.length + LENGTH, ..self };
        if is_tag(next) {
            let (tag, next) = split(frame, self.length).ok_or(Malformed::Truncated)?;
            self = Self { inner: Some(tag), ethertype: next, length: self.length + LENGTH, ..self };
        }
        if is_tag(self.ethertype) { Err(Malformed::TooManyTags) } else { Ok(self) }
    }
}

/// The tag at this place and the EtherType behind it.
#[inline]
fn split(frame: &[u8], at: usize) -> Option<(Tag, u16)> {
    let [a, b, c, d] = *frame.get(at..)?.first_chunk()?;
    Some((Tag::from_bits(u16::from_be_bytes([a, b])), u16::from_be_bytes([c, d])))
}

/// Puts a tag of type [`CUSTOMER`] or [`SERVICE`] into the frame in `buffer`, before any it has; `None` where the
/// frame has no header, which is then as before, or there is no room in front of it.
#[inline]
pub fn push<B: Buffer>(buffer: &mut B, kind: u16, tag: Tag) -> Option<()> {
    let addresses: [u8; ADDRESSES] = *buffer.data().first_chunk()?;
    let frame = buffer.prepend(LENGTH)?;
    *frame.first_chunk_mut()? = addresses;
    let [a, b] = kind.to_be_bytes();
    let [c, d] = tag.bits().to_be_bytes();
    *frame.get_mut(ADDRESSES..)?.first_chunk_mut()? = [a, b, c, d];
    Some(())
}

/// Takes the outermost tag off the frame in `buffer`; `None`, and no change, where it has none.
#[inline]
pub fn pop<B: Buffer>(buffer: &mut B) -> Option<Tag> {
    let header = ethernet::Header::parse(buffer.data())?;
    let (tag, _) = is_tag(header.ethertype()).then(|| split(buffer.data(), ethernet::LENGTH))??;
    let addresses: [u8; ADDRESSES] = *buffer.data().first_chunk()?;
    buffer.trim_front(LENGTH)?;
    *buffer.data_mut().first_chunk_mut()? = addresses;
    Some(tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeapBuffer;
    use crate::ethernet::{Header, IPV4, MacAddress};
    use proptest::prelude::*;

    fn frame() -> Vec<u8> {
        let mut bytes = vec![0xaa; 20];
        Header::new(MacAddress([1; 6]), MacAddress([2; 6]), IPV4).write(&mut bytes).unwrap();
        bytes
    }

    fn tag() -> impl Strategy<Value = Tag> {
        (0u16..0x1000, 0u8..8, any::<bool>()).prop_map(|(id, priority, drop_eligible)| Tag {
            id,
            priority,
            drop_eligible,
        })
    }

    #[test]
    fn a_plain_frame_has_no_tag() {
        let plain = Tags { outer: None, inner: None, ethertype: IPV4, length: 14 };
        assert_eq!(Tags::parse(&frame()), Ok(plain));
        assert_eq!(pop(&mut HeapBuffer::new(&frame())), None);
    }

    #[test]
    fn three_tags_are_one_too_many() {
        let mut buffer = HeapBuffer::new(&frame());
        for id in 1..=3 {
            push(&mut buffer, SERVICE, Tag::new(id)).unwrap();
        }
        assert_eq!(Tags::parse(buffer.data()), Err(Malformed::TooManyTags));
        assert_eq!(pop(&mut buffer), Some(Tag::new(3)));
        assert_eq!(Tags::parse(buffer.data()).unwrap().inner, Some(Tag::new(1)));
    }

    #[test]
    fn a_frame_cut_anywhere_is_refused() {
        let mut buffer = HeapBuffer::new(&frame());
        push(&mut buffer, CUSTOMER, Tag::new(5)).unwrap();
        push(&mut buffer, SERVICE, Tag::new(6)).unwrap();
        for length in 0..22 {
            let cut = &buffer.data()[..length];
            assert_eq!(Tags::parse(cut), Err(Malformed::Truncated), "{length} bytes");
            let popped = pop(&mut HeapBuffer::new(cut));
            assert_eq!(popped, (length >= 18).then_some(Tag::new(6)));
        }
        assert_eq!(push(&mut HeapBuffer::new(&[0; 11]), CUSTOMER, Tag::new(1)), None);
        assert_eq!(push(&mut HeapBuffer::with_headroom(&frame(), 3), CUSTOMER, Tag::new(1)), None);
    }

    proptest! {
        #[test]
        fn what_is_pushed_is_read_and_popped(inner in tag(), outer in tag()) {
            let mut buffer = HeapBuffer::new(&frame());
            push(&mut buffer, CUSTOMER, inner).unwrap();
            push(&mut buffer, SERVICE, outer).unwrap();
            let read = Tags::parse(buffer.data()).unwrap();
            prop_assert_eq!(read, Tags { outer: Some(outer), inner: Some(inner), ethertype: IPV4, length: 22 });
            prop_assert_eq!((pop(&mut buffer), pop(&mut buffer)), (Some(outer), Some(inner)));
            prop_assert_eq!(buffer.data(), frame());
        }
    }
}

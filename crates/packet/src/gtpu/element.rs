//! Information elements (TS 29.281 8.1).

/// Restart counter.
pub(super) const RECOVERY: u8 = 14;
/// The tunnel an error indication is about.
pub(super) const TEID_DATA_I: u8 = 16;
/// The address an error indication is about.
pub(super) const PEER_ADDRESS: u8 = 133;
/// Types of extension headers.
pub(super) const EXTENSION_HEADER_TYPES: u8 = 141;
/// When the sender, or what it knew of its tunnels, began (8.8): seconds since 1900, as NTP has them.
pub(super) const RECOVERY_TIME_STAMP: u8 = 231;
/// Information elements below this type have a fixed length.
const FIRST_WITH_LENGTH: u8 = 128;

/// One information element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element<'a> {
    pub(super) kind: u8,
    pub(super) value: &'a [u8],
}

/// Those of a message, up to one that is cut short or whose length is not known. Each takes two bytes at least.
pub(super) struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    pub(super) const fn of(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (kind, rest) = self.rest.split_first()?;
        let (length, rest) = split_length(*kind, rest)?;
        let (value, after) = rest.split_at_checked(length)?;
        self.rest = after;
        Some(Element { kind: *kind, value })
    }
}

/// A Recovery Time Stamp, as it is written.
pub(super) fn recovery_time_stamp(value: u32) -> [u8; 7] {
    let [a, b, c, d] = value.to_be_bytes();
    [RECOVERY_TIME_STAMP, 0, 4, a, b, c, d]
}

/// The length of an element of this type, and what follows the octets that say it.
fn split_length(kind: u8, rest: &[u8]) -> Option<(usize, &[u8])> {
    match (kind, rest) {
        (RECOVERY, _) => Some((1, rest)),
        (TEID_DATA_I, _) => Some((4, rest)),
        // Its length is one octet (TS 29.281 8.5), which not every sender knows; a list of none is of no use.
        (EXTENSION_HEADER_TYPES, [length, rest @ ..]) if *length > 0 => Some((usize::from(*length), rest)),
        (FIRST_WITH_LENGTH.., [high, low, rest @ ..]) => {
            Some((usize::from(u16::from_be_bytes([*high, *low])), rest))
        }
        _ => None,
    }
}

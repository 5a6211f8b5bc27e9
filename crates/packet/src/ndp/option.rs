//! Options (RFC 4861 4.6), read one by one and written one after the other.

use crate::ethernet::MacAddress;

pub(super) const SOURCE_LINK_ADDRESS: u8 = 1;
pub(super) const TARGET_LINK_ADDRESS: u8 = 2;
pub(super) const PREFIX: u8 = 3;
pub(super) const MTU: u8 = 5;
pub(super) const DNS_SERVERS: u8 = 25;
/// No sender needs more; a longer list is an attack on the receiver's time.
const OPTIONS_MAX: usize = 32;
const UNIT: usize = 8;

/// An option of length 0 or beyond the message, or one too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadOption;

/// The options of a message: type, and what follows type and length.
pub(super) struct Options<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Options<'a> {
    pub(super) const fn of(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, left: OPTIONS_MAX }
    }

    /// The Ethernet address in the first option of this type.
    ///
    /// # Errors
    /// Any option is bad, or that one is not of an Ethernet's length.
    pub(super) fn link_address(self, kind: u8) -> Result<Option<MacAddress>, BadOption> {
        let mut found = None;
        for option in self {
            let (this, content) = option?;
            if this == kind && found.is_none() {
                found = Some(MacAddress(content.try_into().map_err(|_| BadOption)?));
            }
        }
        Ok(found)
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<(u8, &'a [u8]), BadOption>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.rest);
        if rest.is_empty() {
            return None;
        }
        let Some((kind, content, after)) = self.left.checked_sub(1).and_then(|_| split(rest)) else {
            return Some(Err(BadOption));
        };
        *self = Self { rest: after, left: self.left - 1 };
        Some(Ok((kind, content)))
    }
}

fn split(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [kind, units, ..] = *bytes else { return None };
    let (option, after) = bytes.split_at_checked(usize::from(units) * UNIT)?;
    Some((kind, option.get(2..)?, after))
}

/// Writes the parts of a message one after the other.
pub(super) struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// Begins at this place in `bytes`.
    pub(super) const fn at(bytes: &'a mut [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Adds a part; `None` where there is no room.
    pub(super) fn add(&mut self, part: &[u8]) -> Option<()> {
        let end = self.at.checked_add(part.len())?;
        self.bytes.get_mut(self.at..end)?.copy_from_slice(part);
        self.at = end;
        Some(())
    }

    /// Adds the option of an Ethernet address, where there is one.
    pub(super) fn add_link_address(&mut self, kind: u8, mac: Option<MacAddress>) -> Option<()> {
        let Some(MacAddress(mac)) = mac else { return Some(()) };
        self.add(&[kind, 1])?;
        self.add(&mac)
    }

    /// Where the next part would begin.
    pub(super) const fn end(&self) -> usize {
        self.at
    }
}

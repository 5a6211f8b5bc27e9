//! Options (RFC 791 3.1).

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const COPIED: u8 = 0x80;

/// An option that is cut short, or whose length says less than its own two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadOption;

/// One option, type and length included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpOption<'a> {
    bytes: &'a [u8],
}

impl<'a> IpOption<'a> {
    /// Its type, copy flag included.
    pub fn kind(&self) -> u8 {
        self.bytes.first().copied().unwrap_or(END)
    }

    /// Whether every fragment carries it.
    pub fn is_copied(&self) -> bool {
        self.kind() & COPIED != 0
    }

    /// The whole option as it stands in the header.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// The options of a header one after the other, up to the end-of-options mark. Ends after a bad one; as each takes a
/// byte at least, there are at most 40.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    /// Those in `bytes`, as [`super::Packet::options`] gives them.
    pub const fn of(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<IpOption<'a>, BadOption>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.rest);
        let length = match rest {
            [] | [END, ..] => return None,
            [NO_OPERATION, ..] => 1,
            [_, length, ..] if *length >= 2 => usize::from(*length),
            _ => return Some(Err(BadOption)),
        };
        let Some((bytes, after)) = rest.split_at_checked(length) else { return Some(Err(BadOption)) };
        self.rest = after;
        Some(Ok(IpOption { bytes }))
    }
}

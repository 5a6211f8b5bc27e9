//! The chain of extension headers (TS 29.281 5.2).

/// No sender needs more extension headers; a longer chain is an attack on the receiver's time.
pub const EXTENSIONS_MAX: usize = 8;

/// Types of extension headers (TS 29.281 figure 5.2.1-3).
pub mod extension_type {
    /// Long PDCP PDU number, as releases before 15 send it.
    pub const LONG_PDCP_PDU_NUMBER_OF_OLD: u8 = 0x03;
    /// Service class indicator (GERAN).
    pub const SERVICE_CLASS_INDICATOR: u8 = 0x20;
    /// UDP source port of the packet that an error indication is about.
    pub const UDP_PORT: u8 = 0x40;
    /// For RAN nodes (X2-U).
    pub const RAN_CONTAINER: u8 = 0x81;
    /// PDCP PDU number of 18 bits, on packets forwarded in a handover.
    pub const LONG_PDCP_PDU_NUMBER: u8 = 0x82;
    /// For RAN nodes (Xw).
    pub const XW_RAN_CONTAINER: u8 = 0x83;
    /// For RAN nodes (Xn-U, F1-U).
    pub const NR_RAN_CONTAINER: u8 = 0x84;
    /// See [`super::super::PduSession`].
    pub const PDU_SESSION_CONTAINER: u8 = 0x85;
    /// PDCP PDU number, on packets forwarded in a handover.
    pub const PDCP_PDU_NUMBER: u8 = 0xc0;
}

/// The types that we say we understand (TS 29.281 7.2.3). PDCP PDU numbers are relayed, not read.
pub const SUPPORTED: [u8; 4] = [
    extension_type::PDU_SESSION_CONTAINER,
    extension_type::UDP_PORT,
    extension_type::LONG_PDCP_PDU_NUMBER,
    extension_type::PDCP_PDU_NUMBER,
];

/// What the two highest bits of a type tell those who do not know it (TS 29.281 figure 5.2.1-2).
const COMPREHENSION: u8 = 0b1100_0000;
/// Not required; an intermediate node takes it off.
const NOT_RELAYED: u8 = 0b0100_0000;
/// Required of the endpoint that receives it, and of more with both bits set.
const REQUIRED_BY_ENDPOINT: u8 = 0b1000_0000;
const UNIT: usize = 4;

/// One extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension<'a> {
    /// See [`extension_type`].
    pub kind: u8,
    /// What is between the length and the type of the next; with them, a multiple of four octets.
    pub content: &'a [u8],
}

impl<'a> Extension<'a> {
    /// Whether a node that passes the packet on keeps it (TS 29.281 5.2.1).
    pub const fn is_relayed(&self) -> bool {
        self.kind & COMPREHENSION != NOT_RELAYED
    }

    /// Whether an endpoint that does not know it must not go on.
    pub(super) const fn is_unknown_but_required(&self) -> bool {
        let known = matches!(
            self.kind,
            extension_type::PDU_SESSION_CONTAINER
                | extension_type::PDCP_PDU_NUMBER
                | extension_type::LONG_PDCP_PDU_NUMBER
        );
        !known && self.kind & COMPREHENSION >= REQUIRED_BY_ENDPOINT
    }

    /// The UDP port, if it is one.
    pub fn udp_port(&self) -> Option<u16> {
        let content = self.content.first_chunk().filter(|_| self.kind == extension_type::UDP_PORT)?;
        Some(u16::from_be_bytes(*content))
    }

    /// Bytes it takes.
    pub(super) const fn length(&self) -> usize {
        self.content.len() + 2
    }

    /// Writes it to the front of `bytes`, before one of type `next`; returns the rest.
    pub(super) fn write<'b>(&self, bytes: &'b mut [u8], next: u8) -> Option<&'b mut [u8]> {
        let (extension, rest) = bytes.split_at_mut_checked(self.length())?;
        let units = u8::try_from(self.length() / UNIT).ok().filter(|_| self.length().is_multiple_of(UNIT))?;
        let (first, middle) = extension.split_first_mut()?;
        let (last, content) = middle.split_last_mut()?;
        (*first, *last) = (units, next);
        content.copy_from_slice(self.content);
        Some(rest)
    }
}

/// The extension headers of a message, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Extensions<'a> {
    next: u8,
    rest: &'a [u8],
    left: usize,
}

impl<'a> Extensions<'a> {
    /// Those in `bytes`, the first of type `first`, or none where that is 0.
    pub(super) const fn of(first: u8, bytes: &'a [u8]) -> Self {
        Self { next: first, rest: bytes, left: EXTENSIONS_MAX }
    }

    /// Bytes that have not been read yet.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Extensions<'a> {
    /// `Err` where the chain is broken or too long; nothing comes after that.
    type Item = Result<Extension<'a>, BrokenChain>;

    fn next(&mut self) -> Option<Self::Item> {
        let kind = std::mem::take(&mut self.next);
        if kind == 0 {
            return None;
        }
        let Some((content, next, rest)) = self.left.checked_sub(1).and_then(|_| split(self.rest)) else {
            return Some(Err(BrokenChain));
        };
        *self = Self { next, rest, left: self.left - 1 };
        Some(Ok(Extension { kind, content }))
    }
}

/// An extension header of length 0, beyond the message, or one too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenChain;

/// The content of the first extension header, the type of the next, and what follows. Its first octet counts units
/// of four octets, itself and the next type included.
fn split(bytes: &[u8]) -> Option<(&[u8], u8, &[u8])> {
    let length = usize::from(*bytes.first()?) * UNIT;
    let (extension, after) = bytes.split_at_checked(length)?;
    let (next, content) = extension.get(1..)?.split_last()?;
    Some((content, *next, after))
}

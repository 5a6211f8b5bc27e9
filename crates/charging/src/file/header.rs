//! The header of a file and those of the CDRs in it (TS 32.297 6.1), of Release 16.

use crate::ber::Shape;
use crate::time::Calendar;
use std::net::IpAddr;

/// Why a file is closed (TS 32.297 6.1.1, file closure trigger reason).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closure {
    /// Nothing special: all there was is in it.
    Normal,
    /// As large as it may be.
    Size,
    /// Open as long as it may be.
    Time,
    /// As many CDRs as it may hold.
    Count,
    /// The operator.
    Manual,
}

impl Closure {
    const fn number(self) -> u8 {
        match self {
            Self::Normal => 0,
            Self::Size => 1,
            Self::Time => 2,
            Self::Count => 3,
            Self::Manual => 4,
        }
    }

    const fn of_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Normal),
            1 => Some(Self::Size),
            2 => Some(Self::Time),
            3 => Some(Self::Count),
            4 => Some(Self::Manual),
            _ => None,
        }
    }
}

/// Releases from 10 on are "beyond 9", and told by an extension that counts from 10.
const BEYOND_9: u8 = 7;
const RELEASE: u8 = 16;
const RELEASE_EXTENSION: u8 = RELEASE - 10;
const VERSION: u8 = 0;
const RELEASE_AND_VERSION: u8 = BEYOND_9 << 5 | VERSION;

/// Without a routeing filter and private extensions, with the extensions of both releases.
const FILE_HEADER: usize = 54;

/// The header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// When it was opened; without seconds and the year on the wire.
    pub opened: Calendar,
    /// When its last CDR was put into it.
    pub last_appended: Calendar,
    /// CDRs in it.
    pub cdrs: u32,
    /// Counts files.
    pub sequence: u32,
    /// Why it was closed.
    pub closure: Closure,
    /// The node that wrote it.
    pub address: IpAddr,
    /// CDRs that should be in it and were lost.
    pub lost: u64,
}

/// Octets that are no file of CDRs, or of a kind that is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// It ends too early.
    #[error("it is cut off")]
    Short,
    /// Its lengths do not fit each other.
    #[error("its lengths do not fit")]
    Lengths,
    /// A value that has no meaning.
    #[error("its {0} has no meaning")]
    Value(&'static str),
}

impl FileHeader {
    /// The octets, before a body of that length.
    pub fn encode(&self, body: usize) -> Vec<u8> {
        let length = |octets: usize| u32::try_from(octets).unwrap_or(u32::MAX).to_be_bytes();
        let mut octets = Vec::with_capacity(FILE_HEADER + body);
        octets.extend(length(FILE_HEADER + body));
        octets.extend(length(FILE_HEADER));
        octets.extend([RELEASE_AND_VERSION; 2]);
        octets.extend(packed(&self.opened));
        octets.extend(packed(&self.last_appended));
        octets.extend(self.cdrs.to_be_bytes());
        octets.extend(self.sequence.to_be_bytes());
        octets.push(self.closure.number());
        octets.extend(node_address(self.address));
        octets.push(lost_indicator(self.lost));
        // Lengths of a routeing filter and of private extensions.
        octets.extend([0; 4]);
        octets.extend([RELEASE_EXTENSION; 2]);
        octets
    }

    /// Reads the header of a whole file; gives it and what is behind it. The year is not in it: it is 0.
    ///
    /// # Errors
    /// Octets that are none.
    pub fn decode(octets: &[u8]) -> Result<(Self, &[u8]), HeaderError> {
        let at = |from: usize, length: usize| octets.get(from..from + length).ok_or(HeaderError::Short);
        let number = |from: usize| {
            at(from, 4).map(|octets| octets.iter().fold(0, |all, it| all << 8 | u32::from(*it)))
        };
        let (file, header) = (number(0)? as usize, number(4)? as usize);
        if file != octets.len() || header > file || header < FILE_HEADER - 2 {
            return Err(HeaderError::Lengths);
        }
        let closure = at(26, 1)?.first().and_then(|reason| Closure::of_number(*reason));
        let lost = at(47, 1)?.first().copied().unwrap_or(0);
        let read = Self {
            opened: unpacked(number(10)?),
            last_appended: unpacked(number(14)?),
            cdrs: number(18)?,
            sequence: number(22)?,
            closure: closure.ok_or(HeaderError::Value("closure trigger reason"))?,
            address: read_address(at(27, 20)?).ok_or(HeaderError::Value("node address"))?,
            lost: u64::from(lost & 0x7F),
        };
        Ok((read, octets.get(header..).unwrap_or_default()))
    }
}

/// Month, day, hour, minute, sign and distance from UTC in 32 bits.
fn packed(calendar: &Calendar) -> [u8; 4] {
    let (sign, hours, minutes) = calendar.utc_offset();
    let fields = [
        (calendar.month, 4),
        (calendar.day, 5),
        (calendar.hour, 5),
        (calendar.minute, 6),
        (u8::from(sign == '+'), 1),
        (hours, 5),
        (minutes, 6),
    ];
    fields.iter().fold(0, |all: u32, (value, bits)| all << bits | u32::from(*value)).to_be_bytes()
}

const fn unpacked(packed: u32) -> Calendar {
    let offset_min = ((packed >> 6 & 31) * 60 + (packed & 63)) as i32;
    Calendar {
        year: 0,
        month: (packed >> 28) as u8,
        day: (packed >> 23 & 31) as u8,
        hour: (packed >> 18 & 31) as u8,
        minute: (packed >> 12 & 63) as u8,
        second: 0,
        utc_offset_min: if packed >> 11 & 1 == 1 { offset_min } else { -offset_min },
    }
}

/// 20 octets: four that are set, and an IPv6 address, or an IPv4 address mapped into one.
fn node_address(address: IpAddr) -> [u8; 20] {
    let mut octets = [0xFF; 20];
    let ipv6 = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    octets.iter_mut().skip(4).zip(ipv6.octets()).for_each(|(octet, value)| *octet = value);
    octets
}

fn read_address(octets: &[u8]) -> Option<IpAddr> {
    let octets: [u8; 16] = octets.get(4..)?.try_into().ok()?;
    Some(IpAddr::from(octets).to_canonical())
}

/// The highest bit: so many exactly; without it, at least so many (TS 32.297 6.1.1).
fn lost_indicator(lost: u64) -> u8 {
    match u8::try_from(lost) {
        Ok(0) => 0,
        Ok(lost @ 1..127) => 0x80 | lost,
        _ => 127,
    }
}

/// The header of a CDR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CdrHeader {
    /// Octets of the CDR itself: at most 65,535, which is why its containers are limited
    /// ([`Cdr::CONTAINERS`](crate::Cdr::CONTAINERS)).
    pub length: u16,
    /// The specification it is of, as its number in TS 32.297: 7 is TS 32.251, 20 is TS 32.255.
    pub ts: u8,
}

impl CdrHeader {
    /// BER (TS 32.297 6.1.2, data record format).
    const BER: u8 = 1;

    pub(super) fn of(shape: Shape, length: usize) -> Self {
        let ts = match shape {
            Shape::Pgw => 7,
            Shape::Chf => 20,
        };
        Self { length: u16::try_from(length).unwrap_or(u16::MAX), ts }
    }

    pub(super) fn encode(self) -> Vec<u8> {
        let [high, low] = self.length.to_be_bytes();
        vec![high, low, RELEASE_AND_VERSION, Self::BER << 5 | self.ts, RELEASE_EXTENSION]
    }

    /// Reads a header; gives it, its CDR and what is behind.
    ///
    /// # Errors
    /// Octets that are none, and CDRs that are not BER.
    pub fn decode(octets: &[u8]) -> Result<(Self, &[u8], &[u8]), HeaderError> {
        let (header, rest) = octets.split_first_chunk::<4>().ok_or(HeaderError::Short)?;
        let [high, low, release, format] = *header;
        if format >> 5 != Self::BER {
            return Err(HeaderError::Value("data record format"));
        }
        let extension = usize::from(release >> 5 == BEYOND_9);
        let length = u16::from_be_bytes([high, low]);
        let rest = rest.get(extension..).ok_or(HeaderError::Short)?;
        let (cdr, rest) = rest.split_at_checked(length.into()).ok_or(HeaderError::Short)?;
        Ok((Self { length, ts: format & 31 }, cdr, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HEADER: FileHeader = FileHeader {
        opened: Calendar {
            year: 0,
            month: 12,
            day: 31,
            hour: 23,
            minute: 59,
            second: 0,
            utc_offset_min: -330,
        },
        last_appended: Calendar {
            year: 0,
            month: 1,
            day: 1,
            hour: 0,
            minute: 7,
            second: 0,
            utc_offset_min: 60,
        },
        cdrs: 3,
        sequence: 70_000,
        closure: Closure::Size,
        address: IpAddr::V4(Ipv4Addr::new(10, 40, 0, 2)),
        lost: 5,
    };

    #[test]
    fn headers_are_read_as_they_were_written() {
        let mut file = HEADER.encode(3);
        assert_eq!(file.len(), FILE_HEADER);
        file.extend([1, 2, 3]);
        assert_eq!(FileHeader::decode(&file), Ok((HEADER, &[1, 2, 3][..])));
        // Worked out by hand: 1100 11111 10111 111011 0 00101 011110.
        assert_eq!(file[10..14], [0xCF, 0xDF, 0xB1, 0x5E]);
        assert_eq!(file[8..10], [0xE0, 0xE0]);
        assert_eq!(file[47], 0x85);
        assert_eq!(FileHeader::decode(&file[..55]), Err(HeaderError::Lengths));
        assert_eq!(FileHeader::decode(&[0; 9]), Err(HeaderError::Lengths));
        assert_eq!(FileHeader::decode(&[]), Err(HeaderError::Short));
    }

    #[test]
    fn lost_records_are_told_exactly_while_that_can_be_said() {
        assert_eq!([0, 1, 126, 127, 4_000].map(lost_indicator), [0, 0x81, 0xFE, 127, 127]);
    }

    #[test]
    fn cdr_headers_are_read_as_they_were_written() {
        let header = CdrHeader::of(Shape::Chf, 2);
        let mut octets = header.encode();
        assert_eq!(octets, [0, 2, 0xE0, 0x34, 6]);
        octets.extend([8, 9, 7]);
        assert_eq!(CdrHeader::decode(&octets), Ok((header, &[8, 9][..], &[7][..])));
        assert_eq!(CdrHeader::decode(&octets[..6]), Err(HeaderError::Short));
    }
}

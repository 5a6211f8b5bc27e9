//! Files read back, for people and for tests.

use super::header::{CdrHeader, FileHeader, HeaderError};
use crate::ber::{self, Malformed, Seen, SeenContainer};
use serde_json::Value;

/// A file as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Of a file of BER.
    pub header: Option<FileHeader>,
    /// Its records.
    pub records: Vec<Seen>,
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Its header.
    #[error("this is no file of CDRs: {0}")]
    Header(HeaderError),
    /// The header of a CDR.
    #[error("CDR {0} of the file has no header: {1}")]
    CdrHeader(usize, HeaderError),
    /// A CDR.
    #[error("CDR {0} of the file: {1}")]
    Cdr(usize, Malformed),
    /// A line.
    #[error("line {0}: {1}")]
    Line(usize, String),
    /// There are more or fewer than the header says.
    #[error("the file has {found} CDRs, but its header says {told}")]
    Count {
        /// In the file.
        found: usize,
        /// In the header.
        told: u32,
    },
}

/// Reads a file: JSON Lines where it begins with a brace, else a header and CDRs in BER.
///
/// # Errors
/// Octets that are no file of ours.
pub fn read(octets: &[u8]) -> Result<File, ReadError> {
    match octets.first() {
        Some(b'{') => Ok(File { header: None, records: lines(octets)? }),
        _ => cdrs(octets),
    }
}

fn cdrs(octets: &[u8]) -> Result<File, ReadError> {
    let (header, mut rest) = FileHeader::decode(octets).map_err(ReadError::Header)?;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let number = records.len() + 1;
        let (_, cdr, after) = CdrHeader::decode(rest).map_err(|error| ReadError::CdrHeader(number, error))?;
        records.push(ber::see(cdr).map_err(|error| ReadError::Cdr(number, error))?);
        rest = after;
    }
    match header.cdrs as usize == records.len() {
        true => Ok(File { header: Some(header), records }),
        false => Err(ReadError::Count { found: records.len(), told: header.cdrs }),
    }
}

fn lines(octets: &[u8]) -> Result<Vec<Seen>, ReadError> {
    let text = String::from_utf8_lossy(octets);
    let read = |(at, line): (usize, &str)| {
        let value = serde_json::from_str(line).map_err(|error| ReadError::Line(at + 1, error.to_string()))?;
        of_object(&value).ok_or_else(|| ReadError::Line(at + 1, "this is no CDR".to_owned()))
    };
    text.lines().enumerate().map(read).collect()
}

fn of_object(value: &Value) -> Option<Seen> {
    let number = |name: &str| value.get(name)?.as_u64();
    let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
    // As in a CHFRecord.
    let subscriber = ["imsi", "nai", "supi", "msisdn", "gpsi"].into_iter().find_map(text);
    let ipv6 = || text("ipv6")?.split('/').next()?.parse().ok();
    Some(Seen {
        shape: "json",
        serial: number("serial")?,
        charging_id: u64::from_str_radix(&text("seid")?, 16).ok()? & 0xFFFF_FFFF,
        sequence: number("sequence")?,
        subscriber,
        address: text("ipv4").and_then(|it| it.parse().ok()).or_else(ipv6),
        opened: text("opened")?,
        duration_s: number("duration_s")?,
        cause: number("cause_number")?,
        containers: value.get("containers")?.as_array()?.iter().map(container).collect::<Option<_>>()?,
    })
}

fn container(value: &Value) -> Option<SeenContainer> {
    let number = |name: &str| value.get(name)?.as_u64();
    Some(SeenContainer {
        rating_group: number("rating_group")?,
        service_id: number("service_id"),
        uplink_bytes: number("uplink_bytes")?,
        downlink_bytes: number("downlink_bytes")?,
        time_s: number("time_s"),
    })
}

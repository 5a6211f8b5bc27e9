//! CDR files.
//!
//! | file | what it is about |
//! |---|---|
//! | `header` | the headers of files and of CDRs in them (TS 32.297 6.1) |
//! | `name` | what files are called (TS 32.297 6.2) |
//! | `lines` | JSON Lines: a record, an object, a line |
//! | `reader` | files read back |

mod header;
mod lines;
mod name;
mod reader;

pub use header::{CdrHeader, Closure, FileHeader, HeaderError};
pub use lines::line;
pub use name::name;
pub use reader::{File, ReadError, read};

use crate::ber::{self, Context, Shape};
use crate::record::Cdr;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// What a file is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// PGWRecords in ASN.1 BER.
    Pgw,
    /// CHFRecords in ASN.1 BER.
    Chf,
    /// JSON Lines.
    Json,
}

impl Format {
    /// All.
    pub const ALL: [Self; 3] = [Self::Pgw, Self::Chf, Self::Json];

    /// As in file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pgw => "pgw",
            Self::Chf => "chf",
            Self::Json => "json",
        }
    }

    const fn shape(self) -> Option<Shape> {
        match self {
            Self::Pgw => Some(Shape::Pgw),
            Self::Chf => Some(Shape::Chf),
            Self::Json => None,
        }
    }
}

/// What a file says beside its records.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Our Node ID and time zone.
    pub context: Context<'a>,
    /// Our address.
    pub address: IpAddr,
    /// Counts the node's files of that format, from 1.
    pub sequence: u32,
    /// Why it is closed.
    pub closure: Closure,
    /// Records that should be there and are not.
    pub lost: u64,
    /// Now.
    pub now_ms: u64,
}

/// The octets of one record in a file of that format, its header included.
pub fn record(cdr: &Cdr, format: Format, context: Context<'_>) -> Vec<u8> {
    match format.shape() {
        Some(shape) => {
            let octets = ber::encode(cdr, shape, context);
            let mut framed = CdrHeader::of(shape, octets.len()).encode();
            framed.extend(octets);
            framed
        }
        None => line(cdr, context.node).into_bytes(),
    }
}

/// The octets of a file of these records.
pub fn encode(cdrs: &[Cdr], format: Format, frame: Frame<'_>) -> Vec<u8> {
    let body: Vec<u8> = cdrs.iter().flat_map(|cdr| record(cdr, format, frame.context)).collect();
    if format == Format::Json {
        return body;
    }
    let calendar = |moment_ms| frame.context.zone.calendar(moment_ms);
    let opened_ms = cdrs.iter().map(|cdr| cdr.closed_ms).min().unwrap_or(frame.now_ms);
    let header = FileHeader {
        opened: calendar(opened_ms),
        last_appended: calendar(frame.now_ms),
        cdrs: u32::try_from(cdrs.len()).unwrap_or(u32::MAX),
        sequence: frame.sequence,
        closure: frame.closure,
        address: frame.address,
        lost: frame.lost,
    };
    let mut octets = header.encode(body.len());
    octets.extend(body);
    octets
}

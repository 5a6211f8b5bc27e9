//! What a reader makes of a record: the fields that bills are made of.

use super::read::{Element, Malformed, elements};
use super::{chf, pgw};
use crate::user::from_tbcd;
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A record as it was read, from a file of whatever format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// `pgw`, `chf` or `json`.
    pub shape: &'static str,
    /// The node's number for the record; of BER the lower 32 bits.
    pub serial: u64,
    /// The session's charging ID.
    pub charging_id: u64,
    /// Counts the session's records; 1 where it is the only one.
    pub sequence: u64,
    /// The user: IMSI, or what there is.
    pub subscriber: Option<String>,
    /// The user's first address.
    pub address: Option<IpAddr>,
    /// When it was opened, as written.
    pub opened: String,
    /// In seconds.
    pub duration_s: u64,
    /// `CauseForRecClosing`.
    pub cause: u64,
    /// What was used.
    pub containers: Vec<SeenContainer>,
}

/// A container as it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SeenContainer {
    /// The rating group.
    pub rating_group: u64,
    /// The service, if it is told apart.
    pub service_id: Option<u64>,
    /// Bytes from the user.
    pub uplink_bytes: u64,
    /// Bytes to the user.
    pub downlink_bytes: u64,
    /// Seconds, if measured.
    pub time_s: Option<u64>,
}

/// Reads one record.
///
/// # Errors
/// Octets that are no record of those we write.
pub fn see(octets: &[u8]) -> Result<Seen, Malformed> {
    let (record, _) = Element::read(octets)?;
    match (record.is_context, record.number) {
        (true, pgw::field::RECORD) => of_pgw(&record),
        (true, chf::field::RECORD) => of_chf(&record),
        _ => Err(Malformed::Missing("PGWRecord or CHFRecord")),
    }
}

fn of_pgw(record: &Element<'_>) -> Result<Seen, Malformed> {
    use pgw::field::{
        ADDRESS, CAUSE, CHARGING_ID, DURATION, IMSI, NAI, OPENING_TIME, RECORD_TYPE, SEQUENCE, SERIAL,
        SERVICE_DATA,
    };
    let nai = || record.field(NAI).and_then(|it| it.field(1)).map(text);
    record.field(RECORD_TYPE).ok_or(Malformed::Missing("record type"))?;
    Ok(Seen {
        shape: "pgw",
        serial: number(record, SERIAL, "local sequence number")?,
        charging_id: number(record, CHARGING_ID, "charging ID")?,
        sequence: optional(record, SEQUENCE).unwrap_or(1),
        subscriber: record.field(IMSI).and_then(|imsi| from_tbcd(imsi.value)).or_else(nai),
        address: record.field(ADDRESS).and_then(|it| it.field(0)).and_then(|it| address(&it)),
        opened: time(record, OPENING_TIME)?,
        duration_s: number(record, DURATION, "duration")?,
        cause: number(record, CAUSE, "cause")?,
        containers: list(record, SERVICE_DATA).map(|it| of_condition(&it?)).collect::<Result<_, _>>()?,
    })
}

fn of_condition(it: &Element<'_>) -> Result<SeenContainer, Malformed> {
    use pgw::field::{DOWNLINK, RATING_GROUP, SERVICE_ID, TIME_USAGE, UPLINK};
    Ok(SeenContainer {
        rating_group: number(it, RATING_GROUP, "rating group")?,
        service_id: optional(it, SERVICE_ID),
        uplink_bytes: optional(it, UPLINK).unwrap_or(0),
        downlink_bytes: optional(it, DOWNLINK).unwrap_or(0),
        time_s: optional(it, TIME_USAGE),
    })
}

fn of_chf(record: &Element<'_>) -> Result<Seen, Malformed> {
    use chf::field::{
        CAUSE, CHARGING_ID, DURATION, OPENING_TIME, PDU_ADDRESS, PDU_SESSION, SEQUENCE, SERIAL, SUBSCRIBER,
        UNIT_USAGE,
    };
    let session = record.field(PDU_SESSION).ok_or(Malformed::Missing("PDU session"))?;
    let groups = list(record, UNIT_USAGE).map(|group| of_group(&group?));
    let groups: Vec<Vec<SeenContainer>> = groups.collect::<Result<_, _>>()?;
    let subscriber = record.field(SUBSCRIBER).and_then(|it| it.field(1));
    let addresses = session.field(PDU_ADDRESS);
    let first = addresses.and_then(|it| it.field(0).or_else(|| it.field(1)));
    Ok(Seen {
        shape: "chf",
        serial: number(record, SERIAL, "local record sequence number")?,
        charging_id: number(&session, CHARGING_ID, "charging ID")?,
        sequence: optional(record, SEQUENCE).unwrap_or(1),
        subscriber: subscriber.map(text),
        address: first.and_then(|it| address(&it)),
        opened: time(record, OPENING_TIME)?,
        duration_s: number(record, DURATION, "duration")?,
        cause: number(record, CAUSE, "cause")?,
        containers: groups.concat(),
    })
}

fn of_group(group: &Element<'_>) -> Result<Vec<SeenContainer>, Malformed> {
    use chf::field::{CONTAINERS, DOWNLINK, RATING_GROUP, SERVICE_ID, TIME, UPLINK};
    let rating_group = number(group, RATING_GROUP, "rating group")?;
    let container = |it: Element<'_>| SeenContainer {
        rating_group,
        service_id: optional(&it, SERVICE_ID),
        uplink_bytes: optional(&it, UPLINK).unwrap_or(0),
        downlink_bytes: optional(&it, DOWNLINK).unwrap_or(0),
        time_s: optional(&it, TIME),
    };
    list(group, CONTAINERS).map(|it| it.map(container)).collect()
}

fn text(of: Element<'_>) -> String {
    String::from_utf8_lossy(of.value).into_owned()
}

fn optional(of: &Element<'_>, field: u32) -> Option<u64> {
    of.field(field)?.number()
}

fn number(of: &Element<'_>, field: u32, name: &'static str) -> Result<u64, Malformed> {
    optional(of, field).ok_or(Malformed::Missing(name))
}

fn list<'a>(of: &Element<'a>, field: u32) -> impl Iterator<Item = Result<Element<'a>, Malformed>> {
    elements(of.field(field).map_or(&[], |it| it.value))
}

/// A `TimeStamp` in ISO 8601.
fn time(of: &Element<'_>, field: u32) -> Result<String, Malformed> {
    const MISSING: Malformed = Malformed::Missing("opening time");
    let value: [u8; 9] = of.field(field).and_then(|it| it.value.try_into().ok()).ok_or(MISSING)?;
    let [year, month, day, hour, minute, second, sign, hours, minutes] = value;
    let sign = if sign == b'-' { '-' } else { '+' };
    Ok(format!(
        "20{year:02x}-{month:02x}-{day:02x}T{hour:02x}:{minute:02x}:{second:02x}{sign}{hours:02x}:{minutes:02x}"
    ))
}

/// An `IPBinaryAddress`, with or without the length of a prefix.
fn address(of: &Element<'_>) -> Option<IpAddr> {
    const WITH_PREFIX: u32 = 4;
    let (it, _) = Element::read(of.value).ok()?;
    let it = if it.is_context && it.number == WITH_PREFIX { Element::read(it.value).ok()?.0 } else { it };
    let ipv4 = <[u8; 4]>::try_from(it.value).map(|octets| Ipv4Addr::from(octets).into());
    ipv4.or_else(|_| <[u8; 16]>::try_from(it.value).map(|octets| Ipv6Addr::from(octets).into())).ok()
}

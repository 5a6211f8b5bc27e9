//! What was used, and when to tell of it.

use super::take;
use crate::ErrorKind;
use crate::fields::Value;

/// Volume Threshold and Volume Quota, and those from a monitoring time on (TS 29.244 8.2.13, 8.2.50), in octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Volumes {
    /// TOVOL: both ways together.
    pub total: Option<u64>,
    /// ULVOL: from the user.
    pub uplink: Option<u64>,
    /// DLVOL: to the user.
    pub downlink: Option<u64>,
}

/// Volume Measurement (TS 29.244 8.2.44).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VolumeMeasurement {
    /// In octets.
    pub octets: Volumes,
    /// TONOP, ULNOP, DLNOP: in packets.
    pub packets: Volumes,
}

/// Dropped DL Traffic Threshold (TS 29.244 8.2.49).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DroppedTraffic {
    /// DLPA.
    pub packets: Option<u64>,
    /// DLBY.
    pub bytes: Option<u64>,
}

impl Volumes {
    const fn list(&self) -> [Option<u64>; 3] {
        [self.total, self.uplink, self.downlink]
    }

    const fn of([total, uplink, downlink]: [Option<u64>; 3]) -> Self {
        Self { total, uplink, downlink }
    }
}

impl Value for Volumes {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        read(bytes, ie).map(Self::of)
    }

    fn write(&self, out: &mut Vec<u8>) {
        write(&self.list(), out);
    }
}

impl Value for VolumeMeasurement {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let [a, b, c, d, e, f] = read(bytes, ie)?;
        Ok(Self { octets: Volumes::of([a, b, c]), packets: Volumes::of([d, e, f]) })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let ([a, b, c], [d, e, f]) = (self.octets.list(), self.packets.list());
        write(&[a, b, c, d, e, f], out);
    }
}

impl Value for DroppedTraffic {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let [packets, bytes] = read(bytes, ie)?;
        Ok(Self { packets, bytes })
    }

    fn write(&self, out: &mut Vec<u8>) {
        write(&[self.packets, self.bytes], out);
    }
}

/// An octet that tells which of the numbers follow, the first by its lowest bit.
fn read<const N: usize>(mut bytes: &[u8], ie: u16) -> Result<[Option<u64>; N], ErrorKind> {
    let rest = &mut bytes;
    let [flags] = take(rest, ie)?;
    let mut numbers = [None; N];
    for (bit, number) in numbers.iter_mut().enumerate() {
        if flags & (1 << bit) != 0 {
            *number = Some(u64::from_be_bytes(take(rest, ie)?));
        }
    }
    Ok(numbers)
}

fn write(numbers: &[Option<u64>], out: &mut Vec<u8>) {
    let flags = numbers.iter().rev().fold(0u8, |flags, number| flags << 1 | u8::from(number.is_some()));
    out.push(flags);
    out.extend(numbers.iter().flatten().flat_map(|number| number.to_be_bytes()));
}

/// Reporting Triggers (TS 29.244 8.2.19): bit n is bit n % 8 + 1 of octet 5 + n / 8. Kept as they came: earlier
/// releases have two octets, later ones three.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReportingTriggers(Vec<u8>);

impl ReportingTriggers {
    /// Every so often.
    pub const PERIO: u32 = 1;
    /// The volume threshold is reached.
    pub const VOLTH: u32 = 1 << 1;
    /// The time threshold is reached.
    pub const TIMTH: u32 = 1 << 2;
    /// The volume quota is used up.
    pub const VOLQU: u32 = 1 << 8;
    /// MAC addresses of the user: new ones, or some no longer in use.
    pub const MACAR: u32 = 1 << 11;
    /// The event threshold is reached.
    pub const EVETH: u32 = 1 << 12;
    /// The event quota is used up.
    pub const EVEQU: u32 = 1 << 13;
    /// The quota is no longer valid.
    pub const QUVTI: u32 = 1 << 15;

    /// On three octets.
    pub fn new(bits: u32) -> Self {
        Self(bits.to_le_bytes().into_iter().take(3).collect())
    }

    /// The first 32 of them.
    pub fn bits(&self) -> u32 {
        bits(&self.0)
    }
}

impl Value for ReportingTriggers {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        if bytes.is_empty() { Err(ErrorKind::InvalidLength(ie)) } else { Ok(Self(bytes.to_vec())) }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

/// Usage Report Trigger (TS 29.244 8.2.41), a set of the bits named here, on three octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UsageReportTrigger(pub u32);

impl UsageReportTrigger {
    /// The measurement period is over.
    pub const PERIO: u32 = 1;
    /// The volume threshold is reached.
    pub const VOLTH: u32 = 1 << 1;
    /// The time threshold is reached.
    pub const TIMTH: u32 = 1 << 2;
    /// No packets for the quota holding time.
    pub const QUHTI: u32 = 1 << 3;
    /// Traffic has started.
    pub const START: u32 = 1 << 4;
    /// Immediate: the control plane asked.
    pub const IMMER: u32 = 1 << 7;
    /// Traffic stopped.
    pub const STOPT: u32 = 1 << 5;
    /// Dropped downlink traffic crossed its threshold.
    pub const DROTH: u32 = 1 << 6;
    /// The volume quota is used up.
    pub const VOLQU: u32 = 1 << 8;
    /// The time quota is used up.
    pub const TIMQU: u32 = 1 << 9;
    /// A linked URR reports.
    pub const LIUSA: u32 = 1 << 10;
    /// The session or the rule ends.
    pub const TERMR: u32 = 1 << 11;
    /// The monitoring time has come.
    pub const MONIT: u32 = 1 << 12;
    /// MAC addresses of the user: new ones, or some no longer in use.
    pub const MACAR: u32 = 1 << 14;
    /// The event threshold is reached.
    pub const EVETH: u32 = 1 << 15;
    /// The event quota is used up.
    pub const EVEQU: u32 = 1 << 16;
    /// The quota is no longer valid.
    pub const QUVTI: u32 = 1 << 19;

    /// Whether all of `bits` are set.
    pub const fn contains(self, bits: u32) -> bool {
        self.0 & bits == bits
    }
}

impl Value for UsageReportTrigger {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let known = bytes.get(..3).unwrap_or(bytes);
        if bytes.is_empty() { Err(ErrorKind::InvalidLength(ie)) } else { Ok(Self(bits(known))) }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.0.to_le_bytes().into_iter().take(3));
    }
}

fn bits(octets: &[u8]) -> u32 {
    octets.iter().take(4).rev().fold(0, |bits, octet| bits << 8 | u32::from(*octet))
}

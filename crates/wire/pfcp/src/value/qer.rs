//! How much may pass.

use super::blame;
use crate::ErrorKind;
use crate::fields::Value;
use rs_pfcp::ie::mbr::Mbr;

/// One direction's gate (TS 29.244 8.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Packets pass.
    Open,
    /// Packets are dropped.
    Closed,
}

impl Gate {
    /// 2 and 3 are for future use and, if received, closed (8.2.7).
    const fn from_bits(bits: u8) -> Self {
        if bits & 0x03 == 0 { Self::Open } else { Self::Closed }
    }

    const fn bits(self) -> u8 {
        match self {
            Self::Open => 0,
            Self::Closed => 1,
        }
    }
}

/// Gate Status (TS 29.244 8.2.7). Coded here: `rs-pfcp` looks for the uplink's gate in the downlink's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateStatus {
    /// From the user.
    pub uplink: Gate,
    /// To the user.
    pub downlink: Gate,
}

impl Value for GateStatus {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let octet = u8::read(bytes, ie)?;
        Ok(Self { uplink: Gate::from_bits(octet >> 2), downlink: Gate::from_bits(octet) })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.uplink.bits() << 2 | self.downlink.bits());
    }
}

/// MBR and GBR (TS 29.244 8.2.8 and 8.2.9), which look the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// 40 bits.
    pub uplink_kbps: u64,
    /// 40 bits.
    pub downlink_kbps: u64,
}

impl Value for Rates {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let wire = Mbr::unmarshal(bytes).map_err(|error| blame(&error, ie))?;
        Ok(Self { uplink_kbps: wire.uplink, downlink_kbps: wire.downlink })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&Mbr::new(self.uplink_kbps, self.downlink_kbps).marshal());
    }
}

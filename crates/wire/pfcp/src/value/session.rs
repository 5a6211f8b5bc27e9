//! What a session as a whole is called and is.

use super::blame;
use crate::ErrorKind;
use crate::fields::Value;
use rs_pfcp::ie::fseid::Fseid;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// F-SEID (TS 29.244 8.2.37): one side's name for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FSeid {
    /// Unique at that side.
    pub seid: u64,
    /// That side's IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// That side's IPv6 address.
    pub ipv6: Option<Ipv6Addr>,
}

impl FSeid {
    /// One with an address of either family.
    pub const fn new(seid: u64, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self { seid, ipv4: Some(address), ipv6: None },
            IpAddr::V6(address) => Self { seid, ipv4: None, ipv6: Some(address) },
        }
    }

    /// The IPv4 address where there are both.
    pub fn address(&self) -> Option<IpAddr> {
        self.ipv4.map(IpAddr::V4).or(self.ipv6.map(IpAddr::V6))
    }
}

impl Value for FSeid {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let wire = Fseid::unmarshal(bytes).map_err(|error| blame(&error, ie))?;
        let value = Self { seid: wire.seid.0, ipv4: wire.ipv4_address, ipv6: wire.ipv6_address };
        // At least one of V4 and V6 shall be set.
        value.address().map(|_| value).ok_or(ErrorKind::MandatoryIeIncorrect(ie))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&Fseid::new(self.seid, self.ipv4, self.ipv6).marshal());
    }
}

/// PDN Type (TS 29.244 8.2.79).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PdnType {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// Both.
    Ipv4v6,
    /// Neither.
    NonIp,
    /// Ethernet.
    Ethernet,
    /// One of a release after ours.
    Other(u8),
}

impl Value for PdnType {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        Ok(match u8::read(bytes, ie)? & 0x07 {
            1 => Self::Ipv4,
            2 => Self::Ipv6,
            3 => Self::Ipv4v6,
            4 => Self::NonIp,
            5 => Self::Ethernet,
            other => Self::Other(other),
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Self::Ipv4 => 1,
            Self::Ipv6 => 2,
            Self::Ipv4v6 => 3,
            Self::NonIp => 4,
            Self::Ethernet => 5,
            Self::Other(other) => other & 0x07,
        });
    }
}

/// Report Type (TS 29.244 8.2.21), a set of the bits named here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportType(pub u8);

impl ReportType {
    /// Downlink Data Report.
    pub const DLDR: u8 = 1;
    /// Usage Report.
    pub const USAR: u8 = 1 << 1;
    /// Error Indication Report.
    pub const ERIR: u8 = 1 << 2;
    /// User Plane Inactivity Report.
    pub const UPIR: u8 = 1 << 3;
    /// UP Initiated Session Request: for the reason that the flags tell.
    pub const UISR: u8 = 1 << 6;

    /// Whether all of `bits` are set.
    pub const fn contains(self, bits: u8) -> bool {
        self.0 & bits == bits
    }
}

impl Value for ReportType {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        u8::read(bytes, ie).map(Self)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.0);
    }
}

/// Bits of the one-octet flag IEs.
pub mod flags {
    /// Drop what is buffered: PFCPSMReq-Flags (TS 29.244 8.2.31).
    pub const PFCPSM_DROBU: u8 = 1;
    /// Send End Marker packets: PFCPSMReq-Flags.
    pub const PFCPSM_SNDEM: u8 = 1 << 1;
    /// Query all URRs: PFCPSMReq-Flags.
    pub const PFCPSM_QAURR: u8 = 1 << 2;
    /// Stop measuring, for a pause of charging: PFCPSMReq-Flags.
    pub const PFCPSM_SUMPC: u8 = 1 << 3;
    /// Measure again: PFCPSMReq-Flags.
    pub const PFCPSM_RUMUC: u8 = 1 << 4;
    /// Begin without measuring, for a pause of charging: PFCPSEReq-Flags.
    pub const PFCPSE_SUMPC: u8 = 1 << 1;
    /// Restoration indication: PFCPSEReq-Flags.
    pub const PFCPSE_RESTI: u8 = 1;
    /// Drop what is buffered: PFCPSRRsp-Flags (TS 29.244 8.2.32).
    pub const PFCPSRRSP_DROBU: u8 = 1;
    /// Sessions that were to be retained are there: PFCPASRsp-Flags (TS 29.244 8.2.134).
    pub const PFCPASRSP_PSREI: u8 = 1;
    /// The user plane has deleted the session: PFCPSRReq-Flags (TS 29.244 8.2.112).
    pub const PFCPSRREQ_PSDBU: u8 = 1;
    /// Measure before QoS enforcement: Measurement Information (TS 29.244 8.2.68).
    pub const MEASUREMENT_MBQE: u8 = 1;
    /// Do not measure: Measurement Information.
    pub const MEASUREMENT_INAM: u8 = 1 << 1;
    /// Tell no more of detected applications than their names: Measurement Information.
    pub const MEASUREMENT_RADI: u8 = 1 << 2;
    /// Start measuring time at once: Measurement Information.
    pub const MEASUREMENT_ISTM: u8 = 1 << 3;
    /// Measure packets, too: Measurement Information.
    pub const MEASUREMENT_MNOP: u8 = 1 << 4;
    /// Durations: Measurement Method (TS 29.244 8.2.40).
    pub const METHOD_DURAT: u8 = 1;
    /// Volumes: Measurement Method.
    pub const METHOD_VOLUM: u8 = 1 << 1;
    /// Events: Measurement Method.
    pub const METHOD_EVENT: u8 = 1 << 2;
    /// Used before the monitoring time: Usage Information (TS 29.244 8.2.60).
    pub const USAGE_BEF: u8 = 1;
    /// Used after the monitoring time: Usage Information.
    pub const USAGE_AFT: u8 = 1 << 1;
    /// A user plane path failed: Node Report Type (TS 29.244 8.2.69).
    pub const NODE_REPORT_UPFR: u8 = 1;
    /// A user plane path recovered: Node Report Type.
    pub const NODE_REPORT_UPRR: u8 = 1 << 1;
    /// A GTP-U peer was restarted: Node Report Type.
    pub const NODE_REPORT_PURR: u8 = 1 << 4;
    /// The sender asks to be released: PFCP Association Release Request (TS 29.244 8.2.77).
    pub const RELEASE_SARR: u8 = 1;
    /// IPv4: IP version (TS 29.244 8.2.173).
    pub const IP_VERSION_V4: u8 = 1;
    /// IPv6: IP version.
    pub const IP_VERSION_V6: u8 = 1 << 1;
    /// It holds for the node, not for the sessions of an address: OCI Flags (TS 29.244 8.2.76).
    pub const OCI_AOCI: u8 = 1;
    /// Ethernet PDU Session Information: the PDI is of an Ethernet PDU session (8.2.102).
    pub const ETHERNET_ETHI: u8 = 1;
    /// Ethernet Filter Properties: bidirectional (8.2.99).
    pub const ETHERNET_FILTER_BIDE: u8 = 1;

    /// A timer of three bits of unit and five of value, rounded up (TS 29.244 8.2.29, 8.2.35 and 8.2.78): units are 2 s, 1 min,
    /// 10 min, 1 h and 10 h; `None` is for ever.
    pub const fn timer(seconds: Option<u64>) -> u8 {
        const UNITS_S: [u64; 5] = [2, 60, 600, 3_600, 36_000];
        let Some(seconds) = seconds else { return 7 << 5 };
        let mut unit = 0;
        while unit < UNITS_S.len() {
            #[expect(
                clippy::indexing_slicing,
                reason = "iterators are not for constants; the loop ends before"
            )]
            let value = seconds.div_ceil(UNITS_S[unit]);
            if value < 32 {
                return (unit as u8) << 5 | value as u8;
            }
            unit += 1;
        }
        7 << 5
    }

    /// The seconds of a timer; `None` is for ever.
    pub const fn timer_s(octet: u8) -> Option<u64> {
        let value = (octet & 0x1F) as u64;
        match octet >> 5 {
            0 => Some(value * 2),
            2 => Some(value * 600),
            3 => Some(value * 3_600),
            4 => Some(value * 36_000),
            7 => None,
            // 1 is minutes, and what is not defined reads as minutes.
            _ => Some(value * 60),
        }
    }
}

//! What is told of packets that are kept, and how many to keep.

use super::take;
use crate::ErrorKind;
use crate::fields::Value;

/// Downlink Data Service Information (TS 29.244 8.2.27).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DownlinkDataServiceInformation {
    /// PPI: the DSCP of the packet, 0 to 63.
    pub paging_policy_indication: Option<u8>,
    /// QFII: the QoS flow it would have gone in, 0 to 63.
    pub qfi: Option<u8>,
}

impl Value for DownlinkDataServiceInformation {
    fn read(mut bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let rest = &mut bytes;
        let [flags] = take(rest, ie)?;
        let mut six_bits = |bit: u8| -> Result<Option<u8>, ErrorKind> {
            let octet = if flags & bit == 0 { None } else { Some(take::<1>(rest, ie)?) };
            Ok(octet.map(|[octet]| octet & 0x3F))
        };
        Ok(Self { paging_policy_indication: six_bits(1)?, qfi: six_bits(2)? })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let Self { paging_policy_indication: ppi, qfi } = self;
        out.push(u8::from(ppi.is_some()) | u8::from(qfi.is_some()) << 1);
        out.extend(ppi.iter().chain(qfi).map(|octet| octet & 0x3F));
    }
}

/// DL Buffering Suggested Packet Count (TS 29.244 8.2.30): one octet, or two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PacketCount(pub u16);

impl Value for PacketCount {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        match bytes {
            [] => Err(ErrorKind::InvalidLength(ie)),
            [one] => Ok(Self(u16::from(*one))),
            [high, low, ..] => Ok(Self(u16::from_be_bytes([*high, *low]))),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match u8::try_from(self.0) {
            Ok(one) => out.push(one),
            Err(_) => out.extend_from_slice(&self.0.to_be_bytes()),
        }
    }
}

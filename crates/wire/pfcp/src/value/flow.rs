//! Flows of applications that were detected.

use super::take;
use crate::ErrorKind;
use crate::fields::Value;

/// Flow Information (TS 29.244 8.2.61).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowInformation {
    /// Flow Direction, the lower three bits: a constant of this type (TS 29.212 5.3.65).
    pub direction: u8,
    /// An IPFilterRule, as in SDF filters (TS 29.212 5.4.2).
    pub description: Vec<u8>,
}

impl FlowInformation {
    /// Nobody says.
    pub const UNSPECIFIED: u8 = 0;
    /// To the user.
    pub const DOWNLINK: u8 = 1;
    /// From the user.
    pub const UPLINK: u8 = 2;
    /// Both ways.
    pub const BIDIRECTIONAL: u8 = 3;
}

impl Value for FlowInformation {
    fn read(mut bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let [direction] = take(&mut bytes, ie)?;
        let length = u16::from_be_bytes(take(&mut bytes, ie)?);
        let description = bytes.get(..usize::from(length)).ok_or(ErrorKind::InvalidLength(ie))?;
        Ok(Self { direction: direction & 7, description: description.to_vec() })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.direction & 7);
        // What is longer than its length can tell makes an IE that is too long, which is left out whole.
        out.extend((self.description.len().min(usize::from(u16::MAX)) as u16).to_be_bytes());
        out.extend_from_slice(&self.description);
    }
}

//! Values of single IEs, by what they are about.

mod buffering;
mod cause;
mod ethernet;
mod far;
mod flow;
mod node;
mod pdr;
mod pfd;
mod qer;
mod session;
mod set;
mod usage;

pub use buffering::{DownlinkDataServiceInformation, PacketCount};
pub use cause::{Cause, FailedRuleId};
pub use ethernet::{Mac, MacAddressList, MacAddresses, VlanTag};
pub use far::{
    ApplyAction, DestinationInterface, HeaderEnrichment, OuterHeaderCreation, RedirectInformation,
};
pub use flow::FlowInformation;
pub use node::{CpFeature, CpFunctionFeatures, NodeId, UpFeature, UpFunctionFeatures};
pub use pdr::{FTeid, NetworkInstance, OuterHeaderRemoval, SdfFilter, SourceInterface, UeIpAddress};
pub use pfd::{DomainName, PfdContents};
pub use qer::{Gate, GateStatus, Rates};
pub use session::{FSeid, PdnType, ReportType, flags};
pub use set::{CpIpAddress, FqCsid, PoolIdentity, RemoteGtpuPeer};
pub use usage::{DroppedTraffic, ReportingTriggers, UsageReportTrigger, VolumeMeasurement, Volumes};

use crate::ErrorKind;
use rs_pfcp::error::PfcpError;

/// What `rs-pfcp` found wrong, in our terms.
fn blame(error: &PfcpError, ie: u16) -> ErrorKind {
    match error {
        PfcpError::InvalidLength { .. } => ErrorKind::InvalidLength(ie),
        _ => ErrorKind::MandatoryIeIncorrect(ie),
    }
}

/// The first octets of `bytes`, which then starts after them.
fn take<const N: usize>(bytes: &mut &[u8], ie: u16) -> Result<[u8; N], ErrorKind> {
    let (taken, rest) = bytes.split_first_chunk().ok_or(ErrorKind::InvalidLength(ie))?;
    *bytes = rest;
    Ok(*taken)
}

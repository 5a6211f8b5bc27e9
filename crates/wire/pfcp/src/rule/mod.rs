//! Grouped IEs: the rules of a session.

mod bar;
mod endpoint;
mod ethernet;
mod far;
mod pdr;
mod qer;
mod usage;

pub use bar::{CreateBar, RemoveBar, UpdateBar, UpdateBarInReport};
pub use endpoint::{
    CreateTrafficEndpoint, CreatedTrafficEndpoint, RemoveTrafficEndpoint, UpdateTrafficEndpoint,
};
pub use ethernet::{EthernetPacketFilter, EthernetTrafficInformation};
pub use far::{
    CreateFar, DuplicatingParameters, ForwardingParameters, RemoveFar, UpdateDuplicatingParameters,
    UpdateFar, UpdateForwardingParameters,
};
pub use pdr::{CreatePdr, CreatedPdr, Pdi, RemovePdr, UpdatePdr};
pub use qer::{CreateQer, RemoveQer, UpdateQer};
pub use usage::{
    AdditionalMonitoringTime, ApplicationDetectionInformation, CreateUrr, QueryUrr, RemoveUrr, UpdateUrr,
    UsageReport,
};

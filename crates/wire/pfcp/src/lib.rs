//! PFCP (TS 29.244) between bytes and values.
//!
//! [`decode`] reads a datagram into a [`Message`], [`encode`] writes one. What cannot be read is a [`DecodeError`]
//! that says what the specification wants done about it: stay silent, answer with a cause and the offending IE, or
//! name the version we speak. Every group is walked here, so the IE to blame is always known, and what a group
//! carries beyond what we decode is kept in its `carried` list: unknown and vendor IEs never fail a message.
//!
//! Several values are coded by `rs-pfcp`; none of its types shows. Where it differs from the specification or from
//! what real control planes send, the value is coded here and a comment says why.

mod error;
mod fields;
mod header;
pub mod ie;
mod message;
mod names;
pub mod request;
mod rule;
mod value;

pub use error::{DecodeError, ErrorKind};
pub use fields::RawIe;
pub use header::{Header, peek};
pub use message::{
    ApplicationPfds, AssociationReleaseRequest, AssociationReleaseResponse, AssociationSetupRequest,
    AssociationSetupResponse, AssociationUpdateRequest, AssociationUpdateResponse, Body, DownlinkDataReport,
    ErrorIndicationReport, HeartbeatRequest, HeartbeatResponse, LoadControlInformation, Message,
    NodeReportRequest, NodeReportResponse, OverloadControlInformation, PathReport, PfdContext,
    PfdManagementRequest, PfdManagementResponse, PoolInformation, SessionChangeInfo, SessionDeletionRequest,
    SessionDeletionResponse, SessionEstablishmentRequest, SessionEstablishmentResponse,
    SessionModificationRequest, SessionModificationResponse, SessionReportRequest, SessionReportResponse,
    SessionRetentionInformation, SessionSetDeletionRequest, SessionSetDeletionResponse,
    SessionSetModificationRequest, SessionSetModificationResponse, VersionNotSupportedResponse, decode,
    encode,
};
pub use rule::{
    AdditionalMonitoringTime, ApplicationDetectionInformation, CreateBar, CreateFar, CreatePdr, CreateQer,
    CreateTrafficEndpoint, CreateUrr, CreatedPdr, CreatedTrafficEndpoint, DuplicatingParameters,
    EthernetPacketFilter, EthernetTrafficInformation, ForwardingParameters, Pdi, QueryUrr, RemoveBar,
    RemoveFar, RemovePdr, RemoveQer, RemoveTrafficEndpoint, RemoveUrr, UpdateBar, UpdateBarInReport,
    UpdateDuplicatingParameters, UpdateFar, UpdateForwardingParameters, UpdatePdr, UpdateQer,
    UpdateTrafficEndpoint, UpdateUrr, UsageReport,
};
pub use value::{
    ApplyAction, Cause, CpFeature, CpFunctionFeatures, CpIpAddress, DestinationInterface, DomainName,
    DownlinkDataServiceInformation, DroppedTraffic, FSeid, FTeid, FailedRuleId, FlowInformation, FqCsid,
    Gate, GateStatus, HeaderEnrichment, Mac, MacAddressList, MacAddresses, NetworkInstance, NodeId,
    OuterHeaderCreation, OuterHeaderRemoval, PacketCount, PdnType, PfdContents, PoolIdentity, Rates,
    RedirectInformation, RemoteGtpuPeer, ReportType, ReportingTriggers, SdfFilter, SourceInterface,
    UeIpAddress, UpFeature, UpFunctionFeatures, UsageReportTrigger, VlanTag, VolumeMeasurement, Volumes,
    flags,
};

/// The UDP port PFCP is served at (TS 29.244 6.1).
pub const PORT: u16 = 8805;

/// The version of PFCP spoken here (TS 29.244 7.2.2.1).
pub const VERSION: u8 = 1;

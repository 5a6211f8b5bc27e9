//! Messages whole.

mod load;
mod node;
mod pfd;
mod report;
mod session;
mod set;

pub use load::{LoadControlInformation, OverloadControlInformation};
pub use node::{
    AssociationReleaseRequest, AssociationReleaseResponse, AssociationSetupRequest, AssociationSetupResponse,
    AssociationUpdateRequest, AssociationUpdateResponse, HeartbeatRequest, HeartbeatResponse,
    PoolInformation, SessionRetentionInformation, VersionNotSupportedResponse,
};
pub use pfd::{ApplicationPfds, PfdContext, PfdManagementRequest, PfdManagementResponse};
pub use report::{DownlinkDataReport, ErrorIndicationReport, SessionReportRequest, SessionReportResponse};
pub use session::{
    SessionDeletionRequest, SessionDeletionResponse, SessionEstablishmentRequest,
    SessionEstablishmentResponse, SessionModificationRequest, SessionModificationResponse,
};
pub use set::{
    NodeReportRequest, NodeReportResponse, PathReport, SessionChangeInfo, SessionSetDeletionRequest,
    SessionSetDeletionResponse, SessionSetModificationRequest, SessionSetModificationResponse,
};

use crate::fields::{Fields, Value};
use crate::value::FSeid;
use crate::{DecodeError, ErrorKind, Header, VERSION, header, ie};

/// A PFCP message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The receiver's name for the session, 0 where the receiver has none yet; absent in node related messages.
    pub seid: Option<u64>,
    /// 24 bits; a response repeats its request's.
    pub sequence: u32,
    /// 0, the highest, to 15.
    pub priority: Option<u8>,
    /// What it says.
    pub body: Body,
}

impl Message {
    /// A node related message.
    pub fn node(sequence: u32, body: impl Into<Body>) -> Self {
        Self { seid: None, sequence, priority: None, body: body.into() }
    }

    /// A session related message.
    pub fn session(seid: u64, sequence: u32, body: impl Into<Body>) -> Self {
        Self { seid: Some(seid), sequence, priority: None, body: body.into() }
    }
}

macro_rules! bodies {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// What a message says, by type (TS 29.244 7.3).
        #[expect(clippy::large_enum_variant, reason = "the largest are the usual ones, and they do not live long")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Body {
            $($(#[$doc])* $name($name),)*
        }

        impl Body {
            /// Its message type.
            pub const fn message_type(&self) -> u8 {
                match self {
                    $(Self::$name(_) => $number,)*
                }
            }

            fn read(message_type: u8, bytes: &[u8]) -> Result<Self, ErrorKind> {
                match message_type {
                    $($number => $name::read(bytes, MESSAGE).map(Self::$name),)*
                    other => Err(ErrorKind::UnknownMessage(other)),
                }
            }

            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name(body) => body.write(out),)*
                }
            }
        }

        $(impl From<$name> for Body {
            fn from(body: $name) -> Self {
                Self::$name(body)
            }
        })*
    };
}

bodies! {
    /// Are you there?
    HeartbeatRequest = 1,
    /// Yes.
    HeartbeatResponse = 2,
    /// This is what applications look like.
    PfdManagementRequest = 3,
    /// Answers [`PfdManagementRequest`].
    PfdManagementResponse = 4,
    /// Let us work together.
    AssociationSetupRequest = 5,
    /// Answers [`AssociationSetupRequest`].
    AssociationSetupResponse = 6,
    /// What I can do has changed.
    AssociationUpdateRequest = 7,
    /// Answers [`AssociationUpdateRequest`].
    AssociationUpdateResponse = 8,
    /// Let us part.
    AssociationReleaseRequest = 9,
    /// Answers [`AssociationReleaseRequest`].
    AssociationReleaseResponse = 10,
    /// Speak the version of this header.
    VersionNotSupportedResponse = 11,
    /// Something happened to the node.
    NodeReportRequest = 12,
    /// Answers [`NodeReportRequest`].
    NodeReportResponse = 13,
    /// End all sessions of a set.
    SessionSetDeletionRequest = 14,
    /// Answers [`SessionSetDeletionRequest`].
    SessionSetDeletionResponse = 15,
    /// Another control plane has the sessions of a set.
    SessionSetModificationRequest = 16,
    /// Answers [`SessionSetModificationRequest`].
    SessionSetModificationResponse = 17,
    /// Make a session.
    SessionEstablishmentRequest = 50,
    /// Answers [`SessionEstablishmentRequest`].
    SessionEstablishmentResponse = 51,
    /// Change a session.
    SessionModificationRequest = 52,
    /// Answers [`SessionModificationRequest`].
    SessionModificationResponse = 53,
    /// End a session.
    SessionDeletionRequest = 54,
    /// Answers [`SessionDeletionRequest`].
    SessionDeletionResponse = 55,
    /// Something happened in a session.
    SessionReportRequest = 56,
    /// Answers [`SessionReportRequest`].
    SessionReportResponse = 57,
}

/// Blamed for octets too few to be an IE at a message's end: no IE has the number 0.
const MESSAGE: u16 = 0;

/// Reads a datagram.
///
/// # Errors
/// What is wrong with it, and what an answer needs. See [`ErrorKind`].
pub fn decode(bytes: &[u8]) -> Result<Message, DecodeError> {
    let fail = |kind| DecodeError { header: header::peek(bytes), cp_f_seid: None, kind };
    if let Some(Header { version, .. }) = header::peek(bytes).filter(|header| header.version != VERSION) {
        return Err(fail(ErrorKind::UnsupportedVersion(version)));
    }
    let (header, rest) = header::read(bytes).map_err(fail)?;
    let body = Body::read(header.message_type, rest)
        .map_err(|kind| DecodeError { cp_f_seid: cp_f_seid(&header, rest), ..fail(kind) })?;
    Ok(Message { seid: header.seid, sequence: header.sequence, priority: header.priority, body })
}

/// The CP F-SEID of a Session Establishment Request that is not right otherwise.
fn cp_f_seid(header: &Header, body: &[u8]) -> Option<FSeid> {
    let mut fields = Fields::cut(body, MESSAGE).ok().filter(|_| header.message_type == 50)?;
    fields.opt(ie::F_SEID).ok().flatten()
}

/// Writes a datagram.
pub fn encode(message: &Message) -> Vec<u8> {
    let header = Header {
        version: VERSION,
        message_type: message.body.message_type(),
        seid: message.seid,
        sequence: message.sequence,
        priority: message.priority,
    };
    header::write(&header, |out| message.body.write(out))
}

//! Why a datagram is not a message, and what its sender should be told.

use crate::{Cause, FSeid, Header, ie};

/// A datagram that cannot be handled as a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct DecodeError {
    /// The header, where there is one: an answer goes by its sequence number.
    pub header: Option<Header>,
    /// The sender's name for the session, where a Session Establishment Request still tells it: a refusal
    /// carries its SEID in the header (TS 29.244 7.2.2.4.2).
    pub cp_f_seid: Option<FSeid>,
    /// What is wrong.
    pub kind: ErrorKind,
}

/// What is wrong with a datagram (TS 29.244 7.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    /// Too short for its header, or for the length its header tells: to be dropped silently (7.6.3).
    #[error("not a PFCP message")]
    Garbage,
    /// To be answered by a Version Not Supported Response (7.6.2).
    #[error("PFCP version {0}")]
    UnsupportedVersion(u8),
    /// A message type we do not handle: to be dropped silently (7.6.4).
    #[error("message type {0} is not handled")]
    UnknownMessage(u8),
    /// An IE that must be there is not (7.6.6).
    #[error("mandatory {} is missing", ie::Name(*.0))]
    MandatoryIeMissing(u16),
    /// An IE that what else is there calls for is not there (7.6.6).
    #[error("conditional {} is missing", ie::Name(*.0))]
    ConditionalIeMissing(u16),
    /// An IE is longer than what it stands in, or too short for what it says (7.6.7).
    #[error("{} has an invalid length", ie::Name(*.0))]
    InvalidLength(u16),
    /// An IE holds a value that has no meaning (7.6.8).
    #[error("{} is incorrect", ie::Name(*.0))]
    MandatoryIeIncorrect(u16),
}

impl ErrorKind {
    /// The cause and the Offending IE of an answer; `None` where no answer is due, or one of another kind.
    pub const fn cause(self) -> Option<(Cause, u16)> {
        match self {
            Self::Garbage | Self::UnsupportedVersion(_) | Self::UnknownMessage(_) => None,
            Self::MandatoryIeMissing(ie) => Some((Cause::MandatoryIeMissing, ie)),
            Self::ConditionalIeMissing(ie) => Some((Cause::ConditionalIeMissing, ie)),
            Self::InvalidLength(ie) => Some((Cause::InvalidLength, ie)),
            Self::MandatoryIeIncorrect(ie) => Some((Cause::MandatoryIeIncorrect, ie)),
        }
    }
}

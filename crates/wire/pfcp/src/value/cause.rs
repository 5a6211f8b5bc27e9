//! How a request ended.

use super::take;
use crate::ErrorKind;
use crate::fields::Value;

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// Cause (TS 29.244 8.2.1).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Cause {
            $($(#[$doc])* $name,)*
            /// One of a release after ours.
            Other(u8),
        }

        impl Cause {
            /// Its number.
            pub const fn number(self) -> u8 {
                match self {
                    $(Self::$name => $number,)*
                    Self::Other(number) => number,
                }
            }

            /// The cause of a number.
            pub const fn from_number(number: u8) -> Self {
                match number {
                    $($number => Self::$name,)*
                    other => Self::Other(other),
                }
            }
        }
    };
}

causes! {
    /// Done.
    RequestAccepted = 1,
    /// Done, and more usage reports follow.
    MoreUsageReportToSend = 2,
    /// Done in part.
    RequestPartiallyAccepted = 3,
    /// For no reason listed.
    RequestRejected = 64,
    /// No session of that SEID.
    SessionContextNotFound = 65,
    /// An IE that must be there is not.
    MandatoryIeMissing = 66,
    /// An IE that what else is there calls for is not there.
    ConditionalIeMissing = 67,
    /// An IE does not fit its length.
    InvalidLength = 68,
    /// An IE has a value without meaning.
    MandatoryIeIncorrect = 69,
    /// No forwarding policy of that name.
    InvalidForwardingPolicy = 70,
    /// The F-TEID was to be allocated by the other side.
    InvalidFTeidAllocationOption = 71,
    /// The sender has no association.
    NoEstablishedPfcpAssociation = 72,
    /// A rule could not be made or changed.
    RuleCreationModificationFailure = 73,
    /// Too much to do.
    PfcpEntityInCongestion = 74,
    /// No room.
    NoResourcesAvailable = 75,
    /// Asked for what is not offered.
    ServiceNotSupported = 76,
    /// A fault on our side.
    SystemFailure = 77,
    /// Another node should be asked.
    RedirectionRequested = 78,
    /// No address is free.
    AllDynamicAddressesAreOccupied = 79,
    /// No predefined rule of that name.
    UnknownPredefinedRule = 80,
    /// No application of that name.
    UnknownApplicationId = 81,
}

impl Cause {
    /// Whether the request was done.
    pub const fn is_accepted(self) -> bool {
        self.number() < 64
    }
}

impl Value for Cause {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        u8::read(bytes, ie).map(Self::from_number)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.number());
    }
}

/// Failed Rule ID (TS 29.244 8.2.80). Coded here: `rs-pfcp` does not know BARs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailedRuleId {
    /// A PDR.
    Pdr(u16),
    /// A FAR.
    Far(u32),
    /// A QER.
    Qer(u32),
    /// A URR.
    Urr(u32),
    /// A BAR.
    Bar(u8),
}

impl Value for FailedRuleId {
    fn read(mut bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let [kind] = take(&mut bytes, ie)?;
        match kind & 0x0F {
            0 => u16::read(bytes, ie).map(Self::Pdr),
            1 => u32::read(bytes, ie).map(Self::Far),
            2 => u32::read(bytes, ie).map(Self::Qer),
            3 => u32::read(bytes, ie).map(Self::Urr),
            4 => u8::read(bytes, ie).map(Self::Bar),
            _ => Err(ErrorKind::MandatoryIeIncorrect(ie)),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let (kind, id) = match *self {
            Self::Pdr(id) => (0, id.to_be_bytes().to_vec()),
            Self::Far(id) => (1, id.to_be_bytes().to_vec()),
            Self::Qer(id) => (2, id.to_be_bytes().to_vec()),
            Self::Urr(id) => (3, id.to_be_bytes().to_vec()),
            Self::Bar(id) => (4, vec![id]),
        };
        out.push(kind);
        out.extend_from_slice(&id);
    }
}

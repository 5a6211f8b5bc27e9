//! Why a procedure failed, in one sentence.

use super::Purpose;
use pfcp::{Cause, ErrorKind, FailedRuleId, ie};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};

/// A procedure that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The user plane.
    pub upf: SocketAddrV4,
    /// The procedure.
    pub procedure: Procedure,
    /// Whose session, if it is about one.
    pub ue: Option<Ipv4Addr>,
    /// Why.
    pub reason: Reason,
}

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Procedure {
    /// Association Setup.
    AssociationSetup,
    /// Heartbeat.
    Heartbeat,
    /// Association Release.
    AssociationRelease,
    /// Session Establishment.
    SessionEstablishment,
    /// Session Modification.
    SessionModification,
    /// Session Deletion.
    SessionDeletion,
}

/// Why it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// N1 requests went unanswered.
    Silence,
    /// It was refused.
    Refused {
        /// The cause.
        cause: Cause,
        /// The IE to blame.
        offending_ie: Option<u16>,
        /// The rule to blame.
        failed_rule: Option<FailedRuleId>,
    },
    /// The answer cannot be read.
    Unreadable(ErrorKind),
    /// The answer is that to another request.
    Mismatch,
    /// The answer names a session that is not the one asked about, or none.
    Seid(Option<u64>),
    /// It was accepted without an IE that acceptance needs.
    Incomplete(u16),
}

impl From<Purpose> for Procedure {
    fn from(purpose: Purpose) -> Self {
        match purpose {
            Purpose::Setup => Self::AssociationSetup,
            Purpose::Heartbeat => Self::Heartbeat,
            Purpose::Release => Self::AssociationRelease,
            Purpose::Establish(_) => Self::SessionEstablishment,
            Purpose::Modify(_) | Purpose::Sleep(_) | Purpose::Wake(_) | Purpose::Change(..) => {
                Self::SessionModification
            }
            Purpose::Delete(_) => Self::SessionDeletion,
        }
    }
}

impl fmt::Display for Procedure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AssociationSetup => "association setup",
            Self::Heartbeat => "heartbeat",
            Self::AssociationRelease => "association release",
            Self::SessionEstablishment => "session establishment",
            Self::SessionModification => "session modification",
            Self::SessionDeletion => "session deletion",
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of ", self.procedure)?;
        match self.ue {
            Some(ue) => write!(f, "UE {ue} failed: ")?,
            None => write!(f, "the SMF failed: ")?,
        }
        write!(f, "UPF {} {}", self.upf, self.reason)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silence => f.write_str("does not answer"),
            Self::Refused { cause, offending_ie, failed_rule } => {
                write!(f, "refuses with cause {} ({})", cause.number(), words(*cause))?;
                if let Some(ie) = offending_ie {
                    write!(f, ", offending IE {}", ie::Name(*ie))?;
                }
                failed_rule.iter().try_for_each(|rule| write!(f, ", failed rule {}", rule_name(rule)))
            }
            Self::Unreadable(error) => write!(f, "sends an answer that cannot be read: {error}"),
            Self::Mismatch => f.write_str("answers another kind of request than was sent"),
            Self::Seid(Some(seid)) => {
                write!(f, "answers about SEID {seid:#x}, which is not the one asked about")
            }
            Self::Seid(None) => f.write_str("answers without a SEID"),
            Self::Incomplete(ie) => write!(f, "accepts, but its answer lacks {}", ie::Name(*ie)),
        }
    }
}

/// `SessionContextNotFound` as `session context not found`.
fn words(cause: Cause) -> String {
    let Cause::Other(_) = cause else {
        let name = format!("{cause:?}");
        let spaced =
            name.chars().flat_map(|c| [c.is_uppercase().then_some(' '), Some(c.to_ascii_lowercase())]);
        return spaced.flatten().skip(1).collect();
    };
    "of a release after ours".to_owned()
}

fn rule_name(rule: &FailedRuleId) -> String {
    match rule {
        FailedRuleId::Pdr(id) => format!("PDR {id}"),
        FailedRuleId::Far(id) => format!("FAR {id}"),
        FailedRuleId::Qer(id) => format!("QER {id}"),
        FailedRuleId::Urr(id) => format!("URR {id}"),
        FailedRuleId::Bar(id) => format!("BAR {id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_cause_ie_and_rule_in_one_sentence() {
        let failure = Failure {
            upf: SocketAddrV4::new(Ipv4Addr::new(10, 40, 0, 2), 8805),
            procedure: Procedure::SessionEstablishment,
            ue: Some(Ipv4Addr::new(10, 60, 0, 1)),
            reason: Reason::Refused {
                cause: Cause::RuleCreationModificationFailure,
                offending_ie: Some(ie::CREATE_PDR),
                failed_rule: Some(FailedRuleId::Pdr(1)),
            },
        };
        assert_eq!(
            failure.to_string(),
            "session establishment of UE 10.60.0.1 failed: UPF 10.40.0.2:8805 refuses with cause 73 \
             (rule creation modification failure), offending IE Create PDR, failed rule PDR 1"
        );
    }
}

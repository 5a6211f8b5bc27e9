//! Why a request is not done, and the response that says so.

use crate::load::Pressure;
use pfcp::{
    AssociationReleaseResponse, AssociationSetupResponse, AssociationUpdateResponse, Body, Cause, ErrorKind,
    FailedRuleId, NodeId, PfdManagementResponse, SessionDeletionResponse, SessionEstablishmentResponse,
    SessionModificationResponse, SessionSetDeletionResponse, SessionSetModificationResponse,
    UpFunctionFeatures, ie,
};
use rules::{RuleError, RuleRef};
use std::fmt;

/// What a refused request is told (TS 29.244 7.2.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) cause: Cause,
    pub(crate) offending_ie: Option<u16>,
    pub(crate) failed_rule_id: Option<FailedRuleId>,
    /// For people.
    pub(crate) rule_error: Option<RuleError>,
}

impl Refusal {
    pub(crate) const fn of(cause: Cause) -> Self {
        Self { cause, offending_ie: None, failed_rule_id: None, rule_error: None }
    }

    pub(crate) const fn blaming(cause: Cause, ie: u16) -> Self {
        Self { offending_ie: Some(ie), ..Self::of(cause) }
    }

    /// The IE asks for what we do not do.
    pub(crate) const fn unsupported(ie: u16) -> Self {
        Self::blaming(Cause::ServiceNotSupported, ie)
    }

    /// The IE has a value without meaning.
    pub(crate) const fn incorrect(ie: u16) -> Self {
        Self::blaming(Cause::MandatoryIeIncorrect, ie)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({})", self.cause, self.cause.number())?;
        self.offending_ie.iter().try_for_each(|ie| write!(f, ", {}", ie::Name(*ie)))?;
        match self.rule_error {
            Some(error) => write!(f, ": {error}"),
            None => self.failed_rule_id.iter().try_for_each(|rule| write!(f, ", {rule:?}")),
        }
    }
}

impl From<RuleError> for Refusal {
    fn from(error: RuleError) -> Self {
        let cause = match error {
            RuleError::TooMany(_) | RuleError::TooManyOf(..) => Cause::NoResourcesAvailable,
            RuleError::NoForwardingParameters(_) => Cause::ConditionalIeMissing,
            _ => Cause::RuleCreationModificationFailure,
        };
        let rule = match error.rule() {
            RuleRef::Pdr(id) => FailedRuleId::Pdr(id.0),
            RuleRef::Far(id) => FailedRuleId::Far(id.0),
            RuleRef::Qer(id) => FailedRuleId::Qer(id.0),
            RuleRef::Urr(id) => FailedRuleId::Urr(id.0),
            RuleRef::Bar(id) => FailedRuleId::Bar(id.0),
        };
        // They are conditional (TS 29.244 table 7.5.2.3-1).
        let is_incomplete = matches!(error, RuleError::NoForwardingParameters(_));
        let offending_ie = is_incomplete.then_some(ie::FORWARDING_PARAMETERS);
        Self { cause, offending_ie, failed_rule_id: Some(rule), rule_error: Some(error) }
    }
}

/// `None` where no cause is due.
pub(crate) fn of_decoding(kind: ErrorKind) -> Option<Refusal> {
    kind.cause()
        .map(|(cause, ie)| Refusal { offending_ie: Some(ie).filter(|ie| *ie != 0), ..Refusal::of(cause) })
}

/// What a request is about, which decides how its response looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Procedure {
    PfdManagement,
    Setup,
    Update,
    Release,
    SetDeletion,
    SetModification,
    Establishment,
    Modification,
    Deletion,
}

impl Procedure {
    /// `None` for responses, heartbeats and what a user plane is not asked.
    pub(crate) const fn of(message_type: u8) -> Option<Self> {
        match message_type {
            3 => Some(Self::PfdManagement),
            5 => Some(Self::Setup),
            7 => Some(Self::Update),
            9 => Some(Self::Release),
            14 => Some(Self::SetDeletion),
            16 => Some(Self::SetModification),
            50 => Some(Self::Establishment),
            52 => Some(Self::Modification),
            54 => Some(Self::Deletion),
            _ => None,
        }
    }

    pub(crate) const fn is_of_a_session(self) -> bool {
        matches!(self, Self::Establishment | Self::Modification | Self::Deletion)
    }
}

/// Who we are, as responses tell.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) node_id: NodeId,
    pub(crate) recovery_time_stamp: u32,
    pub(crate) features: UpFunctionFeatures,
    pub(crate) pressure: Pressure,
}

/// The response to a request that is not done.
pub(crate) fn response(procedure: Procedure, refusal: Refusal, us: Identity) -> Body {
    let Refusal { cause, offending_ie, failed_rule_id, rule_error: _ } = refusal;
    let (node_id, carried) = (us.node_id, vec![]);
    let Pressure { load, overload } = us.pressure;
    match procedure {
        Procedure::PfdManagement => {
            PfdManagementResponse { cause, offending_ie, node_id: Some(node_id), carried }.into()
        }
        Procedure::Setup => AssociationSetupResponse {
            node_id,
            cause,
            recovery_time_stamp: us.recovery_time_stamp,
            up_function_features: Some(us.features),
            cp_function_features: None,
            pools: vec![],
            smf_set_id: None,
            alternatives: vec![],
            carried,
        }
        .into(),
        Procedure::Update => update_response(node_id, cause, us.features).into(),
        Procedure::Release => AssociationReleaseResponse { node_id, cause, carried }.into(),
        Procedure::SetDeletion => SessionSetDeletionResponse { node_id, cause, offending_ie, carried }.into(),
        Procedure::SetModification => {
            SessionSetModificationResponse { node_id, cause, offending_ie, carried }.into()
        }
        Procedure::Establishment => SessionEstablishmentResponse {
            node_id,
            cause,
            offending_ie,
            up_f_seid: None,
            created_pdrs: vec![],
            created_traffic_endpoints: vec![],
            failed_rule_id,
            load,
            overload,
            carried,
        }
        .into(),
        Procedure::Modification => {
            let (created_pdrs, usage_reports) = (vec![], vec![]);
            SessionModificationResponse {
                cause,
                offending_ie,
                created_pdrs,
                failed_rule_id,
                usage_reports,
                created_traffic_endpoints: vec![],
                load,
                overload,
                carried,
            }
            .into()
        }
        Procedure::Deletion => {
            SessionDeletionResponse { cause, offending_ie, usage_reports: vec![], load, overload, carried }
                .into()
        }
    }
}

pub(crate) const fn update_response(
    node_id: NodeId,
    cause: Cause,
    features: UpFunctionFeatures,
) -> AssociationUpdateResponse {
    AssociationUpdateResponse {
        node_id,
        cause,
        up_function_features: Some(features),
        cp_function_features: None,
        carried: vec![],
    }
}

//! How the control planes of today's cores say the same things: one file for each, with what is its own. What none of them
//! has a way of its own for is said as [`plain`] does.

mod change;
mod free5gc;
mod free5gc_i_upf;
mod free5gc_psa;
mod free5gc_quota;
mod oai;
mod omec;
mod open5gs;
mod open5gs_pgw_c;
mod open5gs_sgw_c;
mod open5gs_smf;
mod plain;

pub use change::{Branch, Change, Endpoint, Flow};
pub(super) use plain::{MACS_URR, URR};

use super::event::Settings;
use super::messages;
use super::session::Session;
use crate::tunnel::Tunnel;
use pfcp::{
    AssociationSetupRequest, CpFeature, CpFunctionFeatures, SessionDeletionRequest,
    SessionEstablishmentRequest, SessionModificationRequest,
};
use serde::Deserialize;

/// Whose way of speaking PFCP ours is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Our own: nothing that is not needed.
    #[default]
    Plain,
    /// The SMF of Open5GS.
    Open5gs,
    /// Its SGW-C.
    Open5gsSgwC,
    /// Its SMF as the PGW-C of a 4G session.
    Open5gsPgwC,
    /// The SMF of free5GC.
    Free5gc,
    /// The same, to an intermediate UPF, which may be an uplink classifier.
    Free5gcIUpf,
    /// The same, to the anchor behind one.
    Free5gcPsa,
    /// The same with charging by quotas, as its later releases do it.
    Free5gcQuota,
    /// The SMF of OMEC (SD-Core).
    Omec,
    /// The SMF of OpenAirInterface with downlink PDRs in the establishment.
    Oai,
    /// The same without them, as it does if it is not told otherwise.
    OaiLater,
}

impl Dialect {
    /// All there are.
    pub const ALL: [Self; 11] = [
        Self::Plain,
        Self::Open5gs,
        Self::Open5gsSgwC,
        Self::Open5gsPgwC,
        Self::Free5gc,
        Self::Free5gcIUpf,
        Self::Free5gcPsa,
        Self::Free5gcQuota,
        Self::Omec,
        Self::Oai,
        Self::OaiLater,
    ];

    /// As the configuration names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Open5gs => "open5gs",
            Self::Open5gsSgwC => "open5gs-sgw-c",
            Self::Open5gsPgwC => "open5gs-pgw-c",
            Self::Free5gc => "free5gc",
            Self::Free5gcIUpf => "free5gc-i-upf",
            Self::Free5gcPsa => "free5gc-psa",
            Self::Free5gcQuota => "free5gc-quota",
            Self::Omec => "omec",
            Self::Oai => "oai",
            Self::OaiLater => "oai-later",
        }
    }

    /// Whether it picks tunnel endpoints of the user plane itself; `None` where the operator decides.
    pub const fn picks_endpoints(self) -> Option<bool> {
        match self {
            Self::Plain => None,
            Self::Free5gc | Self::Free5gcIUpf | Self::Free5gcPsa | Self::Free5gcQuota => Some(true),
            _ => Some(false),
        }
    }

    /// Whether it speaks to a gateway between two others, which leads nowhere alone.
    pub const fn is_between(self) -> bool {
        matches!(self, Self::Open5gsSgwC | Self::Free5gcIUpf)
    }

    /// Whether an association that the user plane asks for is one to it. free5GC and what came of it accept such a request (with
    /// a sequence number of their own, at that), but make sessions only where their own request was accepted.
    pub const fn takes_setup(self) -> bool {
        match self {
            Self::Plain
            | Self::Open5gs
            | Self::Open5gsSgwC
            | Self::Open5gsPgwC
            | Self::Oai
            | Self::OaiLater => true,
            Self::Free5gc | Self::Free5gcIUpf | Self::Free5gcPsa | Self::Free5gcQuota | Self::Omec => false,
        }
    }

    /// Whether it says that it understands reports of GTP-U peers that began anew (TS 29.244 8.2.58, RPGUR).
    pub fn hears_of_restarts(self) -> bool {
        self.phrases().features().contains(&CpFeature::Rpgur)
    }

    pub(super) const fn phrases(self) -> &'static dyn Phrases {
        match self {
            Self::Plain => &plain::Plain,
            Self::Open5gs => &open5gs_smf::Open5gsSmf,
            Self::Open5gsSgwC => &open5gs_sgw_c::Open5gsSgwC,
            Self::Open5gsPgwC => &open5gs_pgw_c::Open5gsPgwC,
            Self::Free5gc => &free5gc::Free5gc,
            Self::Free5gcIUpf => &free5gc_i_upf::Free5gcIUpf,
            Self::Free5gcPsa => &free5gc_psa::Free5gcPsa,
            Self::Free5gcQuota => &free5gc_quota::Free5gcQuota,
            Self::Omec => &omec::Omec,
            Self::Oai => &oai::Oai { is_downlink_later: false },
            Self::OaiLater => &oai::Oai { is_downlink_later: true },
        }
    }
}

/// What is spoken of.
#[derive(Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) settings: &'a Settings,
    pub(super) session: &'a Session,
}

impl About<'_> {
    /// Where uplink packets come in.
    fn uplink(&self) -> Option<Tunnel> {
        self.session.remote.map(|remote| remote.uplink)
    }

    /// An endpoint that the user plane chose for this session, or for the one before it.
    fn endpoint(&self, endpoint: Endpoint) -> Option<Tunnel> {
        let pdr = self.settings.dialect.phrases().pdr_at(endpoint)?;
        self.session.chosen.get(&pdr).copied()
    }
}

/// What a control plane says to have each procedure done. It reads the session and changes nothing.
pub(super) trait Phrases: Sync {
    fn setup(&self, settings: &Settings) -> AssociationSetupRequest {
        let features = CpFunctionFeatures::of(self.features());
        AssociationSetupRequest { cp_function_features: Some(features), ..messages::setup(settings) }
    }

    /// What it says it understands.
    fn features(&self) -> &'static [CpFeature] {
        &[]
    }

    /// Uplink open; where downlink packets go is not known yet.
    fn establishment(&self, of: About<'_>) -> SessionEstablishmentRequest;

    /// The session is made once more in a user plane that lost it, with the endpoints it had (TS 23.527 4.3.2); `None` where
    /// the control plane makes a new one instead.
    fn restoration(&self, _of: About<'_>) -> Option<SessionEstablishmentRequest> {
        None
    }

    /// The radio told where it takes downlink packets.
    fn activation(&self, of: About<'_>) -> SessionModificationRequest {
        plain::activation(of)
    }

    /// The UE sleeps.
    fn idle(&self, _of: About<'_>) -> SessionModificationRequest {
        plain::idle()
    }

    /// It is there again.
    fn wake(&self, of: About<'_>) -> SessionModificationRequest {
        self.activation(of)
    }

    /// `None` where this control plane has no such procedure.
    fn change(&self, of: About<'_>, change: Change) -> Option<SessionModificationRequest>;

    fn deletion(&self, _of: About<'_>) -> SessionDeletionRequest {
        SessionDeletionRequest::default()
    }

    /// The PDR whose endpoint this is.
    fn pdr_at(&self, endpoint: Endpoint) -> Option<u16>;

    /// Message priority of requests about sessions.
    fn priority(&self) -> Option<u8> {
        None
    }
}

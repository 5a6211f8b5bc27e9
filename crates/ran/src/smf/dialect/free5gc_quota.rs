//! The SMF of free5GC as its later releases charge: by quotas, and with URRs that are created and removed over and over.

use super::free5gc::{BAR, Free5gc, URR_AFTER, is_charged, told};
use super::plain::URR;
use super::{About, Change, Endpoint, Phrases};
use pfcp::{
    CreateBar, CreateUrr, RemoveUrr, ReportingTriggers, SessionEstablishmentRequest,
    SessionModificationRequest, UpdateFar, UpdateUrr, Volumes, flags,
};

pub(super) struct Free5gcQuota;

impl Phrases for Free5gcQuota {
    fn establishment(&self, of: About<'_>) -> SessionEstablishmentRequest {
        SessionEstablishmentRequest {
            create_urrs: urrs(of),
            create_bar: Some(CreateBar::new(BAR)),
            ..Free5gc.establishment(of)
        }
    }

    fn activation(&self, of: About<'_>) -> SessionModificationRequest {
        repeating(of, Free5gc.activation(of))
    }

    fn idle(&self, of: About<'_>) -> SessionModificationRequest {
        repeating(of, Free5gc.idle(of))
    }

    fn change(&self, of: About<'_>, change: Change) -> Option<SessionModificationRequest> {
        match change {
            Change::Grant(bytes) if is_charged(of) => Some(told(of, grant(bytes))),
            Change::EndCharging if is_charged(of) => Some(told(of, without_urrs())),
            change => Free5gc.change(of, change).map(|request| repeating(of, request)),
        }
    }

    fn pdr_at(&self, endpoint: Endpoint) -> Option<u16> {
        Free5gc.pdr_at(endpoint)
    }

    fn priority(&self) -> Option<u8> {
        Free5gc.priority()
    }
}

/// Before QoS enforcement and after it, with both ways' thresholds and all three quotas.
fn urrs(of: About<'_>) -> Vec<CreateUrr> {
    let urr = |bytes, urr_id, measurement_information| CreateUrr {
        urr_id,
        measurement_method: flags::METHOD_VOLUM,
        reporting_triggers: ReportingTriggers::new(ReportingTriggers::VOLTH | ReportingTriggers::VOLQU),
        volume_threshold: Some(threshold(bytes)),
        volume_quota: Some(quota(bytes)),
        measurement_information: Some(measurement_information),
        ..CreateUrr::default()
    };
    let both = |bytes| [urr(bytes, URR, flags::MEASUREMENT_MBQE), urr(bytes, URR_AFTER, 0)];
    of.session.plan.report_after_bytes.into_iter().flat_map(both).collect()
}

/// Half of the quota, of each way.
fn threshold(bytes: u64) -> Volumes {
    Volumes { uplink: Some(bytes / 2), downlink: Some(bytes / 2), total: None }
}

fn quota(bytes: u64) -> Volumes {
    Volumes { total: Some(bytes), uplink: Some(bytes), downlink: Some(bytes) }
}

fn grant(bytes: u64) -> SessionModificationRequest {
    let update = |urr_id| UpdateUrr {
        urr_id,
        volume_threshold: Some(threshold(bytes)),
        volume_quota: Some(quota(bytes)),
        ..UpdateUrr::default()
    };
    let update_urrs = vec![update(URR), update(URR_AFTER)];
    SessionModificationRequest { update_urrs, ..SessionModificationRequest::default() }
}

/// And no word of the PDRs, which name them.
fn without_urrs() -> SessionModificationRequest {
    let remove_urrs = [URR, URR_AFTER].map(RemoveUrr::new).to_vec();
    SessionModificationRequest { remove_urrs, ..SessionModificationRequest::default() }
}

/// Some releases create the URRs of a session anew in each modification, others remove them again in each once they are
/// removed: this does both. Flags are said where one is set.
fn repeating(of: About<'_>, request: SessionModificationRequest) -> SessionModificationRequest {
    let is_over = of.session.was_charged && !is_charged(of);
    let remove_urrs = if is_over { without_urrs().remove_urrs } else { vec![] };
    let update_fars = request.update_fars.into_iter().map(without_empty_flags).collect();
    SessionModificationRequest { create_urrs: urrs(of), remove_urrs, update_fars, ..request }
}

fn without_empty_flags(mut update: UpdateFar) -> UpdateFar {
    if let Some(to) = &mut update.update_forwarding_parameters {
        to.pfcpsm_req_flags = to.pfcpsm_req_flags.filter(|flags| *flags != 0);
    }
    update
}

//! The SMF of Open5GS with a 5G radio (INTEROP: Open5GS SMF).

use super::open5gs::{self, DOWNLINK_FAR, Endpoints, Generation};
use super::plain::explicit;
use super::{About, Change, Endpoint, Phrases};
use crate::smf::messages::{self};
use pfcp::request::updates;
use pfcp::{CreateFar, Pdi, SessionEstablishmentRequest, SessionModificationRequest, flags};

/// SST 1, no SD (TS 29.244 8.2.124).
const S_NSSAI: [u8; 4] = [1, 0xff, 0xff, 0xff];

pub(super) struct Open5gsSmf;

impl Phrases for Open5gsSmf {
    /// Downlink packets are kept, and told of, until the radio is known.
    fn establishment(&self, of: About<'_>) -> SessionEstablishmentRequest {
        establishment(of, &Endpoints::CHOSEN, open5gs::buffering(DOWNLINK_FAR))
    }

    /// It names the endpoints and addresses there were, and the tunnel that the radio still has (RESTI).
    fn restoration(&self, of: About<'_>) -> Option<SessionEstablishmentRequest> {
        let at = |endpoint| of.endpoint(endpoint).map(explicit);
        let endpoints =
            Endpoints { session: at(Endpoint::Uplink)?, control_plane: at(Endpoint::ControlPlane)? };
        let request = establishment(of, &endpoints, open5gs::open(of.session.plan.downlink));
        Some(SessionEstablishmentRequest { pfcpse_req_flags: Some(flags::PFCPSE_RESTI), ..request })
    }

    fn activation(&self, of: About<'_>) -> SessionModificationRequest {
        updates(vec![open5gs::into_radio(DOWNLINK_FAR, of.session.plan.downlink, None)])
    }

    fn idle(&self, _of: About<'_>) -> SessionModificationRequest {
        open5gs::idle()
    }

    fn change(&self, of: About<'_>, change: Change) -> Option<SessionModificationRequest> {
        match change {
            Change::Grant(_) if of.session.plan.report_after_bytes.is_none() => None,
            change => open5gs::change(of, change, &Generation { has_qos_flows: true }),
        }
    }

    fn pdr_at(&self, endpoint: Endpoint) -> Option<u16> {
        open5gs::pdr_at(endpoint)
    }
}

fn establishment(of: About<'_>, at: &Endpoints, downlink: CreateFar) -> SessionEstablishmentRequest {
    let qfi = of.session.plan.qfi.value();
    let [down, mut up, from_cp, to_cp] = open5gs::pdrs(of, at);
    up.pdi = Pdi { qfis: vec![qfi], ..up.pdi };
    let pdrs = vec![open5gs::measured(down), up, from_cp, to_cp];
    SessionEstablishmentRequest {
        create_urrs: vec![open5gs::urr(of)],
        create_qers: vec![open5gs::default_qer(of, Some(qfi))],
        create_bar: open5gs::bar(),
        user_id: open5gs::user_id(),
        apn_dnn: Some(open5gs::dnn().0),
        s_nssai: Some(S_NSSAI.to_vec()),
        ..messages::establishment(of, pdrs, open5gs::fars(of, downlink))
    }
}

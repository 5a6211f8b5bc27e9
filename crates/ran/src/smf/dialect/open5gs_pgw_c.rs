//! The SMF of Open5GS as the PGW-C of a 4G session, over Sxb: GTP-U on S5-U, no QFI, no S-NSSAI, and the UE's address in the
//! uplink PDR, too.

use super::open5gs::{self, DOWNLINK_FAR, Endpoints, Generation};
use super::plain::explicit;
use super::{About, Change, Endpoint, Phrases};
use crate::smf::messages::{self};
use pfcp::request::updates;
use pfcp::{Pdi, SessionEstablishmentRequest, SessionModificationRequest, flags};

pub(super) struct Open5gsPgwC;

impl Phrases for Open5gsPgwC {
    /// The SGW has told its end of S5-U before: downlink packets go there at once.
    fn establishment(&self, of: About<'_>) -> SessionEstablishmentRequest {
        establishment(of, &Endpoints::CHOSEN)
    }

    fn restoration(&self, of: About<'_>) -> Option<SessionEstablishmentRequest> {
        let at = |endpoint| of.endpoint(endpoint).map(explicit);
        let endpoints =
            Endpoints { session: at(Endpoint::Uplink)?, control_plane: at(Endpoint::ControlPlane)? };
        let request = establishment(of, &endpoints);
        Some(SessionEstablishmentRequest { pfcpse_req_flags: Some(flags::PFCPSE_RESTI), ..request })
    }

    /// The SGW confirms its end, or it is another one.
    fn activation(&self, of: About<'_>) -> SessionModificationRequest {
        updates(vec![open5gs::into_radio(DOWNLINK_FAR, of.session.plan.downlink, None)])
    }

    fn idle(&self, _of: About<'_>) -> SessionModificationRequest {
        open5gs::idle()
    }

    /// Packets are forwarded from radio to radio by the SGW.
    fn change(&self, of: About<'_>, change: Change) -> Option<SessionModificationRequest> {
        match change {
            Change::Forward(_) | Change::EndForwarding => None,
            Change::Grant(_) if of.session.plan.report_after_bytes.is_none() => None,
            change => open5gs::change(of, change, &Generation { has_qos_flows: false }),
        }
    }

    fn pdr_at(&self, endpoint: Endpoint) -> Option<u16> {
        open5gs::pdr_at(endpoint).filter(|_| endpoint != Endpoint::Forwarding)
    }
}

fn establishment(of: About<'_>, at: &Endpoints) -> SessionEstablishmentRequest {
    let [down, mut up, from_cp, to_cp] = open5gs::pdrs(of, at);
    up.pdi = Pdi { ue_ip_addresses: messages::ue(&of.session.plan, false), ..up.pdi };
    let pdrs = vec![open5gs::measured(down), up, from_cp, to_cp];
    let downlink = open5gs::open(of.session.plan.downlink);
    SessionEstablishmentRequest {
        create_urrs: vec![open5gs::urr(of)],
        create_qers: vec![open5gs::default_qer(of, None)],
        create_bar: open5gs::bar(),
        user_id: open5gs::user_id(),
        apn_dnn: Some(open5gs::dnn().0),
        ..messages::establishment(of, pdrs, open5gs::fars(of, downlink))
    }
}

//! What the tests of control planes in use share.

use super::smf::{self, forwarding};
use super::{Lab, SMF};
use n4::Output;
use pfcp::*;
use rules::{Rules, Seid};

pub fn rules(lab: &Lab, session: Seid) -> &Rules {
    &lab.in_force[&session].rules
}

pub fn accepted(response: &SessionModificationResponse) {
    assert_eq!((response.cause, response.offending_ie), (Cause::RequestAccepted, None));
}

pub fn established(lab: &mut Lab, request: SessionEstablishmentRequest) -> (Seid, Vec<CreatedPdr>) {
    match lab.ask(SMF, &Message::session(0, 500, request)) {
        Body::SessionEstablishmentResponse(response) => {
            assert_eq!(response.cause, Cause::RequestAccepted, "{:?}", lab.notes);
            (Seid(response.up_f_seid.unwrap().seid), response.created_pdrs)
        }
        other => panic!("{other:?}"),
    }
}

pub fn into(tunnel: OuterHeaderCreation, to: DestinationInterface) -> ForwardingParameters {
    ForwardingParameters { outer_header_creation: Some(tunnel), ..forwarding(to) }
}

/// The downlink's new tunnel, and whether the old one gets an end marker.
pub fn switch(teid: u32, flags: Option<u8>) -> SessionModificationRequest {
    let mut request = smf::path_switch(teid);
    let to = request.update_fars[0].update_forwarding_parameters.as_mut().unwrap();
    (to.network_instance, to.interface_type) = (Some(NetworkInstance::labels("internet")), Some(11));
    to.pfcpsm_req_flags = flags;
    request
}

pub fn end_markers(lab: &Lab) -> Vec<u32> {
    let put = |order: &Output| match order {
        Output::Put(desired) => desired.end_markers.clone(),
        _ => vec![],
    };
    lab.told.iter().flat_map(put).map(|tunnel| tunnel.teid().unwrap().0).collect()
}

//! Which tunnel endpoint a PDR gets, or keeps, where a request does not say: by a CHOOSE ID that was there before (TS 29.244 8.2.3), and
//! without an F-TEID.

use crate::common::smf::{self, UE, choose, chosen, downlink, establishment, given, path_switch, uplink};
use crate::common::{Lab, config};
use n4::Config;
use pfcp::*;
use rules::Seid;
use std::net::Ipv4Addr;

const REMOVAL: OuterHeaderRemoval = OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IP);

/// A QoS flow by the CHOOSE ID of the session's first.
fn flow(id: u16) -> CreatePdr {
    let mut pdr = uplink(id, choose(Some(5)));
    pdr.pdi.qfis = vec![id as u8];
    pdr
}

fn into(far: u32, pdr: CreatePdr) -> CreatePdr {
    CreatePdr { far_id: Some(far), ..pdr }
}

/// A session whose first flow has an endpoint, the radio known.
fn with_flow(config: Config, others: Vec<CreatePdr>) -> (Lab, Seid, u32) {
    let mut lab = Lab::associated_with(config);
    let mut request = establishment(1);
    request.create_pdrs[0] = flow(1);
    request.create_pdrs.extend(others);
    let session = lab.establish(request);
    let teid = lab.in_force[&session].rules.pdrs[0].pdi.f_teid.unwrap().teid.0;
    assert_eq!(lab.modify(session, path_switch(9)).cause, Cause::RequestAccepted);
    (lab, session, teid)
}

/// What is chosen for a PDR that is created.
fn added(lab: &mut Lab, session: Seid, pdr: CreatePdr, create_fars: Vec<CreateFar>) -> u32 {
    let id = pdr.pdr_id;
    let request = SessionModificationRequest { create_pdrs: vec![pdr], create_fars, ..Default::default() };
    let response = lab.modify(session, request);
    assert_eq!(response.cause, Cause::RequestAccepted, "{:?}", lab.notes);
    chosen(&response.created_pdrs, id)
}

fn back(id: u32) -> CreateFar {
    let to = ForwardingParameters {
        outer_header_creation: Some(smf::tunnel(77)),
        ..smf::forwarding(DestinationInterface::Access)
    };
    smf::far(id, ApplyAction::FORW, Some(to))
}

#[test]
fn a_choose_id_of_another_side_stands_for_another_endpoint() {
    let (mut lab, session, teid) = with_flow(config(), vec![]);
    let mut core = downlink(7, Some(UE));
    (core.pdi.f_teid, core.pdi.qfis) = (Some(choose(Some(5))), vec![7]);
    core.outer_header_removal = Some(REMOVAL);
    let other = added(&mut lab, session, core.clone(), vec![]);
    assert_ne!(other, teid);
    // Each side has its own from then on.
    assert_eq!(added(&mut lab, session, flow(9), vec![]), teid);
    core.pdr_id = 8;
    assert_eq!(added(&mut lab, session, core, vec![]), other);
}

#[test]
fn a_choose_id_of_another_network_stands_for_another_endpoint() {
    let network_instances = ["ims", "internet"].map(str::to_owned).to_vec();
    let (mut lab, session, teid) = with_flow(Config { network_instances, ..config() }, vec![]);
    let mut ims = flow(7);
    ims.pdi.network_instance = Some(NetworkInstance::labels("ims"));
    assert_ne!(added(&mut lab, session, ims, vec![]), teid);
    assert_eq!(added(&mut lab, session, flow(9), vec![]), teid);
}

/// Packets that another base station sends for the user would be taken for the user's own, or these sent to that one.
#[test]
fn a_choose_id_of_what_is_forwarded_indirectly_stands_for_another_endpoint() {
    // Router advertisements come by the flow's endpoint, too, and go to the radio.
    let mut advertisements = into(2, uplink(3, choose(Some(5))));
    advertisements.pdi.source_interface = SourceInterface::CpFunction;
    for others in [vec![], vec![advertisements]] {
        let (mut lab, session, teid) = with_flow(config(), others);
        // By a FAR of the same request, and by one that was there.
        let leg = added(&mut lab, session, into(6, flow(6)), vec![back(6)]);
        assert_ne!(leg, teid);
        assert_ne!(added(&mut lab, session, into(2, flow(7)), vec![]), teid);
        // The flow is known by what it was, and the leg by what it is.
        assert_eq!(added(&mut lab, session, flow(9), vec![]), teid);
        assert_eq!(added(&mut lab, session, into(6, flow(10)), vec![]), leg);
        let remove_pdrs = [1, 3, 9].map(RemovePdr::new).to_vec();
        lab.modify(session, SessionModificationRequest { remove_pdrs, ..Default::default() });
        assert_ne!(added(&mut lab, session, flow(11), vec![]), leg);
    }
}

/// The endpoint that an update leaves PDR 2, which had one of N9.
fn updated(
    address: Option<Ipv4Addr>,
    removal: Option<OuterHeaderRemoval>,
    carried: Vec<RawIe>,
) -> Option<u32> {
    let mut lab = Lab::associated();
    let mut request = establishment(1);
    request.create_pdrs[1].pdi.f_teid = Some(given(0x99));
    request.create_pdrs[1].outer_header_removal = Some(REMOVAL);
    let session = lab.establish(request);
    let pdi = Some(downlink(2, address).pdi);
    let update = UpdatePdr { pdi, outer_header_removal: removal, carried, ..UpdatePdr::new(2) };
    let request = SessionModificationRequest { update_pdrs: vec![update], ..Default::default() };
    assert_eq!(lab.modify(session, request).cause, Cause::RequestAccepted, "{:?}", lab.notes);
    lab.in_force[&session].rules.pdrs[1].pdi.f_teid.map(|f_teid| f_teid.teid.0)
}

/// OpenAirInterface tells an intermediate UPF so.
#[test]
fn a_pdr_that_takes_a_tunnels_header_off_keeps_its_endpoint() {
    assert_eq!(updated(Some(UE), Some(REMOVAL), vec![]), Some(0x99));
    assert_eq!(updated(Some(UE), None, vec![]), Some(0x99));
    let none = RawIe { ie: ie::OUTER_HEADER_REMOVAL, value: vec![] };
    assert_eq!(updated(Some(UE), None, vec![none]), None, "plain packets have no tunnel");
}

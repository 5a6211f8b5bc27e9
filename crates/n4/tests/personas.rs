//! Control planes in use, message by message as they speak: each establishes, changes and ends its sessions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

mod common;

use common::personas::*;
use common::smf::{self, GNB, UE, chosen, downlink, far, forwarding, given, pdi, pdr, setup, tunnel, uplink};
use common::{Lab, SMF, config};
use n4::Config;
use pfcp::*;
use rules::{Interface, PdrId, Seid, UrrId};
use std::net::Ipv4Addr;

const BUFF: u16 = ApplyAction::BUFF;
const NOCP: u16 = ApplyAction::NOCP;
const FORW: u16 = ApplyAction::FORW;
/// GTP-U of control planes and of other user planes.
const SMF_GTPU: OuterHeaderCreation =
    OuterHeaderCreation::GtpuIpv4 { teid: 0x33, address: Ipv4Addr::new(10, 30, 0, 9) };

fn sdf(flow: &str, id: Option<u32>) -> SdfFilter {
    SdfFilter { flow_description: Some(flow.to_owned()), filter_id: id, ..SdfFilter::default() }
}

/// Its four PDRs: both ways, and a pair for router solicitations and advertisements through the SMF.
fn open5gs() -> SessionEstablishmentRequest {
    let choose = |id| FTeid::Choose { ipv4: true, ipv6: true, choose_id: id };
    let ue = UeIpAddress { ipv6: Some("2001:db8:cafe::1".parse().unwrap()), ..smf::ue(UE) };
    let mut down = downlink(1, None);
    down.pdi.ue_ip_addresses = vec![ue];
    (down.urr_ids, down.qer_ids, down.pdi.interface_type) = (vec![1], vec![1], Some(17));
    let mut up = uplink(2, choose(Some(5)));
    (up.qer_ids, up.pdi.qfis, up.far_id) = (vec![1], vec![1], Some(2));
    let mut from_cp = pdr(3, Pdi { f_teid: Some(choose(None)), ..pdi(SourceInterface::CpFunction) }, 1);
    from_cp.pdi.network_instance = None;
    from_cp.outer_header_removal = up.outer_header_removal;
    let mut to_cp = uplink(4, choose(Some(5)));
    to_cp.pdi.sdf_filters = vec![sdf("permit out 58 from ff02::2/128 to assigned", None)];
    (to_cp.precedence, to_cp.far_id) = (Some(1), Some(3));
    let bar = CreateBar { bar_id: 1, ..CreateBar::default() };
    let mut down_far = far(1, BUFF | NOCP, None);
    down_far.bar_id = Some(1);
    let urr = CreateUrr {
        urr_id: 1,
        measurement_method: flags::METHOD_VOLUM,
        reporting_triggers: ReportingTriggers::new(1 << 1),
        volume_threshold: Some(Volumes { downlink: Some(100 << 20), ..Volumes::default() }),
        ..CreateUrr::default()
    };
    let rates = Some(Rates { uplink_kbps: 1_000_000, downlink_kbps: 1_000_000 });
    SessionEstablishmentRequest {
        create_pdrs: vec![down, up, from_cp, to_cp],
        create_fars: vec![
            down_far,
            far(2, FORW, Some(forwarding(DestinationInterface::Core))),
            far(3, FORW, Some(into(SMF_GTPU, DestinationInterface::CpFunction))),
        ],
        create_urrs: vec![urr],
        create_qers: vec![CreateQer { mbr: rates, ..smf::qer(1) }],
        create_bar: Some(bar),
        pdn_type: Some(PdnType::Ipv4v6),
        ..smf::establishment(77)
    }
}

#[test]
fn open5gs_smf() {
    let mut lab = Lab::associated();
    let (session, created) = established(&mut lab, open5gs());
    assert_eq!(created.iter().map(|pdr| pdr.pdr_id).collect::<Vec<_>>(), [2, 3, 4]);
    assert_eq!(chosen(&created, 2), chosen(&created, 4));
    let it = rules(&lab, session);
    assert_eq!(it.pdrs[0].pdi.ue_ipv6, Some("2001:db8:cafe::/64".parse().unwrap()));
    assert_eq!((it.fars[0].apply_action, it.fars[0].notify), (rules::ApplyAction::Buffer, true));
    assert_eq!((it.pdrs[2].pdi.source_interface, it.pdrs[2].far.0), (Interface::Access, 1));
    assert_eq!(it.fars[2].forwarding.unwrap().destination_interface, Interface::Access);
    assert!(it.pdrs[0].urrs == [UrrId(1)] && it.qers[0].mbr.is_some());

    // The radio is there; the user sleeps; it wakes elsewhere; it moves.
    accepted(&lab.modify(session, switch(5, None)));
    let sleep =
        UpdateFar { far_id: 1, apply_action: Some(ApplyAction::new(BUFF | NOCP)), ..Default::default() };
    let mut switched = switch(5, None);
    switched.update_fars[0].far_id = 1;
    accepted(&lab.modify(session, switched.clone()));
    accepted(
        &lab.modify(session, SessionModificationRequest { update_fars: vec![sleep], ..Default::default() }),
    );
    let mut moved = switch(6, Some(flags::PFCPSM_SNDEM));
    moved.update_fars[0].far_id = 1;
    accepted(&lab.modify(session, moved.clone()));
    accepted(&lab.modify(session, moved));
    assert_eq!(end_markers(&lab), [5]);
    dedicated_flow(&mut lab, session);
    indirect_forwarding(&mut lab, session);
    let last = lab.delete(session).usage_reports;
    assert!(last[0].usage_report_trigger.contains(UsageReportTrigger::TERMR));
    assert_eq!((lab.node.sessions(), lab.node.tunnels()), (0, 0));
}

/// A dynamic rule: no UE address on the downlink, filters by ID; then changed without the F-TEID.
fn dedicated_flow(lab: &mut Lab, session: Seid) {
    let flow = "permit out 17 from 172.20.166.84 to 10.60.0.1 20002";
    let mut down = downlink(5, None);
    down.pdi.sdf_filters = vec![sdf(flow, Some(1))];
    (down.far_id, down.qer_ids, down.precedence) = (Some(4), vec![2], Some(2));
    let mut up = uplink(6, FTeid::Choose { ipv4: true, ipv6: true, choose_id: Some(5) });
    up.pdi.sdf_filters = vec![SdfFilter { filter_id: Some(1), ..SdfFilter::default() }];
    up.pdi.qfis = vec![2];
    (up.far_id, up.qer_ids, up.precedence) = (Some(2), vec![2], Some(2));
    let request = SessionModificationRequest {
        create_pdrs: vec![down, up],
        create_fars: vec![far(4, FORW, Some(into(tunnel(6), DestinationInterface::Access)))],
        create_qers: vec![CreateQer { qfi: Some(2), ..smf::qer(2) }],
        ..SessionModificationRequest::default()
    };
    accepted(&lab.modify(session, request));
    let it = &rules(lab, session).pdrs[4];
    assert_eq!((it.id, it.pdi.ue_ipv4), (PdrId(5), Some(UE)));
    let teid = rules(lab, session).pdrs[5].pdi.f_teid;
    let mut changed = pdi(SourceInterface::Access);
    changed.sdf_filters = vec![sdf("permit out icmp from any to assigned", None)];
    let update = UpdatePdr { pdr_id: 6, pdi: Some(changed), ..UpdatePdr::default() };
    accepted(
        &lab.modify(session, SessionModificationRequest { update_pdrs: vec![update], ..Default::default() }),
    );
    assert_eq!(rules(lab, session).pdrs[5].pdi.f_teid, teid);
}

/// From radio to radio while a handover lasts.
fn indirect_forwarding(lab: &mut Lab, session: Seid) {
    let mut indirect = uplink(9, FTeid::Choose { ipv4: true, ipv6: true, choose_id: Some(10) });
    (indirect.far_id, indirect.precedence) = (Some(9), Some(0));
    let request = SessionModificationRequest {
        create_pdrs: vec![indirect],
        create_fars: vec![far(9, FORW, Some(into(tunnel(7), DestinationInterface::Access)))],
        ..SessionModificationRequest::default()
    };
    let response = lab.modify(session, request);
    accepted(&response);
    assert_ne!(chosen(&response.created_pdrs, 9), 0);
}

/// From tunnel to tunnel: no UE address, no precedence, and the outer header is removed by a later word.
#[test]
fn open5gs_sgw_c() {
    let mut lab = Lab::associated();
    let choose = FTeid::Choose { ipv4: true, ipv6: true, choose_id: None };
    let bare = |id, source, far_id| CreatePdr {
        precedence: None,
        ..pdr(id, Pdi { f_teid: Some(choose), interface_type: Some(0), ..pdi(source) }, far_id)
    };
    let sleeping = |id| CreateFar { bar_id: Some(1), ..far(id, BUFF | NOCP, None) };
    let request = SessionEstablishmentRequest {
        create_pdrs: vec![bare(1, SourceInterface::Core, 1), bare(2, SourceInterface::Access, 2)],
        create_fars: vec![sleeping(1), sleeping(2)],
        create_bar: Some(CreateBar { bar_id: 1, ..CreateBar::default() }),
        ..smf::establishment(77)
    };
    let (session, created) = established(&mut lab, request);
    assert_ne!(chosen(&created, 1), chosen(&created, 2));

    let removal = Some(OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IPV4));
    let update_pdr = |pdr_id| UpdatePdr { pdr_id, outer_header_removal: removal, ..UpdatePdr::default() };
    let update_far = |far_id, to, flags| UpdateFar {
        far_id,
        apply_action: Some(ApplyAction::new(FORW)),
        update_forwarding_parameters: Some(UpdateForwardingParameters {
            destination_interface: Some(to),
            outer_header_creation: Some(tunnel(far_id + 0x10)),
            pfcpsm_req_flags: flags,
            ..UpdateForwardingParameters::default()
        }),
        ..UpdateFar::default()
    };
    let request = SessionModificationRequest {
        update_pdrs: vec![update_pdr(1), update_pdr(2)],
        update_fars: vec![
            update_far(1, DestinationInterface::Access, None),
            update_far(2, DestinationInterface::Core, None),
        ],
        ..SessionModificationRequest::default()
    };
    accepted(&lab.modify(session, request));
    let it = rules(&lab, session);
    assert!(it.pdrs.iter().all(|pdr| pdr.outer_header_removal && pdr.pdi.f_teid.is_some()));
    assert_eq!(it.fars[1].forwarding.unwrap().destination_interface, Interface::Core);
    let mut moved = switch(9, Some(flags::PFCPSM_SNDEM));
    moved.update_fars[0].far_id = 1;
    accepted(&lab.modify(session, moved));
    assert_eq!(end_markers(&lab), [0x11]);
    assert!(lab.delete(session).usage_reports.is_empty());
}

/// It gives endpoints itself, two QERs a rule, addresses without direction, and a message priority.
fn free5gc() -> SessionEstablishmentRequest {
    let ue = UeIpAddress { is_destination: false, ..smf::ue(UE) };
    let mut up = uplink(1, given(1));
    up.outer_header_removal = Some(OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IPV4));
    let mut down = downlink(2, None);
    for pdr in [&mut up, &mut down] {
        pdr.pdi.ue_ip_addresses = vec![ue];
        pdr.pdi.network_instance = Some(NetworkInstance::text("internet"));
        (pdr.qer_ids, pdr.urr_ids) = (vec![1, 2], vec![1, 2]);
    }
    let rates = Some(Rates { uplink_kbps: 200_000, downlink_kbps: 100_000 });
    let urr = |urr_id, information| CreateUrr {
        urr_id,
        measurement_method: flags::METHOD_VOLUM,
        reporting_triggers: ReportingTriggers::new(1 << 1),
        volume_threshold: Some(Volumes::default()),
        measurement_information: Some(information),
        ..CreateUrr::default()
    };
    SessionEstablishmentRequest {
        create_pdrs: vec![up, down],
        create_urrs: vec![urr(1, flags::MEASUREMENT_MBQE), urr(2, 0)],
        create_qers: vec![
            CreateQer { mbr: rates, qfi: Some(0), ..smf::qer(1) },
            CreateQer { mbr: rates, gbr: rates, qfi: Some(1), ..smf::qer(2) },
        ],
        create_bar: Some(CreateBar {
            bar_id: 0,
            downlink_data_notification_delay: Some(0),
            ..CreateBar::default()
        }),
        ..smf::establishment(77)
    }
}

#[test]
fn free5gc_smf() {
    let policies = vec!["MEC1".to_owned()];
    let mut lab = Lab::new(Config { forwarding_policies: policies, ..config() });
    lab.associate(SMF, 1);
    let message = Message { priority: Some(0), ..Message::session(0, 500, free5gc()) };
    lab.tell(SMF, &message);
    let answer = lab.answer(500);
    assert_eq!(answer.priority, Some(0));
    let Body::SessionEstablishmentResponse(response) = answer.body else { panic!("{answer:?}") };
    assert_eq!((response.cause, response.created_pdrs), (Cause::RequestAccepted, vec![]));
    let session = Seid(response.up_f_seid.unwrap().seid);
    let it = rules(&lab, session);
    assert_eq!((it.pdrs[0].qers.len(), it.pdrs[0].urrs.len()), (2, 2));
    assert!(
        it.urrs[0].before_qos && it.urrs.iter().all(|urr| urr.volume_threshold == Some(Default::default()))
    );
    assert_eq!(it.pdrs[1].pdi.ue_ipv4, Some(UE));

    let threshold = Some(Volumes { total: Some(1_000), ..Volumes::default() });
    let update = UpdateUrr { urr_id: 1, volume_threshold: threshold, ..UpdateUrr::default() };
    let mut request = SessionModificationRequest { update_urrs: vec![update], ..switch(5, Some(0)) };
    request.update_fars[0].bar_id = Some(0);
    accepted(&lab.modify(session, request));
    lab.traffic(session, (600, 600), false);
    assert_eq!(lab.reports().len(), 1);

    // A branch to a local network.
    let mut branch = uplink(3, given(1));
    branch.pdi.sdf_filters = vec![sdf("permit out ip from 10.70.0.0/24 to assigned", None)];
    (branch.far_id, branch.precedence) = (Some(3), Some(63));
    let mut local = forwarding(DestinationInterface::Core);
    local.carried = vec![RawIe { ie: ie::FORWARDING_POLICY, value: b"\x04MEC1".to_vec() }];
    let (create_pdrs, create_fars) = (vec![branch], vec![far(3, FORW, Some(local))]);
    accepted(
        &lab.modify(session, SessionModificationRequest { create_pdrs, create_fars, ..Default::default() }),
    );
    let flow = rules(&lab, session).pdrs[2].pdi.sdf_filters[0].flow.clone().unwrap();
    assert_eq!(flow.remote.prefix, Some("10.70.0.0/24".parse().unwrap()));
    assert_eq!(lab.delete(session).usage_reports.len(), 2);
}

/// It asks for an endpoint of no family, sends to the operator's own network, and notifies without buffering.
#[test]
fn omec_smf() {
    let mut lab = Lab::associated();
    let mut up = uplink(1, FTeid::Choose { ipv4: false, ipv6: false, choose_id: None });
    up.pdi.sdf_filters = vec![sdf("permit out ip from any to assigned", None)];
    let mut down = downlink(2, Some(UE));
    down.pdi.source_interface = SourceInterface::SgiLan;
    (up.qer_ids, down.qer_ids) = (vec![1, 3], vec![2, 3]);
    let request = SessionEstablishmentRequest {
        create_pdrs: vec![up, down],
        create_fars: vec![
            far(1, FORW, Some(forwarding(DestinationInterface::SgiLan))),
            far(
                2,
                NOCP,
                Some(into(
                    OuterHeaderCreation::GtpuIpv4 { teid: 0, address: GNB },
                    DestinationInterface::Access,
                )),
            ),
        ],
        create_qers: vec![smf::qer(1), smf::qer(2), smf::qer(3)],
        ..smf::establishment(77)
    };
    let (session, created) = established(&mut lab, request);
    assert_ne!(chosen(&created, 1), 0);
    let it = rules(&lab, session);
    assert_eq!((it.fars[1].apply_action, it.fars[1].notify), (rules::ApplyAction::Buffer, true));
    assert_eq!(it.fars[0].forwarding.unwrap().destination_interface, Interface::SgiLan);
    // Its adapter speaks from another port.
    let from = std::net::SocketAddr::new(SMF.into(), 40_000);
    lab.receive(from, &pfcp::encode(&Message::session(session.0, 501, switch(5, Some(flags::PFCPSM_DROBU)))));
    let Body::SessionModificationResponse(response) = lab.answer(501).body else { panic!("an answer") };
    accepted(&response);
    accepted(&lab.modify(session, switch(6, Some(flags::PFCPSM_SNDEM))));
    assert_eq!(end_markers(&lab), [5]);
    lab.delete(session);
}

/// Everything is said in full, with zeros, and reports are asked for by the second.
#[test]
fn oai_smf() {
    let mut lab = Lab::associated();
    let urr = CreateUrr {
        urr_id: 1,
        measurement_method: flags::METHOD_VOLUM | flags::METHOD_DURAT,
        reporting_triggers: ReportingTriggers::new(0b111),
        measurement_period: Some(10),
        volume_threshold: Some(Volumes { downlink: Some(1_000), ..Volumes::default() }),
        time_threshold: Some(5),
        ..CreateUrr::default()
    };
    let mut request = smf::establishment(77);
    request.create_pdrs[0] = uplink(1, FTeid::Choose { ipv4: true, ipv6: false, choose_id: None });
    for pdr in &mut request.create_pdrs {
        (pdr.precedence, pdr.pdi.network_instance, pdr.urr_ids) = (Some(0), None, vec![1]);
        pdr.pdi.ue_ip_addresses = vec![smf::ue(UE)];
    }
    request.create_pdrs[0].outer_header_removal =
        Some(OuterHeaderRemoval { description: 0, extension_header_deletion: Some(0) });
    request.create_urrs = vec![urr];
    let (session, created) = established(&mut lab, request);
    let teid = chosen(&created, 1);
    // The downlink is sent again as a whole.
    let whole = UpdatePdr {
        pdr_id: 1,
        precedence: Some(0),
        pdi: Some(uplink(1, given(teid)).pdi),
        far_id: Some(1),
        urr_ids: vec![1],
        ..UpdatePdr::default()
    };
    accepted(
        &lab.modify(session, SessionModificationRequest { update_pdrs: vec![whole], ..switch(5, None) }),
    );
    assert_eq!(rules(&lab, session).pdrs[0].pdi.f_teid.unwrap().teid.0, teid);
    assert_eq!(rules(&lab, session).pdrs[0].urrs, [UrrId(1)]);
    assert_eq!(lab.delete(session).usage_reports.len(), 1);
    lab.ask(
        SMF,
        &Message::node(900, AssociationReleaseRequest { node_id: NodeId::Ipv4(SMF), carried: vec![] }),
    );
}

#[test]
fn associations_come_from_either_side() {
    let mut lab = Lab::new(Config { associate: vec![common::at(SMF)], ..config() });
    lab.associate(SMF, 1);
    let answer = lab.ask(SMF, &Message::node(5, setup(SMF, 1)));
    assert!(matches!(answer, Body::AssociationSetupResponse(ref it) if it.up_function_features.is_some()));
}

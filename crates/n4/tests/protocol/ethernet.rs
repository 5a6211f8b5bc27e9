//! Ethernet PDU sessions (TS 29.244 5.13).

use crate::common::billing::*;
use crate::common::smf::{self, establishment};
use crate::common::{Lab, SMF};
use dplink::Notice;
use n4::Input;
use pfcp::UsageReportTrigger as Trigger;
use pfcp::*;
use rules::{EthernetFilter, MacFilter, MacRange, SeenMac, Seid, TagFilter};

const MACAR: u32 = 1 << 11;
const A: Mac = [2, 0, 0, 0, 0, 1];
const B: Mac = [2, 0, 0, 0, 0, 2];

/// As SMFs ask for it: PDN type Ethernet, and the downlink PDR is of all frames of the session.
pub(crate) fn ethernet(cp_seid: u64) -> SessionEstablishmentRequest {
    let mut request = establishment(cp_seid);
    request.pdn_type = Some(PdnType::Ethernet);
    let pdi = &mut request.create_pdrs[1].pdi;
    pdi.ue_ip_addresses.clear();
    pdi.ethernet_pdu_session_information = Some(flags::ETHERNET_ETHI);
    request
}

fn reporting(timer: Option<u32>) -> SessionEstablishmentRequest {
    let mut request = ethernet(77);
    request.create_urrs = vec![CreateUrr {
        measurement_method: flags::METHOD_EVENT,
        ethernet_inactivity_timer: timer,
        ..urr(5, MACAR)
    }];
    request.create_pdrs.iter_mut().for_each(|pdr| pdr.urr_ids = vec![5]);
    request
}

fn filters(lab: &Lab, session: Seid, pdr: u16) -> Vec<EthernetFilter> {
    let rules = &lab.in_force[&session].rules;
    let pdr = rules.pdrs.iter().find(|other| other.id.0 == pdr).unwrap();
    pdr.pdi.ethernet.as_ref().unwrap().filters.clone()
}

fn told(request: SessionEstablishmentRequest) -> (Cause, Option<u16>, Option<FailedRuleId>) {
    let mut lab = Lab::associated();
    let Body::SessionEstablishmentResponse(response) = lab.ask(SMF, &Message::session(0, 1, request)) else {
        panic!("an answer")
    };
    let accepted = response.cause.is_accepted();
    assert_eq!((lab.node.sessions(), lab.node.tunnels()), if accepted { (1, 1) } else { (0, 0) });
    (response.cause, response.offending_ie, response.failed_rule_id)
}

#[test]
fn a_session_is_of_frames_by_its_type_or_by_what_its_rules_look_at() {
    for (pdn_type, information) in [(Some(PdnType::Ethernet), None), (None, Some(flags::ETHERNET_ETHI))] {
        let mut request = ethernet(77);
        request.pdn_type = pdn_type;
        request.create_pdrs[1].pdi.ethernet_pdu_session_information = information;
        let mut lab = Lab::associated();
        let session = lab.establish(request);
        let pdrs = &lab.in_force[&session].rules.pdrs;
        assert!(pdrs.iter().all(|pdr| pdr.pdi.ethernet.as_ref().is_some_and(|of| of.filters.is_empty())));
        assert_eq!(pdrs[0].pdi.f_teid.map(|f_teid| f_teid.address), Some(crate::common::N3.into()));
    }
    let mut by_endpoint = ethernet(77);
    by_endpoint.pdn_type = None;
    by_endpoint.create_pdrs[1].pdi.ethernet_pdu_session_information = None;
    by_endpoint.create_traffic_endpoints = vec![CreateTrafficEndpoint {
        traffic_endpoint_id: 3,
        ethernet_pdu_session_information: Some(flags::ETHERNET_ETHI),
        ..CreateTrafficEndpoint::default()
    }];
    by_endpoint.create_pdrs[1].pdi.traffic_endpoint_id = Some(3);
    let mut lab = Lab::associated();
    let session = lab.establish(by_endpoint);
    assert!(lab.in_force[&session].rules.pdrs.iter().all(|pdr| pdr.pdi.ethernet.is_some()));
    // A plain session is none, and stays so after a restart.
    let plain = lab.establish(establishment(78));
    lab.restart();
    let is_of_frames = |seid| lab.desired()[&seid].rules.pdrs[0].pdi.ethernet.is_some();
    assert_eq!((is_of_frames(session), is_of_frames(plain)), (true, false));
}

#[test]
fn filters_reach_the_data_plane_as_they_are_said() {
    let mut request = ethernet(77);
    let range = MacAddresses { destination: Some(A), upper_destination: Some(B), ..MacAddresses::default() };
    let dns = Some("permit out 17 from any 53 to assigned".to_owned());
    request.create_pdrs[1].pdi.ethernet_packet_filters = vec![EthernetPacketFilter {
        ethernet_filter_id: Some(9),
        ethernet_filter_properties: Some(flags::ETHERNET_FILTER_BIDE),
        mac_addresses: vec![range],
        ethertype: Some(0x0800),
        c_tag: Some(VlanTag { id: Some(7), ..VlanTag::default() }),
        s_tag: Some(VlanTag { priority: Some(3), drop_eligible: Some(true), id: None }),
        ethernet_sdf_filters: vec![SdfFilter { flow_description: dns, ..SdfFilter::default() }],
        carried: vec![],
    }];
    let named = EthernetPacketFilter { ethernet_filter_id: Some(9), ..EthernetPacketFilter::default() };
    request.create_pdrs[0].pdi.ethernet_packet_filters = vec![named];
    let mut lab = Lab::associated();
    let session = lab.establish(request);
    let [filter] = &filters(&lab, session, 2)[..] else { panic!("one filter") };
    assert_eq!((filter.id, filter.is_bidirectional, filter.ethertype), (Some(9), true, Some(0x0800)));
    let destination = Some(MacRange { first: A, last: B });
    assert_eq!(filter.macs, [MacFilter { source: None, destination }]);
    assert_eq!(filter.c_tag, Some(TagFilter { id: Some(7), ..TagFilter::default() }));
    assert_eq!(filter.s_tag, Some(TagFilter { priority: Some(3), drop_eligible: Some(true), id: None }));
    assert_eq!(filter.sdf_filters.len(), 1);
    assert_eq!(filters(&lab, session, 1)[0].reference(), Some(9));
}

#[test]
fn modifications_change_filters_and_keep_the_type() {
    let mut lab = Lab::associated();
    let session = lab.establish(ethernet(77));
    let mut pdi = smf::pdi(SourceInterface::Core);
    let arp = EthernetPacketFilter { ethertype: Some(0x0806), ..EthernetPacketFilter::default() };
    pdi.ethernet_packet_filters = vec![arp];
    let update = UpdatePdr { pdr_id: 2, pdi: Some(pdi), ..UpdatePdr::default() };
    // A PDR that says nothing of frames is of frames in such a session.
    let create = smf::pdr(3, smf::pdi(SourceInterface::Core), 2);
    let request = SessionModificationRequest {
        update_pdrs: vec![update],
        create_pdrs: vec![create],
        ..SessionModificationRequest::default()
    };
    assert_eq!(lab.modify(session, request).cause, Cause::RequestAccepted);
    assert_eq!(filters(&lab, session, 2)[0].ethertype, Some(0x0806));
    assert_eq!(filters(&lab, session, 3), []);
    // An IP session does not become one of frames.
    let plain = lab.establish(establishment(78));
    let mut pdi = smf::pdi(SourceInterface::Core);
    pdi.ethernet_pdu_session_information = Some(flags::ETHERNET_ETHI);
    let create_pdrs = vec![smf::pdr(3, pdi, 2)];
    let request = SessionModificationRequest { create_pdrs, ..SessionModificationRequest::default() };
    let response = lab.modify(plain, request);
    assert_eq!(response.cause, Cause::RuleCreationModificationFailure);
    assert_eq!(response.failed_rule_id, Some(FailedRuleId::Pdr(3)));
}

#[test]
fn what_makes_no_sense_is_named() {
    const NO_RULE: Cause = Cause::RuleCreationModificationFailure;
    type Case = ((Cause, Option<u16>, Option<FailedRuleId>), fn(&mut SessionEstablishmentRequest));
    fn filter(request: &mut SessionEstablishmentRequest, filter: EthernetPacketFilter) {
        request.create_pdrs[1].pdi.ethernet_packet_filters.push(filter);
    }
    fn mac(request: &mut SessionEstablishmentRequest, addresses: MacAddresses) {
        filter(
            request,
            EthernetPacketFilter { mac_addresses: vec![addresses], ..EthernetPacketFilter::default() },
        );
    }
    let second = Some(FailedRuleId::Pdr(2));
    let cases: &[Case] = &[
        ((Cause::RequestAccepted, None, None), |_| ()),
        ((NO_RULE, Some(ie::ETHERNET_PDU_SESSION_INFORMATION), None), |r| r.pdn_type = Some(PdnType::Ipv4)),
        ((NO_RULE, Some(ie::MAC_ADDRESS), second), |r| mac(r, MacAddresses::default())),
        ((NO_RULE, Some(ie::MAC_ADDRESS), second), |r| {
            mac(r, MacAddresses { upper_source: Some(A), ..MacAddresses::default() });
        }),
        ((NO_RULE, Some(ie::MAC_ADDRESS), second), |r| {
            mac(r, MacAddresses { source: Some(B), upper_source: Some(A), ..MacAddresses::default() });
        }),
        ((Cause::ConditionalIeMissing, Some(ie::ETHERNET_FILTER_ID), second), |r| {
            let ethernet_filter_properties = Some(flags::ETHERNET_FILTER_BIDE);
            filter(r, EthernetPacketFilter { ethernet_filter_properties, ..EthernetPacketFilter::default() });
        }),
        ((NO_RULE, Some(ie::SDF_FILTER), second), |r| {
            let flow_description = Some("deny out ip from any to any".to_owned());
            let ethernet_sdf_filters = vec![SdfFilter { flow_description, ..SdfFilter::default() }];
            filter(r, EthernetPacketFilter { ethernet_sdf_filters, ..EthernetPacketFilter::default() });
        }),
        // Nothing of that ID, and nothing that goes both ways.
        ((NO_RULE, None, second), |r| {
            filter(
                r,
                EthernetPacketFilter { ethernet_filter_id: Some(4), ..EthernetPacketFilter::default() },
            );
        }),
        ((NO_RULE, None, second), |r| r.create_pdrs[1].pdi.ue_ip_addresses = vec![smf::ue(smf::UE)]),
        ((NO_RULE, None, second), |r| r.create_pdrs[1].pdi.application_id = Some(b"video".to_vec())),
        ((Cause::NoResourcesAvailable, None, second), |r| {
            (0..17).for_each(|_| filter(r, EthernetPacketFilter::default()));
        }),
    ];
    for (at, (expected, change)) in cases.iter().enumerate() {
        let mut request = ethernet(77);
        change(&mut request);
        assert_eq!(told(request), *expected, "case {at}");
    }
}

fn hears(lab: &mut Lab, session: Seid, macs: &[Mac]) {
    let macs: Vec<SeenMac> = macs.iter().map(|mac| SeenMac::untagged(*mac)).collect();
    sees(lab, session, macs);
}

fn sees(lab: &mut Lab, session: Seid, macs: Vec<SeenMac>) {
    lab.handle(Input::DataPath(&Notice::Macs { session, macs }));
}

/// Detected and removed, by the one report that was sent.
fn addresses(lab: &mut Lab, session: Seid) -> (Vec<Mac>, Vec<Mac>) {
    let [report] = &reported(lab, session)[..] else { panic!("one report") };
    assert_eq!((report.urr_id, report.usage_report_trigger), (5, Trigger(Trigger::MACAR)));
    assert_eq!((&report.volume_measurement, report.duration_measurement), (&None, None));
    let EthernetTrafficInformation { mac_addresses_detected, mac_addresses_removed, .. } =
        report.ethernet_traffic_information.clone().unwrap();
    let all = |lists: Vec<MacAddressList>| lists.into_iter().flat_map(|list| list.addresses).collect();
    (all(mac_addresses_detected), all(mac_addresses_removed))
}

#[test]
fn addresses_that_come_and_go_are_told_once() {
    let mut lab = Lab::associated();
    let session = lab.establish(reporting(Some(30)));
    assert_eq!(lab.in_force[&session].rules.urrs[0].ethernet_inactivity_s, Some(30));
    hears(&mut lab, session, &[]);
    assert!(lab.reports().is_empty());
    hears(&mut lab, session, &[B, A]);
    assert_eq!(addresses(&mut lab, session), (vec![A, B], vec![]));
    seconds(&mut lab, 2);
    // Another process hears all of it again, and tells what is new.
    lab.restart();
    hears(&mut lab, session, &[A, B]);
    seconds(&mut lab, 2);
    assert!(lab.reports().is_empty());
    hears(&mut lab, session, &[B]);
    assert_eq!(addresses(&mut lab, session), (vec![], vec![A]));
    let mut update = UpdateUrr { urr_id: 5, ..UpdateUrr::default() };
    update.ethernet_inactivity_timer = Some(60);
    let request =
        SessionModificationRequest { update_urrs: vec![update], ..SessionModificationRequest::default() };
    assert_eq!(lab.modify(session, request).cause, Cause::RequestAccepted);
    assert_eq!(lab.in_force[&session].rules.urrs[0].ethernet_inactivity_s, Some(60));
}

/// One that moves to another VLAN is gone from the one before.
#[test]
fn addresses_are_told_with_the_tags_they_are_seen_with() {
    let mut lab = Lab::associated();
    let session = lab.establish(reporting(None));
    let seen = |mac, c_vlan, s_vlan| SeenMac { mac, c_vlan, s_vlan };
    let c: Mac = [2, 0, 0, 0, 0, 3];
    let tag = |id| Some(VlanTag { priority: None, drop_eligible: None, id: Some(id) });
    let list = |addresses, c_tag, s_tag| MacAddressList { addresses, c_tag, s_tag };
    let lists = |lab: &mut Lab| {
        let [report] = &reported(lab, session)[..] else { panic!("one report") };
        let told = report.ethernet_traffic_information.clone().unwrap();
        (told.mac_addresses_detected, told.mac_addresses_removed)
    };
    sees(
        &mut lab,
        session,
        vec![seen(c, Some(10), Some(7)), seen(B, Some(10), None), seen(A, Some(10), None)],
    );
    let ten = list(vec![A, B], tag(10), None);
    assert_eq!(lists(&mut lab), (vec![ten, list(vec![c], tag(10), tag(7))], vec![]));
    seconds(&mut lab, 2);
    sees(&mut lab, session, vec![seen(c, Some(10), Some(7)), seen(B, None, None), seen(A, Some(10), None)]);
    assert_eq!(lists(&mut lab), (vec![MacAddressList::of(vec![B])], vec![list(vec![B], tag(10), None)]));
}

/// One report at a time: what comes meanwhile goes into the next.
#[test]
fn addresses_that_come_while_a_report_is_under_way_are_not_lost() {
    let mut lab = Lab::associated();
    let session = lab.establish(reporting(None));
    hears(&mut lab, session, &[A]);
    let (_, first) = lab.reports().remove(0);
    hears(&mut lab, session, &[A, B]);
    assert!(lab.reports().is_empty());
    let response = SessionReportResponse::of(Cause::RequestAccepted);
    lab.tell(SMF, &Message::session(session.0, first.sequence, response));
    seconds(&mut lab, 2);
    assert_eq!(addresses(&mut lab, session), (vec![B], vec![]));
}

#[test]
fn who_asks_later_is_told_all_there_are() {
    let mut lab = Lab::associated();
    let session = lab.establish(reporting(None));
    hears(&mut lab, session, &[A]);
    assert_eq!(addresses(&mut lab, session), (vec![A], vec![]));
    let again = SessionModificationRequest {
        remove_urrs: vec![RemoveUrr { urr_id: 5, ..RemoveUrr::default() }],
        create_urrs: reporting(None).create_urrs,
        ..SessionModificationRequest::default()
    };
    assert_eq!(lab.modify(session, again).cause, Cause::RequestAccepted);
    seconds(&mut lab, 2);
    assert_eq!(addresses(&mut lab, session), (vec![A], vec![]));
}

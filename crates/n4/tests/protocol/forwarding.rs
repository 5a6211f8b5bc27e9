//! Where packets go: tunnels of either family, copies, marks, and the end of a path.

use crate::common::personas::*;
use crate::common::smf::{self, UE, downlink, far, tunnel, uplink};
use crate::common::{Lab, N3, SMF, config};
use n4::{Config, GtpuAddress};
use pfcp::*;
use rules::{PacketRate, PacketRates, Qfi};

const FORW: u16 = ApplyAction::FORW;

/// Over IPv6, where we have it: endpoints chosen and given, tunnels, and what removes them.
#[test]
fn tunnels_over_ipv6() {
    let ours: std::net::Ipv6Addr = "2001:db8:30::2".parse().unwrap();
    let mut lab = Lab::new(Config {
        gtpu: vec![GtpuAddress { ipv6: Some(ours), ..GtpuAddress::access(N3) }],
        ..config()
    });
    lab.associate(SMF, 1);
    let removal = Some(OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IPV6));
    let six = FTeid::Explicit { teid: 9, ipv4: None, ipv6: Some(ours) };
    let both = FTeid::Explicit { teid: 10, ipv4: Some(N3), ipv6: Some(ours) };
    let mut request = smf::establishment(77);
    request.create_pdrs = vec![
        uplink(1, FTeid::Choose { ipv4: false, ipv6: true, choose_id: None }),
        downlink(2, Some(UE)),
        uplink(3, six),
        uplink(4, both),
    ];
    request.create_pdrs[0].outer_header_removal = removal;
    let address = "2001:db8:30::1".parse().unwrap();
    let to = into(OuterHeaderCreation::GtpuIpv6 { teid: 5, address }, DestinationInterface::Access);
    request.create_fars[1] =
        far(2, FORW, Some(ForwardingParameters { transport_level_marking: Some(0xB8FC), ..to }));
    let (session, created) = established(&mut lab, request);
    let Some(FTeid::Explicit { ipv4: None, ipv6, .. }) = created[0].local_f_teid else {
        panic!("{created:?}")
    };
    assert_eq!(ipv6, Some(ours));
    let it = rules(&lab, session);
    let addresses: Vec<_> = it.pdrs.iter().filter_map(|pdr| pdr.pdi.f_teid).map(|it| it.address).collect();
    assert_eq!(addresses, [ours.into(), ours.into(), std::net::IpAddr::from(N3)]);
    let to = it.fars[1].forwarding.unwrap();
    assert_eq!((to.dscp, to.outer_header_creation.unwrap().address), (Some(46), address.into()));
}

/// Copies for lawful interception, changed and ended; marks and rates taken away.
#[test]
fn copies_marks_and_rates_come_and_go() {
    let mut lab = Lab::associated();
    let mut request = smf::establishment(77);
    request.create_fars[0].apply_action = ApplyAction::new(FORW | ApplyAction::DUPL);
    let copy = DuplicatingParameters {
        destination_interface: DestinationInterface::LiFunction,
        outer_header_creation: Some(tunnel(0x99)),
        transport_level_marking: None,
        carried: vec![],
    };
    request.create_fars[0].duplicating_parameters = vec![copy];
    let rates = Some(Rates { uplink_kbps: 1, downlink_kbps: 2 });
    request.create_qers = vec![CreateQer { mbr: rates, gbr: rates, rqi: Some(1), ..smf::qer(1) }];
    request.create_pdrs[1].qer_ids = vec![1];
    let (session, _) = established(&mut lab, request);
    let it = rules(&lab, session);
    assert_eq!(it.fars[0].duplicates[0].outer_header_creation.unwrap().teid().unwrap().0, 0x99);
    assert!(it.qers[0].reflective && it.qers[0].qfi == Qfi::new(9));

    let none = |ie| RawIe { ie, value: vec![] };
    let copies =
        UpdateDuplicatingParameters { outer_header_creation: Some(tunnel(0x98)), ..Default::default() };
    let update_far =
        UpdateFar { far_id: 1, update_duplicating_parameters: vec![copies], ..Default::default() };
    let carried = vec![none(ie::MBR), none(ie::GBR), none(ie::QFI), none(ie::RQI)];
    let request = SessionModificationRequest {
        update_fars: vec![update_far],
        update_qers: vec![UpdateQer { qer_id: 1, carried, ..UpdateQer::default() }],
        ..SessionModificationRequest::default()
    };
    accepted(&lab.modify(session, request));
    let it = rules(&lab, session);
    assert_eq!(it.fars[0].duplicates[0].outer_header_creation.unwrap().teid().unwrap().0, 0x98);
    let qer = &it.qers[0];
    assert!(qer.mbr.is_none() && qer.gbr.is_none() && qer.qfi.is_none() && !qer.reflective);

    let end = UpdateFar { far_id: 1, apply_action: Some(ApplyAction::new(FORW)), ..UpdateFar::default() };
    accepted(
        &lab.modify(session, SessionModificationRequest { update_fars: vec![end], ..Default::default() }),
    );
    let far = &rules(&lab, session).fars[0];
    assert!(!far.duplicating && far.duplicates.len() == 1, "no copies, but where they went is known");
}

fn update_far(update: UpdateFar) -> SessionModificationRequest {
    SessionModificationRequest { update_fars: vec![update], ..Default::default() }
}

/// TS 29.244 8.2.26: DUPL goes with any action. Its parameters come when they change (7.5.4.3), so they outlive both an
/// idle user and a time without copies.
#[test]
fn a_user_who_is_copied_falls_asleep_and_wakes() {
    let mut lab = Lab::associated();
    let (session, _) = established(&mut lab, smf::establishment(77));
    let to = UpdateDuplicatingParameters {
        destination_interface: Some(DestinationInterface::LiFunction),
        outer_header_creation: Some(tunnel(0x99)),
        ..Default::default()
    };
    let where_to = UpdateFar { far_id: 1, update_duplicating_parameters: vec![to], ..Default::default() };
    accepted(&lab.modify(session, update_far(where_to)));
    let far = rules(&lab, session).fars[0].clone();
    assert!(!far.duplicating && far.duplicates.len() == 1, "nobody asked for copies yet");

    let (buff, nocp, dupl) = (ApplyAction::BUFF, ApplyAction::NOCP, ApplyAction::DUPL);
    for (action, copies) in [
        (FORW | dupl, true),
        (buff | nocp | dupl, true),
        (ApplyAction::DROP | dupl, true),
        (FORW, false),
        (FORW | dupl, true),
    ] {
        let action =
            UpdateFar { far_id: 1, apply_action: Some(ApplyAction::new(action)), ..Default::default() };
        accepted(&lab.modify(session, update_far(action)));
        let now = rules(&lab, session).fars[0].clone();
        assert_eq!((now.duplicating, now.duplicates), (copies, far.duplicates.clone()));
    }
}

#[test]
fn copies_without_a_place_to_go_to_are_refused() {
    let mut lab = Lab::associated();
    let (session, _) = established(&mut lab, smf::establishment(77));
    let action = Some(ApplyAction::new(FORW | ApplyAction::DUPL));
    let answer =
        lab.modify(session, update_far(UpdateFar { far_id: 2, apply_action: action, ..Default::default() }));
    assert_eq!(answer.cause, Cause::ConditionalIeMissing);
}

/// TS 29.244 8.2.64, and 5.4.4: what control planes number is theirs alone.
#[test]
fn packet_rates_and_correlations_come_and_go() {
    let mut lab = Lab::associated();
    let mut request = smf::establishment(77);
    // 5 packets a minute up, 600 an hour down.
    let carried = vec![RawIe { ie: ie::PACKET_RATE, value: vec![3, 0, 0, 5, 2, 2, 88] }];
    request.create_qers = vec![CreateQer { qer_correlation_id: Some(9), carried, ..smf::qer(1) }];
    let (session, _) = established(&mut lab, request);
    let qer = rules(&lab, session).qers[0].clone();
    let rate = |packets, window_s| Some(PacketRate { packets, window_s });
    assert_eq!(qer.packet_rates, PacketRates { uplink: rate(5, 60), downlink: rate(600, 3_600) });
    let number = qer.correlation.unwrap();
    assert_eq!(number as u32, 9);
    assert_ne!(number >> 32, 0, "another control plane's 9 is another's");
    let carried = [ie::PACKET_RATE, ie::QER_CORRELATION_ID].map(|ie| RawIe { ie, value: vec![] }).to_vec();
    let update_qers = vec![UpdateQer { qer_id: 1, carried, ..UpdateQer::default() }];
    accepted(&lab.modify(session, SessionModificationRequest { update_qers, ..Default::default() }));
    let qer = &rules(&lab, session).qers[0];
    assert!(qer.packet_rates.is_none() && qer.correlation.is_none());
}

/// Several FARs with one tunnel are one path.
#[test]
fn one_path_change_is_one_end_marker() {
    let mut lab = Lab::associated();
    let mut request = smf::establishment(77);
    let to_radio = || Some(into(tunnel(5), DestinationInterface::Access));
    request.create_fars[1] = far(2, FORW, to_radio());
    request.create_fars.push(far(3, FORW, to_radio()));
    let (session, _) = established(&mut lab, request);
    let mut moved = switch(6, None);
    let mut second = moved.update_fars[0].clone();
    second.far_id = 3;
    moved.update_fars.push(second);
    moved.pfcpsm_req_flags = Some(flags::PFCPSM_SNDEM);
    accepted(&lab.modify(session, moved.clone()));
    assert_eq!(end_markers(&lab), [5]);
    // The same path again, and another without being asked to.
    accepted(&lab.modify(session, moved));
    accepted(&lab.modify(session, switch(7, None)));
    assert_eq!(end_markers(&lab), [5]);
}

/// TS 29.244 8.2.67.
#[test]
fn header_enrichment_comes_and_goes() {
    let mut lab = Lab::associated();
    let field = |name: &str, value: &str| HeaderEnrichment::Http { name: name.into(), value: value.into() };
    let with = |header_enrichment| {
        let mut request = smf::establishment(77);
        let to = request.create_fars[0].forwarding_parameters.as_mut().unwrap();
        to.header_enrichment = Some(header_enrichment);
        request
    };
    let refused = [
        (field("X-A", "a\r\nHost: b"), Cause::MandatoryIeIncorrect),
        (field("X A", "a"), Cause::MandatoryIeIncorrect),
        (HeaderEnrichment::Other(vec![1, 1, b'a', 1, b'b']), Cause::ServiceNotSupported),
    ];
    for (header_enrichment, cause) in refused {
        match lab.ask(SMF, &Message::session(0, 5, with(header_enrichment))) {
            Body::SessionEstablishmentResponse(response) => {
                assert_eq!((response.cause, response.offending_ie), (cause, Some(ie::HEADER_ENRICHMENT)));
            }
            other => panic!("{other:?}"),
        }
    }
    let (session, _) = established(&mut lab, with(field("X-MSISDN", "491701234567")));
    let told = |lab: &Lab| {
        let enrichment = rules(lab, session).fars[0].enrichment.clone();
        enrichment.map(|field| format!("{}={}", field.name(), field.value()))
    };
    assert_eq!(told(&lab).as_deref(), Some("X-MSISDN=491701234567"));
    let mut change = |header_enrichment, carried| {
        let to = UpdateForwardingParameters { header_enrichment, carried, ..Default::default() };
        let update = UpdateFar { far_id: 1, update_forwarding_parameters: Some(to), ..Default::default() };
        let request = SessionModificationRequest { update_fars: vec![update], ..Default::default() };
        assert_eq!(lab.modify(session, request).cause, Cause::RequestAccepted);
        told(&lab)
    };
    assert_eq!(change(Some(field("X-B", "")), vec![]).as_deref(), Some("X-B="));
    let nothing = RawIe { ie: ie::HEADER_ENRICHMENT, value: vec![] };
    assert_eq!(change(None, vec![nothing]), None);
}

const SERVER: std::net::Ipv4Addr = std::net::Ipv4Addr::new(192, 0, 2, 9);

fn udp(address: std::net::Ipv4Addr, port: u16) -> ForwardingParameters {
    into(OuterHeaderCreation::UdpIpv4 { address, port }, DestinationInterface::Core)
}

/// UDP without GTP-U over N6 (TS 29.244 8.2.56), for packets and for copies, changed to a tunnel and back.
#[test]
fn outer_headers_of_udp_alone() {
    let mut lab = Lab::associated();
    let mut request = smf::establishment(77);
    request.create_fars[0] = far(1, FORW, Some(udp(SERVER, 5_000)));
    let (session, _) = established(&mut lab, request);
    let found = |lab: &Lab| rules(lab, session).fars[0].forwarding.unwrap().outer_header_creation;
    let header = rules::OuterHeaderCreation::udp(5_000, SERVER.into());
    assert_eq!(found(&lab), Some(header));
    let mut change = |to: OuterHeaderCreation| {
        let to = UpdateForwardingParameters { outer_header_creation: Some(to), ..Default::default() };
        let update = UpdateFar { far_id: 1, update_forwarding_parameters: Some(to), ..Default::default() };
        accepted(&lab.modify(session, update_far(update)));
        found(&lab)
    };
    assert_eq!(change(tunnel(5)).unwrap().teid(), Some(rules::Teid(5)));
    let other = rules::OuterHeaderCreation::udp(7, SERVER.into());
    assert_eq!(change(OuterHeaderCreation::UdpIpv4 { address: SERVER, port: 7 }), Some(other));
}

/// To port 0 nobody listens; to ourselves it would be read as this node's own; where no port has IPv6 nothing would leave; and
/// a control plane is reached by GTP-U.
#[test]
fn outer_headers_of_udp_that_lead_nowhere() {
    use pfcp::{Cause, ie};
    let address = "2001:db8::9".parse().unwrap();
    let over_ipv6 = OuterHeaderCreation::UdpIpv6 { address, port: 7 };
    let to_control_plane =
        ForwardingParameters { destination_interface: DestinationInterface::CpFunction, ..udp(SERVER, 7) };
    let cases = [
        (udp(SERVER, 0), Cause::MandatoryIeIncorrect, ie::OUTER_HEADER_CREATION),
        (udp(N3, 2152), Cause::MandatoryIeIncorrect, ie::OUTER_HEADER_CREATION),
        (into(over_ipv6, DestinationInterface::Core), Cause::ServiceNotSupported, ie::OUTER_HEADER_CREATION),
        (to_control_plane, Cause::ServiceNotSupported, ie::DESTINATION_INTERFACE),
    ];
    for (to, cause, blamed) in cases {
        let mut lab = Lab::associated();
        let mut request = smf::establishment(77);
        request.create_fars[0] = far(1, FORW, Some(to));
        let answer = lab.ask(SMF, &Message::session(0, 1, request));
        let Body::SessionEstablishmentResponse(answer) = answer else { panic!("{answer:?}") };
        assert_eq!((answer.cause, answer.offending_ie), (cause, Some(blamed)));
    }
}

/// It comes, is another, stays where nothing is said of it, and goes, as do those of copies. A name that nobody knows changes nothing.
#[test]
fn a_forwarding_policy_comes_changes_and_goes() {
    let policy = |name: &str| RawIe {
        ie: ie::FORWARDING_POLICY,
        value: if name.is_empty() { vec![] } else { [&[name.len() as u8], name.as_bytes()].concat() },
    };
    let policies = ["one", "two"].map(n4::ForwardingPolicy::of_any).to_vec();
    let mut lab = Lab::associated_with(Config { forwarding_policies: policies, ..config() });
    let mut request = smf::establishment(77);
    let out = request.create_fars[0].forwarding_parameters.as_mut().unwrap();
    out.carried = vec![policy("one")];
    request.create_fars[0].apply_action = ApplyAction::new(ApplyAction::FORW | ApplyAction::DUPL);
    let copy = DuplicatingParameters {
        destination_interface: DestinationInterface::Core,
        outer_header_creation: None,
        transport_level_marking: None,
        carried: vec![policy("two")],
    };
    request.create_fars[0].duplicating_parameters = vec![copy];
    let session = lab.establish(request);
    let told = |lab: &Lab| {
        let far = &lab.in_force[&session].rules.fars[0];
        (far.forwarding.unwrap().policy, far.duplicates[0].policy)
    };
    let of = |name: &str| Some(rules::Policy::of(name.as_bytes()));
    assert_eq!(told(&lab), (of("one"), of("two")));
    let update = |to: Option<&str>, copies: Option<&str>| {
        let to = UpdateForwardingParameters {
            carried: to.map(policy).into_iter().collect(),
            ..UpdateForwardingParameters::default()
        };
        let copies = copies.map(|name| UpdateDuplicatingParameters {
            carried: vec![policy(name)],
            ..UpdateDuplicatingParameters::default()
        });
        let update = UpdateFar {
            far_id: 1,
            update_forwarding_parameters: Some(to),
            update_duplicating_parameters: copies.into_iter().collect(),
            ..UpdateFar::default()
        };
        SessionModificationRequest { update_fars: vec![update], ..Default::default() }
    };
    lab.modify(session, update(Some("two"), Some("one")));
    assert_eq!(told(&lab), (of("two"), of("one")));
    lab.modify(session, update(None, None));
    assert_eq!(told(&lab), (of("two"), of("one")));
    let Body::SessionModificationResponse(refused) =
        lab.ask(SMF, &Message::session(session.0, 900, update(Some("three"), None)))
    else {
        panic!("an answer")
    };
    let blamed = (refused.cause, refused.offending_ie);
    assert_eq!(blamed, (Cause::InvalidForwardingPolicy, Some(ie::FORWARDING_POLICY)));
    assert_eq!(told(&lab), (of("two"), of("one")));
    lab.modify(session, update(Some(""), Some("")));
    assert_eq!(told(&lab), (None, None));
    assert_eq!(lab.in_force, lab.desired());
}

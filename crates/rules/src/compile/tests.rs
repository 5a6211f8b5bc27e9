use crate::fixture::{GNB, UE, bar, pdi, pdr, qer, rules, towards, urr};
use crate::*;
use std::net::{IpAddr, Ipv4Addr};

const RATES: BitRates = BitRates { uplink_kbps: 1_000, downlink_kbps: 2_000 };

/// The plain session with its downlink forwarded into a tunnel.
fn with_tunnel() -> Rules {
    let mut rules = rules();
    let tunnel = Some(OuterHeaderCreation::gtpu(Teid(7), GNB));
    rules.fars[1].apply_action = ApplyAction::Forward;
    rules.fars[1].forwarding =
        Some(ForwardingParameters { outer_header_creation: tunnel, ..towards(Interface::Access) });
    rules
}

pub(super) fn uplink_packet() -> Arrival {
    Arrival {
        source: Interface::Access,
        instance: Instance::DEFAULT,
        teid: Some(Teid(0x100)),
        qfi: Qfi::new(5),
        ue: UE.into(),
        remote: Ipv4Addr::new(8, 8, 8, 8).into(),
        protocol: 17,
        ue_port: Some(1_000),
        remote_port: Some(53),
        traffic_class: 0,
        spi: None,
        flow_label: None,
        application: Application::None,
    }
}

#[test]
fn steps_stand_in_order_of_precedence() {
    let mut rules = rules();
    rules.pdrs[1].precedence = 1;
    let order: Vec<_> = compile(&rules).unwrap().steps.iter().map(|step| step.pdr).collect();
    assert_eq!(order, [PdrId(2), PdrId(1)]);
}

/// Some control planes tell of the removal later (TS 29.244 8.2.64); kept are packets all the same.
#[test]
fn a_tunnel_s_packets_go_nowhere_with_its_header() {
    let action = |change: fn(&mut Rules)| {
        let mut rules = with_tunnel();
        change(&mut rules);
        compile(&rules).unwrap().steps[0].action
    };
    assert!(matches!(action(|_| ()), Action::Forward(_)));
    assert_eq!(
        action(|rules| rules.pdrs[0].outer_header_removal = false),
        Action::Drop { notify: false, qfi: None }
    );
    let buffers = action(|rules| {
        rules.pdrs[0].outer_header_removal = false;
        rules.fars[0].apply_action = ApplyAction::Buffer;
    });
    assert!(matches!(buffers, Action::Buffer { .. }), "{buffers:?}");
    let late = |rules: &mut Rules| {
        rules.pdrs[0].outer_header_removal = false;
        rules.urrs = vec![Urr { quota_far: Some(FarId(2)), ..urr(1) }];
        rules.pdrs[0].urrs = vec![UrrId(1)].into();
    };
    assert_eq!(action(late), Action::Drop { notify: false, qfi: None });
}

#[test]
fn equal_precedence_is_settled_by_the_id() {
    let mut rules = rules();
    rules.pdrs.reverse();
    let order: Vec<_> = compile(&rules).unwrap().steps.iter().map(|step| step.pdr).collect();
    assert_eq!(order, [PdrId(1), PdrId(2)]);
}

#[test]
fn keys_are_the_tunnels_up_and_the_addresses_down_each_once() {
    let mut rules = rules();
    let prefix = "2001:db8:0:1::9/64".parse().unwrap();
    rules.pdrs[1].pdi.ue_ipv6 = Some(prefix);
    for id in 3..5 {
        rules.pdrs.push(Pdr { id: PdrId(id), ..rules.pdrs[0].clone() });
        rules.pdrs.push(Pdr { id: PdrId(id + 10), ..rules.pdrs[1].clone() });
    }
    let program = compile(&rules).unwrap();
    assert_eq!(*program.f_teids, [rules.pdrs[0].pdi.f_teid.unwrap()]);
    assert_eq!(*program.ue_ipv4s, [(Instance::DEFAULT, UE)]);
    assert_eq!(*program.ue_ipv6s, [(Instance::DEFAULT, "2001:db8:0:1::/64".parse().unwrap())]);
}

#[test]
fn any_closed_gate_closes_its_own_direction_only() {
    let mut rules = rules();
    rules.qers = vec![qer(1), Qer { downlink_gate: Gate::Closed, ..qer(2) }];
    rules.pdrs.iter_mut().for_each(|pdr| pdr.qers = vec![QerId(1), QerId(2)].into());
    let program = compile(&rules).unwrap();
    let plain = Forward {
        to: Interface::Core,
        instance: Instance::DEFAULT,
        encapsulation: None,
        dscp: None,
        policy: None,
    };
    assert_eq!(program.steps[0].action, Action::Forward(plain));
    assert_eq!(program.steps[1].action, Action::GateClosed);
}

#[test]
fn the_first_qfi_and_any_rqi_mark_the_tunnel() {
    let mut rules = with_tunnel();
    rules.qers = vec![Qer { reflective: true, ..qer(1) }, Qer { qfi: Qfi::new(9), ..qer(2) }];
    rules.pdrs[1].qers = vec![QerId(1), QerId(2)].into();
    let tunnel =
        Encapsulation { header: OuterHeader::Gtpu(Teid(7)), peer: GNB, qfi: Qfi::new(9), reflective: true };
    let expected = Forward {
        to: Interface::Access,
        instance: Instance::DEFAULT,
        encapsulation: Some(tunnel),
        dscp: None,
        policy: None,
    };
    assert_eq!(compile(&rules).unwrap().steps[1].action, Action::Forward(expected));
}

/// UDP has no room for either.
#[test]
fn an_outer_header_of_udp_alone_has_no_marks() {
    let mut rules = with_tunnel();
    rules.qers = vec![Qer { reflective: true, qfi: Qfi::new(9), ..qer(1) }];
    rules.pdrs[0].qers = vec![QerId(1)].into();
    let to = rules.fars[0].forwarding.as_mut().unwrap();
    to.outer_header_creation = Some(OuterHeaderCreation::udp(5_000, GNB));
    let header = OuterHeader::Udp(5_000);
    let behind = Encapsulation { header, peer: GNB, qfi: None, reflective: false };
    let Action::Forward(found) = compile(&rules).unwrap().steps[0].action else { panic!("it forwards") };
    assert_eq!(found.encapsulation, Some(behind));
}

fn flow_of(step: &Step) -> Option<Qfi> {
    match step.action {
        Action::Forward(Forward { encapsulation: Some(into), .. }) => into.qfi,
        _ => None,
    }
}

/// One of them is of all flows, and has the number that means none.
#[test]
fn a_qfi_of_0_is_that_of_no_flow() {
    let mut rules = with_tunnel();
    rules.qers = vec![Qer { qfi: Qfi::new(0), ..qer(1) }, Qer { qfi: Qfi::new(9), ..qer(2) }];
    rules.pdrs[1].qers = vec![QerId(1), QerId(2)].into();
    assert_eq!(flow_of(&compile(&rules).unwrap().steps[1]), Qfi::new(9));
    rules.pdrs[1].qers = vec![QerId(1)].into();
    assert_eq!(flow_of(&compile(&rules).unwrap().steps[1]), Qfi::new(0));
}

/// Router advertisements of a control plane: its PDR has no QER, and the FAR of the user's downlink.
#[test]
fn packets_of_the_control_plane_go_in_the_flow_of_others_by_their_far() {
    let mut rules = with_tunnel();
    rules.qers = vec![Qer { qfi: Qfi::new(9), ..qer(1) }];
    rules.pdrs[1].qers = vec![QerId(1)].into();
    let f_teid = rules.pdrs[0].pdi.f_teid.map(|f_teid| FTeid { teid: Teid(0x101), ..f_teid });
    rules.pdrs.push(pdr(3, Pdi { f_teid, ..pdi(Interface::Access) }, 2));
    assert_eq!(flow_of(&compile(&rules).unwrap().steps[2]), Qfi::new(9));
    // Where a QER of their own says so, they go in another; and in none where all go in none.
    rules.qers.push(Qer { qfi: Qfi::new(5), ..qer(2) });
    rules.pdrs[2].qers = vec![QerId(2)].into();
    assert_eq!(flow_of(&compile(&rules).unwrap().steps[2]), Qfi::new(5));
    rules.pdrs.iter_mut().for_each(|pdr| pdr.qers.clear());
    assert_eq!(flow_of(&compile(&rules).unwrap().steps[2]), None);
}

#[test]
fn copies_asked_for_are_made_whatever_the_far_does_and_not_of_what_a_gate_stops() {
    let mut rules = rules();
    rules.fars[0].duplicates = vec![ForwardingParameters { dscp: Some(8), ..towards(Interface::SgiLan) }];
    let copy = Forward {
        to: Interface::SgiLan,
        instance: Instance::DEFAULT,
        encapsulation: None,
        dscp: Some(8),
        policy: None,
    };
    assert!(compile(&rules).unwrap().steps[0].duplicates.is_empty(), "nobody asked for copies yet");
    rules.fars[0].duplicating = true;
    for action in [ApplyAction::Drop, ApplyAction::Buffer, ApplyAction::Forward] {
        rules.fars[0].apply_action = action;
        assert_eq!(*compile(&rules).unwrap().steps[0].duplicates, [copy], "{action:?}");
    }
    let mut late = rules.clone();
    late.pdrs[0].outer_header_removal = false;
    assert!(compile(&late).unwrap().steps[0].duplicates.is_empty(), "they have their tunnel's header still");
    rules.qers = vec![Qer { uplink_gate: Gate::Closed, ..qer(1) }];
    rules.pdrs[0].qers = vec![QerId(1)].into();
    assert!(compile(&rules).unwrap().steps[0].duplicates.is_empty());
}

#[test]
fn buffering_tells_whom_it_was_asked_to() {
    let mut rules = with_tunnel();
    rules.fars[1].apply_action = ApplyAction::Buffer;
    rules.fars[1].notify = true;
    rules.bars = vec![bar(1), Bar { suggested_packets: Some(20), ..bar(2) }];
    rules.qers = vec![Qer { qfi: Qfi::new(0), ..qer(1) }, Qer { qfi: Qfi::new(9), ..qer(2) }];
    rules.pdrs[1].qers = vec![QerId(1), QerId(2)].into();
    let program = compile(&rules).unwrap();
    assert_eq!(
        program.steps[1].action,
        Action::Buffer { notify: true, qfi: Qfi::new(9), most: None, extended: None },
        "none of the BARs is its"
    );
    rules.fars[1].bar = Some(BarId(2));
    rules.pdrs[1].qers = vec![QerId(1)].into();
    assert_eq!(
        compile(&rules).unwrap().steps[1].action,
        Action::Buffer { notify: true, qfi: None, most: Some(20), extended: None }
    );
}

#[test]
fn steps_know_the_places_of_their_meters_and_usages() {
    let mut rules = rules();
    let limited = |id| Qer { mbr: Some(RATES), ..qer(id) };
    rules.qers = vec![qer(1), limited(2), qer(3), limited(4)];
    rules.urrs = vec![urr(5), urr(6)];
    rules.pdrs[0].qers = vec![QerId(4), QerId(1), QerId(2), QerId(4)].into();
    rules.pdrs[0].urrs = vec![UrrId(6), UrrId(6)].into();
    let program = compile(&rules).unwrap();
    let meters = [2, 4].map(|id| meter(id, None));
    assert_eq!(*program.meters, meters);
    assert_eq!(*program.steps[0].meters, [1, 0], "each once, however often it is named");
    assert_eq!(program.usages.iter().map(|usage| usage.urr).collect::<Vec<_>>(), [UrrId(5), UrrId(6)]);
    assert_eq!(*program.steps[0].usages, [1]);
    assert!(program.steps[1].meters.is_empty() && program.steps[1].usages.is_empty());
}

fn meter(id: u32, correlation: Option<u64>) -> Meter {
    Meter { qer: QerId(id), mbr: Some(RATES), packet_rates: PacketRates::default(), correlation }
}

/// QERs of one correlation are one meter, with the limits of the first; a QER without a limit is none.
#[test]
fn qers_of_one_correlation_are_one_meter() {
    let mut rules = rules();
    let of = |id, mbr, correlation| Qer { mbr, correlation, ..qer(id) };
    let slower = Some(BitRates { uplink_kbps: 1, downlink_kbps: 1 });
    rules.qers = vec![
        of(1, None, Some(7)),
        of(2, Some(RATES), Some(7)),
        of(3, Some(RATES), Some(8)),
        of(4, slower, Some(7)),
    ];
    rules.pdrs[0].qers = [1, 2, 3, 4].map(QerId).to_vec().into();
    let program = compile(&rules).unwrap();
    assert_eq!(*program.meters, [meter(2, Some(7)), meter(3, Some(8))]);
    assert_eq!(*program.steps[0].meters, [0, 1]);
}

#[test]
fn a_packet_rate_alone_is_a_meter() {
    let mut rules = rules();
    let uplink = Some(PacketRate { packets: 5, window_s: 60 });
    let packet_rates = PacketRates { uplink, downlink: None };
    rules.qers = vec![Qer { packet_rates, ..qer(1) }];
    rules.pdrs[0].qers = vec![QerId(1)].into();
    let program = compile(&rules).unwrap();
    assert_eq!(*program.meters, [Meter { qer: QerId(1), mbr: None, packet_rates, correlation: None }]);
    assert_eq!(*program.steps[0].meters, [0]);
}

#[test]
fn usages_carry_what_the_data_plane_enforces() {
    let volume = |total| Volume { total: Some(total), ..Volume::default() };
    let mut rules = rules();
    rules.urrs = vec![Urr {
        volume_threshold: Some(volume(10)),
        threshold_since: Since { uplink: -7, downlink: 1 },
        quota_since: Some(Since { uplink: 3, downlink: 0 }),
        volume_quota: Some(volume(20)),
        quota_grant: 3,
        dropped_downlink: Some(DroppedDownlink { packets: Some(4), bytes: None }),
        triggers: Triggers::START_OF_TRAFFIC,
        starts_awaited: 5,
        before_qos: true,
        inactivity_detection_time_s: Some(6),
        inactive: true,
        ..urr(1)
    }];
    let expected = Usage {
        urr: UrrId(1),
        threshold: volume(10),
        threshold_since: Since { uplink: -7, downlink: 1 },
        quota_since: Some(Since { uplink: 3, downlink: 0 }),
        quota: volume(20),
        quota_grant: 3,
        dropped_downlink: DroppedDownlink { packets: Some(4), bytes: None },
        start_of_traffic: Some(5),
        before_qos: true,
        inactivity_detection_s: std::num::NonZeroU32::new(6),
        inactive: true,
    };
    assert_eq!(*compile(&rules).unwrap().usages, [expected]);
}

#[test]
fn beyond_a_quota_packets_go_by_its_far() {
    let mut rules = with_tunnel();
    assert!(compile(&rules).unwrap().beyond_quota.is_empty());
    let to_the_portal = |id| Urr { quota_far: Some(FarId(1)), ..urr(id) };
    rules.urrs =
        vec![urr(1), to_the_portal(2), Urr { quota_far: Some(FarId(3)), ..urr(3) }, to_the_portal(4)];
    rules.fars.push(crate::fixture::drop_far(3));
    rules.pdrs[1].urrs = [1, 4, 3, 2].map(UrrId).to_vec().into();
    let program = compile(&rules).unwrap();
    let seen = program.beyond_quota.iter().map(|to| (to.of, to.step.far, to.usages.to_vec(), to.step.action));
    let portal = Forward {
        to: Interface::Core,
        instance: Instance::DEFAULT,
        encapsulation: None,
        dscp: None,
        policy: None,
    };
    let expected = [
        (1, FarId(1), vec![3, 1], Action::Forward(portal)),
        (1, FarId(3), vec![2], Action::Drop { notify: false, qfi: None }),
    ];
    assert_eq!(seen.collect::<Vec<_>>(), expected);
    assert_eq!(program.beyond_quota[0].step.usages, program.steps[1].usages, "all still count");
}

/// The end of a quota opens no gate, and lets nothing through that was to be dropped.
#[test]
fn what_is_dropped_within_a_quota_is_dropped_beyond_it() {
    let mut rules = with_tunnel();
    rules.urrs = vec![Urr { quota_far: Some(FarId(1)), ..urr(1) }];
    rules.pdrs[1].urrs = vec![UrrId(1)].into();
    let mut shut = Rules { qers: vec![Qer { downlink_gate: Gate::Closed, ..qer(1) }], ..rules.clone() };
    shut.pdrs[1].qers = vec![QerId(1)].into();
    assert!(compile(&shut).unwrap().beyond_quota.is_empty());
    rules.fars[1].apply_action = ApplyAction::Buffer;
    assert_eq!(compile(&rules).unwrap().beyond_quota.len(), 1);
    rules.fars[1].apply_action = ApplyAction::Drop;
    assert!(compile(&rules).unwrap().beyond_quota.is_empty());
}

#[test]
fn a_step_is_found_only_by_what_its_pdi_says() {
    let mut rules = rules();
    rules.pdrs[0].pdi.qfis = vec![Qfi::new(5).unwrap()];
    let program = compile(&rules).unwrap();
    let fits = uplink_packet();
    let found = |packet: Arrival| program.classifier.find(&packet);
    assert_eq!(found(fits), Some(0));
    assert_eq!(found(Arrival { qfi: Qfi::new(6), ..fits }), None);
    assert_eq!(found(Arrival { qfi: None, ..fits }), None);
    // Of packets in tunnels, the tunnel says where they come from.
    assert_eq!(found(Arrival { source: Interface::Core, ..fits }), Some(0));
    assert_eq!(found(Arrival { source: Interface::SgiLan, teid: None, ..fits }), None);
    assert_eq!(found(Arrival { source: Interface::Core, teid: None, ..fits }), Some(1));
    assert_eq!(found(Arrival { teid: None, ..fits }), None);
    assert_eq!(found(Arrival { ue: Ipv4Addr::LOCALHOST.into(), ..fits }), None);
    assert_eq!(found(Arrival { ue: IpAddr::V6(UE.to_ipv6_mapped()), ..fits }), None);
}

#[test]
fn a_filter_of_nothing_but_an_id_is_the_filter_of_that_id() {
    let mut rules = rules();
    let dns = FlowEnd { addresses: None, ports: vec![PortRange { first: 53, last: 53 }] };
    let flow = FlowDescription { protocol: Some(17), remote: dns, ..FlowDescription::default() };
    let told = SdfFilter { flow: Some(flow), id: Some(4), ..SdfFilter::default() };
    rules.pdrs[0].pdi.sdf_filters = vec![SdfFilter { id: Some(4), ..SdfFilter::default() }];
    rules.pdrs[1].pdi = Pdi { sdf_filters: vec![told], ..pdi(Interface::Core) };
    let classifier = compile(&rules).unwrap().classifier;
    assert_eq!(classifier.find(&uplink_packet()), Some(0));
    assert_eq!(classifier.find(&Arrival { remote_port: Some(54), ..uplink_packet() }), None);
}

/// Two PDRs and FARs, a QER that limits a rate and a URR on both: what most sessions have.
#[test]
fn a_plain_session_takes_little_memory() {
    let mut rules = with_tunnel();
    rules.qers = vec![Qer { mbr: Some(RATES), qfi: Qfi::new(9), ..qer(1) }];
    rules.urrs = vec![urr(1)];
    for pdr in &mut rules.pdrs {
        (pdr.qers, pdr.urrs) = (vec![QerId(1)].into(), vec![UrrId(1)].into());
    }
    rules.pdrs[0].pdi.qfis = vec![Qfi::new(9).unwrap()];
    rules.pdrs[1].pdi.ue_ipv6 = Some("2001:db8:0:1::/64".parse().unwrap());
    let program = compile(&rules).unwrap();
    println!("program: {} bytes in place, {} allocated", size_of::<Program>(), program.heap_bytes());
    println!("of which classifier: {} bytes in place, {} allocated", size_of::<Classifier>(), {
        program.classifier.heap_bytes()
    });
    println!(
        "step: {} bytes, meter: {}, usage: {}",
        size_of::<Step>(),
        size_of::<Meter>(),
        size_of::<Usage>()
    );
    assert!(size_of::<Program>() <= 320);
    assert!(program.heap_bytes() <= 392);
    assert_eq!(program.classifier.heap_bytes(), 0);
}

#[test]
fn a_redirection_counts_where_its_far_forwards() {
    let redirect = |text| crate::Redirect::new(text);
    let url = "http://portal.example/";
    let mut rules = rules();
    rules.fars[0].redirect = redirect(url);
    rules.fars[0].enrichment = crate::HeaderField::new("X-A", "b");
    let program = compile(&rules).unwrap();
    let treatments: Vec<_> = program.steps.iter().map(|step| program.treatment(step)).collect();
    assert_eq!(treatments, [Some(&Treatment::Portal(url.into())), None]);
    rules.fars[0].redirect = redirect("192.0.2.80");
    let program = compile(&rules).unwrap();
    let treatment = program.treatment(&program.steps[0]);
    assert!(matches!(treatment, Some(Treatment::Readdress(to)) if to.ipv4() == Some([192, 0, 2, 80].into())));
    rules.fars[0].apply_action = ApplyAction::Drop;
    let program = compile(&rules).unwrap();
    assert!(program.steps.iter().all(|step| program.treatment(step).is_none()));
}

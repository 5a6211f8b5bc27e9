use crate::fixture::{GNB, bar, drop_far, pdi, pdr, qer, rules, towards, urr};
use crate::*;
use ipnet::IpNet;
use std::time::{Duration, Instant};

fn pdr_1() -> RuleRef {
    RuleRef::Pdr(PdrId(1))
}

fn far(id: u32) -> RuleRef {
    RuleRef::Far(FarId(id))
}

/// The plain session after `spoil`.
fn refusal(spoil: impl FnOnce(&mut Rules)) -> RuleError {
    let mut bad = rules();
    spoil(&mut bad);
    let error = bad.check().unwrap_err();
    assert!(error.to_string().starts_with(&error.rule().to_string()), "{error} blames the rule first");
    error
}

fn with_filter(filter: SdfFilter) -> Rules {
    let mut rules = rules();
    rules.pdrs[0].pdi.sdf_filters = vec![filter];
    rules
}

fn flow(protocol: Option<u8>, remote: FlowEnd, user: FlowEnd) -> SdfFilter {
    SdfFilter { flow: Some(FlowDescription { protocol, remote, user }), ..SdfFilter::default() }
}

fn ports(count: usize) -> FlowEnd {
    FlowEnd { addresses: None, ports: vec![PortRange { first: 80, last: 90 }; count] }
}

fn net(text: &str) -> FlowEnd {
    FlowEnd { addresses: Some(text.parse::<ipnet::IpNet>().unwrap().into()), ports: vec![] }
}

#[test]
fn complete_rules_pass() {
    assert_eq!(rules().check(), Ok(()));
}

#[test]
fn a_pdr_naming_an_absent_rule_is_refused_with_both_ids() {
    assert_eq!(refusal(|bad| bad.pdrs[0].far = FarId(99)), RuleError::Dangling(pdr_1(), far(99)));
    let absent_qer = refusal(|bad| bad.pdrs[0].qers = vec![QerId(7)].into());
    assert_eq!(absent_qer, RuleError::Dangling(pdr_1(), RuleRef::Qer(QerId(7))));
    let absent_urr = refusal(|bad| bad.pdrs[0].urrs = vec![UrrId(8)].into());
    assert_eq!(absent_urr, RuleError::Dangling(pdr_1(), RuleRef::Urr(UrrId(8))));
    assert_eq!(absent_urr.to_string(), "PDR 1 names URR 8, which does not exist");
}

#[test]
fn a_far_naming_an_absent_bar_is_refused() {
    let absent = refusal(|bad| bad.fars[1].bar = Some(BarId(3)));
    assert_eq!(absent, RuleError::Dangling(far(2), RuleRef::Bar(BarId(3))));
}

#[test]
fn a_urr_naming_absent_rules_is_refused() {
    let named = RuleRef::Urr(UrrId(1));
    let linked = refusal(|bad| bad.urrs = vec![Urr { linked: vec![UrrId(2)], ..urr(1) }]);
    assert_eq!(linked, RuleError::Dangling(named, RuleRef::Urr(UrrId(2))));
    let quota = refusal(|bad| bad.urrs = vec![Urr { quota_far: Some(FarId(9)), ..urr(1) }]);
    assert_eq!(quota, RuleError::Dangling(named, far(9)));
}

#[test]
fn doubled_ids_are_refused_in_every_kind() {
    let twice = |rule| RuleError::Duplicate(rule);
    assert_eq!(refusal(|bad| bad.pdrs.push(bad.pdrs[0].clone())), twice(pdr_1()));
    assert_eq!(refusal(|bad| bad.fars.push(bad.fars[1].clone())), twice(far(2)));
    assert_eq!(refusal(|bad| bad.qers = vec![qer(1), qer(1)]), twice(RuleRef::Qer(QerId(1))));
    assert_eq!(refusal(|bad| bad.urrs = vec![urr(1), urr(1)]), twice(RuleRef::Urr(UrrId(1))));
    assert_eq!(refusal(|bad| bad.bars = vec![bar(1), bar(1)]), twice(RuleRef::Bar(BarId(1))));
    let among_many = refusal(|bad| bad.qers = (0..50).chain([33]).map(qer).collect());
    assert_eq!(among_many, twice(RuleRef::Qer(QerId(33))));
}

#[test]
fn a_forwarding_far_must_say_where() {
    assert_eq!(refusal(|bad| bad.fars[0].forwarding = None), RuleError::NoForwardingParameters(far(1)));
}

#[test]
fn copies_may_be_asked_for_of_one_who_sleeps_but_go_to_two_places_at_most() {
    let mut sleeping = rules();
    sleeping.fars[1].apply_action = ApplyAction::Buffer;
    sleeping.fars[1].duplicating = true;
    sleeping.fars[1].duplicates = vec![towards(Interface::Core)];
    assert_eq!(sleeping.check(), Ok(()));
    let three = refusal(|bad| bad.fars[0].duplicates = vec![towards(Interface::Core); 3]);
    assert_eq!(three, RuleError::TooManyOf(far(1), "copies"));
}

#[test]
fn teid_0_is_refused_wherever_it_stands() {
    let tunnel = Some(OuterHeaderCreation::gtpu(Teid(0), GNB));
    let to = ForwardingParameters { outer_header_creation: tunnel, ..towards(Interface::Core) };
    assert_eq!(refusal(|bad| bad.fars[1].forwarding = Some(to)), RuleError::ZeroTeid(far(2)));
    assert_eq!(refusal(|bad| bad.fars[0].duplicates = vec![to]), RuleError::ZeroTeid(far(1)));
    let f_teid = Some(FTeid { teid: Teid(0), address: GNB });
    assert_eq!(refusal(|bad| bad.pdrs[0].pdi.f_teid = f_teid), RuleError::ZeroTeid(pdr_1()));
}

#[test]
fn udp_port_0_is_refused_wherever_it_stands() {
    let behind = |port| ForwardingParameters {
        outer_header_creation: Some(OuterHeaderCreation::udp(port, GNB)),
        ..towards(Interface::Core)
    };
    assert_eq!(refusal(|bad| bad.fars[1].forwarding = Some(behind(0))), RuleError::ZeroPort(far(2)));
    assert_eq!(refusal(|bad| bad.fars[0].duplicates = vec![behind(0)]), RuleError::ZeroPort(far(1)));
    let mut good = rules();
    good.fars[0].forwarding = Some(behind(1));
    assert_eq!(good.check(), Ok(()));
}

#[test]
fn a_dscp_has_six_bits() {
    let to = |dscp| ForwardingParameters { dscp: Some(dscp), ..towards(Interface::Core) };
    assert_eq!(refusal(|bad| bad.fars[0].forwarding = Some(to(64))), RuleError::Dscp(far(1)));
    assert_eq!(refusal(|bad| bad.fars[0].duplicates = vec![to(64)]), RuleError::Dscp(far(1)));
    let mut good = rules();
    good.fars[0].forwarding = Some(to(63));
    assert_eq!(good.check(), Ok(()));
}

#[test]
fn a_bit_rate_has_forty_bits() {
    let rates = |uplink_kbps, downlink_kbps| Some(BitRates { uplink_kbps, downlink_kbps });
    let refused = RuleError::BitRate(RuleRef::Qer(QerId(1)));
    assert_eq!(refusal(|bad| bad.qers = vec![Qer { mbr: rates(1, 1 << 40), ..qer(1) }]), refused);
    assert_eq!(refusal(|bad| bad.qers = vec![Qer { gbr: rates(1 << 40, 1), ..qer(1) }]), refused);
    let downlink = Some(PacketRate { packets: 1, window_s: 0 });
    let packet_rates = PacketRates { uplink: None, downlink };
    let timeless = refusal(|bad| bad.qers = vec![Qer { packet_rates, ..qer(1) }]);
    assert_eq!(timeless, RuleError::PacketRate(RuleRef::Qer(QerId(1))));
    let most = (1 << 40) - 1;
    let good = Rules { qers: vec![Qer { mbr: rates(most, most), ..qer(1) }], ..rules() };
    assert_eq!(good.check(), Ok(()));
}

#[test]
fn a_pdr_nobody_can_reach_is_refused() {
    let unreachable = refusal(|bad| {
        bad.pdrs[0].pdi.f_teid = None;
        bad.pdrs[0].pdi.ue_ipv4 = None;
    });
    assert_eq!(unreachable, RuleError::Unreachable(pdr_1()));
}

#[test]
fn a_user_has_a_prefix_of_64_bits_or_an_address() {
    let prefix = |length| Some(format!("2001:db8::/{length}").parse().unwrap());
    for length in [0, 48, 63, 65, 127] {
        let refused = refusal(|bad| bad.pdrs[1].pdi.ue_ipv6 = prefix(length));
        assert_eq!(refused, RuleError::PrefixLength(RuleRef::Pdr(PdrId(2))));
    }
    for length in [64, 128] {
        let mut good = rules();
        good.pdrs[1].pdi.ue_ipv6 = prefix(length);
        assert_eq!(good.check(), Ok(()));
    }
}

#[test]
fn networks_behind_a_user_are_few_and_of_64_bits_at_most() {
    let route = |text: &str| text.parse::<IpNet>().unwrap();
    let mut good = rules();
    good.pdrs[1].pdi.ue_ipv4 = None;
    good.pdrs[1].pdi.framed_routes =
        vec![route("0.0.0.0/0"), route("2001:db8::/64"), route("192.168.7.9/24")];
    assert_eq!(good.check(), Ok(()));
    let long = refusal(|bad| bad.pdrs[1].pdi.framed_routes = vec![route("2001:db8::/65")]);
    assert_eq!(long, RuleError::FramedRouteLength(RuleRef::Pdr(PdrId(2))));
    let many = |count| vec![route("10.0.0.0/8"); count];
    let too_many = RuleError::TooManyOf(RuleRef::Pdr(PdrId(2)), "framed routes");
    assert_eq!(refusal(|bad| bad.pdrs[1].pdi.framed_routes = many(65)), too_many);
    let mut full = rules();
    let plain = full.pdrs[1].clone();
    full.pdrs.extend((3..19).map(|id| Pdr { id: PdrId(id), ..plain.clone() }));
    full.pdrs.iter_mut().skip(2).for_each(|pdr| pdr.pdi.framed_routes = many(64));
    assert_eq!(full.check(), Ok(()));
    full.pdrs[1].pdi.framed_routes = many(1);
    assert_eq!(full.check(), Err(RuleError::TooManyOf(RuleRef::Pdr(PdrId(18)), "framed routes")));
}

#[test]
fn outer_header_removal_may_come_late() {
    let mut late = rules();
    late.pdrs[0].outer_header_removal = false;
    assert_eq!(late.check(), Ok(()));
}

#[test]
fn ports_need_a_protocol_that_has_them() {
    let icmp = with_filter(flow(Some(1), ports(1), FlowEnd::default()));
    assert_eq!(icmp.check(), Err(RuleError::Portless(pdr_1(), 1)));
    for protocol in [None, Some(6), Some(17), Some(132)] {
        let good = with_filter(flow(protocol, FlowEnd::default(), ports(limits::PORT_RANGES)));
        assert_eq!(good.check(), Ok(()));
    }
    let backwards = FlowEnd { addresses: None, ports: vec![PortRange { first: 2, last: 1 }] };
    let backwards = with_filter(flow(None, FlowEnd::default(), backwards));
    assert_eq!(backwards.check(), Err(RuleError::PortRange(pdr_1())));
}

#[test]
fn a_flow_has_both_ends_in_one_family() {
    let ends = [net("10.0.0.0/8"), net("2001:db8::/32")];
    for (remote, user) in [(&ends[0], &ends[1]), (&ends[1], &ends[0])] {
        let mixed = with_filter(flow(None, remote.clone(), user.clone()));
        assert_eq!(mixed.check(), Err(RuleError::MixedFamilies(pdr_1())));
    }
    assert_eq!(with_filter(flow(None, ends[1].clone(), ends[1].clone())).check(), Ok(()));
}

#[test]
fn a_flow_label_has_twenty_bits() {
    let labelled = |label| with_filter(SdfFilter { flow_label: Some(label), ..SdfFilter::default() });
    assert_eq!(labelled(1 << 20).check(), Err(RuleError::FlowLabel(pdr_1())));
    assert_eq!(labelled((1 << 20) - 1).check(), Ok(()));
}

#[test]
fn a_reference_needs_a_filter_that_says_something() {
    let reference = SdfFilter { id: Some(5), ..SdfFilter::default() };
    let mut session = with_filter(reference.clone());
    session.pdrs[1].pdi.sdf_filters = vec![reference];
    assert_eq!(session.check(), Err(RuleError::UnknownFilter(pdr_1(), 5)));
    session.pdrs[1].pdi.sdf_filters[0].spi = Some(1);
    assert_eq!(session.check(), Ok(()));
}

#[test]
fn the_limit_on_every_kind_of_rule_holds() {
    let one_more = |rule| RuleError::TooMany(rule);
    let pdrs = |bad: &mut Rules| {
        bad.pdrs = (0..=1_000).map(|id| Pdr { id: PdrId(id), ..bad.pdrs[0].clone() }).collect();
    };
    assert_eq!(refusal(pdrs), one_more(RuleRef::Pdr(PdrId(1_000))));
    assert_eq!(refusal(|bad| bad.fars = (0..=1_000).map(drop_far).collect()), one_more(far(1_000)));
    let qers = refusal(|bad| bad.qers = (0..=1_000).map(qer).collect());
    assert_eq!(qers, one_more(RuleRef::Qer(QerId(1_000))));
    let urrs = refusal(|bad| bad.urrs = (0..=1_000).map(urr).collect());
    assert_eq!(urrs, one_more(RuleRef::Urr(UrrId(1_000))));
    let bars = refusal(|bad| bad.bars = (0..=16).map(bar).collect());
    assert_eq!(bars, one_more(RuleRef::Bar(BarId(16))));
}

#[test]
fn the_limit_on_every_list_in_a_rule_holds() {
    let too_many = |what| RuleError::TooManyOf(pdr_1(), what);
    assert_eq!(refusal(|bad| bad.pdrs[0].qers = vec![QerId(1); 9].into()), too_many("QERs"));
    assert_eq!(refusal(|bad| bad.pdrs[0].urrs = vec![UrrId(1); 9].into()), too_many("URRs"));
    let qfis = vec![Qfi::new(1).unwrap(); 65];
    assert_eq!(refusal(|bad| bad.pdrs[0].pdi.qfis = qfis), too_many("QFIs"));
    let filters = vec![SdfFilter::default(); 65];
    assert_eq!(refusal(|bad| bad.pdrs[0].pdi.sdf_filters = filters), too_many("SDF filters"));
    let ranges = with_filter(flow(None, ports(limits::PORT_RANGES + 1), FlowEnd::default()));
    assert_eq!(ranges.check(), Err(too_many("port ranges in an SDF filter")));
    let linked = refusal(|bad| bad.urrs = vec![Urr { linked: vec![UrrId(1); 17], ..urr(1) }]);
    assert_eq!(linked, RuleError::TooManyOf(RuleRef::Urr(UrrId(1)), "linked URRs"));
}

/// PDRs of 64 filters, each with `ranges` port ranges at one end.
fn wide(pdrs: u16, ranges: usize) -> Rules {
    let filters = vec![flow(None, ports(ranges), FlowEnd::default()); limits::SDF_FILTERS_PER_PDI];
    let pdi = Pdi { sdf_filters: filters, ..pdi(Interface::Core) };
    Rules { pdrs: (0..pdrs).map(|id| pdr(id, pdi.clone(), 2)).collect(), ..rules() }
}

#[test]
fn the_limit_on_a_sessions_filters_holds() {
    assert_eq!(wide(64, 1).check(), Ok(()));
    let blamed = RuleRef::Pdr(PdrId(64));
    assert_eq!(wide(65, 1).check(), Err(RuleError::TooManyOf(blamed, "SDF filters")));
    assert_eq!(wide(8, 32).check(), Ok(()));
    let blamed = RuleRef::Pdr(PdrId(8));
    assert_eq!(wide(9, 32).check(), Err(RuleError::TooManyOf(blamed, "port ranges")));
}

/// Full sessions, each PDR with rules of its own: quadratic work would take many times the bound.
#[test]
fn a_full_session_is_checked_in_linear_time() {
    let all = 0..limits::PDRS as u16;
    let mut full = Rules {
        pdrs: all.clone().map(|id| pdr(id, pdi(Interface::Core), id.into())).collect(),
        fars: all.clone().map(|id| drop_far(id.into())).collect(),
        qers: all.clone().map(|id| qer(id.into())).collect(),
        urrs: all.clone().map(|id| urr(id.into())).collect(),
        bars: vec![],
    };
    for (pdr, id) in full.pdrs.iter_mut().zip(0..) {
        (pdr.qers, pdr.urrs) = (vec![QerId(id); 8].into(), vec![UrrId(id); 8].into());
    }
    let timed = || {
        let start = Instant::now();
        assert_eq!(full.check(), Ok(()));
        start.elapsed()
    };
    let fastest = (0..5).map(|_| timed()).min().unwrap();
    assert!(fastest < Duration::from_millis(10), "{fastest:?}");
}

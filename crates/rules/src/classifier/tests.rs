mod random;
mod speed;

use crate::compile::source::with_source;
use crate::fixture::{pdi, pdr, rules};
use crate::rule::ById;
use crate::*;
use ipnet::IpNet;
use rand::SeedableRng;
use rand_pcg::Pcg64;
use random::{Scale, crowded, packet, session};
use std::net::IpAddr;

/// What the specification says, one PDR after the other: shares nothing with the classifier.
fn naive(rules: &Rules, packet: &Arrival) -> Option<PdrId> {
    let matching = rules.pdrs.iter().filter(|pdr| pdi_matches(&pdr.pdi, rules, packet));
    matching.min_by_key(|pdr| (pdr.precedence, pdr.id)).map(|pdr| pdr.id)
}

fn pdi_matches(pdi: &Pdi, rules: &Rules, packet: &Arrival) -> bool {
    let ue = match packet.ue {
        IpAddr::V4(ue) => pdi.ue_ipv4 == Some(ue),
        IpAddr::V6(ue) => pdi.ue_ipv6.is_some_and(|prefix| prefix.contains(&ue)),
    };
    // A tunnel of ours says where its packets come from.
    (pdi.f_teid.is_some() || pdi.source_interface == packet.source)
        && pdi.f_teid.map(|f_teid| f_teid.teid) == packet.teid
        && (pdi.f_teid.is_some() || pdi.instance == packet.instance)
        && (ue || behind_user(pdi, packet.ue) || names_nobody(pdi))
        && (pdi.qfis.is_empty() || packet.qfi.is_some_and(|qfi| pdi.qfis.contains(&qfi)))
        && application_matches(pdi.application.as_ref(), packet.application)
        && (pdi.sdf_filters.is_empty()
            || pdi.sdf_filters.iter().any(|filter| filter_matches(meant(filter, rules), packet)))
}

fn behind_user(pdi: &Pdi, ue: IpAddr) -> bool {
    pdi.framed_routes.iter().any(|route| route.contains(&ue))
}

fn names_nobody(pdi: &Pdi) -> bool {
    pdi.ue_ipv4.is_none() && pdi.ue_ipv6.is_none() && pdi.framed_routes.is_empty()
}

fn application_matches(wanted: Option<&ApplicationId>, application: Application) -> bool {
    match (wanted, application) {
        (None, _) | (_, Application::Any) => true,
        (Some(_), Application::None) => false,
        (Some(wanted), Application::Of(tag)) => wanted.tag() == tag,
        (Some(wanted), Application::Charged(tag, charged)) => {
            [tag, Some(charged)].contains(&Some(wanted.tag()))
        }
    }
}

fn meant<'a>(filter: &'a SdfFilter, rules: &'a Rules) -> &'a SdfFilter {
    let reference = SdfFilter { id: filter.id, ..SdfFilter::default() };
    let mut all = rules.pdrs.iter().flat_map(|pdr| &pdr.pdi.sdf_filters);
    match filter.id {
        Some(id) if *filter == reference => {
            all.find(|other| other.id == Some(id) && **other != reference).unwrap()
        }
        _ => filter,
    }
}

fn filter_matches(filter: &SdfFilter, packet: &Arrival) -> bool {
    let flow = |flow: &FlowDescription| {
        flow.protocol.is_none_or(|protocol| protocol == packet.protocol)
            && end_matches(&flow.remote, packet.remote, packet.remote_port)
            && end_matches(&flow.user, packet.ue, packet.ue_port)
    };
    let class = |class: TrafficClass| packet.traffic_class & class.mask == class.value & class.mask;
    filter.flow.as_ref().is_none_or(flow)
        && filter.traffic_class.is_none_or(class)
        && filter.spi.is_none_or(|spi| packet.spi == Some(spi))
        && filter.flow_label.is_none_or(|label| packet.flow_label == Some(label))
}

fn end_matches(end: &FlowEnd, address: IpAddr, port: Option<u16>) -> bool {
    let in_ports = || port.is_some_and(|port| end.ports.iter().any(|range| range.contains(port)));
    end.addresses.is_none_or(|wanted| is_one_of(wanted, address)) && (end.ports.is_empty() || in_ports())
}

/// `!` is of the addresses of one IP version, too (RFC 6733 4.3.1).
fn is_one_of(wanted: Addresses, address: IpAddr) -> bool {
    match (wanted.prefix, address) {
        (IpNet::V4(net), IpAddr::V4(address)) => net.contains(&address) != wanted.inverted,
        (IpNet::V6(net), IpAddr::V6(address)) => net.contains(&address) != wanted.inverted,
        _ => false,
    }
}

/// What the rules say once the user's addresses stand in those that leave them out, of which `compile/source.rs` has tests.
fn with_sources(rules: &Rules) -> Rules {
    let mut seen = rules.clone();
    let fars = ById::new(&rules.fars, limits::FARS).unwrap();
    // In the order they are tried, as the first ones have the networks behind the user.
    let mut pdrs: Vec<&Pdr> = rules.pdrs.iter().collect();
    pdrs.sort_by_key(|pdr| (pdr.precedence, pdr.id));
    for (_, pdr) in with_source(&pdrs, rules, &fars) {
        let place = rules.pdrs.iter().position(|other| other.id == pdr.id).unwrap();
        seen.pdrs[place] = pdr;
    }
    seen
}

/// How often each answer came.
#[derive(Debug, Default)]
struct Tally {
    packets: u64,
    found: u64,
    behind_the_first: u64,
}

impl Tally {
    /// A session against a packet.
    fn compare(&mut self, rules: &Rules, program: &Program, packet: &Arrival) {
        let found = program.classifier.find(packet);
        let pdr = found.map(|place| program.steps[place].pdr);
        assert_eq!(pdr, naive(rules, packet), "{packet:?} {rules:?}");
        self.packets += 1;
        self.found += u64::from(found.is_some());
        self.behind_the_first += u64::from(found > Some(0));
    }

    /// Random sessions, each against random packets.
    fn compare_all(&mut self, sessions: u64, packets: u32, make: fn(&mut Pcg64) -> Rules) {
        for seed in 0..sessions {
            let mut random = Pcg64::seed_from_u64(seed);
            let rules = make(&mut random);
            let program = compile(&rules).unwrap();
            assert!(program.classifier.heap_bytes() <= Classifier::MAX_BYTES);
            let seen = with_sources(&rules);
            (0..packets).for_each(|_| self.compare(&seen, &program, &packet(&mut random, &rules)));
        }
    }
}

/// Random sessions times random packets: 160,000 comparisons, or `ANCHORLINE_CASES` times as many.
#[test]
fn the_classifier_agrees_with_the_specification() {
    let times: u64 = std::env::var("ANCHORLINE_CASES").map_or(1, |text| text.parse().unwrap());
    let mut tally = Tally::default();
    tally.compare_all(1_000 * times, 100, |random| session(random, Scale::SMALL));
    tally.compare_all(100 * times, 400, |random| session(random, Scale::MEDIUM));
    tally.compare_all(10 * times, 1_000, |random| session(random, Scale::LARGE));
    tally.compare_all(5 * times, 1_000, |random| session(random, Scale::SPREAD));
    tally.compare_all(5 * times, 1_000, crowded);
    println!("{tally:?}");
    assert!(tally.packets >= 160_000);
    assert!(tally.found > tally.packets / 10 && tally.found < tally.packets * 9 / 10);
    assert!(tally.behind_the_first > tally.packets / 20);
}

/// All that a session may hold, each field in another order, so that hardly a row is like another.
fn fullest() -> Rules {
    let ranges = limits::PORT_RANGES_PER_SESSION / limits::SDF_FILTERS;
    let pdrs = (0..limits::PDRS as u16).map(|id| {
        let filters = (0..4).map(|filter| filter_of(u32::from(id) * 4 + filter, ranges as u32));
        pdr(id, Pdi { sdf_filters: filters.collect(), ..pdi(Interface::Core) }, 2)
    });
    Rules { pdrs: pdrs.collect(), ..rules() }
}

fn filter_of(number: u32, ranges: u32) -> SdfFilter {
    let spread = |factor: u32| number.wrapping_mul(factor * 2 + 0x9e37_79b9);
    let port = |range| (spread(range + 10) >> 16) as u16;
    let ports = (0..ranges).map(|range| PortRange { first: port(range), last: port(range) }).collect();
    let remote = u128::from(spread(0x0765_4321)) << 64 | 0x2001_0db8 << 96;
    let remote = ipnet::Ipv6Net::new(remote.into(), 96).unwrap();
    let flow = FlowDescription {
        protocol: Some(if number.is_multiple_of(2) { 6 } else { 17 }),
        remote: FlowEnd { addresses: Some(IpNet::from(remote).into()), ports },
        user: FlowEnd::default(),
    };
    SdfFilter {
        flow: Some(flow),
        traffic_class: Some(TrafficClass { value: number as u8, mask: 0x55 }),
        spi: Some(spread(0x1234_5678)),
        flow_label: Some(spread(0x0fed_cba9) >> 12),
        id: None,
    }
}

#[test]
fn the_fullest_session_stays_within_its_memory() {
    let program = compile(&fullest()).unwrap();
    let bytes = program.classifier.heap_bytes();
    println!("{bytes} bytes of {}", Classifier::MAX_BYTES);
    assert!(bytes <= Classifier::MAX_BYTES);
    assert!(bytes > Classifier::MAX_BYTES / 2, "a session far from full shows nothing");
}

#[test]
fn the_traffic_class_and_the_flow_label_are_known_to_matter() {
    let with = |filter: SdfFilter, copies: usize| {
        let mut rules = rules();
        rules.pdrs[0].pdi.sdf_filters = vec![SdfFilter::default(); copies];
        rules.pdrs[0].pdi.sdf_filters.push(filter);
        let classifier = compile(&rules).unwrap().classifier;
        (classifier.looks().traffic_class, classifier.looks().flow_label)
    };
    let class = SdfFilter { traffic_class: Some(TrafficClass::default()), ..SdfFilter::default() };
    let label = SdfFilter { flow_label: Some(1), ..SdfFilter::default() };
    for copies in [0, 40] {
        assert_eq!(with(SdfFilter::default(), copies), (false, false));
        assert_eq!(with(class.clone(), copies), (true, false));
        assert_eq!(with(label.clone(), copies), (false, true));
    }
}

/// What is not found for a reason is found without one, PDR by PDR.
#[test]
fn a_pdr_is_tried_in_vain_for_a_reason_and_never_when_it_matches() {
    let (mut tried, mut found) = (0, 0);
    for seed in 0..300 {
        let mut random = Pcg64::seed_from_u64(seed);
        let rules = session(&mut random, Scale::SMALL);
        let classifier = compile(&rules).unwrap().classifier;
        for _ in 0..50 {
            let packet = packet(&mut random, &rules);
            let place = classifier.find(&packet);
            for before in 0..place.unwrap_or(rules.pdrs.len()) {
                assert!(classifier.mismatch(before, &packet).is_some(), "{before} {packet:?} {rules:?}");
                tried += 1;
            }
            if let Some(place) = place {
                assert_eq!(classifier.mismatch(place, &packet), None);
                found += 1;
            }
        }
    }
    assert!(tried > 1_000 && found > 1_000, "{tried} tried, {found} found");
}

#[test]
fn the_first_criterion_that_differs_is_named() {
    let mut rules = rules();
    let mut filter = SdfFilter { flow: Some(FlowDescription::default()), ..SdfFilter::default() };
    let flow = filter.flow.as_mut().unwrap();
    (flow.protocol, flow.remote.ports) = (Some(6), vec![PortRange { first: 443, last: 443 }]);
    let mut pdi = pdi(Interface::Core);
    (pdi.qfis, pdi.sdf_filters) = (vec![Qfi::new(9).unwrap(), Qfi::new(5).unwrap()], vec![filter]);
    rules.pdrs = vec![pdr(1, pdi, 2)];
    let classifier = compile(&rules).unwrap().classifier;
    let mut packet = Arrival {
        source: Interface::Access,
        instance: Instance::DEFAULT,
        teid: Some(Teid(7)),
        qfi: None,
        ue: [10, 60, 0, 9].into(),
        remote: [203, 0, 113, 80].into(),
        protocol: 17,
        ue_port: Some(40_000),
        remote_port: Some(53),
        traffic_class: 0,
        spi: None,
        flow_label: None,
        application: Application::None,
    };
    let why = |packet: &Arrival| classifier.mismatch(0, packet).map(|mismatch| mismatch.to_string());
    let mut expect = |mend: fn(&mut Arrival), next: Option<&str>| {
        mend(&mut packet);
        assert_eq!(why(&packet).as_deref(), next);
    };
    expect(|_| (), Some("is for packets from the core side"));
    expect(|packet| packet.source = Interface::Core, Some("is for packets outside any tunnel"));
    expect(|packet| packet.teid = None, Some("is for user 10.60.0.1"));
    expect(|packet| packet.ue = [10, 60, 0, 1].into(), Some("is for QFI 5, 9"));
    expect(|packet| packet.qfi = Qfi::new(9), Some("its SDF filter wants protocol 6"));
    expect(|packet| packet.protocol = 6, Some("its SDF filter wants port 443 at the far end"));
    expect(|packet| packet.remote_port = Some(443), None);
    assert_eq!(classifier.qfis(), 1 << 9 | 1 << 5);
    assert_eq!(classifier.mismatch(1, &packet), None, "there is no such PDR");
}

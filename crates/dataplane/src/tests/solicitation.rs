//! Which users are told a prefix.

use super::drops;
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, SIX, six};
use rules::{
    ApplicationId, ApplyAction, Far, FarId, FlowDescription, OuterHeader, OuterHeaderCreation, Pdr, PdrId,
    Rules, SdfFilter, Teid,
};
use std::net::Ipv4Addr;

/// A device asks for routers, through the tunnel of [`SIX`].
fn solicitation() -> Vec<u8> {
    let golden = include_str!("../../golden/router_solicitation/with_address.golden");
    let hex = golden.lines().find_map(|line| line.strip_prefix("in n3 ")).unwrap();
    let digits: Vec<u8> =
        hex.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// What a device tells its routers besides has the same addresses, and no ports that would tell it apart.
#[test]
fn whatever_else_is_said_to_routers_solicitations_are_answered() {
    let mut bench = Bench::new();
    let mut rules = six();
    let up = rules.pdrs.iter_mut().find(|pdr| pdr.pdi.f_teid.is_some()).unwrap();
    up.pdi.ue_ipv6 = None;
    bench.put(SIX, 1, rules);
    bench.settle();
    let solicitation = solicitation();
    let mut listener = solicitation.clone();
    // Router Solicitation is type 133; Multicast Listener Done 132, and the checksum is one more.
    let at = listener.windows(4).position(|octets| octets[0] == 133 && octets[1] == 0).unwrap();
    listener[at] = 132;
    let sum = u16::from_be_bytes([listener[at + 2], listener[at + 3]]) + 0x100;
    listener[at + 2..at + 4].copy_from_slice(&sum.to_be_bytes());
    bench.receive(N3, &listener);
    bench.settle();
    assert_eq!(bench.sent(N3).len(), 0);
    bench.receive(N3, &solicitation);
    bench.settle();
    assert_eq!(bench.sent(N3).len(), 1);
}

/// Who has one address of a prefix would make up another, which no rule matches.
#[test]
fn who_has_a_single_address_is_told_no_prefix() {
    for (prefix, told) in [("2001:db8:60::/64", 1), ("2001:db8:60::7/128", 0)] {
        let mut bench = Bench::new();
        let mut rules = six();
        rules.pdrs.iter_mut().for_each(|pdr| pdr.pdi.ue_ipv6 = Some(prefix.parse().unwrap()));
        bench.put(SIX, 1, rules);
        bench.settle();
        bench.receive(N3, &solicitation());
        bench.settle();
        assert_eq!(bench.sent(N3).len(), told, "{prefix}");
        assert!(bench.worker.books().balanced());
    }
}

/// What asks for routers is no flow of an application, and nobody looks for one in it.
#[test]
fn who_has_rules_for_applications_is_told_a_prefix_too() {
    let mut bench = Bench::new();
    let mut rules = six();
    let mut pdr = rules.pdrs.iter().find(|pdr| pdr.pdi.f_teid.is_some()).unwrap().clone();
    (pdr.id, pdr.precedence, pdr.pdi.application) = (PdrId(9), 1, ApplicationId::new("video"));
    rules.pdrs.push(pdr);
    bench.put(SIX, 1, rules);
    let text = "id=1 precedence=1 rating-group=1 application=video host=video.example\n";
    bench.engine.load(super::content::content(text, 1, &bench));
    bench.settle();
    bench.receive(N3, &solicitation());
    bench.settle();
    assert_eq!(bench.sent(N3).len(), 1);
}

/// Adds a PDR that is tried first, like the one of packets from the user or of those to him but for what `change` does, for packets of a
/// protocol; and gives the tunnel that its FAR puts them into, which is like the user's.
fn add(rules: &mut Rules, protocol: u8, (is_up, change): (bool, fn(&mut Pdr))) -> &mut OuterHeaderCreation {
    let mut pdr = rules.pdrs.iter().find(|pdr| pdr.pdi.f_teid.is_some() == is_up).unwrap().clone();
    (pdr.id, pdr.precedence, pdr.far) = (PdrId(9), 1, FarId(9));
    let flow = FlowDescription { protocol: Some(protocol), ..FlowDescription::default() };
    pdr.pdi.sdf_filters = vec![SdfFilter { flow: Some(flow), ..SdfFilter::default() }];
    change(&mut pdr);
    rules.pdrs.push(pdr);
    rules.fars.push(Far { id: FarId(9), ..rules.fars[1].clone() });
    let forwarding = rules.fars.last_mut().and_then(|far| far.forwarding.as_mut()).unwrap();
    forwarding.outer_header_creation.as_mut().unwrap()
}

/// Who has solicitations brought to itself, but by an address that only its control process is reached by, hears nothing of them.
#[test]
fn a_control_plane_that_no_route_leads_to_leaves_the_answer_to_us() {
    let (ipv4, ipv6) = ([8, 0], [0x86, 0xdd]);
    for (peer, left_over) in [(Ipv4Addr::new(10, 30, 0, 1), ipv4), (Ipv4Addr::new(198, 18, 7, 7), ipv6)] {
        let mut bench = Bench::new();
        let mut rules = six();
        // Solicitations come from addresses of the link, which are not the user's.
        add(&mut rules, 58, (true, |pdr| pdr.pdi.ue_ipv6 = None)).address = peer.into();
        bench.put(SIX, 1, rules);
        bench.settle();
        bench.receive(N3, &solicitation());
        bench.settle();
        let sent = bench.sent(N3);
        assert_eq!(
            sent.iter().map(|frame| [frame[12], frame[13]]).collect::<Vec<_>>(),
            [left_over],
            "{peer}"
        );
        assert!(bench.worker.books().balanced());
    }
}

/// Whoever has a bearer for some packets alone is answered in the one that other packets of ICMPv6 go by.
#[test]
fn the_answer_goes_by_the_rule_that_its_packet_meets() {
    let mut bench = Bench::new();
    let mut rules = six();
    add(&mut rules, 17, (false, |_| ())).header = OuterHeader::Gtpu(Teid(0x999));
    bench.put(SIX, 1, rules);
    bench.settle();
    bench.receive(N3, &solicitation());
    bench.settle();
    let sent = bench.sent(N3);
    // Ethernet, IPv6 and UDP stand before the tunnel's header, whose TEID begins with its fifth octet.
    let teids: Vec<_> = sent.iter().map(|frame| frame[14 + 40 + 8 + 4..][..4].to_vec()).collect();
    assert_eq!(teids.len(), 1);
    assert_ne!(teids[0], 0x999_u32.to_be_bytes());
}

/// A device asks as soon as it is there, and the station's tunnel may be known after that (TS 23.502 4.3.2.2.1).
#[test]
fn who_asks_before_a_tunnel_is_known_is_answered_when_it_is() {
    for notify in [false, true] {
        let mut bench = Bench::new();
        let mut rules = six();
        (rules.fars[1].apply_action, rules.fars[1].notify) = (ApplyAction::Buffer, notify);
        bench.put(SIX, 1, rules);
        bench.settle();
        bench.receive(N3, &solicitation());
        assert!(bench.settle().is_empty(), "who asks need not be woken");
        assert_eq!((bench.sent(N3).len(), bench.worker.books().held), (0, 1));
        bench.put(SIX, 2, six());
        bench.settle();
        assert_eq!(bench.sent(N3).len(), 1);
        assert!(bench.worker.books().balanced());
    }
    let mut bench = Bench::new();
    let mut rules = six();
    rules.fars[1].apply_action = ApplyAction::Drop;
    bench.put(SIX, 1, rules);
    bench.settle();
    bench.receive(N3, &solicitation());
    bench.settle();
    assert_eq!(drops(&bench, DropReason::FarDrop), 1);
}

//! The PCC rules of the `zte` profile over N4: the 45 of config/zte.toml, switched on and off by their names, and 5 that the control
//! plane makes itself. A packet of each rule's application shows what the rule does, and what it is charged under.

use crate::bench::{Bench, RADIO, node_of};
use crate::cells::Cell;
use crate::persona::Persona;
use charging::{Key, Policy, Rating};
use dataplane::ContentRules;
use matrix::frames::{Tunnelled, a_hop_on};
use matrix::{UserPlane, plane_config};
use n4::{Charging, Predefined, PredefinedRule};
use pfcp::{
    Body, Cause, CreatePdr, CreateUrr, FTeid, OuterHeaderRemoval, Pdi, QueryUrr, ReportingTriggers,
    SessionModificationRequest, SourceInterface, UeIpAddress, UpdatePdr,
};
use ran::smf::{Event, Input};
use rules::{ApplicationId, BitRates, Interface, Pdr, Qfi};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;

/// Applications of the profile: 45 have a rule with a name, and the last five the control plane's.
const STATIC: Range<u8> = 0..45;
const DYNAMIC: Range<u8> = 45..50;
/// What is of no rule with a rating group is charged under this.
const OTHERS: u32 = 1_000;
/// PDRs, URRs and precedences of what the row adds: no control plane has these.
const NAMED: u16 = 0x2000;
const MADE: u16 = 0x2100;
const URR: u32 = 0x2000;
/// After all rules of the file (100 to 144).
const DYNAMIC_PRECEDENCE: u32 = 200;
const LAST: u32 = 60_000;

/// QFI and RQI of a packet to the radio, where it has a container.
type Flow = Option<(u8, bool)>;

/// One of the file's. What is not here the row does not know, and says so.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    name: String,
    precedence: u32,
    application: String,
    rating_group: u32,
    mbr_kbps: Option<Rate>,
    qfi: Option<u8>,
    uplink_gate: Option<String>,
    downlink_gate: Option<String>,
}

#[derive(Deserialize)]
struct Rate {
    uplink: u64,
    downlink: u64,
}

#[derive(Deserialize)]
struct N4 {
    predefined_rule: Vec<Rule>,
}

#[derive(Deserialize)]
struct File {
    n4: N4,
}

impl Rule {
    fn is_open(&self) -> bool {
        self.uplink_gate.is_none() && self.downlink_gate.is_none()
    }

    fn predefined(&self) -> PredefinedRule {
        let open = |gate: &Option<String>| gate.as_deref() != Some("closed");
        PredefinedRule {
            precedence: Some(self.precedence),
            application: ApplicationId::new(&self.application),
            is_open: (open(&self.uplink_gate), open(&self.downlink_gate)),
            mbr: self
                .mbr_kbps
                .as_ref()
                .map(|mbr| BitRates { uplink_kbps: mbr.uplink, downlink_kbps: mbr.downlink }),
            qfi: self.qfi.map(|qfi| Qfi::new(qfi).unwrap()),
            key: Some(key(self.rating_group)),
            ..PredefinedRule::new(self.name.clone())
        }
    }
}

const fn key(rating_group: u32) -> Key {
    Key { rating_group, service_id: None }
}

/// A server of an application's; another for each.
fn server(service: u8) -> (Ipv4Addr, u16) {
    (Ipv4Addr::new(198, 51, 100, service), 7_000)
}

fn file() -> Vec<Rule> {
    let File { n4 } = toml::from_str(include_str!("../../../../config/zte.toml")).unwrap();
    assert_eq!(n4.predefined_rule.len(), STATIC.len());
    n4.predefined_rule
}

/// A user plane that knows the file's rules, tells applications by their servers, and writes charging data records.
fn plane(persona: &Persona, rules: &[Rule]) -> UserPlane {
    let keys = rules.iter().map(|rule| key(rule.rating_group));
    let rating = Rating::new(Some(key(OTHERS)), vec![], keys).unwrap();
    let mut node = node_of(persona);
    node.predefined = Predefined::new(rules.iter().map(Rule::predefined).collect(), &[]).unwrap();
    node.charging = Some(Charging { rating, policy: Policy::default() });
    let mut plane = UserPlane::over(node, plane_config());
    let line = |service: u8| {
        let (network, _) = server(service);
        format!("id={service} precedence=1 rating-group=0 application=service-{service} network={network}\n")
    };
    let text: String = STATIC.chain(DYNAMIC).map(line).collect();
    let classifier = dpi::rule_file::read_lines(&text).unwrap().compile().unwrap();
    plane.engine.load(ContentRules::new(1, classifier, None).unwrap());
    plane.settle();
    plane
}

/// By the control plane's rules: up and down as its default rules do, but for packets of less.
fn like(pdr: &Pdr, pdr_id: u16, precedence: Option<u32>) -> CreatePdr {
    let is_up = pdr.pdi.source_interface == Interface::Access;
    let f_teid = pdr.pdi.f_teid.map(|it| {
        let IpAddr::V4(address) = it.address else { panic!("the bench has IPv4 tunnels") };
        FTeid::Explicit { teid: it.teid.0, ipv4: Some(address), ipv6: None }
    });
    let user = UeIpAddress { ipv4: pdr.pdi.ue_ipv4, is_destination: !is_up, ..UeIpAddress::default() };
    let source = if is_up { SourceInterface::Access } else { SourceInterface::Core };
    let removal = OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IP);
    CreatePdr {
        precedence,
        outer_header_removal: f_teid.is_some().then_some(removal),
        far_id: Some(pdr.far.0),
        qer_ids: pdr.qers.iter().map(|qer| qer.0).collect(),
        ..CreatePdr::new(
            pdr_id,
            Pdi {
                f_teid,
                ue_ip_addresses: pdr.pdi.ue_ipv4.map(|_| user).into_iter().collect(),
                ..Pdi::new(source)
            },
        )
    }
}

/// The PDRs by which the default packets go, up and down.
fn defaults(bench: &Bench<'_>) -> [Pdr; 2] {
    let pdrs = bench.rules().pdrs;
    [Interface::Access, Interface::Core].map(|side| {
        let of_side =
            pdrs.iter().filter(|pdr| pdr.pdi.source_interface == side && pdr.pdi.application.is_none());
        of_side.max_by_key(|pdr| pdr.precedence).unwrap().clone()
    })
}

/// The named rules, in a PDR each way that has nothing of its own, and five of the control plane's, each with a URR; what the session
/// had comes after all of them.
fn activates(bench: &mut Bench<'_>, rules: &[Rule]) {
    let names: Vec<Vec<u8>> = rules.iter().map(|rule| rule.name.clone().into_bytes()).collect();
    let defaults = defaults(bench);
    let mut create_pdrs = vec![];
    for (pdr, place) in defaults.iter().zip(0..) {
        let named = like(pdr, NAMED + place, None);
        create_pdrs.push(CreatePdr { activate_predefined_rules: names.clone(), ..named });
        for service in DYNAMIC {
            let number = u32::from(service);
            let mut made =
                like(pdr, MADE + 2 * u16::from(service) + place, Some(DYNAMIC_PRECEDENCE + number));
            made.pdi.application_id = Some(format!("service-{service}").into_bytes());
            made.urr_ids = vec![URR + number];
            create_pdrs.push(made);
        }
    }
    let last = |pdr: &Pdr| UpdatePdr { precedence: Some(LAST), ..UpdatePdr::new(pdr.id.0) };
    let volume = |service: u8| CreateUrr {
        urr_id: URR + u32::from(service),
        measurement_method: pfcp::flags::METHOD_VOLUM,
        reporting_triggers: ReportingTriggers::new(0),
        ..CreateUrr::default()
    };
    modify(
        bench,
        SessionModificationRequest {
            create_pdrs,
            create_urrs: DYNAMIC.map(volume).collect(),
            update_pdrs: bench.rules().pdrs.iter().map(last).collect(),
            ..SessionModificationRequest::default()
        },
    );
}

fn modify(bench: &mut Bench<'_>, request: SessionModificationRequest) -> pfcp::SessionModificationResponse {
    let Body::SessionModificationResponse(answer) = bench.ask(request) else { panic!("another answer") };
    assert_eq!(answer.cause, Cause::RequestAccepted, "{answer:?} {:?}", bench.plane.notes);
    answer
}

/// What became of a packet each way with a server of the application's: octets that passed up and down, and what the latter's
/// container says, if it passed.
fn exchange(bench: &mut Bench<'_>, service: u8) -> ((u64, u64), Option<Flow>) {
    let up = bench.packet_up(server(service));
    let left = bench.radio_sends(RADIO.address, (bench.uplink(), bench.persona.qfi), &up);
    let is_same = |inner: &[u8], packet: &[u8]| inner == packet || inner == a_hop_on(packet);
    assert!(left.iter().all(|inner| is_same(inner, &up)), "service {service}");
    let down = bench.packet_down(server(service));
    let sent: Vec<Tunnelled> = bench.network_sends(&down);
    assert!(sent.iter().all(|one| one.teid == RADIO.teid.0 && is_same(one.inner.as_ref().unwrap(), &down)));
    let octets = |count: usize, packet: &[u8]| (count * packet.len()) as u64;
    ((octets(left.len(), &up), octets(sent.len(), &down)), sent.first().map(|one| one.flow))
}

/// Each packet as its rule says; then three of the rules are switched off, and their packets go as all others do.
pub(crate) fn predefined(persona: &Persona) -> Cell {
    let rules = file();
    let mut bench = Bench::over(persona, plane(persona, &rules), |_| ()).started();
    bench.both_ways_pass(RADIO);
    activates(&mut bench, &rules);
    let mut charged = BTreeMap::new();
    for (rule, service) in rules.iter().zip(STATIC) {
        let (passed, flow) = exchange(&mut bench, service);
        assert_eq!(passed.0 > 0 && passed.1 > 0, rule.is_open(), "{}", rule.name);
        let expected = bench.flow_of(rule.qfi.or(persona.qfi));
        assert_eq!(flow, rule.is_open().then_some(expected), "{}", rule.name);
        charged.insert(rule.rating_group, passed);
    }
    for service in DYNAMIC {
        let (passed, flow) = exchange(&mut bench, service);
        assert_eq!(flow, Some(bench.flow_of(persona.qfi)), "service {service}");
        assert_eq!(measured(&mut bench, service), passed, "service {service}");
    }
    let off = [0, 10, 15];
    switches_off(&mut bench, &rules, &off);
    for service in off {
        let (passed, flow) = exchange(&mut bench, service);
        assert_eq!((passed.0 > 0, flow), (true, Some(bench.flow_of(persona.qfi))), "service {service}");
    }
    bench.both_ways_pass(RADIO);
    is_charged(&mut bench, &charged);
    Ok(())
}

fn switches_off(bench: &mut Bench<'_>, rules: &[Rule], off: &[u8]) {
    let names: Vec<_> = off.iter().map(|at| rules[usize::from(*at)].name.clone().into_bytes()).collect();
    let update =
        |place| UpdatePdr { deactivate_predefined_rules: names.clone(), ..UpdatePdr::new(NAMED + place) };
    let update_pdrs = [0, 1].map(update).to_vec();
    modify(bench, SessionModificationRequest { update_pdrs, ..SessionModificationRequest::default() });
}

/// Octets up and down that the URR of an application counted since it was last asked.
fn measured(bench: &mut Bench<'_>, service: u8) -> (u64, u64) {
    let query_urrs = vec![QueryUrr::new(URR + u32::from(service))];
    let asked = SessionModificationRequest { query_urrs, ..SessionModificationRequest::default() };
    let [report] = &modify(bench, asked).usage_reports[..] else { panic!("one report") };
    assert_eq!(report.urr_id, URR + u32::from(service));
    let octets = report.volume_measurement.unwrap().octets;
    (octets.uplink.unwrap(), octets.downlink.unwrap())
}

/// The session ends: what passed by each rule is under its rating group, and the closed one's has nothing.
fn is_charged(bench: &mut Bench<'_>, charged: &BTreeMap<u32, (u64, u64)>) {
    bench.feed(Input::Stop);
    assert!(bench.saw(&Event::Stopped), "{:?}", bench.events);
    let mut told: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for container in bench.plane.saved.cdrs.iter().flat_map(|cdr| &cdr.containers) {
        let sum = told.entry(container.key.rating_group).or_default();
        *sum = (sum.0 + container.uplink_bytes, sum.1 + container.downlink_bytes);
    }
    for (rating_group, passed) in charged {
        assert_eq!(
            told.get(rating_group).copied().unwrap_or_default(),
            *passed,
            "rating group {rating_group}"
        );
    }
    assert!(told[&OTHERS] > (0, 0));
}

//! Content rules in the data path: what first packets say decides by which rules a flow goes, and is billed from its first
//! byte on; and whatever becomes of flows meanwhile, what is counted is what was forwarded.

use super::redirect::{TUNNEL, flow, made, up};
use crate::content::ContentRules;
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, config, rules};
use crate::graph::NodeId;
use dplink::{Command, Notice, UsageCounts};
use packet::tcp::flag;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rules::{ApplicationId, Far, FarId, PdrId, Rules, Seid, Urr, UrrId};
use std::collections::HashMap;
use traffic::{Endpoints, FRAME_MAX, Flows, Profile, User, Users, Written, catalogue, profile};

/// Sessions of these tests: 1 and those behind it.
pub(super) const USERS: u32 = 4;
/// Counts what is of no application.
pub(super) const OTHER: u32 = 1_000;
/// Bytes before the user's packet on the way up: Ethernet, IPv4, UDP, GTP-U with a PDU session container.
const UPLINK_HEADERS: usize = 14 + 20 + 8 + 16;

pub(super) fn text() -> String {
    catalogue::applications().map(|rule| format!("{rule}\n")).collect()
}

pub(super) fn content(text: &str, revision: u64, bench: &Bench) -> ContentRules {
    let classifier = dpi::rule_file::read_lines(text).unwrap().compile().unwrap();
    ContentRules::new(revision, classifier, bench.engine.content().as_deref()).unwrap()
}

/// The session, with a rule up and down and a URR for each service, and for what is of none.
fn with_services(session: u64) -> Rules {
    let mut rules = rules(session);
    let plain = rules.pdrs.clone();
    for pdr in &mut rules.pdrs {
        (pdr.precedence, pdr.urrs) = (1_000, vec![UrrId(OTHER)].into());
    }
    for service in 0..catalogue::SERVICES {
        for (pdr, up_or_down) in plain.iter().zip([10, 500]) {
            let mut pdr = pdr.clone();
            (pdr.id, pdr.urrs) = (PdrId(up_or_down + service as u16), vec![UrrId(service)].into());
            pdr.pdi.application = ApplicationId::new(&catalogue::service_name(service));
            pdr.pdi.qfis.clear();
            rules.pdrs.push(pdr);
        }
    }
    rules.urrs =
        (0..catalogue::SERVICES).chain([OTHER]).map(|id| Urr { id: UrrId(id), ..Urr::default() }).collect();
    rules
}

pub(super) fn flows(seed: u64, open: u32) -> Flows {
    let profile = Profile { active: USERS, flows: open, opening: 0.5, ..*profile("zte").unwrap() };
    let first = User { address: [10, 60, 0, 1].into(), teid: 0x100, qfi: 9 };
    Flows::new(&profile, Endpoints::EXAMPLE, seed).unwrap().with_users(Users(first))
}

pub(super) fn bench(inspections: usize, flows: usize) -> Bench {
    let mut config = config();
    (config.limits.inspections, config.limits.flows, config.limits.pdrs) = (inspections, flows, 2_000);
    let mut bench = Bench::over(&config);
    for user in 1..=u64::from(USERS) {
        bench.put(user, 1, in_service(user));
    }
    let notices = bench.settle();
    assert!(notices.iter().all(|notice| matches!(notice, Notice::Applied { .. })), "{notices:?}");
    bench
}

/// Every session forwards, in QoS flow 9.
pub(super) fn in_service(session: u64) -> Rules {
    let mut rules = with_services(session);
    let open = crate::fixture::rules(1);
    for (far, like) in rules.fars.iter_mut().zip(open.fars) {
        far.apply_action = like.apply_action;
    }
    rules.qers[0].downlink_gate = rules::Gate::Open;
    rules.pdrs.iter_mut().for_each(|pdr| pdr.pdi.qfis.clear());
    rules
}

pub(super) fn used(counts: &[UsageCounts]) -> HashMap<u32, u64> {
    counts.iter().map(|counts| (counts.urr.0, counts.uplink_bytes + counts.downlink_bytes)).collect()
}

pub(super) fn query(bench: &mut Bench, user: u32) -> Vec<UsageCounts> {
    let session = Seid(u64::from(user) + 1);
    let command = Command::QueryUsage { session, urrs: vec![], token: 7, is_reported: false };
    bench.engine.handle(command).unwrap();
    let told = bench.settle().into_iter().find_map(|notice| match notice {
        Notice::Usage { counts, .. } => Some(counts),
        _ => None,
    });
    told.unwrap()
}

/// Bytes of the user's packet in what was written.
fn bytes(written: &Written) -> u64 {
    (written.length - if written.uplink { UPLINK_HEADERS } else { 14 }) as u64
}

/// Gives the worker one packet.
pub(super) fn offer(bench: &mut Bench, flows: &mut Flows) -> Written {
    let mut frame = [0; FRAME_MAX];
    let written = flows.next(&mut frame).unwrap();
    bench.receive(if written.uplink { N3 } else { N6 }, &frame[..written.length]);
    written
}

/// Users' packets; not those that look for neighbours.
fn sent(bench: &mut Bench) -> usize {
    let all = [bench.sent(N3), bench.sent(N6)].concat();
    all.iter().filter(|frame| frame[12..14] == [8, 0]).count()
}

/// The labels of the traffic are the truth. Lookups are of no application.
#[test]
fn every_flow_is_billed_to_its_service_from_the_first_byte_on() {
    bill_as_labelled(1);
}

/// A client's last word and a server's answer to the one before may come together.
#[test]
fn what_comes_in_one_vector_is_billed_as_what_comes_alone() {
    bill_as_labelled(50);
}

fn bill_as_labelled(vector: usize) {
    let mut bench = bench(64, 4_096);
    let rules = content(&text(), 7, &bench);
    bench.engine.load(rules);
    let loaded = Notice::ContentLoaded { revision: 7, rules: u64::from(catalogue::APPLICATIONS) };
    assert_eq!(bench.settle(), [loaded]);
    let mut flows = flows(1, 300);
    // By flow: its user, what counts it, and whether it got beyond its first packets, which say what it is.
    let mut expected: HashMap<u64, (u32, u32, bool, u64)> = HashMap::new();
    for number in 1..=20_000 {
        let written = offer(&mut bench, &mut flows);
        let label = flows.label(written.flow);
        let is_lookup = label.service == "dns";
        let urr = if is_lookup { OTHER } else { catalogue::service(label.application) };
        let flow = expected.entry(written.flow).or_insert((written.user, urr, is_lookup, 0));
        (flow.2, flow.3) = (flow.2 || !written.first_packets, flow.3 + bytes(&written));
        bench.now_ns += 1_000;
        if number % vector == 0 {
            bench.worker.turn(bench.now_ns);
            let drops = bench.worker.counters().named_drops();
            assert_eq!(sent(&mut bench), vector, "{written:?} {label:?} {drops:?}");
        }
    }
    // Flows that ended before they said anything go by their servers, which several services may share.
    bench.now_ns += 20_000_000_000;
    bench.settle();
    for user in 0..USERS {
        let told = used(&query(&mut bench, user));
        let sum = |is_it: &dyn Fn(u32, bool) -> bool| -> u64 {
            let own = expected.values().filter(|(of, urr, said, _)| *of == user && is_it(*urr, *said));
            own.map(|(_, _, _, bytes)| bytes).sum()
        };
        assert_eq!(told.values().sum::<u64>(), sum(&|_, _| true), "all bytes are billed, once");
        let silent = sum(&|_, said| !said);
        assert!(silent < sum(&|_, _| true) / 20, "{silent} bytes of flows that may have said nothing");
        for (urr, told) in told {
            let certain = sum(&|of, said| of == urr && said);
            assert!((certain..=certain + silent).contains(&told), "{urr}: {certain} <= {told} <= +{silent}");
        }
    }
    let counts = bench.worker.counters().nodes[NodeId::Inspect as usize];
    assert!(counts.packets > 1_000, "{counts:?}");
}

/// Who watches packets sees each go through all nodes that have a part in it, where others do several at once.
#[test]
fn what_is_watched_is_sent_and_billed_as_what_is_not() {
    let mut benches = [bench(64, 4_096), bench(64, 4_096)];
    for bench in &mut benches {
        bench.engine.load(content(&text(), 7, bench));
        bench.settle();
    }
    let mut flows = [flows(3, 300), flows(3, 300)];
    for vector in [1, 7, 30].into_iter().cycle().take(600) {
        let mut hops = Vec::new();
        let [alone, watched] = &mut benches;
        for _ in 0..vector {
            offer(alone, &mut flows[0]);
            offer(watched, &mut flows[1]);
        }
        alone.worker.turn(alone.now_ns);
        watched.worker.turn_traced(watched.now_ns, Some(&mut hops));
        for port in [N3, N6] {
            assert_eq!(alone.sent(port), watched.sent(port));
        }
        benches.iter_mut().for_each(|bench| bench.now_ns += 1_000_000);
    }
    let at = |bench: &Bench, node: NodeId| bench.worker.counters().nodes[node as usize].packets;
    let [alone, watched] = &mut benches;
    assert_eq!(at(alone, NodeId::Far), at(watched, NodeId::Far));
    assert!(at(alone, NodeId::IpOutput) < at(watched, NodeId::IpOutput) / 10, "most is done at once");
    for user in 0..USERS {
        assert_eq!(used(&query(alone, user)), used(&query(watched, user)));
    }
}

/// A connection that is opened and never used: a query finds it unknown, and silence its server's address.
#[test]
fn a_flow_that_says_nothing_is_billed_by_its_address_in_the_end() {
    let syn = |bench: &mut Bench, port: u16| {
        let flow = packet::FiveTuple { source_port: port, ..flow(1) };
        let frame = up(1, &flow, &made(flag::SYN, (1, 0), b""));
        bench.receive(N3, &frame);
        bench.worker.turn(bench.now_ns);
        (frame.len() - TUNNEL) as u64
    };
    let mut bench = bench(64, 4_096);
    let text = "id=1 precedence=1 rating-group=1 application=service-1 network=203.0.113.0/24\n";
    let rules = content(text, 7, &bench);
    bench.engine.load(rules);
    bench.settle();
    let bytes = syn(&mut bench, 40_001);
    let told = used(&query(&mut bench, 0));
    assert_eq!((told[&OTHER], told[&1]), (bytes, 0), "asked too early");
    syn(&mut bench, 40_002);
    bench.now_ns += 20_000_000_000;
    bench.settle();
    let told = used(&query(&mut bench, 0));
    assert_eq!((told[&OTHER], told[&1]), (bytes, bytes));
}

/// An upload of which the first segment is lost, and comes again behind the others; and an octet in front of its request that is urgent,
/// and so none of it.
#[test]
fn a_flow_is_of_what_its_server_reads_whatever_comes_before_it() {
    let mut bench = bench(64, 4_096);
    let text = "id=1 precedence=1 rating-group=1 application=service-1 host=a.example\n";
    let rules = content(text, 7, &bench);
    bench.engine.load(rules);
    bench.settle();
    let request = b"?POST / HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let mut bytes = 0;
    let mut say = |flags, number, payload: &[u8]| {
        let frame = up(1, &flow(1), &made(flags, (number, 9), payload));
        bench.receive(N3, &frame);
        bench.worker.turn(bench.now_ns);
        bytes += (frame.len() - TUNNEL) as u64;
    };
    say(flag::SYN, 99, b"");
    for segment in 1..9 {
        say(flag::ACK, 100 + 1_200 * segment, &[b'j'; 1_200]);
    }
    say(flag::ACK | flag::URG, 100, request);
    let told = used(&query(&mut bench, 0));
    assert_eq!((told[&OTHER], told[&1]), (0, bytes));
}

/// One thing that may happen between packets.
#[derive(Clone, Copy, Debug)]
enum Event {
    Packets(u8),
    Change(u32),
    Remove(u32),
    Query(u32),
    Load(bool),
    Wait,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (1..40_u8).prop_map(Event::Packets),
        1 => (0..USERS).prop_map(Event::Change),
        1 => (0..USERS).prop_map(Event::Remove),
        1 => (0..USERS).prop_map(Event::Query),
        1 => any::<bool>().prop_map(Event::Load),
        1 => Just(Event::Wait),
    ]
}

/// Rules that most flows are of some service by.
const BY_LAYER: &str = "id=1 precedence=1 rating-group=1 application=service-1 layer=tls\n\
                        id=2 precedence=2 rating-group=2 application=service-2 layer=http\n\
                        id=3 precedence=3 rating-group=3 application=service-3 layer=quic\n\
                        id=4 precedence=4 rating-group=4 application=service-4 network=198.18.0.0/16\n";

/// Sessions through events, and all that was forwarded and told.
struct Story {
    bench: Bench,
    flows: Flows,
    random: StdRng,
    revision: u64,
    forwarded: u64,
    told: u64,
}

fn total(counts: &[UsageCounts]) -> u64 {
    used(counts).values().sum()
}

impl Story {
    fn new(seed: u64, inspections: usize) -> Self {
        let (bench, flows) = (bench(inspections, 8), flows(seed, 40));
        let random = StdRng::seed_from_u64(seed);
        let mut story = Self { bench, flows, random, revision: 1, forwarded: 0, told: 0 };
        story.load(BY_LAYER);
        story
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Packets(count) => self.packets(count),
            Event::Change(user) => self.change(u64::from(user) + 1),
            Event::Remove(user) => self.remove(Seid(u64::from(user) + 1)),
            Event::Query(user) => drop(query(&mut self.bench, user)),
            Event::Load(some) => self.load(if some { BY_LAYER } else { "" }),
            Event::Wait => {
                self.bench.now_ns += 11_000_000_000;
                // However often it waits, nobody is asked for in front of packets.
                self.bench.meet_neighbours();
                self.bench.settle();
            }
        }
    }

    fn packets(&mut self, count: u8) {
        let mut written = vec![];
        for _ in 0..count {
            written.push(offer(&mut self.bench, &mut self.flows));
            if self.random.random() {
                self.bench.now_ns += 1_000;
                self.bench.worker.turn(self.bench.now_ns);
            }
        }
        self.bench.settle();
        assert_eq!(sent(&mut self.bench), written.len());
        self.forwarded += written.iter().map(bytes).sum::<u64>();
    }

    /// Some service is billed no more.
    fn change(&mut self, session: u64) {
        let mut rules = in_service(session);
        let gone = UrrId(self.random.random_range(0..6));
        rules.urrs.retain(|urr| urr.id != gone);
        rules.pdrs.retain(|pdr| pdr.urrs != [gone].into());
        self.revision += 1;
        self.bench.put(session, self.revision, rules);
        self.settle();
    }

    fn remove(&mut self, session: Seid) {
        self.bench.engine.handle(Command::Delete { session }).unwrap();
        self.settle();
        self.revision += 1;
        self.bench.put(session.0, self.revision, in_service(session.0));
        self.settle();
    }

    fn load(&mut self, text: &str) {
        self.revision += 1;
        let rules = content(text, self.revision, &self.bench);
        self.bench.engine.load(rules);
        self.settle();
    }

    /// Adds up what is told of what is no more.
    fn settle(&mut self) {
        for notice in self.bench.settle() {
            self.told += match notice {
                Notice::Applied { removed, .. } => total(&removed),
                Notice::Removed { usage, .. } => total(&usage),
                _ => 0,
            };
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// With hardly any room for flows that wait, and few flows remembered; sessions that change, lose URRs, go and come
    /// again; rules that are loaded anew. What was told, all together, is what was forwarded.
    #[test]
    fn whatever_happens_all_that_is_forwarded_is_billed_once(
        seed in any::<u64>(),
        events in proptest::collection::vec(event(), 1..60),
        inspections in 1..6_usize,
    ) {
        let mut story = Story::new(seed, inspections);
        events.into_iter().for_each(|event| story.happens(event));
        let open: u64 = (0..USERS).map(|user| total(&query(&mut story.bench, user))).sum();
        prop_assert_eq!(story.told + open, story.forwarded);
    }
}

/// A user who may use one service and nothing else: the first packets pass, so that it can be found out.
#[test]
fn what_is_of_no_allowed_application_is_stopped_once_that_is_known() {
    let mut bench = bench(64, 4_096);
    let mut allowed = in_service(1);
    let name = catalogue::service_name(3);
    allowed
        .pdrs
        .retain(|pdr| pdr.pdi.application.as_ref().is_some_and(|application| application.name() == name));
    bench.put(1, 2, allowed);
    bench.settle();
    let rules = content(&text(), 7, &bench);
    bench.engine.load(rules);
    bench.settle();
    let mut flows = flows(5, 100);
    let mut passed: HashMap<bool, u64> = HashMap::new();
    for _ in 0..20_000 {
        let written = offer(&mut bench, &mut flows);
        bench.now_ns += 1_000;
        bench.worker.turn(bench.now_ns);
        let label = flows.label(written.flow);
        if sent(&mut bench) == 1 && written.user == 0 && !written.first_packets {
            let is_allowed = label.service != "dns" && catalogue::service(label.application) == 3;
            *passed.entry(is_allowed).or_default() += 1;
        }
    }
    assert_eq!(passed.get(&false), None, "later packets of other services pass");
    assert!(passed[&true] > 0);
    assert!(bench.worker.counters().drops[DropReason::NoPdr as usize] > 0);
}

/// Only what a session's rules ask for is found out.
#[test]
fn sessions_without_applications_are_not_looked_at() {
    let mut bench = Bench::new();
    let rules = content("id=1 precedence=1 rating-group=1 application=all any\n", 1, &bench);
    bench.engine.load(rules);
    bench.settle();
    bench.receive(N6, &super::to_user(1));
    bench.settle();
    assert_eq!(bench.sent(N3).len(), 1);
    assert_eq!(bench.worker.counters().nodes[NodeId::Inspect as usize].packets, 0);
}

/// A FAR that drops, for one application: the rest of its flow does not pass.
#[test]
fn a_blocked_service_is_blocked_and_others_are_not() {
    let mut bench = bench(64, 4_096);
    let mut blocked = in_service(1);
    let dropping = Far { id: FarId(9), apply_action: rules::ApplyAction::Drop, ..blocked.fars[0].clone() };
    blocked.fars.push(dropping);
    for pdr in blocked.pdrs.iter_mut().filter(|pdr| pdr.urrs == [UrrId(7)].into()) {
        pdr.far = FarId(9);
    }
    bench.put(1, 2, blocked);
    bench.settle();
    let rules = content(&text(), 7, &bench);
    bench.engine.load(rules);
    bench.settle();
    let mut flows = flows(6, 200);
    let (mut stopped, mut passed) = (0, 0);
    for _ in 0..20_000 {
        let written = offer(&mut bench, &mut flows);
        bench.now_ns += 1_000;
        bench.worker.turn(bench.now_ns);
        let label = flows.label(written.flow);
        let is_blocked =
            written.user == 0 && label.service != "dns" && catalogue::service(label.application) == 7;
        match (is_blocked && !written.first_packets, sent(&mut bench)) {
            (true, sent) => {
                assert_eq!(sent, 0, "{written:?} {label:?}");
                stopped += 1;
            }
            (false, sent) => passed += sent,
        }
    }
    assert!(stopped > 10 && passed > 10_000, "{stopped} {passed}");
}

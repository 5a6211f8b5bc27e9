//! GTP-U in fragments, and fragments of users.

use super::content::{OTHER, content, in_service, query, used};
use super::crew::Team;
use super::drops;
use super::redirect::tunnelled;
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, config, rules};
use crate::steering::Crew;
use dplink::{Command, Notice, UsageCounts};
use packet::ipv4;
use rules::{FlowDescription, FlowEnd, PdrId, PortRange, Rules, SdfFilter, Seid, Urr, UrrId};

/// Counts what goes to or comes from [`PORT`], and what else does.
pub(super) const OF_PORT: u32 = 1;
pub(super) const REST: u32 = 2;
const PORT: u16 = 5060;
/// The first fragment's place, and another's: more follow, in units of 8 octets.
pub(super) const FIRST: u16 = 0x2000;
pub(super) const LATER: u16 = 0x2003;
/// Of a fragment here.
pub(super) const BYTES: u64 = 20 + 24;

/// The session, with rules for the far end's port.
pub(super) fn by_port(session: u64) -> Rules {
    let mut rules = rules(session);
    let remote = FlowEnd { addresses: None, ports: vec![PortRange { first: PORT, last: PORT }] };
    let flow = FlowDescription { remote, ..FlowDescription::default() };
    for at in 0..2 {
        let mut pdr = rules.pdrs[at].clone();
        (pdr.id, pdr.precedence, pdr.urrs) = (PdrId(10 + at as u16), 10, vec![UrrId(OF_PORT)].into());
        pdr.pdi.sdf_filters = vec![SdfFilter { flow: Some(flow.clone()), ..SdfFilter::default() }];
        rules.pdrs[at].urrs = vec![UrrId(REST)].into();
        rules.pdrs.push(pdr);
    }
    rules.urrs = [OF_PORT, REST].map(|id| Urr { id: UrrId(id), ..Urr::default() }).into();
    rules
}

/// A fragment of a datagram between a user and a server. What stands where a first one has its ports is [`PORT`] twice.
fn fragment(ends: [[u8; 4]; 2], identification: u16, place: u16) -> Vec<u8> {
    let mut bytes = vec![0; BYTES as usize];
    let header = ipv4::Header::new(ends[0].into(), ends[1].into(), 17, bytes.len() - 20).unwrap();
    header.fragmentable(identification).write(&mut bytes).unwrap();
    bytes[6..8].copy_from_slice(&place.to_be_bytes());
    bytes[10..12].fill(0);
    let checksum = packet::checksum::of(&bytes[..20]);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    // The length of the whole datagram.
    let length = if place == 0 { BYTES as u16 - 20 } else { 1_000 };
    bytes[20..26].copy_from_slice(&[PORT, PORT, length].map(u16::to_be_bytes).concat());
    bytes
}

pub(super) fn up(session: u8, identification: u16, place: u16) -> Vec<u8> {
    let user = [10, 60, 0, session];
    tunnelled(session.into(), &fragment([user, [203, 0, 113, 80]], identification, place))
}

pub(super) fn down(session: u8, identification: u16, place: u16) -> Vec<u8> {
    let inner = fragment([[203, 0, 113, 80], [10, 60, 0, session]], identification, place);
    [&[2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, 8, 0][..], &inner].concat()
}

fn with_ports() -> Bench {
    let mut bench = Bench::new();
    for session in [2, 4] {
        bench.put(session, 2, by_port(session));
    }
    bench.settle();
    bench
}

/// Of which rules fragments are, by what is counted.
fn counted(bench: &mut Bench, port: usize, frame: &[u8]) -> u32 {
    let count = |bench: &mut Bench| used(&query(bench, 1));
    let before = count(bench);
    bench.receive(port, frame);
    bench.settle();
    let after = count(bench);
    let of = [OF_PORT, REST].into_iter().filter(|urr| after[urr] != before[urr]).collect::<Vec<_>>();
    assert_eq!(of.len(), 1, "{before:?} {after:?}");
    assert_eq!(after[&of[0]], before[&of[0]] + BYTES);
    of[0]
}

/// As the first one of its packet showed, within a second, and else as what shows none.
#[test]
fn later_fragments_are_of_the_ports_that_the_first_one_showed() {
    let mut bench = with_ports();
    for (port, frame) in [(N3, up as fn(u8, u16, u16) -> Vec<u8>), (N6, down)] {
        assert_eq!(counted(&mut bench, port, &frame(2, 5, LATER)), REST, "before the first");
        assert_eq!(counted(&mut bench, port, &frame(2, 5, FIRST)), OF_PORT);
        assert_eq!(counted(&mut bench, port, &frame(2, 5, LATER)), OF_PORT);
        assert_eq!(counted(&mut bench, port, &frame(2, 5, LATER & 0x1fff)), OF_PORT, "the last");
        assert_eq!(counted(&mut bench, port, &frame(2, 6, LATER)), REST, "of another packet");
        bench.now_ns += 1_000_000_000;
        assert_eq!(counted(&mut bench, port, &frame(2, 5, LATER)), OF_PORT);
        bench.now_ns += 1;
        assert_eq!(counted(&mut bench, port, &frame(2, 5, LATER)), REST, "too late");
    }
}

#[test]
fn a_first_fragment_says_nothing_of_those_in_other_tunnels() {
    let mut bench = with_ports();
    let lie = fragment([[10, 60, 0, 2], [203, 0, 113, 80]], 5, FIRST);
    bench.receive(N3, &tunnelled(4, &lie));
    bench.settle();
    assert_eq!(counted(&mut bench, N3, &up(2, 5, LATER)), REST);
}

/// Of a user's own, the oldest gives way.
#[test]
fn first_fragments_to_one_user_do_not_crowd_out_those_to_another() {
    let mut bench = with_ports();
    assert_eq!(counted(&mut bench, N6, &down(2, 5, FIRST)), OF_PORT);
    for identification in 0..1_000 {
        bench.receive(N6, &down(4, identification, FIRST));
        bench.worker.turn(bench.now_ns);
    }
    assert_eq!(counted(&mut bench, N6, &down(2, 5, LATER)), OF_PORT);
    for identification in 100..132 {
        assert_eq!(counted(&mut bench, N6, &down(2, 5, LATER)), OF_PORT, "{identification}");
        counted(&mut bench, N6, &down(2, identification, FIRST));
    }
    assert_eq!(counted(&mut bench, N6, &down(2, 5, LATER)), REST);
}

fn in_services() -> Bench {
    let mut bench = super::content::bench(64, 64);
    let text = format!("id=1 precedence=1 rating-group=1 application=service-1 port={PORT}\n");
    let rules = content(&text, 7, &bench);
    bench.engine.load(rules);
    bench.put(2, 2, in_service(2));
    bench.settle();
    bench
}

/// A flow that is known of what application it is takes its fragments along.
#[test]
fn fragments_are_of_the_application_of_their_flow() {
    let mut bench = in_services();
    let whole = 0;
    for (times, place) in [whole, FIRST, LATER, LATER].into_iter().enumerate() {
        bench.receive(N3, &up(2, 5, place));
        bench.settle();
        assert_eq!(used(&query(&mut bench, 1))[&1], (1 + times as u64) * BYTES, "{place:x}");
    }
    bench.receive(N3, &up(2, 6, LATER));
    bench.settle();
    assert_eq!(used(&query(&mut bench, 1))[&1], 4 * BYTES, "of another packet");
}

/// Where it is not known yet, they wait with it; who asks meanwhile hears that they are of none.
#[test]
fn what_fragments_use_is_counted_once_it_is_known_what_their_flow_is() {
    let mut bench = in_services();
    let send = |bench: &mut Bench, place| {
        bench.receive(N3, &up(2, 5, place));
        bench.settle();
    };
    [FIRST, LATER, LATER].into_iter().for_each(|place| send(&mut bench, place));
    assert_eq!(bench.worker.content_counts().waiting, 1);
    let counts = used(&query(&mut bench, 1));
    assert_eq!((counts[&1], counts[&OTHER]), (0, 3 * BYTES));
    send(&mut bench, LATER);
    bench.now_ns += 20_000_000_000;
    bench.settle();
    assert_eq!(bench.worker.content_counts().waiting, 0);
    let counts = used(&query(&mut bench, 1));
    assert_eq!((counts[&1], counts[&OTHER]), (BYTES, 3 * BYTES));
}

/// Devices spread fragments as they like; at the worker of their user they meet.
#[test]
fn fragments_that_come_to_several_workers_are_of_one_packet() {
    let mut team = Team::over(&config(), &Crew::of(3));
    team.meet();
    team.put(2, 1, by_port(2));
    team.settle();
    let owner = team.owner(2);
    let others: Vec<usize> = (0..3).filter(|worker| *worker != owner).collect();
    for (worker, place) in [(others[0], FIRST), (others[1], LATER), (owner, LATER), (others[0], LATER)] {
        team.receive(worker, N3, &up(2, 5, place));
        team.settle();
    }
    let command = Command::QueryUsage { session: Seid(2), urrs: vec![], token: 7, is_reported: false };
    let told = team.ask(command).into_iter().find_map(|notice| match notice {
        Notice::Usage { counts, .. } => Some(counts),
        _ => None,
    });
    let counts: Vec<UsageCounts> = told.unwrap();
    assert_eq!(used(&counts)[&OF_PORT], 4 * BYTES);
}

/// The first fragment of a datagram of this base station.
fn first_half(host: u8, identification: u8) -> Vec<u8> {
    let mut frame = crate::golden::file("reassembly/in_order")[0].clone();
    (frame[19], frame[29]) = (identification, host);
    frame[24..26].fill(0);
    let checksum = packet::checksum::of(&frame[14..34]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// So many fragments wait, reached their end whole, were given up, and refused.
fn of_fragments(bench: &Bench) -> [u64; 4] {
    let books = bench.worker.books();
    assert!(books.balanced(), "{books:?}");
    let drops = |reason| drops(bench, reason);
    [books.held, books.consumed, drops(DropReason::FragmentsIncomplete), drops(DropReason::FragmentsFull)]
}

#[test]
fn fragments_wait_in_the_books_and_are_counted_once_their_datagram_is_whole_or_given_up() {
    let mut bench = Bench::new();
    let receive = |bench: &mut Bench, frame: &[u8]| {
        bench.receive(N3, frame);
        bench.worker.turn(bench.now_ns);
        of_fragments(bench)
    };
    for number in 0..16 {
        assert_eq!(receive(&mut bench, &first_half(1, number))[0], u64::from(number) + 1);
    }
    assert_eq!(receive(&mut bench, &first_half(1, 98)), [16, 0, 1, 0], "the oldest of its own gave way");
    for (host, number) in (2..=4).flat_map(|host| (0..16).map(move |number| (host, number))) {
        receive(&mut bench, &first_half(host, number));
    }
    assert_eq!(receive(&mut bench, &first_half(5, 0)), [64, 0, 1, 1], "nobody gives way to others");
    let whole = crate::golden::file("reassembly/in_order");
    assert_eq!(receive(&mut bench, &whole[0]), [64, 0, 2, 1]);
    assert_eq!(receive(&mut bench, &whole[1]), [63, 1, 2, 1]);
    bench.now_ns += 2_000_000_000;
    bench.worker.turn(bench.now_ns);
    assert_eq!(of_fragments(&bench), [0, 1, 65, 1], "with nothing to remind of them");
}

#[test]
fn fragments_are_dropped_with_one_that_makes_no_sense_among_them() {
    let mut bench = Bench::new();
    for frame in &crate::golden::file("reassembly/overlap")[..2] {
        bench.receive(N3, frame);
        bench.worker.turn(bench.now_ns);
    }
    assert_eq!((drops(&bench, DropReason::BadFragment), of_fragments(&bench)), (2, [0; 4]));
}

//! The data plane against the slow reference of the path: random worlds, random packets, and any difference fails.
//!
//! `make differential` runs ten million packets of new worlds; `FIRST=n` starts with another world, of which there are
//! `WORLDS=n`.

use crate::config::{Config, Echo, Limits, PortConfig, Route};
use crate::engine::{Engine, Wish};
use crate::port::Port;
use crate::steering::Crew;
use crate::worker::{Worker, connect_crew};
use crate::{Counters, DropReason};
use dplink::{Command, Desired, Notice, Spread};
use packet::ethernet::MacAddress;
use packet::{Buffer, HeapBuffer};
use rand::{Rng, SeedableRng};
use reference::worlds::{Change, Random, Scope, World};
use reference::{Fate, Outcome, Reference, Setup, UsageCounts};
use rules::{ApplyAction, Rules, Seid};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;

/// Packets between two changes of the rules.
const CHANGE_EVERY: usize = 200;
/// Packets of a world: its second is the time after which waiting packets expire.
const PACKETS: usize = 2_000;
/// Bytes of the longest frame.
const ROOM: usize = 9_216;

/// What is on its way to the worker, and what came from it.
type OnTheWay = (VecDeque<HeapBuffer>, Vec<Vec<u8>>);

/// Both ends of a wire.
#[derive(Clone, Default)]
struct Wire(Rc<RefCell<OnTheWay>>);

impl Port for Wire {
    type Buffer = HeapBuffer;

    fn receive(&mut self, into: &mut Vec<HeapBuffer>, limit: usize) -> usize {
        let waiting = &mut self.0.borrow_mut().0;
        let count = limit.min(waiting.len());
        into.extend(waiting.drain(..count));
        count
    }

    fn send(&mut self, from: &mut Vec<HeapBuffer>) -> usize {
        let sent = &mut self.0.borrow_mut().1;
        sent.extend(from.iter().map(|buffer| buffer.data().to_vec()));
        from.drain(..).count()
    }

    fn allocate(&mut self) -> Option<HeapBuffer> {
        Some(roomy(&[]))
    }

    fn is_contiguous(_: &HeapBuffer) -> bool {
        true
    }
}

/// A frame and its port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Frame(usize, Vec<u8>);

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.0)?;
        self.1.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What became of some packets, whichever way it was found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tally {
    /// In any order: a copy may leave before its original.
    sent: Vec<Frame>,
    drops: BTreeMap<&'static str, u64>,
    consumed: u64,
}

impl Tally {
    /// What is here and not there.
    fn without(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.sent.retain(|frame| !other.sent.contains(frame));
        rest.drops.retain(|reason, count| other.drops.get(reason) != Some(count));
        rest
    }

    /// Leaves out which datagram of ours a fragment is of: the reference does not say.
    fn forget_identifications(&mut self, setup: &Setup) {
        for Frame(_, frame) in &mut self.sent {
            forget_identification(setup, frame);
        }
    }

    /// What the reference says.
    fn expect(&mut self, outcome: Outcome) {
        for fate in outcome.copies.iter().chain([&outcome.fate]) {
            match fate {
                Fate::Dropped(reason) => *self.drops.entry(reason.name()).or_default() += 1,
                Fate::Consumed => self.consumed += 1,
                Fate::Sent | Fate::Held | Fate::Kept => {}
            }
        }
        self.sent.extend(outcome.sent.into_iter().map(|(port, frame)| Frame(port, frame)));
    }
}

/// Leaves out of an Ethernet frame what tells fragments of one datagram of ours from those of another.
fn forget_identification(setup: &Setup, frame: &mut [u8]) {
    let is_ours = |at: usize, is_ipv6: bool| {
        setup.ports.iter().any(|port| match is_ipv6 {
            false => frame.get(at..at + 4) == Some(&port.ipv4.addr().octets()),
            true => port.ipv6.is_some_and(|net| frame.get(at..at + 16) == Some(&net.addr().octets())),
        })
    };
    match frame {
        [..] if frame.get(12..14) == Some(&[8, 0]) && is_ours(26, false) => {
            let is_fragment = frame[20] & 0x3f != 0 || frame[21] != 0;
            if is_fragment {
                frame[18..20].fill(0);
                frame[24..26].fill(0);
            }
        }
        [..] if frame.get(12..14) == Some(&[0x86, 0xdd]) && is_ours(22, true) && frame[20] == 44 => {
            frame[58..62].fill(0);
        }
        _ => {}
    }
}

/// As much room as the port's driver gives, whatever the frame: some become longer.
fn roomy(frame: &[u8]) -> HeapBuffer {
    let mut bytes = frame.to_vec();
    bytes.resize(ROOM.max(frame.len()), 0);
    let mut buffer = HeapBuffer::new(&bytes);
    buffer.truncate(frame.len()).unwrap();
    buffer
}

struct Pair {
    world: World,
    reference: Reference,
    engine: Engine,
    workers: Vec<Worker<Wire>>,
    /// By worker, then by port.
    wires: Vec<Vec<Wire>>,
    revision: u64,
    now_ns: u64,
    /// Sessions move, between packets and while they are under way.
    moves: bool,
    moved: usize,
}

impl Pair {
    fn new(seed: u64, scope: Scope, (crew, moves): (&Crew, bool)) -> Self {
        let mut world = World::within(seed, scope);
        if crew.workers > 1 {
            // Each worker lets as many wait.
            world.setup.held_per_neighbour = PACKETS;
        }
        let ports = || world.setup.ports.iter().map(|_| Wire::default()).collect::<Vec<_>>();
        let wires: Vec<Vec<Wire>> = (0..crew.workers).map(|_| ports()).collect();
        let (engine, mut workers) = connect_crew(&config(&world.setup), crew, wires.clone(), || 0).unwrap();
        for known in &world.setup.neighbours {
            for worker in &mut workers {
                worker.know(known.port as u8, MacAddress(known.mac), known.address);
            }
        }
        let reference = Reference::new(world.setup.clone()).unwrap();
        let mut pair =
            Self { reference, engine, workers, wires, revision: 0, now_ns: 1, moves, moved: 0, world };
        for (seid, rules) in pair.world.sessions.clone() {
            pair.put(seid, rules);
        }
        pair
    }

    fn put(&mut self, session: Seid, mut rules: Rules) {
        if self.workers.len() > 1 {
            // Sessions that share a meter have to share a worker, which those of a world cannot always.
            rules.qers.iter_mut().for_each(|qer| qer.correlation = None);
        }
        self.revision += 1;
        // What was kept for a user would leave now; the reference does not follow packets for so long.
        let desired = Desired { drop_buffered: true, ..Desired::new(session, self.revision, rules.clone()) };
        self.command(Command::Put(desired));
        self.reference.put(session, rules);
    }

    fn command(&mut self, command: Command) -> Vec<Notice> {
        let mut notices: Vec<Notice> = self.engine.handle(command).unwrap().into_iter().collect();
        for _ in 0..3 {
            self.turn();
            notices.extend(self.engine.poll(0));
        }
        while self.engine.has_moves() {
            self.turn();
            notices.extend(self.engine.poll(0));
        }
        let refused = notices.iter().find(|notice| matches!(notice, Notice::Refused { .. }));
        assert_eq!(refused, None);
        notices
    }

    /// One turn of each worker; returns the packets taken.
    fn turn(&mut self) -> usize {
        self.workers.iter_mut().map(|worker| worker.turn(self.now_ns)).sum()
    }

    fn change(&mut self, random: &mut Random) {
        match self.world.change(random) {
            Change::Put(session, rules) => self.put(session, rules),
            Change::Remove(session) => {
                self.command(Command::Delete { session });
                self.reference.remove(session);
            }
        }
    }

    /// Lets a session begin to move to some worker, and go some of the way; which it was.
    fn set_out(&mut self, random: &mut Random) -> Option<Seid> {
        let place = random.random_range(0..self.world.sessions.len().max(1));
        if self.workers.iter().any(|worker| worker.books().held > 0) {
            return None;
        }
        let (session, rules) = self.world.sessions.get(place)?;
        // Kept packets go by the rules again where their session has gone, as on waking up; of them the reference knows nothing.
        if rules.fars.iter().any(|far| far.apply_action == ApplyAction::Buffer) {
            return None;
        }
        let (session, to) = (*session, random.random_range(0..self.workers.len()));
        // A worker that only distributes takes none.
        if self.engine.want(Wish::asked(1), session, to as u8).is_ok() {
            for _ in 0..random.random_range(0..12) {
                self.look();
                let one = random.random_range(0..self.workers.len());
                self.workers[one].turn(self.now_ns);
            }
        }
        Some(session)
    }

    /// What waits for a next hop where a session was before is counted since it has gone. All that waits is of this run: no
    /// session sets out while anything does, or nobody could say what came first.
    fn settle(&mut self, gone: Option<Seid>) {
        let Some(session) = gone else { return };
        let others = self.workers.iter().filter(|worker| !worker.holds(session));
        let waiting: Vec<&[u8]> = others.flat_map(Worker::waiting).collect();
        self.reference.settle_those(session, |packet| waiting.contains(&packet));
    }

    /// What the engine has heard, of which only arrivals matter.
    fn look(&mut self) {
        let arrived = |notice: &Notice| matches!(notice, Notice::Placed { outcome: Ok(placed), .. } if placed.came_from.is_some());
        self.moved += self.engine.poll(0).iter().filter(|notice| arrived(notice)).count();
    }

    /// Goes on until everything is done: every packet, and every move.
    fn finish(&mut self) {
        while self.turn() > 0 {}
        self.look();
        while self.engine.has_moves() {
            self.turn();
            self.look();
            while self.turn() > 0 {}
        }
    }

    /// Gives some packets to both, all at one time: what each made of them, and the packets.
    fn run(&mut self, count: usize, random: &mut Random) -> (Tally, Tally, Vec<Frame>) {
        self.now_ns += World::gap_ns(random);
        let going = if self.moves { self.set_out(random) } else { None };
        let (mut expected, mut seen, mut frames) = (Tally::default(), Tally::default(), Vec::new());
        for _ in 0..count {
            let (port, frame) = self.world.packet(random);
            expected.expect(self.reference.process(port, &frame, self.now_ns));
            let worker = bystander(&frame, self.workers.len());
            self.wires[worker][port].0.borrow_mut().0.push_back(roomy(&frame));
            frames.push(Frame(port, frame));
        }
        let before: Vec<Counters> = self.workers.iter().map(|worker| worker.counters().clone()).collect();
        self.finish();
        self.settle(going);
        for (before, worker) in before.iter().zip(&self.workers) {
            seen.consumed += worker.counters().consumed - before.consumed;
            for (reason, count) in drops(before, worker.counters()) {
                *seen.drops.entry(reason).or_default() += count;
            }
            assert!(worker.books().balanced());
        }
        for (port, wire) in self.wires.iter().flat_map(|wires| wires.iter().enumerate()) {
            seen.sent.extend(wire.0.borrow_mut().1.drain(..).map(|frame| Frame(port, frame)));
        }
        if self.workers.len() > 1 {
            // Each asks for the stations it needs.
            for tally in [&mut expected, &mut seen] {
                tally.sent.retain(|Frame(_, frame)| !is_question(frame));
            }
        }
        for tally in [&mut expected, &mut seen] {
            tally.forget_identifications(&self.world.setup);
            tally.sent.sort();
        }
        (expected, seen, frames)
    }

    /// What both have counted for a session.
    fn usage(&mut self, session: Seid) -> (Vec<UsageCounts>, Vec<UsageCounts>) {
        let query = Command::QueryUsage { session, urrs: vec![], token: 1, is_reported: false };
        let told = self.command(query).into_iter().find_map(|notice| match notice {
            Notice::Usage { counts, .. } => Some(counts),
            _ => None,
        });
        let told = told.unwrap_or_default().into_iter().map(|counts| UsageCounts {
            urr: counts.urr,
            uplink_bytes: counts.uplink_bytes,
            downlink_bytes: counts.downlink_bytes,
            uplink_packets: counts.uplink_packets,
            downlink_packets: counts.downlink_packets,
            dropped_downlink_packets: counts.dropped_downlink_packets,
            dropped_downlink_bytes: counts.dropped_downlink_bytes,
        });
        (self.reference.usage(session), told.collect())
    }
}

/// The worker that a device would bring a frame to that hashes the outermost addresses.
fn bystander(frame: &[u8], workers: usize) -> usize {
    let tag = if frame.get(12..14) == Some(&[0x81, 0]) { 4 } else { 0 };
    let octets = frame.iter().skip(tag + 26).take(8).map(|octet| usize::from(*octet));
    octets.fold(0, |hash, octet| hash * 31 + octet) % workers
}

/// Whether a frame asks for a station's address: by ARP, or by neighbour solicitation.
fn is_question(frame: &[u8]) -> bool {
    let is = |at: usize, octets: &[u8]| frame.get(at..at + octets.len()) == Some(octets);
    (is(12, &[8, 6]) && is(20, &[0, 1])) || (is(12, &[0x86, 0xdd]) && is(20, &[58]) && is(54, &[135]))
}

fn drops(before: &Counters, after: &Counters) -> BTreeMap<&'static str, u64> {
    let counts = DropReason::ALL.iter().zip(before.drops.iter().zip(after.drops));
    let new = counts.map(|(reason, (before, after))| (reason.name(), after - before));
    // Packets kept for a user whose rules changed; the reference forgets them.
    new.filter(|(name, count)| *count > 0 && *name != "buffer_dropped").collect()
}

fn config(setup: &Setup) -> Config {
    let port = |(number, port): (usize, &reference::PortSetup)| PortConfig {
        name: format!("port {number}"),
        device: String::new(),
        interface: port.interface,
        instance: port.instance,
        mac: MacAddress(port.mac),
        address: port.ipv4,
        address6: port.ipv6,
        mtu: port.mtu,
        vlan: None,
        mss_clamp: false,
        ethernet: false,
        punt: None,
    };
    let route = |route: &reference::Route| Route {
        prefix: route.prefix,
        via: route.via,
        instance: Some(route.instance),
    };
    Config {
        ports: setup.ports.iter().enumerate().map(port).collect(),
        routes: setup.routes.iter().map(route).collect(),
        limits: Limits {
            sessions: 64,
            pdrs: 8_192,
            flows: 1_024,
            kept: 16_384,
            kept_per_session: 16_384,
            burst_ns: setup.burst_ns,
            session_mbr: setup.session_mbr,
            held_per_neighbour: setup.held_per_neighbour,
            error_indications_per_s: u32::MAX,
            icmp_errors_per_s: u32::MAX,
            ..Limits::default()
        },
        echo: Echo::OFF,
        resolvers: vec![],
        epoch: 1,
        seed: 7,
    }
}

/// A number from the environment, for long runs.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn compare(scope: Scope, at_once: usize, crew: &Crew) {
    compare_moving(scope, at_once, (crew, false));
}

fn compare_moving(scope: Scope, at_once: usize, (crew, moves): (&Crew, bool)) {
    let (first, worlds) = (number("FIRST", 0), number("WORLDS", 100));
    let (mut all_handed, mut all_moved) = (0, 0);
    for seed in first..first + worlds {
        let mut pair = Pair::new(seed, scope, (crew, moves));
        let random = &mut Random::seed_from_u64(seed);
        for done in (0..PACKETS).step_by(at_once) {
            let (expected, seen, frames) = pair.run(at_once, random);
            if expected != seen {
                let (missing, surplus) = (expected.without(&seen), seen.without(&expected));
                panic!(
                    "seed {seed} after {done}:\nmissing {missing:#?}\nsurplus {surplus:#?}\nin {frames:#?}"
                );
            }
            if done % CHANGE_EVERY < at_once {
                pair.change(random);
            }
        }
        for (session, rules) in pair.world.sessions.clone() {
            let (expected, seen) = pair.usage(session);
            assert_eq!(expected, seen, "usage of {session} in world {seed}: {rules:#?}");
            let holders = pair.workers.iter().filter(|worker| worker.holds(session)).count();
            assert_eq!(holders, 1, "a session belongs to one worker");
        }
        let handed =
            |count: fn(&Counters) -> u64| pair.workers.iter().map(|worker| count(worker.counters())).sum();
        let (handed_out, handed_in): (u64, u64) =
            (handed(|counters| counters.handed_out), handed(|counters| counters.handed_in));
        assert_eq!(handed_out, handed_in, "world {seed}");
        all_handed += handed_in;
        all_moved += pair.moved;
    }
    assert!(moves == (all_moved > 0), "{all_moved} sessions moved");
    let (packets, last) = (worlds * PACKETS as u64, first + worlds - 1);
    println!(
        "no difference in {packets} packets of worlds {first} to {last}, {at_once} at once, {} workers",
        crew.workers
    );
    assert!((crew.workers > 1) == (all_handed > 0), "{all_handed} packets were handed over");
}

#[test]
fn the_data_plane_does_with_every_packet_what_the_reference_does() {
    compare(Scope { twin_tunnels: false, ..Scope::ALL }, 1, &Crew::default());
}

/// Without what depends on the order of packets: in a vector they meet meters, quotas, each other's fragments and
/// redirections in that of the graph's nodes.
const fn in_vectors() -> Scope {
    Scope {
        rates: false,
        usage: false,
        signals: false,
        twin_tunnels: false,
        parts: false,
        redirects: false,
        ..Scope::ALL
    }
}

#[test]
fn whole_vectors_end_as_their_packets_do_alone() {
    let scope = in_vectors();
    compare(scope, 64, &Crew::default());
}

/// Whatever the device brings to which worker: every fate and every count is what one worker would come to.
#[test]
fn several_workers_do_with_every_packet_what_the_reference_does() {
    let scope = Scope { twin_tunnels: false, ..Scope::ALL };
    compare(scope, 1, &Crew::of(3));
    // The card hashes the users' addresses, but not as we do: every second packet is at the wrong worker.
    compare(scope, 1, &Crew { spread: vec![Spread::InnerHash; 16], ..Crew::of(2) });
}

#[test]
fn whole_vectors_handed_over_end_as_their_packets_do_alone() {
    let scope = in_vectors();
    compare(scope, 64, &Crew { distributors: 1, ..Crew::of(4) });
}

/// Sessions move about all the time, and what they do and count is as if they stayed.
#[test]
fn sessions_that_move_do_with_every_packet_what_the_reference_does() {
    // What first fragments said does not go along.
    let scope = Scope { twin_tunnels: false, parts: false, ..Scope::ALL };
    compare_moving(scope, 1, (&Crew::of(3), true));
    compare_moving(scope, 1, (&Crew { spread: vec![Spread::InnerHash; 16], ..Crew::of(2) }, true));
}

#[test]
fn whole_vectors_end_as_their_packets_do_alone_while_sessions_move() {
    let scope = in_vectors();
    compare_moving(scope, 64, (&Crew { distributors: 1, ..Crew::of(4) }, true));
}

//! The data plane and the reference side by side: both get the same rules, and the same packets at the same time.

use super::PACKETS;
use super::portals::Portals;
use super::tally::{Frame, Tally, drops, tag_length};
use super::wire::{Wire, roomy};
use super::woken::Woken;
use crate::Counters;
use crate::config::{Config, Echo, Limits, PortConfig, Route};
use crate::content::ContentRules;
use crate::engine::{Engine, Wish};
use crate::steering::Crew;
use crate::worker::{Worker, connect_crew};
use dplink::{Command, Desired, Notice, UsageCause};
use packet::ethernet::MacAddress;
use rand::Rng;
use reference::worlds::{Change, Random, Scope, World};
use reference::{ContentRule, Reference, Setup, UsageCounts};
use rules::{ApplyAction, Rules, Seid};

pub(super) struct Pair {
    pub(super) world: World,
    pub(super) reference: Reference,
    engine: Engine,
    pub(super) workers: Vec<Worker<Wire>>,
    /// By worker, then by port.
    wires: Vec<Vec<Wire>>,
    revision: u64,
    now_ns: u64,
    /// Sessions move, between packets and while they are under way.
    moves: bool,
    pub(super) moved: usize,
    /// How many times packets were brought.
    pub(super) vectors: usize,
    portals: Portals,
    pub(super) woken: Woken,
}

impl Pair {
    pub(super) fn new(seed: u64, scope: Scope, (crew, moves, at_once): (&Crew, bool, usize)) -> Self {
        let mut world = World::within(seed, scope);
        if crew.workers > 1 {
            // Each worker lets as many wait.
            world.setup.held_per_neighbour = PACKETS;
        }
        if at_once > 1 {
            // Which of a moment's packets finds a meter used up depends on their order.
            world.setup.catch_up_ns = 0;
        }
        Self::of(world, (crew, moves))
    }

    /// Where time may pass: nothing waits for what would be over within a second.
    pub(super) fn with_pauses(seed: u64, scope: Scope, (crew, moves): (&Crew, bool)) -> Self {
        let mut world = World::within(seed, scope);
        world.setup.held_per_neighbour = 0;
        Self::of(world, (crew, moves))
    }

    fn of(world: World, (crew, moves): (&Crew, bool)) -> Self {
        let count = world.setup.ports.len() + world.setup.frame_ports.len();
        let ports = || (0..count).map(|_| Wire::default()).collect::<Vec<_>>();
        let wires: Vec<Vec<Wire>> = (0..crew.workers).map(|_| ports()).collect();
        let (engine, mut workers) = connect_crew(&config(&world.setup), crew, wires.clone(), || 0).unwrap();
        for known in &world.setup.neighbours {
            for worker in &mut workers {
                worker.know(known.port as u8, MacAddress(known.mac), known.address);
            }
        }
        let reference = Reference::new(world.setup.clone()).unwrap();
        let mut pair = Self {
            reference,
            engine,
            workers,
            wires,
            revision: 0,
            now_ns: 1,
            moves,
            moved: 0,
            vectors: 0,
            portals: Portals::default(),
            woken: Woken::default(),
            world,
        };
        if let Some(content) = pair.world.content.clone() {
            pair.load(content);
        }
        for (seid, rules) in pair.world.sessions.clone() {
            pair.put(seid, rules);
        }
        pair
    }

    /// Content rules, which the data plane reads as operators write them.
    fn load(&mut self, rules: Vec<ContentRule>) {
        let text: String = rules.iter().map(|rule| format!("{rule}\n")).collect();
        let classifier = dpi::rule_file::read_lines(&text).unwrap().compile().unwrap();
        self.engine.load(ContentRules::new(1, classifier, None).unwrap());
        while self.engine.poll(0).is_empty() {
            self.turn();
        }
        self.reference.load(rules);
    }

    fn put(&mut self, session: Seid, mut rules: Rules) {
        if self.workers.len() > 1 {
            // Sessions that share a meter have to share a worker, which those of a world cannot always.
            rules.qers.iter_mut().for_each(|qer| qer.correlation = None);
        }
        self.close(session);
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
        self.woken.note(&notices);
        notices
    }

    /// One turn of each worker; returns the packets taken.
    fn turn(&mut self) -> usize {
        self.workers.iter_mut().map(|worker| worker.turn(self.now_ns)).sum()
    }

    pub(super) fn change(&mut self, random: &mut Random) {
        match self.world.change(random) {
            Change::Put(session, rules) => self.put(session, rules),
            Change::Remove(session) => {
                self.close(session);
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
        let notices = self.engine.poll(0);
        self.moved += notices.iter().filter(|notice| arrived(notice)).count();
        self.woken.note(&notices);
    }

    /// A session is about to get other rules, or the world is over.
    pub(super) fn close(&mut self, session: Seid) {
        self.look();
        self.woken.close(session, &self.reference);
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

    /// Nothing happens for a time in which TCP would wait.
    pub(super) fn pause(&mut self, random: &mut Random) {
        // A world's pauses together are shorter than flows wait to be of an application.
        self.now_ns += random.random_range(0..240_000_000);
    }

    /// Gives some packets to both, all at one time, maybe copies of one: what each made of them, and the packets.
    pub(super) fn run(
        &mut self,
        (count, are_copies): (usize, bool),
        random: &mut Random,
    ) -> (Tally, Tally, Vec<Frame>) {
        self.now_ns += World::gap_ns(random);
        let going = if self.moves { self.set_out(random) } else { None };
        let mut packet = |_| {
            let (port, frame) = self.world.packet(random);
            self.portals.next(random).unwrap_or(Frame(port, frame))
        };
        let frames: Vec<Frame> = match are_copies {
            true => vec![packet(0); count],
            false => (0..count).map(packet).collect(),
        };
        let (expected, seen) = self.give(&frames, going);
        (expected, seen, frames)
    }

    /// Gives these frames to both, while a session may be going: what each made of them. In a vector, packets meet limits in
    /// the order of the graph's nodes, which matters where one is reached, unless they are all the same: so a vector ends
    /// before the packet with which one is, and that goes alone. So does what is counted until it is known to have no way, and what
    /// waits for a next hop.
    pub(super) fn give(&mut self, frames: &[Frame], going: Option<Seid>) -> (Tally, Tally) {
        let (mut expected, mut seen) = (Tally::default(), Tally::default());
        let before: Vec<Counters> = self.workers.iter().map(|worker| worker.counters().clone()).collect();
        let mut standing = self.reference.standing(self.now_ns);
        let are_alike = frames.windows(2).all(|pair| pair[0] == pair[1]);
        let mut first = 0;
        for (at, Frame(port, frame)) in frames.iter().enumerate() {
            expected.expect(self.reference.process(*port, frame, self.now_ns));
            let after = self.reference.standing(self.now_ns);
            let is_apart = match are_alike {
                true => after.put_off() != standing.put_off(),
                false => after != standing,
            };
            if is_apart {
                self.bring(&frames[first..at]);
                self.bring(&frames[at..=at]);
                first = at + 1;
            }
            standing = after;
        }
        self.bring(&frames[first..]);
        self.settle(going);
        self.read(&before, &mut seen);
        self.portals.hear(frames, &seen.sent, &mut self.reference);
        for tally in [&mut expected, &mut seen] {
            if self.workers.len() > 1 {
                // Each asks for the stations it needs.
                tally.sent.retain(|Frame(_, frame)| !is_question(frame));
            }
            tally.forget_identifications(&self.world.setup);
            tally.forget_first_numbers();
            tally.sent.sort();
        }
        (expected, seen)
    }

    /// Brings frames to the workers, all at once, and lets them do all there is to do.
    fn bring(&mut self, frames: &[Frame]) {
        self.vectors += usize::from(!frames.is_empty());
        for Frame(port, frame) in frames {
            let worker = bystander(frame, self.workers.len());
            self.wires[worker][*port].0.borrow_mut().0.push_back(roomy(frame));
        }
        self.finish();
    }

    /// What has become of frames since the workers had counted so much.
    fn read(&self, before: &[Counters], seen: &mut Tally) {
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
    }

    /// What both have counted for a session.
    pub(super) fn usage(&mut self, session: Seid) -> (Vec<UsageCounts>, Vec<UsageCounts>) {
        let query = Command::QueryUsage { session, urrs: vec![], token: 1, is_reported: false };
        let told = self.command(query).into_iter().find_map(|notice| match notice {
            // What was used while it was not known by what is counted now, and may reach a threshold.
            Notice::Usage { cause: UsageCause::Query(_), counts, .. } => Some(counts),
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
    let tag = tag_length(frame);
    let octets = frame.iter().skip(tag + 26).take(8).map(|octet| usize::from(*octet));
    octets.fold(0, |hash, octet| hash * 31 + octet) % workers
}

/// Whether a frame asks for a station's address: by ARP, or by neighbour solicitation.
fn is_question(frame: &[u8]) -> bool {
    let tag = tag_length(frame);
    let is = |at: usize, octets: &[u8]| frame.get(tag + at..tag + at + octets.len()) == Some(octets);
    (is(12, &[8, 6]) && is(20, &[0, 1])) || (is(12, &[0x86, 0xdd]) && is(20, &[58]) && is(54, &[135]))
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
        vlan: port.vlan,
        mss_clamp: port.mss_clamp,
        ethernet: false,
        punt: None,
    };
    let route = |route: &reference::Route| Route {
        prefix: route.prefix,
        via: route.via,
        instance: Some(route.instance),
    };
    let ports = setup.ports.iter().enumerate().map(port);
    Config {
        ports: ports.chain(setup.frame_ports.iter().map(frame_port)).collect(),
        routes: setup.routes.iter().map(route).collect(),
        policies: vec![],
        limits: Limits {
            sessions: 64,
            pdrs: 8_192,
            flows: 4_096,
            // As many as a world has packets.
            inspections: PACKETS,
            kept: 16_384,
            kept_per_session: 16_384,
            burst_ns: setup.burst_ns,
            catch_up_ns: setup.catch_up_ns,
            session_mbr: setup.session_mbr,
            held_per_neighbour: setup.held_per_neighbour,
            error_indications_per_s: u32::MAX,
            icmp_errors_per_s: u32::MAX,
            macs: 64,
            ethernet_sessions: 16,
            frame_copies_per_s: u32::MAX,
            ..Limits::default()
        },
        echo: Echo::OFF,
        resolvers: vec![],
        awaits_sessions: false,
        epoch: 1,
        seed: 7,
        lasting: None,
    }
}

/// A data network of frames, which has no address.
fn frame_port(port: &reference::FramePort) -> PortConfig {
    PortConfig {
        name: format!("frames {:?}", port.network),
        device: String::new(),
        interface: port.network.0,
        instance: port.network.1,
        mac: MacAddress([2, 0, 0, 0, 7, 2]),
        address: "0.0.0.0/32".parse().unwrap(),
        address6: None,
        mtu: port.mtu,
        vlan: None,
        mss_clamp: false,
        ethernet: true,
        punt: None,
    }
}

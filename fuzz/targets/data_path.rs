//! Any frames on any ports of a worker, in one of the random worlds that the differential test knows: the books balance after
//! each. The mutator adds frames that such a world may see, so that what comes of octets changed in them is more than a drop at
//! the first header.

#![no_main]

#[path = "data_path/place.rs"]
mod place;
#[path = "data_path/script.rs"]
mod script;
#[path = "data_path/seeds.rs"]
mod seeds;
#[path = "data_path/wire.rs"]
mod wire;

use dplink::{Command, Desired};
use rand::{Rng, SeedableRng};
use reference::worlds::{Change, Random, World};
use rules::{Rules, Seid};
use script::{Script, Step};
use wire::Wire;

/// A data plane in its world.
struct Node {
    world: World,
    changes: u8,
    random: Random,
    engine: dataplane::Engine,
    worker: dataplane::Worker<Wire>,
    wires: Vec<Wire>,
    revision: u64,
    now_ns: u64,
}

impl Node {
    fn new(Script { world, changes, .. }: &Script) -> Self {
        let (number, world) = (*world, place::world(*world));
        let wires: Vec<Wire> = world.setup.ports.iter().map(|_| Wire::default()).collect();
        let config = place::config(&world.setup, *changes);
        let (engine, worker) = dataplane::connect(&config, wires.clone(), || 0).unwrap();
        let random = Random::seed_from_u64(number.into());
        let mut node =
            Self { world, changes: *changes, random, engine, worker, wires, revision: 0, now_ns: 1 };
        if let Some(content) = place::content(*changes) {
            node.engine.load(content);
        }
        for (session, rules) in node.world.sessions.clone() {
            node.put(session, rules);
        }
        node.turn();
        node
    }

    fn put(&mut self, session: Seid, rules: Rules) {
        self.revision += 1;
        let desired = Desired::new(session, self.revision, place::changed(rules, self.changes));
        self.engine.handle(Command::Put(desired)).unwrap();
    }

    /// What is sent may be answered.
    fn turn(&mut self) {
        for _ in 0..3 {
            self.worker.turn(self.now_ns);
            assert!(self.worker.books().balanced());
        }
        drop(self.engine.poll(0));
    }

    fn take(&mut self, step: &Step) {
        self.now_ns += step.gap_ns();
        if step.frame.is_empty() {
            match self.world.change(&mut self.random) {
                Change::Put(session, rules) => self.put(session, rules),
                Change::Remove(session) => drop(self.engine.handle(Command::Delete { session }).unwrap()),
            }
        } else {
            self.wires[usize::from(step.mood & 7) % self.wires.len()].put(&step.frame);
        }
        if step.mood & Step::WITH_THE_NEXT == 0 {
            self.turn();
        }
    }
}

fn run(bytes: &[u8]) {
    let script = Script::read(bytes);
    let mut node = Node::new(&script);
    script.steps.iter().for_each(|step| node.take(step));
    for _ in 0..2 {
        node.now_ns += 2_000_000_000;
        node.turn();
    }
}

/// Where `ANCHORLINE_WRITE_SEEDS` names a folder, seeds are all that is made.
fn write_seeds() {
    if let Some(folder) = std::env::var_os("ANCHORLINE_WRITE_SEEDS") {
        seeds::write(folder.as_ref());
        std::process::exit(0);
    }
}

libfuzzer_sys::fuzz_target!(init: { write_seeds() }, |bytes: &[u8]| run(bytes));

/// Adds a frame that the script's world may see, or doubles one, or takes one out.
fn mutate(script: &mut Script, random: &mut Random) {
    let place = random.random_range(0..=script.steps.len());
    match (random.random_range(0..8), script.steps.get(place).cloned()) {
        (0, Some(step)) => script.steps.insert(place, step),
        (1, Some(_)) => drop(script.steps.remove(place)),
        (2, Some(_)) => script.steps.swap(0, place),
        _ => {
            let (port, frame) = place::world(script.world).packet(random);
            let mood = port as u8 | random.random::<u8>() & 0x78;
            script.steps.insert(place, Step { mood, frame });
        }
    }
}

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let random = &mut Random::seed_from_u64(seed.into());
    if random.random_range(0..3) > 0 {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    }
    let mut script = Script::read(data.get(..size).unwrap_or_default());
    (0..random.random_range(1..4)).for_each(|_| mutate(&mut script, random));
    let bytes = script.write();
    match data.get_mut(..bytes.len()).filter(|_| bytes.len() <= max_size) {
        Some(place) => {
            place.copy_from_slice(&bytes);
            bytes.len()
        }
        None => libfuzzer_sys::fuzzer_mutate(data, size, max_size),
    }
});

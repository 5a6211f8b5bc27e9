//! What fuzzing begins with: of some random worlds frames that end in every way the reference knows there, and changes of the rules
//! between them. Seeds are written before each run, as any change of what random worlds hold makes other worlds of all of them.

use super::place;
use super::script::{Script, Step};
use rand::{Rng, SeedableRng};
use reference::Reference;
use reference::worlds::{Change, Random, World};
use std::collections::HashMap;
use std::path::Path;

/// Worlds, and frames of each that are tried.
const WORLDS: u8 = 128;
const TRIED: usize = 1_000;
/// Frames that end in one way.
const OF_ONE_END: usize = 1;
/// Octets of an input: `scripts/fuzz.sh` has longer ones cut.
const OCTETS: usize = 8_192;
/// Those of its frames: short inputs run faster, and say as much together.
const ROOM: usize = 1_200;
/// Frames between two changes of the rules.
const CHANGE_EVERY: usize = 8;

/// Writes all of them into a folder.
pub fn write(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    for number in 0..WORLDS {
        let bytes = script(number).write();
        assert!(bytes.len() <= OCTETS && Script::read(&bytes).write() == bytes);
        std::fs::write(folder.join(format!("world_{number}")), bytes).unwrap();
    }
}

/// Each world with other changes.
fn script(number: u8) -> Script {
    let (mut world, mut reference) = begun(number);
    let random = &mut Random::seed_from_u64(number.into());
    // As the target draws them.
    let rules = &mut Random::seed_from_u64(number.into());
    let mut script = Script { world: number, changes: number % 16, steps: Vec::new() };
    let (mut ends, mut octets, mut now_ns) = (HashMap::<String, usize>::new(), 0, 1);
    for _ in 0..TRIED {
        let (port, frame) = world.packet(random);
        // So much later that whoever was asked has answered, and rates have something left.
        let mood = port as u8 | if random.random_range(0..4) == 0 { 4 << 4 } else { 2 << 4 };
        let step = Step { mood, frame };
        now_ns += step.gap_ns();
        let end = reference.process(port, &step.frame, now_ns).fate.to_string();
        let known = ends.entry(end).or_default();
        if *known == OF_ONE_END || octets + step.frame.len() > ROOM {
            continue;
        }
        (*known, octets) = (*known + 1, octets + step.frame.len() + 3);
        script.steps.push(step);
        if script.steps.len() % CHANGE_EVERY == 0 {
            change(&mut world, &mut reference, rules);
            script.steps.push(Step { mood: 0, frame: Vec::new() });
        }
    }
    script
}

fn begun(number: u8) -> (World, Reference) {
    let world = place::world(number);
    let mut reference = Reference::new(world.setup.clone()).unwrap();
    world.sessions.iter().for_each(|(session, rules)| reference.put(*session, rules.clone()));
    (world, reference)
}

fn change(world: &mut World, reference: &mut Reference, random: &mut Random) {
    match world.change(random) {
        Change::Put(session, rules) => reference.put(session, rules),
        Change::Remove(session) => reference.remove(session),
    }
}

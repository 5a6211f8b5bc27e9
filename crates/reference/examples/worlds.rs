//! Runs random worlds through the reference and tells how packets ended and how fast that went:
//! `cargo run --release -p anchorline-reference --example worlds -- WORLDS PACKETS`.

use anchorline_reference::worlds::{Random, World};
use anchorline_reference::{Fate, Reference, SetupError};
use rand::SeedableRng;
use std::collections::HashMap;
use std::time::{Duration, Instant};

fn number(at: usize, otherwise: u64) -> u64 {
    std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn main() -> Result<(), SetupError> {
    let (worlds, packets) = (number(1, 500), number(2, 2_000));
    let mut fates: HashMap<Fate, u64> = HashMap::new();
    let (mut making, mut processing) = (Duration::ZERO, Duration::ZERO);
    for seed in 0..worlds {
        let world = World::random(seed);
        let mut reference = Reference::new(world.setup.clone())?;
        world.sessions.iter().for_each(|(seid, rules)| reference.put(*seid, rules.clone()));
        let random = &mut Random::seed_from_u64(seed);
        let start = Instant::now();
        let frames: Vec<(usize, Vec<u8>)> = (0..packets).map(|_| world.packet(random)).collect();
        let made = Instant::now();
        for (now_ns, (port, frame)) in (0..).step_by(50_000).zip(&frames) {
            *fates.entry(reference.process(*port, frame, now_ns).fate).or_default() += 1;
        }
        making += made - start;
        processing += made.elapsed();
    }
    let mut fates: Vec<(Fate, u64)> = fates.into_iter().collect();
    fates.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    fates.iter().for_each(|(fate, count)| println!("{count:>10} {fate}"));
    let rate = |time: Duration| (worlds * packets) as f64 / time.as_secs_f64();
    println!("{:.0} packets a second made, {:.0} processed", rate(making), rate(processing));
    Ok(())
}

//! How long packets of each profile take to make, in nanoseconds of a core's time: `cargo run --release -p anchorline-traffic --example pace`.

use anchorline_traffic::{Endpoints, Error, FRAME_MAX, Flows, PROFILES, Profile, profile};
use std::fs::read_to_string;
use std::time::Instant;

/// Frames are written to one after the other, as a pool's are.
const FRAMES: usize = 256;
const PACKETS: u32 = 8_192 * FRAMES as u32;

fn pace(flows: &mut Flows, frames: &mut [[u8; FRAME_MAX]]) -> f64 {
    let start = busy_ns();
    for _ in 0..PACKETS / FRAMES as u32 {
        frames.iter_mut().for_each(|frame| assert!(flows.next(frame).is_some()));
    }
    (busy_ns() - start) / f64::from(PACKETS)
}

/// What this thread ran, as the kernel counts it: others on the machine do not.
fn busy_ns() -> f64 {
    let text = read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(f64::NAN)
}

fn filled(mut flows: Flows) -> Flows {
    let mut frame = [0; FRAME_MAX];
    let opening = if flows.open() < flows.limit() { 1.0 } else { 0.0 };
    flows.set_opening(opening);
    while flows.open() < flows.limit() * 99 / 100 {
        flows.next(&mut frame);
    }
    flows
}

fn one(profile: &Profile, frames: &mut [[u8; FRAME_MAX]]) -> Result<(), Error> {
    let flows = || Flows::new(profile, Endpoints::EXAMPLE, 1);
    let start = Instant::now();
    let mut headers = filled(flows()?.headers_only());
    let warm = start.elapsed().as_secs_f64();
    headers.set_opening(0.0);
    let bulk = pace(&mut headers, frames);
    headers.set_opening(0.1);
    let tenth = pace(&mut headers, frames);
    headers.set_opening(1.0);
    let opening = pace(&mut headers, frames);
    drop(headers);
    let mut whole = filled(flows()?);
    whole.set_opening(0.0);
    let payload = pace(&mut whole, frames);
    println!("{:<14} {bulk:>7.1} {payload:>9.1} {opening:>9.1} {tenth:>14.1} {warm:>10.2} s", profile.name);
    Ok(())
}

fn main() -> Result<(), Error> {
    println!("{:<14} headers   payload   opening  10 % openings  filling table", "ns per packet");
    let mut frames = vec![[0; FRAME_MAX]; FRAMES];
    let flows = std::env::args().nth(2).and_then(|flows| flows.parse().ok());
    match std::env::args().nth(1) {
        Some(name) => profile(&name).map_or(Ok(()), |model| {
            one(&Profile { flows: flows.unwrap_or(model.flows), ..*model }, &mut frames)
        }),
        None => PROFILES.iter().try_for_each(|profile| one(profile, &mut frames)),
    }
}

use super::*;
use crate::{DropReason, Fate, Outcome, Reference};
use std::collections::HashMap;

/// Runs a world; hands every outcome to `see`.
fn run(seed: u64, packets: usize, mut see: impl FnMut(&Outcome)) {
    let mut world = World::random(seed);
    let mut reference = Reference::new(world.setup.clone()).unwrap();
    world.content.iter().for_each(|rules| reference.load(rules.clone()));
    world.sessions.iter().for_each(|(seid, rules)| reference.put(*seid, rules.clone()));
    let random = &mut Random::seed_from_u64(seed);
    let mut now_ns = 0;
    for number in 0..packets {
        if number % 500 == 499 {
            match world.change(random) {
                Change::Put(seid, rules) => reference.put(seid, rules),
                Change::Remove(seid) => reference.remove(seid),
            }
        }
        now_ns += World::gap_ns(random);
        let (port, frame) = world.packet(random);
        reference.allow_error_indications(number % 2 == 0);
        see(&reference.process(port, &frame, now_ns));
    }
}

#[test]
fn a_world_follows_from_its_seed() {
    let outcomes = |seed| {
        let mut all = Vec::new();
        run(seed, 1_000, |outcome| all.push(outcome.clone()));
        all
    };
    assert!(outcomes(7) == outcomes(7));
    assert!(outcomes(7) != outcomes(8));
}

#[test]
fn all_rules_are_rules_a_data_plane_takes() {
    for seed in 0..300 {
        let random = &mut Random::seed_from_u64(seed);
        let mut world = World::random(seed);
        for _ in 0..20 {
            world.change(random);
            for (_, rules) in &world.sessions {
                rules::compile(rules).unwrap();
            }
        }
    }
}

/// No two sessions may lead to one another: neither in tunnels nor in addresses.
#[test]
fn sessions_share_no_key() {
    for seed in 0..300 {
        let world = World::random(seed);
        let mut owners = HashMap::new();
        for (seid, rules) in &world.sessions {
            let program = rules::compile(rules).unwrap();
            for f_teid in &program.f_teids {
                assert_eq!(*owners.entry(format!("{f_teid:?}")).or_insert(*seid), *seid);
            }
            let ipv4s = program.ue_ipv4s.iter().map(|user| format!("{user:?}"));
            for key in ipv4s.chain(program.ue_ipv6s.iter().map(|user| format!("{user:?}"))) {
                assert_eq!(*owners.entry(key).or_insert(*seid), *seid);
            }
        }
    }
}

/// Packets that only bounce off the first header would test nothing: most must reach their session, and every way to
/// end must occur.
#[test]
fn packets_end_in_every_way_and_most_at_their_session() {
    let mut fates: HashMap<Fate, u32> = HashMap::new();
    let mut copies = 0;
    for seed in 0..200 {
        run(seed, 1_000, |outcome| {
            *fates.entry(outcome.fate).or_default() += 1;
            outcome.copies.iter().for_each(|fate| *fates.entry(*fate).or_default() += 1);
            copies += usize::from(outcome.fate == Fate::Sent && outcome.sent.len() > 1);
        });
    }
    let total: u32 = fates.values().sum();
    let mut sorted: Vec<_> = fates.iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let table: Vec<String> = sorted.iter().map(|(fate, count)| format!("{fate} {count}")).collect();
    println!("{}", table.join("\n"));
    // What is above a rate has come as far as what is sent.
    let held = fates[&Fate::Dropped(DropReason::RateExceeded)];
    assert!((fates[&Fate::Sent] + held) * 20 > total * 9 && held < total / 10, "{table:?}");
    assert!(copies > 100, "{copies}");
    for reason in DropReason::ALL.iter().filter(|reason| !UNSEEN.contains(reason)) {
        assert!(fates.contains_key(&Fate::Dropped(*reason)), "{} never occurs", reason.name());
    }
}

/// They need a port that does not exist, many packets to a station that never answers, and many senders of fragments.
const UNSEEN: &[DropReason] = &[
    DropReason::Unfinished,
    DropReason::NeighbourUnresolved,
    DropReason::FragmentsFull,
    DropReason::FragmentsIncomplete,
];

/// Or what random worlds are compared for would say nothing of it.
#[test]
fn users_hear_of_portals_and_resets() {
    let (mut portals, mut resets, mut pairs) = (0, 0, 0);
    let has = |frame: &[u8], text: &[u8]| frame.windows(text.len()).any(|part| part == text);
    for seed in 0..100 {
        run(seed, 1_000, |outcome| {
            let count = |text| outcome.sent.iter().filter(|(_, frame)| has(frame, text)).count();
            portals += count(b"HTTP/1.1 302 Found\r\n");
            // RST and ACK, and no window.
            let ends = count(&[0x50, 0x14, 0, 0]);
            resets += ends;
            pairs += usize::from(ends > 1);
        });
    }
    assert!(portals > 5 && resets > 500 && pairs > 100, "{portals} {resets} {pairs}");
}

/// Or what random worlds are compared for would say nothing of it.
#[test]
fn senders_hear_of_what_goes_no_further() {
    let mut heard: HashMap<[u8; 2], u32> = HashMap::new();
    for seed in 0..100 {
        run(seed, 1_000, |outcome| {
            for (_, frame) in &outcome.sent {
                // ICMP of internetwork control, in a tunnel or not.
                let is_error = |ip: &&[u8]| ip[..2] == [0x45, 0xc0] && ip[8..10] == [64, 1];
                let found = frame.windows(22).find(is_error);
                found.into_iter().for_each(|ip| *heard.entry([ip[20], ip[21]]).or_default() += 1);
            }
        });
    }
    let of = |kind| heard.get(&kind).copied().unwrap_or_default();
    let [no_hop, too_long, no_route] = [[11, 0], [3, 4], [3, 0]].map(of);
    assert!(no_hop > 50 && too_long > 50 && no_route > 50, "{no_hop} {too_long} {no_route}");
}

/// Or what random worlds are compared for would say nothing of either.
#[test]
fn connections_are_made_to_fit_and_frames_have_tags() {
    let (mut lowered, mut tagged, mut sent) = (0, 0, 0);
    for seed in 0..100 {
        let world = World::random(seed);
        let mut setup = world.setup.clone();
        setup.ports.iter_mut().for_each(|port| port.mss_clamp = false);
        let [mut clamping, mut plain] =
            [world.setup.clone(), setup].map(|setup| Reference::new(setup).unwrap());
        for (seid, rules) in &world.sessions {
            clamping.put(*seid, rules.clone());
            plain.put(*seid, rules.clone());
        }
        let random = &mut Random::seed_from_u64(seed);
        for _ in 0..1_000 {
            let (port, frame) = world.packet(random);
            let (one, other) = (clamping.process(port, &frame, 1), plain.process(port, &frame, 1));
            lowered += usize::from(one != other);
            sent += one.sent.len();
            let is_tagged = |(_, frame): &&(usize, Vec<u8>)| frame.get(12..14) == Some(&[0x81, 0]);
            tagged += one.sent.iter().filter(is_tagged).count();
        }
    }
    assert!(lowered > 50, "{lowered} were made to fit");
    assert!(tagged > sent / 20 && tagged < sent / 2, "{tagged} of {sent} have tags");
}

//! The data plane against the slow reference of the path: random worlds, random packets, and any difference fails.
//!
//! `make differential` runs ten million packets of new worlds; `FIRST=n` starts with another world, of which there are
//! `WORLDS=n`.

mod outer;
mod pair;
mod portals;
mod tally;
mod wire;
mod woken;

use crate::Counters;
use crate::steering::Crew;
use dplink::Spread;
use pair::Pair;
use rand::SeedableRng;
use reference::worlds::{Random, Scope};
use tally::{Known, Tally};

/// Packets between two changes of the rules.
const CHANGE_EVERY: usize = 200;
/// Packets of a world: its second is the time after which waiting packets expire.
const PACKETS: usize = 2_000;

/// Packets between two pauses, where there are any.
const PAUSE_EVERY: usize = 50;

/// A number from the environment, for long runs.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// How packets are given.
#[derive(Clone, Copy)]
enum Packets {
    /// So many at once.
    Any(usize),
    /// So many copies of one at once.
    Copies(usize),
}

/// With pauses in which users save up what they may catch up on, and nothing of what expires within a second.
#[test]
fn who_was_silent_catches_up_as_the_reference_says() {
    compare_with_pauses((&Crew::default(), false), true);
}

/// What passed within the last second goes along. Of what application flows are does not in all cases (below).
#[test]
fn who_was_silent_catches_up_wherever_its_session_moves() {
    compare_with_pauses((&Crew::of(3), true), false);
}

fn compare_with_pauses(how: (&Crew, bool), applications: bool) {
    let scope = Scope { twin_tunnels: false, parts: false, damage: false, applications, ..Scope::ALL };
    let (first, worlds) = (number("FIRST", 0), number("WORLDS", 100));
    for seed in first..first + worlds {
        let mut pair = Pair::with_pauses(seed, scope, how);
        let random = &mut Random::seed_from_u64(seed);
        for done in 0..PACKETS {
            if done % PAUSE_EVERY == 0 {
                pair.pause(random);
            }
            let (mut expected, mut seen, frames) = pair.run((1, false), random);
            [&mut expected, &mut seen].into_iter().for_each(Tally::forget_expiries);
            assert!(expected == seen, "seed {seed} after {done}: {expected:#?} {seen:#?} in {frames:#?}");
            if done % CHANGE_EVERY == 0 {
                pair.change(random);
            }
        }
    }
}

fn compare(scope: Scope, at_once: usize, crew: &Crew) {
    compare_moving(scope, Packets::Any(at_once), (crew, false));
}

fn compare_moving(scope: Scope, packets: Packets, (crew, moves): (&Crew, bool)) {
    let (at_once, are_copies) = match packets {
        Packets::Any(count) => (count, false),
        Packets::Copies(count) => (count, true),
    };
    let (first, worlds) = (number("FIRST", 0), number("WORLDS", 100));
    let (mut all_handed, mut all_moved, mut vectors, mut woken) = (0, 0, 0, 0);
    let mut known = Known::default();
    for seed in first..first + worlds {
        let mut pair = Pair::new(seed, scope, (crew, moves, at_once));
        let random = &mut Random::seed_from_u64(seed);
        for done in (0..PACKETS).step_by(at_once) {
            let (expected, seen, frames) = pair.run((at_once, are_copies), random);
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
        known.add(&pair.reference);
        for (session, rules) in pair.world.sessions.clone() {
            pair.close(session);
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
        vectors += pair.vectors;
        woken += pair.woken.count;
    }
    assert!(moves == (all_moved > 0), "{all_moved} sessions moved");
    let (packets, last) = (worlds * PACKETS as u64, first + worlds - 1);
    assert!(woken > 0 || worlds < 20, "nobody was woken");
    assert!(!scope.applications || known.has_all() || worlds < 20, "{known}");
    let together = packets as usize / vectors;
    println!(
        "no difference in {packets} packets of worlds {first} to {last}, {together} at once, {} workers; {known}",
        crew.workers
    );
    assert!(together * 4 > at_once, "vectors of {together} packets on average");
    assert!((crew.workers > 1) == (all_handed > 0), "{all_handed} packets were handed over");
}

#[test]
fn the_data_plane_does_with_every_packet_what_the_reference_does() {
    compare(Scope { twin_tunnels: false, ..Scope::ALL }, 1, &Crew::default());
}

/// Without what depends on the order of packets: in a vector they meet each other's fragments, redirections and stations in that
/// of the graph's nodes, and resets that a server is to have meet its rates behind them. Of what application a flow is, a packet
/// that tells says when packets behind it have found their rules.
const fn in_vectors() -> Scope {
    Scope {
        signals: false,
        twin_tunnels: false,
        parts: false,
        redirects: false,
        answers: false,
        applications: false,
        frames: false,
        ..Scope::ALL
    }
}

#[test]
fn whole_vectors_end_as_their_packets_do_alone() {
    let scope = in_vectors();
    compare(scope, 64, &Crew::default());
}

/// Which of them meets a limit first makes no difference, so they may reach any but one: a FAR that stands in for the time after a quota
/// does so from the next vector on, or from the next packet on, as the graph has it.
#[test]
fn vectors_of_one_packet_many_times_end_as_that_packet_does_as_often() {
    // What a flow uses before it is known what it is of is counted late: quotas are reached by other packets of a vector.
    let scope =
        Scope { twin_tunnels: false, quota_fars: false, parts: false, applications: false, ..Scope::ALL };
    compare_moving(scope, Packets::Copies(10), (&Crew::default(), false));
}

/// Where each session's flows are its own: of what application they are a worker knows by their addresses, whichever of its sessions
/// they are of, and other sessions may be elsewhere, as may one that comes back.
fn apart() -> Scope {
    Scope {
        twin_tunnels: false,
        strangers: false,
        framed_routes: false,
        instances: false,
        returns: false,
        ..Scope::ALL
    }
}

/// Whatever the device brings to which worker: every fate and every count is what one worker would come to.
#[test]
fn several_workers_do_with_every_packet_what_the_reference_does() {
    let scope = Scope { twin_tunnels: false, applications: false, ..Scope::ALL };
    compare(scope, 1, &Crew::of(3));
    // The card hashes the users' addresses, but not as we do: every second packet is at the wrong worker.
    compare(apart(), 1, &Crew { spread: vec![Spread::InnerHash; 16], ..Crew::of(2) });
}

#[test]
fn whole_vectors_handed_over_end_as_their_packets_do_alone() {
    let scope = in_vectors();
    compare(scope, 64, &Crew { distributors: 1, ..Crew::of(4) });
}

/// Sessions move about all the time, and what they do and count is as if they stayed.
#[test]
fn sessions_that_move_do_with_every_packet_what_the_reference_does() {
    // What first fragments said does not go along. Nor does of what application flows are that no user's address leads to, and what
    // is known of others where their session has been before may be old.
    let scope = Scope { twin_tunnels: false, parts: false, applications: false, ..Scope::ALL };
    compare_moving(scope, Packets::Any(1), (&Crew::of(3), true));
    compare_moving(
        scope,
        Packets::Any(1),
        (&Crew { spread: vec![Spread::InnerHash; 16], ..Crew::of(2) }, true),
    );
}

#[test]
fn whole_vectors_end_as_their_packets_do_alone_while_sessions_move() {
    let scope = in_vectors();
    compare_moving(scope, Packets::Any(64), (&Crew { distributors: 1, ..Crew::of(4) }, true));
}

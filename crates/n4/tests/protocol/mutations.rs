//! Conversations whose messages are mutated as trees of IEs, from two control planes at once, over a data plane that obeys,
//! refuses or is silent: no panic, one answer to every request, nothing left of what is refused, and an end to everything.
//!
//! `ANCHORLINE_SEED=7 cargo test -p anchorline-n4 --test protocol mutations` plays one game again; `ANCHORLINE_GAMES=100000` plays
//! more of them.

use crate::game::Game;

/// Played by every run of the tests.
const GAMES: u64 = 300;
/// Of each game.
const MOVES: usize = 60;

/// Says which game broke.
struct Playing(u64);

impl Drop for Playing {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the game of ANCHORLINE_SEED={} broke", self.0);
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn play(seed: u64) -> crate::game::Tally {
    let _playing = Playing(seed);
    let mut game = Game::new(seed);
    game.is_loud = number("ANCHORLINE_SEED").is_some();
    (0..MOVES).for_each(|_| game.play());
    game.end()
}

#[test]
fn whatever_is_said_is_answered_once_and_can_be_taken_back() {
    let seeds = match number("ANCHORLINE_SEED") {
        Some(seed) => seed..=seed,
        None => 0..=number("ANCHORLINE_GAMES").unwrap_or(GAMES),
    };
    let is_all = seeds.clone().count() > 100;
    let mut all = crate::game::Tally::default();
    seeds.for_each(|seed| all.add(play(seed)));
    println!("{all:?}");
    // A game in which nothing is accepted, or nothing refused, would show nothing.
    if is_all {
        assert!(all.accepted * 10 > all.requests && all.refused * 10 > all.requests, "{all:?}");
        assert!(all.unchanged * 20 > all.requests && all.silent > 0 && all.deleted > 0, "{all:?}");
    }
}

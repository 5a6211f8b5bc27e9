//! Choices.

use rand::Rng;
use rand::seq::IndexedRandom;

/// The source of everything random here: the same on every machine.
pub type Random = rand_pcg::Pcg64;

/// True so many times in a thousand.
pub(super) fn chance(random: &mut Random, per_mille: u32) -> bool {
    random.random_ratio(per_mille, 1_000)
}

/// One of several.
pub(super) fn pick<T: Copy, const N: usize>(random: &mut Random, from: [T; N]) -> T {
    const { assert!(N > 0, "nothing to choose from") };
    let place = random.random_range(0..N);
    #[expect(clippy::indexing_slicing, reason = "the place is within the range")]
    from[place]
}

/// One of several; `None` of none.
pub(super) fn pick_of<'a, T>(random: &mut Random, from: &'a [T]) -> Option<&'a T> {
    from.choose(random)
}

/// A few of several, in their order, each once.
pub(super) fn some_of<T: Copy>(random: &mut Random, from: &[T], per_mille: u32) -> Vec<T> {
    from.iter().filter(|_| chance(random, per_mille)).copied().collect()
}

/// Something, so many times in a thousand.
pub(super) fn maybe<T>(
    random: &mut Random,
    per_mille: u32,
    make: impl FnOnce(&mut Random) -> T,
) -> Option<T> {
    if chance(random, per_mille) { Some(make(random)) } else { None }
}

//! A table of bounded size whose entries end.

/// Entries that share a place.
const WAYS: usize = 8;

/// A number for each entry of a set, in one cache line: what is looked at first.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Line([u64; WAYS]);

/// Keys and times, which a search reads, stand in front, in a pair of cache lines that CPUs fetch together; behind them, in the
/// same page or the next, the values, of which it reads the right one alone.
#[derive(Debug)]
#[repr(C)]
struct Set<V> {
    keys: Line,
    /// Until when each is valid; 0 where nothing is.
    until_ms: Line,
    values: [Option<V>; WAYS],
}

impl<V> Set<V> {
    fn new() -> Self {
        let values = std::array::from_fn(|_| None);
        Self { keys: Line::default(), until_ms: Line::default(), values }
    }

    /// The places that hold this key and are valid.
    fn places(&self, key: u64, now_ms: u64) -> impl Iterator<Item = usize> + use<V> {
        (0..)
            .zip(self.keys.0.into_iter().zip(self.until_ms.0))
            .filter(move |(_, (other, until_ms))| *other == key && now_ms < *until_ms)
            .map(|(place, _)| place)
    }

    fn value(&self, place: usize) -> Option<&V> {
        self.values.get(place)?.as_ref()
    }

    fn put(&mut self, place: usize, (key, until_ms): (u64, u64), value: V) {
        for (line, number) in [(&mut self.keys, key), (&mut self.until_ms, until_ms)] {
            line.0.get_mut(place).into_iter().for_each(|at| *at = number);
        }
        if let Some(at) = self.values.get_mut(place) {
            *at = Some(value);
        }
    }
}

/// Sets of eight. What was inserted is found until its time is over, or until others of its set needed the room.
#[derive(Debug)]
pub(super) struct Table<V> {
    sets: Vec<Set<V>>,
    was_used: bool,
}

impl<V> Table<V> {
    /// For this many entries or a few more.
    pub(super) fn new(capacity: usize) -> Self {
        let sets = (0..capacity.div_ceil(WAYS).max(1)).map(|_| Set::new()).collect();
        Self { sets, was_used: false }
    }

    /// Whether nothing was ever inserted: there is no need to ask.
    pub(super) const fn was_never_used(&self) -> bool {
        !self.was_used
    }

    fn set(&self, key: u64) -> usize {
        ((u128::from(key) * self.sets.len() as u128) >> 64) as usize
    }

    /// The entry of this key that `is_it`.
    pub(super) fn get(&self, key: u64, now_ms: u64, is_it: impl Fn(&V) -> bool) -> Option<&V> {
        let set = self.sets.get(self.set(key))?;
        let mut found = set.places(key, now_ms).filter_map(|place| set.value(place));
        found.find(|value| is_it(value))
    }

    /// Inserts, in the place of the entry that is the same, else of one that is free or over, else of the one that ends
    /// soonest.
    pub(super) fn insert(
        &mut self,
        key: u64,
        (now_ms, until_ms): (u64, u64),
        (value, is_same): (V, impl Fn(&V) -> bool),
    ) {
        self.was_used = true;
        let at = self.set(key);
        let Some(set) = self.sets.get_mut(at) else { return };
        let same = set.places(key, now_ms).find(|place| set.value(*place).is_some_and(&is_same));
        // What is over ended before anything that is not, and what is free before that.
        let oldest = || (0..WAYS).min_by_key(|place| set.until_ms.0.get(*place));
        if let Some(place) = same.or_else(oldest) {
            set.put(place, (key, until_ms), value);
        }
    }

    /// Takes the entry of a key out, if its time is not over.
    pub(super) fn remove(&mut self, key: u64, now_ms: u64) -> Option<V> {
        let at = self.set(key);
        let set = self.sets.get_mut(at)?;
        let place = set.places(key, now_ms).next()?;
        *set.until_ms.0.get_mut(place)? = 0;
        set.values.get_mut(place)?.take()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.sets.capacity() * size_of::<Set<V>>()
    }
}

const _: () = assert!(size_of::<Option<super::Known>>() <= 168 && size_of::<Option<super::Found>>() == 8);

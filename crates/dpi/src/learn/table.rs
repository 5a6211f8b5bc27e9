//! A table of bounded size whose entries end.

/// Entries that share a place.
const WAYS: usize = 8;

/// A number for each entry of a set, in one cache line: what is looked at first.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Line([u64; WAYS]);

/// Sets of eight. What was inserted is found until its time is over, or until others of its set needed the room. Keys and
/// times lie apart from values, so that a search reads two cache lines and no value but the right one.
#[derive(Debug)]
pub(super) struct Table<V> {
    keys: Vec<Line>,
    /// Until when each is valid; 0 where nothing is.
    until_ms: Vec<Line>,
    values: Vec<[Option<V>; WAYS]>,
    was_used: bool,
}

impl<V> Table<V> {
    /// For this many entries or a few more.
    pub(super) fn new(capacity: usize) -> Self {
        let sets = capacity.div_ceil(WAYS).max(1);
        let values = (0..sets).map(|_| std::array::from_fn(|_| None)).collect();
        Self {
            keys: vec![Line::default(); sets],
            until_ms: vec![Line::default(); sets],
            values,
            was_used: false,
        }
    }

    /// Whether nothing was ever inserted: there is no need to ask.
    pub(super) const fn was_never_used(&self) -> bool {
        !self.was_used
    }

    fn set(&self, key: u64) -> usize {
        ((u128::from(key) * self.keys.len() as u128) >> 64) as usize
    }

    /// The places of a set that hold this key and are valid.
    fn places(&self, set: usize, key: u64, now_ms: u64) -> impl Iterator<Item = usize> + use<V> {
        let (keys, until_ms) = self
            .keys
            .get(set)
            .zip(self.until_ms.get(set))
            .map_or_else(Default::default, |set| (set.0.0, set.1.0));
        (0..)
            .zip(keys.into_iter().zip(until_ms))
            .filter(move |(_, (other, until_ms))| *other == key && now_ms < *until_ms)
            .map(|(place, _)| place)
    }

    fn value(&self, set: usize, place: usize) -> Option<&V> {
        self.values.get(set)?.get(place)?.as_ref()
    }

    /// The entry of this key that `is_it`.
    pub(super) fn get(&self, key: u64, now_ms: u64, is_it: impl Fn(&V) -> bool) -> Option<&V> {
        let set = self.set(key);
        let mut found = self.places(set, key, now_ms).filter_map(|place| self.value(set, place));
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
        let set = self.set(key);
        let same = self.places(set, key, now_ms).find(|place| self.value(set, *place).is_some_and(&is_same));
        let Some(times) = self.until_ms.get(set) else { return };
        // What is over ended before anything that is not, and what is free before that.
        let oldest = || (0..WAYS).min_by_key(|place| times.0.get(*place));
        let Some(place) = same.or_else(oldest) else { return };
        let lines = (self.keys.get_mut(set), self.until_ms.get_mut(set), self.values.get_mut(set));
        let (Some(keys), Some(times), Some(values)) = lines else { return };
        for (line, number) in [(keys, key), (times, until_ms)] {
            line.0.get_mut(place).into_iter().for_each(|at| *at = number);
        }
        if let Some(at) = values.get_mut(place) {
            *at = Some(value);
        }
    }

    /// Takes the entry of a key out, if its time is not over.
    pub(super) fn remove(&mut self, key: u64, now_ms: u64) -> Option<V> {
        let set = self.set(key);
        let place = self.places(set, key, now_ms).next()?;
        *self.until_ms.get_mut(set)?.0.get_mut(place)? = 0;
        self.values.get_mut(set)?.get_mut(place)?.take()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.keys.capacity() * 2 * size_of::<Line>() + self.values.capacity() * size_of::<[Option<V>; WAYS]>()
    }
}

const _: () = assert!(size_of::<Option<super::Known>>() <= 168 && size_of::<Option<()>>() == 1);

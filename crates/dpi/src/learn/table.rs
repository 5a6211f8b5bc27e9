//! A table of bounded size whose entries end.

/// Entries that share a place.
const WAYS: usize = 8;

/// Sets of eight. What was inserted is found until its time is over, or until others of its set needed the room.
#[derive(Debug)]
pub(super) struct Table<V> {
    /// Eight after eight.
    slots: Vec<Option<Slot<V>>>,
}

#[derive(Clone, Debug)]
struct Slot<V> {
    key: u64,
    until_ms: u64,
    value: V,
}

impl<V: Clone> Table<V> {
    /// For this many entries or a few more.
    pub(super) fn new(capacity: usize) -> Self {
        Self { slots: vec![None; capacity.max(1).next_multiple_of(WAYS)] }
    }

    fn set(&self, key: u64) -> usize {
        let sets = (self.slots.len() / WAYS) as u128;
        ((u128::from(key) * sets) >> 64) as usize * WAYS
    }

    /// The entry of this key that `is_it`.
    pub(super) fn get(&self, key: u64, now_ms: u64, is_it: impl Fn(&V) -> bool) -> Option<&V> {
        let set = self.set(key);
        let slots = self.slots.get(set..set + WAYS)?.iter().flatten();
        let mut found = slots.filter(|slot| slot.key == key && now_ms < slot.until_ms && is_it(&slot.value));
        found.next().map(|slot| &slot.value)
    }

    /// Inserts, in the place of the entry that is the same, else of one that is free or over, else of the one that ends
    /// soonest.
    pub(super) fn insert(
        &mut self,
        key: u64,
        (now_ms, until_ms): (u64, u64),
        (value, is_same): (V, impl Fn(&V) -> bool),
    ) {
        let set = self.set(key);
        let slots = self.slots.get_mut(set..set + WAYS).unwrap_or_default();
        // Higher goes first: the same, free or over, and then by the end.
        let claim = |slot: &Option<Slot<V>>| match slot {
            Some(slot) if slot.key == key && is_same(&slot.value) => (2, 0),
            Some(slot) if now_ms < slot.until_ms => (0, u64::MAX - slot.until_ms),
            _ => (1, 0),
        };
        if let Some(place) = slots.iter_mut().max_by_key(|slot| claim(slot)) {
            *place = Some(Slot { key, until_ms, value });
        }
    }

    /// Takes the entry of a key out, if its time is not over.
    pub(super) fn remove(&mut self, key: u64, now_ms: u64) -> Option<V> {
        let set = self.set(key);
        let slots = self.slots.get_mut(set..set + WAYS)?;
        let place = slots.iter_mut().find(|slot| slot.as_ref().is_some_and(|slot| slot.key == key))?;
        place.take().filter(|slot| now_ms < slot.until_ms).map(|slot| slot.value)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Option<Slot<V>>>()
    }
}

const _: () = assert!(size_of::<Option<Slot<super::Known>>>() <= 168 && size_of::<Option<Slot<()>>>() <= 24);

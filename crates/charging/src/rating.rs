//! What is charged under which rating group.
//!
//! A PDR's packets are charged by those of its URRs that the operator has mapped to a key. Where it has none, they are
//! charged by a meter of our own: of the predefined rule's key if it has one, else of the flow's content rule's key if the
//! operator has listed that, else of the default key. So a packet is charged once, unless the operator maps two URRs of one
//! PDR.

use crate::record::Key;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// URR IDs of our own meters begin here; the last ID of all is the URR that listens for silence. Control planes leave the highest
/// bit 0 (TS 29.244 8.2.54).
pub const OWN_METERS: u32 = 0xFFFF_0000;

/// Keys with meters of our own.
const KEYS: usize = 0xFFF0;

/// What an operator sets. One without default and mapping charges nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rating {
    mapped: Vec<(RangeInclusive<u32>, Key)>,
    default: Option<Key>,
    content: Vec<Key>,
    /// Our own meters: keys by URR IDs, and the other way round.
    own: BTreeMap<u32, Key>,
    meters: BTreeMap<Key, u32>,
}

/// There are more keys than meters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are more than {KEYS} pairs of rating group and service")]
pub struct TooManyKeys;

impl Rating {
    /// Of a default key, URRs mapped to keys by their IDs (the first range that holds one counts), and keys of
    /// predefined rules.
    ///
    /// # Errors
    /// More keys than the limit.
    pub fn new(
        default: Option<Key>,
        mapped: Vec<(RangeInclusive<u32>, Key)>,
        predefined: impl IntoIterator<Item = Key>,
    ) -> Result<Self, TooManyKeys> {
        let keys: BTreeSet<Key> = predefined.into_iter().chain(default).collect();
        if keys.len() > KEYS {
            return Err(TooManyKeys);
        }
        let own = numbered(keys);
        let meters = own.iter().map(|(urr, key)| (*key, *urr)).collect();
        Ok(Self { mapped, default, content: vec![], own, meters })
    }

    /// The same, where flows whose content rules have these keys are charged under them. Each must be among those that
    /// [`Rating::new`] was given: others have no meter.
    pub fn with_content(self, keys: impl IntoIterator<Item = Key>) -> Self {
        let keys: BTreeSet<Key> = keys.into_iter().filter(|key| self.meters.contains_key(key)).collect();
        Self { content: keys.into_iter().collect(), ..self }
    }

    /// Keys of content rules that are charged, each once, in order.
    pub fn content(&self) -> &[Key] {
        &self.content
    }

    /// What is charged that nothing else is said of.
    pub const fn default_key(&self) -> Option<Key> {
        self.default
    }

    /// The key a URR is charged under: one of a control plane that is mapped, or one of our own.
    pub fn key_of(&self, urr: u32) -> Option<Key> {
        match urr >= OWN_METERS {
            true => self.own.get(&urr).copied(),
            false => self.mapped.iter().find_map(|(ids, key)| ids.contains(&urr).then_some(*key)),
        }
    }

    /// Our own meter of a key.
    pub fn own_meter(&self, key: Key) -> Option<u32> {
        self.meters.get(&key).copied()
    }
}

/// An ID for each key: of all that may be, one that the key itself leads to (FNV-1a), or the next that is free. So a key
/// that comes or goes hardly ever changes the meters of others, which sessions have.
fn numbered(keys: BTreeSet<Key>) -> BTreeMap<u32, Key> {
    let mut taken = BTreeMap::new();
    for key in keys {
        let octets =
            [key.rating_group, key.service_id.map_or(0, |id| id.wrapping_add(1))].map(u32::to_be_bytes);
        let digest = octets
            .as_flattened()
            .iter()
            .fold(0x811c_9dc5_u32, |digest, octet| (digest ^ u32::from(*octet)).wrapping_mul(0x0100_0193));
        let first = digest % KEYS as u32;
        let mut places = (first..KEYS as u32).chain(0..first).map(|place| OWN_METERS + place);
        if let Some(free) = places.find(|urr| !taken.contains_key(urr)) {
            taken.insert(free, key);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn key(rating_group: u32) -> Key {
        Key { rating_group, service_id: None }
    }

    #[test]
    fn urrs_are_charged_as_they_are_mapped_and_own_meters_as_they_are_made() {
        let mapped = vec![(7..=7, key(70)), (1..=9, key(10))];
        let rating = Rating::new(Some(key(1)), mapped, [key(5), key(1), key(5)]).unwrap();
        assert_eq!([3, 7, 10].map(|urr| rating.key_of(urr)), [Some(key(10)), Some(key(70)), None]);
        let (default, other) = (rating.own_meter(key(1)).unwrap(), rating.own_meter(key(5)).unwrap());
        assert_ne!(default, other);
        assert_eq!([default, other].map(|urr| rating.key_of(urr)), [Some(key(1)), Some(key(5))]);
        let fewer = Rating::new(Some(key(1)), vec![], []).unwrap();
        assert_eq!(fewer.own_meter(key(1)), Some(default), "whatever other keys there are");
        assert_eq!(rating.own_meter(key(10)), None);
        assert_eq!(rating.key_of(u32::MAX), None);
    }

    #[test]
    fn every_key_has_a_meter_while_there_are_enough() {
        let all = Rating::new(None, vec![], (0..KEYS as u32).map(key)).unwrap();
        let meters: BTreeSet<u32> = all.own.keys().copied().collect();
        assert_eq!((meters.len(), meters.last()), (KEYS, Some(&(OWN_METERS + KEYS as u32 - 1))));
        assert_eq!(Rating::new(None, vec![], (0..=KEYS as u32).map(key)), Err(TooManyKeys));
    }
}

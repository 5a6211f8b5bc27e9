//! A session's rules before a request, each found by its identifier.

use std::collections::HashMap;
use std::hash::Hash;

/// Up to so many rules are faster found by looking at each.
const FEW: usize = 16;

/// Rules of one kind.
pub(super) struct Known<'a, K, R> {
    rules: &'a [R],
    id: fn(&R) -> K,
    /// Empty while the rules are few.
    places: HashMap<K, &'a R>,
}

impl<'a, K: Eq + Hash, R> Known<'a, K, R> {
    pub(super) fn new(rules: &'a [R], id: fn(&R) -> K) -> Self {
        let many = if rules.len() > FEW { rules } else { &[] };
        Self { rules, id, places: many.iter().map(|rule| (id(rule), rule)).collect() }
    }

    pub(super) fn get(&self, id: K) -> Option<&'a R> {
        match self.places.is_empty() {
            true => self.rules.iter().find(|rule| (self.id)(rule) == id),
            false => self.places.get(&id).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_found_alike() {
        for count in [0, 1, FEW, FEW + 1, 100] {
            let rules: Vec<(usize, char)> = (0..count).map(|id| (id, 'a')).collect();
            let known = Known::new(&rules, |rule| rule.0);
            assert!((0..count).all(|id| known.get(id) == rules.get(id)));
            assert_eq!(known.get(count), None);
        }
    }
}

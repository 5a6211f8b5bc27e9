//! Paths of the rules of one group.

use super::lead::List;
use super::literals::{Literals, Tries};

/// No prefix.
const NONE: u32 = u32::MAX;

/// Prefixes in order, each with its rules and the longest other one that it begins with itself; and the literals of
/// patterns that begin with `*`.
#[derive(Debug, Default)]
pub(super) struct Paths {
    prefixes: Vec<Prefix>,
    floating: Literals,
}

#[derive(Debug)]
struct Prefix {
    text: Box<str>,
    shorter: u32,
    rules: List,
}

impl Paths {
    /// Of prefixes in order, and literals, each once.
    ///
    /// # Errors
    /// The library's: too many literals.
    pub(super) fn new(
        prefixes: Vec<(Box<str>, List)>,
        floating: Vec<(Box<str>, List)>,
    ) -> Result<Self, String> {
        let mut paths = Self::default();
        for (text, rules) in prefixes {
            let before = (paths.prefixes.len() as u32).checked_sub(1).unwrap_or(NONE);
            let shorter = paths.longest_of(before, text.as_bytes());
            paths.prefixes.push(Prefix { text, shorter, rules });
        }
        paths.floating = Literals::new(floating)?;
        Ok(paths)
    }

    /// Of a prefix and those it begins with, the longest that a path begins with.
    fn longest_of(&self, mut place: u32, path: &[u8]) -> u32 {
        while let Some(prefix) = self.prefixes.get(place as usize) {
            if path.starts_with(prefix.text.as_bytes()) {
                return place;
            }
            place = prefix.shorter;
        }
        NONE
    }

    /// Calls `found` with the rules whose prefix or literal a path has.
    pub(super) fn search(&self, path: &[u8], tries: &mut Tries, mut found: impl FnMut(List)) {
        // All prefixes of the path stand before it, and the one just before it begins with all of them that are as long
        // as what the two have in common.
        let behind = self.prefixes.partition_point(|prefix| prefix.text.as_bytes() <= path) as u32;
        let mut place = self.longest_of(behind.checked_sub(1).unwrap_or(NONE), path);
        while let Some(prefix) = self.prefixes.get(place as usize) {
            found(prefix.rules);
            place = prefix.shorter;
        }
        self.floating.search(path, tries, found);
    }

    pub(super) fn len(&self) -> usize {
        self.prefixes.len() + self.floating.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let prefixes =
            self.prefixes.iter().map(|prefix| prefix.text.len().next_multiple_of(16)).sum::<usize>()
                + self.prefixes.capacity() * size_of::<Prefix>();
        prefixes + self.floating.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn list(number: usize) -> List {
        List { from: number as u32, count: 1 }
    }

    proptest! {
        #[test]
        fn all_prefixes_and_literals_of_a_path_are_found(
            prefixes in proptest::collection::btree_set("[ab]{0,5}", 0..20),
            literals in proptest::collection::btree_set("[ab]{1,3}", 0..5),
            path in "[abc]{0,8}",
        ) {
            let numbered = |set: &BTreeSet<String>, from: usize| {
                set.iter().enumerate().map(|(at, text)| (text.as_str().into(), list(from + at))).collect()
            };
            let paths = Paths::new(numbered(&prefixes, 0), numbered(&literals, 100)).unwrap();
            let mut found = BTreeSet::new();
            paths.search(path.as_bytes(), &mut Tries::new(), |list| { found.insert(list.from as usize); });
            let begun = prefixes.iter().enumerate().filter(|(_, text)| path.starts_with(*text)).map(|(at, _)| at);
            let within = literals.iter().enumerate().filter(|(_, text)| path.contains(*text)).map(|(at, _)| at + 100);
            prop_assert_eq!(found, begun.chain(within).collect());
        }
    }
}

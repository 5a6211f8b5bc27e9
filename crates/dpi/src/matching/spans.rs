//! Networks in networks, found by address.

/// No network.
const NONE: u32 = u32::MAX;

/// An address as a number.
pub(super) trait Address: Copy + Ord {
    /// The next; `None` behind the last.
    fn next(self) -> Option<Self>;
}

impl Address for u32 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl Address for u128 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

/// A network: its first and last address, and what belongs to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network<A> {
    pub(super) first: A,
    pub(super) last: A,
    pub(super) group: u32,
}

/// All addresses cut where a network begins or ends. As networks lie within each other or apart, each span has one
/// smallest network around it, and each network one smallest around itself.
#[derive(Debug)]
pub(super) struct Spans<A> {
    starts: Vec<A>,
    /// The smallest network around each span.
    inner: Vec<u32>,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    group: u32,
    outer: u32,
}

impl<A: Address> Spans<A> {
    /// Of networks of which no two are the same.
    pub(super) fn new(mut networks: Vec<Network<A>>) -> Self {
        networks.sort_unstable_by(|one, other| one.first.cmp(&other.first).then(other.last.cmp(&one.last)));
        let mut spans = Self { starts: vec![], inner: vec![], nodes: vec![] };
        let mut open: Vec<(A, u32)> = vec![];
        for network in networks {
            spans.close(&mut open, Some(network.first));
            let node = spans.nodes.len() as u32;
            spans.nodes.push(Node { group: network.group, outer: innermost(&open) });
            spans.begin(network.first, node);
            open.push((network.last, node));
        }
        spans.close(&mut open, None);
        spans
    }

    /// Ends those of the open networks that end before an address; all, if there is none.
    fn close(&mut self, open: &mut Vec<(A, u32)>, before: Option<A>) {
        while let Some((last, _)) = open.last().copied() {
            if before.is_some_and(|before| last >= before) {
                return;
            }
            open.pop();
            if let Some(next) = last.next() {
                self.begin(next, innermost(open));
            }
        }
    }

    fn begin(&mut self, start: A, node: u32) {
        if self.starts.last() == Some(&start) {
            self.inner.pop();
        } else {
            self.starts.push(start);
        }
        self.inner.push(node);
    }

    /// What belongs to the networks around an address, the smallest first.
    #[inline]
    pub(super) fn around(&self, address: A) -> impl Iterator<Item = u32> {
        let span = self.starts.partition_point(|start| *start <= address);
        let mut node = span.checked_sub(1).and_then(|span| self.inner.get(span)).copied().unwrap_or(NONE);
        std::iter::from_fn(move || {
            let Node { group, outer } = *self.nodes.get(node as usize)?;
            node = outer;
            Some(group)
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(self.starts.as_slice())
            + size_of_val(self.inner.as_slice())
            + size_of_val(self.nodes.as_slice())
    }
}

fn innermost<A>(open: &[(A, u32)]) -> u32 {
    open.last().map_or(NONE, |(_, node)| *node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn all_networks_around_an_address_are_found_from_the_smallest(
            networks in proptest::collection::vec((any::<u32>(), 0..=32_u32), 0..60),
            addresses in proptest::collection::vec(any::<u32>(), 20),
            narrow: bool,
        ) {
            // Where addresses are few, networks meet.
            let fold = |address: u32| if narrow { address & 0xf000_0003 } else { address };
            let mut all = BTreeMap::new();
            for (address, length) in networks {
                let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
                let first = fold(address) & mask;
                let group = all.len() as u32;
                all.entry((first, first | !mask)).or_insert(group);
            }
            let list = all.iter().map(|(&(first, last), &group)| Network { first, last, group }).collect();
            let spans = Spans::<u32>::new(list);
            let edges = all.keys().flat_map(|(first, last)| [*first, *last, first.wrapping_sub(1), last.wrapping_add(1)]);
            for address in addresses.into_iter().map(fold).chain(edges) {
                let mut around: Vec<_> =
                    all.iter().filter(|((first, last), _)| (first..=last).contains(&&address)).collect();
                around.sort_by_key(|((first, last), _)| last - first);
                let expected: Vec<u32> = around.into_iter().map(|(_, group)| *group).collect();
                prop_assert_eq!(spans.around(address).collect::<Vec<_>>(), expected);
            }
        }
    }
}

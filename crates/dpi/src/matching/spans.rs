//! Networks in networks, found by address.

use super::lead::Lead;

/// No network.
const NONE: u32 = u32::MAX;

/// An address as a number.
pub(super) trait Address: Copy + Ord {
    /// The first.
    const MIN: Self;
    /// The last.
    const MAX: Self;
    /// The one before it; `None` before the first.
    fn previous(self) -> Option<Self>;
    /// The next; `None` behind the last.
    fn next(self) -> Option<Self>;
}

macro_rules! address {
    ($number:ty) => {
        impl Address for $number {
            const MIN: Self = <$number>::MIN;
            const MAX: Self = <$number>::MAX;

            fn previous(self) -> Option<Self> {
                self.checked_sub(1)
            }

            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }
        }
    };
}

address!(u32);
address!(u128);

/// A network: its first and last address, and what belongs to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network<A> {
    pub(super) first: A,
    pub(super) last: A,
    pub(super) lead: Lead,
}

/// All addresses cut where a network begins or ends. As networks lie within each other or apart, each span has one
/// smallest network around it, and each network one smallest around itself.
///
/// The spans are the leaves of a tree whose nodes are as large as to be read at once: flows open so seldom, beside their
/// packets, that each line read comes from far away.
#[derive(Debug)]
pub(super) struct Spans<A> {
    /// From the root down, each level from the left: the children of the node at `place` begin at
    /// `place * CHILDREN + 1`. What no leaf is below is there only for the places of others.
    nodes: Box<[Node<A>]>,
    /// Where the leaves would begin among the nodes.
    first_leaf: usize,
    leaves: Box<[Leaf<A>]>,
    /// All networks.
    around: Box<[Around]>,
}

/// Of IPv4, one cache line; two and four were no faster.
const KEYS: usize = 16;
const CHILDREN: usize = KEYS + 1;
/// Spans of a leaf: of IPv4, it is one cache line.
const SPANS: usize = 5;

/// The last address of each child but the last; the highest of all where there is no other.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Node<A>([A; KEYS]);

/// Spans: the last address of each but the last, and the smallest network around each.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Leaf<A> {
    lasts: [A; SPANS - 1],
    around: [Around; SPANS],
}

const _: () = assert!(size_of::<Leaf<u32>>() == 64, "one cache line a leaf");

/// What belongs to a network, and the smallest one around it.
#[derive(Clone, Copy, Debug)]
struct Around {
    lead: Lead,
    outer: u32,
}

impl Around {
    const NOTHING: Self = Self { lead: Lead::NONE, outer: NONE };
}

/// How many of them are below an address, in order as they are. Without a branch: no guess would be right.
#[inline]
fn below<A: Address>(lasts: &[A], address: A) -> usize {
    lasts.iter().map(|last| usize::from(*last < address)).sum()
}

/// Spans while networks are added, the outer before the inner.
struct Cuts<A> {
    starts: Vec<A>,
    /// The smallest network around each span.
    inner: Vec<u32>,
    around: Vec<Around>,
    open: Vec<(A, u32)>,
}

impl<A: Address> Cuts<A> {
    fn add(&mut self, network: Network<A>) {
        self.close(Some(network.first));
        let place = self.around.len() as u32;
        self.around.push(Around { lead: network.lead, outer: self.innermost() });
        self.begin(network.first, place);
        self.open.push((network.last, place));
    }

    /// Ends those of the open networks that end before an address; all, if there is none.
    fn close(&mut self, before: Option<A>) {
        while let Some((last, _)) = self.open.last().copied() {
            if before.is_some_and(|before| last >= before) {
                return;
            }
            self.open.pop();
            if let Some(next) = last.next() {
                self.begin(next, self.innermost());
            }
        }
    }

    fn begin(&mut self, start: A, network: u32) {
        if self.starts.last() == Some(&start) {
            self.inner.pop();
        } else {
            self.starts.push(start);
        }
        self.inner.push(network);
    }

    fn innermost(&self) -> u32 {
        self.open.last().map_or(NONE, |(_, network)| *network)
    }

    /// The last address of a span; the highest of all for the last span and beyond.
    fn last(&self, span: usize) -> A {
        self.starts.get(span + 1).and_then(|start| start.previous()).unwrap_or(A::MAX)
    }

    fn leaf(&self, leaf: usize) -> Leaf<A> {
        let span = |at: usize| leaf * SPANS + at;
        let network = |at: usize| self.around.get(*self.inner.get(span(at))? as usize).copied();
        Leaf {
            lasts: std::array::from_fn(|at| self.last(span(at))),
            around: std::array::from_fn(|at| network(at).unwrap_or(Around::NOTHING)),
        }
    }

    /// A node of whose children each has this many leaves below it.
    fn node(&self, node: usize, leaves: usize) -> Node<A> {
        let end = |child: usize| (node * CHILDREN + child + 1) * leaves * SPANS;
        Node(std::array::from_fn(|child| self.last(end(child) - 1)))
    }
}

impl<A: Address> Spans<A> {
    /// Of networks of which no two are the same.
    pub(super) fn new(mut networks: Vec<Network<A>>) -> Self {
        networks.sort_unstable_by(|one, other| one.first.cmp(&other.first).then(other.last.cmp(&one.last)));
        let mut cuts = Cuts { starts: vec![A::MIN], inner: vec![NONE], around: vec![], open: vec![] };
        networks.into_iter().for_each(|network| cuts.add(network));
        cuts.close(None);
        let leaves = cuts.starts.len().div_ceil(SPANS);
        let (mut nodes, mut below) = (vec![], 1);
        while below < leaves {
            below *= CHILDREN;
        }
        let mut wide = 1;
        while below > 1 {
            below /= CHILDREN;
            // Of the lowest level, what is behind the last leaf need not be there.
            let count = if below == 1 { leaves.div_ceil(CHILDREN) } else { wide };
            nodes.extend((0..count).map(|node| cuts.node(node, below)));
            wide *= CHILDREN;
        }
        Self {
            nodes: nodes.into(),
            first_leaf: (wide - 1) / KEYS,
            leaves: (0..leaves).map(|leaf| cuts.leaf(leaf)).collect(),
            around: cuts.around.into(),
        }
    }

    /// What belongs to the networks around an address, the smallest first.
    #[inline]
    pub(super) fn around(&self, address: A) -> impl Iterator<Item = Lead> {
        let mut place = 0;
        while let Some(Node(lasts)) = self.nodes.get(place) {
            place = place * CHILDREN + 1 + below(lasts, address);
        }
        let leaf = self.leaves.get(place.wrapping_sub(self.first_leaf));
        let mut next = leaf.and_then(|leaf| leaf.around.get(below(&leaf.lasts, address)).copied());
        std::iter::from_fn(move || {
            let Around { lead, outer } = next.filter(|next| next.lead != Lead::NONE)?;
            next = self.around.get(outer as usize).copied();
            Some(lead)
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.leaves) + size_of_val(&*self.around)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Trees that are just full, and those of one span more, to four levels.
    #[test]
    fn spans_of_any_number_are_found_to_their_edges() {
        fn check<A: Address + TryFrom<u64, Error: std::fmt::Debug>>(count: u64) {
            let address = |number: u64| A::try_from(number).unwrap();
            let network = |number: u64| Network {
                first: address(number * 4),
                last: address(number * 4 + 1),
                lead: Lead::group(number as u32),
            };
            let spans = Spans::new((0..count).map(network).collect());
            for number in 0..count * 4 + 2 {
                let expected =
                    (number % 4 < 2 && number / 4 < count).then(|| Lead::group((number / 4) as u32));
                let found: Vec<_> = spans.around(address(number)).collect();
                assert_eq!(found, Vec::from_iter(expected), "{number} of {count}");
            }
            assert_eq!(spans.around(A::MAX).count(), 0);
        }
        for leaves in [0, 1, CHILDREN, CHILDREN * CHILDREN, CHILDREN * CHILDREN * 3] {
            let spans = (leaves * SPANS) as u64;
            for networks in (spans / 2).saturating_sub(1)..=spans / 2 + 1 {
                check::<u32>(networks);
                check::<u128>(networks);
            }
        }
    }

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
            let network = |(&(first, last), &group)| Network { first, last, lead: Lead::group(group) };
            let list = all.iter().map(network).collect();
            let spans = Spans::<u32>::new(list);
            let edges = all.keys().flat_map(|(first, last)| [*first, *last, first.wrapping_sub(1), last.wrapping_add(1)]);
            for address in addresses.into_iter().map(fold).chain(edges) {
                let mut around: Vec<_> =
                    all.iter().filter(|((first, last), _)| (first..=last).contains(&&address)).collect();
                around.sort_by_key(|((first, last), _)| last - first);
                let expected: Vec<Lead> = around.into_iter().map(|(_, group)| Lead::group(*group)).collect();
                prop_assert_eq!(spans.around(address).collect::<Vec<_>>(), expected);
            }
        }
    }
}

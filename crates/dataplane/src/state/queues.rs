//! Places of a table in the order they were taken: each stands in one queue of many, and leaves it from anywhere, at the
//! same cost however many there are.

/// Places, then a queue's own, at which it begins and ends.
pub(super) struct Queues {
    links: Vec<Link>,
    places: usize,
}

#[derive(Clone, Copy)]
struct Link {
    before: usize,
    behind: usize,
}

impl Queues {
    /// So many empty queues of so many places altogether.
    pub(super) fn new(queues: usize, places: usize) -> Self {
        let alone = |at| Link { before: at, behind: at };
        Self { links: (0..places + queues).map(alone).collect(), places }
    }

    /// Puts a place that is in no queue at the end of one.
    pub(super) fn push(&mut self, queue: usize, place: usize) {
        let own = self.places + queue;
        let last = self.links[own].before;
        self.links[place] = Link { before: last, behind: own };
        self.links[last].behind = place;
        self.links[own].before = place;
    }

    /// Takes a place out of its queue, if it is in one.
    pub(super) fn remove(&mut self, place: usize) {
        let Link { before, behind } = self.links[place];
        self.links[before].behind = behind;
        self.links[behind].before = before;
        self.links[place] = Link { before: place, behind: place };
    }

    /// The one longest in a queue.
    pub(super) fn first(&self, queue: usize) -> Option<usize> {
        self.of(queue).next()
    }

    /// All of a queue, the one longest in it first.
    pub(super) fn of(&self, queue: usize) -> impl Iterator<Item = usize> {
        let own = self.places + queue;
        let behind = move |place: usize| Some(self.links[place].behind).filter(|next| *next != own);
        std::iter::successors(behind(own), move |place| behind(*place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLACES: usize = 6;

    proptest! {
        /// Each queue is as a list of its own would be.
        #[test]
        fn queues_are_lists(steps in proptest::collection::vec((0..PLACES, 0..2_usize), 0..60)) {
            let mut queues = Queues::new(2, PLACES);
            let mut lists = [vec![], vec![]];
            for (place, queue) in steps {
                if lists.iter().any(|list| list.contains(&place)) {
                    queues.remove(place);
                    lists.iter_mut().for_each(|list| list.retain(|other| *other != place));
                } else {
                    queues.push(queue, place);
                    lists[queue].push(place);
                }
                for (queue, list) in lists.iter().enumerate() {
                    prop_assert_eq!(&queues.of(queue).collect::<Vec<_>>(), list);
                    prop_assert_eq!(queues.first(queue), list.first().copied());
                }
            }
        }
    }
}

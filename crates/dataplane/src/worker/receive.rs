//! Packets from ports, the urgent ones first.

use super::{Worker, tag};
use crate::config::PORTS_MAX;
use crate::counters::DropReason;
use crate::frame::{Packet, PortIndex, VECTOR};
use crate::port::Port;
use packet::Buffer;

/// Packets taken from one port at once; where there are many ports, each has its share of the vector.
pub(crate) const BURST: usize = VECTOR / 2;
/// Of what a port may bring in a turn, one part in so many is kept for the rest, whatever waits in classes before it; and one
/// in so many for each class, whatever waits in those before it.
const REST: usize = 4;
const LESS_URGENT: usize = 16;

impl<P: Port> Worker<P> {
    /// Its ports, in their order: who waits for packets waits on all of them.
    pub fn ports(&self) -> impl Iterator<Item = &P> {
        self.lanes.iter().map(|lane| &lane.port)
    }

    /// Whether an order, a packet that another worker handed over, or one that the kernel sends, waits. No port tells of these, so who is about to
    /// wait for one looks here, too.
    pub fn is_waited_for(&self) -> bool {
        let kernel = self.kernel.as_ref().is_some_and(|kernel| kernel.is_waited_for());
        !self.orders.is_empty() || self.handoff.is_waited_for() || kernel
    }

    /// Whether no packet is under way that is not at a port: handed over and not taken, or on its way again.
    pub(super) fn is_quiet(&self) -> bool {
        let waits = !self.resumed.is_empty() || !self.rest.arrived.is_empty() || !self.rest.frames.is_empty();
        !waits && !self.handoff.is_waited_for()
    }

    /// Fills the vector: the most urgent class of every port, then the next, then what is in none. Whether a port had as much as may
    /// come of it at once, so that more of it waits. Who watches is to see what becomes of a packet here, too, so nothing is sorted.
    pub(super) fn receive(&mut self, is_watched: bool) -> bool {
        self.state.steering.begin_turn(!is_watched);
        let room = VECTOR - self.vector.len();
        let limit = BURST.min(room / self.lanes.len().max(1));
        let mut left = [limit; PORTS_MAX];
        for class in 0..self.classes {
            for (at, left) in left.iter_mut().enumerate().take(self.lanes.len()) {
                let classes = self.lanes[at].port.classes();
                if class < classes {
                    let most = allowance((limit, *left), classes - class);
                    let received = self.take_in(at, Some(class), most);
                    self.counters.ports[at].classes[class] += received as u64;
                    *left -= received;
                }
            }
        }
        self.classless = self.vector.len();
        let mut is_full = false;
        for (at, left) in left.into_iter().enumerate().take(self.lanes.len()) {
            is_full |= self.take_in(at, None, left) == left;
        }
        is_full
    }

    /// Receives from one port; returns how many.
    #[inline]
    fn take_in(&mut self, at: usize, class: Option<usize>, limit: usize) -> usize {
        let (index, port) = (at as PortIndex, &mut self.lanes[at].port);
        let received = match class {
            None => port.receive(&mut self.received, limit),
            Some(class) => port.receive_class(class, &mut self.received, limit),
        };
        let config = self.state.ports.get(index);
        let (is_ethernet, sorts) = (config.ethernet, self.state.steering.sorts(index) && !config.ethernet);
        self.counters.ports[at].received += received as u64;
        if config.ethernet || config.vlan.is_some() {
            self.look_at_frames(index);
        } else if !sorts {
            self.received.iter().take(self.graph.chunk().described()).for_each(Buffer::prefetch);
        }
        if sorts && received > 0 {
            if let Some(first) = self.fair_share.first_sample().filter(|_| class.is_none()) {
                self.thin_out_unread(index, first);
            }
            self.sort(index);
        }
        let fresh = &self.state.ports.receiver(index).fresh;
        let arrived = if is_ethernet { &mut self.rest.arrived } else { &mut self.vector };
        arrived.extend(self.received.drain(..).map(|buffer| Packet { buffer, meta: *fresh }));
        received
    }

    /// Takes tags off what has just been received by a port, and is rid of what does not belong there.
    fn look_at_frames(&mut self, index: PortIndex) {
        let config = self.state.ports.get(index);
        let (counters, trash) = (&mut self.counters, &mut self.trash);
        self.received.iter().for_each(Buffer::prefetch);
        let mut bytes = 0;
        let is_lost = |buffer: &mut P::Buffer| {
            let before = buffer.data().len();
            let taken = match buffer.is_contiguous() {
                true => tag::take_off(buffer, config.vlan),
                false => Err(DropReason::NotContiguous),
            };
            // What others read, they count: nobody waits for descriptions here that need not be read.
            let left = if taken.is_ok() && !config.ethernet { buffer.data().len() } else { 0 };
            bytes += before - left;
            if let Err(reason) = taken {
                counters.drops[reason as usize] += 1;
            }
            taken.is_err()
        };
        trash.extend(self.received.extract_if(.., is_lost));
        self.counters.count_received(index, bytes);
    }
}

/// What a class may take of what is `left` of a port's `limit`; it and those behind it are so many, and the rest comes after
/// them. So the urgent are served first in every turn, and all others in every turn, too.
fn allowance((limit, left): (usize, usize), classes: usize) -> usize {
    let share = |of: usize| (limit / of).max(1);
    left.saturating_sub(share(REST) + (classes - 1) * share(LESS_URGENT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::CLASSES_MAX;
    use proptest::prelude::*;

    /// A port's least part of a turn: all ports there may be, and as much handed over by other workers as may be.
    const LEAST: usize = VECTOR / 4 / PORTS_MAX;

    proptest! {
        #[test]
        fn whoever_waits_gets_something_and_no_port_more_than_its_part(
            limit in LEAST..=BURST, classes in 1..=CLASSES_MAX, waiting in proptest::collection::vec(0..1_000_usize, CLASSES_MAX),
        ) {
            let mut left = limit;
            for (class, waiting) in waiting.into_iter().take(classes).enumerate() {
                let taken = waiting.min(allowance((limit, left), classes - class));
                prop_assert!(taken > 0 || waiting == 0);
                left -= taken;
            }
            prop_assert!(left >= (limit / REST).max(1), "{left} of {limit} for the rest");
        }
    }

    #[test]
    fn an_urgent_class_has_most_of_a_turn() {
        assert_eq!(allowance((BURST, BURST), 1), 96);
        assert_eq!(allowance((BURST, BURST), 3), 80);
    }
}

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
    /// come of it at once, so that more of it waits.
    pub(super) fn receive(&mut self) -> bool {
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
        let (config, fresh) = (self.state.ports.get(index), &self.state.ports.receiver(index).fresh);
        let received = match class {
            None => port.receive(&mut self.received, limit),
            Some(class) => port.receive_class(class, &mut self.received, limit),
        };
        let is_looked_at = config.ethernet || config.vlan.is_some();
        let asked = if is_looked_at { received } else { self.graph.chunk().described() };
        self.received.iter().take(asked).for_each(Buffer::prefetch);
        let arrived = if config.ethernet { &mut self.rest.arrived } else { &mut self.vector };
        let counters = &mut self.counters.ports[at];
        counters.received += self.received.len() as u64;
        let packet = |buffer| Packet { buffer, meta: *fresh };
        if !is_looked_at {
            // Who reads them first counts their bytes: nobody waits for their descriptions here.
            arrived.extend(self.received.drain(..).map(packet));
            return received;
        }
        for mut buffer in self.received.drain(..) {
            let bytes = buffer.data().len();
            let taken = match buffer.is_contiguous() {
                true => tag::take_off(&mut buffer, config.vlan),
                false => Err(DropReason::NotContiguous),
            };
            // What others read, they count.
            let left = if taken.is_ok() && !config.ethernet { buffer.data().len() } else { 0 };
            counters.received_bytes += (bytes - left) as u64;
            match taken {
                Ok(()) => arrived.push(packet(buffer)),
                Err(reason) => {
                    self.counters.drops[reason as usize] += 1;
                    self.trash.push(buffer);
                }
            }
        }
        received
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

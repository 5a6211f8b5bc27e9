//! A bounded number of inspections.

use super::Inspection;
use std::collections::VecDeque;

/// What a flow keeps instead of its inspection. It names one inspection until that is given back, or given to another
/// flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    place: u32,
    turn: u32,
}

/// Inspections of flows that are not classified yet. When all are taken, the one that was taken longest ago is given to
/// the next flow: a flood of flows that never say what they are takes inspections from each other, and no more.
#[derive(Debug)]
pub struct Pool {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// As they were taken. Those given back since are still in it.
    taken: VecDeque<Ticket>,
}

#[derive(Debug)]
struct Slot {
    inspection: Inspection,
    /// Raised when it is taken or given back, so that old tickets are worth nothing.
    turn: u32,
}

impl Pool {
    /// A pool of `capacity` inspections, at least one, of 4,352 bytes each, all allocated now.
    pub fn new(capacity: u32) -> Self {
        let capacity = capacity.max(1);
        let slot = |_| Slot { inspection: Inspection::new(), turn: 0 };
        Self {
            slots: (0..capacity).map(slot).collect(),
            free: (0..capacity).rev().collect(),
            taken: VecDeque::with_capacity(2 * capacity as usize),
        }
    }

    /// A fresh inspection, if need be that of another flow.
    pub fn take(&mut self) -> Ticket {
        let place = self.free.pop().unwrap_or_else(|| self.next_to_give_way());
        let turn = self.slots.get_mut(place as usize).map_or(0, |slot| {
            slot.inspection.reset();
            slot.turn = slot.turn.wrapping_add(1);
            slot.turn
        });
        let ticket = Ticket { place, turn };
        self.remember(ticket);
        ticket
    }

    fn next_to_give_way(&mut self) -> u32 {
        while let Some(ticket) = self.taken.pop_front() {
            if self.slot(ticket).is_some() {
                return ticket.place;
            }
        }
        // Not reached: where none is free, all were taken and not given back.
        0
    }

    /// Where half of what is remembered was given back, that is forgotten: so nothing is ever allocated.
    fn remember(&mut self, ticket: Ticket) {
        if self.taken.len() == 2 * self.slots.len() {
            let slots = &self.slots;
            let is_taken = |ticket: &Ticket| {
                slots.get(ticket.place as usize).is_some_and(|slot| slot.turn == ticket.turn)
            };
            self.taken.retain(is_taken);
        }
        self.taken.push_back(ticket);
    }

    /// The inspection of a ticket; `None` where another flow has it.
    pub fn get(&mut self, ticket: Ticket) -> Option<&mut Inspection> {
        self.slot(ticket).map(|slot| &mut slot.inspection)
    }

    /// Gives an inspection back; one that another flow has stays with that.
    pub fn put(&mut self, ticket: Ticket) {
        if let Some(slot) = self.slot(ticket) {
            slot.turn = slot.turn.wrapping_add(1);
            // Never more than there are, so nothing is allocated.
            self.free.push(ticket.place);
        }
    }

    fn slot(&mut self, ticket: Ticket) -> Option<&mut Slot> {
        self.slots.get_mut(ticket.place as usize).filter(|slot| slot.turn == ticket.turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_has_its_inspection_until_it_gives_it_back_or_way() {
        let mut pool = Pool::new(2);
        let (one, two) = (pool.take(), pool.take());
        pool.get(one).unwrap().segment(1, b"G");
        assert!(pool.get(two).is_some());
        let three = pool.take();
        assert!(pool.get(one).is_none() && pool.get(two).is_some() && pool.get(three).is_some());
        // Nothing is left of the other flow.
        assert_eq!(pool.get(three).unwrap().packets, 0);
        assert!(pool.get(three).unwrap().base.is_none());
        pool.put(two);
        assert!(pool.get(two).is_none());
        // What was given back twice, or gave way, is not given out twice.
        pool.put(two);
        pool.put(one);
        let (four, five) = (pool.take(), pool.take());
        assert!(pool.get(four).is_some() && pool.get(five).is_some() && four.place != five.place);
        assert!(pool.get(three).is_none());
    }

    #[test]
    fn it_never_grows() {
        let mut pool = Pool::new(3);
        let room = pool.taken.capacity();
        for number in 0..1_000 {
            let ticket = pool.take();
            assert!(pool.get(ticket).is_some());
            if number % 3 != 0 {
                pool.put(ticket);
            }
        }
        assert!(pool.taken.capacity() == room && pool.free.len() <= 3);
    }
}

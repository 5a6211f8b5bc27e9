//! The rings to one worker.

use crate::worker::{Order, Report};
use rtrb::{Consumer, Producer};
use std::collections::VecDeque;

/// Orders waiting for room in the ring before commands should no longer be read.
pub(super) const BACKLOG: usize = 4_096;

/// The ends of a worker's rings.
pub(crate) type Ends = (Producer<Order>, Consumer<Report>);

/// Where one worker is told what to do, and tells what it did.
pub(super) struct Hand {
    orders: Producer<Order>,
    reports: Consumer<Report>,
    backlog: VecDeque<Order>,
}

impl Hand {
    pub(super) fn new((orders, reports): Ends) -> Self {
        Self { orders, reports, backlog: VecDeque::new() }
    }

    pub(super) fn has_room(&self) -> bool {
        self.backlog.len() < BACKLOG
    }

    pub(super) fn order(&mut self, order: Order) {
        self.backlog.push_back(order);
        self.push();
    }

    /// Passes on what waited for room.
    pub(super) fn push(&mut self) {
        while let Some(order) = self.backlog.pop_front() {
            if let Err(rtrb::PushError::Full(order)) = self.orders.push(order) {
                self.backlog.push_front(order);
                return;
            }
        }
    }

    pub(super) fn report(&mut self) -> Option<Report> {
        self.reports.pop().ok()
    }
}

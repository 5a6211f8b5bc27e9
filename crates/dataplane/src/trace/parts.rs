//! What became of the parts of packets that were split or copied. A packet that somebody watches has a number then, which all that is
//! made of it has, too; no other packet has one, as long as such parts are run.

use super::name;
use crate::config::PortConfig;
use crate::frame::{Fate, Meta};
use arrayvec::ArrayVec;
use dplink::{TracePartEnd, TracedParts};

/// Ends of one packet's parts that are told apart.
const ENDS: usize = 6;

/// Of one packet: how many of its parts ended so.
#[derive(Debug, Default)]
pub(super) struct Parts(ArrayVec<(Fate, u16), ENDS>);

impl Parts {
    /// Begins with those of another packet; its place.
    pub(super) fn watch(all: &mut Vec<Self>, meta: &mut Meta) -> usize {
        all.push(Self::default());
        meta.watch(all.len() as u32);
        all.len() - 1
    }

    /// Notes where a packet ended that may be such a part, and has none itself.
    pub(super) fn note(all: &mut [Self], meta: &Meta, end: Fate) {
        let Some(Self(ends)) = meta.watched_as().and_then(|place| all.get_mut(place)) else { return };
        if end.parts() {
            return;
        }
        match ends.iter_mut().find(|(fate, _)| *fate == end) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => drop(ends.try_push((end, 1))),
        }
    }

    /// As it is told.
    pub(super) fn told(&self, ports: &[PortConfig]) -> Vec<TracedParts> {
        let told = |&(fate, count): &(Fate, u16)| {
            let end = match fate {
                Fate::Send(port) | Fate::Loop(port) => TracePartEnd::Sent { port: name(ports, port) },
                Fate::Drop(reason) => TracePartEnd::Dropped { reason: reason.name().to_owned() },
                Fate::Keep => TracePartEnd::Kept,
                _ => TracePartEnd::Held,
            };
            TracedParts { count, end }
        };
        self.0.iter().map(told).collect()
    }
}

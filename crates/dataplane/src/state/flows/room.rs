//! Where a new flow goes: to a free place, to that of one that can stand elsewhere, or to that of one that gives way.

use super::{At, FILL, Flow, Flows, KEPT_SHIFT, Place, Tags, WAYS, tag};
use crate::content::Detected;
use crate::state::blocks;
use crate::state::share::give_way;

/// Up to so many, those of a full block are moved: in a table that is fuller, hardly any finds room.
const MOVED_TO: usize = FILL + 1;
/// Places of a full block that are looked at for one that gives way.
const CANDIDATES: usize = 8;
/// Flows of a full block that are looked at for one that finds room in its other block.
const MOVABLE: usize = 4;

impl Flows {
    /// A free place of the flow's block, or of its second one; or that of a flow that can stand elsewhere, or has to give way.
    pub(super) fn make_room(&mut self, place: Place<'_>, now: u16) -> At {
        let block = self.block(place.hash);
        let elsewhere = || self.free(self.second(place.hash)).filter(|_| !self.blocks.is_away_full(block));
        if let Some(at) = self.free(block).or_else(elsewhere) {
            return at;
        }
        let at = |candidate: usize| blocks::place(block, (place.hash as usize % WAYS + candidate) % WAYS);
        if self.live < self.blocks.len() * MOVED_TO
            && let Some(at) = self.move_one(std::array::from_fn(at))
        {
            return at;
        }
        let flow = |candidate| self.blocks.flow(at(candidate));
        let idle = |candidate| {
            let idle = now.wrapping_sub(flow(candidate).seen);
            if flow(candidate).is_known_connection() { idle >> KEPT_SHIFT } else { idle }
        };
        let gone = give_way::<CANDIDATES>(place.key.user(), |candidate| flow(candidate).key.user(), idle);
        at(gone)
    }

    /// The tags alone tell of a free place of a block; only where there is none are flows themselves read.
    #[inline]
    fn free(&self, block: usize) -> Option<At> {
        let line = self.blocks.tags(block).places_of(Tags::FREE).next();
        line.map(|line| At { block, line })
    }

    /// Moves the first of these flows of a full block that finds room in its other one; says where it was.
    #[cold]
    fn move_one(&mut self, flows: [At; MOVABLE]) -> Option<At> {
        let others = flows.map(|at| {
            let hash = self.hash(&self.blocks.flow(at).key);
            let own = self.block(hash);
            let other = if own == at.block { self.second(hash) } else { own };
            self.blocks.prefetch_tags(other);
            (at, hash, own, other)
        });
        let may_go = |own| own != flows[0].block || !self.blocks.is_away_full(own);
        let (from, hash, own, to) = others.into_iter().find_map(|(at, hash, own, other)| {
            let to = self.free(other).filter(|to| may_go(own) && !self.would_be_missed(at, *to))?;
            Some((at, hash, own, to))
        })?;
        match own == from.block {
            true => self.blocks.send_away(own),
            false => self.blocks.lose_away(own),
        }
        let flow = *self.blocks.flow(from);
        self.blocks.put(to, tag(hash), flow);
        self.blocks.put(from, Tags::FREE, Flow::EMPTY);
        Some(from)
    }

    /// Whether somebody who has passed on what was known where a flow is to go has not yet done so where it is.
    fn would_be_missed(&self, from: At, to: At) -> bool {
        (to.block + 1..=from.block).contains(&self.passed_on)
            && self.blocks.flow(from).detected != Detected::NOT_YET
    }
}

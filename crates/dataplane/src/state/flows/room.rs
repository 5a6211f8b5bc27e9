//! Where a new flow goes: to a free place, to that of one that can stand elsewhere, or to that of one that gives way.

use super::packed::Packed;
use super::{At, FILL, Flows, KEPT_SHIFT, Place, WAYS, tag};
use crate::content::Detected;
use crate::state::blocks;
use crate::state::share::give_way;

/// Up to so many, those of a full block are moved: in a table that is fuller, hardly any finds room.
const MOVED_TO: usize = FILL + 1;
/// Flows of a full block that are looked at for one that gives way.
const CANDIDATES: usize = 8;
/// Flows of a full block that are looked at for one that finds room in its other block.
const MOVABLE: usize = 4;

impl Flows {
    /// Free room of the flow's block, or of its second one; or that of flows that can stand elsewhere, or have to give way.
    pub(super) fn make_room(&mut self, place: Place<'_>, packed: &Packed) -> At {
        let own = self.block(place.hash);
        let elsewhere = (!self.blocks.is_away_full(own)).then(|| self.second(place.hash));
        let free = self.free(own, packed).or_else(|| self.free(elsewhere?, packed));
        if let Some(at) = free {
            return at;
        }
        // Each frees a place at least, and two are a line.
        loop {
            let candidates = self.candidates(own, place.hash);
            let may_move = self.taken < self.blocks.len() * MOVED_TO;
            let movable = candidates.first_chunk().filter(|_| may_move);
            if !movable.is_some_and(|movable| self.move_one(*movable)) {
                let idle = |candidate: usize| self.idle(candidates[candidate], packed.seen());
                let user = |candidate: usize| self.blocks.get(candidates[candidate]).flow().key.user();
                let gone = give_way::<CANDIDATES>(place.key.user(), user, idle);
                self.forget(candidates[gone]);
            }
            if let Some(at) = self.free(own, packed) {
                return at;
            }
        }
    }

    /// Flows of a block that is full but for a place at most, from one on that the hash chooses.
    fn candidates(&self, block: usize, hash: u64) -> [At; CANDIDATES] {
        let first = hash as usize % WAYS;
        let ways = (0..WAYS).map(|way| blocks::place(block, (first + way) % WAYS));
        let mut taken = ways.filter(|at| self.blocks.is_taken(*at));
        std::array::from_fn(|_| taken.next().unwrap_or(blocks::place(block, first)))
    }

    /// For how long a flow has had no packet, by those that give way at the same time.
    fn idle(&self, at: At, now: u16) -> u16 {
        let flow = self.blocks.get(at).flow();
        let idle = now.wrapping_sub(flow.seen);
        if flow.is_known_connection() { idle >> KEPT_SHIFT } else { idle }
    }

    /// Free room in a block.
    fn free(&mut self, block: usize, packed: &Packed) -> Option<At> {
        let free = self.blocks.free(block, packed.is_half());
        free.or_else(|| if packed.is_half() { None } else { self.blocks.join(block) })
    }

    /// Moves the first of these flows of a full block that finds room in its other one; whether there is one.
    #[cold]
    fn move_one(&mut self, flows: [At; MOVABLE]) -> bool {
        let others = flows.map(|at| {
            let hash = self.hash(&self.blocks.get(at).flow().key);
            let own = self.block(hash);
            let other = if own == at.block { self.second(hash) } else { own };
            self.blocks.prefetch_tags(other);
            (at, hash, own, other)
        });
        let may_go = |own| own != flows[0].block || !self.blocks.is_away_full(own);
        let found = others.into_iter().find_map(|(at, hash, own, other)| {
            let to = self.blocks.free(other, self.blocks.get(at).is_half())?;
            let may_go = other != at.block && may_go(own) && !self.would_be_missed(at, to);
            may_go.then_some((at, hash, own, to))
        });
        let Some((from, hash, own, to)) = found else { return false };
        match own == from.block {
            true => self.blocks.send_away(own),
            false => self.blocks.lose_away(own),
        }
        let packed = self.blocks.clear(from);
        self.blocks.enter(to, tag(hash), &packed);
        true
    }

    /// Whether somebody who has passed on what was known where a flow is to go has not yet done so where it is.
    fn would_be_missed(&self, from: At, to: At) -> bool {
        (to.block + 1..=from.block).contains(&self.passed_on)
            && self.blocks.get(from).flow().detected != Detected::NOT_YET
    }
}

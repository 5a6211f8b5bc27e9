//! Drops packets of users that take more than their share of a worker which has more to do than it can, before they cost more.

use super::Worker;
use crate::counters::DropReason;
use crate::fair_share::{LONG_WAY, SAMPLED};
use crate::frame::Packet;
use crate::port::Port;
use crate::state::FlowLine;
use crate::steering::Sight;
use packet::Buffer;

impl<P: Port> Worker<P> {
    /// Of what came in, drops what is too much of a user's; what came in a class is urgent, whosever it is.
    #[cold]
    #[inline(never)]
    pub(super) fn thin_out(&mut self) {
        self.make_trash_room(self.vector.len());
        let Self { vector, state, counters, trash, fair_share, handed, handed_unread, classless, .. } = self;
        vector.iter().for_each(|packet| packet.buffer.prefetch_data());
        let (mut at, before, classless) = (0, *handed, *handed + *handed_unread..*classless);
        let gives_way = |packet: &mut Packet<P::Buffer>| {
            let (was_handed, is_urgent) = (at < before, classless.contains(&at));
            at += 1;
            let user = match was_handed {
                true => Some(packet.meta.key.user_and_version()),
                false if is_urgent => None,
                false => match state.sight(packet.buffer.data(), packet.meta.port) {
                    Sight::User(user) => Some(user),
                    Sight::Nobody | Sight::Unclear => None,
                },
            };
            let gives_way = user.is_some_and(|user| !fair_share.passes(user));
            match (gives_way, was_handed) {
                (true, true) => *handed -= 1,
                // What goes on is counted where it is read.
                (true, false) => counters.count_received(packet.meta.port, packet.buffer.data().len()),
                (false, _) => {}
            }
            gives_way
        };
        let had = trash.len();
        trash.extend(vector.extract_if(.., gives_way).map(|packet| packet.buffer));
        let dropped = trash.len() - had;
        counters.count_drops(DropReason::UserShare, dropped as u64);
    }

    /// Takes down whose packets have just been through the graph: of one in so many, from the `first` on.
    #[inline(never)]
    pub(super) fn look_at_shares(&mut self, first: usize) {
        for Packet { meta, .. } in self.vector.iter().skip(first).step_by(SAMPLED) {
            let weight = if meta.line == FlowLine::NONE { LONG_WAY } else { 1 };
            self.fair_share.sample(meta.key.user(), weight);
        }
    }
}

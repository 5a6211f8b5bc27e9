//! What came in at a port that brings anybody's packets: others' are handed over unread.

use super::Worker;
use super::receive::BURST;
use crate::counters::DropReason;
use crate::fair_share::SAMPLED;
use crate::frame::{Packet, PortIndex};
use crate::graph::NodeId;
use crate::port::Port;
use crate::steering::{Sight, Steering, Unread, sight_down, sight_up};
use packet::Buffer;
use rules::Direction;

/// Packets ahead of the one at hand whose headers are asked for, and whose descriptions are.
const AHEAD: usize = 12;
const FURTHER: usize = 2 * AHEAD;

impl<P: Port> Worker<P> {
    /// Hands over what is plainly others'. The rest stays where it was received; before it, what is plainly this worker's own goes into
    /// the vector. Behind the first of which nothing can be told all of them stay, or users' packets would overtake each other.
    /// The node `steer` is charged with it.
    pub(super) fn sort(&mut self, port: PortIndex) {
        let began = (self.clock)();
        let mut owners = [0; BURST];
        let seen = self.look_for_owners(port, &mut owners);
        let sorted = self.handoff.sorted();
        for (buffer, owner) in self.received.drain(..seen).zip(owners) {
            sorted[usize::from(owner)].push(Unread { buffer, port });
        }
        let fresh = &self.state.ports.receiver(port).fresh;
        let own = sorted[self.state.steering.me()].drain(..);
        self.vector.extend(own.map(|Unread { buffer, .. }| Packet { buffer, meta: *fresh }));
        if !self.received.is_empty() {
            self.state.steering.leave_unsorted(port);
        }
        self.passed_on += self.send_sorted();
        self.counters.nodes[NodeId::Steer as usize].cycles += (self.clock)().wrapping_sub(began);
        self.counters.count_vector(NodeId::Steer, seen);
    }

    /// Whose the packets are, up to the first of which that cannot be told; how many these are. A loop for each kind of port: which it
    /// is need not be asked of each packet.
    fn look_for_owners(&self, port: PortIndex, owners: &mut [u8; BURST]) -> usize {
        use Direction::{Downlink, Uplink};
        let Self { received, state, .. } = self;
        let (receiver, steering) = (state.ports.receiver(port), &state.steering);
        match (receiver.fresh.direction(), state.has_turned_at(port)) {
            (_, true) => {
                look(received, (steering, owners), (Buffer::prefetch_data, |frame| state.sight(frame, port)))
            }
            (Uplink, false) => {
                let see = |frame: &_| sight_up(frame, receiver, |_| Uplink);
                look(received, (steering, owners), (Buffer::prefetch_data, see))
            }
            (Downlink, false) => {
                let see = |frame: &_| sight_down(frame, receiver, |_| Downlink);
                look(received, (steering, owners), (Buffer::prefetch_front, see))
            }
        }
    }

    /// As [`Worker::thin_out`] and [`Worker::look_at_shares`], of what another worker is to get: this one, too, may have more to hand
    /// over than it can.
    #[cold]
    #[inline(never)]
    pub(super) fn thin_out_unread(&mut self, port: PortIndex, first: usize) {
        self.make_trash_room(self.received.len());
        let Self { received, state, fair_share, counters, trash, .. } = self;
        let (mut at, is_thinning) = (0, fair_share.is_thinning());
        let gives_way = |buffer: &mut P::Buffer| {
            let is_sampled = at % SAMPLED == first;
            at += 1;
            if !is_sampled && !is_thinning {
                return false;
            }
            let Sight::User(user) = state.sight(buffer.data(), port) else { return false };
            if state.steering.other_owner(user.0).is_none() {
                return false;
            }
            let gives_way = is_thinning && !fair_share.passes(user);
            match gives_way {
                // What goes on is counted where it is read.
                true => counters.count_received(port, buffer.data().len()),
                false if is_sampled => fair_share.sample(user.0, 1),
                false => {}
            }
            gives_way
        };
        let had = trash.len();
        trash.extend(received.extract_if(.., gives_way));
        let dropped = trash.len() - had;
        counters.count_drops(DropReason::UserShare, dropped as u64);
    }
}

/// Whose packets these are, by what `see` says of their frames. What that reads is asked for as by who writes it: of a line that is
/// only read here, something would stay when its owner asks for it.
#[inline(always)]
fn look<B: Buffer>(
    received: &[B],
    (steering, owners): (&Steering, &mut [u8; BURST]),
    (ask, see): (impl Fn(&B), impl Fn(&[u8]) -> Sight),
) -> usize {
    let me = steering.me() as u8;
    received.iter().take(FURTHER).for_each(Buffer::prefetch);
    received.iter().take(AHEAD).for_each(&ask);
    for (at, (buffer, owner)) in received.iter().zip(owners).enumerate() {
        if let Some(later) = received.get(at + FURTHER) {
            later.prefetch();
        }
        if let Some(later) = received.get(at + AHEAD) {
            ask(later);
        }
        *owner = match see(buffer.data()) {
            Sight::User((user, _)) => steering.owner(user),
            Sight::Nobody => me,
            Sight::Unclear => return at,
        };
    }
    received.len().min(BURST)
}

//! Drops packets of users that take more than their share of a worker which has more to do than it can, before they cost more.

use super::Worker;
use crate::counters::DropReason;
use crate::fair_share::{LONG_WAY, SAMPLED};
use crate::frame::{Meta, Packet};
use crate::port::Port;
use crate::state::{FlowKey, FlowLine, State};
use packet::five_tuple::FiveTuple;
use packet::gtpu::{self, Message};
use packet::{Buffer, ethernet, ipv4, ipv6, protocol, udp};

impl<P: Port> Worker<P> {
    /// Of what came in, drops what is too much of a user's; what came in a class is urgent, whosever it is.
    #[cold]
    #[inline(never)]
    pub(super) fn thin_out(&mut self) {
        self.make_trash_room(self.vector.len());
        let Self { vector, state, counters, trash, fair_share, handed, classless, .. } = self;
        vector.iter().for_each(|packet| packet.buffer.prefetch_data());
        let (mut at, before, classless) = (0, *handed, *classless);
        let gives_way = |packet: &mut Packet<P::Buffer>| {
            let (was_handed, is_urgent) = (at < before, (before..classless).contains(&at));
            at += 1;
            let user = match was_handed {
                true => Some(packet.meta.key.user_and_version()),
                false if is_urgent => None,
                false => user_of(state, packet),
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

/// Whose packet a frame carries, as its flow's key will say, and whether it is of IPv6; `None` of what no user sends or gets, and of frames at fault.
fn user_of<B: Buffer>(state: &State, packet: &Packet<B>) -> Option<(u64, bool)> {
    let Meta { port, source, .. } = packet.meta;
    let packet = packet.buffer.data().get(ethernet::LENGTH..)?;
    let (source, inner) = match in_tunnel(packet) {
        Some((teid, inner)) => (state.source_of_tunnel(port, source, teid), inner),
        None => (source, packet),
    };
    let direction = source.direction();
    if let Some((key, ..)) = FlowKey::of_usual(inner, direction) {
        return Some(key.user_and_version());
    }
    let found = FiveTuple::parse(inner).ok()?;
    Some(FlowKey::new(&found.tuple, direction).user_and_version())
}

/// The tunnel an IP packet is of, and what it carries.
fn in_tunnel(packet: &[u8]) -> Option<(u32, &[u8])> {
    let (upper, protocol) = match packet.first()? >> 4 {
        4 => (usize::from(packet.first()? & 0xf) * 4, *packet.get(9)?),
        _ => (ipv6::LENGTH, *packet.get(6)?),
    };
    let datagram = packet.get(upper.max(ipv4::LENGTH)..)?;
    let is_gtpu = protocol == protocol::UDP && udp::Header::parse(datagram)?.destination() == gtpu::PORT;
    let message = is_gtpu.then(|| Message::parse(datagram.get(udp::LENGTH..)?).ok()).flatten();
    let message = message.filter(|message| message.message_type == gtpu::message_type::G_PDU)?;
    Some((message.teid, datagram.get(udp::LENGTH + message.header_length..)?))
}

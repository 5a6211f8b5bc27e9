//! Frames for other users than the one they came from, and for many: each goes to its session as one from the data
//! network would (TS 23.501 5.6.10.2). How many copies there are in a second is limited.

use super::Worker;
use crate::counters::DropReason;
use crate::frame::{Fate, Meta, Packet, PortIndex};
use crate::nodes;
use crate::port::Port;
use crate::side::Side;
use crate::state::{SessionIndex, StepIndex};
use packet::{Buffer, ethernet};

/// Frames that wait for their turn; more are dropped.
pub(super) const WAITING: usize = 8_192;

/// Whom a frame is for, besides one.
#[derive(Clone, Copy)]
struct Audience {
    network: Side,
    /// Who sent it.
    but: SessionIndex,
    port: PortIndex,
    /// By what those are known who are given it, where somebody watches.
    generation: u32,
}

impl<P: Port> Worker<P> {
    /// Takes a frame to the user it is for, or to all users of its network but the sender, and into the network.
    pub(super) fn switch(&mut self, packet: Packet<P::Buffer>) {
        let Some(header) = ethernet::Header::parse(packet.buffer.data()) else {
            return self.lose(packet, DropReason::EthernetTruncated);
        };
        let (destination, meta) = (header.destination, packet.meta);
        let comes_from_user = meta.step != StepIndex::NONE;
        let network = if comes_from_user { meta.towards } else { meta.side() };
        let Meta { session: but, port, generation, .. } = packet.meta;
        let audience = Audience { network, but, port, generation };
        if !destination.is_group() {
            return match self.state.switch.find(destination, network.instance()) {
                Some(session) => self.deliver(packet.buffer, (session, audience)),
                None => {
                    self.note_part(&meta, Fate::Drop(DropReason::FrameUnknownStation));
                    self.lose(packet, DropReason::FrameUnknownStation);
                }
            };
        }
        let out =
            comes_from_user.then(|| nodes::port_of_frames(&self.state, network, packet.buffer.data().len()));
        self.spread(&packet.buffer, audience);
        match out {
            Some(Ok(port)) => {
                self.note_part(&meta, Fate::Send(port));
                self.lanes[usize::from(port)].push(packet.buffer, meta.receipt);
            }
            // It was for others, too, who have their copies.
            Some(Err(reason)) => {
                self.note_part(&meta, Fate::Drop(reason));
                self.discard(packet.buffer, reason);
            }
            // Those it was for have their copies.
            None => {
                self.counters.consumed += 1;
                self.trash.push(packet.buffer);
            }
        }
    }

    /// A copy for every user of the network.
    fn spread(&mut self, frame: &P::Buffer, audience: Audience) {
        let mut from = 0;
        while let Some((at, session)) = self.state.switch.next_member(from, audience.network.instance()) {
            from = at + 1;
            if session == audience.but {
                continue;
            }
            self.counters.created += 1;
            let may = self.rest.frames.len() < WAITING && self.state.switch.may_copy(self.state.now_ns);
            match (may, self.copy_frame(frame).filter(|_| may)) {
                (true, Some(copy)) => self.deliver(copy, (session, audience)),
                (true, None) => self.counters.count_drops(DropReason::NotCopied, 1),
                (false, _) => self.counters.count_drops(DropReason::FrameCopies, 1),
            }
        }
    }

    fn copy_frame(&mut self, frame: &P::Buffer) -> Option<P::Buffer> {
        let mut buffer = self.lanes.first_mut()?.port.allocate()?;
        let original = frame.data();
        buffer.append(original.len())?.copy_from_slice(original);
        Some(buffer)
    }

    /// A frame for a user, as if it came from the data network.
    fn deliver(&mut self, buffer: P::Buffer, (session, audience): (SessionIndex, Audience)) {
        let Audience { network, port, generation, .. } = audience;
        let meta = Meta { session, generation, ..Meta::new(port, network) };
        self.rest.frames.push(Packet { buffer, meta });
    }

    /// A frame that was kept goes on from where rules are found, whoever's it is.
    pub(super) fn resume_frames(&mut self, from: usize) {
        self.rest.frames.extend(self.resumed.drain(from..));
    }
}

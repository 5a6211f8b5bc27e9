//! Frames to the kernel, and from there.

use super::Worker;
use crate::counters::DropReason;
use crate::frame::{Packet, PortIndex, VECTOR};
use crate::port::Port;
use crate::punt::Waiting;
use crate::receipt::Receipt;
use packet::{Buffer, ethernet};

/// Frames of the kernel sent in a turn: behind those of users, and few beside them.
const FROM_KERNEL: usize = 32;
/// Octets of a VLAN tag that the kernel may have put into a frame.
const TAG: usize = 4;

impl<P: Port> Worker<P> {
    /// Lets the kernel have a packet, whose buffer stays here.
    #[cold]
    pub(super) fn punt(&mut self, packet: Packet<P::Buffer>) {
        let port = packet.meta.port;
        let frame = packet.buffer.data();
        if !self.kernel.as_mut().is_some_and(|kernel| kernel.give(port, frame)) {
            return self.discard(packet.buffer, DropReason::PuntFull);
        }
        self.counters.punted += 1;
        self.counters.ports[usize::from(port)].punted += 1;
        self.trash.push(packet.buffer);
    }

    /// Puts what the kernel sends behind what is about to leave. What there is no buffer for waits in its ring.
    pub(super) fn take_from_kernel(&mut self) {
        for _ in 0..FROM_KERNEL {
            let Some(waiting) = self.kernel.as_mut().and_then(|kernel| kernel.first()) else { return };
            let port = waiting.port;
            let Some(lane) = self.lanes.get_mut(usize::from(port)) else { return waiting.taken() };
            let Some(mut buffer) = lane.port.allocate() else { return };
            let longest = usize::from(self.state.ports.get(port).mtu) + ethernet::LENGTH + TAG;
            let copied = copy(&waiting, longest, &mut buffer);
            waiting.taken();
            self.counters.created += 1;
            self.counters.ports[usize::from(port)].from_kernel += 1;
            match copied {
                Ok(()) => lane.push(buffer, Receipt::NONE),
                Err(reason) => self.discard(buffer, reason),
            }
            if self.lanes[usize::from(port)].out.len() > 2 * VECTOR {
                self.send_lane(port as PortIndex);
            }
        }
    }
}

fn copy<B: Buffer>(waiting: &Waiting<'_>, longest: usize, buffer: &mut B) -> Result<(), DropReason> {
    let (front, back) = waiting.frame();
    let length = front.len() + back.len();
    if length > longest {
        return Err(DropReason::MtuExceeded);
    }
    let bytes = buffer.append(length).ok_or(DropReason::NoHeadroom)?;
    let (to_front, to_back) = bytes.split_at_mut_checked(front.len()).ok_or(DropReason::NoHeadroom)?;
    to_front.copy_from_slice(front);
    to_back.copy_from_slice(back);
    Ok(())
}

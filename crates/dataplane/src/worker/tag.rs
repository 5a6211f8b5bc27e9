//! VLANs (IEEE 802.1Q): a port of one takes and gives tagged frames alone. Tags go before the graph sees a frame, and
//! come when it has left it, so that the path is the same with and without.

use super::Worker;
use crate::counters::DropReason;
use crate::frame::PortIndex;
use crate::port::Port;
use packet::Buffer;
use packet::vlan::{CUSTOMER, Tag, pop, push};

/// Takes the tag off a frame received on a port of this VLAN, or says why it is not to be taken.
pub(super) fn take_off<B: Buffer>(buffer: &mut B, vlan: Option<u16>) -> Result<(), DropReason> {
    match vlan {
        Some(vlan) if pop(buffer).is_none_or(|tag| tag.id != vlan) => Err(DropReason::OtherVlan),
        _ => Ok(()),
    }
}

impl<P: Port> Worker<P> {
    /// Tags what is about to go out of a port.
    pub(super) fn tag(&mut self, index: PortIndex) {
        let Some(vlan) = self.state.ports.get(index).vlan else { return };
        let lane = &mut self.lanes[usize::from(index)];
        let mut at = 0;
        while let Some(buffer) = lane.out.get_mut(at) {
            if push(buffer, CUSTOMER, Tag::new(vlan)).is_some() {
                at += 1;
                continue;
            }
            self.trash.push(lane.out.remove(at));
            self.state.take_back(lane.receipts.remove(at));
            self.counters.count_drops(DropReason::NoHeadroom, 1);
        }
    }
}

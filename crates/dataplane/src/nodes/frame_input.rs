//! Takes frames of an Ethernet data network to the session their destination is behind (TS 23.501 5.6.10.2).

use crate::counters::DropReason;
use crate::frame::{Fate, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::{Buffer, ethernet};

pub(crate) struct FrameInput;

impl<B: Buffer> Node<B> for FrameInput {
    const ID: NodeId = NodeId::FrameInput;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Some(header) = ethernet::Header::parse(packet.buffer.data()) else {
            return Next::drop(DropReason::EthernetTruncated);
        };
        if let Some(owner) = state.steering.other_owner_of_frames() {
            return Next::End(Fate::HandOff(owner));
        }
        if header.source.is_group() {
            return Next::drop(DropReason::FrameSource);
        }
        let (destination, network) = (header.destination, packet.meta.instance);
        // A station that was behind a user and is in the network now has moved.
        state.switch.forget(header.source, network);
        if destination.is_group() {
            return Next::End(Fate::Switch);
        }
        match state.switch.find(destination, network) {
            Some(session) => {
                packet.meta.session = session;
                Next::To(NodeId::FrameClassify)
            }
            None => Next::drop(DropReason::FrameUnknownStation),
        }
    }
}

//! Takes a frame out of a tunnel of a session that carries frames, and learns who sent it.

use super::frame_classify;
use crate::counters::DropReason;
use crate::frame::{Fate, Meta, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{Key, State, Vlans};
use packet::{Buffer, ethernet};
use rules::Direction;

pub(crate) struct FrameUser;

impl<B: Buffer> Node<B> for FrameUser {
    const ID: NodeId = NodeId::FrameUser;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        // Taken for an IP packet on its way, and cut to its length: a frame for a group whose address begins like one.
        if packet.meta.bytes != 0 {
            return Next::drop(DropReason::FrameLikePacket);
        }
        let Some(header) = ethernet::Header::parse(packet.buffer.data()) else {
            return Next::drop(DropReason::EthernetTruncated);
        };
        if header.source.is_group() {
            return Next::drop(DropReason::FrameSource);
        }
        // Frames to the user, from another user plane, come from elsewhere.
        if packet.meta.direction() == Direction::Uplink
            && let Err(reason) =
                state.switch.learn(packet.meta.session, (header.source, vlans(packet)), state.now_ns)
        {
            return Next::drop(reason);
        }
        Next::To(NodeId::FrameClassify)
    }
}

/// Of a frame's tags. Those that cannot be read somebody else finds.
fn vlans<B: Buffer>(packet: &Packet<B>) -> Vlans {
    let (c_tag, s_tag) = frame_classify::tags(packet.buffer.data()).map_or((None, None), |(tags, _)| tags);
    (c_tag.map(|tag| tag.id), s_tag.map(|tag| tag.id))
}

/// Where a packet in a tunnel goes whose session carries frames; `None` for all others. Nothing else may read its payload
/// as an IP packet.
#[inline]
pub(super) fn behind_tunnel(state: &mut State, meta: &mut Meta) -> Option<Next> {
    if !state.steering.has_frames() && !state.switch.is_used() {
        return None;
    }
    look_behind(state, meta)
}

#[cold]
fn look_behind(state: &mut State, meta: &mut Meta) -> Option<Next> {
    let key = state.ports.tunnel_key(meta);
    if let Some(session) = state.sessions.by_tunnel(key) {
        meta.session = session;
        return state.switch.carries(session).then_some(Next::To(NodeId::FrameUser));
    }
    let owner = state.steering.elsewhere_of_frames(Key::frames(key), meta.handed)?;
    Some(Next::End(Fate::HandOff(owner)))
}

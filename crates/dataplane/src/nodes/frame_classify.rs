//! Finds the first PDR of the session that a frame matches (TS 29.244 5.2.1), for each frame anew.

use super::classify;
use crate::counters::DropReason;
use crate::frame::{Meta, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{State, StepIndex};
use packet::five_tuple::FiveTuple;
use packet::vlan::{CUSTOMER, Tag, Tags};
use packet::{Buffer, ethernet};
use rules::{Arrival, FrameArrival, FrameTag, Qfi, Teid};

pub(crate) struct FrameClassify;

impl<B: Buffer> Node<B> for FrameClassify {
    const ID: NodeId = NodeId::FrameClassify;

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Some(session) = state.sessions.get(packet.meta.session) else {
            return Next::drop(DropReason::NoSession);
        };
        let Some(program) = state.switch.program(packet.meta.session) else {
            return Next::drop(DropReason::NoSession);
        };
        let frame = packet.buffer.data();
        let Some(arrival) = arrival(&packet.meta, frame, program.classifier.looks_at_packets()) else {
            return Next::drop(DropReason::FrameTags);
        };
        let Ok(bytes) = u16::try_from(frame.len()) else { return Next::drop(DropReason::MtuExceeded) };
        let found = program.classifier.find(&arrival);
        packet.meta.step = found.map_or(StepIndex::NONE, |number| session.step(number));
        packet.meta.bytes = bytes;
        if found.is_some() { Next::To(NodeId::FrameForward) } else { Next::drop(DropReason::NoPdr) }
    }
}

/// A frame as classifiers see it; `None` where its tags cannot be read.
fn arrival(meta: &Meta, frame: &[u8], looks_at_packets: bool) -> Option<FrameArrival> {
    let header = ethernet::Header::parse(frame)?;
    let ((c_tag, s_tag), tags) = self::tags(frame)?;
    let is_ip = matches!(tags.ethertype, ethernet::IPV4 | ethernet::IPV6);
    let packet = frame.get(tags.length..).filter(|_| looks_at_packets && is_ip);
    let tuple = packet.and_then(|packet| FiveTuple::parse(packet).ok().map(|found| found.tuple));
    Some(FrameArrival {
        source: meta.source,
        instance: meta.instance,
        teid: meta.tunnelled().then_some(Teid(meta.teid)),
        qfi: Qfi::new(meta.qfi),
        from: header.source.0,
        to: header.destination.0,
        c_tag: c_tag.map(tag),
        s_tag: s_tag.map(tag),
        ethertype: tags.ethertype,
        // A later fragment shows its protocol, and no flow knows what the first one said.
        packet: tuple.map(|tuple| Arrival { protocol: tuple.protocol, ..classify::arrival(meta, &tuple) }),
    })
}

/// The customer's tag and the provider's.
type BothTags = (Option<Tag>, Option<Tag>);

/// The customer's tag and the provider's, and all that stands before the payload; `None` where they cannot be read.
pub(super) fn tags(frame: &[u8]) -> Option<(BothTags, Tags)> {
    let tags = Tags::parse(frame).ok()?;
    Some(match ethernet::Header::parse(frame)?.ethertype() {
        CUSTOMER => ((tags.outer, None), tags),
        // A provider's, be it of before 802.1ad, or none.
        _ => ((tags.inner, tags.outer), tags),
    })
}

const fn tag(tag: Tag) -> FrameTag {
    FrameTag { id: tag.id, priority: tag.priority, drop_eligible: tag.drop_eligible }
}

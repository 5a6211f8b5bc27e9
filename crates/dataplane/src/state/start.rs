//! What is told of the packet that a URR's traffic began with (TS 29.244 7.5.8.3, Application Detection Information).

use super::{FlowKey, SessionIndex, State, StepIndex, View};
use crate::frame::Packet;
use crate::nodes::arrival;
use dplink::Start;
use packet::Buffer;
use packet::five_tuple::FiveTuple;
use rules::Arrival;

impl State {
    /// Of a packet that is counted by its step; `None` of frames, which have no flow, and where it was not known in time of
    /// what application it is.
    pub(crate) fn start_of<B: Buffer>(&self, packet: &Packet<B>) -> Option<Start> {
        let meta = &packet.meta;
        if meta.key == FlowKey::NONE || meta.waits.is_some() {
            return None;
        }
        let found = FiveTuple::parse(packet.buffer.data()).ok()?;
        let view = View::new(packet.buffer.data(), &found, meta)?.held_by(self.sessions.get(meta.session));
        // Of lookups nobody remembers what they are of.
        let application = match view.is_dns() {
            true => self.content.application(self.content.of_lookup(&view)),
            false => self.content.application(self.flows.detected(meta.flow())),
        };
        let arrival = Arrival { application, ..arrival(meta, &found.tuple) };
        let session = self.sessions.cells.session(meta.step);
        Some(self.start((session, meta.step), &arrival))
    }

    /// Of a packet seen before. The PDR is told where it is certain: where the flow has been forgotten, or a quota's FAR
    /// stands in, it is not.
    pub(crate) fn start(&self, (session, step): (SessionIndex, StepIndex), arrival: &Arrival) -> Start {
        let pdr = self.sessions.get(session).and_then(|session| {
            let number = session.classifier.find(arrival).filter(|number| session.step(*number) == step)?;
            Some(self.sessions.pdr(session, number))
        });
        Start {
            pdr,
            ue: arrival.ue,
            remote: arrival.remote,
            protocol: arrival.protocol,
            ue_port: arrival.ue_port,
            remote_port: arrival.remote_port,
        }
    }
}

//! A session in force goes on with what a former life of the engine knew of its flows.

use super::State;
use crate::lasting::Inherited;

impl State {
    /// Of a session that has just come into force, by its first rules.
    pub(crate) fn inherit(&mut self, inherited: &mut Inherited) {
        for redirection in inherited.redirections.drain(..) {
            self.inherit_redirection(redirection);
        }
        let Self { connections, flows, now_ns, .. } = self;
        for flow in inherited.flows.drain(..) {
            flows.inherit(flow, *now_ns);
        }
        for connection in inherited.connections.drain(..) {
            connections.inherit(connection, |key| flows.hash(key), *now_ns);
        }
    }
}

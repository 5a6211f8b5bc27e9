//! Associations that we ask for (TS 29.244 6.2.6.3).

use super::features;
use crate::exchange::{Asking, Purpose};
use crate::interface::Level;
use crate::node::Node;
use crate::support;
use pfcp::{AssociationSetupRequest, AssociationSetupResponse, Message};
use session::{AssociationRecord, PeerNews};
use std::net::SocketAddr;

impl Node {
    pub(crate) fn ask_to_associate(&mut self, address: SocketAddr) {
        let request = AssociationSetupRequest {
            node_id: self.config.node_id.clone(),
            recovery_time_stamp: self.recovery_time_stamp,
            up_function_features: Some(support::features(&self.config)),
            cp_function_features: None,
            pools: self.pool_information(),
            smf_set_id: None,
            alternatives: vec![],
            carried: self.ip_resources(),
        };
        let again = self.now + self.config.heartbeat_interval;
        let is_asked = self.ask(address, Purpose::Setup, |sequence| Message::node(sequence, request));
        if let Some(wanted) = self.peers.wanted_mut(address) {
            (wanted.is_asked, wanted.next) = (is_asked, again);
        }
    }

    pub(crate) fn answered_setup(&mut self, asking: &Asking, response: AssociationSetupResponse) {
        self.setup_is_over(asking.to);
        let node_id = response.node_id.to_string();
        if !response.cause.is_accepted() {
            let cause = response.cause.number();
            self.note(Level::Warning, format!("{node_id} refuses to associate: cause {cause}"));
        } else if !self.make_room_for(&node_id, asking.to.ip()) {
            self.note(Level::Warning, format!("no room to associate with {node_id}"));
        } else {
            let recovery_time_stamp = response.recovery_time_stamp;
            let (alternatives, preferred) = self.alternatives(&node_id, &response.alternatives);
            let record = AssociationRecord {
                node_id: node_id.clone(),
                address: asking.to,
                recovery_time_stamp,
                features: features(response.cp_function_features.as_ref()),
                set_id: response.smf_set_id.unwrap_or_default(),
                alternatives,
                preferred,
                answers_heartbeats: self.answers_heartbeats(&node_id),
                era: self.era(&node_id),
                ends_ms: None,
                ending_sets: vec![],
                set_up_ms: self.wall_ms(),
                named_ms: self.wall_ms(),
                capabilities: self.capabilities(),
                unconfirmed: PeerNews::default(),
            };
            self.associate(record, None, None);
        }
    }

    /// Answered or not: the next attempt, if one is needed, comes an interval from now.
    pub(crate) fn setup_is_over(&mut self, address: SocketAddr) {
        let again = self.now + self.config.heartbeat_interval;
        if let Some(wanted) = self.peers.wanted_mut(address) {
            (wanted.is_asked, wanted.next) = (false, again);
        }
    }
}

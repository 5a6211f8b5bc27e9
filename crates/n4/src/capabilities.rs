//! What control planes are told of us when they associate: features, pools of users' addresses, where GTP-U is served. An operator
//! or a new version changes it while associations last: then each is told, once (TS 29.244 6.2.7.3).

use crate::exchange::{Purpose, digest};
use crate::interface::{Level, Output};
use crate::node::Node;
use crate::support;
use machine::Time;
use pfcp::{AssociationUpdateRequest, Cause, Message};

/// Who does not answer is told again after a heartbeat's interval, then after twice as long, up to so many doublings (85 minutes,
/// usually): some control planes never answer an update from a user plane.
pub(crate) const DOUBLINGS: u32 = 9;

/// A control plane knows of us what is not true any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outdated {
    /// When it is told.
    pub(crate) next: Time,
    /// How often it has not answered.
    unheard: u32,
}

impl Outdated {
    const NOW: Self = Self { next: Time::ZERO, unheard: 0 };
}

impl Node {
    /// What control planes are told, as a number that is another where that is another.
    pub(crate) fn capabilities(&self) -> u64 {
        digest(&pfcp::encode(&Message::node(0, self.capabilities_update())))
    }

    fn capabilities_update(&self) -> AssociationUpdateRequest {
        AssociationUpdateRequest {
            up_function_features: Some(support::features(&self.config)),
            pools: self.pool_information(),
            carried: self.ip_resources(),
            ..AssociationUpdateRequest::new(self.config.node_id.clone())
        }
    }

    /// Those of the database who were told something else in a former life of ours.
    pub(crate) fn find_outdated(&mut self) {
        let now = self.capabilities();
        for peer in self.peers.iter_mut().filter(|peer| peer.record.capabilities != now) {
            peer.outdated = Some(Outdated::NOW);
        }
    }

    /// Tells them, but for those who are silent, who hear of it when they answer again, and those who are to release us.
    pub(crate) fn tell_capabilities(&mut self) {
        for node_id in self.peers.outdated(self.now) {
            let wait = self.config.t1 * self.config.n1 + self.config.heartbeat_interval;
            let Some(association) = self.peers.get_mut(&node_id) else { continue };
            let (address, is_up) = (association.record.address, association.is_up());
            if let Some(outdated) = &mut association.outdated {
                outdated.next = self.now + wait;
            }
            if is_up && association.ends.is_none() {
                let (request, purpose) = (self.capabilities_update(), Purpose::Capabilities(node_id));
                self.ask(address, purpose, |sequence| Message::node(sequence, request));
            }
        }
    }

    /// It was heard, whatever the answer says.
    pub(crate) fn capabilities_told(&mut self, node_id: &str, cause: Option<Cause>) {
        let now = self.capabilities();
        let Some(association) = self.peers.get_mut(node_id) else { return };
        association.outdated = None;
        association.record.capabilities = now;
        self.out.push(Output::SaveAssociation(association.record.clone()));
        let (level, how) = match cause.filter(|cause| !cause.is_accepted()) {
            Some(cause) => (Level::Warning, format!("refuses to hear: cause {}", cause.number())),
            None => (Level::Info, "was told".to_owned()),
        };
        self.note(
            level,
            format!("{node_id} {how} that features, pools or GTP-U addresses of ours have changed"),
        );
    }

    pub(crate) fn capabilities_unheard(&mut self, node_id: &str) {
        let Some(association) = self.peers.get_mut(node_id) else { return };
        let Some(outdated) = &mut association.outdated else { return };
        outdated.next = self.now + self.config.heartbeat_interval * (1 << outdated.unheard);
        outdated.unheard = (outdated.unheard + 1).min(DOUBLINGS);
    }
}

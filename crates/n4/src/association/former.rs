//! What a former life of a control plane was answered. One that begins anew may count its requests anew, and ask the same again: what
//! was answered then is not for it. But datagrams of its former life may still be on their way, and must not be carried out in the new
//! one. So answers are forgotten only to requests whose numbers it may come to: those behind the number it begins with. Set-ups tell
//! their lives by their time stamps, so that an octet-identical one is a copy.

use crate::exchange::{Asked, Key, SEQUENCES};
use crate::interface::Level;
use crate::node::Node;
use machine::Seen;
use pfcp::{AssociationSetupRequest, Body};
use std::net::SocketAddr;

/// Of the response to a set-up of an association (TS 29.244 table 7.3-1).
const SETUP_RESPONSE: u8 = 6;

impl Node {
    /// What it told of applications is forgotten, as are its requests, the one at hand, too. `first` is the number of the first that is
    /// known of its new life.
    pub(crate) fn begins_anew(&mut self, node_id: &str, (from, first): (SocketAddr, Option<u32>)) {
        self.note(Level::Warning, format!("{node_id} has restarted"));
        self.drop_pfds_of(node_id);
        self.forget_requests(node_id, from, |key| first.is_none_or(|first| is_behind(key.sequence, first)));
    }

    /// One that associates where it had no association counts anew, too: what ended the last one may end this one.
    pub(super) fn begins(&mut self, node_id: &str, asked: &Asked) {
        let Key { from, sequence: first, .. } = asked.key;
        self.forget_requests(node_id, from, |key| is_behind(key.sequence, first));
    }

    /// Whoever associates after the end of an association may count its requests anew, and say the same as it did: what that was
    /// answered then is not for it. The request that ends it is answered yet.
    pub(super) fn forget_answers(&mut self, node_id: &str, last: Option<Key>) {
        let address = self.peers.get(node_id).map(|association| association.record.address);
        if let Some(from) = last.map(|key| key.from).or(address) {
            self.forget_requests(node_id, from, |key| last != Some(*key));
        }
    }

    /// A control plane counts its requests anew: answers to earlier ones are not for it. Requests to associate that wait are not
    /// forgotten: they are of its new life, or another's. Of several behind one address, it is known by its port alone.
    fn forget_requests(&mut self, node_id: &str, from: SocketAddr, may_come: impl Fn(&Key) -> bool) {
        let Some(association) = self.peers.get(node_id) else { return };
        let address = association.record.address.ip();
        let is_alone = self.peers.at(address).nth(1).is_none();
        let associating = self.endings.associating();
        let is_its = |key: &Key| if is_alone { key.from.ip() == address } else { key.from == from };
        let lasts = |answer: Option<&[u8]>| {
            answer.and_then(pfcp::peek).is_some_and(|header| header.message_type == SETUP_RESPONSE)
        };
        self.answers.forget_all(|key, answer| {
            is_its(key) && may_come(key) && !associating.contains(key) && !lasts(answer)
        });
    }

    /// A set-up that was accepted, and comes again when that association is over, is carried out anew: control planes that do not
    /// know the time, and begin all over, say the same every time.
    pub(crate) fn forget_void(&mut self, asked: &Asked, request: &AssociationSetupRequest) {
        if self.peers.get(&request.node_id.to_string()).is_some() {
            return;
        }
        let Seen::Answered(bytes) = self.answers.seen(&asked.key) else { return };
        let body = pfcp::decode(bytes).map(|message| message.body);
        if matches!(body, Ok(Body::AssociationSetupResponse(response)) if response.cause.is_accepted()) {
            self.answers.forget(&asked.key);
        }
    }
}

/// Numbers come round.
const fn is_behind(sequence: u32, first: u32) -> bool {
    let ahead = sequence.wrapping_sub(first) % SEQUENCES;
    ahead != 0 && ahead < SEQUENCES / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_where_they_come_round() {
        assert!(is_behind(2, 1) && is_behind(0, SEQUENCES - 1));
        assert!(!is_behind(1, 1) && !is_behind(1, 2) && !is_behind(SEQUENCES - 1, 0));
    }
}

//! Answers that outlive the process. A control plane whose answer was lost asks again (TS 29.244 6.4), and a process that has begun since
//! must not carry that out again: an establishment would make another session in the place of the one that was promised, rules
//! that are created would be there. So the last answer of each session is kept with it, for as long as answers are
//! remembered. What can be made again from the session is not: of most answers a few octets are left.

use crate::exchange::{Asked, Key, answer_to};
use crate::node::Node;
use pfcp::{Body, Cause, FSeid, SessionEstablishmentResponse, SessionModificationResponse};
use rules::Seid;
use session::{AnswerKind, AnswerRecord, SessionRecord};

/// Of a message: version, type and length, which the length does not count (TS 29.244 7.2.2.2).
const UNCOUNTED: usize = 4;

impl Node {
    /// An answer as it is kept.
    pub(crate) fn answer_record(
        &self,
        (asked, bytes): (&Asked, &[u8]),
        kind: AnswerKind,
        names: (Seid, u64),
    ) -> Box<AnswerRecord> {
        let Asked { key: Key { from, sequence, digest }, priority, .. } = *asked;
        let head = self.head(asked, kind, names);
        let rest = bytes.get(UNCOUNTED..).and_then(|rest| rest.strip_prefix(head.get(UNCOUNTED..)?));
        let (kind, octets) = rest.map_or((AnswerKind::Whole, bytes), |rest| (kind, rest));
        let (at_ms, octets) = (self.wall_ms(), octets.to_vec());
        Box::new(AnswerRecord { to: from, sequence, digest, at_ms, priority, kind, octets })
    }

    /// What an answer of this kind says in any case of a session with these names, ours and its control plane's.
    fn head(&self, asked: &Asked, kind: AnswerKind, (seid, cp_seid): (Seid, u64)) -> Vec<u8> {
        let body: Body = match kind {
            AnswerKind::Whole => return vec![],
            AnswerKind::Established => self.promised(seid).into(),
            AnswerKind::Modified => SessionModificationResponse::new(Cause::RequestAccepted).into(),
        };
        answer_to(asked, Some(cp_seid), body)
    }

    /// That a session is there.
    pub(crate) fn promised(&self, seid: Seid) -> SessionEstablishmentResponse {
        SessionEstablishmentResponse {
            node_id: self.config.node_id.clone(),
            cause: Cause::RequestAccepted,
            offending_ie: None,
            up_f_seid: Some(FSeid { seid: seid.0, ipv4: self.config.ipv4, ipv6: self.config.ipv6 }),
            created_pdrs: vec![],
            created_traffic_endpoints: vec![],
            load: None,
            overload: None,
            failed_rule_id: None,
            carried: vec![],
        }
    }

    /// A request that came before a restart may come again after it: it gets the same answer.
    pub(crate) fn restore_answer(&mut self, record: &SessionRecord) {
        let Some(answer) = &record.usage.answer else { return };
        let lifetime_ms = self.config.answer_lifetime.as_millis() as u64;
        // What is left of a session that is over is kept for nothing else.
        if !record.usage.is_over && answer.at_ms.saturating_add(lifetime_ms) <= self.wall_ms() {
            return;
        }
        let key = Key { from: answer.to, sequence: answer.sequence, digest: answer.digest };
        let asked = Asked { key, priority: answer.priority, procedure: None };
        let bytes =
            whole(self.head(&asked, answer.kind, (record.seid, record.cp_f_seid.seid)), &answer.octets);
        self.answers.begin(key, self.now);
        self.answers.answer(&key, bytes);
    }
}

/// The message with more information elements at its end.
fn whole(mut head: Vec<u8>, rest: &[u8]) -> Vec<u8> {
    head.extend_from_slice(rest);
    let length = head.len().saturating_sub(UNCOUNTED) as u16;
    if let Some(place) = head.get_mut(2..UNCOUNTED) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    head
}

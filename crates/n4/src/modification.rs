//! Session Modification (TS 29.244 6.3.3).

use crate::establishment::cp_f_seid;
use crate::exchange::Asked;
use crate::node::Node;
use crate::refusal::Refusal;
use crate::sessions::{Pending, Work};
use crate::support;
use crate::translate::Translator;
use pfcp::{Cause, SessionModificationRequest, SessionModificationResponse};
use rules::Seid;
use session::SessionRecord;

impl Node {
    pub(crate) fn modify(
        &mut self,
        asked: &Asked,
        seid: Seid,
        request: &SessionModificationRequest,
    ) -> Result<(), Refusal> {
        support::modification(request)?;
        let session = self.sessions.get(seid).ok_or(Refusal::of(Cause::SessionContextNotFound))?;
        let before = &session.record;
        let cp_f_seid = request.cp_f_seid.as_ref().map_or(Ok(before.cp_f_seid), cp_f_seid)?;
        // A name of another session of the same owner cannot be this one's, too.
        let named = self.sessions.of_owner(&before.owner, cp_f_seid.seid);
        if named.is_some_and(|other| other != seid) {
            return Err(Refusal::incorrect(pfcp::ie::F_SEID));
        }
        let translator = Translator::new(&mut self.tunnels, self.config.access_address, seid, &before.rules);
        let (rules, taken) = translator.modification(request)?;
        let next = SessionRecord { cp_f_seid, rules, ..before.clone() };
        self.order(seid, asked, Work::Modify(Box::new(next), taken));
        Ok(())
    }
}

pub(crate) fn modified(pending: &Pending) -> SessionModificationResponse {
    SessionModificationResponse {
        cause: Cause::RequestAccepted,
        offending_ie: None,
        created_pdrs: pending.created_pdrs(),
        failed_rule_id: None,
        carried: vec![],
    }
}

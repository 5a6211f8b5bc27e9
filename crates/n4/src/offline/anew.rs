//! Sessions that the data plane is told of anew though their control planes ask for nothing, as where predefined rules have
//! changed. It comes to the same as a request that changes them: counts as of just before are asked for and close containers, and a
//! meter that is no more is charged when the data plane tells the last of it.

use super::meters;
use crate::interface::Output;
use crate::node::Node;
use charging::{Conditions, Reading};
use dplink::UsageCounts;
use rules::{Seid, UrrId};

/// What of the conditions of charging changes so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changing {
    /// With what the data plane is told next.
    pub(crate) next: Conditions,
    /// With what it was told last: by our question about the counts before.
    asked: Option<(u64, Conditions)>,
}

impl Node {
    /// The data plane is about to be told: it does one after the other. Where it is not there, what is known must do.
    pub(crate) fn ask_before_put(&mut self, seid: Seid) {
        let is_there = self.epoch.is_some();
        let Some(charging) = &self.config.charging else { return };
        let charged = |session: &&mut crate::sessions::Session| session.record.charging.is_some();
        let Some(session) = self.sessions.get_mut(seid).filter(charged) else { return };
        let next = std::mem::take(&mut session.changing.next);
        if next.is_empty() {
            return;
        }
        self.token += 1;
        let token = self.token;
        let before = session.changing.asked.map_or(Conditions::default(), |(_, before)| before);
        session.changing.asked = Some((token, before.and(next)));
        let urrs = meters::unheard(&session.record, Some(charging), u64::MAX);
        if is_there && !urrs.is_empty() {
            self.out.push(Output::QueryUsage { session: seid, urrs, token, is_reported: false });
        } else {
            self.close_changed(seid, Some(token));
        }
    }

    /// The counts of then have come, or without a `token`, never will: containers end there. Whether that was what they were
    /// asked for.
    pub(crate) fn close_changed(&mut self, seid: Seid, token: Option<u64>) -> bool {
        let now_ms = self.wall_ms();
        let Some(session) = self.sessions.get_mut(seid) else { return false };
        let is_it = |asked: &mut (u64, Conditions)| token.is_none_or(|token| asked.0 == token);
        let Some((_, conditions)) = session.changing.asked.take_if(is_it) else { return false };
        let readings = meters::readings(&session.record, self.config.charging.as_ref());
        let charged = session.record.charging.as_mut().zip(self.config.charging.as_ref());
        let closed = charged.map(|(charged, charging)| {
            charged.account.change(&readings, conditions, (&charging.policy, now_ms))
        });
        session.save();
        self.charge_partial(seid, closed.unwrap_or_default());
        true
    }

    /// Meters of ours that the data plane has told the last of, as no rule is charged by them any more.
    pub(crate) fn retire_gone(&mut self, seid: Seid, told: &[UsageCounts]) {
        let now_ms = self.wall_ms();
        let Some(session) = self.sessions.get_mut(seid) else { return };
        let needed = meters::needed(&session.record, &self.config);
        let readings = meters::readings(&session.record, self.config.charging.as_ref());
        let Some(charged) = &mut session.record.charging else { return };
        let is_gone = |urr: UrrId| told.iter().any(|told| told.urr == urr) && !needed.contains(&urr);
        let own: Vec<UrrId> = charged.own.iter().map(|meter| meter.urr).filter(|urr| is_gone(*urr)).collect();
        let is_last = |reading: &&Reading| own.contains(&UrrId(reading.meter));
        let last: Vec<Reading> = readings.iter().filter(is_last).copied().collect();
        charged.account.retire(&last, now_ms);
        charged.own.retain(|meter| !own.contains(&meter.urr));
    }
}

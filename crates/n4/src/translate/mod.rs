//! From what a control plane asks for to rules, taking tunnel endpoints on the way.

mod far;
mod pdr;
mod qer;
mod urr;

use crate::refusal::Refusal;
use crate::support;
use crate::tunnels::{Tunnels, Unavailable};
use crate::usage::Given;
use crate::values::Ours;
use pfcp::{CreatedPdr, SessionEstablishmentRequest, SessionModificationRequest};
use rules::{
    BarId, Change, FTeid, Far, FarId, OuterHeaderCreation, Pdr, PdrId, QerId, Rules, Seid, Teid, UrrId,
};
use std::collections::{BTreeMap, HashMap};

/// What one request took and made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// TEIDs that were not the session's before.
    pub(crate) teids: Vec<Teid>,
    /// What the answer tells of the endpoints we chose.
    pub(crate) created_pdrs: Vec<CreatedPdr>,
    /// What is given to URRs.
    pub(crate) given: Vec<Given>,
    /// Tunnels that end.
    pub(crate) end_markers: Vec<OuterHeaderCreation>,
}

/// Translates one request.
pub(crate) struct Translator<'a> {
    tunnels: &'a mut Tunnels,
    session: Seid,
    ours: Ours,
    /// The session's rules before the request, and where in them to find some.
    before: &'a Rules,
    pdrs: HashMap<PdrId, &'a Pdr>,
    fars: HashMap<FarId, &'a Far>,
    /// By CHOOSE ID, which holds within one request (TS 29.244 8.2.3).
    chosen: BTreeMap<u8, FTeid>,
    taken: Taken,
}

impl<'a> Translator<'a> {
    pub(crate) fn new(tunnels: &'a mut Tunnels, ours: Ours, session: Seid, before: &'a Rules) -> Self {
        Self {
            tunnels,
            session,
            ours,
            before,
            pdrs: before.pdrs.iter().map(|pdr| (pdr.id, pdr)).collect(),
            fars: before.fars.iter().map(|far| (far.id, far)).collect(),
            chosen: BTreeMap::new(),
            taken: Taken::default(),
        }
    }

    /// The rules of a new session.
    pub(crate) fn establishment(
        mut self,
        request: &SessionEstablishmentRequest,
    ) -> Result<(Rules, Taken), Refusal> {
        let rules = self.new_rules(request).and_then(|mut rules| {
            let known = pdr::session_addresses(rules.pdrs.iter().map(|pdr| &pdr.pdi));
            rules.pdrs.iter_mut().for_each(|pdr| known.infer(&mut pdr.pdi));
            rules.check()?;
            support::urrs(&rules)?;
            Ok(rules)
        });
        self.finish(rules)
    }

    fn new_rules(&mut self, request: &SessionEstablishmentRequest) -> Result<Rules, Refusal> {
        Ok(Rules {
            pdrs: each(&request.create_pdrs, |pdr| self.pdr(pdr))?,
            fars: each(&request.create_fars, far::far)?,
            qers: each(&request.create_qers, qer::qer)?,
            urrs: each(&request.create_urrs, |urr| self.urr(urr))?,
            bars: request.create_bar.iter().map(qer::bar).collect(),
        })
    }

    /// The rules of a session after a modification.
    pub(crate) fn modification(
        mut self,
        request: &SessionModificationRequest,
    ) -> Result<(Rules, Taken), Refusal> {
        let rules = self.change(request).and_then(|mut change| {
            let known = self.before.pdrs.iter().chain(&change.create.pdrs).map(|pdr| &pdr.pdi);
            let updated = change.update_pdrs.iter().filter_map(|pdr| pdr.pdi.as_ref());
            let known = pdr::session_addresses(known.chain(updated));
            change.create.pdrs.iter_mut().for_each(|pdr| known.infer(&mut pdr.pdi));
            let updated = change.update_pdrs.iter_mut().filter_map(|pdr| pdr.pdi.as_mut());
            updated.for_each(|pdi| known.infer(pdi));
            let rules = self.before.change(change)?;
            support::urrs(&rules)?;
            self.taken.end_markers = far::end_markers(&self.fars, &rules, request);
            Ok(rules)
        });
        self.finish(rules)
    }

    /// A request is done whole or not at all: what a refused one took goes back.
    fn finish(self, rules: Result<Rules, Refusal>) -> Result<(Rules, Taken), Refusal> {
        match rules {
            Ok(rules) => Ok((rules, self.taken)),
            Err(refusal) => {
                self.taken.teids.iter().for_each(|teid| self.tunnels.release(*teid));
                Err(refusal)
            }
        }
    }

    fn change(&mut self, request: &SessionModificationRequest) -> Result<Change, Refusal> {
        Ok(Change {
            remove_pdrs: request.remove_pdrs.iter().map(|rule| PdrId(rule.pdr_id)).collect(),
            remove_fars: request.remove_fars.iter().map(|rule| FarId(rule.far_id)).collect(),
            remove_qers: request.remove_qers.iter().map(|rule| QerId(rule.qer_id)).collect(),
            remove_urrs: request.remove_urrs.iter().map(|rule| UrrId(rule.urr_id)).collect(),
            remove_bars: request.remove_bar.iter().map(|rule| BarId(rule.bar_id)).collect(),
            create: Rules {
                pdrs: each(&request.create_pdrs, |pdr| self.pdr(pdr))?,
                fars: each(&request.create_fars, far::far)?,
                qers: each(&request.create_qers, qer::qer)?,
                urrs: each(&request.create_urrs, |urr| self.urr(urr))?,
                bars: request.create_bar.iter().map(qer::bar).collect(),
            },
            update_pdrs: each(&request.update_pdrs, |pdr| self.pdr_update(pdr))?,
            update_fars: each(&request.update_fars, |far| far::update(&self.fars, far))?,
            update_qers: each(&request.update_qers, qer::update)?,
            update_urrs: each(&request.update_urrs, |urr| self.urr_update(urr))?,
            update_bars: request.update_bar.iter().map(qer::bar_update).collect(),
        })
    }

    fn claim(&mut self, teid: Teid) -> Result<(), Unavailable> {
        if self.tunnels.claim(teid, self.session)? {
            self.taken.teids.push(teid);
        }
        Ok(())
    }
}

fn each<T, U>(items: &[T], mut with: impl FnMut(&T) -> Result<U, Refusal>) -> Result<Vec<U>, Refusal> {
    items.iter().map(&mut with).collect()
}

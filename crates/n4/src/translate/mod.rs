//! From what a control plane asks for to rules, taking tunnel endpoints on the way.

mod activation;
mod address;
mod choose;
mod endpoint;
mod ethernet;
mod far;
mod framed;
mod known;
mod pdr;
pub(crate) mod policy;
mod qer;
mod reach;
mod urr;
mod user;

pub(crate) use framed::routes as framed_routes;

use crate::config::{Config, GtpuAddress};
use crate::pfds::Pfds;
use crate::pools::Pools;
use crate::predefined::{self, NO_FAR, Predefined};
use crate::refusal::Refusal;
use crate::support;
use crate::tunnels::{Tunnels, Unavailable};
use crate::usage::Given;
use ipnet::Ipv6Net;
use known::Known;
use pfcp::{
    CreatedPdr, CreatedTrafficEndpoint, FqCsid, SessionEstablishmentRequest, SessionModificationRequest,
};
use rules::{
    BarId, Change, FTeid, Far, FarId, Interface, OuterHeaderCreation, Pdr, PdrId, PdrUpdate, QerId, RuleRef,
    Rules, Seid, UrrId,
};
use session::Extras;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::net::IpAddr;

/// What one request took and made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Endpoints that were not the session's before.
    pub(crate) f_teids: Vec<FTeid>,
    /// Users' addresses that were not the session's before.
    pub(crate) addresses: Vec<IpAddr>,
    /// What the answer tells of the endpoints and addresses we chose.
    pub(crate) created_pdrs: Vec<CreatedPdr>,
    pub(crate) created_endpoints: Vec<CreatedTrafficEndpoint>,
    /// What is given to URRs.
    pub(crate) given: Vec<Given>,
    /// What the request removes that is gone, or creates that is there.
    pub(crate) restated: Vec<Restated>,
    /// Tunnels that end.
    pub(crate) end_markers: Vec<OuterHeaderCreation>,
}

/// What is removed though it is gone, or created though it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restated {
    Rule(RuleRef),
    Endpoint(u8),
}

impl fmt::Display for Restated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => rule.fmt(f),
            Self::Endpoint(id) => write!(f, "traffic endpoint {id}"),
        }
    }
}

/// What a translation draws on.
pub(crate) struct Sources<'a> {
    pub(crate) ours: &'a [GtpuAddress],
    pub(crate) tunnels: &'a mut Tunnels,
    pub(crate) pools: &'a mut Pools,
    pub(crate) predefined: &'a Predefined,
    /// What is known of applications.
    pub(crate) pfds: &'a Pfds,
    pub(crate) config: &'a Config,
}

/// What a request comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Translated {
    pub(crate) rules: Rules,
    pub(crate) extras: Option<Box<Extras>>,
    pub(crate) taken: Taken,
}

/// Translates one request.
pub(crate) struct Translator<'a> {
    tunnels: &'a mut Tunnels,
    pools: &'a mut Pools,
    predefined: &'a Predefined,
    pfds: &'a Pfds,
    config: &'a Config,
    /// Names of networks mean something.
    has_instances: bool,
    /// The session carries Ethernet frames.
    is_of_frames: bool,
    session: Seid,
    /// The user's first address, by which the data plane places the session; TEIDs are chosen to lead there.
    user: Option<IpAddr>,
    ours: &'a [GtpuAddress],
    /// The session's rules before the request, and where in them to find some.
    before: &'a Rules,
    pdrs: Known<'a, PdrId, Pdr>,
    fars: Known<'a, FarId, Far>,
    /// By CHOOSE ID, which holds within one request (TS 29.244 8.2.3).
    chosen: BTreeMap<u8, FTeid>,
    /// Those of them that later requests may mean again.
    remembered: Vec<u8>,
    /// Where the request has FARs lead, if there are endpoints it may mean.
    destinations: BTreeMap<FarId, Interface>,
    extras: Extras,
    taken: Taken,
}

impl<'a> Translator<'a> {
    pub(crate) fn new(
        sources: Sources<'a>,
        session: Seid,
        (before, extras): (&'a Rules, Option<&Extras>),
    ) -> Self {
        Self {
            tunnels: sources.tunnels,
            pools: sources.pools,
            predefined: sources.predefined,
            pfds: sources.pfds,
            config: sources.config,
            has_instances: sources.config.has_instances(),
            is_of_frames: ethernet::are_of_frames(before),
            session,
            user: user::of_rules(before),
            ours: sources.ours,
            before,
            pdrs: Known::new(&before.pdrs, |pdr| pdr.id),
            fars: Known::new(&before.fars, |far| far.id),
            chosen: BTreeMap::new(),
            remembered: Vec::new(),
            destinations: BTreeMap::new(),
            extras: extras.cloned().unwrap_or_default(),
            taken: Taken::default(),
        }
    }

    /// The rules of a new session.
    pub(crate) fn establishment(
        mut self,
        request: &SessionEstablishmentRequest,
    ) -> Result<Translated, Refusal> {
        ethernet::check_type(request)?;
        self.is_of_frames = ethernet::is_of_frames(request);
        self.extras.fq_csids = request.fq_csids.iter().map(octets).collect();
        self.extras.group_id = request.group_id.clone().unwrap_or_default();
        let rules = self.new_rules(request).and_then(|mut rules| {
            let known = pdr::session_addresses(rules.pdrs.iter().map(|pdr| &pdr.pdi));
            rules.pdrs.iter_mut().for_each(|pdr| known.infer(&mut pdr.pdi));
            rules.check()?;
            self.check(&rules)?;
            self.remember_chosen(&rules);
            Ok(rules)
        });
        self.finish(rules)
    }

    fn new_rules(&mut self, request: &SessionEstablishmentRequest) -> Result<Rules, Refusal> {
        self.foresee_user(request)?;
        let endpoints = &request.create_traffic_endpoints;
        endpoints.iter().try_for_each(|endpoint| self.create_endpoint(endpoint, &request.create_pdrs))?;
        let linked = request.create_fars.iter().map(far::linked);
        self.check_linked(linked)?;
        let pdrs = each(&request.create_pdrs, |pdr| self.pdr(pdr))?;
        let networks = self.networks();
        let mut fars = each(&request.create_fars, |far| far::far(far, networks))?;
        fars.extend(no_far(&pdrs, &[]));
        Ok(Rules {
            pdrs,
            fars,
            qers: each(&request.create_qers, qer::qer)?,
            urrs: each(&request.create_urrs, |urr| self.urr(urr))?,
            bars: request.create_bar.iter().map(qer::bar).collect(),
        })
    }

    /// The rules of a session after a modification.
    pub(crate) fn modification(
        mut self,
        request: &SessionModificationRequest,
    ) -> Result<Translated, Refusal> {
        let rules = self.change(request).and_then(|mut change| {
            let known = self.before.pdrs.iter().chain(&change.create.pdrs).map(|pdr| &pdr.pdi);
            let updated = change.update_pdrs.iter().filter_map(|pdr| pdr.pdi.as_ref());
            let known = pdr::session_addresses(known.chain(updated));
            change.create.pdrs.iter_mut().for_each(|pdr| known.infer(&mut pdr.pdi));
            let updated = change.update_pdrs.iter_mut().filter_map(|pdr| pdr.pdi.as_mut());
            updated.for_each(|pdi| known.infer(pdi));
            self.restate(&mut change);
            let rules = self.before.change(change).map_err(|error| far::refused(error, request))?;
            self.forget_removed(&rules);
            self.forget_addresses(&rules);
            self.remember_chosen(&rules);
            self.check(&rules)?;
            urr::check_periods(&request.update_urrs, &rules)?;
            self.taken.end_markers = far::end_markers(&self.fars, &rules, request);
            Ok(rules)
        });
        self.finish(rules)
    }

    /// What the rules' own check does not see.
    fn check(&self, rules: &Rules) -> Result<(), Refusal> {
        support::urrs(rules)?;
        pdr::check_reachable(rules)?;
        reach::check(self.before, rules, self.config)?;
        // Rules of the operator that leave a PDR undecided are a mistake of his, not a control plane's way.
        let without = rules.pdrs.iter().filter(|pdr| pdr.far == NO_FAR);
        let mut activating = without.filter(|pdr| self.extras.predefined.iter().any(|(of, _)| *of == pdr.id));
        let undecided = activating.find(|pdr| !self.predefined.decide_all(self.activated(pdr.id)));
        undecided.map_or(Ok(()), |_| Err(pdr::no_far_id()))?;
        Ok(predefined::check(rules, &self.extras, self.predefined)?)
    }

    fn forget_removed(&mut self, rules: &Rules) {
        if self.extras.at_endpoint.is_empty() && self.extras.predefined.is_empty() {
            return;
        }
        let present: HashSet<PdrId> = rules.pdrs.iter().map(|pdr| pdr.id).collect();
        self.extras.at_endpoint.retain(|(pdr, _)| present.contains(pdr));
        self.extras.predefined.retain(|(pdr, _)| present.contains(pdr));
    }

    /// Addresses that neither a rule nor a traffic endpoint has any more are not the session's (TS 29.244 5.21.3): they are given
    /// back once the data plane has obeyed.
    fn forget_addresses(&mut self, rules: &Rules) {
        let endpoints = &self.extras.endpoints;
        let is_had = |address: &IpAddr| match address {
            IpAddr::V4(address) => {
                rules.pdrs.iter().any(|pdr| pdr.pdi.ue_ipv4 == Some(*address))
                    || endpoints.iter().any(|endpoint| endpoint.ue_ipv4 == Some(*address))
            }
            IpAddr::V6(address) => {
                let has = |prefix: Option<Ipv6Net>| prefix.is_some_and(|prefix| prefix.contains(address));
                rules.pdrs.iter().any(|pdr| has(pdr.pdi.ue_ipv6))
                    || endpoints.iter().any(|endpoint| has(endpoint.ue_ipv6))
            }
        };
        self.extras.addresses.retain(is_had);
    }

    /// A request is done whole or not at all: what a refused one took goes back.
    fn finish(self, rules: Result<Rules, Refusal>) -> Result<Translated, Refusal> {
        match rules {
            Ok(rules) => {
                let extras = Some(self.extras).filter(|extras| *extras != Extras::default()).map(Box::new);
                Ok(Translated { rules, extras, taken: self.taken })
            }
            Err(refusal) => {
                self.taken.f_teids.iter().for_each(|taken| self.tunnels.release(*taken, self.session));
                self.taken.addresses.iter().for_each(|address| self.pools.release(*address, self.session));
                Err(refusal)
            }
        }
    }

    fn change(&mut self, request: &SessionModificationRequest) -> Result<Change, Refusal> {
        if !request.fq_csids.is_empty() {
            self.extras.fq_csids = request.fq_csids.iter().map(octets).collect();
        }
        if let Some(group_id) = &request.group_id {
            self.extras.group_id.clone_from(group_id);
        }
        if request.cp_f_seid.is_some() {
            // Whoever named it looks after it.
            self.extras.alternative = None;
        }
        self.note_destinations(request);
        let removed: Vec<PdrId> = request.remove_pdrs.iter().map(|rule| PdrId(rule.pdr_id)).collect();
        self.foresee_addresses(request)?;
        let (remove_pdrs, moved) = self.change_endpoints(request, removed)?;
        let created = request.create_fars.iter().map(far::linked);
        self.check_linked(created.chain(request.update_fars.iter().map(far::linked_anew)))?;
        self.extras.predefined.retain(|(pdr, _)| !remove_pdrs.contains(pdr));
        let mut create = self.creations(request)?;
        let updates = each(&request.update_pdrs, |pdr| self.pdr_update(pdr))?;
        let remove_fars: Vec<FarId> = request.remove_fars.iter().map(|rule| FarId(rule.far_id)).collect();
        let left = self.left_without(&remove_fars, (&remove_pdrs, &create, &updates));
        let has_no_far = self.fars.get(NO_FAR).is_some();
        let no_far = no_far(&create.pdrs, &left).filter(|_| !has_no_far);
        create.fars.extend(no_far);
        Ok(Change {
            remove_pdrs,
            remove_fars,
            remove_qers: request.remove_qers.iter().map(|rule| QerId(rule.qer_id)).collect(),
            remove_urrs: request.remove_urrs.iter().map(|rule| UrrId(rule.urr_id)).collect(),
            remove_bars: request.remove_bar.iter().map(|rule| BarId(rule.bar_id)).collect(),
            create,
            update_pdrs: left.into_iter().chain(moved).chain(updates).collect(),
            update_fars: each(&request.update_fars, |far| far::update(&self.fars, far, self.networks()))?,
            update_qers: each(&request.update_qers, qer::update)?,
            update_urrs: each(&request.update_urrs, |urr| self.urr_update(urr))?,
            update_bars: request.update_bar.iter().map(qer::bar_update).collect(),
        })
    }

    /// Control planes in use say again what they have said.
    fn restate(&mut self, change: &mut Change) {
        self.taken.restated.extend(change.restate(self.before).into_iter().map(Restated::Rule));
        let created: HashSet<UrrId> = change.create.urrs.iter().map(|urr| urr.id).collect();
        self.taken.given.retain(|given| !given.is_new || created.contains(&given.urr));
    }

    /// PDRs that lose their FAR and are given no other have none from then on (TS 29.244 6.3.3.3).
    fn left_without(
        &self,
        fars: &[FarId],
        (removed, create, updates): (&[PdrId], &Rules, &[PdrUpdate]),
    ) -> Vec<PdrUpdate> {
        let anew = |id: FarId| create.fars.iter().any(|far| far.id == id);
        let gone: HashSet<FarId> = fars.iter().copied().filter(|id| !anew(*id)).collect();
        if gone.is_empty() {
            return vec![];
        }
        let given = updates.iter().filter(|update| update.far.is_some()).map(|update| update.id);
        let decided: HashSet<PdrId> = removed.iter().copied().chain(given).collect();
        let losing = self.before.pdrs.iter().filter(|pdr| gone.contains(&pdr.far));
        losing
            .filter(|pdr| !decided.contains(&pdr.id))
            .map(|pdr| PdrUpdate { id: pdr.id, far: Some(NO_FAR), ..PdrUpdate::default() })
            .collect()
    }

    fn creations(&mut self, request: &SessionModificationRequest) -> Result<Rules, Refusal> {
        let networks = self.networks();
        Ok(Rules {
            pdrs: each(&request.create_pdrs, |pdr| self.pdr(pdr))?,
            fars: each(&request.create_fars, |far| far::far(far, networks))?,
            qers: each(&request.create_qers, qer::qer)?,
            urrs: each(&request.create_urrs, |urr| self.urr(urr))?,
            bars: request.create_bar.iter().map(qer::bar).collect(),
        })
    }

    const fn networks(&self) -> far::Networks<'a> {
        far::Networks { has_instances: self.has_instances, ours: self.ours }
    }

    fn claim(&mut self, f_teid: FTeid) -> Result<(), Unavailable> {
        if self.tunnels.claim(f_teid, self.session)? {
            self.taken.f_teids.push(f_teid);
        }
        Ok(())
    }
}

/// The FAR of PDRs that have none, or leave theirs to predefined rules, if there are any.
fn no_far(pdrs: &[Pdr], left: &[PdrUpdate]) -> Option<Far> {
    let is_needed = !left.is_empty() || pdrs.iter().any(|pdr| pdr.far == NO_FAR);
    is_needed.then(|| predefined::dropping(NO_FAR))
}

fn octets(fq_csid: &FqCsid) -> Vec<u8> {
    fq_csid.octets()
}

fn each<T, U>(items: &[T], mut with: impl FnMut(&T) -> Result<U, Refusal>) -> Result<Vec<U>, Refusal> {
    items.iter().map(&mut with).collect()
}

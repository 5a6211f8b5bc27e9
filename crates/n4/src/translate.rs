//! From what a control plane asks for to rules, taking tunnel endpoints on the way.

use crate::refusal::Refusal;
use crate::tunnels::{Tunnels, Unavailable};
use crate::values::{self, Endpoint};
use pfcp::{
    Cause, CreateFar, CreatePdr, CreateQer, CreatedPdr, FailedRuleId, ForwardingParameters,
    OuterHeaderCreation, SessionEstablishmentRequest, SessionModificationRequest, UpdateFar,
    UpdateForwardingParameters, UpdatePdr, UpdateQer, ie,
};
use rules::{
    ApplyAction, Change, FTeid, Far, FarId, FarUpdate, ForwardingUpdate, Interface, Pdi, Pdr, PdrId,
    PdrUpdate, Qer, QerId, QerUpdate, Rules, Seid, Teid,
};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// A PDR without precedence gives way to all others (some control planes send none for a session's only rules).
const LAST: u32 = u32::MAX;

/// What one request took and made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// TEIDs that were not the session's before.
    pub(crate) teids: Vec<Teid>,
    /// What the answer tells of the endpoints we chose.
    pub(crate) created_pdrs: Vec<CreatedPdr>,
}

/// Translates one request.
pub(crate) struct Translator<'a> {
    tunnels: &'a mut Tunnels,
    session: Seid,
    ours: Ipv4Addr,
    /// The session's rules before the request.
    before: &'a Rules,
    /// By CHOOSE ID, which holds within one request (TS 29.244 8.2.3).
    chosen: BTreeMap<u8, Teid>,
    taken: Taken,
}

impl<'a> Translator<'a> {
    pub(crate) fn new(tunnels: &'a mut Tunnels, ours: Ipv4Addr, session: Seid, before: &'a Rules) -> Self {
        Self { tunnels, session, ours, before, chosen: BTreeMap::new(), taken: Taken::default() }
    }

    /// The rules of a new session.
    pub(crate) fn establishment(
        mut self,
        request: &SessionEstablishmentRequest,
    ) -> Result<(Rules, Taken), Refusal> {
        let rules = self.rules(&request.create_pdrs, &request.create_fars, &request.create_qers);
        let rules = rules.and_then(|mut rules| {
            let known = only_address(rules.pdrs.iter().map(|pdr| &pdr.pdi));
            rules.pdrs.iter_mut().for_each(|pdr| infer_address(&mut pdr.pdi, known));
            rules.check()?;
            Ok(rules)
        });
        self.finish(rules)
    }

    /// The rules of a session after a modification.
    pub(crate) fn modification(
        mut self,
        request: &SessionModificationRequest,
    ) -> Result<(Rules, Taken), Refusal> {
        let change = self.change(request);
        let rules = change.and_then(|mut change| {
            let known = self.before.pdrs.iter().chain(&change.create.pdrs).map(|pdr| &pdr.pdi);
            let known =
                only_address(known.chain(change.update_pdrs.iter().filter_map(|pdr| pdr.pdi.as_ref())));
            change.create.pdrs.iter_mut().for_each(|pdr| infer_address(&mut pdr.pdi, known));
            let updated = change.update_pdrs.iter_mut().filter_map(|pdr| pdr.pdi.as_mut());
            updated.for_each(|pdi| infer_address(pdi, known));
            Ok(self.before.change(change)?)
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

    fn rules(
        &mut self,
        pdrs: &[CreatePdr],
        fars: &[CreateFar],
        qers: &[CreateQer],
    ) -> Result<Rules, Refusal> {
        Ok(Rules {
            pdrs: pdrs.iter().map(|pdr| self.pdr(pdr)).collect::<Result<_, _>>()?,
            fars: fars.iter().map(far).collect::<Result<_, _>>()?,
            qers: qers.iter().map(qer).collect(),
        })
    }

    fn change(&mut self, request: &SessionModificationRequest) -> Result<Change, Refusal> {
        Ok(Change {
            remove_pdrs: request.remove_pdrs.iter().map(|rule| PdrId(rule.pdr_id)).collect(),
            remove_fars: request.remove_fars.iter().map(|rule| FarId(rule.far_id)).collect(),
            remove_qers: request.remove_qers.iter().map(|rule| QerId(rule.qer_id)).collect(),
            create: self.rules(&request.create_pdrs, &request.create_fars, &request.create_qers)?,
            update_pdrs: request
                .update_pdrs
                .iter()
                .map(|pdr| self.pdr_update(pdr))
                .collect::<Result<_, _>>()?,
            update_fars: request.update_fars.iter().map(far_update).collect::<Result<_, _>>()?,
            update_qers: request.update_qers.iter().map(qer_update).collect(),
        })
    }

    fn pdr(&mut self, pdr: &CreatePdr) -> Result<Pdr, Refusal> {
        let id = PdrId(pdr.pdr_id);
        let pdi = self.pdi(id, &pdr.pdi, None)?;
        Ok(Pdr {
            id,
            precedence: pdr.precedence.unwrap_or(LAST),
            pdi,
            outer_header_removal: pdr.outer_header_removal.map_or(Ok(false), values::removes_tunnel)?,
            // Only a predefined rule could bring its own (TS 29.244 7.5.2.2).
            far: pdr.far_id.map(FarId).ok_or(Refusal::blaming(Cause::ConditionalIeMissing, ie::FAR_ID))?,
            qers: pdr.qer_ids.iter().map(|id| QerId(*id)).collect(),
        })
    }

    fn pdr_update(&mut self, update: &UpdatePdr) -> Result<PdrUpdate, Refusal> {
        let id = PdrId(update.pdr_id);
        let current = self.before.pdrs.iter().find(|pdr| pdr.id == id).and_then(|pdr| pdr.pdi.f_teid);
        let pdi = update.pdi.as_ref().map(|pdi| self.pdi(id, pdi, current)).transpose()?;
        let keeps_tunnel = update.removes(ie::OUTER_HEADER_REMOVAL).then_some(false);
        let removal = update.outer_header_removal.map(values::removes_tunnel).transpose()?;
        // A QER ID without octets takes all QERs off the PDR (TS 29.244 5.6.3).
        let names_qers = !update.qer_ids.is_empty() || update.removes(ie::QER_ID);
        Ok(PdrUpdate {
            id,
            precedence: update.precedence,
            pdi,
            outer_header_removal: removal.or(keeps_tunnel),
            far: update.far_id.map(FarId),
            qers: names_qers.then(|| update.qer_ids.iter().map(|id| QerId(*id)).collect()),
        })
    }

    /// `current` is the endpoint the PDR has: one that is to be chosen anew stays as it is.
    fn pdi(&mut self, pdr: PdrId, pdi: &pfcp::Pdi, current: Option<FTeid>) -> Result<Pdi, Refusal> {
        let endpoint = pdi.f_teid.map(|f_teid| values::endpoint(f_teid, self.ours)).transpose()?;
        Ok(Pdi {
            source_interface: values::source(pdi.source_interface)?,
            f_teid: match (endpoint, current) {
                (Some(Endpoint::Chosen(_)), Some(current)) => Some(current),
                (Some(endpoint), _) => Some(self.f_teid(pdr, endpoint)?),
                (None, _) => None,
            },
            ue_ipv4: values::ue_ipv4(&pdi.ue_ip_addresses)?,
            qfis: pdi.qfis.iter().filter_map(|octet| values::qfi(*octet)).collect(),
        })
    }

    fn f_teid(&mut self, pdr: PdrId, endpoint: Endpoint) -> Result<FTeid, Refusal> {
        let teid = match endpoint {
            Endpoint::Given(teid) => self.claim(teid).map(|()| teid),
            Endpoint::Chosen(id) => self.choose(id),
        };
        let teid = teid.map_err(|unavailable| no_endpoint(unavailable, pdr))?;
        if let Endpoint::Chosen(_) = endpoint {
            self.taken.created_pdrs.push(created(pdr, teid, self.ours));
        }
        Ok(FTeid { teid, address: self.ours })
    }

    fn claim(&mut self, teid: Teid) -> Result<(), Unavailable> {
        if self.tunnels.claim(teid, self.session)? {
            self.taken.teids.push(teid);
        }
        Ok(())
    }

    fn choose(&mut self, id: Option<u8>) -> Result<Teid, Unavailable> {
        if let Some(teid) = id.and_then(|id| self.chosen.get(&id)) {
            return Ok(*teid);
        }
        let teid = self.tunnels.allocate(self.session)?;
        self.taken.teids.push(teid);
        self.chosen.extend(id.map(|id| (id, teid)));
        Ok(teid)
    }
}

const fn no_endpoint(unavailable: Unavailable, pdr: PdrId) -> Refusal {
    let cause = match unavailable {
        Unavailable::Exhausted => Cause::NoResourcesAvailable,
        Unavailable::Taken => Cause::RuleCreationModificationFailure,
    };
    Refusal { cause, offending_ie: Some(ie::F_TEID), failed_rule_id: Some(FailedRuleId::Pdr(pdr.0)) }
}

fn created(pdr: PdrId, teid: Teid, address: Ipv4Addr) -> CreatedPdr {
    let local_f_teid = pfcp::FTeid::Explicit { teid: teid.0, ipv4: Some(address), ipv6: None };
    CreatedPdr { pdr_id: pdr.0, local_f_teid: Some(local_f_teid), ue_ip_address: None, carried: vec![] }
}

fn far(far: &CreateFar) -> Result<Far, Refusal> {
    let apply_action = values::apply_action(far.apply_action)?;
    let is_forwarding = apply_action == ApplyAction::Forward;
    let parameters = far.forwarding_parameters.as_ref();
    let forwarding = parameters.map(|parameters| forwarding(parameters, is_forwarding)).transpose()?;
    Ok(Far { id: FarId(far.far_id), apply_action, forwarding })
}

fn forwarding(
    to: &ForwardingParameters,
    is_forwarding: bool,
) -> Result<rules::ForwardingParameters, Refusal> {
    Ok(rules::ForwardingParameters {
        destination_interface: values::destination(to.destination_interface)?,
        outer_header_creation: tunnel(to.outer_header_creation.as_ref(), is_forwarding)?,
    })
}

fn far_update(update: &UpdateFar) -> Result<FarUpdate, Refusal> {
    let apply_action = update.apply_action.map(values::apply_action).transpose()?;
    let is_forwarding = apply_action != Some(ApplyAction::Drop);
    let parameters = update.update_forwarding_parameters.as_ref();
    let forwarding = parameters.map(|parameters| forwarding_update(parameters, is_forwarding)).transpose()?;
    Ok(FarUpdate { id: FarId(update.far_id), apply_action, forwarding })
}

fn forwarding_update(
    to: &UpdateForwardingParameters,
    is_forwarding: bool,
) -> Result<ForwardingUpdate, Refusal> {
    Ok(ForwardingUpdate {
        destination_interface: to.destination_interface.map(values::destination).transpose()?,
        outer_header_creation: tunnel(to.outer_header_creation.as_ref(), is_forwarding)?,
    })
}

fn tunnel(
    creation: Option<&OuterHeaderCreation>,
    is_forwarding: bool,
) -> Result<Option<rules::OuterHeaderCreation>, Refusal> {
    creation.map_or(Ok(None), |creation| values::tunnel(creation, is_forwarding))
}

fn qer(qer: &CreateQer) -> Qer {
    Qer {
        id: QerId(qer.qer_id),
        uplink_gate: values::gate(qer.gate_status.uplink),
        downlink_gate: values::gate(qer.gate_status.downlink),
        qfi: qer.qfi.and_then(values::qfi),
    }
}

fn qer_update(update: &UpdateQer) -> QerUpdate {
    QerUpdate {
        id: QerId(update.qer_id),
        gates: update.gate_status.map(|gates| (values::gate(gates.uplink), values::gate(gates.downlink))),
        qfi: update.qfi.and_then(values::qfi),
    }
}

/// The user's address, where all PDIs that name one name the same.
fn only_address<'a>(pdis: impl Iterator<Item = &'a Pdi>) -> Option<Ipv4Addr> {
    let mut addresses = pdis.filter_map(|pdi| pdi.ue_ipv4);
    let first = addresses.next()?;
    addresses.all(|other| other == first).then_some(first)
}

/// Some control planes leave the address out of further downlink PDRs, meaning the session's.
fn infer_address(pdi: &mut Pdi, known: Option<Ipv4Addr>) {
    if pdi.f_teid.is_none() && pdi.source_interface != Interface::Access {
        pdi.ue_ipv4 = pdi.ue_ipv4.or(known);
    }
}

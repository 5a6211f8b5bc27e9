//! PDRs, and the tunnel endpoints they take.

use super::choose::Leg;
use super::{Translator, ethernet, framed};
use crate::advertised;
use crate::predefined::{LAST, NO_FAR};
use crate::refusal::Refusal;
use crate::tunnels::Unavailable;
use crate::values::{self, Endpoint, User, Wish};
use ipnet::{IpNet, Ipv6Net};
use pfcp::{Cause, CreatePdr, CreatedPdr, FailedRuleId, SourceInterface, UpdatePdr, ie};
use rules::{
    ApplicationId, Direction, FTeid, FarId, FlowDescription, FlowEnd, Instance, Interface, Pdi, Pdr, PdrId,
    PdrUpdate, QerId, Rules, UrrId,
};
use std::net::{IpAddr, Ipv4Addr};

/// What a PDR has beside its new PDI.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Around {
    /// The endpoint it has.
    f_teid: Option<FTeid>,
    far: Option<FarId>,
    /// It takes a tunnel's header off (TS 29.244 8.2.64).
    removes_tunnel: bool,
}

impl Translator<'_> {
    pub(super) fn pdr(&mut self, pdr: &CreatePdr) -> Result<Pdr, Refusal> {
        let id = PdrId(pdr.pdr_id);
        let resolved = self.resolve(id, &pdr.pdi, pdr.ue_ip_address_pool.as_ref())?;
        let around = Around { far: pdr.far_id.map(FarId), ..Around::default() };
        let pdi = self.pdi(id, &resolved, around)?;
        self.activate(id, &pdr.activate_predefined_rules)?;
        Ok(Pdr {
            id,
            // Some control planes send none for a session's only rules.
            precedence: pdr.precedence.unwrap_or(LAST),
            pdi,
            outer_header_removal: pdr.outer_header_removal.map_or(Ok(false), values::removes_tunnel)?,
            // Predefined rules bring their own (TS 29.244 7.5.2.2); else packets are dropped until there is one, as some control planes
            // tell of the PDR first.
            far: pdr.far_id.map_or(NO_FAR, FarId),
            qers: pdr.qer_ids.iter().copied().map(QerId).collect(),
            urrs: pdr.urr_ids.iter().copied().map(UrrId).collect(),
        })
    }

    pub(super) fn pdr_update(&mut self, update: &UpdatePdr) -> Result<PdrUpdate, Refusal> {
        let id = PdrId(update.pdr_id);
        let keeps_tunnel = update.removes(ie::OUTER_HEADER_REMOVAL).then_some(false);
        let removal = update.outer_header_removal.map(values::removes_tunnel).transpose()?.or(keeps_tunnel);
        let before = self.pdrs.get(id);
        let around = Around {
            f_teid: before.and_then(|pdr| pdr.pdi.f_teid),
            far: update.far_id.map(FarId).or(before.map(|pdr| pdr.far)),
            removes_tunnel: removal.or(before.map(|pdr| pdr.outer_header_removal)) == Some(true),
        };
        let pdi = match &update.pdi {
            Some(pdi) => {
                let resolved = self.resolve(id, pdi, None)?;
                Some(self.pdi(id, &resolved, around)?)
            }
            None => None,
        };
        self.deactivate(id, &update.deactivate_predefined_rules)?;
        self.activate(id, &update.activate_predefined_rules)?;
        // An ID without octets takes all rules of that kind off the PDR (TS 29.244 5.6.3).
        let names_qers = !update.qer_ids.is_empty() || update.removes(ie::QER_ID);
        let names_urrs = !update.urr_ids.is_empty() || update.removes(ie::URR_ID);
        Ok(PdrUpdate {
            id,
            precedence: update.precedence,
            pdi,
            outer_header_removal: removal,
            far: update.far_id.map(FarId),
            qers: names_qers.then(|| update.qer_ids.iter().copied().map(QerId).collect()),
            urrs: names_urrs.then(|| update.urr_ids.iter().copied().map(UrrId).collect()),
        })
    }

    /// The endpoint that a PDR has stays as it is where it is to be chosen anew, and where it is not named again: a control plane in
    /// use sends new filters without it, another the user's address beside the removal of the tunnel's header, and plain packets
    /// never come from radio.
    pub(super) fn pdi(&mut self, pdr: PdrId, pdi: &pfcp::Pdi, around: Around) -> Result<Pdi, Refusal> {
        let source = values::source(pdi.source_interface, pdi.f_teid.is_some())?;
        let instance = values::instance(pdi.network_instance.as_ref(), self.has_instances);
        let origin = values::Origin { interface: source, instance, interface_type: pdi.interface_type };
        let endpoint = pdi.f_teid.map(|f_teid| values::endpoint(f_teid, origin, self.ours));
        let endpoint = endpoint.transpose()?;
        if let Some(Endpoint::Chosen(Wish { id: Some(id), address, .. })) = endpoint
            && !pdi.qfis.is_empty()
        {
            self.recall(id, Leg { source, instance, address, far: around.far });
        }
        let user = values::user(&pdi.ue_ip_addresses)?;
        // Names of networks tell users' addresses from ours: what comes from the access side names another one.
        let is_of_network = source.direction() == Direction::Downlink || !self.has_instances;
        if is_of_network && advertised::are_of_port(self.ours, &user, instance) {
            return Err(of_pdr(Refusal::incorrect(ie::UE_IP_ADDRESS), pdr));
        }
        let mut framed_routes = framed::routes(&pdi.carried).map_err(|refusal| of_pdr(refusal, pdr))?;
        framed_routes.extend(user.delegated().filter(|delegated| !framed_routes.contains(delegated)));
        let has_no_address = user.ipv4.is_none() && user.ipv6.is_none();
        let from_radio = pdi.source_interface == SourceInterface::Access;
        let comes_in_tunnel = has_no_address || from_radio || around.removes_tunnel;
        Ok(Pdi {
            source_interface: source,
            instance,
            f_teid: match (endpoint, around.f_teid) {
                (Some(Endpoint::Chosen(_)), Some(current)) => Some(current),
                (None, Some(current)) if comes_in_tunnel => Some(current),
                (endpoint, _) => endpoint.map(|endpoint| self.f_teid(pdr, endpoint)).transpose()?,
            },
            ue_ipv4: user.ipv4,
            ue_ipv6: user.link(),
            framed_routes,
            qfis: pdi.qfis.iter().filter_map(|qfi| values::qfi(*qfi)).collect(),
            sdf_filters: pdi
                .sdf_filters
                .iter()
                .map(|filter| values::sdf_filter(filter, pdr))
                .collect::<Result<_, _>>()?,
            application: pdi.application_id.as_deref().map(|name| self.application(pdr, name)).transpose()?,
            ethernet: ethernet::pdi(pdr, pdi, self.is_of_frames)?,
        })
    }

    /// Of an application that nobody knows no packet would ever match (TS 29.244 8.2.1, cause 81). One that the PDR has already
    /// was known once.
    fn application(&self, pdr: PdrId, octets: &[u8]) -> Result<ApplicationId, Refusal> {
        let application = values::application(octets).map_err(|refusal| of_pdr(refusal, pdr))?;
        let had = self.pdrs.get(pdr).and_then(|pdr| pdr.pdi.application.as_ref());
        match had == Some(&application) || self.pfds.know(application.name()) {
            true => Ok(application),
            false => Err(of_pdr(Refusal::blaming(Cause::UnknownApplicationId, ie::APPLICATION_ID), pdr)),
        }
    }

    fn f_teid(&mut self, pdr: PdrId, endpoint: Endpoint) -> Result<FTeid, Refusal> {
        let (f_teid, told) = self.take(endpoint).map_err(|unavailable| no_endpoint(unavailable, pdr))?;
        if told.is_some() {
            self.tell(pdr, |created| created.local_f_teid = told);
        }
        Ok(f_teid)
    }

    /// The endpoint, and what is told of it if we chose it.
    pub(super) fn take(&mut self, endpoint: Endpoint) -> Result<(FTeid, Option<pfcp::FTeid>), Unavailable> {
        match endpoint {
            Endpoint::Given(f_teid) => self.claim(f_teid).map(|()| (f_teid, None)),
            Endpoint::Chosen(wish) => {
                let f_teid = self.choose(wish)?;
                let also = wish.also.map(|also| advertised::told(self.ours, also.into()));
                let told = FTeid { address: advertised::told(self.ours, f_teid.address), ..f_teid };
                Ok((f_teid, Some(with_other(written(told), also))))
            }
        }
    }

    /// Tells of a PDR in the answer.
    pub(super) fn tell(&mut self, pdr: PdrId, with: impl FnOnce(&mut CreatedPdr)) {
        let told = &mut self.taken.created_pdrs;
        if let Some(created) = told.iter_mut().find(|created| created.pdr_id == pdr.0) {
            return with(created);
        }
        let (local_f_teid, ue_ip_addresses, carried) = (None, vec![], vec![]);
        let mut created = CreatedPdr { pdr_id: pdr.0, local_f_teid, ue_ip_addresses, carried };
        with(&mut created);
        told.push(created);
    }
}

/// From the access side packets come in tunnels only: a PDR without one would never match anything there (TS 29.244 5.2.1).
pub(super) fn check_reachable(rules: &Rules) -> Result<(), Refusal> {
    let is_deaf = |pdr: &&Pdr| pdr.pdi.source_interface == Interface::Access && pdr.pdi.f_teid.is_none();
    let refused =
        |pdr: &Pdr| of_pdr(Refusal::blaming(Cause::RuleCreationModificationFailure, ie::F_TEID), pdr.id);
    rules.pdrs.iter().find(is_deaf).map_or(Ok(()), |pdr| Err(refused(pdr)))
}

/// A PDR needs a FAR, unless what it activates decides all.
pub(super) const fn no_far_id() -> Refusal {
    Refusal::blaming(Cause::ConditionalIeMissing, ie::FAR_ID)
}

const fn no_endpoint(unavailable: Unavailable, pdr: PdrId) -> Refusal {
    of_pdr(unavailable_endpoint(unavailable), pdr)
}

pub(super) const fn of_pdr(refusal: Refusal, pdr: PdrId) -> Refusal {
    Refusal { failed_rule_id: Some(FailedRuleId::Pdr(pdr.0)), ..refusal }
}

pub(super) const fn unavailable_endpoint(unavailable: Unavailable) -> Refusal {
    let cause = match unavailable {
        Unavailable::Exhausted => Cause::NoResourcesAvailable,
        Unavailable::Taken => Cause::RuleCreationModificationFailure,
    };
    Refusal::blaming(cause, ie::F_TEID)
}

/// An endpoint as PFCP has it.
pub(super) const fn written(f_teid: FTeid) -> pfcp::FTeid {
    let teid = f_teid.teid.0;
    match f_teid.address {
        IpAddr::V4(address) => pfcp::FTeid::Explicit { teid, ipv4: Some(address), ipv6: None },
        IpAddr::V6(address) => pfcp::FTeid::Explicit { teid, ipv4: None, ipv6: Some(address) },
    }
}

/// The same at an address of the other family, if it is of IPv4: a CHOOSE ID may have been IPv6 alone before.
const fn with_other(f_teid: pfcp::FTeid, other: Option<IpAddr>) -> pfcp::FTeid {
    match (f_teid, other) {
        (pfcp::FTeid::Explicit { teid, ipv4, .. }, Some(IpAddr::V6(ipv6))) if ipv4.is_some() => {
            pfcp::FTeid::Explicit { teid, ipv4, ipv6: Some(ipv6) }
        }
        (f_teid, _) => f_teid,
    }
}

/// The user's addresses, each where all PDIs that name one name the same.
pub(super) struct Addresses {
    ipv4: Option<Ipv4Addr>,
    ipv6: Option<Ipv6Net>,
    /// And their network, likewise.
    instance: Option<Instance>,
    /// The networks behind the user, likewise.
    framed_routes: Vec<IpNet>,
}

pub(super) fn session_addresses<'a>(pdis: impl Iterator<Item = &'a Pdi> + Clone) -> Addresses {
    let framed_routes = pdis.clone().map(|pdi| &pdi.framed_routes).filter(|routes| !routes.is_empty());
    Addresses {
        framed_routes: only(framed_routes).cloned().unwrap_or_default(),
        ipv4: only(pdis.clone().filter_map(|pdi| pdi.ue_ipv4)),
        ipv6: only(pdis.clone().filter_map(|pdi| pdi.ue_ipv6)),
        instance: only(pdis.map(|pdi| pdi.instance).filter(|instance| *instance != Instance::DEFAULT)),
    }
}

fn only<T: PartialEq>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.all(|other| other == first).then_some(first)
}

impl Addresses {
    /// Some control planes leave the address out of further downlink PDRs, meaning the session's and what is behind it. In uplink
    /// PDRs one of them names what is behind the user and not its own address, meaning both.
    pub(super) fn infer(&self, pdi: &mut Pdi) {
        if pdi.f_teid.is_none() && !pdi.names_user() && pdi.source_interface != Interface::Access {
            (pdi.ue_ipv4, pdi.ue_ipv6) = (self.ipv4, self.ipv6);
            pdi.framed_routes.clone_from(&self.framed_routes);
            if pdi.instance == Instance::DEFAULT {
                pdi.instance = self.instance.unwrap_or_default();
            }
        }
        let has_routes_alone =
            pdi.ue_ipv4.is_none() && pdi.ue_ipv6.is_none() && !pdi.framed_routes.is_empty();
        if has_routes_alone && pdi.f_teid.is_some() {
            (pdi.ue_ipv4, pdi.ue_ipv6) = (self.ipv4, self.ipv6);
        }
        self.turn_filters(pdi);
    }

    /// `permit out` is from the far end to the user (TS 29.244 5.2.1A.2A), but releases of one control plane wrote the filters
    /// of uplink PDRs from the user on. Where the far end is the user's own address, and the user's end cannot be, the
    /// ends have changed places. With networks behind the user it can. Inverted ends tell nothing of who is meant.
    fn turn_filters(&self, pdi: &mut Pdi) {
        let user = User { ipv4: pdi.ue_ipv4.or(self.ipv4), ipv6: pdi.ue_ipv6.or(self.ipv6) };
        let is_user = |end: &FlowEnd| {
            let plain = end.addresses.filter(|addresses| !addresses.inverted);
            plain.map(|addresses| user.may_be_in(&addresses.prefix))
        };
        let is_turned = |flow: &FlowDescription| {
            is_user(&flow.remote) == Some(true) && is_user(&flow.user) == Some(false)
        };
        if !pdi.framed_routes.is_empty() || !self.framed_routes.is_empty() {
            return;
        }
        let flows = pdi.sdf_filters.iter_mut().filter_map(|filter| filter.flow.as_mut());
        flows.filter(|flow| is_turned(flow)).for_each(FlowDescription::turn);
    }
}

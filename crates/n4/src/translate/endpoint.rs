//! Traffic endpoints (TS 29.244 feature PDIU). A PDI that names one is translated as if it said what the endpoint says.

use super::address::Origin;
use super::pdr::{Around, of_pdr, unavailable_endpoint, written};
use super::{Restated, Translator, framed};
use crate::refusal::Refusal;
use crate::values;
use pfcp::{
    Cause, CreatePdr, CreateTrafficEndpoint, CreatedTrafficEndpoint, FailedRuleId, NetworkInstance,
    PoolIdentity, SessionModificationRequest, SourceInterface, UeIpAddress, UpdateTrafficEndpoint, ie,
};
use rules::{FTeid, FarId, Interface, Pdi, PdrId, PdrUpdate, Qfi};
use session::TrafficEndpoint;
use std::borrow::Cow;
use std::collections::HashSet;

impl Translator<'_> {
    /// A PDI that says itself what it matches.
    pub(super) fn resolve<'p>(
        &mut self,
        pdr: PdrId,
        pdi: &'p pfcp::Pdi,
        pool: Option<&PoolIdentity>,
    ) -> Result<Cow<'p, pfcp::Pdi>, Refusal> {
        self.extras.at_endpoint.retain(|(other, _)| *other != pdr);
        if let Some(id) = pdi.traffic_endpoint_id {
            let says_it_twice =
                pdi.f_teid.is_some() || !pdi.ue_ip_addresses.is_empty() || framed::are_named(&pdi.carried);
            let endpoint = self.extras.endpoints.iter().find(|endpoint| endpoint.id == id);
            let endpoint =
                endpoint.filter(|_| !says_it_twice).ok_or(no_endpoint(FailedRuleId::Pdr(pdr.0)))?;
            let resolved = at(endpoint, pdi);
            self.extras.at_endpoint.push((pdr, id));
            return Ok(Cow::Owned(resolved));
        }
        let chooses = pdi.ue_ip_addresses.iter().any(|address| address.choose_ipv4 || address.choose_ipv6);
        if !chooses && self.pools.is_empty() {
            return Ok(Cow::Borrowed(pdi));
        }
        let origin = Origin { pool, network_instance: pdi.network_instance.as_ref() };
        let addresses = self.addresses(&pdi.ue_ip_addresses, origin);
        let (ue_ip_addresses, chosen) = addresses.map_err(|refusal| of_pdr(refusal, pdr))?;
        if !chosen.is_empty() {
            self.tell(pdr, |created| created.ue_ip_addresses = chosen);
        }
        Ok(Cow::Owned(pfcp::Pdi { ue_ip_addresses, ..pdi.clone() }))
    }

    /// `pdrs` are those of the request: an endpoint does not say which side its tunnel is on, but the PDRs do that name it.
    pub(super) fn create_endpoint(
        &mut self,
        create: &CreateTrafficEndpoint,
        pdrs: &[CreatePdr],
    ) -> Result<(), Refusal> {
        let id = create.traffic_endpoint_id;
        if self.extras.endpoints.iter().any(|endpoint| endpoint.id == id) {
            return Err(wrong(ie::CREATE_TRAFFIC_ENDPOINT));
        }
        let origin = Origin {
            pool: create.ue_ip_address_pool.as_ref(),
            network_instance: create.network_instance.as_ref(),
        };
        let (all, ue_ip_addresses) = self.addresses(&create.ue_ip_addresses, origin)?;
        let user = values::user(&all)?;
        let (f_teid, local_f_teid) = match create.local_f_teid {
            Some(f_teid) => {
                let naming = pdrs.iter().find(|pdr| pdr.pdi.traffic_endpoint_id == Some(id));
                let source = naming.map_or(SourceInterface::Access, |pdr| pdr.pdi.source_interface);
                let named = naming.and_then(|pdr| pdr.pdi.interface_type);
                let origin = values::Origin {
                    interface: values::source(source, true)?,
                    instance: values::instance(create.network_instance.as_ref(), self.has_instances),
                    interface_type: create.interface_type.or(named),
                };
                self.endpoint_f_teid(f_teid, origin)?
            }
            None => (None, None),
        };
        self.extras.endpoints.push(TrafficEndpoint {
            id,
            f_teid,
            ue_ipv4: user.ipv4,
            ue_ipv6: user.ipv6,
            framed_routes: framed::routes(&create.carried)?,
            network_instance: create.network_instance.clone().unwrap_or_default().0,
            qfis: create.qfis.iter().filter_map(|qfi| values::qfi(*qfi)).collect(),
        });
        self.tell_endpoint(id, local_f_teid, ue_ip_addresses);
        Ok(())
    }

    /// The endpoint, and what is told of it if we chose it.
    fn endpoint_f_teid(
        &mut self,
        f_teid: pfcp::FTeid,
        origin: values::Origin,
    ) -> Result<(Option<FTeid>, Option<pfcp::FTeid>), Refusal> {
        let endpoint = values::endpoint(f_teid, origin, self.ours)?;
        let (f_teid, told) = self.take(endpoint).map_err(unavailable_endpoint)?;
        Ok((Some(f_teid), told))
    }

    fn tell_endpoint(
        &mut self,
        id: u8,
        local_f_teid: Option<pfcp::FTeid>,
        ue_ip_addresses: Vec<UeIpAddress>,
    ) {
        if local_f_teid.is_some() || !ue_ip_addresses.is_empty() {
            self.taken.created_endpoints.push(CreatedTrafficEndpoint {
                traffic_endpoint_id: id,
                local_f_teid,
                ue_ip_addresses,
                carried: vec![],
            });
        }
    }

    /// Removes, creates and updates traffic endpoints. All PDRs to remove, as those go that name an endpoint that goes;
    /// and what changes in PDRs that name one that changes.
    pub(super) fn change_endpoints(
        &mut self,
        request: &SessionModificationRequest,
        mut removed: Vec<PdrId>,
    ) -> Result<(Vec<PdrId>, Vec<PdrUpdate>), Refusal> {
        let known: HashSet<u8> = self.extras.endpoints.iter().map(|endpoint| endpoint.id).collect();
        for remove in &request.remove_traffic_endpoints {
            let id = remove.traffic_endpoint_id;
            let Some(place) = self.extras.endpoints.iter().position(|endpoint| endpoint.id == id) else {
                // As for rules: what is gone may be removed, and nothing twice at once.
                if known.contains(&id) {
                    return Err(wrong(ie::REMOVE_TRAFFIC_ENDPOINT));
                }
                self.taken.restated.push(Restated::Endpoint(id));
                continue;
            };
            self.extras.endpoints.remove(place);
            let naming = self.extras.at_endpoint.iter().filter(|(_, endpoint)| *endpoint == id);
            let naming: Vec<PdrId> =
                naming.map(|(pdr, _)| *pdr).filter(|pdr| !removed.contains(pdr)).collect();
            removed.extend(naming);
        }
        self.extras.at_endpoint.retain(|(pdr, _)| !removed.contains(pdr));
        let endpoints = &request.create_traffic_endpoints;
        endpoints.iter().try_for_each(|endpoint| self.create_endpoint(endpoint, &request.create_pdrs))?;
        let mut moved = Vec::new();
        for update in &request.update_traffic_endpoints {
            moved.extend(self.update_endpoint(update)?);
        }
        Ok((removed, moved))
    }

    fn update_endpoint(&mut self, update: &UpdateTrafficEndpoint) -> Result<Vec<PdrUpdate>, Refusal> {
        let id = update.traffic_endpoint_id;
        let place = self.extras.endpoints.iter().position(|endpoint| endpoint.id == id);
        let before = place.and_then(|place| self.extras.endpoints.get(place)).cloned();
        let before = before.ok_or(wrong(ie::UPDATE_TRAFFIC_ENDPOINT))?;
        let after = self.updated(update, &before)?;
        if let Some(endpoint) = self.extras.endpoints.iter_mut().find(|endpoint| endpoint.id == id) {
            *endpoint = after;
        }
        let naming = self.extras.at_endpoint.iter().filter(|(_, endpoint)| *endpoint == id);
        let naming: Vec<PdrId> = naming.map(|(pdr, _)| *pdr).collect();
        let moved = naming.into_iter().map(|pdr| self.moved(pdr, &before));
        moved.filter_map(Result::transpose).collect()
    }

    fn updated(
        &mut self,
        update: &UpdateTrafficEndpoint,
        before: &TrafficEndpoint,
    ) -> Result<TrafficEndpoint, Refusal> {
        let mut after = before.clone();
        if update.removes(ie::F_TEID) {
            after.f_teid = None;
        }
        if let Some(f_teid) = update.local_f_teid {
            // One that is to be chosen anew stays as it is.
            let stays = matches!(f_teid, pfcp::FTeid::Choose { .. }) && before.f_teid.is_some();
            let origin = self.origin_of_endpoint(before, update.interface_type);
            let (new, told) =
                if stays { (before.f_teid, None) } else { self.endpoint_f_teid(f_teid, origin)? };
            after.f_teid = new;
            self.tell_endpoint(before.id, told, vec![]);
        }
        if update.network_instance.is_some() || update.removes(ie::NETWORK_INSTANCE) {
            after.network_instance = update.network_instance.clone().unwrap_or_default().0;
        }
        if !update.ue_ip_addresses.is_empty() || update.removes(ie::UE_IP_ADDRESS) {
            let network = NetworkInstance(after.network_instance.clone());
            let network_instance = Some(&network).filter(|name| !name.0.is_empty());
            let origin = Origin { pool: None, network_instance };
            let (all, chosen) = self.addresses(&update.ue_ip_addresses, origin)?;
            let user = values::user(&all)?;
            (after.ue_ipv4, after.ue_ipv6) = (user.ipv4, user.ipv6);
            self.tell_endpoint(before.id, None, chosen);
        }
        let routes = framed::routes(&update.carried)?;
        if framed::are_named(&update.carried) {
            after.framed_routes = routes;
        }
        if !update.qfis.is_empty() || update.removes(ie::QFI) {
            after.qfis = qfis(&update.qfis);
        }
        Ok(after)
    }

    /// Where packets come from at an endpoint that is there: what the PDRs say that name it.
    fn origin_of_endpoint(&self, endpoint: &TrafficEndpoint, interface_type: Option<u8>) -> values::Origin {
        let naming = self.extras.at_endpoint.iter().filter(|(_, id)| *id == endpoint.id);
        let source = naming.filter_map(|(pdr, _)| Some(self.pdrs.get(*pdr)?.pdi.source_interface)).next();
        let name = NetworkInstance(endpoint.network_instance.clone());
        let name = Some(&name).filter(|name| !name.0.is_empty());
        values::Origin {
            interface: source.unwrap_or(Interface::Access),
            instance: values::instance(name, self.has_instances),
            interface_type,
        }
    }

    /// What changes in a PDR whose traffic endpoint has: all but its filters, and QFIs of its own.
    fn moved(&mut self, pdr: PdrId, before: &TrafficEndpoint) -> Result<Option<PdrUpdate>, Refusal> {
        let Some(current) = self.pdrs.get(pdr).map(|pdr| pdr.pdi.clone()) else { return Ok(None) };
        let asked = pfcp::Pdi {
            source_interface: source(current.source_interface),
            f_teid: None,
            network_instance: None,
            ue_ip_addresses: vec![],
            traffic_endpoint_id: Some(before.id),
            ethernet_pdu_session_information: None,
            ethernet_packet_filters: vec![],
            sdf_filters: vec![],
            application_id: None,
            qfis: vec![],
            interface_type: None,
            carried: vec![],
        };
        let resolved = self.resolve(pdr, &asked, None)?;
        let at_endpoint = self.pdi(pdr, &resolved, Around::default())?;
        let has_own = current.qfis != before.qfis;
        let qfis = if has_own { current.qfis } else { at_endpoint.qfis.clone() };
        let Pdi { sdf_filters, application, ethernet, .. } = current;
        let pdi = Pdi { sdf_filters, application, ethernet, qfis, ..at_endpoint };
        Ok(Some(PdrUpdate { id: pdr, pdi: Some(pdi), ..PdrUpdate::default() }))
    }

    /// FARs may only name traffic endpoints that are there.
    pub(super) fn check_linked(
        &self,
        mut linked: impl Iterator<Item = (FarId, Option<u8>)>,
    ) -> Result<(), Refusal> {
        let is_known = |id: u8| self.extras.endpoints.iter().any(|endpoint| endpoint.id == id);
        let unknown = linked.find(|(_, id)| id.is_some_and(|id| !is_known(id)));
        unknown.map_or(Ok(()), |(far, _)| Err(no_endpoint(FailedRuleId::Far(far.0))))
    }
}

/// The PDI with what its traffic endpoint says; QFIs of its own go before the endpoint's.
fn at(endpoint: &TrafficEndpoint, pdi: &pfcp::Pdi) -> pfcp::Pdi {
    let address = UeIpAddress {
        ipv4: endpoint.ue_ipv4,
        ipv6: endpoint.ue_ipv6.map(|prefix| prefix.addr()),
        ipv6_prefix_length: endpoint.ue_ipv6.map(|prefix| prefix.prefix_len()),
        ..UeIpAddress::default()
    };
    let has_address = address.ipv4.is_some() || address.ipv6.is_some();
    let instance = Some(&endpoint.network_instance).filter(|name| !name.is_empty());
    let endpoint_qfis = || endpoint.qfis.iter().map(|qfi| qfi.value()).collect();
    pfcp::Pdi {
        f_teid: endpoint.f_teid.map(written),
        network_instance: pdi.network_instance.clone().or(instance.cloned().map(NetworkInstance)),
        ue_ip_addresses: has_address.then_some(address).into_iter().collect(),
        traffic_endpoint_id: None,
        qfis: if pdi.qfis.is_empty() { endpoint_qfis() } else { pdi.qfis.clone() },
        carried: pdi.carried.iter().cloned().chain(framed::written(&endpoint.framed_routes)).collect(),
        ..pdi.clone()
    }
}

fn qfis(octets: &[u8]) -> Vec<Qfi> {
    octets.iter().filter_map(|qfi| values::qfi(*qfi)).collect()
}

const fn source(interface: Interface) -> SourceInterface {
    match interface {
        Interface::Access => SourceInterface::Access,
        Interface::Core => SourceInterface::Core,
        Interface::SgiLan => SourceInterface::SgiLan,
    }
}

/// A traffic endpoint that is there already, or is not.
const fn wrong(ie: u16) -> Refusal {
    Refusal::blaming(Cause::RuleCreationModificationFailure, ie)
}

const fn no_endpoint(rule: FailedRuleId) -> Refusal {
    Refusal { failed_rule_id: Some(rule), ..wrong(ie::TRAFFIC_ENDPOINT_ID) }
}

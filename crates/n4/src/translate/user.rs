//! The user's address, known before any tunnel endpoint is chosen: TEIDs are chosen to lead to the worker of the user, as
//! the data plane finds it by the first address, IPv4 before IPv6.

use super::Translator;
use super::address::Origin;
use crate::refusal::Refusal;
use pfcp::{
    CreatePdr, CreateTrafficEndpoint, SessionEstablishmentRequest, SessionModificationRequest,
    SourceInterface, UeIpAddress,
};
use rules::Rules;
use std::net::IpAddr;

/// Of a session in force.
pub(super) fn of_rules(rules: &Rules) -> Option<IpAddr> {
    let pdis = || rules.pdrs.iter().map(|pdr| &pdr.pdi);
    let ipv4 = pdis().find_map(|pdi| pdi.ue_ipv4).map(IpAddr::V4);
    ipv4.or_else(|| pdis().find_map(|pdi| pdi.ue_ipv6).map(|prefix| IpAddr::V6(prefix.addr())))
}

impl Translator<'_> {
    /// Finds it in the request, and takes an address that is ours to choose before its rules are seen to: they get the
    /// same, since a session has one of each family.
    pub(super) fn foresee_user(&mut self, request: &SessionEstablishmentRequest) -> Result<(), Refusal> {
        let (mut ipv4, mut ipv6) = (None, None);
        for (asked, origin) in asking(&request.create_traffic_endpoints, &request.create_pdrs) {
            let chosen = self.foresee(asked, origin)?;
            let known = || asked.iter().chain(&chosen);
            ipv4 = ipv4.or_else(|| known().find_map(|address| address.ipv4));
            ipv6 = ipv6.or_else(|| known().find_map(|address| address.ipv6));
        }
        self.user = ipv4.map(IpAddr::V4).or(ipv6.map(IpAddr::V6));
        Ok(())
    }

    /// Takes the addresses that new rules of a session ask for.
    pub(super) fn foresee_addresses(&mut self, request: &SessionModificationRequest) -> Result<(), Refusal> {
        for (asked, origin) in asking(&request.create_traffic_endpoints, &request.create_pdrs) {
            self.foresee(asked, origin)?;
        }
        Ok(())
    }

    /// The addresses, where they are ours to choose. Where a network has none to be had, the rule itself says why, unless it
    /// gets those of another one.
    ///
    /// # Errors
    /// A pool that is named has none.
    fn foresee(&mut self, asked: &[UeIpAddress], origin: Origin<'_>) -> Result<Vec<UeIpAddress>, Refusal> {
        match asked.iter().any(is_ours_to_choose) {
            true => self.addresses(asked, origin).map(|(all, _)| all).or_else(|refusal| match origin.pool {
                Some(_) => Err(refusal),
                None => Ok(vec![]),
            }),
            false => Ok(vec![]),
        }
    }
}

/// Who asks for addresses, of which pool and network. Who names a pool comes first, and then what faces the data network: the pools
/// are of that network, and what faces the access side may name another (TS 29.244 8.2.62, 5.21.3.2).
fn asking<'a>(
    endpoints: &'a [CreateTrafficEndpoint],
    pdrs: &'a [CreatePdr],
) -> impl Iterator<Item = (&'a [UeIpAddress], Origin<'a>)> {
    let of_endpoints = endpoints.iter().map(move |endpoint| {
        let id = Some(endpoint.traffic_endpoint_id);
        let mut naming = pdrs.iter().filter(move |pdr| pdr.pdi.traffic_endpoint_id == id);
        let (pool, name) = (endpoint.ue_ip_address_pool.as_ref(), endpoint.network_instance.as_ref());
        (naming.any(faces_core), &endpoint.ue_ip_addresses[..], (pool, name))
    });
    let of_pdrs = pdrs.iter().map(|pdr| {
        let (pool, name) = (pdr.ue_ip_address_pool.as_ref(), pdr.pdi.network_instance.as_ref());
        (faces_core(pdr), &pdr.pdi.ue_ip_addresses[..], (pool, name))
    });
    let mut all: Vec<_> = of_endpoints.chain(of_pdrs).collect();
    all.sort_by_key(|(faces_core, _, (pool, _))| (pool.is_none(), !faces_core));
    all.into_iter()
        .map(move |(_, asked, (pool, network_instance))| (asked, Origin { pool, network_instance }))
}

fn faces_core(pdr: &CreatePdr) -> bool {
    !matches!(pdr.pdi.source_interface, SourceInterface::Access | SourceInterface::CpFunction)
}

const fn is_ours_to_choose(address: &UeIpAddress) -> bool {
    address.choose_ipv4 || address.choose_ipv6
}

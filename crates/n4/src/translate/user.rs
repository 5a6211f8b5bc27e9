//! The user's address, known before any tunnel endpoint is chosen: TEIDs are chosen to lead to the worker of the user, as
//! the data plane finds it by the first address, IPv4 before IPv6.

use super::Translator;
use super::endpoint::Origin;
use crate::refusal::Refusal;
use pfcp::{SessionEstablishmentRequest, UeIpAddress};
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
        let endpoints = request.create_traffic_endpoints.iter().map(|endpoint| {
            let origin = Origin {
                pool: endpoint.ue_ip_address_pool.as_ref(),
                network_instance: endpoint.network_instance.as_ref(),
            };
            (&endpoint.ue_ip_addresses[..], origin)
        });
        let pdrs = request.create_pdrs.iter().map(|pdr| {
            let network_instance = pdr.pdi.network_instance.as_ref();
            let origin = Origin { pool: pdr.ue_ip_address_pool.as_ref(), network_instance };
            (&pdr.pdi.ue_ip_addresses[..], origin)
        });
        let (mut ipv4, mut ipv6) = (None, None);
        for (asked, origin) in endpoints.chain(pdrs) {
            let chosen = match asked.iter().any(is_ours_to_choose) {
                true => self.addresses(asked, origin)?.0,
                false => vec![],
            };
            let known = || asked.iter().chain(&chosen);
            ipv4 = ipv4.or_else(|| known().find_map(|address| address.ipv4));
            ipv6 = ipv6.or_else(|| known().find_map(|address| address.ipv6));
        }
        self.user = ipv4.map(IpAddr::V4).or(ipv6.map(IpAddr::V6));
        Ok(())
    }
}

const fn is_ours_to_choose(address: &UeIpAddress) -> bool {
    address.choose_ipv4 || address.choose_ipv6
}

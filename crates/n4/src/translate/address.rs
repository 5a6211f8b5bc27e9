//! Users' addresses: those a control plane gives, and those we choose (TS 29.244 feature UEIP).

use super::Translator;
use crate::pools::{Choice, Lack};
use crate::refusal::Refusal;
use crate::values;
use pfcp::{Cause, NetworkInstance, PoolIdentity, UeIpAddress, ie};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Users' prefixes have no other length.
const PREFIX_BITS: u8 = 64;

/// Which pool an address is to be of.
#[derive(Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) pool: Option<&'a PoolIdentity>,
    pub(super) network_instance: Option<&'a NetworkInstance>,
}

/// Addresses: all of them, and those of them that we chose.
pub(super) type Addresses = (Vec<UeIpAddress>, Vec<UeIpAddress>);

impl Translator<'_> {
    pub(super) fn addresses(
        &mut self,
        asked: &[UeIpAddress],
        origin: Origin<'_>,
    ) -> Result<Addresses, Refusal> {
        let (mut all, mut chosen) = (vec![], vec![]);
        for address in asked {
            let resolved = self.address(address, origin)?;
            all.push(resolved);
            if address.choose_ipv4 || address.choose_ipv6 {
                // S/D means something in a PDI alone (TS 29.244 8.2.62).
                chosen.push(UeIpAddress { is_destination: false, ..resolved });
            }
        }
        Ok((all, chosen))
    }

    /// One address of each family that is asked for. A session has one of each, whichever of its rules asks.
    fn address(&mut self, asked: &UeIpAddress, origin: Origin<'_>) -> Result<UeIpAddress, Refusal> {
        let has_length = asked.ipv6_prefix_length.is_some_and(|length| length != PREFIX_BITS)
            || asked.ipv6_prefix_delegation_bits.is_some_and(|bits| bits > 0);
        if asked.choose_ipv6 && has_length {
            return Err(Refusal::unsupported(ie::UE_IP_ADDRESS));
        }
        let given = asked.ipv4.map(IpAddr::V4).into_iter().chain(asked.ipv6.map(IpAddr::V6));
        given.into_iter().try_for_each(|address| self.claim_address(address, origin))?;
        let mut resolved = UeIpAddress { choose_ipv4: false, choose_ipv6: false, ..*asked };
        if asked.choose_ipv4 {
            resolved.ipv4 = Some(self.chosen_address(origin, ipv4)?);
        }
        if asked.choose_ipv6 {
            resolved.ipv6 = Some(self.chosen_address(origin, ipv6)?);
            (resolved.ipv6_prefix_length, resolved.ipv6_prefix_delegation_bits) = (None, None);
        }
        Ok(resolved)
    }

    fn claim_address(&mut self, address: IpAddr, origin: Origin<'_>) -> Result<(), Refusal> {
        let instance = values::instance(origin.network_instance, self.has_instances);
        let instance = Some(instance).filter(|_| self.has_instances);
        if self.pools.claim(address, instance, self.session).map_err(lacking)? {
            self.taken.addresses.push(address);
            self.extras.addresses.push(address);
        }
        Ok(())
    }

    fn chosen_address<T>(
        &mut self,
        origin: Origin<'_>,
        family: impl Fn(&IpAddr) -> Option<T>,
    ) -> Result<T, Refusal> {
        if let Some(known) = self.extras.addresses.iter().find_map(&family) {
            return Ok(known);
        }
        let name = origin.network_instance.and_then(NetworkInstance::name);
        let choice = Choice {
            is_ipv6: family(&IpAddr::V6(Ipv6Addr::UNSPECIFIED)).is_some(),
            pool: origin.pool.map(|pool| &*pool.0),
            network_instance: name.as_deref(),
        };
        let address = self.pools.allocate(choice, self.session).map_err(lacking)?;
        self.taken.addresses.push(address);
        self.extras.addresses.push(address);
        family(&address).ok_or(lacking(Lack::NoPool))
    }
}

fn ipv4(address: &IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    }
}

fn ipv6(address: &IpAddr) -> Option<Ipv6Addr> {
    match address {
        IpAddr::V6(address) => Some(*address),
        IpAddr::V4(_) => None,
    }
}

const fn lacking(lack: Lack) -> Refusal {
    let cause = match lack {
        Lack::UnknownPool => return Refusal::unsupported(ie::UE_IP_ADDRESS_POOL_IDENTITY),
        Lack::NoPool => Cause::ServiceNotSupported,
        Lack::Exhausted => Cause::AllDynamicAddressesAreOccupied,
        Lack::Taken => Cause::RuleCreationModificationFailure,
    };
    Refusal::blaming(cause, ie::UE_IP_ADDRESS)
}

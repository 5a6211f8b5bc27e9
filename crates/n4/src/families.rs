//! Outer headers of an IP version that no port has: packets put into them would all be dropped, so they are refused.

use crate::config::Config;
use crate::refusal::Refusal;
use pfcp::{OuterHeaderCreation, SessionEstablishmentRequest, SessionModificationRequest, ie};

pub(crate) fn establishment(request: &SessionEstablishmentRequest, config: &Config) -> Result<(), Refusal> {
    let fars = &request.create_fars;
    let forwarding = fars.iter().filter_map(|far| far.forwarding_parameters.as_ref());
    let copies = fars.iter().flat_map(|far| &far.duplicating_parameters);
    let forwarding = forwarding.map(|to| &to.outer_header_creation);
    check(forwarding.chain(copies.map(|to| &to.outer_header_creation)), config)
}

/// As [`establishment`].
pub(crate) fn modification(request: &SessionModificationRequest, config: &Config) -> Result<(), Refusal> {
    let fars = &request.create_fars;
    let forwarding = fars.iter().filter_map(|far| far.forwarding_parameters.as_ref());
    let copies = fars.iter().flat_map(|far| &far.duplicating_parameters);
    let updated = request.update_fars.iter().filter_map(|far| far.parameters());
    let updated_copies = request.update_fars.iter().flat_map(|far| &far.update_duplicating_parameters);
    let forwarding = forwarding.map(|to| &to.outer_header_creation);
    let updated = updated.map(|to| &to.outer_header_creation);
    let copies = copies.map(|to| &to.outer_header_creation);
    let updated_copies = updated_copies.map(|to| &to.outer_header_creation);
    check(forwarding.chain(updated).chain(copies).chain(updated_copies), config)
}

fn check<'a>(
    mut tunnels: impl Iterator<Item = &'a Option<OuterHeaderCreation>>,
    config: &Config,
) -> Result<(), Refusal> {
    if config.gtpu.iter().any(|ours| ours.ipv6.is_some()) {
        return Ok(());
    }
    // TEID 0 is no tunnel yet.
    let is_over_ipv6 = |tunnel: &Option<OuterHeaderCreation>| {
        matches!(
            tunnel,
            Some(OuterHeaderCreation::GtpuIpv6 { teid: 1.., .. } | OuterHeaderCreation::UdpIpv6 { .. })
        )
    };
    match tunnels.any(is_over_ipv6) {
        true => Err(Refusal::unsupported(ie::OUTER_HEADER_CREATION)),
        false => Ok(()),
    }
}

//! Recordings of other people's user planes at work, and ours in their places.

pub mod gtpu;
mod neighbour;
pub mod stand;

use crate::pcap;
use matrix::N3_ADDRESS;
use pfcp::{Body, FTeid, Message, OuterHeaderCreation};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::Path;

/// What was said, in order: from whom, to whom.
pub enum Said {
    Pfcp(Ipv4Addr, Ipv4Addr, Box<Message>),
    Gtpu(Ipv4Addr, Ipv4Addr, Vec<u8>),
}

/// All PFCP and GTP-U of a file.
pub fn read(file: &Path) -> Vec<Said> {
    let of_interest = pcap::udp(file).into_iter().filter_map(|(from, to, bytes)| {
        let has = |port| from.port() == port || to.port() == port;
        if has(pfcp::PORT) {
            Some(Said::Pfcp(*from.ip(), *to.ip(), Box::new(pfcp::decode(&bytes).unwrap())))
        } else {
            has(gtpu::PORT).then(|| Said::Gtpu(*from.ip(), *to.ip(), bytes))
        }
    });
    of_interest.collect()
}

/// User planes by where they speak PFCP, and where each serves GTP-U: where it says its endpoints are.
pub fn user_planes(said: &[Said]) -> BTreeMap<Ipv4Addr, Ipv4Addr> {
    let mut planes = BTreeMap::new();
    for said in said {
        let Said::Pfcp(from, _, message) = said else { continue };
        let Body::SessionEstablishmentResponse(response) = &message.body else { continue };
        for created in &response.created_pdrs {
            if let Some(FTeid::Explicit { ipv4: Some(address), .. }) = created.local_f_teid {
                planes.insert(*from, address);
            }
        }
    }
    planes
}

/// Inner packets that a user plane was recorded sending in tunnels.
pub fn tunnelled(said: &[Said], plane: Ipv4Addr) -> BTreeSet<Vec<u8>> {
    let sent = said.iter().filter_map(|said| match said {
        Said::Gtpu(from, to, bytes) if *from == plane => Some(gtpu::Gtpu::read(*to, bytes).inner),
        _ => None,
    });
    sent.collect()
}

/// Where somebody is on our bench: the recorded user plane where ours is, everybody else beside it. Loopback addresses,
/// which open cores use among themselves, are on no wire.
pub fn place(address: Ipv4Addr, plane: Ipv4Addr) -> Ipv4Addr {
    let [first, .., last] = address.octets();
    let [a, b, c, _] = N3_ADDRESS.octets();
    let beside = Ipv4Addr::new(a, b, c, 100 + last % 50 + if first == 127 { 50 } else { 0 });
    if address == plane { N3_ADDRESS } else { beside }
}

/// The tunnels a request leads into end where their other ends are on our bench, and those it makes where ours is.
pub fn moved(body: &mut Body, plane: Ipv4Addr) {
    if let Body::SessionEstablishmentRequest(request) = body {
        for pdr in &mut request.create_pdrs {
            if let Some(FTeid::Explicit { ipv4: Some(address), .. }) = &mut pdr.pdi.f_teid {
                *address = place(*address, plane);
            }
        }
    }
    let mut tunnels: Vec<&mut OuterHeaderCreation> = vec![];
    match body {
        Body::SessionEstablishmentRequest(request) => {
            let all = request.create_fars.iter_mut().filter_map(|far| far.forwarding_parameters.as_mut());
            tunnels.extend(all.filter_map(|to| to.outer_header_creation.as_mut()));
        }
        Body::SessionModificationRequest(request) => {
            let new = request.create_fars.iter_mut().filter_map(|far| far.forwarding_parameters.as_mut());
            tunnels.extend(new.filter_map(|to| to.outer_header_creation.as_mut()));
            let updates = request.update_fars.iter_mut();
            let changed = updates.filter_map(|far| far.update_forwarding_parameters.as_mut());
            tunnels.extend(changed.filter_map(|to| to.outer_header_creation.as_mut()));
        }
        _ => {}
    }
    for tunnel in tunnels {
        match tunnel {
            OuterHeaderCreation::GtpuIpv4 { address, .. } => *address = place(*address, plane),
            // Over both families: the description, the TEID, then addresses (TS 29.244 8.2.56).
            OuterHeaderCreation::Other(value) if value.starts_with(&[3, 0]) => {
                let address = Ipv4Addr::from(<[u8; 4]>::try_from(&value[6..10]).unwrap());
                value[6..10].copy_from_slice(&place(address, plane).octets());
            }
            OuterHeaderCreation::GtpuIpv6 { .. }
            | OuterHeaderCreation::UdpIpv4 { .. }
            | OuterHeaderCreation::UdpIpv6 { .. }
            | OuterHeaderCreation::Other(_) => {}
        }
    }
}

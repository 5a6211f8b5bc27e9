//! A node with a port more than N3 and N6, and one with a port behind address translation.

use crate::bench::{Bench, OTHER_RADIO, RADIO, plane_behind, plane3};
use crate::cells::Cell;
use crate::persona::Persona;
use matrix::{N3, N3_ADDRESS, N6, N9, N9_ADDRESS};
use ran::Tunnel;
use ran::config::FTeidMode;
use ran::smf::{Change, Endpoint};
use rules::Teid;
use std::net::Ipv4Addr;

/// In the network of the third port: a radio or another gateway on the way to it, and the next gateway of an SGW or of an
/// intermediate UPF.
const NEAR: Tunnel = Tunnel { teid: Teid(9), address: Ipv4Addr::new(10, 80, 0, 1) };
const BEYOND: Tunnel = Tunnel { teid: Teid(0x53), address: Ipv4Addr::new(10, 80, 0, 9) };

/// Tunnels end in the networks they lie in: S5-U of an SGW and N9 of an intermediate UPF at a port of their own beside N6, S5-U of
/// a PGW and N3 or N9 of others at one beside the access port of S1-U.
pub(crate) fn three_ports(persona: &Persona) -> Cell {
    let mut bench = Bench::over(persona, plane3(persona), |session| match persona.is_between {
        true => session.beyond = Some(BEYOND),
        false => session.downlink = NEAR,
    });
    let is_explicit = matches!(persona.f_teid, FTeidMode::Explicit(_));
    bench.set(|settings| {
        settings.n9 = Some(N9_ADDRESS);
        if is_explicit && !persona.is_between {
            settings.f_teid = FTeidMode::Explicit(N9_ADDRESS);
        }
    });
    let (radio, endpoint, unused) = match persona.is_between {
        true => (RADIO, Endpoint::Core, N6),
        false => (NEAR, Endpoint::Uplink, N3),
    };
    (bench.near, bench.far) = if persona.is_between { (N3, N9) } else { (N9, N6) };
    let mut bench = bench.started();
    let told = bench.smf.endpoint(0, endpoint).map(|told| told.address);
    assert!(told.is_none_or(|told| told == N9_ADDRESS), "{told:?}");
    for _ in 0..2 {
        bench.both_ways_pass(radio);
    }
    assert!(bench.change(Change::Handover(OTHER_RADIO)));
    assert_eq!(bench.radios().len(), usize::from(persona.ends_paths), "End Markers");
    assert_eq!(bench.plane.sent(unused), Vec::<Vec<u8>>::new());
    bench.near = N3;
    bench.downlink_passes(OTHER_RADIO);
    Ok(())
}

/// What N3 is translated from, 1:1.
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);

/// Radios reach N3 by another address than it has: it is what control planes are told, or have been told by their operators.
pub(crate) fn behind_translation(persona: &Persona) -> Cell {
    let mut bench = Bench::over(persona, plane_behind(persona, OUTSIDE), |_| {});
    if let FTeidMode::Explicit(_) = persona.f_teid {
        bench.set(|settings| settings.f_teid = FTeidMode::Explicit(OUTSIDE));
    }
    bench.translation = Some((OUTSIDE, N3_ADDRESS));
    let mut bench = bench.started();
    let told = bench.smf.endpoint(0, Endpoint::Uplink).map(|told| told.address);
    assert_eq!(told, Some(OUTSIDE).filter(|_| persona.dialect.picks_endpoints() != Some(true)));
    bench.both_ways_pass(RADIO);
    assert!(bench.change(Change::Handover(OTHER_RADIO)));
    assert_eq!(bench.radios().len(), usize::from(persona.ends_paths), "End Markers");
    bench.both_ways_pass(OTHER_RADIO);
    Ok(())
}

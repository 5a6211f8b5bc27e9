//! `advertise` and `advertise6`, of ports and of `[n4]`: the addresses that control planes are told where others than ours are
//! translated to ours, 1:1.

use super::file::Port;
use config::{Refusal, Spanned};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is told for the addresses of one port, or for those PFCP is served at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Advertised {
    pub(crate) ipv4: Option<Ipv4Addr>,
    pub(crate) ipv6: Option<Ipv6Addr>,
}

/// What is told for each port's, in their order: apart from the ports, as the data plane has nothing to do with it.
pub(super) fn of_ports(ports: &[Port]) -> Result<Vec<Advertised>, Refusal> {
    for (at, port) in ports.iter().enumerate() {
        check_among(port, ports.get(..at).unwrap_or_default(), ports)?;
    }
    ports.iter().map(of_port).collect()
}

fn of_port(port: &Port) -> Result<Advertised, Refusal> {
    let has = [port.address.is_some(), port.ipv6.is_some()];
    check(
        [port.advertise.as_ref(), port.advertise6.as_ref()],
        has,
        "the port has no address of this IP version",
    )
}

/// Of `[n4]`; PFCP is served over IPv4, over IPv6.
pub(super) fn of_n4(said: [Option<&Spanned<IpAddr>>; 2], served: [bool; 2]) -> Result<Advertised, Refusal> {
    check(said, served, "PFCP is not served over this IP version: see listen and also_listen")
}

/// `said`: `advertise` and `advertise6`; `has`: whether there is an address to be reached by that.
fn check(said: [Option<&Spanned<IpAddr>>; 2], has: [bool; 2], why: &str) -> Result<Advertised, Refusal> {
    let [advertise, advertise6] = said;
    for (said, has) in said.into_iter().zip(has) {
        let Some(said) = said else { continue };
        let address = said.get_ref();
        if address.is_unspecified() || address.is_multicast() || *address == IpAddr::V4(Ipv4Addr::BROADCAST) {
            return Err(Refusal::of(said, "peers are told this address: it is that of a host"));
        }
        if !has {
            return Err(Refusal::of(said, why));
        }
    }
    Ok(Advertised {
        ipv4: advertise
            .map(|said| match said.get_ref() {
                IpAddr::V4(address) => Ok(*address),
                IpAddr::V6(_) => Err(Refusal::of(said, "is an IPv6 address: that is advertise6")),
            })
            .transpose()?,
        ipv6: advertise6
            .map(|said| match said.get_ref() {
                IpAddr::V6(address) => Ok(*address),
                IpAddr::V4(_) => Err(Refusal::of(said, "is an IPv4 address: that is advertise")),
            })
            .transpose()?,
    })
}

/// By what is told we know whose it is, so it is one port's.
fn check_among(port: &Port, before: &[Port], all: &[Port]) -> Result<(), Refusal> {
    let said = |port: &Port| {
        let said = [port.advertise.as_ref(), port.advertise6.as_ref()];
        said.map(|said| said.map(|said| *said.get_ref()))
    };
    let own = |port: &Port| {
        let ipv4 = port.address.as_ref().map(|address| IpAddr::V4(address.get_ref().0.addr()));
        [ipv4, port.ipv6.as_ref().map(|address| IpAddr::V6(address.get_ref().0.addr()))]
    };
    for advertise in [port.advertise.as_ref(), port.advertise6.as_ref()].into_iter().flatten() {
        let is_it = |addresses: [Option<IpAddr>; 2]| addresses.contains(&Some(*advertise.get_ref()));
        if before.iter().any(|other| is_it(said(other))) {
            return Err(Refusal::of(advertise, "another port is advertised at this address"));
        }
        let others = all.iter().filter(|other| other.name.get_ref() != port.name.get_ref());
        if others.into_iter().any(|other| is_it(own(other))) {
            return Err(Refusal::of(advertise, "another port has this address"));
        }
    }
    Ok(())
}

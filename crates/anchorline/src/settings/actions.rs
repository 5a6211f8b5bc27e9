//! What a predefined rule does to packets besides what its PDR's FAR does, and what of it goes together.

use super::values::Side;
use super::{Around, PortSettings};
use config::{Refusal, Spanned};
use rules::{ForwardingParameters, HeaderField, Instance, OuterHeaderCreation, Redirect, RedirectTo, Teid};
use serde::Deserialize;
use std::net::IpAddr;
use std::num::NonZeroU32;

/// What becomes of the packets a predefined rule matches.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    /// What the PDR says.
    #[default]
    Pdr,
    Drop,
    /// Connections over TCP are reset, all else is dropped.
    Reset,
}

/// A header field that requests get.
#[derive(Deserialize)]
#[serde(try_from = "HeaderText")]
pub(super) struct Header(pub(super) HeaderField);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderText {
    name: String,
    value: String,
}

impl TryFrom<HeaderText> for Header {
    type Error = &'static str;

    fn try_from(text: HeaderText) -> Result<Self, Self::Error> {
        HeaderField::try_from((text.name, text.value)).map(Self)
    }
}

/// A mark of packets.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "u8")]
pub(super) struct Dscp(pub(super) u8);

impl TryFrom<u8> for Dscp {
    type Error = &'static str;

    fn try_from(value: u8) -> Result<Self, Self::Error> {
        (value <= 63).then_some(Self(value)).ok_or("a DSCP is 0 to 63")
    }
}

/// Where copies go: a tunnel of GTP-U.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mirror {
    address: IpAddr,
    teid: NonZeroU32,
    #[serde(default = "core_side")]
    interface: Side,
    network_instance: Option<String>,
}

const fn core_side() -> Side {
    Side::Core
}

impl From<Mirror> for ForwardingParameters {
    fn from(mirror: Mirror) -> Self {
        let Mirror { address, teid, interface, network_instance } = mirror;
        Self {
            destination_interface: interface.into(),
            instance: network_instance.as_deref().map_or(Instance::DEFAULT, Instance::of),
            outer_header_creation: Some(OuterHeaderCreation::gtpu(Teid(teid.get()), address)),
            dscp: None,
            policy: None,
        }
    }
}

/// What is done to packets, as far as a rule says.
#[derive(Clone, Copy)]
pub(super) struct Done<'a> {
    pub(super) redirect: Option<&'a Spanned<Redirect>>,
    pub(super) header: Option<&'a Spanned<Header>>,
    pub(super) dscp: Option<&'a Spanned<Dscp>>,
    pub(super) policy: Option<&'a Spanned<String>>,
    pub(super) mirror: Option<&'a Spanned<Mirror>>,
}

/// Refuses what would be without effect, copies that no port leads to, and policies that are not there.
pub(super) fn check(action: Action, done: Done<'_>, around: Around<'_>) -> Result<(), Refusal> {
    let forwards = action == Action::Pdr;
    if let Some(redirect) = done.redirect.filter(|_| !forwards) {
        return Err(Refusal::of(redirect, "what is dropped or reset is not redirected"));
    }
    let to_url = |redirect: &Spanned<Redirect>| matches!(redirect.get_ref().to(), RedirectTo::Url(_));
    let idle = "what is dropped, reset or redirected to a URL is not forwarded: this would be without effect";
    if !forwards || done.redirect.is_some_and(to_url) {
        done.header.map_or(Ok(()), |header| Err(Refusal::of(header, idle)))?;
        done.dscp.map_or(Ok(()), |dscp| Err(Refusal::of(dscp, idle)))?;
        done.policy.map_or(Ok(()), |policy| Err(Refusal::of(policy, idle)))?;
        done.mirror.map_or(Ok(()), |mirror| Err(Refusal::of(mirror, idle)))?;
    }
    if let Some(header) = done.header.filter(|_| done.redirect.is_some()) {
        return Err(Refusal::of(header, "requests that go to another address get no field"));
    }
    let is_known =
        |name: &&Spanned<String>| around.policies.iter().any(|policy| policy.name == *name.get_ref());
    if let Some(unknown) = done.policy.filter(|name| !is_known(name)) {
        return Err(Refusal::of(unknown, "is the name of no [[dpe.forwarding_policy]]"));
    }
    done.mirror.map_or(Ok(()), |mirror| check_mirror(mirror, around.ports))
}

fn check_mirror(mirror: &Spanned<Mirror>, ports: &[PortSettings]) -> Result<(), Refusal> {
    let Mirror { address, network_instance, .. } = mirror.get_ref();
    let ours = || ports.iter().filter(|port| !port.ethernet);
    if !ours().any(|port| address.is_ipv4() || port.address6.is_some()) {
        return Err(Refusal::of(mirror, "no port has an IPv6 address, so no copies can be sent to one"));
    }
    let is_of = |port: &PortSettings, name: &String| {
        port.network_instance.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(name))
    };
    match network_instance.as_ref().filter(|name| !ours().any(|port| is_of(port, name))) {
        Some(name) => Err(Refusal::of(mirror, format!("no port is of the network instance {name:?}"))),
        None => Ok(()),
    }
}

//! What a control plane's change of rules is to charging: whether a PDR that is charged takes other packets than before, or
//! others become of them. What was used until then is told apart from what is used afterwards.
//!
//! Most changes are of users who move, sleep and wake up: tunnels of ours and of the radio's, buffering, and how it is told
//! of. None of that is another service. PDRs that come or go are none either: who is charged by them is another meter, or
//! the same goes on.

use super::meters::Charged;
use crate::config::Config;
use crate::predefined;
use rules::{
    ApplyAction, EthernetFilter, EthernetPdi, Far, FarId, ForwardingParameters, Instance, Interface,
    OuterHeader, OuterHeaderCreation, Pdi, Pdr, PdrId, Policy, Rules, Urr, limits,
};
use session::SessionRecord;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Whether a PDR that stays and is charged matches otherwise, takes its turn otherwise, or its packets are dealt with otherwise; or whether
/// what is charged measures time, and did not, or does no longer. Rates are not looked at.
pub(super) fn is_one(before: &SessionRecord, after: &SessionRecord, config: &Config) -> bool {
    let Some(charged) = Charged::of(before, config) else { return false };
    let (old, new) = (&before.rules, &after.rules);
    if times_otherwise(old, new, charged) {
        return true;
    }
    if old.pdrs == new.pdrs && old.fars == new.fars {
        return false;
    }
    let (old_fars, new_fars) = (fars(old), fars(new));
    let staying = staying(old, new);
    let keyed = predefined::with_key(before.extras.as_deref(), &config.predefined);
    let is_charged = |pdr: &Pdr| is_charged(pdr, charged, &keyed);
    let does_otherwise = |old: &Pdr, new: &Pdr| {
        let fars = old_fars.get(&old.far).zip(new_fars.get(&new.far));
        let is_to_user = new.pdi.source_interface != Interface::Access;
        fars.is_some_and(|(old, new)| is_done_otherwise(old, new, is_to_user))
    };
    let changes =
        |(old, new): &(&Pdr, &Pdr)| matches_otherwise(&old.pdi, &new.pdi) || does_otherwise(old, new);
    staying.iter().any(|pair| changes(pair) && is_charged(pair.0))
        || reordered(&staying).into_iter().any(is_charged)
}

fn times_otherwise(before: &Rules, after: &Rules, charged: Charged<'_>) -> bool {
    let is_other = |old: &Urr, new: &Urr| old.id == new.id && old.methods.duration != new.methods.duration;
    let others = before.urrs.iter().filter(|old| after.urrs.iter().any(|new| is_other(old, new)));
    others.into_iter().any(|urr| charged.charges(urr.id))
}

fn fars(rules: &Rules) -> BTreeMap<FarId, &Far> {
    rules.fars.iter().map(|far| (far.id, far)).collect()
}

/// PDRs that are there before and after, as they were and as they are.
fn staying<'a>(before: &'a Rules, after: &'a Rules) -> Vec<(&'a Pdr, &'a Pdr)> {
    let new: BTreeMap<PdrId, &Pdr> = after.pdrs.iter().map(|pdr| (pdr.id, pdr)).collect();
    before.pdrs.iter().filter_map(|old| Some((old, *new.get(&old.id)?))).collect()
}

/// Whether packets of a PDR count under a key: of a URR that is mapped, or by a meter of ours (`meters::measure`). `keyed` are those
/// that predefined rules bring a key to.
fn is_charged(pdr: &Pdr, charged: Charged<'_>, keyed: &BTreeSet<PdrId>) -> bool {
    let rating = &charged.charging.rating;
    let is_split = pdr.pdi.application.is_none() && !rating.content().is_empty();
    let has_meter = rating.default_key().is_some() || is_split || keyed.contains(&pdr.id);
    charged.is_mapped(pdr) || (has_meter && pdr.urrs.len() < limits::URRS_PER_PDR)
}

/// Whether it is about other packets. The tunnel they come in is another where the user's session has moved, and a network counts
/// only outside of tunnels. Lists are of things any of which may match, in whatever order.
fn matches_otherwise(before: &Pdi, after: &Pdi) -> bool {
    let Pdi {
        source_interface,
        instance,
        f_teid,
        ue_ipv4,
        ue_ipv6,
        framed_routes,
        qfis,
        sdf_filters,
        application,
        ethernet,
    } = before;
    let is_in_tunnel = f_teid.is_some();
    *source_interface != after.source_interface
        || is_in_tunnel != after.f_teid.is_some()
        || (!is_in_tunnel && *instance != after.instance)
        || (ue_ipv4, ue_ipv6) != (&after.ue_ipv4, &after.ue_ipv6)
        || !are_same(framed_routes, &after.framed_routes)
        || !are_same(qfis, &after.qfis)
        || !are_same(sdf_filters, &after.sdf_filters)
        || *application != after.application
        || ethernet.is_some() != after.ethernet.is_some()
        || !are_same(frame_filters(ethernet.as_deref()), frame_filters(after.ethernet.as_deref()))
}

fn frame_filters(ethernet: Option<&EthernetPdi>) -> &[EthernetFilter] {
    ethernet.map(|ethernet| &*ethernet.filters).unwrap_or_default()
}

fn are_same<T: Eq>(one: &[T], other: &[T]) -> bool {
    let all_in = |one: &[T], other: &[T]| one.iter().all(|item| other.contains(item));
    one == other || (all_in(one, other) && all_in(other, one))
}

/// PDRs whose turn among those of their side is another, and those in between: other packets may be left to them. Numbers that
/// change and leave the order as it is are nothing to packets.
fn reordered<'a>(staying: &[(&'a Pdr, &'a Pdr)]) -> Vec<&'a Pdr> {
    if staying.iter().all(|(old, new)| old.precedence == new.precedence) {
        return vec![];
    }
    let turn = |pdr: &Pdr| (pdr.pdi.source_interface, pdr.precedence, pdr.id);
    let (mut before, mut after) = (staying.to_vec(), staying.to_vec());
    before.sort_unstable_by_key(|(old, _)| turn(old));
    after.sort_unstable_by_key(|(_, new)| turn(new));
    let is_moved = |(one, other): &(&(&Pdr, &Pdr), &(&Pdr, &Pdr))| one.0.id != other.0.id;
    let pairs = || before.iter().zip(&after);
    let first = pairs().take_while(|pair| !is_moved(pair)).count();
    let last = before.len() - pairs().rev().take_while(|pair| !is_moved(pair)).count();
    before.iter().take(last).skip(first).map(|(old, _)| *old).collect()
}

/// Whether a FAR does something else to packets than the one before. Copies do not count: nobody is to see from records that
/// a user is copied (TS 33.127 lawful interception).
fn is_done_otherwise(before: &Far, after: &Far, is_to_user: bool) -> bool {
    let may_wait = |far: &Far| is_to_user && (far.notify || (before.id == after.id && is_without_radio(far)));
    let lets_none_pass = |far: &Far| match far.apply_action {
        ApplyAction::Forward | ApplyAction::Buffer => false,
        ApplyAction::Drop => !may_wait(far),
        ApplyAction::Reset => true,
    };
    match (lets_none_pass(before), lets_none_pass(after)) {
        (true, true) => false,
        (true, false) | (false, true) => true,
        (false, false) => {
            let ways = before.forwarding.as_ref().map(way).zip(after.forwarding.as_ref().map(way));
            ways.is_some_and(|(old, new)| old != new)
                || before.redirect != after.redirect
                || before.enrichment != after.enrichment
        }
    }
}

/// Control planes have packets to a user dropped as long as no tunnel to the radio is known; of one who sleeps others are told
/// (NOCP). Then a session begins or rests, and no other service does.
fn is_without_radio(far: &Far) -> bool {
    far.forwarding
        .as_ref()
        .is_none_or(|to| to.destination_interface == Interface::Access && to.outer_header_creation.is_none())
}

/// Where packets go, and marked how: the side; the network of those that leave outside of tunnels; the node at the other end of a
/// tunnel, and its port where the tunnel is of UDP alone; the DSCP, and the forwarding policy. Which node of the radio network it is, is where the user is, and
/// charged as that.
type Way = (Interface, Option<Instance>, Option<(IpAddr, Option<u16>)>, (Option<u8>, Option<Policy>));

fn way(to: &ForwardingParameters) -> Way {
    let ForwardingParameters { destination_interface, instance, outer_header_creation, dscp, policy } = *to;
    let end = |tunnel: OuterHeaderCreation| match tunnel.header {
        OuterHeader::Gtpu(_) => (tunnel.address, None),
        OuterHeader::Udp(port) => (tunnel.address, Some(port)),
    };
    if destination_interface == Interface::Access {
        return (destination_interface, None, None, (dscp, policy));
    }
    let network = outer_header_creation.is_none().then_some(instance);
    (destination_interface, network, outer_header_creation.map(end), (dscp, policy))
}

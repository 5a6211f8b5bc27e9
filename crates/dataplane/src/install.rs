//! A compiled program as a worker takes it: cells to copy, keys to enter.

use crate::arrangement::{Arrangement, Order, Wanted};
use crate::config::{PolicyConfig, PortConfig, side_of_peer};
use crate::side::Side;
use crate::state::{
    Account, Apart, Extra, Installation, Key, Length, Name, PolicyIndex, Ports, Rate, Rest, Session,
    Treatment, Unwanted, WholeStep, found_by, network, user_key,
};
use dplink::{Desired, UsageCounts};
use ipnet::IpNet;
use rules::{
    Action, FTeid, Forward, Instance, Interface, Places, Policy, Program, RuleError, Rules, Seid, Step,
    compile,
};
use std::net::IpAddr;
use std::sync::Arc;

/// Why a session cannot be put in force, whatever the worker's state.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfit {
    #[error(transparent)]
    Rules(#[from] RuleError),
    #[error("tunnel {} is at {}, which is not an address of ours", .0.teid, .0.address)]
    NotOurs(rules::FTeid),
    #[error("user address {0} is not in use on any network")]
    NoSuchUser(IpAddr),
    #[error("network {0} behind a user is not in use anywhere")]
    NoSuchRoute(IpNet),
    #[error("no port is of a network instance that the rules name")]
    NoSuchNetwork,
    #[error("there is no forwarding policy of a name that the rules give")]
    NoSuchPolicy,
}

/// Compiles a session. `urrs` is how many the older revision has.
pub(crate) fn installation(
    (ports, policies): (&[PortConfig], &[PolicyConfig]),
    mut desired: Desired,
    urrs: usize,
) -> Result<Installation, Unfit> {
    if !ports.iter().any(|port| port.interface == Interface::SgiLan) {
        lan_at_core(Arc::make_mut(&mut desired.rules));
    }
    let mut program = compile(&desired.rules)?;
    let users = program.ue_ipv4s.iter().map(|user| user.0).chain(program.ue_ipv6s.iter().map(|user| user.0));
    let routes = program.framed_routes.iter().map(|route| route.0);
    let network = program.ethernet.as_ref().and_then(|ethernet| ethernet.network);
    if !users.chain(routes).chain(network).all(|instance| is_known(ports, instance)) {
        return Err(Unfit::NoSuchNetwork);
    }
    if !all_steps(&program).flat_map(policies_of).all(|policy| PolicyIndex::of(policy, policies).is_some()) {
        return Err(Unfit::NoSuchPolicy);
    }
    let accounts = program.meters.len().max(program.usages.len());
    let keys = keys(ports, &program)?;
    let peers = all_steps(&program).map(|step| (peer(ports, step), step.direction));
    let standing = hot_steps((ports, policies), &program).into_iter().zip(peers);
    let wanted: Vec<Wanted> = standing.map(|(step, (peer, direction))| ((step, peer), direction)).collect();
    let arrangement = Arrangement::new(&wanted, accounts);
    let mut session = session(desired.session, &mut program, &arrangement, keys);
    session.is_between = has_tunnels_alone(&program) && leads_back(ports, &desired.rules);
    Ok(Installation {
        ethernet: program.ethernet.take(),
        aparts: (0..).zip(&program.meters).filter_map(|(at, meter)| Some((at, Apart::new(meter)?))).collect(),
        accounts: (0..accounts).map(|place| account(&program.meters, place)).collect(),
        unwanted: match desired.drop_buffered {
            true => Unwanted::All,
            false => Unwanted::KeptBy(desired.buffering_over.into()),
        },
        removed: Vec::<UsageCounts>::with_capacity(urrs),
        inherited: None,
        seid: desired.session,
        revision: desired.revision,
        session: Some(session),
        end_markers: desired.end_markers.into(),
        steps: arrangement.standing.iter().map(|(step, _)| *step).collect(),
        peers: arrangement.standing.iter().map(|(_, peer)| *peer).collect(),
    })
}

/// Without a port of its own the SGi-LAN is where the core is: some control planes know the data network by no other name.
fn lan_at_core(rules: &mut Rules) {
    let at_core = |side: &mut Interface| {
        if *side == Interface::SgiLan {
            *side = Interface::Core;
        }
    };
    rules.pdrs.iter_mut().for_each(|pdr| at_core(&mut pdr.pdi.source_interface));
    for far in &mut rules.fars {
        let parameters = far.forwarding.iter_mut().chain(&mut far.duplicates);
        parameters.for_each(|to| at_core(&mut to.destination_interface));
    }
}

/// The part that packets of known flows do not touch.
fn session(seid: Seid, program: &mut Program, arrangement: &Arrangement, keys: Vec<Key>) -> Session {
    let rest =
        Rest { extras: extras(program, &arrangement.places), beyond: beyond(program, &arrangement.places) };
    let mut classifier = std::mem::take(&mut program.classifier);
    let order = arrangement.of_pdrs(program.steps.iter().map(|step| step.pdr));
    if let Order::Places(places) = &order {
        classifier.lead_to(places);
    }
    let mut session =
        Session::new(seid, (program, classifier), (keys, arrangement.standing.len() as u16), rest);
    session.is_swapped = order == Order::Swapped;
    session
}

fn has_tunnels_alone(program: &Program) -> bool {
    program.ue_ipv4s.is_empty() && program.ue_ipv6s.is_empty() && program.framed_routes.is_empty()
}

/// Whether the other end of a tunnel is ours, too, whatever its FAR does with packets now.
fn leads_back(ports: &[PortConfig], rules: &Rules) -> bool {
    let mut tunnels = rules.fars.iter().filter_map(|far| far.forwarding?.outer_header_creation);
    tunnels.any(|tunnel| ports.iter().flat_map(PortConfig::addresses).any(|ours| ours == tunnel.address))
}

/// The default one always is. A control plane engine that was configured otherwise may know others.
fn is_known(ports: &[PortConfig], instance: Instance) -> bool {
    instance == Instance::DEFAULT || ports.iter().any(|port| port.instance == instance)
}

/// Those of the PDRs, then those that stand in for them beyond a quota.
fn all_steps(program: &Program) -> impl Iterator<Item = &Step> {
    program.steps.iter().chain(program.beyond_quota.iter().map(|beyond| &beyond.step))
}

/// Those that say the way of its packets, and of their copies.
fn policies_of(step: &Step) -> impl Iterator<Item = Policy> {
    let own = match step.action {
        Action::Forward(to) => to.policy,
        _ => None,
    };
    own.into_iter().chain(step.duplicates.iter().filter_map(|to| to.policy))
}

/// Has a policy say the way of a step's packets, if its rules do.
fn steer(hot: &mut WholeStep, step: &Step, (ports, policies): (&[PortConfig], &[PolicyConfig])) {
    let Action::Forward(Forward { policy: Some(policy), .. }) = step.action else { return };
    let Some(index) = PolicyIndex::of(policy, policies) else { return };
    let Some(config) = policies.get(index.place()) else { return };
    let hops = config.hops().into_iter().flatten();
    let mtus = hops.filter_map(|via| Some(ports.get(config.port(ports, via)?)?.mtu));
    hot.steer(index, (mtus.min(), config.dscp));
}

fn hot_steps(around: (&[PortConfig], &[PolicyConfig]), program: &Program) -> Vec<WholeStep> {
    let treats =
        |step: &Step, is_it: fn(&rules::Treatment) -> bool| program.treatment(step).is_some_and(is_it);
    // Whoever may have put something in must see all packets from then on, and those of the other direction.
    let enriches =
        all_steps(program).any(|step| treats(step, |it| matches!(it, rules::Treatment::Enrich(_))));
    let readdresses =
        all_steps(program).any(|step| treats(step, |it| matches!(it, rules::Treatment::Readdress(_))));
    let hot = |step: &Step| {
        let mut hot = WholeStep::new(around.0, step, &program.usages);
        steer(&mut hot, step, around);
        if treats(step, |it| matches!(it, rules::Treatment::Portal(_))) {
            hot.redirects();
        }
        if treats(step, |it| matches!(it, rules::Treatment::Reset)) {
            hot.resets();
        }
        if enriches {
            hot.enriches();
        }
        if readdresses {
            hot.readdresses();
        }
        hot
    };
    let mut steps: Vec<WholeStep> = program.steps.iter().map(hot).collect();
    for beyond in &program.beyond_quota {
        if let Some(step) = steps.get_mut(usize::from(beyond.of)) {
            step.yields();
        }
    }
    steps.extend(program.beyond_quota.iter().map(|beyond| hot(&beyond.step)));
    steps.iter_mut().skip(program.steps.len()).for_each(|step| step.stand_in());
    steps
}

fn account(meters: &[rules::Meter], place: usize) -> Account {
    let rate = meters.get(place).map_or(Rate::ZERO, |meter| meter.mbr.map_or(Rate::ZERO, Rate::new));
    Account { rate, ..Account::ZERO }
}

fn keys(ports: &[PortConfig], program: &Program) -> Result<Vec<Key>, Unfit> {
    let tunnels = program.f_teids.iter().map(|endpoint| {
        Ports::endpoint_key(ports, *endpoint).map(Key::Tunnel).ok_or(Unfit::NotOurs(*endpoint))
    });
    let ipv4s = program.ue_ipv4s.iter().map(|(instance, address)| (*instance, IpAddr::V4(*address)));
    let ipv6s = program.ue_ipv6s.iter().map(|(instance, prefix)| (*instance, IpAddr::V6(prefix.network())));
    let users = ipv4s.chain(ipv6s).map(|(instance, address)| {
        let key = user_key(address).map(|key| Key::User(key, instance));
        key.ok_or(Unfit::NoSuchUser(address))
    });
    let has_frames = program.ethernet.is_some();
    let mut keys: Vec<Key> = tunnels.chain(users).collect::<Result<_, Unfit>>()?;
    for (instance, route) in program.framed_routes.iter() {
        let key = route_key(*route, *instance).ok_or(Unfit::NoSuchRoute(*route))?;
        // A network of no more than the user's address says nothing new.
        keys.extend(Some(key).filter(|key| !keys.contains(&found_by(*key))));
    }
    let tunnels = || {
        let key = |endpoint: &FTeid| Ports::endpoint_key(ports, *endpoint);
        program.f_teids.iter().filter_map(key)
    };
    keys.extend(tunnels().filter(|_| has_frames).map(Key::frames));
    keys.extend(tunnels().filter(|tunnel| is_turned(ports, program, *tunnel)).map(Key::turned));
    Ok(keys)
}

/// The key of a network behind a user, which has no host bits, and is of IPv6 no longer than 64 bits.
pub(crate) fn route_key(route: IpNet, instance: Instance) -> Option<Key> {
    match route {
        IpNet::V4(net) => network(net.network().to_bits().into(), Length::ipv4(net.prefix_len()), instance),
        IpNet::V6(net) => {
            let bits = (net.network().to_bits() >> 64) as u64;
            network(bits, Length::ipv6(net.prefix_len()), instance)
        }
    }
}

/// Whether packets in a tunnel of ours go the other way than others of its port. The first of its PDRs decides.
fn is_turned(ports: &[PortConfig], program: &Program, tunnel: u64) -> bool {
    let (port, teid) = Ports::tunnel(tunnel);
    let first = program.steps.iter().find(|step| step.teid == Some(teid));
    let own = ports.get(usize::from(port)).map(|port| port.interface.direction());
    first.is_some_and(|step| Some(step.direction) != own)
}

/// The other end of the tunnel a step puts packets into.
fn peer(ports: &[PortConfig], step: &Step) -> Option<Name> {
    match step.action {
        Action::Forward(Forward { to, instance, encapsulation: Some(tunnel), .. }) => {
            Some((side_of_peer(ports, Side::new(to, instance), tunnel.peer), tunnel.peer))
        }
        _ => None,
    }
}

/// By place, in its order.
fn extras(program: &Program, places: &[u16]) -> Box<[(u16, Extra)]> {
    let extra = |step: &Step| Extra {
        duplicates: step.duplicates.iter().copied().collect(),
        treatment: program.treatment(step).and_then(Treatment::of),
    };
    let all = all_steps(program).zip(places).map(|(step, place)| (*place, extra(step)));
    let mut some: Vec<_> =
        all.filter(|(_, extra)| !extra.duplicates.is_empty() || extra.treatment.is_some()).collect();
    some.sort_unstable_by_key(|(place, _)| *place);
    some.into()
}

/// Stand-ins come behind the steps of PDRs.
fn beyond(program: &Program, places: &[u16]) -> Box<[(u16, Places, u16)]> {
    let stand_ins = places.iter().skip(program.steps.len());
    let all = program.beyond_quota.iter().zip(stand_ins);
    let known =
        all.filter_map(|(beyond, place)| Some((*places.get(usize::from(beyond.of))?, beyond.usages, *place)));
    known.collect()
}

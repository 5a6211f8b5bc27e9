//! The control plane engine: one thread that carries what the PFCP node says to its socket, its database and the data
//! plane, and back.

pub(crate) mod charging;
mod content;
pub(crate) mod control;
mod ending;
pub(crate) mod endpoint;
mod keeping;
mod link;
mod metrics;
mod obey;
mod orders;
pub(crate) mod predefined;
mod resync;
mod runtime;
mod send;
mod sockets;
mod start;

use crate::charged::Charged;
use crate::exit;
use crate::settings::{Args, Settings, UnknownApplication, UnknownInstance};
use anyhow::Context;
use charging::Outbox;
use config::NodeIdText;
use dataplane::PolicyConfig;
pub(crate) use ending::FAREWELL;
use n4::{Config, ForwardingPolicy, Limits, Node};
use nix::sys::socket::{setsockopt, sockopt};
use pfcp::NodeId;
use rules::Interface;
use session::Store;
use sockets::Sockets;
pub(crate) use start::time_of_day;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::UdpSocket;
use tokio::time::Instant;

/// Of a PDU session with indirect forwarding during a handover, and some to spare.
const TUNNELS_PER_SESSION: usize = 4;

/// Room for requests that come while one batch of others is done; the system may grant less.
const RECEIVE_BUFFER: usize = 4 << 20;
/// More than the kernel keeps for a host on the link that does not say where it is (net.ipv4.neigh.*.unres_qlen_bytes), so that such
/// hosts leave room for others.
const SEND_BUFFER: usize = 4 << 20;

/// Runs until told to stop.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    crate::up::bind_to_parent();
    let settings = args.load()?;
    crate::layout::keep_off(&settings.dpe.crew.cpus)?;
    crate::log::settle();
    let store = Arc::new(start::open(&settings).map_err(exit::unusable)?);
    let begun = start::begin(&store, &start::boot(), start::identity(&settings))
        .map_err(|error| start::unusable(&settings, error))?;
    let (mut start, cdrs, stream) = (begun.start, begun.cdrs, begun.life.stream);
    let outbox = match &settings.charging {
        Some(charging) => {
            start.last_cdr = charging::last_number(charging, stream, start.last_cdr);
            Some(Outbox::start(charging, &settings, (cdrs, stream, begun.lost), Arc::clone(&store))?)
        }
        None => None,
    };
    let tables = predefined::Tables::new(&settings, begun.predefined);
    let (kept, associations) = (start.sessions.len(), start.associations.len());
    let node = Node::new(Config { predefined: tables.in_force().clone(), ..config(&settings)? }, start);
    tracing::info!("{}", start::in_database((kept, node.sessions()), associations));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(&settings, (Arc::clone(&store), outbox), ((node, begun.zero), tables)))?;
    start::end(&store, begun.life);
    Ok(())
}

async fn serve(
    settings: &Settings,
    (store, outbox): (Arc<Store>, Option<Outbox>),
    (node, tables): ((Node, Instant), predefined::Tables),
) -> anyhow::Result<()> {
    let first = bind(settings.n4.listen).await?;
    let other = match settings.n4.also_listen {
        Some(listen) => Some(bind(listen).await?),
        None => None,
    };
    let link = link::Link::start(settings.link());
    let data_plane = link.peer();
    let content = content::watch(settings.content.as_ref(), Charged::of(settings)).map_err(exit::unusable)?;
    let control = control::Control::listen(&settings.control())?;
    let asker = control.asker();
    let content = (content, settings.n4.unknown_application == UnknownApplication::Refuse);
    let mut runtime = runtime::Runtime::new(
        (node, store, outbox),
        Sockets::new(first, other)?,
        (link, control, tables),
        content,
    );
    let endpoint = match settings.metrics {
        Some(listen) => {
            let source = endpoint::Source { link: settings.link(), pfcp: runtime.told(), asker };
            Some(endpoint::Endpoint::bind(listen, source).await?)
        }
        None => None,
    };
    let endpoint = async {
        match endpoint {
            Some(endpoint) => endpoint.serve().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        result = runtime.run() => result,
        () = endpoint => Ok(()),
        () = ending::told_to_stop(data_plane) => runtime.stopped(),
    }
}

async fn bind(listen: SocketAddr) -> anyhow::Result<UdpSocket> {
    let socket = UdpSocket::bind(listen).await.map_err(|error| exit::unusable(bind_error(listen, &error)))?;
    // Beyond the system's limit, if this process may; what is not granted it does without.
    let _ = setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER)
        .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER));
    let _ = setsockopt(&socket, sockopt::SndBufForce, &SEND_BUFFER)
        .or_else(|_| setsockopt(&socket, sockopt::SndBuf, &SEND_BUFFER));
    Ok(socket)
}

/// Why PFCP cannot be served there, and what to do about it.
pub(crate) fn bind_error(listen: SocketAddr, error: &std::io::Error) -> anyhow::Error {
    let why = match error.kind() {
        std::io::ErrorKind::AddrInUse => "another program uses that port; stop it or change [n4]",
        std::io::ErrorKind::AddrNotAvailable => "no interface here has that address; add it or change [n4]",
        std::io::ErrorKind::PermissionDenied => {
            "this process may not use that port; run it with more privilege"
        }
        _ => return anyhow::anyhow!("PFCP cannot be served at {listen}: {error}"),
    };
    anyhow::anyhow!("PFCP cannot be served at {listen}: {why}")
}

pub(crate) fn config(settings: &Settings) -> anyhow::Result<Config> {
    let gtpu = settings.gtpu_addresses();
    let first = gtpu.first().context("no port has an address for GTP-U")?.ipv4;
    let node_id = match &settings.node_id {
        NodeIdText::Ipv4(address) => NodeId::Ipv4(*address),
        NodeIdText::Ipv6(address) => NodeId::Ipv6(*address),
        NodeIdText::Fqdn(name) => NodeId::Fqdn(name.clone()),
    };
    let both = [Some(settings.n4.listen), settings.n4.also_listen].map(|listen| listen.map(|at| at.ip()));
    let ipv4 = both.iter().flatten().find_map(|at| if let IpAddr::V4(at) = at { Some(*at) } else { None });
    let ipv6 = both.iter().flatten().find_map(|at| if let IpAddr::V6(at) = at { Some(*at) } else { None });
    let advertised = &settings.n4.advertised;
    let timers = settings.n4.timers;
    Ok(Config {
        ipv4: advertised.ipv4.or(ipv4),
        ipv6: advertised.ipv6.or(ipv6),
        gtpu,
        network_instances: settings.dpe.network_instances(),
        refuses_unknown_instances: refuses_unknown_instances(settings),
        has_no_nameless_network: has_no_nameless_network(settings),
        forwarding_policies: settings.dpe.policies.iter().map(policy).collect(),
        predefined: settings.n4.predefined.clone(),
        charging: settings.charging.as_ref().map(|charging| charging.offline.clone()),
        ue_pools: settings.n4.ue_pools.clone(),
        associate: settings.n4.associate.clone(),
        allow: settings.n4.allow.clone(),
        silent_max: settings.n4.silent_max,
        stale_max: settings.n4.stale_max,
        usage_reports_per_s: settings.n4.usage_reports_per_s,
        limits: limits(settings.dpe.sessions, settings.n4.control_planes),
        heartbeat_interval: timers.heartbeat,
        t1: timers.t1,
        n1: timers.n1,
        answer_lifetime: timers.answers,
        ..Config::new(node_id, settings.n4.listen.ip(), first)
    })
}

/// Whether names that no port has are refused: also where there is no network without one for them to stand for.
fn refuses_unknown_instances(settings: &Settings) -> bool {
    let mut names = settings.dpe.ports.iter().map(|port| &port.network_instance);
    settings.n4.unknown_network_instance == UnknownInstance::Refuse || names.all(Option::is_some)
}

/// Whether every port off the access side has a name: packets in no tunnel are of the network of their port.
fn has_no_nameless_network(settings: &Settings) -> bool {
    let mut plain = settings.dpe.ports.iter().filter(|port| port.interface != Interface::Access).peekable();
    plain.peek().is_some() && plain.all(|port| port.network_instance.is_some())
}

fn policy(policy: &PolicyConfig) -> ForwardingPolicy {
    ForwardingPolicy { name: policy.name.clone(), instance: policy.instance }
}

/// Tunnel endpoints are as many as the sessions the operator wants room for may need; and a peer that lost its tunnels may say so of
/// all of them.
fn limits(sessions: usize, peers: usize) -> Limits {
    let fewest = Limits::default();
    let tunnels = sessions.saturating_mul(TUNNELS_PER_SESSION).max(fewest.tunnels);
    Limits { peers, sessions, tunnels, reports: sessions.max(fewest.reports), ..fewest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_sessions_have_room_for_their_tunnels() {
        assert!(limits(1_000_000, 64).tunnels >= 2_000_000);
        assert_eq!(limits(1, 64).tunnels, Limits::default().tunnels);
    }
}

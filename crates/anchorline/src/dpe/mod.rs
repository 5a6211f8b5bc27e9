//! The data plane engine: ports and workers on one side, the link to the control plane on the other.

#[cfg(test)]
mod carrier;
mod content;
mod exact;
mod idle;
mod link;
mod lives;
mod memif;
pub(crate) mod numa;
mod ports;
mod queues;
#[cfg(test)]
mod room;
mod steering;
mod taps;
mod watch;
mod worker;

use crate::settings::{Args, DpeSettings, HugePages, Settings};
use crate::{exit, layout, socket};
use dataplane::{Config, ContentRules, Limits};
use dpdk::{Eal, EalConfig, Memory};
use dplink::PortSteering;
use host::Placement;
pub(crate) use link::FAREWELL;
use nix::sys::signal::{SigSet, Signal};
use std::sync::Arc;
use std::time::Duration;
use steer::ExactRules;

/// What comes within so long of the order to end is that order once more.
const SAME_ORDER: Duration = Duration::from_secs(2);

/// What is served.
struct Served {
    engine: dataplane::Engine,
    /// What was found out about each port's card, and what is done about it while packets come.
    steering: Vec<PortSteering>,
    exact: Vec<Option<ExactRules<dpdk::Port>>>,
    /// Ports' interfaces in the kernel.
    taps: Vec<taps::Tap>,
    watch: watch::Watch,
    lives: lives::Lives,
}

/// Runs until told to stop.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    crate::up::bind_to_parent();
    let settings = args.load()?;
    layout::check_cpus(&settings.dpe.crew.cpus)?;
    // Before anything is taken that the other one, or another program, may be in need of: huge pages, ports.
    socket::claim(&settings.link(), link::ENGINE)?;
    layout::keep_off(&settings.dpe.crew.cpus)?;
    crate::log::settle();
    layout::warn(&settings.dpe);
    let placement = numa::placement(&settings.dpe);
    let eal = start_eal(&settings.dpe, &placement)?;
    say_memory(eal, &placement, settings.dpe.huge_pages);
    let opened = ports::open(eal, &settings.dpe, &placement).map_err(exit::unusable)?;
    let taps = taps::Tap::open_all(&opened.configs).map_err(exit::unusable)?;
    let (epoch, limits) = (rand::random(), limits(&settings));
    let mut lives = lives::Lives::find(&settings.run_dir, epoch, (&opened.crew, &limits));
    let config = Config {
        ports: opened.configs,
        routes: settings.dpe.routes.clone(),
        policies: settings.dpe.policies.clone(),
        limits,
        echo: settings.dpe.echo,
        resolvers: settings.content.iter().flat_map(|content| content.resolvers.clone()).collect(),
        epoch,
        awaits_sessions: true,
        seed: rand::random(),
        lasting: lives.own(),
    };
    let (mut engine, workers) = {
        let mut beside = numa::Beside::default();
        let clock: dataplane::Clock = dpdk::tsc;
        let before = |worker| beside.worker(&placement, worker);
        dataplane::connect_placed(&config, &opened.crew, opened.ports, (clock, before))
            .map_err(exit::unusable)?
    };
    engine.inherit(lives.legacy());
    let workers = worker::Running::start(eal, workers, &settings)?;
    // After their threads have been started, who would inherit it.
    let _beside = numa::Beside::all_workers(&placement);
    let watch = watch::Watch::new(opened.watch);
    let served = Served { engine, steering: opened.steering, exact: opened.exact, taps, watch, lives };
    let Ended { result, lives, content } = serve(&settings, served, &workers)?;
    let flows = workers.stop()?;
    if let Some(content) = content {
        lives.leave(&content, flows);
    }
    // The AF_XDP driver keeps some packets when it closes; the kernel takes all memory back with the process.
    if let Err(error) = eal.cleanup() {
        tracing::debug!("DPDK is left as it is: {error}");
    }
    result
}

/// No signal may end the process while DPDK maps its memory: a limit of the kernel is raised just then.
fn start_eal(dpe: &DpeSettings, placement: &Placement) -> anyhow::Result<&'static Eal> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGINT);
    signals.thread_block()?;
    dpdk::log_to(crate::log::pass_on);
    let config = EalConfig { nodes: numa::memory(placement), ..eal_config(dpe) };
    let eal = Eal::init(&config).map_err(exit::unusable);
    signals.thread_unblock()?;
    eal
}

/// What is left of a server.
struct Ended {
    /// Why it ended, if nobody told it to.
    result: anyhow::Result<()>,
    lives: lives::Lives,
    /// The content rules that were in force.
    content: Option<Arc<ContentRules>>,
}

fn serve(settings: &Settings, served: Served, workers: &worker::Running) -> anyhow::Result<Ended> {
    let Served { engine, steering, exact, taps, watch, lives } = served;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let server = link::Server::listen(&settings.link(), engine)?.with_steering(steering);
        let server = server.with_directors(exact::directors(exact)).with_idle(workers.idle().to_vec());
        let mut server = server.with_charged(settings.charged()).with_taps(taps::Taps::new(taps));
        server = server.with_interim_usage(settings.dpe.interim_usage).with_watch(watch).with_lives(lives);
        crate::log::say("dpe: ready");
        let end = tokio::select! {
            result = server.serve() => result,
            () = crate::up::told_to_stop() => Ok(()),
            () = workers.died() => Err(anyhow::anyhow!("a worker stopped")),
        };
        let result = tokio::select! {
            () = server.end() => end,
            () = told_again() => end,
            () = workers.died() => Err(anyhow::anyhow!("a worker stopped")),
        };
        let (lives, content) = server.left();
        Ok(Ended { result, lives, content })
    })
}

/// Who is in a hurry asks again. Where all processes of a node are told to end, so does who supervises them, at once: that is the same
/// order.
async fn told_again() {
    tokio::time::sleep(SAME_ORDER).await;
    crate::up::told_to_stop().await;
}

fn eal_config(dpe: &DpeSettings) -> EalConfig {
    let pci = dpe.ports.iter().map(|port| port.device.clone()).filter(|device| host::is_pci(device));
    EalConfig {
        memory_mb: dpe.memory_mb,
        huge_pages: match dpe.huge_pages {
            HugePages::Auto => dpdk::HugePages::Auto,
            HugePages::Require => dpdk::HugePages::Require,
            HugePages::Never => dpdk::HugePages::Never,
        },
        pci: pci.collect(),
        ..EalConfig::default()
    }
}

fn limits(settings: &Settings) -> Limits {
    let content = settings.content.clone().unwrap_or_default();
    Limits {
        inspections: content.inspections,
        connections: content.enriched_connections,
        connection_age_ns: content.connection_s * 1_000_000_000,
        ..table_limits(&settings.dpe)
    }
}

/// Of a PDR on average, over all there may be: what finds it, and names and limits of what counts its packets. Rules of a
/// carrier's node with a URR of their own take some 110 bytes, filters and thresholds for every PDR 200 and more.
const RULE_BYTES: usize = 256;

/// Those that say how large tables are.
pub(crate) fn table_limits(dpe: &DpeSettings) -> Limits {
    let DpeSettings { sessions, pdrs, framed_routes, flows, .. } = *dpe;
    let rule_bytes = Some(pdrs.saturating_mul(RULE_BYTES));
    dpe.limits.within(Limits { sessions, pdrs, rule_bytes, framed_routes, flows, ..Limits::default() })
}

fn say_memory(eal: &Eal, placement: &Placement, huge_pages: HugePages) {
    let by_node: Vec<String> =
        placement.memory_mb.iter().map(|(node, part)| format!("{part} MiB on node {node}")).collect();
    match (by_node.is_empty(), eal.has_nodes()) {
        (true, _) => {}
        (_, true) => tracing::info!("packet memory by NUMA node: {}", by_node.join(", ")),
        (_, false) => tracing::warn!(
            "packet memory belongs by NUMA node ({}), where not enough huge pages are free: it is where there is some",
            by_node.join(", ")
        ),
    }
    match eal.memory() {
        Memory::HugePages { memory_mb, reserved_pages: 0 } => {
            tracing::info!("packet memory: {memory_mb} MiB of free huge pages");
        }
        Memory::HugePages { memory_mb, reserved_pages } => {
            tracing::info!(
                "packet memory: {memory_mb} MiB of huge pages, {reserved_pages} of them made for it"
            );
        }
        Memory::Ordinary { memory_mb } => {
            tracing::info!("packet memory: {memory_mb} MiB of ordinary pages ({})", slower(huge_pages));
        }
    }
}

/// Why packet memory is where it is slower.
const fn slower(huge_pages: HugePages) -> &'static str {
    match huge_pages {
        HugePages::Never => "dpe.huge_pages is \"never\"; slower",
        HugePages::Auto | HugePages::Require => "huge pages cannot be had; slower",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn who_wants_no_huge_pages_is_not_told_that_there_are_none() {
        assert_eq!(slower(HugePages::Never), "dpe.huge_pages is \"never\"; slower");
        assert_eq!(slower(HugePages::Auto), "huge pages cannot be had; slower");
    }

    /// What this is run with could not start: it is not tried.
    #[test]
    fn a_second_data_plane_takes_nothing_before_it_finds_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let args = Args { config: folder.path().join("upf.toml") };
        let run_dir = format!("{:?}", folder.path());
        let text = include_str!("../../../../config/upf.toml").replacen("\"/run/anchorline\"", &run_dir, 1);
        std::fs::write(&args.config, text).unwrap();
        let _first = UnixListener::bind(folder.path().join("dpe.sock")).unwrap();
        let said = format!("{:#}", run(&args).unwrap_err());
        assert!(
            said.starts_with("another data plane runs at ") && said.ends_with("change node.run_dir"),
            "{said}"
        );
    }
}

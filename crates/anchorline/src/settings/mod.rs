//! The configuration of a node: one TOML file for all its roles.

mod actions;
mod advertised;
mod charging;
mod classes;
mod crew;
mod exact;
mod file;
mod limits;
mod n4;
mod peers;
pub(crate) mod predefined;
mod restart;
mod timers;
mod values;

pub(crate) use advertised::Advertised;
pub(crate) use charging::ChargingSettings;
pub(crate) use classes::ClassSettings;
pub(crate) use crew::CrewSettings;
pub(crate) use limits::LimitSettings;
pub(crate) use n4::{N4Settings, UnknownApplication, UnknownInstance};
pub(crate) use values::{DeviceHash, HugePages};

use crate::content::Sources;
use ::n4::{GtpuAddress, InterfaceTypes};
use config::{ConfigError, NodeIdText};
use ipnet::{Ipv4Net, Ipv6Net};
use rules::{Instance, Interface};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a node's configuration stands, unless somebody says otherwise.
const USUAL: &str = "/etc/anchorline/upf.toml";

/// Where the configuration is.
#[derive(clap::Args)]
#[group(id = "settings")]
pub(crate) struct Args {
    /// Configuration of the node.
    #[arg(long, global = true, value_name = "FILE", default_value = USUAL)]
    pub(crate) config: PathBuf,
}

impl Args {
    /// Reads the file.
    pub(crate) fn load(&self) -> anyhow::Result<Settings> {
        Settings::read(&self.config).map_err(crate::exit::unusable)
    }

    /// The same for who can do without: `None` where nobody has named a file and there is no usual one.
    pub(crate) fn load_if_any(&self) -> anyhow::Result<Option<Settings>> {
        let is_none = !self.is_named() && !self.config.exists();
        if is_none { Ok(None) } else { self.load().map(Some) }
    }

    /// Whether it is another than the usual one.
    pub(crate) fn is_named(&self) -> bool {
        self.config != Path::new(USUAL)
    }
}

/// Made only from a file that was checked.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) node_id: NodeIdText,
    pub(crate) run_dir: PathBuf,
    pub(crate) state_dir: PathBuf,
    pub(crate) dpe: DpeSettings,
    /// `advertise` of `[[dpe.port]]`, one by one: it may change while the data plane runs.
    pub(crate) advertised: Vec<Advertised>,
    pub(crate) n4: N4Settings,
    /// `[content]`: content rules, if any.
    pub(crate) content: Option<Sources>,
    /// `[charging]`: nothing is charged, where absent.
    pub(crate) charging: Option<ChargingSettings>,
    /// `[metrics]`: where Prometheus finds them; nowhere, where absent.
    pub(crate) metrics: Option<SocketAddr>,
}

/// `[dpe]`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DpeSettings {
    pub(crate) memory_mb: u32,
    pub(crate) huge_pages: HugePages,
    pub(crate) idle: dpdk::Idle,
    /// An idle worker rests so many microseconds at most.
    pub(crate) idle_us: u64,
    pub(crate) crew: CrewSettings,
    pub(crate) sessions: usize,
    pub(crate) pdrs: usize,
    pub(crate) framed_routes: usize,
    pub(crate) flows: usize,
    /// What sessions have used is told within so long; zero: only what is asked for.
    pub(crate) interim_usage: Duration,
    /// `[dpe.limits]`.
    pub(crate) limits: LimitSettings,
    /// `[dpe.echo]`.
    pub(crate) echo: dataplane::Echo,
    pub(crate) ports: Vec<PortSettings>,
    pub(crate) routes: Vec<dataplane::Route>,
    /// `[[dpe.forwarding_policy]]`.
    pub(crate) policies: Vec<dataplane::PolicyConfig>,
}

/// `[[dpe.port]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortSettings {
    pub(crate) name: String,
    pub(crate) device: String,
    pub(crate) interface: Interface,
    pub(crate) address: Ipv4Net,
    pub(crate) address6: Option<Ipv6Net>,
    pub(crate) mtu: u16,
    /// The VLAN its frames are tagged with, if any.
    pub(crate) vlan: Option<u16>,
    /// The network instance it belongs to, in lower case.
    pub(crate) network_instance: Option<String>,
    /// The 3GPP interfaces it is for; none: for any.
    pub(crate) interface_types: InterfaceTypes,
    pub(crate) mss_clamp: bool,
    /// It is an Ethernet data network, and the address is none.
    pub(crate) ethernet: bool,
    /// The kernel's interface for what is addressed to it and not spoken here.
    pub(crate) punt: Option<String>,
    pub(crate) hash: DeviceHash,
    /// Exact rules for sessions that the card leads elsewhere, at most.
    pub(crate) exact_rules: usize,
    /// Packets that are served before others, the most urgent first.
    pub(crate) classes: Vec<ClassSettings>,
}

/// What predefined rules have to fit.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(crate) ports: &'a [PortSettings],
    pub(crate) policies: &'a [dataplane::PolicyConfig],
}

impl DpeSettings {
    /// What predefined rules have to fit.
    pub(crate) fn around(&self) -> Around<'_> {
        Around { ports: &self.ports, policies: &self.policies }
    }

    /// Names of network instances, each once.
    pub(crate) fn network_instances(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.ports.iter().filter_map(|port| port.network_instance.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl Settings {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        config::read(path, file::check)
    }

    /// Of a file's text.
    #[cfg(test)]
    pub(crate) fn parse(text: &str) -> Result<Self, ConfigError> {
        config::parse(text, file::check)
    }

    /// What flows are charged under if their content rules say so: rating groups and services.
    pub(crate) fn charged(&self) -> Vec<(u32, Option<u32>)> {
        let keys = self.charging.iter().flat_map(|charging| charging.offline.rating.content());
        keys.map(|key| (key.rating_group, key.service_id)).collect()
    }

    /// Where the data plane engine is reached.
    pub(crate) fn link(&self) -> PathBuf {
        self.run_dir.join("dpe.sock")
    }

    /// Where the control plane engine takes orders.
    pub(crate) fn control(&self) -> PathBuf {
        self.run_dir.join("cpe.sock")
    }

    /// The addresses tunnels of ours end at: those of all ports that have any, in their order.
    pub(crate) fn gtpu_addresses(&self) -> Vec<GtpuAddress> {
        let with_address = self.dpe.ports.iter().zip(&self.advertised).filter(|(port, _)| !port.ethernet);
        let instance = |name: &String| Instance::of(name);
        let gtpu = |(port, advertised): (&PortSettings, &Advertised)| GtpuAddress {
            interface: port.interface,
            instance: port.network_instance.as_ref().map_or(Instance::DEFAULT, instance),
            interface_types: port.interface_types,
            ipv4: port.address.addr(),
            ipv6: port.address6.map(|address| address.addr()),
            advertise: advertised.ipv4,
            advertise6: advertised.ipv6,
        };
        with_address.map(gtpu).collect()
    }
}

//! What an operator writes: one TOML file.

mod parse;
mod values;

pub use ::config::ConfigError;
pub use values::{Mtu, TunName};

use crate::smf::Dialect;
use ipnet::Ipv4Net;
use pfcp::NodeId;
use rules::{BitRates, Qfi};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

/// A RAN and its SMF. It can only be made from text that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The control plane side.
    pub smf: SmfConfig,
    /// The radio side.
    pub gnb: GnbConfig,
    /// At least one; names and addresses are unique.
    pub ues: Vec<UeConfig>,
}

/// `[smf]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmfConfig {
    /// Our PFCP Node ID.
    pub node_id: NodeId,
    /// Where we speak PFCP.
    pub listen: SocketAddrV4,
    /// The user plane's PFCP endpoint.
    pub upf: SocketAddrV4,
    /// Who picks uplink tunnels.
    pub f_teid: FTeidMode,
    /// Which control plane we speak like.
    pub dialect: Dialect,
}

/// Who picks the F-TEID of an uplink PDR (TS 29.244 8.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FTeidMode {
    /// The user plane, asked by CHOOSE with a CHOOSE ID.
    Choose,
    /// The SMF, at this N3 address of the user plane.
    Explicit(Ipv4Addr),
}

/// `[gnb]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GnbConfig {
    /// N3 address.
    pub address: Ipv4Addr,
}

/// One `[[ue]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UeConfig {
    /// Its TUN device.
    pub tun: TunName,
    /// Its address.
    pub address: Ipv4Addr,
    /// The QoS flow of its packets.
    pub qfi: Qfi,
    /// MTU of the device.
    pub mtu: Mtu,
    /// What is reached through it.
    pub routes: Vec<Ipv4Net>,
    /// The most the user plane lets pass.
    pub mbr: Option<BitRates>,
    /// The user plane reports what the UE used after so many bytes, and at the end.
    pub report_after_bytes: Option<u64>,
    /// Its session carries Ethernet frames: the device is a TAP, and the address that of a station on it.
    pub ethernet: bool,
    /// Rules of the user plane's that its session activates, by name.
    pub predefined_rules: Vec<String>,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`] naming file, line, key, value and what is allowed.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        ::config::read(path, parse::check)
    }

    /// Reads text.
    ///
    /// # Errors
    /// As [`Config::read`], without a file name.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        ::config::parse(text, parse::check)
    }
}

#[cfg(test)]
mod tests;

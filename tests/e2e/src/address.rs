//! The addresses of the laboratory; those of `config/upf.toml` and `config/ran.toml`.

use std::net::Ipv4Addr;

/// The gNB on N3.
pub const GNB_N3: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 1);
/// The user plane node on N3.
pub const UPF_N3: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 2);
/// The SMF on N4.
pub const SMF_N4: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 1);
/// The user plane node on N4.
pub const UPF_N4: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 2);
/// A server in the data network.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 1);
/// The user plane node on N6.
pub const UPF_N6: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 2);
/// The first user.
pub const UE: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 1);
/// Where all users are.
pub const UE_POOL: &str = "10.60.0.0/16";
/// A host of the Ethernet data network.
pub const ETHERNET_HOST: Ipv4Addr = Ipv4Addr::new(10, 70, 0, 1);
/// Stations behind users whose sessions carry frames.
pub const STATIONS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 70, 0, 11), Ipv4Addr::new(10, 70, 0, 12)];
/// PFCP (TS 29.244 6.4).
pub const PFCP_PORT: u16 = 8805;
/// Our web server; no dissector claims this port.
pub const HTTP_PORT: u16 = 8000;

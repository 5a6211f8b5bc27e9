//! Ethernet PDU sessions: stations behind users, and hosts of an Ethernet data network.

use crate::Test;
use anyhow::{Context, Result, ensure};
use lab::address::{ETHERNET_HOST, SERVER, STATIONS};
use lab::anchorline::{Node, Ran};
use lab::config;
use lab::measure::{Direction, IperfServer, Ping};
use lab::{Core, Lab, Namespace};
use std::time::Duration;

pub(crate) const TESTS: &[Test] =
    &[("frames_pass_between_stations_behind_users_and_an_ethernet_data_network", Core::Engine, frames_pass)];

const SERIES: (u32, Duration) = (20, Duration::from_millis(20));

/// Two users whose sessions carry frames, the second's station in a namespace of its own, and one of IP.
fn frames_pass(lab: &Lab) -> Result<()> {
    let dir = lab.dir.path();
    lab.wire_ethernet()?;
    let node = Node::start_by(lab, config::write_upf_ethernet(dir)?)?;
    let mut ran = Ran::run(lab, &config::write_ran_ethernet(dir)?)?;
    node.wait_sessions(ran.sessions)?;
    let [near, far_station] = STATIONS;
    let far = lab.namespace("far")?;
    lab.ran.ip(&format!("link set tap1 netns {}", far.name()))?;
    far.ip(&format!("addr add {far_station}/24 dev tap1"))?;
    far.ip("link set tap1 up")?;

    // ARP goes across: the host knows the station's own MAC address, and the other way.
    Ping::run(&lab.ran, ETHERNET_HOST, SERIES)?.expect_no_loss()?;
    ensure!(neighbour(&lab.dn, "n6e", near)? == mac(&lab.ran, "tap0")?, "a MAC address on the way");
    ensure!(neighbour(&lab.ran, "tap0", ETHERNET_HOST)? == mac(&lab.dn, "n6e")?, "a MAC address on the way");
    // The SMF hears of the station.
    ran.wait_for_line(&format!("ran: UE {near}: MAC addresses detected [{}]", mac(&lab.ran, "tap0")?))?;
    // From the network: the question goes to all users, and the right one answers.
    lab.dn.ip("neigh flush dev n6e")?;
    Ping::run(&lab.dn, near, SERIES)?.expect_no_loss()?;
    // Between users, by the node alone.
    Ping::run(&far, near, SERIES)?.expect_no_loss()?;
    ensure!(neighbour(&far, "tap1", near)? == mac(&lab.ran, "tap0")?, "a MAC address on the way");
    let server = IperfServer::start(&lab.dn, ETHERNET_HOST, dir)?;
    for direction in [Direction::Uplink, Direction::Downlink] {
        let tcp = server.tcp(&lab.ran, direction, 2)?;
        println!("TCP in frames, {direction}: {:.0} Mbit/s, {} sent again", tcp.mbit_s, tcp.retransmits);
        ensure!(tcp.mbit_s > 5.0, "{direction}: {:.1} Mbit/s", tcp.mbit_s);
    }
    // The user of IP beside them.
    Ping::run(&lab.ran, SERVER, SERIES)?.expect_no_loss()?;
    ran.stop()?;
    node.wait_sessions(0)?;
    node.wait_balance()?;
    node.stop()
}

/// The MAC address of a neighbour.
fn neighbour(namespace: &Namespace, device: &str, address: std::net::Ipv4Addr) -> Result<String> {
    let said = namespace.ip(&format!("neigh show {address} dev {device}"))?;
    after(&said, "lladdr").with_context(|| format!("{address} has no MAC address: `{}`", said.trim()))
}

/// The MAC address of a device.
fn mac(namespace: &Namespace, device: &str) -> Result<String> {
    let said = namespace.ip(&format!("link show {device}"))?;
    after(&said, "link/ether").with_context(|| format!("{device} has no MAC address: `{}`", said.trim()))
}

fn after(text: &str, word: &str) -> Option<String> {
    text.split_whitespace().skip_while(|other| *other != word).nth(1).map(ToOwned::to_owned)
}

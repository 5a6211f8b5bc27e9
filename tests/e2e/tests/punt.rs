//! What is addressed to a port and not spoken by the node: programs beside it have the kernel's interface for that.

use crate::Test;
use anyhow::{Context, Result, ensure};
use dplink::{Punting, Statistics};
use lab::address::{GNB_N3, HTTP_PORT, SERVER, UPF_N6};
use lab::anchorline::{Node, Part, Ran, call};
use lab::config::{self, Driver, FTeid};
use lab::http::FileServer;
use lab::measure::{Direction, IperfServer, Ping, PingInProgress, random_file};
use lab::{Core, Lab, Namespace, Process, command};
use std::path::Path;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    ("programs_beside_the_node_have_the_ports_addresses", Core::Engine, |lab| beside(lab, 1)),
    ("programs_beside_a_node_of_two_workers_have_the_ports_addresses", Core::Engine, |lab| beside(lab, 2)),
    ("an_interface_of_the_kernel_comes_and_goes_with_the_data_plane", Core::Engine, comes_and_goes),
    ("an_interface_that_another_has_is_named", Core::Engine, taken),
];

const SERIES: (u32, Duration) = (20, Duration::from_millis(20));
/// The node's address on N6 over IPv6, and the server's.
const UPF_N6_IPV6: &str = "2001:db8:6::2";
const SERVER_IPV6: &str = "2001:db8:6::1";
/// In the file that is fetched.
const BYTES: u64 = 2 << 20;

/// A node with an interface on either side, and IPv6 on N6.
fn start(lab: &Lab, workers: u32) -> Result<Node> {
    let path = config::write_upf(lab.dir.path(), Driver::AfPacket)?;
    config::set_punting(&path, &[("n3", "n3-host", None), ("n6", "n6-host", Some(UPF_N6_IPV6))])?;
    if workers > 1 {
        config::set_workers(&path, workers)?;
    }
    // Packet sockets leave the kernel what they see: here alone it must not take that for its own.
    for port in ["n3", "n6"] {
        lab.upf.sysctl(&format!("ipv4/conf/{port}/rp_filter"), "1")?;
        lab.upf.sysctl(&format!("ipv4/conf/{port}/arp_ignore"), "8")?;
    }
    lab.upf.sysctl("ipv6/conf/default/disable_ipv6", "0")?;
    lab.dn.sysctl("ipv6/conf/n6/disable_ipv6", "0")?;
    lab.dn.ip(&format!("addr add {SERVER_IPV6}/64 dev n6 nodad"))?;
    Node::start_by(lab, path)
}

fn beside(lab: &Lab, workers: u32) -> Result<()> {
    let (dir, files) = (lab.dir.path(), lab.scratch.path());
    let node = start(lab, workers)?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    node.wait_sessions(ran.sessions)?;
    random_file(&files.join("payload"), BYTES)?;
    let users = PingInProgress::start(&lab.ran, SERVER, (300, Duration::from_millis(20)), dir)?;

    // The node answers pings, and the kernel looks for its neighbours and hears what they answer.
    Ping::run(&lab.dn, UPF_N6, SERIES)?.expect_no_loss()?;
    let ping = Ping::run(&lab.upf, SERVER, SERIES)?.expect_no_loss()?;
    println!("a ping of the kernel takes {:.2} ms, {:.2} at most", ping.mean_ms, ping.max_ms);
    Ping::run(&lab.upf, GNB_N3, SERIES)?.expect_no_loss()?;
    // A service beside the node, from behind a port; and one behind a port, from beside the node.
    let here = FileServer::start(&lab.upf, (UPF_N6, HTTP_PORT), files)?;
    fetch(&lab.dn, &UPF_N6.to_string())?;
    drop(here);
    let _there = FileServer::start(&lab.dn, (SERVER, HTTP_PORT), files)?;
    fetch(&lab.upf, &SERVER.to_string())?;
    over_ipv6(lab)?;
    hears_groups(lab, dir)?;
    users.finish()?.expect_no_loss()?;
    fast(lab, dir)?;

    ran.stop()?;
    node.wait_sessions(0)?;
    let status = node.wait_balance()?;
    let n6 = punting(&status, "n6-host")?;
    // Each way at least what the files take.
    ensure!(n6.punted > 1_000 && n6.from_kernel > 1_000 && n6.refused == 0, "{n6:?}");
    let punted: u64 = status.workers.iter().map(|worker| worker.books.punted).sum();
    ensure!(punted == n6.punted + punting(&status, "n3-host")?.punted, "{status:?}");
    println!("{workers} workers: {n6:?}, {:?}", dropped(&status));
    let ports = node.ctl("ports")?;
    ensure!(ports.contains("packets to n6-host"), "{ports}");
    node.stop()?;
    ensure!(lab.upf.ip("link show n6-host").is_err(), "the interface is left");
    Ok(())
}

/// Everything of the file comes.
fn fetch(from: &Namespace, host: &str) -> Result<()> {
    let url = format!("http://{host}:{HTTP_PORT}/payload");
    let got =
        from.run(&format!("curl -sS -g -o /dev/null -w %{{size_download}} {url}"), command::SHORT * 2)?;
    ensure!(got.trim() == BYTES.to_string(), "{url}: {got} bytes");
    Ok(())
}

/// Neighbour discovery goes as ARP does.
fn over_ipv6(lab: &Lab) -> Result<()> {
    lab.upf.run(&format!("ping -6 -n -c 3 -i 0.02 -W 2 {SERVER_IPV6}"), command::SHORT)?;
    lab.dn.run(&format!("ping -6 -n -c 3 -i 0.02 -W 2 {UPF_N6_IPV6}"), command::SHORT)?;
    // UDP is answered by somebody who listens, or by the kernel's word that nobody does.
    let refused =
        lab.dn.run(&format!("curl -sS -g -m 5 http://[{UPF_N6_IPV6}]:{HTTP_PORT}/"), command::SHORT);
    let said = refused.err().context("a server where none is")?.to_string();
    ensure!(said.contains("refused") || said.contains("Couldn't connect"), "{said}");
    Ok(())
}

/// A program sees what is for all routers of OSPF, as `ospfd` would.
fn hears_groups(lab: &Lab, dir: &Path) -> Result<()> {
    let mut sniffer = lab.upf.command("tcpdump");
    sniffer.args(["-l", "-n", "-i", "n6-host", "-c", "1", "dst", "host", "224.0.0.5"]);
    let mut sniffer = Process::spawn("tcpdump", &mut sniffer, dir)?;
    sniffer.wait_for("listening", command::SHORT, |output| output.contains("listening on").then_some(()))?;
    // Nobody answers.
    let _ = lab.dn.run("ping -n -c 3 -i 0.2 -W 1 -t 1 -I n6 224.0.0.5", command::SHORT);
    ensure!(sniffer.wait_exit(command::SHORT)?.success(), "{}", sniffer.output()?);
    Ok(())
}

/// As fast as it goes: told, not asked for, but that it goes at all.
fn fast(lab: &Lab, dir: &Path) -> Result<()> {
    let server = IperfServer::start(&lab.upf, UPF_N6, dir)?;
    for direction in [Direction::Uplink, Direction::Downlink] {
        let tcp = server.tcp(&lab.dn, direction, 3)?;
        let way = if direction == Direction::Uplink { "to" } else { "from" };
        println!("TCP {way} the kernel: {:.0} Mbit/s, {} sent again", tcp.mbit_s, tcp.retransmits);
        ensure!(tcp.mbit_s > 1.0, "{direction}: {:.1} Mbit/s", tcp.mbit_s);
    }
    Ok(())
}

/// A data plane that dies takes it along, and brings it back; one that somebody removes is missed by those beside the node alone.
fn comes_and_goes(lab: &Lab) -> Result<()> {
    let mut node = start(lab, 1)?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    node.wait_sessions(ran.sessions)?;
    let told = lab.upf.ip("-d addr show n6-host")?;
    let mac = |namespace: &Namespace, device: &str| namespace.ip(&format!("-br link show {device}"));
    let of_port = mac(&lab.upf, "n6")?;
    let of_port = of_port.split_whitespace().nth(2).context("no MAC address")?;
    for words in [of_port, "inet 10.50.0.2/24", "inet6 2001:db8:6::2/64", "mtu 1500", "UP", "tun type tap"] {
        ensure!(told.contains(words), "no `{words}` in {told}");
    }
    Ping::run(&lab.upf, SERVER, SERIES)?.expect_no_loss()?;
    let died = node.kill(lab, Part::Dpe)?;
    node.wait_restart(Part::Dpe, died)?;
    node.wait_sessions(ran.sessions)?;
    Ping::run(&lab.upf, SERVER, SERIES)?.expect_no_loss()?;

    // Down, it takes nothing; up again, it does.
    lab.upf.ip("link set n6-host down")?;
    let down = lab.dn.run(&format!("curl -sS -m 2 http://{UPF_N6}:{HTTP_PORT}/"), command::SHORT);
    ensure!(down.is_err(), "somebody answered");
    ensure!(punting(&node.status()?, "n6-host")?.refused > 0, "it took what came");
    lab.upf.ip("link set n6-host up")?;
    Ping::run(&lab.upf, SERVER, SERIES)?.expect_no_loss()?;

    lab.upf.ip("link del n6-host")?;
    node.wait_said("n6-host is gone", 1)?;
    let _ = lab.dn.run(&format!("curl -sS -m 2 http://{UPF_N6}:{HTTP_PORT}/"), command::SHORT);
    Ping::run(&lab.ran, SERVER, SERIES)?.expect_no_loss()?;
    Ping::run(&lab.dn, UPF_N6, SERIES)?.expect_no_loss()?;
    ran.stop()?;
    node.wait_sessions(0)?;
    node.wait_balance()?;
    node.stop()
}

/// What is wrong is said in one sentence, and nothing runs.
fn taken(lab: &Lab) -> Result<()> {
    let path = config::write_upf(lab.dir.path(), Driver::AfPacket)?;
    for name in ["n4", "kept"] {
        // A TAP device that outlives its program would be taken over without a word.
        if name == "kept" {
            lab.upf.ip("tuntap add dev kept mode tap")?;
        }
        config::set_punting(&path, &[("n6", name, None)])?;
        let done = call(lab, "up", &path)?;
        let expected = format!("port n6: punt = \"{name}\": this machine has an interface of this name");
        ensure!(!done.status.success() && done.stderr.contains(&expected), "{}", done.stderr);
    }
    Ok(())
}

fn punting<'a>(status: &'a Statistics, interface: &str) -> Result<&'a Punting> {
    let mut all = status.ports.iter().filter_map(|port| port.punting.as_ref());
    all.find(|punting| punting.interface == interface).with_context(|| format!("no {interface}"))
}

fn dropped(status: &Statistics) -> Vec<&(String, u64)> {
    status.workers.iter().flat_map(|worker| &worker.drops).collect()
}

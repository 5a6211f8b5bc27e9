//! FRR beside the node: it speaks BGP, OSPF and BFD with a router behind N6, and the data network learns of the users' addresses.
//!
//! Where FRR is: `ANCHORLINE_FRR`, or where `scripts/setup.sh` has unpacked its packages, else this machine's own; skipped with a
//! notice where there is none.

use crate::Test;
use anyhow::{Context, Result, ensure};
use lab::address::{SERVER, UE_POOL, UPF_N6};
use lab::anchorline::{Node, Ran};
use lab::config::{self, Driver, FTeid};
use lab::measure::Ping;
use lab::{Core, Lab, Namespace, Process, command, wait};
use nix::mount::{MsFlags, mount};
use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[("frr_beside_the_node_tells_where_users_are", Core::Engine, told_by_frr)];

const SERIES: (u32, Duration) = (20, Duration::from_millis(20));
/// How long routing protocols may take to find each other.
const CONVERGENCE: Duration = Duration::from_secs(60);
/// A network behind the router, told by OSPF.
const BEHIND: &str = "198.51.100.1";
const DAEMONS: [&str; 4] = ["zebra", "bfdd", "ospfd", "bgpd"];

/// FRR in a namespace; it ends when dropped.
struct Router<'a> {
    root: &'a Path,
    namespace: &'a Namespace,
    folder: PathBuf,
    _daemons: Vec<Process>,
}

impl<'a> Router<'a> {
    fn start(
        (root, lab): (&'a Path, &Lab),
        namespace: &'a Namespace,
        config: impl Fn(&str) -> String,
    ) -> Result<Self> {
        let folder = lab.dir.path().join(format!("frr-{}", namespace.name()));
        fs::create_dir_all(&folder)?;
        let mut router = Self { root, namespace, folder, _daemons: Vec::new() };
        for daemon in DAEMONS {
            let file = config::write(&router.folder, &format!("{daemon}.conf"), &config(daemon))?;
            let mut command = router.command(&format!("usr/lib/frr/{daemon}"));
            let folder = router.folder.display();
            command.args(["-u", "root", "-g", "root", "-P", "0", "--log", "stdout", "-f"]).arg(&file);
            command.args(["-z", &format!("{folder}/zserv.api"), "-i", &format!("{folder}/{daemon}.pid")]);
            command.args(["--vty_socket", &format!("{folder}")]);
            if daemon == "bfdd" {
                command.args(["--bfdctl", &format!("{folder}/bfdd.sock")]);
            }
            router._daemons.push(Process::spawn(daemon, &mut command, &router.folder)?);
            let socket = router.folder.join(format!("{daemon}.vty"));
            wait::until(&format!("{daemon} to run"), command::SHORT, || Ok(socket.exists().then_some(())))?;
        }
        Ok(router)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.namespace.command(self.root.join(program));
        let folders = ["usr/lib/x86_64-linux-gnu/frr", "usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
        let folders = folders.map(|folder| self.root.join(folder).display().to_string());
        command.env("LD_LIBRARY_PATH", folders.join(":"));
        command
    }

    /// What one of its daemons shows: each answers at a socket of its own, as `vtysh` asks, until three octets of zero and a status.
    fn show(&self, daemon: &str, what: &str) -> Result<String> {
        let mut socket = UnixStream::connect(self.folder.join(format!("{daemon}.vty")))?;
        socket.set_read_timeout(Some(command::SHORT))?;
        let mut answer = Vec::new();
        for line in ["enable", &format!("show {what}")] {
            socket.write_all(format!("{line}\0").as_bytes())?;
            answer.clear();
            while !matches!(answer[..], [.., 0, 0, 0, _]) {
                let mut octets = [0; 4096];
                let read = socket.read(&mut octets)?;
                ensure!(read > 0, "{daemon} does not answer");
                answer.extend_from_slice(octets.get(..read).unwrap_or_default());
            }
        }
        answer.truncate(answer.len().saturating_sub(4));
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    fn wait_for(&self, (daemon, what): (&str, &str), words: &str) -> Result<()> {
        let waited = wait::until(&format!("`{words}` in `show {what}`"), CONVERGENCE, || {
            Ok(self.show(daemon, what).is_ok_and(|shown| shown.contains(words)).then_some(()))
        });
        waited.with_context(|| format!("{:?}", self.show(daemon, what)))
    }
}

/// FRR wants a group of this name for its sockets, or does not start. Mounts of the laboratory are its own.
fn have_group(lab: &Lab) -> Result<()> {
    let groups = fs::read_to_string("/etc/group")?;
    if groups.lines().any(|group| group.starts_with("frrvty:")) {
        return Ok(());
    }
    let file = config::write(lab.dir.path(), "group", &format!("{groups}frrvty:x:85:root\n"))?;
    mount(Some(&file), "/etc/group", None::<&str>, MsFlags::MS_BIND, None::<&str>).context("/etc/group")
}

/// The root it stands under.
fn frr() -> Option<PathBuf> {
    let unpacked = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("frr");
    let roots = [env::var_os("ANCHORLINE_FRR").map(PathBuf::from), Some(unpacked), Some("/".into())];
    roots.into_iter().flatten().find(|root| root.join("usr/lib/frr/bgpd").is_file())
}

/// What a daemon of the router at `own` is to do with the one at `other`; BGP tells of `networks`.
fn configuration(
    daemon: &str,
    (own, other): ((u32, Ipv4Addr), (u32, Ipv4Addr)),
    networks: &[&str],
) -> String {
    let ((number, address), (their_number, their_address)) = (own, other);
    let networks: String = networks.iter().map(|network| format!("  network {network}\n")).collect();
    match daemon {
        "bgpd" => format!(
            "router bgp {number}\n bgp router-id {address}\n no bgp ebgp-requires-policy\n no bgp network import-check\n \
             neighbor {their_address} remote-as {their_number}\n neighbor {their_address} bfd\n \
             address-family ipv4 unicast\n{networks} exit-address-family\n"
        ),
        "ospfd" => format!(
            "router ospf\n ospf router-id {address}\n network 10.50.0.0/24 area 0\n network {BEHIND}/32 area 0\n"
        ),
        _ => String::new(),
    }
}

fn told_by_frr(lab: &Lab) -> Result<()> {
    let Some(root) = frr() else {
        println!("skipped: there is no FRR here (`scripts/setup.sh` gets it)");
        return Ok(());
    };
    have_group(lab)?;
    let path = config::write_upf(lab.dir.path(), Driver::AfPacket)?;
    config::set_punting(&path, &[("n6", "n6-host", None)])?;
    lab.upf.sysctl("ipv4/conf/n6/rp_filter", "1")?;
    lab.upf.sysctl("ipv4/conf/n6/arp_ignore", "8")?;
    lab.dn.ip(&format!("route del {UE_POOL}"))?;
    lab.dn.ip(&format!("addr add {BEHIND}/32 dev lo"))?;
    let node = Node::start_by(lab, path)?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    node.wait_sessions(ran.sessions)?;
    ensure!(Ping::run(&lab.ran, SERVER, (3, SERIES.1)).is_err(), "there is a way back already");

    let (ours, theirs) = ((64_512, UPF_N6), (64_513, SERVER));
    let beside =
        Router::start((&root, lab), &lab.upf, |daemon| configuration(daemon, (ours, theirs), &[UE_POOL]))?;
    let behind = Router::start((&root, lab), &lab.dn, |daemon| configuration(daemon, (theirs, ours), &[]))?;
    behind.wait_for(("zebra", "ip route"), &format!("B>* {UE_POOL}"))?;
    beside.wait_for(("zebra", "ip route"), &format!("O>* {BEHIND}/32"))?;
    beside.wait_for(("bfdd", "bfd peers"), "Status: up")?;
    Ping::run(&lab.ran, SERVER, SERIES)?.expect_no_loss()?;
    println!("{}", lab.dn.ip(&format!("route show {UE_POOL}"))?.trim());
    println!("{}", lab.upf.ip(&format!("route show {BEHIND}"))?.trim());
    println!("{}", beside.show("ospfd", "ip ospf neighbor")?.trim());
    drop((beside, behind));
    ran.stop()?;
    node.wait_sessions(0)?;
    node.wait_balance()?;
    node.stop()
}

//! Entering the laboratory: private namespaces for this process and everything it starts.
//!
//! Root unshares mounts and network; an ordinary user unshares a user namespace too, and is root in there. `/run`
//! becomes a private tmpfs, so named network namespaces and sockets are seen by nobody else and vanish with us.

use crate::command;
use anyhow::{Context, Result};
use nix::mount::{MsFlags, mount};
use nix::unistd::{Uid, getpid};
use std::env;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Holds our own pid once we are inside: a child that inherits it is not taken for us.
pub(crate) const MARK: &str = "ANCHORLINE_LAB";

/// Programs the laboratory is built with, each with the Debian package that brings it.
const PROGRAMS: [(&str, &str); 11] = [
    ("curl", "curl"),
    ("dig", "bind9-dnsutils"),
    ("dumpcap", "wireshark-common"),
    ("ethtool", "ethtool"),
    ("ip", "iproute2"),
    ("iperf3", "iperf3"),
    ("nsenter", "util-linux"),
    ("ping", "iputils-ping"),
    ("setpriv", "util-linux"),
    ("tshark", "tshark"),
    ("unshare", "util-linux"),
];

/// What [`enter`] came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// This process is in private namespaces, with the privileges it needs.
    Inside,
    /// It cannot be: why, in one sentence.
    Refused(String),
}

/// Enters the laboratory, by executing this program again inside new namespaces. Call it first thing in `main`,
/// before any thread.
///
/// # Errors
/// Where something fails that is not a missing privilege or program.
pub fn enter() -> Result<Entry> {
    if env::var(MARK).is_ok_and(|mark| mark == getpid().to_string()) {
        prepare()?;
        return Ok(Entry::Inside);
    }
    if let Some(lack) = missing_program().or_else(no_tun) {
        return Ok(Entry::Refused(lack));
    }
    let tried = command::run(Command::new("unshare").args([flags(), "--", "true"]), command::SHORT)?;
    if !tried.status.success() {
        return Ok(Entry::Refused(no_namespaces(&tried.stderr)));
    }
    // Returns only where it fails: this process goes on as the one inside.
    let failure = Command::new("unshare")
        .args([flags(), "--"])
        .arg(env::current_exe()?)
        .args(env::args_os().skip(1))
        .env(MARK, getpid().to_string())
        .env("PATH", path())
        .exec();
    Err(failure).context("cannot execute this program again inside new namespaces")
}

/// Whether this process is root outside too: only then may it load XDP programs.
pub fn is_real_root() -> bool {
    let identity_map = |map: String| map.split_whitespace().eq(["0", "0", "4294967295"]);
    std::fs::read_to_string("/proc/self/uid_map").is_ok_and(identity_map)
}

fn flags() -> &'static str {
    if Uid::effective().is_root() { "-nm" } else { "-Urnm" }
}

fn prepare() -> Result<()> {
    mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), Some("mode=755"))
        .context("cannot mount a private /run")
}

fn missing_program() -> Option<String> {
    let absent = |(program, _): &&(&str, &str)| !on_path(program);
    let (program, package) = PROGRAMS.iter().find(absent)?;
    Some(format!("the program `{program}` is missing; `apt-get install {package}` brings it"))
}

fn on_path(program: &str) -> bool {
    env::split_paths(&path()).any(|dir| dir.join(program).is_file())
}

/// Ordinary users on Debian do not have the directories of `ethtool` and `ip` on their path.
fn path() -> OsString {
    let mut path = env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    path
}

fn no_tun() -> Option<String> {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    let error = opened.err()?;
    Some(format!("the users' network interfaces need /dev/net/tun, which cannot be opened: {error}"))
}

fn no_namespaces(complaint: &str) -> String {
    let complaint = command::last_lines(complaint, 1);
    match Uid::effective().is_root() {
        true => format!("this root gets no namespaces, which need CAP_SYS_ADMIN ({complaint})"),
        false => {
            format!("the kernel gives ordinary users no namespaces here, so root is needed ({complaint})")
        }
    }
}

//! A network namespace of a test's own, with the addresses of config/ran.toml on its loopback.
//!
//! Threads that enter it see nothing of the host's network; it goes with the test.
#![allow(dead_code, reason = "no test uses all of it")]

use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::process::Command;
use std::thread::JoinHandle;

pub(crate) struct Namespace {
    pub(crate) name: String,
}

impl Namespace {
    /// `None`, with a notice, where we may not.
    pub(crate) fn new(purpose: &str) -> Option<Self> {
        let namespace = Self { name: format!("anchorline-ran-{purpose}-{}", std::process::id()) };
        let added = Command::new("ip").args(["netns", "add", &namespace.name]).output();
        if !added.is_ok_and(|output| output.status.success()) {
            println!("skipped: this test needs the privilege to make a network namespace, and iproute2");
            return None;
        }
        assert!(namespace.ip(&["link", "set", "lo", "up"]));
        for address in ["10.30.0.1/32", "10.30.0.2/32", "10.40.0.1/32", "10.40.0.2/32"] {
            assert!(namespace.ip(&["address", "add", address, "dev", "lo"]));
        }
        Some(namespace)
    }

    fn ip(&self, args: &[&str]) -> bool {
        Command::new("ip").args(["-n", &self.name]).args(args).status().is_ok_and(|status| status.success())
    }

    /// Runs a command inside.
    pub(crate) fn run(&self, program: &str, args: &[&str]) -> bool {
        let mut command = Command::new("ip");
        let output = command.args(["netns", "exec", &self.name, program]).args(args).output();
        output.is_ok_and(|output| output.status.success())
    }

    /// A thread inside; so are the threads it starts.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let file = File::open(format!("/run/netns/{}", self.name)).unwrap();
        std::thread::spawn(move || {
            setns(file, CloneFlags::CLONE_NEWNET).unwrap();
            work()
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).status();
    }
}

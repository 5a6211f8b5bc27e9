//! A network namespace of the test's own. It has no name: the kernel deletes it, with every interface in it, when
//! the thread that made it and the ports opened from it are gone.

use nix::sched::{CloneFlags, unshare};
use std::process::Command;

/// Runs the test on a thread in a new namespace; where that is not allowed, says so and lets the test pass.
pub fn in_namespace(test: fn()) {
    let thread = std::thread::spawn(move || match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => test(),
        Err(error) => eprintln!("skipped: no network namespace of one's own ({error}); run as root"),
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Runs `ip` in the namespace of the calling thread.
pub fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A veth pair, both ends up and silent.
pub fn veth(a: &str, b: &str) {
    ip(&format!("link add {a} type veth peer name {b}"));
    for end in [a, b] {
        quiet(end);
    }
}

/// Takes an interface up without the kernel sending anything of its own.
pub fn quiet(interface: &str) {
    ip(&format!("link set {interface} addrgenmode none arp off"));
    ip(&format!("link set {interface} up"));
}

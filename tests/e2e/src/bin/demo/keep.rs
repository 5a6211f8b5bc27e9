//! Leaving it running for a look.

use crate::progress::say;
use anyhow::Result;
use lab::address::SERVER;
use lab::anchorline::{Node, Ran};
use lab::config::FTeid;
use lab::{Lab, interrupt, privilege, program};
use std::process;
use std::time::Duration;

/// Brings the session up again, says how to look around, and waits for Ctrl-C.
pub(crate) fn until_interrupted(lab: &Lab, node: Node) -> Result<()> {
    let ran = Ran::start(lab, FTeid::Choose)?;
    explain(lab)?;
    while interrupt::caught().is_none() {
        // An interruption is what we wait for.
        let _ = interrupt::pause(Duration::from_secs(1));
    }
    say("demo: cleaning up");
    drop(ran);
    drop(node);
    Ok(())
}

fn explain(lab: &Lab) -> Result<()> {
    let user = if privilege::is_real_root() { "" } else { " --user --preserve-credentials" };
    let enter = format!("nsenter --target {}{user} --mount --net", process::id());
    let dir = lab.dir.path().display();
    say("\nEverything keeps running. From another terminal:");
    say(&format!("  {enter} ip netns exec ran ping -I ue0 {SERVER}"));
    say(&format!("  {enter} ip netns exec ran iperf3 --client {SERVER}"));
    say(&format!("  {enter} ip netns exec ran tcpdump -Z root -ni n3"));
    say(&format!("  {enter} {} ctl status --config {dir}/upf.toml", program("anchorline")?.display()));
    say(&format!("  tail -f {dir}/up.log"));
    say(&format!("Ctrl-C or `kill {}` ends it and cleans up.", process::id()));
    Ok(())
}

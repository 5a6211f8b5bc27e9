//! Workers with nothing to do: what the configuration wants of them, and what of it this host has.

use super::count;
use crate::finding::Outcome;
use crate::{Facts, Idle, Node};

pub(super) fn idle(facts: &Facts, node: &Node) -> Vec<Outcome> {
    let mut outcomes = vec![share(facts, node)];
    match node.idle {
        Idle::Poll | Idle::Sleep => {}
        Idle::Pause => outcomes.push(light_sleep(facts)),
        Idle::Monitor => outcomes.push(monitor(facts, node)),
        Idle::Scale => outcomes.extend(scale(facts, node)),
    }
    outcomes
}

/// Whether workers have the CPUs that they do not leave.
fn share(facts: &Facts, node: &Node) -> Outcome {
    let cpus = facts.topology.cpus.len();
    let workers = node.worker_count.max(1);
    match (node.idle, cpus) {
        (_, 0) => Outcome::not_here("/sys/devices/system/cpu/online cannot be read"),
        (Idle::Sleep, _) => {
            Outcome::advice("workers sleep when no packet waits", "idle = \"poll\" on a machine of its own")
        }
        (_, cpus) if workers >= cpus => Outcome::warning(
            format!("{} that never sleep on {}", count(workers, "worker"), count(cpus, "CPU")),
            "idle = \"sleep\", or fewer workers",
        ),
        _ if facts.machine.quota_millicpus.is_some() => Outcome::warning(
            "workers never sleep, and a quota limits their CPU time",
            "idle = \"sleep\", or no quota",
        ),
        (Idle::Poll, _) => Outcome::good("workers never sleep: lowest latency"),
        _ => Outcome::good("workers keep their CPUs when no packet waits"),
    }
}

fn light_sleep(facts: &Facts) -> Outcome {
    match facts.cpu.has("waitpkg") {
        true => Outcome::good("idle = \"pause\": workers rest in a light sleep of the CPU (WAITPKG)"),
        false => Outcome::not_here(
            "the CPU, or the hypervisor, shows no WAITPKG: with idle = \"pause\" workers repeat its short pauses",
        ),
    }
}

/// What drivers tell is not seen in files.
fn monitor(facts: &Facts, node: &Node) -> Outcome {
    let queues = node.ports.len();
    match (facts.cpu.has("waitpkg"), facts.cpu.has("rtm"), queues) {
        (false, ..) => Outcome::not_here(
            "the CPU, or the hypervisor, shows no WAITPKG: with idle = \"monitor\" workers repeat its short pauses",
        ),
        (true, false, 2..) => Outcome::not_here(format!(
            "each worker receives from {queues} ports, and the CPU, or the hypervisor, shows no RTM to wait on more than \
             one: with idle = \"monitor\" workers rest as with \"pause\""
        )),
        (true, ..) => Outcome::good(
            "idle = \"monitor\": the CPU can wait for a packet; whether the drivers tell where it comes, ctl status says",
        ),
    }
}

fn scale(facts: &Facts, node: &Node) -> Vec<Outcome> {
    if node.workers.is_empty() {
        return vec![Outcome::not_here(
            "workers may run on any CPU: name theirs in [dpe] for idle = \"scale\"",
        )];
    }
    let one = |cpu: &usize| match facts.power.room_of(*cpu) {
        Ok(room) => {
            let [low, high] = [room.low_khz, room.high_khz].map(|khz| khz / 1_000);
            Outcome::good(format!(
                "idle = \"scale\": CPU {cpu} goes from {high} down to {low} MHz and up again"
            ))
        }
        Err(why) => Outcome::not_here(format!("{why}: with idle = \"scale\" its worker looks on as it is")),
    };
    node.workers.iter().map(one).collect()
}

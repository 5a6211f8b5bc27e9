//! A node to which one thing after another happens while a user downloads: whatever dies, halts, moves or is loaded anew, each
//! download ends with the right bytes, and the user is charged for what passed.
//!
//! A short one is among the tests. `make soak` goes on for longer: `SOAK_SECONDS`, and what happens is drawn from `SOAK_SEED`.

use crate::Test;
use crate::charging::{records, sum};
use crate::restart::STRAY;
use anyhow::{Context, Result, ensure};
use lab::address::{GNB_N3, HTTP_PORT, PFCP_PORT, SERVER, SMF_N4, UE, UPF_N3, UPF_N4};
use lab::anchorline::{Node, Part, Ran};
use lab::config::{self, Driver, FTeid};
use lab::http::FileServer;
use lab::measure::{Download, Ping, random_file};
use lab::{Core, Lab, Namespace, command, interrupt, wait};
use nix::sys::signal::{Signal, kill};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use std::net::UdpSocket;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs};

pub(crate) const TESTS: &[Test] = &[
    ("soak_a_node_lives_through_whatever_befalls_it", Core::Engine, lives_through),
    ("soak_users_are_charged_for_what_passed_as_long_as_the_data_plane_lives", Core::Engine, charges),
];

const SECONDS: u64 = 15;
const SEED: u64 = 1;
/// Of a download, which takes some seconds.
const BYTES: u64 = 12 << 20;
const BYTES_S: u64 = 4 << 20;
/// What a death of the data plane may cost each way: what flows that wait to be of an application have sent and got.
const WAITING: u64 = 64 << 10;
/// Of an Ethernet frame, which counts of interfaces have in them.
const HEADER: u64 = 14;
/// What is on a wire of other protocols: ARP, each half minute and after each start.
const OTHER: u64 = 4_000;
/// Datagrams of a storm, to each of two ports.
const STORM: u32 = 2_000;
/// Where a G-PDU says whose it is: nobody's, and it stays so.
const TEID: Range<usize> = 4..8;
/// Content rules, in turns.
const WEB: &str = "id=1 precedence=10 rating-group=1 application=web layer=http\n";
const PATHS: &str = "id=2 precedence=20 rating-group=1 application=other path=/*\n";

/// What may happen.
#[derive(Clone, Copy, Debug)]
enum Step {
    KillCpe,
    KillDpe,
    HaltCpe,
    HaltDpe,
    Reconfigure,
    LoadRules,
    Move,
    Look,
    Storm,
}

/// Without the first, the data plane lives.
const STEPS: [Step; 9] = [
    Step::KillDpe,
    Step::Move,
    Step::KillCpe,
    Step::LoadRules,
    Step::HaltDpe,
    Step::Look,
    Step::Reconfigure,
    Step::HaltCpe,
    Step::Storm,
];

/// A node that is watched.
struct Soak<'a> {
    lab: &'a Lab,
    node: Node,
    sessions: u64,
    random: Pcg64,
    /// What may happen to it.
    steps: &'static [Step],
    /// Data planes that died.
    deaths: u64,
    rules: [PathBuf; 2],
}

fn lives_through(lab: &Lab) -> Result<()> {
    soak(lab, &STEPS)
}

fn charges(lab: &Lab) -> Result<()> {
    let [_, others @ ..] = &STEPS;
    soak(lab, others)
}

fn soak(lab: &Lab, steps: &'static [Step]) -> Result<()> {
    let number =
        |name, otherwise| env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let (seconds, seed) = (number("SOAK_SECONDS", SECONDS), number("SOAK_SEED", SEED));
    println!("soak: {seconds} s, seed {seed}");
    let (folder, config) = config::write_upf_charging(lab.dir.path(), Driver::AfPacket)?;
    config::set_workers(&config, 2)?;
    let rules = [rules_file(lab, "web", WEB)?, rules_file(lab, "paths", PATHS)?];
    let content = format!("\n[content]\nrules = \"{}\"\n", rules[0].display());
    fs::write(&config, fs::read_to_string(&config)? + &content)?;
    let node = Node::start_by(lab, config)?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    node.wait_sessions(ran.sessions)?;
    let random = Pcg64::seed_from_u64(seed);
    let mut soak = Soak { lab, node, sessions: ran.sessions, random, steps, deaths: 0, rules };
    soak.run(Duration::from_secs(seconds))?;
    let passed = Passed::read(lab)?;
    ran.stop()?;
    soak.audit(&folder, &passed)
}

fn rules_file(lab: &Lab, name: &str, rule: &str) -> Result<PathBuf> {
    config::write(lab.dir.path(), &format!("{name}.rules"), rule)
}

impl Soak<'_> {
    /// Download after download, in each of which something happens; everything once, before anything twice.
    fn run(&mut self, length: Duration) -> Result<()> {
        let files = self.lab.scratch.path();
        let hash = random_file(&files.join("payload"), BYTES)?;
        let _server = FileServer::start(&self.lab.dn, (SERVER, HTTP_PORT), files)?;
        let url = format!("http://{SERVER}:{HTTP_PORT}/payload?bytes_s={BYTES_S}");
        let end = Instant::now() + length;
        let mut left = vec![];
        while Instant::now() < end {
            let download = Download::start(self.lab, &url)?;
            for _ in 0..2 {
                interrupt::pause(Duration::from_millis(self.random.random_range(50..1_200)))?;
                if left.is_empty() {
                    left = self.steps.choose_multiple(&mut self.random, self.steps.len()).copied().collect();
                }
                let step = left.pop().context("nothing happens")?;
                self.happens(step).with_context(|| format!("{step:?} after {:?} are left", left))?;
            }
            download.finish(&hash)?;
        }
        Ok(())
    }

    /// Something happens; when it is over, packets pass.
    fn happens(&mut self, step: Step) -> Result<()> {
        println!("soak: {step:?}");
        match step {
            Step::KillCpe => self.restart(Part::Cpe)?,
            Step::KillDpe => {
                self.deaths += 1;
                self.restart(Part::Dpe)?;
            }
            Step::HaltCpe => self.halt(Part::Cpe, Duration::from_secs(1))?,
            Step::HaltDpe => self.halt(Part::Dpe, Duration::from_millis(300))?,
            Step::Reconfigure => {
                let old = self.node.pid(Part::Cpe)?;
                self.node.signal(Signal::SIGHUP)?;
                self.node.wait_restart(Part::Cpe, old)?;
            }
            Step::LoadRules => {
                self.rules.reverse();
                self.node.ctl(&format!("rules load {}", self.rules[0].display()))?;
            }
            Step::Move => {
                let worker = self.random.random_range(0..2);
                self.node.ctl(&format!("sessions move --ue {UE} --worker {worker}"))?;
            }
            Step::Look => self.look()?,
            Step::Storm => self.storm()?,
        }
        self.node.wait_sessions(self.sessions)?;
        wait::until("packets to pass", command::SHORT, || {
            Ok(Ping::run(&self.lab.ran, SERVER, (1, Duration::from_millis(20))).ok())
        })
        .map(drop)
    }

    fn restart(&mut self, part: Part) -> Result<()> {
        let old = self.node.kill(self.lab, part)?;
        self.node.wait_restart(part, old).map(drop)
    }

    fn halt(&self, part: Part, length: Duration) -> Result<()> {
        let pid = self.node.pid(part)?;
        kill(pid, Signal::SIGSTOP)?;
        let paused = interrupt::pause(length);
        kill(pid, Signal::SIGCONT)?;
        paused
    }

    /// Whoever looks on costs nothing either.
    fn look(&self) -> Result<()> {
        for view in [
            format!("trace --ue {UE} --packets 5 --seconds 2"),
            format!("explain --ue {UE} --to {SERVER}:{HTTP_PORT}"),
            "runtime --seconds 1".to_owned(),
            "drops".to_owned(),
            "balance --dry-run --even".to_owned(),
        ] {
            self.node.ctl(&view)?;
        }
        Ok(())
    }

    /// Datagrams that nobody should send, to N3 and N4.
    fn storm(&mut self) -> Result<()> {
        let Self { lab, random, .. } = self;
        lab.ran.inside(|| {
            let (gnb, smf) = (UdpSocket::bind((GNB_N3, 0))?, UdpSocket::bind((SMF_N4, 0))?);
            for _ in 0..STORM {
                let mut datagram = STRAY;
                for _ in 0..random.random_range(0..4) {
                    let at = random.random_range(0..STRAY.len());
                    let octet = datagram.get_mut(at).filter(|_| !TEID.contains(&at));
                    octet.into_iter().for_each(|octet| *octet = random.random());
                }
                let length = random.random_range(0..=STRAY.len());
                gnb.send_to(datagram.get(..length).unwrap_or_default(), (UPF_N3, 2152))?;
                // A PFCP header (TS 29.244 7.2.2), and anything behind it.
                let message = [vec![0x21, random.random()], random.random::<[u8; 20]>().to_vec()].concat();
                smf.send_to(&message, (UPF_N4, PFCP_PORT))?;
            }
            Ok(())
        })
    }

    /// The books balance, nothing panicked, and what was charged is what passed, but for a few packets that data planes took with them.
    fn audit(mut self, folder: &Path, passed: &Passed) -> Result<()> {
        self.node.wait_sessions(0)?;
        self.node.wait_balance()?;
        let charged = wait::until("all records in files", Duration::from_secs(20), || {
            let waits = !self.node.ctl("cdr status")?.contains(" 0 records wait");
            let records = records(&self.node, folder, "_-_json.jsonl")?;
            Ok((!waits && !records.is_empty()).then(|| sum(&records)))
        })?;
        println!("soak: {passed:?}, charged {charged:?}, {} data planes died", self.deaths);
        let lost = self.deaths * WAITING;
        for (way, charged, passed) in
            [("up", charged.0, &passed.uplink), ("down", charged.1, &passed.downlink)]
        {
            let told = passed.out.saturating_sub(lost + OTHER)..=passed.offered + OTHER;
            ensure!(told.contains(&charged), "{charged} octets {way} were charged, of {told:?}");
        }
        self.node.end()?;
        let output = self.node.output()?;
        ensure!(!output.contains("panicked"), "{}", command::last_lines(&output, 20));
        Ok(())
    }
}

/// Octets of users' packets that came to the node and through it, by the counts of the interfaces around it.
#[derive(Debug)]
struct Passed {
    uplink: Way,
    downlink: Way,
}

/// One way. What is lost before the node, or behind it, is not known apart: charged is no less than came out, and no more than was sent.
#[derive(Debug)]
struct Way {
    offered: u64,
    out: u64,
}

impl Passed {
    fn read(lab: &Lab) -> Result<Self> {
        let [to_server, from_server] =
            counts(&lab.dn, "n6")?.map(|(octets, frames)| octets.saturating_sub(HEADER * frames));
        let [(to_user, _), (from_user, _)] = counts(&lab.ran, "ue0")?;
        Ok(Self {
            uplink: Way { offered: from_user, out: to_server },
            downlink: Way { offered: from_server, out: to_user },
        })
    }
}

/// Octets and packets that an interface has received, and has sent.
fn counts(namespace: &Namespace, interface: &str) -> Result<[(u64, u64); 2]> {
    let text = namespace.run("cat /proc/net/dev", command::SHORT)?;
    let named = format!("{interface}:");
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(&named));
    let counts = line.context("no such interface")?.split_whitespace().map(str::parse);
    let counts: Vec<u64> = counts.collect::<Result<_, _>>()?;
    // Behind each two, six others of the same direction.
    let both = |at: usize| counts.get(at).copied().zip(counts.get(at + 1).copied()).context("no counts");
    Ok([both(0)?, both(8)?])
}

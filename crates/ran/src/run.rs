//! The runtime: the one place with sockets, signals and a clock.

use crate::commands;
use crate::gnb::{Bearer, Endpoint, Gnb, Tun, TunnelRefused, add_routes};
use crate::local::explain_bind;
use crate::report::Reporter;
use crate::smf::{Event, Input, Output, PduSession, Settings, Smf};
use crate::{Config, Tunnel};
use anyhow::{Context, Result, anyhow};
use machine::Time;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::UdpSocket;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// How long leaving may take.
const LEAVE: Duration = Duration::from_secs(3);
/// From 1900, where recovery time stamps count from (RFC 5905 6), to 1970.
const NTP_OFFSET_SECONDS: u64 = 2_208_988_800;
/// The largest UDP payload.
const DATAGRAM_BYTES: usize = 65_535;

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Say everything as JSON, one object a line.
    pub json: bool,
    /// How long the user plane may take to answer at first.
    pub wait: Duration,
    /// Obey commands on standard input: `sleep ADDRESS`, `wake ADDRESS`.
    pub commands: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { json: false, wait: Duration::from_secs(30), commands: false }
    }
}

/// Runs until SIGINT or SIGTERM, or until the user plane asks to be released; then deletes the sessions, releases the association and
/// says what was counted.
///
/// # Errors
/// One sentence: what this host lacks, that the user plane does not answer, or what it refused.
pub async fn run(config: Config, options: Options) -> Result<()> {
    let mut node = Node::open(&config, options).await?;
    let ended = node.serve().await;
    node.gnb.stop();
    if node.was_ready {
        node.reporter.counters(&node.gnb, &node.smf);
    }
    ended
}

struct Node {
    smf: Smf,
    gnb: Gnb,
    refused: mpsc::Receiver<TunnelRefused>,
    commands: mpsc::Receiver<String>,
    n4: UdpSocket,
    reporter: Reporter,
    signals: [Signal; 2],
    zero: Instant,
    wait: Duration,
    was_ready: bool,
    /// Why we leave, unless we were told to.
    failure: Option<anyhow::Error>,
    /// When to leave without waiting longer.
    leave_at: Option<Instant>,
    stopped: bool,
}

/// What the loop woke up for.
enum Wake {
    Datagram(io::Result<(usize, SocketAddr)>),
    Due,
    Leave,
    Signal,
    Refused(TunnelRefused),
    Command(String),
}

impl Node {
    async fn open(config: &Config, options: Options) -> Result<Self> {
        let listen = config.smf.listen;
        let n4 = UdpSocket::bind(listen).await.map_err(|error| explain_bind(listen, "smf.listen", &error))?;
        let began = since_1900(SystemTime::now());
        let endpoint = Endpoint::bind(config.gnb.address, began)?;
        let tuns = config.ues.iter().map(Tun::open).collect::<Result<Vec<Tun>>>()?;
        add_routes(&config.ues, &tuns).await?;
        let bearers = config.ues.iter().map(|ue| Bearer::new(ue.address, ue.qfi).of_frames(ue.ethernet));
        let (gnb, refused) = Gnb::start(endpoint, bearers.zip(tuns).collect()).context("gNB")?;
        Ok(Self {
            smf: Smf::new(settings(config, options, began), sessions(config)),
            gnb,
            refused,
            commands: commands::read(options.commands),
            n4,
            reporter: Reporter::new(config, options.json),
            signals: [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?],
            zero: Instant::now(),
            wait: options.wait,
            was_ready: false,
            failure: None,
            leave_at: None,
            stopped: false,
        })
    }

    async fn serve(&mut self) -> Result<()> {
        let mut buffer = vec![0; DATAGRAM_BYTES];
        self.drive(Input::Start).await;
        while !self.stopped {
            match self.wake(&mut buffer).await {
                Wake::Datagram(received) => self.datagram(&buffer, received).await,
                Wake::Due => self.drive(Input::Tick).await,
                Wake::Signal => self.leave().await,
                Wake::Refused(refused) => self.reporter.tunnel_refused(refused),
                Wake::Command(command) => self.command(&command).await,
                Wake::Leave => {
                    self.reporter.left_early();
                    break;
                }
            }
        }
        self.failure.take().map_or(Ok(()), Err)
    }

    async fn wake(&mut self, buffer: &mut [u8]) -> Wake {
        // Far enough to mean never.
        let never = Instant::now() + Duration::from_secs(86_400);
        let due = self.smf.next_due().map_or(never, |due| self.zero + due.since_zero());
        let [interrupt, terminate] = &mut self.signals;
        tokio::select! {
            received = self.n4.recv_from(buffer) => Wake::Datagram(received),
            () = sleep_until(due) => Wake::Due,
            () = sleep_until(self.leave_at.unwrap_or(never)), if self.leave_at.is_some() => Wake::Leave,
            _ = interrupt.recv() => Wake::Signal,
            _ = terminate.recv() => Wake::Signal,
            Some(refused) = self.refused.recv() => Wake::Refused(refused),
            Some(command) = self.commands.recv() => Wake::Command(command),
        }
    }

    async fn datagram(&mut self, buffer: &[u8], received: io::Result<(usize, SocketAddr)>) {
        if let Ok((length, SocketAddr::V4(from))) = received {
            self.drive(Input::Datagram(from, buffer.get(..length).unwrap_or_default())).await;
        }
    }

    async fn command(&mut self, line: &str) {
        match commands::parse(line, self.reporter.ues()) {
            Ok(commands::Command::Sleep(ue)) => self.drive(Input::Sleep(ue)).await,
            Ok(commands::Command::Wake(ue)) => self.drive(Input::Wake(ue)).await,
            Err(reason) => self.reporter.trouble("command", &reason),
        }
    }

    /// Politely the first time; at once where told again.
    async fn leave(&mut self) {
        match self.leave_at {
            None => {
                self.leave_at = Some(Instant::now() + LEAVE);
                self.drive(Input::Stop).await;
            }
            Some(_) => self.leave_at = Some(Instant::now()),
        }
    }

    async fn drive(&mut self, input: Input<'_>) {
        self.feed(input).await;
        // A failure before all sessions are up ends it all: to go on would hide it.
        if self.failure.is_some() && self.leave_at.is_none() {
            self.leave_at = Some(Instant::now() + LEAVE);
            self.feed(Input::Stop).await;
        }
    }

    async fn feed(&mut self, input: Input<'_>) {
        let now = Time::from_zero(self.zero.elapsed());
        for output in self.smf.handle(input, now) {
            match output {
                // Lost, as any datagram may be: it is sent again.
                Output::Send(to, bytes) => drop(self.n4.send_to(&bytes, to).await),
                Output::Event(event) => self.event(event),
            }
        }
    }

    fn event(&mut self, event: Event) {
        match &event {
            Event::SessionUp(ue, uplink) => self.gnb.set_uplink(*ue, Some(*uplink)),
            Event::SessionDeleted(ue) => self.gnb.set_uplink(*ue, None),
            Event::Ready => self.was_ready = true,
            Event::Unreachable(upf) => return self.unreachable(*upf),
            Event::Stopped => self.stopped = true,
            Event::Failed(failure) if !self.was_ready && self.leave_at.is_none() => {
                // The first is the reason; what follows from it is not.
                self.failure.get_or_insert_with(|| anyhow!("{failure}"));
                return;
            }
            _ => {}
        }
        self.reporter.event(&event);
    }

    fn unreachable(&mut self, upf: SocketAddrV4) {
        self.stopped = true;
        self.failure = Some(anyhow!(
            "UPF {upf} did not answer the association setup within {} s: start it, or correct smf.upf",
            self.wait.as_secs()
        ));
    }
}

/// 32 bits, which begin anew in 2036 (TS 29.244 8.2.65).
fn since_1900(time: SystemTime) -> u32 {
    let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    (since_1970.wrapping_add(NTP_OFFSET_SECONDS) & u64::from(u32::MAX)) as u32
}

fn settings(config: &Config, options: Options, recovery_time_stamp: u32) -> Settings {
    Settings {
        node_id: config.smf.node_id.clone(),
        address: *config.smf.listen.ip(),
        upf: config.smf.upf,
        f_teid: config.smf.f_teid,
        n9: None,
        dialect: config.smf.dialect,
        awaits_setup: false,
        recovery_time_stamp,
        wait: options.wait,
    }
}

fn sessions(config: &Config) -> Vec<PduSession> {
    let downlink = |index| Tunnel { teid: Gnb::downlink_teid(index), address: config.gnb.address };
    let ues = config.ues.iter().enumerate();
    let session = |(index, ue): (usize, &crate::config::UeConfig)| PduSession {
        ue: ue.address,
        asks_for_address: false,
        ue6: None,
        qfi: ue.qfi,
        downlink: downlink(index),
        beyond: None,
        portal: None,
        mbr: ue.mbr,
        report_after_bytes: ue.report_after_bytes,
        ethernet: ue.ethernet,
        predefined_rules: ue.predefined_rules.clone(),
    };
    ues.map(session).collect()
}

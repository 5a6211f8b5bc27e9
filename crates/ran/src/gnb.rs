//! The gNB: GTP-U towards the user plane on one side, the UEs' TUN devices on the other.
//!
//! Two threads, one a direction, each blocking on what it reads: packets go through them in batches, and nothing is
//! locked on their way.

mod bearer;
mod counters;
mod deliver;
mod downlink;
mod endpoint;
mod limit;
mod receive;
mod routes;
mod send;
mod tun;
mod uplink;

pub use bearer::Bearer;
pub use counters::{GnbCounts, UeCounts};
pub use endpoint::Endpoint;
pub use routes::add_routes;
pub use tun::Tun;

use crate::tunnel::Tunnel;
use counters::GnbCounters;
use rules::Teid;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::mpsc;

/// A gNB at work; dropping it stops it.
#[derive(Debug)]
pub struct Gnb {
    bearers: Arc<[Bearer]>,
    counters: Arc<GnbCounters>,
    /// Closed to stop the threads.
    running: Option<io::PipeWriter>,
    threads: Vec<JoinHandle<()>>,
}

/// The user plane knows no tunnel that a UE sends into (TS 29.281 7.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelRefused {
    /// The tunnel.
    pub tunnel: Tunnel,
    /// The UE that sends into it, as the index of its bearer.
    pub ue: Option<usize>,
}

/// Error Indications waiting to be read; more are counted but not reported.
const REPORTS: usize = 64;

impl Gnb {
    /// Starts to carry packets. Each bearer's downlink TEID is [`Gnb::downlink_teid`] of its index.
    ///
    /// # Errors
    /// Where the system gives no thread or pipe.
    pub fn start(
        endpoint: Endpoint,
        ues: Vec<(Bearer, Tun)>,
    ) -> io::Result<(Self, mpsc::Receiver<TunnelRefused>)> {
        let (stop, running) = io::pipe()?;
        let (reports, reported) = mpsc::channel(REPORTS);
        let (bearers, tuns): (Vec<Bearer>, Vec<Tun>) = ues.into_iter().unzip();
        let shared = Shared {
            bearers: bearers.into(),
            tuns: tuns.into(),
            counters: Arc::default(),
            endpoint: Arc::new(endpoint),
            stop: Arc::new(stop),
        };
        let down = deliver::Thread::new(shared.clone(), reports);
        let up = uplink::Thread::new(shared.clone());
        let threads = vec![
            std::thread::Builder::new().name("downlink".to_owned()).spawn(move || down.run())?,
            std::thread::Builder::new().name("uplink".to_owned()).spawn(move || up.run())?,
        ];
        let Shared { bearers, counters, .. } = shared;
        Ok((Self { bearers, counters, running: Some(running), threads }, reported))
    }

    /// The TEID a bearer receives on.
    pub fn downlink_teid(index: usize) -> Teid {
        bearer::teid_of(index)
    }

    /// Sets where a UE's packets go; `None` drops them.
    pub fn set_uplink(&self, index: usize, tunnel: Option<Tunnel>) {
        if let Some(bearer) = self.bearers.get(index) {
            bearer.set_uplink(tunnel);
        }
    }

    /// What was counted for all UEs together.
    pub fn counts(&self) -> GnbCounts {
        self.counters.read()
    }

    /// Each UE's address and what was counted for it.
    pub fn ue_counts(&self) -> Vec<(Ipv4Addr, UeCounts)> {
        self.bearers.iter().map(|bearer| (bearer.address(), bearer.counts())).collect()
    }

    /// Stops both threads and waits for them.
    pub fn stop(&mut self) {
        self.running = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so itself.
            let _ = thread.join();
        }
    }
}

impl Drop for Gnb {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What both threads use.
#[derive(Clone)]
struct Shared {
    bearers: Arc<[Bearer]>,
    tuns: Arc<[Tun]>,
    counters: Arc<GnbCounters>,
    endpoint: Arc<Endpoint>,
    stop: Arc<io::PipeReader>,
}

impl Shared {
    /// What to wait for besides packets: readable, or rather hung up, once it is time to stop.
    fn stop_poll(&self) -> nix::poll::PollFd<'_> {
        nix::poll::PollFd::new(self.stop.as_fd(), nix::poll::PollFlags::POLLIN)
    }
}

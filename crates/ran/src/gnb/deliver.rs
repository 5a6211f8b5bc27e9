//! The downlink thread: does what [`Downlink`] decides.

use super::counters::{add, add_packet};
use super::downlink::{Downlink, Verdict};
use super::receive::Receiver;
use super::{Shared, TunnelRefused};
use machine::Time;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::net::SocketAddrV4;
use std::os::fd::AsFd;
use std::time::Instant;
use tokio::sync::mpsc;

/// The thread's state.
pub(super) struct Thread {
    shared: Shared,
    downlink: Downlink,
    reports: mpsc::Sender<TunnelRefused>,
}

impl Thread {
    pub(super) fn new(shared: Shared, reports: mpsc::Sender<TunnelRefused>) -> Self {
        let (bearers, counters) = (shared.bearers.clone(), shared.counters.clone());
        let began = shared.endpoint.recovery_time_stamp;
        let downlink = Downlink::new((shared.endpoint.address, began), bearers, counters);
        Self { shared, downlink, reports }
    }

    /// Until told to stop.
    pub(super) fn run(mut self) {
        let zero = Instant::now();
        let mut receiver = Receiver::new();
        while self.wait() {
            // Whatever failed, failed for one datagram.
            let _ = receiver.receive(&self.shared.endpoint.socket);
            self.downlink.now = Time::from_zero(zero.elapsed());
            for (datagram, from) in receiver.datagrams() {
                let verdict = self.downlink.handle(datagram, from);
                self.obey(verdict);
            }
        }
    }

    /// Waits for datagrams; `false` when it is time to stop.
    fn wait(&self) -> bool {
        let socket = PollFd::new(self.shared.endpoint.socket.as_fd(), PollFlags::POLLIN);
        let mut polls = [socket, self.shared.stop_poll()];
        match poll(&mut polls, PollTimeout::NONE) {
            Ok(_) => !polls.last().is_none_or(|stop| stop.any().unwrap_or(true)),
            Err(error) => error == Errno::EINTR,
        }
    }

    fn obey(&self, verdict: Verdict<'_>) {
        match verdict {
            Verdict::Deliver(ue, packet) => self.deliver(ue, packet),
            Verdict::Answer(bytes, to) => self.answer(&bytes, to),
            // A full channel: the report is counted all the same.
            Verdict::Report(refused) => drop(self.reports.try_send(refused)),
            Verdict::Nothing => {}
        }
    }

    fn deliver(&self, ue: usize, packet: &[u8]) {
        let Some((bearer, tun)) = self.shared.bearers.get(ue).zip(self.shared.tuns.get(ue)) else { return };
        let counters = &bearer.counters;
        match tun.write(packet) {
            Ok(_) => add_packet(&counters.down_packets, &counters.down_bytes, packet.len()),
            Err(_) => add(&counters.down_refused, 1),
        }
    }

    fn answer(&self, bytes: &[u8], to: SocketAddrV4) {
        if self.shared.endpoint.socket.send_to(bytes, to).is_err() {
            add(&self.shared.counters.unsent, 1);
        }
    }
}

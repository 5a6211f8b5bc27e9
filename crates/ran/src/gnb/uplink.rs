//! From the UEs into their tunnels.

use super::Shared;
use super::counters::{add, add_packet};
use super::send::{BATCH, Sender};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd;
use std::time::Duration;

/// Between looks at the devices once one of them is gone.
const DELETED_PAUSE: Duration = Duration::from_millis(10);

/// The uplink thread's state.
pub(super) struct Thread {
    shared: Shared,
}

impl Thread {
    pub(super) fn new(shared: Shared) -> Self {
        Self { shared }
    }

    /// Until told to stop.
    pub(super) fn run(&self) {
        let mtu = self.shared.tuns.iter().map(|tun| tun.longest()).max().unwrap_or(0);
        let mut sender = Sender::new(mtu);
        let tuns = self.shared.tuns.iter().map(|tun| PollFd::new(tun.as_fd(), PollFlags::POLLIN));
        let mut polls: Vec<PollFd<'_>> = tuns.chain([self.shared.stop_poll()]).collect();
        while wait(&mut polls) {
            let ready = polls.iter().enumerate().filter(|(_, poll)| poll.any().unwrap_or(false));
            ready.for_each(|(ue, _)| self.carry(ue, &mut sender));
            self.flush(&mut sender);
        }
    }

    /// Takes at most a batch from one UE, so that no UE starves another.
    fn carry(&self, ue: usize, sender: &mut Sender) {
        self.flush_full(sender);
        let _ = (0..BATCH).try_for_each(|_| self.carry_one(ue, sender));
    }

    /// `None` where the UE has no more to send, or the batch is full.
    fn carry_one(&self, ue: usize, sender: &mut Sender) -> Option<()> {
        let (bearer, tun) = (self.shared.bearers.get(ue)?, self.shared.tuns.get(ue)?);
        let frame = sender.free()?;
        let length = tun.read(frame.room()).ok()?;
        // The host's own IPv6 (router solicitations and the like) is not the UE's: its session is IPv4.
        let is_ipv4 = |packet: &[u8]| packet.first().is_some_and(|first| first >> 4 == 4);
        if !bearer.carries_frames() && !is_ipv4(frame.packet(length)) {
            add(&bearer.counters.up_not_ipv4, 1);
            return Some(());
        }
        let Some(tunnel) = bearer.uplink() else {
            add(&bearer.counters.up_no_tunnel, 1);
            return Some(());
        };
        frame.encapsulate(tunnel, bearer.qfi(), length)?;
        frame.ue = ue;
        sender.keep();
        Some(())
    }

    fn flush_full(&self, sender: &mut Sender) {
        if sender.free().is_none() {
            self.flush(sender);
        }
    }

    fn flush(&self, sender: &mut Sender) {
        sender.flush(&self.shared.endpoint.socket, |frame, sent| {
            let Some(bearer) = self.shared.bearers.get(frame.ue) else { return };
            match sent {
                true => {
                    let counters = &bearer.counters;
                    add_packet(&counters.up_packets, &counters.up_bytes, frame.payload());
                }
                false => add(&bearer.counters.up_unsent, 1),
            }
        });
    }
}

/// Waits for packets; `false` when it is time to stop (the last of `polls`).
fn wait(polls: &mut [PollFd<'_>]) -> bool {
    // A device that somebody deleted says so without end.
    let failed = |poll: &PollFd<'_>| poll.revents().is_some_and(|events| events.contains(PollFlags::POLLERR));
    if polls.iter().any(failed) {
        std::thread::sleep(DELETED_PAUSE);
    }
    match poll(polls, PollTimeout::NONE) {
        Ok(_) => !polls.last().is_none_or(|stop| stop.any().unwrap_or(true)),
        Err(error) => error == Errno::EINTR,
    }
}

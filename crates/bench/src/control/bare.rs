//! The yardstick of `pfcp`: a thread in the control process's place that answers each request at once, without having read it. What is
//! left is the client, the kernel and the machine.

use super::client::{Client, make_room};
use super::messages::{ADDRESS, modification};
use crate::machine;
use anyhow::Context;
use nix::unistd::{Pid, gettid};
use pfcp::{AssociationSetupResponse, Cause, Message, NodeId, SessionModificationResponse};
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Between two looks whether it is over.
const TICK: Duration = Duration::from_millis(50);
/// No request is longer.
const REQUEST: usize = 2_048;
/// The SEID flag (TS 29.244 7.2.2.1), and where the sequence number is with and without a SEID.
const S: u8 = 1;
const SEQUENCE_WITH_SEID: usize = 12;
const SEQUENCE: usize = 4;
/// Any session's name: nobody looks.
const SEID: u64 = 1;

/// The thread, and a control plane that is associated with it.
pub(crate) struct Bare {
    client: Client,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// The kernel's name of it.
    thread_id: Pid,
}

/// What the yardstick came to over a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Requests answered a second.
    pub(crate) rate: f64,
    /// How long the thread that answers had a CPU.
    pub(crate) cpu_ns: u64,
}

impl Bare {
    /// Answers on a CPU.
    ///
    /// # Errors
    /// The thread does not start or does not answer.
    pub(crate) fn start(cpu: usize) -> anyhow::Result<Self> {
        let socket = UdpSocket::bind((ADDRESS, 0)).context("no UDP port can be had on the loopback")?;
        make_room(&socket);
        socket.set_read_timeout(Some(TICK))?;
        let SocketAddr::V4(address) = socket.local_addr()? else {
            anyhow::bail!("an IPv4 socket has no IPv4 address")
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let (tell, told) = channel();
        let thread = thread::spawn({
            let is_over = is_over.clone();
            move || {
                let _ = tell.send(gettid());
                // Elsewhere it would be a yardstick, too.
                let _ = machine::pin(cpu);
                answer(&socket, &is_over);
            }
        });
        let thread_id = told.recv().context("the thread that answers ended")?;
        let client = Self::client(address, &is_over);
        Ok(Self { client: client?, is_over, thread: Some(thread), thread_id })
    }

    fn client(address: SocketAddrV4, is_over: &AtomicBool) -> anyhow::Result<Client> {
        Client::associate(address).inspect_err(|_| is_over.store(true, Ordering::Relaxed))
    }

    /// Asks for so many modifications.
    ///
    /// # Errors
    /// The socket broke.
    pub(crate) fn turn(&mut self, requests: u32) -> anyhow::Result<Turn> {
        let before = machine::thread_cpu_ns(self.thread_id)?;
        let rate = self.client.all(0..requests, |_, number| Some(modification(number, SEID)))?;
        let cpu_ns = machine::thread_cpu_ns(self.thread_id)?.saturating_sub(before);
        Ok(Turn { rate, cpu_ns })
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn answer(socket: &UdpSocket, is_over: &AtomicBool) {
    let setup = AssociationSetupResponse::new(NodeId::Ipv4(ADDRESS), Cause::RequestAccepted, 1);
    let changed = SessionModificationResponse::new(Cause::RequestAccepted);
    let mut setup = pfcp::encode(&Message::node(0, setup));
    let mut changed = pfcp::encode(&Message::session(SEID, 0, changed));
    let mut request = [0; REQUEST];
    while !is_over.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut request) else { continue };
        let (answer, at) = match request[0] & S {
            0 => (&mut setup, SEQUENCE),
            _ => (&mut changed, SEQUENCE_WITH_SEID),
        };
        let sequence = request[..length].get(at..at + 3);
        if let (Some(place), Some(sequence)) = (answer.get_mut(at..at + 3), sequence) {
            place.copy_from_slice(sequence);
            let _ = socket.send_to(answer, from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Tally;

    #[test]
    fn everything_is_answered() {
        let mut bare = Bare::start(machine::cpus()[0]).unwrap();
        let turn = bare.turn(1_000).unwrap();
        assert!(turn.rate > 0.0);
        // It is the answering thread's time, which cannot be more than has passed.
        assert!(turn.cpu_ns > 0 && (turn.cpu_ns as f64) < 1_000.0 / turn.rate * 1e9 + 1e6, "{turn:?}");
        assert_eq!(bare.client.tally, Tally { answered: 1_001, failures: 0, retransmissions: 0 });
    }
}

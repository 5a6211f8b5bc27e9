//! Requests, so many under way at once, each sent again until it is answered (TS 29.244 6.4).

use super::messages::{self, ADDRESS};
use crate::interrupt;
use anyhow::{Context, bail};
use hdrhistogram::Histogram;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use pfcp::{Body, Cause, HeartbeatResponse, Message};
use std::collections::HashMap;
use std::io::IoSliceMut;
use std::net::{SocketAddrV4, UdpSocket};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Requests under way at once. A batch of the node's is half of 256: with so few, the client and the data plane, on their CPU, and the
/// control plane, on its own, wait for each other.
pub(crate) const WINDOW: usize = 512;
/// Bytes of them that may wait.
const RECEIVE_BUFFER: usize = 4 << 20;
/// T1 and N1: how long an answer may take, and how often a request is sent.
const T1: Duration = Duration::from_secs(1);
const N1: u32 = 3;
/// Between two looks for requests that are late.
const TICK: Duration = Duration::from_millis(50);
/// The longest datagram there is.
const DATAGRAM: usize = 65_535;
/// From 1900, where PFCP counts from (TS 29.244 8.2.65), to 1970.
const NTP_TO_UNIX_S: u64 = 2_208_988_800;

/// A request under way.
struct Pending {
    number: u32,
    bytes: Vec<u8>,
    asked: Instant,
    sent: Instant,
    tries: u32,
}

/// What became of all requests so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) answered: u64,
    /// Refused, or never answered.
    pub(crate) failures: u64,
    pub(crate) retransmissions: u64,
}

/// A control plane.
pub(crate) struct Client {
    socket: UdpSocket,
    pending: HashMap<u32, Pending>,
    sequence: u32,
    recovery_time_stamp: u32,
    buffer: Vec<u8>,
    pub(crate) tally: Tally,
    /// The user plane's SEIDs, by session.
    pub(crate) seids: HashMap<u32, u64>,
    /// Nanoseconds from a request, as first sent, to its answer.
    pub(crate) waits: Histogram<u64>,
}

impl Client {
    /// Associated with the node at `upf`.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub(crate) fn associate(upf: SocketAddrV4) -> anyhow::Result<Self> {
        let socket = UdpSocket::bind((ADDRESS, 0)).context("no UDP port can be had on the loopback")?;
        socket.connect(upf)?;
        make_room(&socket);
        // What the node gives the kernel as one, the kernel gives us as one; without it, one by one.
        let _ = setsockopt(&socket, sockopt::UdpGroSegment, &true);
        socket.set_read_timeout(Some(TICK))?;
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let mut client = Self {
            socket,
            pending: HashMap::new(),
            sequence: 0,
            // 32 bits, which begin anew in 2036.
            recovery_time_stamp: (unix_s + NTP_TO_UNIX_S) as u32,
            buffer: vec![0; DATAGRAM],
            tally: Tally::default(),
            seids: HashMap::new(),
            waits: Histogram::new(3)?,
        };
        let stamp = client.recovery_time_stamp;
        client.all(0..1, |_, _| Some(messages::setup(stamp)))?;
        match client.tally {
            Tally { answered: 1, failures: 0, .. } => Ok(client),
            _ => bail!("the node does not associate"),
        }
    }

    /// Asks about every session of a range and waits for the answers; returns how many a second were answered.
    ///
    /// # Errors
    /// The socket broke.
    pub(crate) fn all(
        &mut self,
        mut sessions: Range<u32>,
        request: impl Fn(&Self, u32) -> Option<Message>,
    ) -> anyhow::Result<f64> {
        let (start, before) = (Instant::now(), self.tally.answered);
        while !(interrupt::asked() || sessions.is_empty() && self.pending.is_empty()) {
            while self.pending.len() < WINDOW
                && let Some(number) = sessions.next()
            {
                match request(self, number) {
                    Some(message) => self.ask(number, message)?,
                    // There is no such session: its establishment failed, and was counted then.
                    None => continue,
                }
            }
            let messages = self.receive()?;
            if messages.is_empty() {
                self.resend()?;
            }
            messages.into_iter().try_for_each(|message| self.take(message))?;
        }
        // Late answers of an interrupted run are nobody's.
        self.pending.clear();
        Ok((self.tally.answered - before) as f64 / start.elapsed().as_secs_f64())
    }

    fn ask(&mut self, number: u32, mut message: Message) -> anyhow::Result<()> {
        // 24 bits (TS 29.244 7.2.2.3).
        self.sequence = (self.sequence + 1) & 0x00ff_ffff;
        message.sequence = self.sequence;
        let bytes = pfcp::encode(&message);
        self.socket.send(&bytes).context("the node cannot be reached")?;
        let now = Instant::now();
        self.pending.insert(self.sequence, Pending { number, bytes, asked: now, sent: now, tries: 1 });
        Ok(())
    }

    /// What came together: none where nothing came for a while.
    fn receive(&mut self) -> anyhow::Result<Vec<Message>> {
        if self.pending.is_empty() {
            return Ok(vec![]);
        }
        let mut control = nix::cmsg_space!(i32);
        let (mut parts, flags) = ([IoSliceMut::new(&mut self.buffer)], MsgFlags::empty());
        let (length, segment) =
            match recvmsg::<()>(self.socket.as_raw_fd(), &mut parts, Some(&mut control), flags) {
                Ok(received) => (received.bytes, received.cmsgs()?.find_map(segment)),
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(vec![]),
                Err(error) => return Err(error).context("the node went away"),
            };
        let datagrams =
            self.buffer.get(..length).unwrap_or_default().chunks(segment.unwrap_or(length).max(1));
        let message = |datagram| {
            pfcp::decode(datagram).map_err(|error| anyhow::anyhow!("an answer cannot be read: {error:?}"))
        };
        datagrams.map(message).collect()
    }

    fn take(&mut self, message: Message) -> anyhow::Result<()> {
        if let Body::HeartbeatRequest(_) = message.body {
            let recovery_time_stamp = self.recovery_time_stamp;
            let answer = HeartbeatResponse { recovery_time_stamp, carried: vec![] };
            self.socket.send(&pfcp::encode(&Message::node(message.sequence, answer)))?;
            return Ok(());
        }
        let Some(pending) = self.pending.remove(&message.sequence) else { return Ok(()) };
        self.waits.record(pending.asked.elapsed().as_nanos() as u64)?;
        let (cause, seid) = match message.body {
            Body::AssociationSetupResponse(answer) => (answer.cause, None),
            Body::SessionEstablishmentResponse(answer) => (answer.cause, answer.up_f_seid),
            Body::SessionModificationResponse(answer) => (answer.cause, None),
            Body::SessionDeletionResponse(answer) => (answer.cause, None),
            _ => (Cause::RequestRejected, None),
        };
        self.seids.extend(seid.map(|f_seid| (pending.number, f_seid.seid)));
        match cause.is_accepted() {
            true => self.tally.answered += 1,
            false => self.tally.failures += 1,
        }
        Ok(())
    }

    fn resend(&mut self) -> anyhow::Result<()> {
        for pending in self.pending.values_mut().filter(|pending| pending.sent.elapsed() > T1) {
            pending.tries += 1;
            if pending.tries <= N1 {
                self.tally.retransmissions += 1;
                pending.sent = Instant::now();
                self.socket.send(&pending.bytes)?;
            }
        }
        let before = self.pending.len();
        self.pending.retain(|_, pending| pending.tries <= N1);
        self.tally.failures += (before - self.pending.len()) as u64;
        Ok(())
    }
}

/// For a window of datagrams, which may come at once. Beyond the system's limit, if this process may.
pub(super) fn make_room(socket: &UdpSocket) {
    let _ = setsockopt(socket, sockopt::RcvBufForce, &RECEIVE_BUFFER)
        .or_else(|_| setsockopt(socket, sockopt::RcvBuf, &RECEIVE_BUFFER));
}

/// The length of datagrams that came as one; the last may be shorter.
fn segment(said: ControlMessageOwned) -> Option<usize> {
    match said {
        ControlMessageOwned::UdpGroSegments(length) => usize::try_from(length).ok(),
        _ => None,
    }
}

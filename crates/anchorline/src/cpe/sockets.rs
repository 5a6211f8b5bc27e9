//! Where PFCP is served: over one IP version, or over both.

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, recvmsg, setsockopt,
    sockopt::ReceiveTimestampns,
};
use nix::sys::time::TimeSpec;
use std::cell::Cell;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// The longest datagram there is.
const DATAGRAM: usize = 65_535;
/// So many are taken by one call of the kernel.
const TOGETHER: usize = 32;
/// No datagram waits for so long: somebody has changed the clock.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A socket, and one of the other IP version, if there is one.
pub(super) struct Sockets {
    first: UdpSocket,
    other: Option<UdpSocket>,
    /// The first one is of IPv4.
    is_ipv4_first: bool,
    /// Which is asked first, by turns: no flood at one keeps the other from being heard.
    turn: Cell<bool>,
}

/// Room for datagrams that are taken together.
pub(super) struct Inbox {
    octets: Vec<u8>,
    /// How long each is, and who sent it.
    taken: Vec<(usize, Option<SocketAddr>)>,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self { octets: vec![0; DATAGRAM * TOGETHER], taken: Vec::with_capacity(TOGETHER) }
    }

    /// Room for one that comes alone.
    pub(super) fn one(&mut self) -> &mut [u8] {
        self.octets.get_mut(..DATAGRAM).unwrap_or_default()
    }

    /// Those that were taken last, in their order.
    pub(super) fn datagrams(&self) -> impl Iterator<Item = (&[u8], SocketAddr)> {
        let each = self.octets.chunks(DATAGRAM).zip(&self.taken);
        each.filter_map(|(octets, (length, from))| Some((octets.get(..*length)?, (*from)?)))
    }
}

impl Sockets {
    pub(super) fn new(first: UdpSocket, other: Option<UdpSocket>) -> io::Result<Self> {
        let is_ipv4_first = first.local_addr()?.is_ipv4();
        for socket in other.iter().chain([&first]) {
            setsockopt(socket, ReceiveTimestampns, &true)?;
        }
        Ok(Self { first, other, is_ipv4_first, turn: Cell::new(false) })
    }

    /// The next datagram: its length, who sent it, and how long it has waited.
    pub(super) async fn receive(&self, bytes: &mut [u8]) -> io::Result<(usize, SocketAddr, Duration)> {
        loop {
            match self.take(bytes, receive_dated) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable().await?,
                received => return received,
            }
        }
    }

    /// Those that wait now, a few at most, into `inbox`; how many. How long they have waited is not asked, as it costs as much again
    /// as to receive them.
    pub(super) fn try_receive(&self, inbox: &mut Inbox, most: usize) -> usize {
        inbox.taken.clear();
        // An ICMP error about something sent earlier is no datagram.
        let _ = self.take(inbox, |socket, inbox| receive_together(socket, inbox, most.min(TOGETHER)));
        inbox.taken.len()
    }

    /// From the socket whose turn it is, or else from the other.
    fn take<R: ?Sized, T>(
        &self,
        room: &mut R,
        receive: impl Fn(&UdpSocket, &mut R) -> io::Result<T>,
    ) -> io::Result<T> {
        let Some(other) = &self.other else { return receive(&self.first, room) };
        let is_others_turn = self.turn.replace(!self.turn.get());
        let [one, two] = if is_others_turn { [other, &self.first] } else { [&self.first, other] };
        match receive(one, room) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => receive(two, room),
            received => received,
        }
    }

    async fn readable(&self) -> io::Result<()> {
        match &self.other {
            None => self.first.readable().await,
            Some(other) => tokio::select! {
                ready = self.first.readable() => ready,
                ready = other.readable() => ready,
            },
        }
    }

    /// The socket by which an address is reached.
    pub(super) fn towards(&self, to: SocketAddr) -> &UdpSocket {
        let other = self.other.as_ref().filter(|_| to.is_ipv4() != self.is_ipv4_first);
        other.unwrap_or(&self.first)
    }
}

/// A datagram, with the kernel's word for when it came.
fn receive_dated(socket: &UdpSocket, bytes: &mut [u8]) -> io::Result<(usize, SocketAddr, Duration)> {
    socket.try_io(Interest::READABLE, || {
        let mut control = nix::cmsg_space!(TimeSpec);
        let mut parts = [IoSliceMut::new(bytes)];
        let (socket, flags) = (socket.as_raw_fd(), MsgFlags::empty());
        let message = recvmsg::<SockaddrStorage>(socket, &mut parts, Some(&mut control), flags)?;
        let stamp = message.cmsgs()?.find_map(|said| match said {
            ControlMessageOwned::ScmTimestampns(stamp) => Some(Duration::from(stamp)),
            _ => None,
        });
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let waited = stamp.map(|stamp| now.saturating_sub(stamp)).filter(|waited| *waited < WAIT_MAX);
        let from = message.address.and_then(address).ok_or(ErrorKind::AddrNotAvailable)?;
        Ok((message.bytes, from, waited.unwrap_or_default()))
    })
}

fn receive_together(socket: &UdpSocket, inbox: &mut Inbox, most: usize) -> io::Result<()> {
    let Inbox { octets, taken } = inbox;
    socket.try_io(Interest::READABLE, || {
        let mut parts: Vec<_> =
            octets.chunks_mut(DATAGRAM).take(most).map(|octets| [IoSliceMut::new(octets)]).collect();
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(most, None);
        let received = recvmmsg(socket.as_raw_fd(), &mut headers, &mut parts, MsgFlags::empty(), None)?;
        taken.extend(received.map(|message| (message.bytes, message.address.and_then(address))));
        Ok(())
    })
}

fn address(from: SockaddrStorage) -> Option<SocketAddr> {
    let ipv4 = from.as_sockaddr_in().map(|from| SocketAddrV4::from(*from).into());
    ipv4.or_else(|| from.as_sockaddr_in6().map(|from| SocketAddrV6::from(*from).into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpe::send::send_all;
    use std::time::Duration;
    use tokio::time::timeout;

    async fn bound(address: &str) -> UdpSocket {
        UdpSocket::bind(address).await.unwrap()
    }

    /// The kernel begins to note when datagrams come a while after it was asked to, longer on a busy machine.
    async fn await_stamps(sockets: &Sockets, peer: &UdpSocket, us: SocketAddr) {
        let wait = Duration::from_millis(5);
        let has_begun = async || {
            peer.send_to(&[0], us).await.unwrap();
            tokio::time::sleep(wait).await;
            sockets.receive(&mut [0; 16]).await.unwrap().2 >= wait
        };
        for _ in 0..1_000 {
            if has_begun().await {
                return;
            }
        }
        panic!("the kernel never says when a datagram came");
    }

    #[tokio::test]
    async fn a_datagram_says_how_long_it_has_waited() {
        for (ours, theirs) in [("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:0", "[::1]:0")] {
            let (socket, peer) = (bound(ours).await, bound(theirs).await);
            let us = socket.local_addr().unwrap();
            let sockets = Sockets::new(socket, None).unwrap();
            await_stamps(&sockets, &peer, us).await;
            peer.send_to(&[1, 2, 3], us).await.unwrap();
            tokio::time::sleep(Duration::from_millis(300)).await;
            peer.send_to(&[4], us).await.unwrap();
            let mut bytes = [0; 16];
            let (length, from, waited) = sockets.receive(&mut bytes).await.unwrap();
            assert_eq!((&bytes[..length], from), (&[1, 2, 3][..], peer.local_addr().unwrap()));
            assert!(waited >= Duration::from_millis(290) && waited < WAIT_MAX, "{waited:?}");
            let (_, _, next) = sockets.receive(&mut bytes).await.unwrap();
            assert!(next < waited, "{next:?}");
        }
    }

    #[tokio::test]
    async fn those_that_wait_are_taken_together_whole_and_in_order() {
        let (socket, peer) = (bound("127.0.0.1:0").await, bound("127.0.0.1:0").await);
        let us = socket.local_addr().unwrap();
        let sockets = Sockets::new(socket, None).unwrap();
        let sent: Vec<Vec<u8>> = (0..40_u8).map(|number| vec![number; usize::from(number) * 30]).collect();
        for bytes in &sent {
            peer.send_to(bytes, us).await.unwrap();
        }
        sockets.readable().await.unwrap();
        let (mut inbox, mut received) = (Inbox::new(), vec![]);
        for expected in [5, TOGETHER, 3, 0] {
            let most = if expected == 5 { 5 } else { usize::MAX };
            assert_eq!(sockets.try_receive(&mut inbox, most), expected);
            received.extend(inbox.datagrams().map(|(bytes, from)| (bytes.to_vec(), from)));
        }
        let from = peer.local_addr().unwrap();
        assert_eq!(received, sent.into_iter().map(|bytes| (bytes, from)).collect::<Vec<_>>());
    }

    /// Whoever asks over one IP version is answered over it, however much comes over the other.
    #[tokio::test]
    async fn both_ip_versions_are_heard_and_answered() {
        let [first, other] = [bound("127.0.0.1:0").await, bound("[::1]:0").await];
        let ours = [first.local_addr().unwrap(), other.local_addr().unwrap()];
        let sockets = Sockets::new(first, Some(other)).unwrap();
        let [ipv4, ipv6] = [bound("127.0.0.1:0").await, bound("[::1]:0").await];
        for number in 0..20 {
            ipv4.send_to(&[4, number], ours[0]).await.unwrap();
        }
        ipv6.send_to(&[6], ours[1]).await.unwrap();
        let (mut bytes, mut order) = ([0; 16], vec![]);
        for _ in 0..21 {
            let received = timeout(Duration::from_secs(5), sockets.receive(&mut bytes)).await;
            let (length, from, _) = received.unwrap().unwrap();
            order.push(bytes[0]);
            send_all(&sockets, &mut vec![(from, bytes[..length].to_vec())]).await;
        }
        assert!(order.iter().position(|first| *first == 6).unwrap() < 3, "{order:?}");
        for (peer, first, us) in [(&ipv4, 4, ours[0]), (&ipv6, 6, ours[1])] {
            let answered = timeout(Duration::from_secs(5), peer.recv_from(&mut bytes)).await;
            assert_eq!((answered.unwrap().unwrap().1, bytes[0]), (us, first));
        }
    }
}

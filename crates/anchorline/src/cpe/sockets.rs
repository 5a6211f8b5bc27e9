//! Where PFCP is served: over one IP version, or over both.

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt::ReceiveTimestampns,
};
use nix::sys::time::TimeSpec;
use std::cell::Cell;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::Interest;
use tokio::net::UdpSocket;

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

    /// The same, if there is one now; how long it has waited is not asked, as it costs as much again.
    pub(super) fn try_receive(&self, bytes: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.take(bytes, UdpSocket::try_recv_from)
    }

    /// From the socket whose turn it is, or else from the other.
    fn take<T>(
        &self,
        bytes: &mut [u8],
        receive: impl Fn(&UdpSocket, &mut [u8]) -> io::Result<T>,
    ) -> io::Result<T> {
        let Some(other) = &self.other else { return receive(&self.first, bytes) };
        let is_others_turn = self.turn.replace(!self.turn.get());
        let [one, two] = if is_others_turn { [other, &self.first] } else { [&self.first, other] };
        match receive(one, bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => receive(two, bytes),
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

    #[tokio::test]
    async fn a_datagram_says_how_long_it_has_waited() {
        for (ours, theirs) in [("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:0", "[::1]:0")] {
            let (socket, peer) = (bound(ours).await, bound(theirs).await);
            let us = socket.local_addr().unwrap();
            let sockets = Sockets::new(socket, None).unwrap();
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

//! Where PFCP is served: over one IP version, or over both.

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use tokio::net::UdpSocket;

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
        Ok(Self { first, other, is_ipv4_first, turn: Cell::new(false) })
    }

    /// The next datagram: its length, and who sent it.
    pub(super) async fn receive(&self, bytes: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        loop {
            match self.try_receive(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable().await?,
                received => return received,
            }
        }
    }

    /// The same, if there is one now.
    pub(super) fn try_receive(&self, bytes: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let Some(other) = &self.other else { return self.first.try_recv_from(bytes) };
        let is_others_turn = self.turn.replace(!self.turn.get());
        let [one, two] = if is_others_turn { [other, &self.first] } else { [&self.first, other] };
        match one.try_recv_from(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => two.try_recv_from(bytes),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpe::send::send_all;
    use std::time::Duration;
    use tokio::time::timeout;

    async fn bound(address: &str) -> UdpSocket {
        UdpSocket::bind(address).await.unwrap()
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
            let (length, from) = received.unwrap().unwrap();
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

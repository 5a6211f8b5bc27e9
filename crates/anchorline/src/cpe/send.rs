//! Datagrams, sent in as few calls as there can be: answers that wait together for the database are often of one length
//! and for one control plane, and the kernel takes those as one (UDP segmentation offload), at a third of the cost.

use super::sockets::Sockets;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

/// The kernel takes so many as one (UDP_MAX_SEGMENTS of its older versions).
const TOGETHER: usize = 64;
/// Longer ones go alone: a segment must fit the path's packets.
const SEGMENT: usize = 1_200;

/// So long room is waited for, by all that is sent together: what finds none by then is lost, as on any way, and whoever asks for it asks
/// again. A host that is not there may hold what is for it for seconds, and nobody else is to wait for that.
const PATIENCE: Duration = Duration::from_millis(10);

/// A datagram and where it goes.
pub(super) type Datagram = (SocketAddr, Vec<u8>);

/// Sends all, those for one address in their order, and forgets them.
pub(super) async fn send_all(sockets: &Sockets, datagrams: &mut Vec<Datagram>) {
    // One after the other would be told apart by their numbers, not by their order; which address comes first is nobody's concern.
    datagrams.sort_by_key(|(to, _)| *to);
    let (until, mut lost) = (Instant::now() + PATIENCE, 0);
    for run in datagrams.chunk_by(|one, next| one.0 == next.0 && one.1.len() == next.1.len()) {
        let Some(socket) = run.first().map(|(to, _)| sockets.towards(*to)) else { continue };
        for part in run.chunks(TOGETHER) {
            if !send_together(socket, part) {
                lost += send_each(socket, part, until).await;
            }
        }
    }
    if lost > 0 {
        tracing::warn!("{lost} datagrams were not sent: there has been no room for {PATIENCE:?}");
    }
    datagrams.clear();
}

/// Datagrams of one length to one address. Whether the kernel took them; it takes all or none.
fn send_together(socket: &UdpSocket, datagrams: &[Datagram]) -> bool {
    let [(to, first), _, ..] = datagrams else { return false };
    let Some(segment) = u16::try_from(first.len()).ok().filter(|_| first.len() <= SEGMENT) else {
        return false;
    };
    let slices: Vec<IoSlice<'_>> = datagrams.iter().map(|(_, bytes)| IoSlice::new(bytes)).collect();
    let (to, segments) = (SockaddrStorage::from(*to), [ControlMessage::UdpGsoSegments(&segment)]);
    let send = || {
        sendmsg(socket.as_raw_fd(), &slices, &segments, MsgFlags::MSG_DONTWAIT, Some(&to))
            .map_err(io::Error::from)
    };
    socket.try_io(Interest::WRITABLE, send).is_ok()
}

/// How many there was no room for.
async fn send_each(socket: &UdpSocket, datagrams: &[Datagram], until: Instant) -> usize {
    let mut lost = 0;
    for (to, bytes) in datagrams {
        // Nearly always there is room at once.
        if socket.try_send_to(bytes, *to).is_ok() {
            continue;
        }
        match timeout_at(until, socket.send_to(bytes, *to)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!("a datagram to {to} was not sent: {error}"),
            Err(_) => lost += 1,
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::timeout;

    async fn received(socket: &UdpSocket, datagrams: usize) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for _ in 0..datagrams {
            let mut bytes = vec![0; 2_000];
            let received = timeout(Duration::from_secs(5), socket.recv_from(&mut bytes)).await;
            bytes.truncate(received.unwrap().unwrap().0);
            all.push(bytes);
        }
        all
    }

    /// Many of one length, some of others, empty and long ones, for two addresses.
    #[tokio::test]
    async fn every_datagram_arrives_whole_and_in_order() {
        let bind = || UdpSocket::bind(("127.0.0.1", 0));
        let (socket, one, other) = (bind().await.unwrap(), bind().await.unwrap(), bind().await.unwrap());
        let lengths = [60; 100].into_iter().chain([59, 61, 61, 0, 1_400, 1_400, 60, 60]);
        let datagrams: Vec<Vec<u8>> =
            lengths.enumerate().map(|(number, length)| vec![number as u8; length]).collect();
        let mut all = Vec::new();
        for bytes in &datagrams {
            all.push((one.local_addr().unwrap(), bytes.clone()));
            all.push((other.local_addr().unwrap(), bytes.clone()));
        }
        send_all(&Sockets::new(socket, None).unwrap(), &mut all).await;
        assert!(all.is_empty());
        assert_eq!(received(&one, datagrams.len()).await, datagrams);
        assert_eq!(received(&other, datagrams.len()).await, datagrams);
    }

    /// That they go together is what all this is for.
    #[tokio::test]
    async fn the_kernel_takes_many_at_once() {
        let (socket, peer) = (
            UdpSocket::bind(("127.0.0.1", 0)).await.unwrap(),
            UdpSocket::bind(("127.0.0.1", 0)).await.unwrap(),
        );
        socket.writable().await.unwrap();
        let to = peer.local_addr().unwrap();
        let datagrams: Vec<Datagram> = (0..TOGETHER as u8).map(|number| (to, vec![number; 80])).collect();
        assert!(send_together(&socket, &datagrams));
        assert_eq!(
            received(&peer, TOGETHER).await,
            datagrams.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>()
        );
    }
}

//! Datagrams, many a system call.

use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrIn, recvmmsg};
use std::io::{self, IoSliceMut};
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

/// Datagrams a call.
const BATCH: usize = 64;
/// The largest datagram: the largest UE packet with headers to spare. What is longer arrives cut, and says so by
/// its own length.
const DATAGRAM_BYTES: usize = 9_216;

/// Buffers for one call.
pub(super) struct Receiver {
    buffers: Vec<Box<[u8]>>,
    headers: MultiHeaders<SockaddrIn>,
    /// Length and sender of what the last call gave.
    received: Vec<(usize, SocketAddrV4)>,
}

impl Receiver {
    pub(super) fn new() -> Self {
        Self {
            buffers: vec![vec![0; DATAGRAM_BYTES].into(); BATCH],
            headers: MultiHeaders::preallocate(BATCH, None),
            received: Vec::with_capacity(BATCH),
        }
    }

    /// Takes what is there.
    pub(super) fn receive(&mut self, socket: &UdpSocket) -> io::Result<()> {
        self.received.clear();
        let slices = self.buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]);
        let mut slices: Vec<[IoSliceMut<'_>; 1]> = slices.collect();
        let fd = socket.as_raw_fd();
        let flags = MsgFlags::MSG_DONTWAIT;
        for message in recvmmsg(fd, &mut self.headers, slices.iter_mut(), flags, None)? {
            let from = message.address.map(SocketAddrV4::from);
            self.received.push((message.bytes, from.unwrap_or(UNKNOWN)));
        }
        Ok(())
    }

    /// What the last call gave.
    pub(super) fn datagrams(&self) -> impl Iterator<Item = (&[u8], SocketAddrV4)> {
        let received = self.buffers.iter().zip(&self.received);
        received.map(|(buffer, (length, from))| (buffer.get(..*length).unwrap_or_default(), *from))
    }
}

/// The kernel names every datagram's sender; should it not, answers go nowhere.
const UNKNOWN: SocketAddrV4 = SocketAddrV4::new(std::net::Ipv4Addr::UNSPECIFIED, 0);

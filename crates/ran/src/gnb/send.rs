//! G-PDUs, many a system call.

use crate::tunnel::Tunnel;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrIn, sendmmsg};
use packet::gtpu::{self, PduSession};
use rules::Qfi;
use std::io::{self, IoSlice};
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

/// G-PDUs a call.
pub(super) const BATCH: usize = 64;
/// Bytes in front of the UE's packet: GTP-U with a PDU session container.
pub(super) const HEADER: usize = gtpu::encapsulated_length(Some(PduSession::uplink(0)));

/// G-PDUs on their way out.
pub(super) struct Sender {
    frames: Vec<Frame>,
    filled: usize,
    headers: MultiHeaders<SockaddrIn>,
}

/// A buffer with the header's room in front, and what it holds.
pub(super) struct Frame {
    bytes: Box<[u8]>,
    length: usize,
    to: SockaddrIn,
    /// Whose packet it is.
    pub(super) ue: usize,
}

impl Frame {
    /// Where the UE's packet goes.
    pub(super) fn room(&mut self) -> &mut [u8] {
        self.bytes.get_mut(HEADER..).unwrap_or_default()
    }

    /// What the room holds.
    pub(super) fn packet(&self, length: usize) -> &[u8] {
        self.bytes.get(HEADER..HEADER + length).unwrap_or_default()
    }

    /// Puts the header in front of the first `payload` bytes of the room (TS 38.415 5.5.2.2).
    pub(super) fn encapsulate(&mut self, tunnel: Tunnel, qfi: Qfi, payload: usize) -> Option<()> {
        let container = PduSession::uplink(qfi.value());
        gtpu::write_g_pdu(&mut self.bytes, tunnel.teid.0, Some(container), payload)?;
        self.length = HEADER + payload;
        self.to = SockaddrIn::from(SocketAddrV4::new(tunnel.address, gtpu::PORT));
        Some(())
    }

    /// Bytes of the UE's packet.
    pub(super) fn payload(&self) -> usize {
        self.length.saturating_sub(HEADER)
    }

    fn datagram(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Sender {
    /// For UE packets of at most `mtu` bytes.
    pub(super) fn new(mtu: usize) -> Self {
        let frame = || Frame {
            bytes: vec![0; HEADER + mtu].into(),
            length: 0,
            to: SockaddrIn::new(0, 0, 0, 0, 0),
            ue: 0,
        };
        let frames = std::iter::repeat_with(frame).take(BATCH).collect();
        Self { frames, filled: 0, headers: MultiHeaders::preallocate(BATCH, None) }
    }

    /// The next free frame; `None` where the batch is full.
    pub(super) fn free(&mut self) -> Option<&mut Frame> {
        self.frames.get_mut(self.filled)
    }

    /// The free frame is to be sent.
    pub(super) fn keep(&mut self) {
        self.filled += 1;
    }

    /// Sends the batch and tells of each frame whether the kernel took it.
    pub(super) fn flush(&mut self, socket: &UdpSocket, mut done: impl FnMut(&Frame, bool)) {
        let mut rest = self.frames.get(..self.filled).unwrap_or_default();
        while let Some((first, others)) = rest.split_first() {
            // An error is that of the first frame: it is skipped, the others have their own chance.
            let sent = send(socket, &mut self.headers, rest).unwrap_or(0);
            let (taken, left) =
                if sent == 0 { (&[][..], others) } else { rest.split_at(sent.min(rest.len())) };
            taken.iter().for_each(|frame| done(frame, true));
            if sent == 0 {
                done(first, false);
            }
            rest = left;
        }
        self.filled = 0;
    }
}

fn send(socket: &UdpSocket, headers: &mut MultiHeaders<SockaddrIn>, frames: &[Frame]) -> io::Result<usize> {
    let slices: Vec<[IoSlice<'_>; 1]> = frames.iter().map(|f| [IoSlice::new(f.datagram())]).collect();
    let to: Vec<Option<SockaddrIn>> = frames.iter().map(|frame| Some(frame.to)).collect();
    let sent = sendmmsg(socket.as_raw_fd(), headers, &slices, to, [], MsgFlags::empty())?;
    Ok(sent.count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::gtpu::{Message, PduType, message_type};
    use rules::Teid;
    use std::net::Ipv4Addr;

    #[test]
    fn an_uplink_packet_gets_its_tunnel_and_flow() {
        let mut sender = Sender::new(100);
        let frame = sender.free().unwrap();
        frame.room()[..3].copy_from_slice(&[0x45, 1, 2]);
        let tunnel = Tunnel { teid: Teid(0xfa1f), address: Ipv4Addr::new(10, 30, 0, 2) };
        frame.encapsulate(tunnel, Qfi::new(9).unwrap(), 3).unwrap();
        let message = Message::parse(frame.datagram()).unwrap();
        assert_eq!((message.message_type, message.teid), (message_type::G_PDU, 0xfa1f));
        let container = message.pdu_session.unwrap();
        assert_eq!((container.pdu_type, container.qfi), (PduType::Uplink, 9));
        assert_eq!(frame.datagram()[message.header_length..], [0x45, 1, 2]);
        assert_eq!(frame.payload(), 3);
    }

    #[test]
    fn a_batch_reaches_its_receiver_and_a_frame_that_cannot_holds_up_no_other() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = receiver.local_addr().unwrap().port();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut sender = Sender::new(100);
        let tunnel = Tunnel { teid: Teid(1), address: Ipv4Addr::LOCALHOST };
        for port in [to, 0, to] {
            let frame = sender.free().unwrap();
            frame.encapsulate(tunnel, Qfi::new(9).unwrap(), 20).unwrap();
            frame.to = SockaddrIn::new(127, 0, 0, 1, port);
            sender.keep();
        }
        let mut taken = Vec::new();
        sender.flush(&socket, |_, sent| taken.push(sent));
        assert_eq!(taken, [true, false, true]);
        assert_eq!(receiver.recv(&mut [0; 100]).unwrap(), 36);
        assert_eq!(receiver.recv(&mut [0; 100]).unwrap(), 36);
    }
}

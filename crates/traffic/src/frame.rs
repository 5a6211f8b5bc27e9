//! Frames around users' packets: what a gNB sends up, in its tunnel, and what a router sends down.

use packet::ethernet::{self, MacAddress};
use packet::gtpu::PduSession;
use packet::{gtpu, ipv4, udp};
use std::net::Ipv4Addr;

/// Who is on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Endpoints {
    /// The user plane's port towards the radio.
    pub n3: (MacAddress, Ipv4Addr),
    /// The user plane's port towards the data network.
    pub n6: (MacAddress, Ipv4Addr),
    /// The gNB.
    pub gnb: (MacAddress, Ipv4Addr),
    /// The router of the data network.
    pub router: (MacAddress, Ipv4Addr),
}

impl Endpoints {
    /// Those of captures: locally administered Ethernet addresses, and private networks.
    pub const EXAMPLE: Self = Self {
        n3: (MacAddress([2, 0, 0, 0, 3, 2]), Ipv4Addr::new(10, 30, 0, 2)),
        n6: (MacAddress([2, 0, 0, 0, 6, 2]), Ipv4Addr::new(10, 50, 0, 2)),
        gnb: (MacAddress([2, 0, 0, 0, 3, 1]), Ipv4Addr::new(10, 30, 0, 1)),
        router: (MacAddress([2, 0, 0, 0, 6, 1]), Ipv4Addr::new(10, 50, 0, 1)),
    };
}

/// One user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's address.
    pub address: Ipv4Addr,
    /// The uplink tunnel.
    pub teid: u32,
    /// The QoS flow.
    pub qfi: u8,
}

/// Where users are numbered from: each has the next address and the next tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Users(
    /// User number 0.
    pub User,
);

impl Default for Users {
    /// From 10.64.0.0, tunnel 1, all in QoS flow 9.
    fn default() -> Self {
        Self(User { address: Ipv4Addr::new(10, 64, 0, 0), teid: 1, qfi: 9 })
    }
}

impl Users {
    /// The user of this number.
    #[inline]
    pub fn user(&self, number: u32) -> User {
        let Self(first) = *self;
        let address = Ipv4Addr::from(u32::from(first.address).wrapping_add(number));
        User { address, teid: first.teid.wrapping_add(number), qfi: first.qfi }
    }
}

/// Bytes before the user's packet on the way up.
pub(crate) const UPLINK_HEADERS: usize =
    ethernet::LENGTH + ipv4::LENGTH + udp::LENGTH + gtpu::encapsulated_length(Some(PduSession::uplink(0)));

impl Endpoints {
    /// Writes what stands before `user`'s packet of `length` bytes on its way up; returns the rest of `frame`.
    #[inline]
    pub(crate) fn uplink<'a>(&self, user: User, length: usize, frame: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let container = Some(PduSession::uplink(user.qfi));
        let message = gtpu::encapsulated_length(container) + length;
        ethernet::Header::new(self.n3.0, self.gnb.0, ethernet::IPV4).write(frame)?;
        let packet = frame.get_mut(ethernet::LENGTH..)?;
        ipv4::Header::new(self.gnb.1, self.n3.1, ipv4::UDP, udp::LENGTH + message)?.write(packet)?;
        let datagram = packet.get_mut(ipv4::LENGTH..)?;
        udp::Header::new(gtpu::PORT, gtpu::PORT, message)?.write(datagram)?;
        let tunnel = datagram.get_mut(udp::LENGTH..)?;
        gtpu::write_g_pdu(tunnel, user.teid, container, length)?;
        tunnel.get_mut(gtpu::encapsulated_length(container)..)
    }

    /// Writes what stands before a user's packet on its way down; returns the rest of `frame`.
    #[inline]
    pub(crate) fn downlink<'a>(&self, frame: &'a mut [u8]) -> Option<&'a mut [u8]> {
        ethernet::Header::new(self.n6.0, self.router.0, ethernet::IPV4).write(frame)?;
        frame.get_mut(ethernet::LENGTH..)
    }
}

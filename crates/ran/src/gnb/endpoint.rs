//! The UDP socket GTP-U is spoken on.

use crate::local::explain_bind;
use anyhow::Result;
use nix::sys::socket::{setsockopt, sockopt};
use packet::gtpu;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

/// Bursts up to here wait in the kernel; about 3,000 full packets.
const SOCKET_BUFFER_BYTES: usize = 8 << 20;

/// A socket bound to the GTP-U port of one address.
#[derive(Debug)]
pub struct Endpoint {
    pub(super) socket: UdpSocket,
    pub(super) address: Ipv4Addr,
    /// When its tunnels began, in seconds since 1900: peers that hear of another know them gone (TS 29.281 8.8).
    pub(super) recovery_time_stamp: u32,
}

impl Endpoint {
    /// Binds it; `recovery_time_stamp` is when it began, in seconds since 1900.
    ///
    /// # Errors
    /// One sentence with address and remedy.
    pub fn bind(address: Ipv4Addr, recovery_time_stamp: u32) -> Result<Self> {
        let local = SocketAddrV4::new(address, gtpu::PORT);
        let socket = UdpSocket::bind(local).map_err(|error| explain_bind(local, "gnb.address", &error))?;
        // The first needs a privilege the TUN devices need as well; the second is cut to the system's limit.
        let _ = setsockopt(&socket, sockopt::RcvBufForce, &SOCKET_BUFFER_BYTES)
            .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &SOCKET_BUFFER_BYTES));
        Ok(Self { socket, address, recovery_time_stamp })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_in_use_and_one_that_is_not_ours_are_told_with_a_remedy() {
        let address = Ipv4Addr::new(127, 81, 17, 3);
        let _first = Endpoint::bind(address, 0).unwrap();
        let error = Endpoint::bind(address, 0).unwrap_err().to_string();
        assert!(error.starts_with("UDP 127.81.17.3:2152 is in use: stop the program"), "{error}");
        let error = Endpoint::bind(Ipv4Addr::new(192, 0, 2, 1), 0).unwrap_err().to_string();
        assert!(error.starts_with("192.0.2.1 is not an address of this host: add it"), "{error}");
        assert!(error.ends_with("or change gnb.address"), "{error}");
    }
}

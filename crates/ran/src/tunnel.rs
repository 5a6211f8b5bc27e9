//! One end of a GTP-U tunnel.

use rules::Teid;
use std::fmt;
use std::net::Ipv4Addr;

/// Where packets of a tunnel are sent: the receiver's TEID and address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tunnel {
    /// Never 0 (TS 29.281 5.1).
    pub teid: Teid,
    /// The receiver.
    pub address: Ipv4Addr,
}

impl fmt::Display for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.teid, self.address)
    }
}

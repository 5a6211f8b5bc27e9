//! The radio side of one PDU session.

use super::counters::{UeCounters, UeCounts};
use crate::tunnel::Tunnel;
use rules::{Qfi, Teid};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};

/// TEIDs count up from here, so that a bearer is found without a search.
const FIRST_TEID: u32 = 1;

/// One UE's QoS flow, between its device and its tunnel.
#[derive(Debug)]
pub struct Bearer {
    address: Ipv4Addr,
    qfi: Qfi,
    /// It carries Ethernet frames.
    of_frames: bool,
    /// Address and TEID in one word, so that a packet never meets half of a change. 0 is no tunnel.
    uplink: AtomicU64,
    pub(super) counters: UeCounters,
}

impl Bearer {
    /// A bearer without a tunnel as yet.
    pub fn new(address: Ipv4Addr, qfi: Qfi) -> Self {
        Self { address, qfi, of_frames: false, uplink: AtomicU64::new(0), counters: UeCounters::default() }
    }

    /// The same, of Ethernet frames or not.
    pub fn of_frames(self, of_frames: bool) -> Self {
        Self { of_frames, ..self }
    }

    /// Whether it carries Ethernet frames, and not IP packets.
    pub fn carries_frames(&self) -> bool {
        self.of_frames
    }

    /// The UE's address.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The QoS flow of its packets.
    pub fn qfi(&self) -> Qfi {
        self.qfi
    }

    /// Where its packets go.
    pub fn uplink(&self) -> Option<Tunnel> {
        let word = self.uplink.load(Ordering::Relaxed);
        let [a, b, c, d, teid @ ..] = word.to_be_bytes();
        let teid = Teid(u32::from_be_bytes(teid));
        (word != 0).then_some(Tunnel { teid, address: Ipv4Addr::from([a, b, c, d]) })
    }

    pub(super) fn set_uplink(&self, tunnel: Option<Tunnel>) {
        let word = tunnel.map_or(0, |t| u64::from(t.address.to_bits()) << 32 | u64::from(t.teid.0));
        self.uplink.store(word, Ordering::Relaxed);
    }

    /// What was counted.
    pub fn counts(&self) -> UeCounts {
        self.counters.read()
    }
}

pub(super) fn teid_of(index: usize) -> Teid {
    Teid(u32::try_from(index).unwrap_or(u32::MAX).saturating_add(FIRST_TEID))
}

pub(super) fn index_of(teid: u32) -> Option<usize> {
    usize::try_from(teid.checked_sub(FIRST_TEID)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_is_read_as_it_was_set() {
        let bearer = Bearer::new(Ipv4Addr::new(10, 60, 0, 1), Qfi::new(9).unwrap());
        assert_eq!(bearer.uplink(), None);
        let tunnel = Tunnel { teid: Teid(0x8000_0001), address: Ipv4Addr::new(10, 30, 0, 2) };
        bearer.set_uplink(Some(tunnel));
        assert_eq!(bearer.uplink(), Some(tunnel));
        bearer.set_uplink(None);
        assert_eq!(bearer.uplink(), None);
    }

    #[test]
    fn teid_0_is_no_bearer() {
        assert_eq!(index_of(0), None);
        assert_eq!(index_of(teid_of(7).0), Some(7));
    }
}

//! Tells whoever has our addresses with another Ethernet address, as of a card or a node that this one takes the place of, which is
//! ours now (RFC 5227 2.3, RFC 4861 7.2.6): else it sends there until it asks anew.

use super::Worker;
use crate::config::PortConfig;
use crate::counters::DropReason;
use crate::nodes;
use crate::port::Port;
use crate::receipt::Receipt;
use packet::Buffer;
use std::net::IpAddr;

/// How often it is said: ANNOUNCE_NUM, ...
const TIMES: u8 = 2;
/// ... and ANNOUNCE_INTERVAL (RFC 5227 1.1).
const INTERVAL_NS: u64 = 2_000_000_000;

/// What there is still to say.
#[derive(Debug, Default)]
pub(super) struct Announcing {
    left: u8,
    next_ns: u64,
}

impl<P: Port> Worker<P> {
    /// Has it tell the stations on the wires our Ethernet addresses, unasked. Of several workers one is to.
    pub fn announce(&mut self) {
        self.announcing.left = TIMES;
    }

    pub(super) fn announce_if_due(&mut self) {
        let Announcing { left, next_ns } = self.announcing;
        if left == 0 || self.state.now_ns < next_ns {
            return;
        }
        self.announcing = Announcing { left: left - 1, next_ns: self.state.now_ns + INTERVAL_NS };
        for lane in 0..self.lanes.len() {
            let port = self.state.ports.get(lane as u8);
            for address in own(port).into_iter().flatten() {
                self.tell_address(lane, address);
            }
        }
    }

    /// Where there is no memory for it, it is not told.
    fn tell_address(&mut self, lane: usize, address: IpAddr) {
        let port = self.state.ports.get(lane as u8);
        let Some(mut buffer) = self.lanes.get_mut(lane).and_then(|lane| lane.port.allocate()) else { return };
        self.counters.created += 1;
        match (write(&mut buffer, port, address), self.lanes.get_mut(lane)) {
            (Some(()), Some(lane)) => lane.push(buffer, Receipt::NONE),
            _ => self.discard(buffer, DropReason::NoHeadroom),
        }
    }
}

/// Our addresses at a port.
fn own(port: &PortConfig) -> [Option<IpAddr>; 2] {
    let ipv4 = Some(port.address.addr()).filter(|address| !port.ethernet && !address.is_unspecified());
    [ipv4.map(IpAddr::from), port.address6.map(|net| net.addr().into())]
}

/// An announcement of ARP is a request for what the sender says it has.
fn write<B: Buffer>(buffer: &mut B, port: &PortConfig, address: IpAddr) -> Option<()> {
    match address {
        IpAddr::V4(address) => nodes::write_arp_request(buffer, port, address),
        IpAddr::V6(address) => nodes::write_advertisement(buffer, port, address),
    }
}

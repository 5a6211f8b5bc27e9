//! What the data path must make of a packet: the slow reference of the path says it.

use crate::sample::Expectation;
use crate::setup::{self, ENDPOINTS, N3, N6, number_of};
use reference::{Neighbour, PortSetup, Reference, Route, Setup};
use rules::Seid;
use std::net::{IpAddr, Ipv4Addr};

/// Octets in front of the user's address in a frame from the data network: Ethernet, and IPv4 up to the destination.
const DOWN: usize = 14 + 16;
/// And in one from the radio: Ethernet, IPv4, UDP, GTP-U with a PDU session container, and IPv4 up to the source.
const UP: usize = 14 + setup::TUNNEL_HEADERS + 12;

/// What must come out of a worker whose sessions have so many PDRs, configured by [`crate::setup`]: the one place that
/// chooses the reference.
///
/// # Errors
/// A configuration that makes no sense.
pub(crate) fn reference(pdrs: u32) -> anyhow::Result<Box<dyn Expectation>> {
    Ok(Box::new(Slow { reference: Reference::new(environment())?, pdrs }))
}

/// The reference looks for sessions one by one, so it is told only of the one a packet belongs to.
struct Slow {
    reference: Reference,
    pdrs: u32,
}

impl Expectation for Slow {
    fn expect(&mut self, port: usize, frame: &[u8]) -> Vec<(usize, Vec<u8>)> {
        let at = if port == N3 { UP } else { DOWN };
        let Some(address) = frame.get(at..).and_then(|octets| octets.first_chunk()) else {
            return Vec::new();
        };
        let number = number_of(Ipv4Addr::from_octets(*address));
        let session = Seid(u64::from(number) + 1);
        self.reference.put(session, setup::rules(number, self.pdrs));
        let outcome = self.reference.process(port, frame, crate::product::NOW_NS);
        self.reference.remove(session);
        outcome.sent
    }
}

fn environment() -> Setup {
    let config = setup::ports();
    let port = |port: &dataplane::PortConfig| PortSetup {
        interface: port.interface,
        instance: port.instance,
        mac: port.mac.0,
        ipv4: port.address,
        ipv6: port.address6,
        mtu: port.mtu,
        vlan: port.vlan,
        mss_clamp: port.mss_clamp,
    };
    let neighbour = |port, (mac, address): (packet::ethernet::MacAddress, Ipv4Addr)| Neighbour {
        port,
        address: address.into(),
        mac: mac.0,
    };
    let routes = vec![Route {
        prefix: ipnet::Ipv4Net::default().into(),
        via: IpAddr::V4(ENDPOINTS.router.1),
        instance: rules::Instance::DEFAULT,
    }];
    let neighbours = vec![neighbour(N3, ENDPOINTS.gnb), neighbour(N6, ENDPOINTS.router)];
    Setup { routes, neighbours, ..Setup::new(config.iter().map(port).collect()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use traffic::{PROFILES, Packets, Profile};

    fn frame(uplink: f64) -> Vec<u8> {
        let mut packets = Packets::new(Profile { uplink, ..PROFILES[0] }, ENDPOINTS, 1);
        let mut frame = vec![0; 2_000];
        let (length, _) = packets.write(setup::user(5), 3, &mut frame).unwrap();
        frame.truncate(length);
        frame
    }

    #[test]
    fn up_is_what_was_in_the_tunnel() {
        let frame = frame(1.0);
        let out = reference(2).unwrap().expect(N3, &frame).remove(0);
        assert_eq!((out.0, out.1.len()), (N6, frame.len() - setup::TUNNEL_HEADERS));
        assert_eq!(out.1[..6], ENDPOINTS.router.0.0);
        assert_eq!(out.1[22] + 1, frame[58 + 8], "a hop less");
    }

    #[test]
    fn down_is_in_the_users_tunnel() {
        let frame = frame(0.0);
        let out = reference(2).unwrap().expect(N6, &frame).remove(0);
        assert_eq!((out.0, out.1.len()), (N3, frame.len() + setup::TUNNEL_HEADERS));
        assert_eq!(out.1[46..50], 6u32.to_be_bytes(), "user 5 has tunnel 6");
        assert_eq!(out.1[58 + 20..], frame[14 + 20..], "nothing behind the header changes");
    }
}

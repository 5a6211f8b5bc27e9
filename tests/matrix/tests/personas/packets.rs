//! The packets of a bench's user: what they are, and what became of them.

use crate::bench::{Bench, SERVER, SERVER_PORT};
use matrix::frames::{
    Tunnelled, a_hop_on, datagram, datagram6, from_network, g_pdu, g_pdu_to, is_whole6, packet_of,
    translated_in, translated_out, tunnelled,
};
use ran::Tunnel;
use ran::smf::{Endpoint, Input};
use std::net::{Ipv4Addr, Ipv6Addr};

const SERVER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x113, 0, 0, 0, 0, 0x80);
const UE_PORT: u16 = 40_000;

impl Bench<'_> {
    /// A packet of the UE to a server's port, each another.
    pub(crate) fn packet_up(&mut self, (server, port): (Ipv4Addr, u16)) -> Vec<u8> {
        self.number = self.number.wrapping_add(1);
        datagram((self.ue(), UE_PORT), (server, port), &[self.number; 40])
    }

    pub(crate) fn packet_down(&mut self, (server, port): (Ipv4Addr, u16)) -> Vec<u8> {
        self.number = self.number.wrapping_add(1);
        datagram((server, port), (self.ue(), UE_PORT), &[self.number; 60])
    }

    /// A user's packet from a radio: what leaves towards the network, or into the next gateway's tunnel.
    pub(crate) fn radio_sends(
        &mut self,
        at: Ipv4Addr,
        tunnel: (u32, Option<u8>),
        packet: &[u8],
    ) -> Vec<Vec<u8>> {
        let frame = g_pdu_to((self.near, self.near_address()), at, tunnel, packet);
        let frame = match self.translation {
            Some(pair) => translated_in(&frame, pair).unwrap(),
            None => frame,
        };
        self.plane.receive(self.near, &frame);
        self.plane.settle();
        self.feed(Input::Tick);
        let left = self.plane.sent(self.far);
        if !self.persona.is_between {
            return left.iter().map(|frame| packet_of(frame)).collect();
        }
        let left: Vec<_> = left.iter().map(|frame| tunnelled(frame)).collect();
        let ways = left.iter().map(|sent| (sent.from, sent.to, sent.teid));
        self.ways = ways.collect();
        left.into_iter().map(|sent| sent.inner.unwrap()).collect()
    }

    /// Where radios send to: what the control plane was told, if it was.
    fn near_address(&self) -> Ipv4Addr {
        let known = match self.translation {
            Some((outside, _)) => outside,
            None => matrix::address_of(self.near),
        };
        self.smf.endpoint(0, Endpoint::Uplink).map_or(known, |told| told.address)
    }

    /// The last packets went into this tunnel of the next gateway's, where there is one.
    pub(crate) fn went_to(&self, beyond: Tunnel) {
        let way = (matrix::address_of(self.far), beyond.address, beyond.teid.0);
        assert!(!self.persona.is_between || self.ways == [way], "{:x?}", self.ways);
    }

    /// Between two networks we are a router, from tunnel to tunnel we are not.
    fn as_it_leaves(&self, packet: &[u8]) -> Vec<u8> {
        if self.persona.is_between { packet.to_vec() } else { a_hop_on(packet) }
    }

    /// A packet for the user arrives, from the network or from the next gateway: what leaves towards radios.
    pub(crate) fn network_sends(&mut self, packet: &[u8]) -> Vec<Tunnelled> {
        let core = self.smf.endpoint(0, Endpoint::Core).map(|endpoint| endpoint.teid.0);
        let frame = match core.or(self.persona.core_teid) {
            Some(teid) => g_pdu(self.far, self.session.beyond.unwrap().address, (teid, None), packet),
            None => from_network(self.far, packet),
        };
        self.plane.receive(self.far, &frame);
        self.plane.settle();
        self.feed(Input::Tick);
        self.radios()
    }

    /// What left towards radios since this was last asked.
    pub(crate) fn radios(&mut self) -> Vec<Tunnelled> {
        let out = |frame: Vec<u8>| match self.translation {
            Some(pair) => translated_out(&frame, pair).unwrap(),
            None => frame,
        };
        self.plane.sent(self.near).into_iter().map(|frame| tunnelled(&out(frame))).collect()
    }

    /// Both ways pass, with the radio at that tunnel.
    pub(crate) fn both_ways_pass(&mut self, radio: Tunnel) {
        self.uplink_passes(radio.address);
        self.downlink_passes(radio);
        assert!(self.plane.worker.books().balanced(), "{:?}", self.plane.worker.books());
    }

    /// The user's IPv6 packets pass both ways, too.
    pub(crate) fn both_ways_pass6(&mut self, radio: Tunnel) {
        let packet = self.packet6(true);
        let left = self.radio_sends(radio.address, (self.uplink(), self.persona.qfi), &packet);
        assert_eq!(left, [self.as_it_leaves(&packet)]);
        self.went_to(self.session.beyond.unwrap());
        let packet = self.packet6(false);
        let sent = self.network_sends(&packet);
        self.is_for(&sent, radio, &packet);
        assert_eq!(sent[0].inner, Some(self.as_it_leaves(&packet)));
    }

    /// From the user to the server, or back.
    pub(crate) fn packet6(&mut self, is_up: bool) -> Vec<u8> {
        self.number = self.number.wrapping_add(1);
        let (user, server) = ((self.session.ue6.unwrap(), UE_PORT), (SERVER6, SERVER_PORT));
        let (from, to) = if is_up { (user, server) } else { (server, user) };
        datagram6(from, to, &[self.number; 50])
    }

    pub(crate) fn uplink_passes(&mut self, at: Ipv4Addr) {
        let packet = self.packet_up((SERVER, SERVER_PORT));
        let left = self.radio_sends(at, (self.uplink(), self.persona.qfi), &packet);
        assert_eq!(left, [self.as_it_leaves(&packet)]);
        self.went_to(self.session.beyond.unwrap());
        self.passed.0 += packet.len() as u64;
    }

    pub(crate) fn downlink_passes(&mut self, radio: Tunnel) {
        let packet = self.packet_down((SERVER, SERVER_PORT));
        let sent = self.network_sends(&packet);
        self.is_for(&sent, radio, &packet);
        assert_eq!(sent[0].inner, Some(self.as_it_leaves(&packet)));
        self.passed.1 += packet.len() as u64;
    }

    /// One packet came out, into this tunnel, in the default flow.
    pub(crate) fn is_for(&self, sent: &[Tunnelled], radio: Tunnel, packet: &[u8]) {
        let [one] = sent else { panic!("{} packets: {sent:x?}", sent.len()) };
        let ours = self.translation.map_or(matrix::address_of(self.near), |(outside, _)| outside);
        assert_eq!((one.from, one.to), (ours, radio.address));
        assert_eq!(one.teid, radio.teid.0);
        assert_eq!(one.flow, self.flow_of(self.persona.qfi));
        assert_same(&[one.inner.clone().unwrap()], packet);
    }

    /// All that was told of usage is all that passed.
    pub(crate) fn is_billed(&self) {
        let (up, down) = self.persona.measures;
        let usage = self.smf.usage(0);
        let expected = (if up { self.passed.0 } else { 0 }, if down { self.passed.1 } else { 0 });
        assert_eq!((usage.uplink_bytes, usage.downlink_bytes), expected);
    }
}

/// One packet, as it came or as a router leaves it.
pub(crate) fn assert_same(left: &[Vec<u8>], packet: &[u8]) {
    assert!(left == [packet] || left == [a_hop_on(packet)], "{left:02x?} of {packet:02x?}");
    assert!(packet[0] >> 4 == 4 || is_whole6(&left[0]));
}

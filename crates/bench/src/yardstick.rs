//! What nothing can be faster than: loops with the memory traffic of a user plane and none of its logic, tuned as well
//! as we know how. A slow yardstick would flatter.

use crate::lines::{Line, Lines};
use crate::plan::Plan;
use crate::replay::Replay;
use crate::setup::{ENDPOINTS, N3, N6, QFI, TUNNEL_HEADERS, number_of};
use anyhow::Context;
use dataplane::Port;
use dpdk::{Mbuf, prefetch_read};
use packet::{Buffer, ethernet, gtpu, ipv4, udp};
use std::net::Ipv4Addr;
use zerocopy::IntoBytes;

/// Packets of a vector: of 16 to 256, with 4 to 12 asked for ahead, as fast as any.
const VECTOR: usize = 128;
/// How far ahead a packet's lines, and before them its buffer's description, are asked for.
const AHEAD: usize = 8;
const FURTHER_AHEAD: usize = 16;
/// Octets of an Ethernet header and of a tunnel's headers behind it: what goes on or comes off.
const HEADERS: usize = ethernet::LENGTH + TUNNEL_HEADERS;
/// Octets before GTP-U's header.
const GTPU: usize = ethernet::LENGTH + ipv4::LENGTH + udp::LENGTH;

/// Where a packet's memory is.
#[derive(Clone, Copy)]
struct Place {
    session: usize,
    flow: usize,
    up: bool,
}

/// The loops, and the memory they touch.
pub(crate) struct Yardstick {
    sessions: Lines,
    flows: Lines,
    vector: Vec<Mbuf>,
    places: Vec<Place>,
    ready: Ready,
}

/// Headers made beforehand: what a packet gets in front on the way down, and the Ethernet header of the way up.
struct Ready {
    tunnel: [u8; HEADERS],
    router: [u8; ethernet::LENGTH],
}

/// A line for each session and each flow.
struct Tables<'a> {
    sessions: &'a mut [Line],
    flows: &'a mut [Line],
}

impl Yardstick {
    /// With a line for each session and flow of the plan.
    ///
    /// # Errors
    /// There is no memory for them.
    pub(crate) fn new(plan: &Plan) -> anyhow::Result<Self> {
        let ready = ready().context("headers cannot be made")?;
        Ok(Self {
            sessions: Lines::new(plan.profile.subscribers)?,
            flows: Lines::new(plan.profile.flows)?,
            vector: Vec::with_capacity(VECTOR),
            places: Vec::with_capacity(VECTOR),
            ready,
        })
    }

    /// Receive, touch the headers, swap the Ethernet addresses, send: the port and the packets alone.
    pub(crate) fn floor(&mut self, ports: &mut [Replay; 2]) {
        let vector = &mut self.vector;
        for port in [N3, N6] {
            while ports[port].receive(vector, VECTOR) > 0 {
                ask_first(vector, port == N3);
                for at in 0..vector.len() {
                    ask_ahead(vector, at, port == N3);
                    swap_addresses(&mut vector[at]);
                }
                ports[1 - port].send(vector);
            }
        }
    }

    /// The floor, and one line of a session and one of a flow found, read and written for each packet, whose headers
    /// are rewritten.
    pub(crate) fn bare(&mut self, ports: &mut [Replay; 2]) {
        let mut vector = std::mem::take(&mut self.vector);
        for port in [N3, N6] {
            while ports[port].receive(&mut vector, VECTOR) > 0 {
                self.bare_vector(&mut vector, port == N3);
                ports[1 - port].send(&mut vector);
            }
        }
        self.vector = vector;
    }

    /// What the bare loop does to packets that come from users, or go to them.
    #[inline]
    pub(crate) fn bare_vector(&mut self, vector: &mut [Mbuf], up: bool) {
        let Self { sessions, flows, places, ready, .. } = self;
        let mut tables = Tables { sessions: sessions.get(), flows: flows.get() };
        ask_first(vector, up);
        places.clear();
        for at in 0..vector.len() {
            ask_ahead(vector, at, up);
            places.push(tables.find(&mut vector[at], up));
        }
        for (mbuf, place) in vector.iter_mut().zip(places.iter()) {
            tables.count(*place, mbuf.data().len() as u64);
            rewrite(mbuf.data_mut(), *place, ready);
        }
    }
}

impl Tables<'_> {
    /// Reads the headers, asks for the lines, and makes room or takes the tunnel's headers off.
    #[inline]
    fn find(&mut self, mbuf: &mut Mbuf, up: bool) -> Place {
        let place = place(mbuf.data(), up, (self.sessions.len(), self.flows.len()));
        prefetch_read(self.sessions[place.session].as_bytes());
        prefetch_read(self.flows[place.flow].as_bytes());
        let moved = match up {
            true => mbuf.trim_front(TUNNEL_HEADERS),
            false => mbuf.prepend(TUNNEL_HEADERS).map(|_| ()),
        };
        debug_assert!(moved.is_some(), "packets have the room");
        mbuf.prefetch_data();
        place
    }

    #[inline]
    fn count(&mut self, place: Place, bytes: u64) {
        for line in [&mut self.sessions[place.session], &mut self.flows[place.flow]] {
            line[0] += 1;
            line[1] += bytes;
        }
    }
}

/// For the first of a vector, nobody asked ahead.
#[inline]
fn ask_first(vector: &[Mbuf], up: bool) {
    vector.iter().take(FURTHER_AHEAD).for_each(Mbuf::prefetch);
    vector.iter().take(AHEAD).for_each(|mbuf| ask(mbuf, up));
}

/// Headers reach into a second line where a tunnel's stand before the user's.
#[inline]
fn ask(mbuf: &Mbuf, up: bool) {
    if up {
        mbuf.prefetch_data();
    } else {
        mbuf.prefetch_front();
    }
}

#[inline]
fn ask_ahead(vector: &[Mbuf], at: usize, up: bool) {
    if let Some(later) = vector.get(at + FURTHER_AHEAD) {
        later.prefetch();
    }
    if let Some(later) = vector.get(at + AHEAD) {
        ask(later, up);
    }
}

/// Which session and which flow, from the tunnel or the user's address, and from the user's addresses and ports.
#[inline]
fn place(frame: &[u8], up: bool, (sessions, flows): (usize, usize)) -> Place {
    let word =
        |at: usize| frame.get(at..at + 4).and_then(|w| w.first_chunk()).map_or(0, |w| u32::from_be_bytes(*w));
    let user = if up { HEADERS } else { ethernet::LENGTH };
    let (source, destination, ports) = (word(user + 12), word(user + 16), word(user + 20));
    let session = match up {
        true => word(GTPU + 4).wrapping_sub(1) as usize,
        false => number_of(Ipv4Addr::from(destination)) as usize,
    };
    // The same whichever way it goes.
    let ports = ports ^ ports.rotate_left(16);
    let key = u64::from(source ^ destination) << 32 | u64::from(ports ^ session as u32);
    let flow = (u128::from(hash(key)) * flows as u128) >> 64;
    Place { session: if session < sessions { session } else { session % sessions }, flow: flow as usize, up }
}

#[inline]
fn hash(key: u64) -> u64 {
    let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

#[inline]
fn swap_addresses(mbuf: &mut Mbuf) {
    if let Some(addresses) = mbuf.data_mut().first_chunk_mut::<12>() {
        let (destination, source) = addresses.split_at_mut(6);
        destination.swap_with_slice(source);
    }
}

/// The headers made beforehand, with this packet's lengths and tunnel; not the checksum, which is logic.
#[inline]
fn rewrite(frame: &mut [u8], place: Place, ready: &Ready) {
    if place.up {
        frame.first_chunk_mut().into_iter().for_each(|header| *header = ready.router);
        return;
    }
    let bytes = frame.len() as u16;
    let Some(header) = frame.first_chunk_mut::<HEADERS>() else { return };
    *header = ready.tunnel;
    let mut length = |at: usize, without: usize| {
        header[at..at + 2].copy_from_slice(&bytes.wrapping_sub(without as u16).to_be_bytes());
    };
    length(ethernet::LENGTH + 2, ethernet::LENGTH);
    length(ethernet::LENGTH + ipv4::LENGTH + 4, ethernet::LENGTH + ipv4::LENGTH);
    length(GTPU + 2, GTPU + 8);
    header[GTPU + 4..GTPU + 8].copy_from_slice(&(place.session as u32 + 1).to_be_bytes());
}

fn ready() -> Option<Ready> {
    let mut ready = Ready { tunnel: [0; HEADERS], router: [0; ethernet::LENGTH] };
    ethernet::Header::new(ENDPOINTS.router.0, ENDPOINTS.n6.0, ethernet::IPV4).write(&mut ready.router)?;
    ethernet::Header::new(ENDPOINTS.gnb.0, ENDPOINTS.n3.0, ethernet::IPV4).write(&mut ready.tunnel)?;
    let packet = ready.tunnel.get_mut(ethernet::LENGTH..)?;
    ipv4::Header::new(ENDPOINTS.n3.1, ENDPOINTS.gnb.1, ipv4::UDP, 0)?.write(packet)?;
    let datagram = packet.get_mut(ipv4::LENGTH..)?;
    udp::Header::new(gtpu::PORT, gtpu::PORT, 0)?.write(datagram)?;
    gtpu::write_g_pdu(datagram.get_mut(udp::LENGTH..)?, 0, Some(gtpu::PduSession::downlink(QFI)), 0)?;
    Some(ready)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::user;
    use std::collections::HashSet;
    use traffic::{PROFILES, Packets, Profile};

    fn places(uplink: f64) -> Vec<(usize, usize)> {
        let mut packets = Packets::new(Profile { uplink, ..PROFILES[0] }, ENDPOINTS, 1);
        let mut frame = vec![0; 2_000];
        let mut one = |number: u32| {
            let (length, up) = packets.write(user(number % 100), number, &mut frame).unwrap();
            let place = place(&frame[..length], up, (100, 1 << 20));
            (place.session, place.flow)
        };
        (0..1_000).map(&mut one).collect()
    }

    #[test]
    fn both_ways_of_a_flow_meet_and_flows_do_not() {
        let up = places(1.0);
        assert_eq!(up, places(0.0));
        assert!(up.iter().enumerate().all(|(number, place)| place.0 == number % 100));
        let flows: HashSet<usize> = up.iter().map(|place| place.1).collect();
        assert!(flows.len() > 990, "{} of 1000 flows have a line of their own", flows.len());
    }
}

//! Frames of a profile's users, as a gNB and a router would send them.

use crate::frame::{Endpoints, User};
use crate::profile::{Length, Profile};
use packet::{ethernet, ipv4, udp};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use std::net::Ipv4Addr;

/// An endless stream of frames, the same for the same seed.
pub struct Packets {
    profile: Profile,
    endpoints: Endpoints,
    random: Pcg64,
}

const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 0);

impl Packets {
    /// The stream of a seed.
    pub fn new(profile: Profile, endpoints: Endpoints, seed: u64) -> Self {
        Self { profile, endpoints, random: Pcg64::seed_from_u64(seed) }
    }

    /// Packets are as long from now on, and go up as often, as those of another profile.
    pub fn set_lengths(&mut self, profile: &Profile) {
        let Profile { uplink, uplink_lengths, downlink_lengths, .. } = *profile;
        self.profile = Profile { uplink, uplink_lengths, downlink_lengths, ..self.profile };
    }

    /// Any number below `limit`.
    pub fn any(&mut self, limit: u32) -> u32 {
        self.random.random_range(0..limit.max(1))
    }

    /// Writes the next frame of `user`'s flow number `flow` into `frame`; returns its length, and whether it goes up.
    /// Bytes of the payload are left as they are. `None` where `frame` is too short.
    pub fn write(&mut self, user: User, flow: u32, frame: &mut [u8]) -> Option<(usize, bool)> {
        let up = self.random.random_bool(self.profile.uplink);
        self.write_way(user, (flow, up), frame).map(|length| (length, up))
    }

    /// As [`Packets::write`], going `up` or down as asked; returns its length.
    pub fn write_way(&mut self, user: User, (flow, up): (u32, bool), frame: &mut [u8]) -> Option<usize> {
        if up { self.write_uplink(user, flow, frame) } else { self.write_downlink(user, flow, frame) }
    }

    fn write_uplink(&mut self, user: User, flow: u32, frame: &mut [u8]) -> Option<usize> {
        let length = self.length(self.profile.uplink_lengths);
        let room = frame.len();
        let packet = self.endpoints.uplink(user, length, frame)?;
        let headers = room - packet.len();
        write_user_packet(packet, (user.address, server(flow)), port(flow), length)?;
        Some(headers + length)
    }

    fn write_downlink(&mut self, user: User, flow: u32, frame: &mut [u8]) -> Option<usize> {
        let length = self.length(self.profile.downlink_lengths);
        let packet = self.endpoints.downlink(frame)?;
        let ports = port(flow);
        write_user_packet(packet, (server(flow), user.address), (ports.1, ports.0), length)?;
        Some(ethernet::LENGTH + length)
    }

    fn length(&mut self, mix: &[Length]) -> usize {
        let mut left = self.random.random::<f64>();
        for length in mix {
            left -= length.share;
            if left < 0.0 {
                return usize::from(length.bytes);
            }
        }
        mix.last().map_or(64, |length| usize::from(length.bytes))
    }
}

/// Flows differ in server and in ports.
fn server(flow: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(SERVER) | flow & 0xff)
}

fn port(flow: u32) -> (u16, u16) {
    (1_024 + (flow >> 8 & 0x7fff) as u16, if flow.is_multiple_of(2) { 443 } else { 80 })
}

fn write_user_packet(
    bytes: &mut [u8],
    (source, destination): (Ipv4Addr, Ipv4Addr),
    (from, to): (u16, u16),
    length: usize,
) -> Option<()> {
    let payload = length.checked_sub(ipv4::LENGTH + udp::LENGTH)?;
    ipv4::Header::new(source, destination, ipv4::UDP, udp::LENGTH + payload)?.write(bytes)?;
    udp::Header::new(from, to, payload)?.write(bytes.get_mut(ipv4::LENGTH..)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::profile;
    use packet::ethernet::MacAddress;
    use packet::gtpu;

    fn endpoints() -> Endpoints {
        let at = |last| (MacAddress([2, 0, 0, 0, 0, last]), Ipv4Addr::new(10, 30, 0, last));
        Endpoints { n3: at(2), n6: at(3), gnb: at(1), router: at(4) }
    }

    fn stream(seed: u64) -> Vec<Vec<u8>> {
        let user = User { address: Ipv4Addr::new(10, 60, 0, 1), teid: 7, qfi: 9 };
        let mut packets = Packets::new(*profile("zte").unwrap(), endpoints(), seed);
        let one = |flow| {
            let mut frame = vec![0; 2_000];
            let (length, _) = packets.write(user, flow, &mut frame).unwrap();
            frame.truncate(length);
            frame
        };
        (0..500).map(one).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_packets() {
        assert_eq!(stream(3), stream(3));
        assert_ne!(stream(3), stream(4));
    }

    #[test]
    fn lengths_become_another_profiles_and_flows_stay() {
        let user = User { address: Ipv4Addr::new(10, 60, 0, 1), teid: 7, qfi: 9 };
        let mut packets = Packets::new(*profile("zte").unwrap(), endpoints(), 1);
        let down = |packets: &mut Packets| {
            let mut frame = vec![0; 2_000];
            let length = packets.write_way(user, (5, false), &mut frame).unwrap();
            (length, frame[ethernet::LENGTH + 12..ethernet::LENGTH + 24].to_vec())
        };
        let (_, flow) = down(&mut packets);
        packets.set_lengths(profile("cht-512").unwrap());
        assert_eq!(down(&mut packets), (ethernet::LENGTH + 540, flow));
    }

    #[test]
    fn every_packet_is_sound_and_half_go_up() {
        let stream = stream(5);
        let tunnelled = stream.iter().filter(|frame| {
            let outer = ipv4::Packet::parse(&frame[ethernet::LENGTH..]).unwrap();
            assert_eq!(outer.total_length() + ethernet::LENGTH, frame.len());
            let datagram = &frame[ethernet::LENGTH + ipv4::LENGTH..];
            let tunnel = udp::Header::parse(datagram).unwrap().destination() == gtpu::PORT;
            if tunnel {
                let message = gtpu::Message::parse(&datagram[udp::LENGTH..]).unwrap();
                let inner = &datagram[udp::LENGTH + message.header_length..];
                assert_eq!(ipv4::Packet::parse(inner).unwrap().total_length(), inner.len());
            }
            tunnel
        });
        let up = tunnelled.count();
        assert!((150..350).contains(&up), "{up} of 500 go up");
    }
}

//! What the first fragments of users' packets say and the others do not.

use crate::Reference;
use crate::detection::Arrival;
use rules::{Direction, FTeid, Instance};
use std::net::IpAddr;

/// So long, in nanoseconds, a first fragment is remembered.
const PATIENCE_NS: u64 = 1_000_000_000;

/// What all fragments of a packet have in common (RFC 791 3.2, RFC 8200 4.5), and how they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    source: IpAddr,
    destination: IpAddr,
    /// Of IPv4.
    protocol: Option<u8>,
    identification: u32,
    tunnel: Option<FTeid>,
    instance: Instance,
    direction: Direction,
}

/// A first fragment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    name: Name,
    since_ns: u64,
    protocol: u8,
    ports: Option<(u16, u16)>,
    spi: Option<u32>,
}

impl Reference {
    /// Remembers what a first fragment says, and lets a later one say the same.
    pub(crate) fn follow_first_fragment(&mut self, arrival: &mut Arrival) {
        let packet = &mut arrival.packet;
        let Some((identification, is_later)) = packet.part else { return };
        let source = packet.header.source;
        let name = Name {
            source,
            destination: packet.header.destination,
            protocol: source.is_ipv4().then_some(packet.protocol),
            identification,
            tunnel: arrival.tunnel.map(|tunnel| tunnel.f_teid),
            instance: arrival.instance,
            direction: arrival.source.direction(),
        };
        let known = self.heads.iter().position(|head| head.name == name);
        if is_later {
            let lately = |head: &&Head| self.now_ns - head.since_ns <= PATIENCE_NS;
            if let Some(head) = known.and_then(|known| self.heads.get(known)).filter(lately) {
                (packet.protocol, packet.ports, packet.spi) = (head.protocol, head.ports, head.spi);
                packet.follows = true;
            }
        } else if packet.ports.is_none() || packet.spi.is_none() {
            let Arrival { packet, .. } = arrival;
            let (protocol, ports, spi) = (packet.protocol, packet.ports, packet.spi);
            let head = Head { name, since_ns: self.now_ns, protocol, ports, spi };
            self.heads.retain(|head| head.name != name);
            self.heads.push(head);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worlds::{Random, World};
    use rand::SeedableRng;

    #[test]
    fn worlds_have_fragments_that_follow_their_first_ones() {
        let (mut following, mut alone) = (0, 0);
        for seed in 0..80 {
            let world = World::random(seed);
            let mut reference = Reference::new(world.setup.clone()).unwrap();
            world.sessions.iter().for_each(|(seid, rules)| reference.put(*seid, rules.clone()));
            let (random, mut now_ns) = (&mut Random::seed_from_u64(seed), 1);
            for _ in 0..2_000 {
                let (port, frame) = world.packet(random);
                now_ns += World::gap_ns(random);
                reference.process(port, &frame, now_ns);
                match reference.seen.take().map(|(_, arrival)| arrival.packet) {
                    Some(packet) if packet.part.is_some_and(|part| part.1) => {
                        let follows = packet.ports.is_some() || packet.spi.is_some();
                        *(if follows { &mut following } else { &mut alone }) += 1;
                    }
                    _ => {}
                }
            }
        }
        assert!(following > 100 && alone > 100, "{following} {alone}");
    }
}

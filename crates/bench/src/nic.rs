//! A model of a network card: it spreads packets over queues by a hash of their headers, as cards do.

use std::net::Ipv4Addr;
use steer::KEY;

/// Entries of the table from hash to queue, as most cards have.
const TABLE: usize = 128;

/// Octets before the outer IPv4 addresses, ports, TEID and the users' addresses in a frame; no VLAN, no options.
const ADDRESSES: usize = 14 + 12;
const PORTS: usize = 14 + 20;
const TEID: usize = 14 + 20 + 8 + 4;

/// What the hash looks at. What a packet does not have is replaced by its outermost addresses and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    /// The outermost addresses and ports: plain RSS. All packets of one gNB then go to one queue.
    Outer,
    /// The TEID on the way up, the user's address on the way down.
    Teid,
    /// The user's address: source on the way up, destination on the way down (Intel's DDP profile for GTP).
    Inner,
    /// Nothing: there is one queue, whatever the number of workers.
    Nothing,
}

/// Where a frame has its DSCP, and in a tunnel the QFI of its container.
const TOS: usize = 14 + 1;
const QFI: usize = 14 + 20 + 8 + 8 + 4 + 2;

/// Packets that get queues of their own: of this QFI on the way up, of this DSCP on the way down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Urgent {
    pub(crate) qfi: u8,
    pub(crate) dscp: u8,
}

/// The card.
#[derive(Clone, Debug)]
pub(crate) struct Nic {
    hash: Hash,
    table: Vec<usize>,
    urgent: Option<Urgent>,
}

impl Nic {
    /// With so many queues, used alike.
    pub(crate) fn new(hash: Hash, queues: usize) -> Self {
        Self { hash, table: (0..TABLE).map(|entry| entry % queues.max(1)).collect(), urgent: None }
    }

    /// The queue a frame goes to; `tunnelled` frames carry GTP-U with a PDU session container.
    pub(crate) fn queue(&self, frame: &[u8], tunnelled: bool) -> usize {
        let field = |at: usize, octets: usize| frame.get(at..at + octets).unwrap_or_default();
        let hash = match (self.hash, tunnelled) {
            (Hash::Nothing, _) => return 0,
            (Hash::Inner, true) => steer::toeplitz(&KEY, field(crate::setup::TUNNEL_HEADERS + ADDRESSES, 4)),
            (Hash::Inner | Hash::Teid, false) => steer::toeplitz(&KEY, field(ADDRESSES + 4, 4)),
            (Hash::Teid, true) => steer::toeplitz(&KEY, field(TEID, 4)),
            _ => steer::toeplitz(&KEY, &[field(ADDRESSES, 8), field(PORTS, 4)].concat()),
        };
        self.entry(hash)
    }

    /// That sorts these packets out first, and hashes within each of the two groups of queues.
    pub(crate) fn sorting(self, urgent: Urgent) -> Self {
        Self { urgent: Some(urgent), ..self }
    }

    /// Whether a frame comes to the urgent queue of its worker.
    pub(crate) fn is_urgent(&self, frame: &[u8], tunnelled: bool) -> bool {
        self.urgent.is_some_and(|urgent| match tunnelled {
            true => frame.get(QFI).is_some_and(|octet| octet & 0x3f == urgent.qfi),
            false => frame.get(TOS).is_some_and(|octet| octet >> 2 == urgent.dscp),
        })
    }

    /// The queue of a user's packets, where the hash is over the user's address.
    pub(crate) fn queue_of_user(&self, address: Ipv4Addr) -> usize {
        self.entry(steer::toeplitz(&KEY, &address.octets()))
    }

    fn entry(&self, hash: u32) -> usize {
        self.table.get(hash as usize % TABLE).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::{ChosenTunnels, ENDPOINTS, user};
    use std::collections::HashSet;
    use traffic::{PROFILES, Packets, Profile};

    fn queues(hash: Hash, uplink: f64) -> Vec<usize> {
        let nic = Nic::new(hash, 4);
        let mut packets = Packets::new(Profile { uplink, ..PROFILES[0] }, ENDPOINTS, 1);
        let mut frame = vec![0; 2_000];
        let mut queue = |number| {
            let (length, up) = packets.write(user(number), number, &mut frame).unwrap();
            nic.queue(&frame[..length], up)
        };
        (0..64).map(&mut queue).collect()
    }

    #[test]
    fn the_users_address_brings_both_directions_to_one_queue() {
        let nic = Nic::new(Hash::Inner, 4);
        let own: Vec<usize> = (0..64).map(|number| nic.queue_of_user(user(number).address)).collect();
        assert_eq!(queues(Hash::Inner, 1.0), own);
        assert_eq!(queues(Hash::Inner, 0.0), own);
        assert_eq!(own.iter().collect::<HashSet<_>>().len(), 4, "all queues are used");
    }

    #[test]
    fn chosen_teids_bring_both_directions_to_one_queue() {
        for count in [2, 3, 4, 7] {
            let nic = Nic::new(Hash::Teid, count);
            let mut packets = Packets::new(PROFILES[0], ENDPOINTS, 1);
            let (mut frame, chosen) = (vec![0; 2_000], ChosenTunnels::new());
            for number in 0..256 {
                let mut queue = |up| {
                    let length = packets.write_way(user(number), (number, up), &mut frame).unwrap();
                    if up {
                        chosen.move_frame(&mut frame).unwrap();
                    }
                    nic.queue(&frame[..length], up)
                };
                assert_eq!([true, false].map(&mut queue), [nic.queue_of_user(user(number).address); 2]);
            }
        }
    }

    #[test]
    fn tunnels_of_one_gnb_differ_by_teid_only() {
        let distinct = |hash| queues(hash, 1.0).into_iter().collect::<HashSet<_>>().len();
        assert_eq!((distinct(Hash::Outer), distinct(Hash::Teid)), (1, 4));
    }
}

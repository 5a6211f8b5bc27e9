//! Recordings of real cores replayed whole: what control planes said and what came in tunnels reaches our user plane in the
//! recorded order, in the place of the recorded UPF, SGW-U or PGW-U. Whatever that one sent in tunnels, ours sends: the same
//! inner packets to the same tunnels, in the same QoS flows, by the time it was recorded, and nothing else. TEIDs that the
//! recorded one chose stand for ours. What it sent to the data network was not recorded: what comes in a tunnel and goes on in
//! none must leave ours by N6, and what goes out in a tunnel and came in none is given to ours there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]
#![allow(dead_code, missing_docs, unreachable_pub, reason = "modules that tests of other crates use, too")]

#[path = "../../../crates/wire/pfcp/tests/common/pcap.rs"]
mod pcap;
mod recorded;

use pfcp::{Body, FTeid, SessionEstablishmentRequest};
use recorded::stand::{Counts, Stand};
use recorded::{Said, gtpu, read, tunnelled, user_planes};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

/// The recorded user planes by file: the SGW-U (Sxa), and what is PGW-U and UPF (Sxb, N4).
const SGW_U: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 6);
const UPF: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 7);

/// Facts of the recordings.
fn facts() -> [(&'static str, Ipv4Addr, Counts); 8] {
    let none = Counts::default();
    let sgw =
        |answered, reported, crossed, tunnelled| Counts { answered, reported, crossed, tunnelled, ..none };
    let upf = |answered, each_way| Counts {
        answered,
        tunnelled: each_way,
        from_network: each_way,
        to_network: each_way,
        ..none
    };
    [
        ("o5-attach.pcap", SGW_U, sgw(175, 4, 0, 18)),
        // Two packets came from the control plane: router advertisements.
        ("o5-attach.pcap", UPF, Counts { tunnelled: 9, advertised: 1, discarded: 1, ..upf(71, 7) }),
        ("o5-volte.pcap", SGW_U, sgw(238, 7, 1, 86)),
        ("o5-volte.pcap", UPF, upf(172, 43)),
        ("packetrusher-open5gs.pcap", UPF, Counts { tunnelled: 3, end_markers: 3, ..upf(9, 0) }),
        ("srsran-open5gs-epc.pcap", SGW_U, sgw(7, 0, 0, 15)),
        ("srsran-open5gs-epc.pcap", UPF, Counts { to_control_plane: 1, ..upf(3, 7) }),
        ("ueransim-open5gs.pcap", UPF, upf(4, 10)),
    ]
}

/// What ours did in the place of each user plane of a recording.
fn replay(file: &Path) -> BTreeMap<Ipv4Addr, Counts> {
    let said = read(file);
    let replayed = user_planes(&said).into_iter().map(|(n4, address)| {
        let mut stand = Stand::new((n4, address), tunnelled(&said, address));
        said.iter().for_each(|said| stand.hear(said));
        stand.end();
        println!("{}: {n4}: {:?}", file.display(), stand.counts);
        (n4, stand.counts)
    });
    replayed.collect()
}

#[test]
fn what_recorded_user_planes_sent_ours_sends() {
    for file in pcap::captures() {
        let name = file.file_name().unwrap().to_string_lossy();
        let facts = facts();
        let known = facts.iter().filter(|(of, ..)| *of == name).map(|(_, n4, counts)| (*n4, *counts));
        let (known, replayed): (BTreeMap<_, _>, _) = (known.collect(), replay(&file));
        // The facts of other conversations nobody has written down.
        assert!(known.is_empty() || known == replayed, "{name}");
    }
}

/// pfcpsim was recorded without any traffic, so its users get some here: each rule, when it is in force.
#[test]
fn rules_of_pfcpsim_meet_packets() {
    let Some(file) = pcap::captures().into_iter().find(|file| file.ends_with("pfcpsim-eupf.pcap")) else {
        return;
    };
    // It gives the endpoints itself, at its own address.
    let mut stand = Stand::new((UPF, Ipv4Addr::new(10, 20, 0, 1)), BTreeSet::new());
    let (mut users, mut ended) = (vec![], 0);
    for said in read(&file) {
        stand.hear(&said);
        let Said::Pfcp(_, UPF, message) = said else { continue };
        match message.body {
            Body::SessionEstablishmentRequest(request) => {
                let user = User::of(&request);
                user.sends(&mut stand);
                // Until the radio is known.
                assert_eq!(user.is_sent(&mut stand), 0);
                users.push(user);
            }
            // From then on packets are kept, and the control plane hears of the first.
            Body::SessionModificationRequest(_) => {
                assert_eq!(users.iter().map(|user| user.is_sent(&mut stand)).sum::<usize>(), 1);
            }
            Body::SessionDeletionRequest(_) => {
                users[ended].is_gone(&mut stand);
                ended += 1;
                users[ended..].iter().for_each(|user| user.sends(&mut stand));
            }
            _ => {}
        }
    }
    assert_eq!((users.len(), ended), (3, 3));
    stand.end();
}

/// A user, and our end of the tunnel.
struct User {
    teid: u32,
    address: Ipv4Addr,
}

const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 80), 7);

impl User {
    fn of(request: &SessionEstablishmentRequest) -> Self {
        let teids = request.create_pdrs.iter().filter_map(|pdr| match pdr.pdi.f_teid {
            Some(FTeid::Explicit { teid, .. }) => Some(teid),
            _ => None,
        });
        let addresses = request.create_pdrs.iter().flat_map(|pdr| &pdr.pdi.ue_ip_addresses);
        let address = addresses.filter_map(|address| address.ipv4).next().unwrap();
        Self { teid: teids.into_iter().next().unwrap(), address }
    }

    fn packet(&self) -> Vec<u8> {
        pcap::packet(SocketAddrV4::new(self.address, 7_000), SERVER, b"from a user")
    }

    /// What it sends goes to the data network.
    fn sends(&self, stand: &mut Stand) {
        let passed = vec![gtpu::with_hops(&self.packet(), -1)];
        assert_eq!(stand.from_user(self.teid, &self.packet()), (passed, vec![]));
    }

    /// Nothing reaches it; how often its control plane is told.
    fn is_sent(&self, stand: &mut Stand) -> usize {
        let packet = pcap::packet(SERVER, SocketAddrV4::new(self.address, 7_000), b"for a user");
        let (in_tunnels, told) = stand.from_network(&packet);
        assert_eq!(in_tunnels, []);
        told.len()
    }

    /// The radio hears that the tunnel has no end.
    fn is_gone(&self, stand: &mut Stand) {
        let (to_network, in_tunnels) = stand.from_user(self.teid, &self.packet());
        assert_eq!((to_network.len(), in_tunnels.len()), (0, 1));
        assert_eq!(in_tunnels[0].kind, gtpu::ERROR_INDICATION);
        assert_eq!(self.is_sent(stand), 0);
    }
}

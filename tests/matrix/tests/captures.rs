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

use recorded::stand::{Counts, Stand};
use recorded::{read, tunnelled, user_planes};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
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

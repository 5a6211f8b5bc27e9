//! What stations hear of our addresses unasked (RFC 5227 2.3, RFC 4861 7.2.6).

use crate::fixture::{Bench, N3, N6};

/// Of an announcement, the octets that say it: of ARP a request for what the sender says it has, of ND an advertisement of ours to all.
fn is_announcement(frame: &[u8], (number, ipv4): (u8, [u8; 4])) -> bool {
    let ours = [2, 0, 0, 0, number, 2];
    match frame[12..14] {
        [8, 6] => {
            let arp = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &ours, &ipv4, &[0; 6], &ipv4].concat();
            frame[..6] == [0xff; 6] && frame[14..] == arp
        }
        [0x86, 0xdd] => {
            let (from, to) = (&frame[22..38], &frame[38..54]);
            let told = [&[0x20, 1, 0xd, 0xb8, 0, number][..], &[0; 9], &[2]].concat();
            let all = [&[0xff, 2][..], &[0; 13], &[1]].concat();
            // Of a router, which takes the place of what is known; nobody asked.
            from == told && to == all && frame[54] == 136 && frame[58] == 0xa0 && frame[62..78] == *told
        }
        _ => false,
    }
}

#[test]
fn stations_hear_twice_of_our_addresses_and_nobody_does_who_was_not_to() {
    let mut bench = Bench::bare();
    bench.settle();
    assert_eq!((bench.sent(N3).len(), bench.sent(N6).len()), (0, 0));
    bench.worker.announce();
    for (after_ns, expected) in [(100_000_000, 2), (1_900_000_000, 0), (200_000_000, 2), (10_000_000_000, 0)]
    {
        bench.now_ns += after_ns;
        bench.settle();
        for (port, us) in [(N3, (3, [10, 30, 0, 2])), (N6, (6, [10, 50, 0, 2]))] {
            let sent = bench.sent(port);
            assert_eq!(sent.len(), expected, "{after_ns}");
            assert!(sent.iter().all(|frame| is_announcement(frame, us)), "{sent:?}");
        }
    }
    assert!(bench.worker.books().balanced());
}

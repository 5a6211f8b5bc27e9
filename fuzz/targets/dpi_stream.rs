//! Any segments of a stream, in any order, come to a verdict within the bounds; what was seen can be looked up, and so can what
//! a later segment begins with.

#![no_main]

use dpi::extract::{Inspection, SEGMENTS_MAX, Seen, Verdict, later_request};
use std::net::Ipv6Addr;

/// Each segment: two bytes of sequence number, one of length.
fn segments(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
    let mut segments = vec![];
    while let [high, low, length, rest @ ..] = bytes {
        let (payload, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        segments.push((u32::from(*high) << 8 | u32::from(*low), payload));
        bytes = rest;
    }
    segments
}

/// Whether it is a name, or an address as it stands between brackets.
fn is_host(host: &[u8]) -> bool {
    let address = std::str::from_utf8(host).map(str::parse::<Ipv6Addr>);
    dpi::extract::host(host).is_some() || matches!(address, Ok(Ok(_)))
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(request) = later_request(bytes) {
        assert!(request.host.is_none_or(is_host));
        assert!(request.path().is_none_or(|path| path.len() <= bytes.len()));
    }
    let (whole, pieces) = bytes.split_at(bytes.len() / 2);
    let mut inspection = Inspection::new();
    inspection.begin(0);
    let mut looked = 0;
    for (sequence, payload) in [(0, whole)].into_iter().chain(segments(pieces)) {
        looked += u8::from(!payload.is_empty());
        assert!(looked <= SEGMENTS_MAX);
        match inspection.segment(sequence, payload) {
            Verdict::More => {}
            Verdict::Seen(seen) => {
                if let Seen::Tls(hello) = seen {
                    hello.protocols.for_each(drop);
                }
                let (host, path) = (seen.host(), seen.path());
                assert!(host.is_none_or(is_host));
                assert!(path.is_none_or(|path| path.len() <= bytes.len().max(1)));
                return;
            }
            Verdict::Unknown(_) => return,
        }
    }
});

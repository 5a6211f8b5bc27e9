//! Any datagrams come to a verdict within the bounds; so do any frames of QUIC's Initial packets, which no fuzzer could
//! encrypt; and DNS messages are read to their end.

#![no_main]

use dpi::extract::{Datagram, Inspection, Verdict, dns};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for server_port in [dns::PORT, 443] {
        let mut inspection = Inspection::new();
        let all = bytes
            .chunks(300)
            .take_while(|payload| inspection.datagram(Datagram { server_port, payload }) == Verdict::More);
        assert!(all.count() < usize::from(dpi::extract::DATAGRAMS_MAX));
    }
    let mut inspection = Inspection::new();
    let all = bytes.chunks(300).take_while(|plain| inspection.frames(plain) == Verdict::More);
    assert!(all.count() < usize::from(dpi::extract::DATAGRAMS_MAX));
    if let Some(message) = dns::Message::parse(bytes) {
        assert!(message.name().len() <= dpi::extract::NAME_MAX);
        assert!(message.addresses().count() <= dns::RECORDS_MAX);
    }
});

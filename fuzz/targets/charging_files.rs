//! Any octets are read as a file of charging data records, as one record, as elements of BER, or refused; elements lie one after the
//! other within what was read.

#![no_main]

use charging::ber::{elements, see};
use charging::file::read;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(file) = read(bytes) {
        // A record has a tag and a length, at least, and a line its braces.
        assert!(file.records.len() <= bytes.len() / 2);
        assert!(file.header.is_none_or(|header| header.cdrs as usize == file.records.len()));
    }
    let _ = see(bytes);
    // Each takes octets of its own, and what is no element is the last.
    assert!(elements(bytes).count() <= bytes.len() + 1);
});

//! Any bytes on the link end in commands, an error, or wait for more.

#![no_main]

use dplink::Command;
use dplink::frame::Reader;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut reader = Reader::default();
    for chunk in bytes.chunks(7) {
        reader.extend(chunk);
        while let Ok(Some(_)) = reader.take::<Command>() {}
    }
});

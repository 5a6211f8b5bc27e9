//! Any bytes decode or fail; what decodes can be written, and reads the same again.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = pfcp::decode(bytes) {
        let written = pfcp::encode(&message);
        let again = pfcp::decode(&written).expect("what was written reads");
        assert_eq!(pfcp::encode(&again), written);
    }
});

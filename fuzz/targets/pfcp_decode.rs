//! Any bytes decode or fail; what decodes can be written, and reads the same again. Most inputs are messages of ours with
//! something changed in the tree of their IEs, so that they get beyond the header.

#![no_main]

use pfcp_mutate::{Datagram, Dice};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = pfcp::decode(bytes) {
        let written = pfcp::encode(&message);
        let again = pfcp::decode(&written).expect("what was written reads");
        assert_eq!(pfcp::encode(&again), written);
    }
});

// The message is its own donor: what is spliced comes from elsewhere in it.
libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut dice = Dice::new(u64::from(seed));
    let datagram = data.get(..size).and_then(Datagram::read).filter(|_| !dice.once_in(4));
    let Some(mut datagram) = datagram else { return libfuzzer_sys::fuzzer_mutate(data, size, max_size) };
    let donor = datagram.clone();
    (0..=dice.below(3)).for_each(|_| pfcp_mutate::mutate(&mut datagram, &donor, &mut dice));
    let bytes = datagram.write();
    match data.get_mut(..bytes.len()).filter(|_| bytes.len() <= max_size) {
        Some(place) => {
            place.copy_from_slice(&bytes);
            bytes.len()
        }
        None => libfuzzer_sys::fuzzer_mutate(data, size, max_size),
    }
});

//! Our hash of network cards and DPDK's are the same.

#![allow(clippy::unwrap_used, reason = "tests speak plainly")]

use anchorline_dpdk::toeplitz;
use proptest::prelude::*;
use steer::{KEY, Matching, hash64};

proptest! {
    #[test]
    fn of_addresses_and_teids(input: u64, more in prop::collection::vec(any::<u32>(), 0..8)) {
        let words = [(input >> 32) as u32, input as u32];
        prop_assert_eq!(toeplitz(&KEY, &words), Some(hash64(input)));
        prop_assert_eq!(toeplitz(&KEY, &words[..1]), Some(hash64(input >> 32 << 32)));
        let words: Vec<u32> = words.into_iter().chain(more).collect();
        let octets: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        prop_assert_eq!(toeplitz(&KEY, &words), Some(steer::toeplitz(&KEY, &octets)));
    }

    /// The entry of a table of 128 that a TEID leads to is that of its user's address.
    #[test]
    fn of_chosen_teids(start: u32, user: u32) {
        let teid = Matching::new().teid(start, u64::from(user) << 32);
        let entry = |word| toeplitz(&KEY, &[word]).unwrap() % 128;
        prop_assert_eq!(entry(teid), entry(user));
    }
}

#[test]
fn a_short_key_is_refused() {
    assert_eq!(toeplitz(&[0; 7], &[1]), None);
}

//! DPDK's own hash, which ours is held against.

use crate::sys;

/// The Toeplitz hash of these words, first to last, by `rte_softrss`; `None` unless the key has four octets more than they.
pub fn toeplitz(key: &[u8], words: &[u32]) -> Option<u32> {
    let mut words = words.to_vec();
    let count = u32::try_from(words.len()).ok()?;
    if key.len() < words.len() * 4 + 4 {
        return None;
    }
    // SAFETY: it reads as many words as it is told, and of the key four octets more.
    Some(unsafe { sys::anchorline_toeplitz(words.as_mut_ptr(), count, key.as_ptr()) })
}

//! DPDK's packet buffer, owned.

use crate::cycles;
use crate::sys::{self, rte_mbuf};
use packet::Buffer;
use std::fmt;
use std::ptr::NonNull;
use std::slice;

const _: () = assert!(size_of::<rte_mbuf>() == 128, "two cache lines");
const _: () = assert!(size_of::<Mbuf>() == size_of::<*mut rte_mbuf>(), "a Vec<Mbuf> is a vector of pointers");
const _: () = assert!(packet::HEADROOM == sys::RTE_PKTMBUF_HEADROOM as usize, "the headroom is DPDK's");

/// A packet in memory DPDK gave, which goes back to its pool when it is dropped.
///
/// Invariant: the pointer is to a valid mbuf that nobody else has (reference count 1), whose first segment lies
/// within its buffer: `data_off + data_len <= buf_len`. Drivers keep that, and so does every method here.
#[repr(transparent)]
pub struct Mbuf {
    raw: NonNull<rte_mbuf>,
}

// SAFETY: the packet is owned, and its pool takes it back from any thread.
unsafe impl Send for Mbuf {}
// SAFETY: a shared packet can only be read.
unsafe impl Sync for Mbuf {}

impl Mbuf {
    /// Takes a packet over; `None` for null.
    ///
    /// # Safety
    /// Unless null, `raw` fulfils the invariant of [`Mbuf`].
    pub(crate) unsafe fn from_raw(raw: *mut rte_mbuf) -> Option<Self> {
        NonNull::new(raw).map(|raw| Self { raw })
    }

    /// Bytes of the packet, all pieces counted.
    #[inline]
    pub fn total_bytes(&self) -> usize {
        self.mbuf().pkt_len as usize
    }

    /// Room in front of the packet, in bytes.
    #[inline]
    pub fn headroom_bytes(&self) -> usize {
        usize::from(self.mbuf().data_off)
    }

    /// Room behind the packet, in bytes.
    #[inline]
    pub fn tailroom_bytes(&self) -> usize {
        let mbuf = self.mbuf();
        usize::from(mbuf.buf_len) - usize::from(mbuf.data_off) - usize::from(mbuf.data_len)
    }

    /// The hash the device computed over the headers, 0 where it does not.
    #[inline]
    pub fn rss_hash(&self) -> u32 {
        // SAFETY: the union's members are plain numbers, any bits of which are valid.
        unsafe { self.mbuf().__bindgen_anon_2.hash.rss }
    }

    #[inline]
    fn mbuf(&self) -> &rte_mbuf {
        // SAFETY: valid and not written to while `self` is borrowed.
        unsafe { self.raw.as_ref() }
    }

    #[inline]
    fn mbuf_mut(&mut self) -> &mut rte_mbuf {
        // SAFETY: valid and nobody else's.
        unsafe { self.raw.as_mut() }
    }

    #[inline]
    fn first_byte(&self) -> *mut u8 {
        let mbuf = self.mbuf();
        let first = mbuf.buf_addr.cast::<u8>().wrapping_add(usize::from(mbuf.data_off));
        // SAFETY: it lies in a buffer, by the invariant. Said here, nobody who may or may not get a part of the packet asks it.
        unsafe { std::hint::assert_unchecked(!first.is_null()) };
        first
    }
}

impl Buffer for Mbuf {
    #[inline]
    fn data(&self) -> &[u8] {
        // SAFETY: the invariant: `data_len` bytes lie within the buffer, which nobody writes to meanwhile; the
        // kernel hands pool memory out zeroed, so no byte of it is without a value.
        unsafe { slice::from_raw_parts(self.first_byte(), usize::from(self.mbuf().data_len)) }
    }

    #[inline]
    fn data_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `data`, and nobody else has the packet.
        unsafe { slice::from_raw_parts_mut(self.first_byte(), usize::from(self.mbuf().data_len)) }
    }

    #[inline]
    fn prepend(&mut self, n: usize) -> Option<&mut [u8]> {
        let room = u16::try_from(n).ok().filter(|n| *n <= self.mbuf().data_off)?;
        let mbuf = self.mbuf_mut();
        mbuf.data_off -= room;
        mbuf.data_len += room;
        mbuf.pkt_len += u32::from(room);
        Some(self.data_mut())
    }

    /// Where it is not, [`Buffer`] sees the packet's first piece only, which then can change at the front only.
    #[inline]
    fn is_contiguous(&self) -> bool {
        self.mbuf().nb_segs == 1
    }

    #[inline]
    fn append(&mut self, n: usize) -> Option<&mut [u8]> {
        let fits = n <= self.tailroom_bytes() && self.is_contiguous();
        let room = u16::try_from(n).ok().filter(|_| fits)?;
        let mbuf = self.mbuf_mut();
        mbuf.data_len += room;
        mbuf.pkt_len += u32::from(room);
        Some(self.data_mut())
    }

    #[inline]
    fn trim_front(&mut self, n: usize) -> Option<()> {
        let cut = u16::try_from(n).ok().filter(|n| *n <= self.mbuf().data_len)?;
        let mbuf = self.mbuf_mut();
        mbuf.data_off += cut;
        mbuf.data_len -= cut;
        mbuf.pkt_len -= u32::from(cut);
        Some(())
    }

    #[inline]
    fn truncate(&mut self, length: usize) -> Option<()> {
        let fits = length <= usize::from(self.mbuf().data_len) && self.is_contiguous();
        let length = u16::try_from(length).ok().filter(|_| fits)?;
        let mbuf = self.mbuf_mut();
        mbuf.data_len = length;
        mbuf.pkt_len = u32::from(length);
        Some(())
    }

    #[inline]
    fn keep(&mut self, start: usize, length: usize) -> Option<()> {
        let fits = start + length <= usize::from(self.mbuf().data_len) && self.is_contiguous();
        let (start, length) = (u16::try_from(start).ok()?, u16::try_from(length).ok().filter(|_| fits)?);
        let mbuf = self.mbuf_mut();
        mbuf.data_off += start;
        mbuf.data_len = length;
        mbuf.pkt_len = u32::from(length);
        Some(())
    }

    #[inline]
    fn prefetch_data(&self) {
        // Tunnel headers and the user's headers behind them reach into a second cache line. Both are written: the user's
        // hop limit stands in either, and a line that was asked for to be read has to be asked for again.
        let first = self.first_byte();
        cycles::prefetch_write(first);
        cycles::prefetch_write(first.wrapping_add(64));
    }

    #[inline]
    fn prefetch_front(&self) {
        cycles::prefetch_write(self.first_byte());
    }

    #[inline]
    fn prefetch(&self) {
        cycles::prefetch_write(self.raw.as_ptr().cast());
    }

    #[inline]
    fn prefetch_headroom(&self) {
        cycles::prefetch_write(self.first_byte().wrapping_sub(64));
    }

    #[inline]
    fn free_all(buffers: &mut Vec<Self>) {
        let count = u32::try_from(buffers.len()).unwrap_or(u32::MAX);
        // SAFETY: the vector gives its packets up before they are freed, and its first `count` elements are still
        // the pointers they were, not null. (More than 2^32 of them would leak; no pool holds that many.)
        unsafe {
            buffers.set_len(0);
            sys::anchorline_free_bulk(buffers.as_mut_ptr().cast(), count);
        }
    }
}

impl Drop for Mbuf {
    fn drop(&mut self) {
        let mut raw = self.raw.as_ptr();
        // SAFETY: one packet, owned, which nobody has after this.
        unsafe { sys::anchorline_free_bulk(&raw mut raw, 1) };
    }
}

impl fmt::Debug for Mbuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mbuf").field("total_bytes", &self.total_bytes()).field("data", &self.data()).finish()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]
mod tests {
    use super::*;
    use crate::{Eal, EalConfig, HugePages, Mempool, MempoolConfig};

    fn raw(packet: &Mbuf) -> *mut rte_mbuf {
        packet.raw.as_ptr()
    }

    fn pool(capacity: u32) -> Mempool {
        let config = EalConfig { memory_mb: 64, huge_pages: HugePages::Never, ..EalConfig::default() };
        let eal = Eal::init(&config).unwrap();
        Mempool::new(eal, MempoolConfig { capacity, cache: 0, ..MempoolConfig::default() }).unwrap()
    }

    /// A packet of one piece is given back without a look at what is behind it; of several, all of them, as a pool has them.
    #[test]
    fn packets_of_any_number_of_pieces_go_back_whole() {
        let pool = pool(1_023);
        for pieces in [1, 2, 3, 1, 5] {
            let mut packets = vec![];
            for _ in 0..4 {
                let mut all = vec![];
                pool.alloc_bulk(&mut all, pieces).unwrap();
                for pair in all.windows(2) {
                    // SAFETY: both are packets of ours; the second is its head's from now on.
                    unsafe { (*raw(&pair[0])).next = raw(&pair[1]) };
                }
                let head = all.remove(0);
                // SAFETY: as many pieces as it has now.
                unsafe { (*raw(&head)).nb_segs = u16::try_from(pieces).unwrap() };
                all.into_iter().for_each(std::mem::forget);
                packets.push(head);
            }
            assert_eq!(pool.in_use() as usize, 4 * pieces);
            Mbuf::free_all(&mut packets);
            assert_eq!(pool.in_use(), 0, "{pieces}");
        }
        let mut all = vec![];
        pool.alloc_bulk(&mut all, 1_023).unwrap();
        for packet in &all {
            assert!(packet.mbuf().nb_segs == 1 && packet.mbuf().next.is_null() && packet.mbuf().refcnt == 1);
        }
        Mbuf::free_all(&mut all);
        assert_eq!(pool.in_use(), 0);
    }

    /// Somebody else, as a driver that copies none, has it still.
    #[test]
    fn a_packet_that_others_have_goes_back_with_the_last() {
        let pool = pool(63);
        let mut packets = vec![pool.alloc().unwrap()];
        let shared = raw(&packets[0]);
        // SAFETY: ours; the second owner is this test.
        unsafe { (*shared).refcnt = 2 };
        Mbuf::free_all(&mut packets);
        assert_eq!(pool.in_use(), 1);
        // SAFETY: it was not given back, and has one owner now.
        packets.extend(unsafe { Mbuf::from_raw(shared) });
        assert_eq!(packets[0].mbuf().refcnt, 1);
        Mbuf::free_all(&mut packets);
        assert_eq!(pool.in_use(), 0);
    }
}

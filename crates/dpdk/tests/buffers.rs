//! An mbuf behaves as the heap buffer of the packet crate does, whatever is done to both; and pools count.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]

mod common;

use anchorline_dpdk::{Mbuf, Mempool, MempoolConfig};
use common::{eal, pool};
use packet::{Buffer, HeapBuffer};

/// A length that leaves an mbuf of 2176 bytes the 512 bytes behind it that a heap buffer has.
const LENGTH: usize = 2176 - 128 - 512;

/// A number from 0 to below `limit`, by xorshift.
fn random(state: &mut u64, limit: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    usize::try_from(*state % u64::try_from(limit).unwrap()).unwrap()
}

/// One operation out of four; its success. New bytes are given a value: they have none of their own.
fn apply<B: Buffer>(buffer: &mut B, operation: usize, n: usize) -> bool {
    let fill = u8::try_from(n % 251).unwrap();
    match operation {
        0 => buffer.prepend(n).map(|data| data[..n].fill(fill)).is_some(),
        1 => {
            buffer.append(n).map(|data| data.iter_mut().rev().take(n).for_each(|byte| *byte = fill)).is_some()
        }
        2 => buffer.trim_front(n).is_some(),
        _ => buffer.truncate(n).is_some(),
    }
}

#[test]
fn an_mbuf_behaves_as_a_heap_buffer() {
    let (pool, mut state) = (pool(), 0x9e37_79b9_7f4a_7c15);
    for _ in 0..500 {
        let bytes: Vec<u8> = (0..LENGTH).map(|_| u8::try_from(random(&mut state, 256)).unwrap()).collect();
        let (mut mbuf, mut heap) = (pool.packet(&bytes).unwrap(), HeapBuffer::new(&bytes));
        for _ in 0..100 {
            let operation = random(&mut state, 4);
            let most = [160, 600, 300, LENGTH + 600, 70_000][random(&mut state, 5)];
            let n = random(&mut state, most);
            assert_eq!(apply(&mut mbuf, operation, n), apply(&mut heap, operation, n), "{operation} of {n}");
            assert_eq!(mbuf.data(), heap.data());
            assert_eq!(mbuf.total_bytes(), heap.data().len());
        }
    }
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn sizes_that_overflow_are_refused() {
    let pool = pool();
    let mut packet = pool.packet(&[1, 2, 3]).unwrap();
    for n in [usize::MAX, usize::MAX - 2, 65_536, 65_535] {
        assert!(packet.prepend(n).is_none() && packet.append(n).is_none());
        assert!(packet.trim_front(n).is_none() && packet.truncate(n).is_none());
    }
    assert_eq!(packet.data(), [1, 2, 3]);
}

#[test]
fn a_packet_has_the_room_of_its_pool() {
    let pool = pool();
    let mut packet = pool.alloc().unwrap();
    assert_eq!((packet.headroom_bytes(), packet.tailroom_bytes(), packet.data().len()), (128, 2048, 0));
    assert!(packet.append(2048).is_some() && packet.append(1).is_none());
    assert!(packet.prepend(128).is_some() && packet.prepend(1).is_none());
    assert!(pool.packet(&[0; 2049]).is_none());
}

#[test]
fn a_pool_gives_all_or_nothing() {
    let config = MempoolConfig { capacity: 127, cache: 0, ..MempoolConfig::default() };
    let pool = Mempool::new(eal(), config).unwrap();
    let mut packets = Vec::new();
    assert!(pool.alloc_bulk(&mut packets, 128).is_none() && packets.is_empty());
    pool.alloc_bulk(&mut packets, 127).unwrap();
    assert_eq!((packets.len(), pool.in_use()), (127, 127));
    assert!(pool.alloc().is_none());
    packets.truncate(100);
    assert_eq!(pool.in_use(), 100);
    Mbuf::free_all(&mut packets);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn packets_of_many_pools_go_home() {
    let pools = [pool(), pool(), pool()];
    let mut packets: Vec<Mbuf> = (0..300).map(|n| pools[n % 7 % 3].alloc().unwrap()).collect();
    Mbuf::free_all(&mut packets);
    assert!(pools.iter().all(|pool| pool.in_use() == 0));
}

#[test]
fn a_packet_outlives_its_pool() {
    let pool = pool();
    let packet = pool.packet(b"still here").unwrap();
    drop(pool);
    let _others = common::pool();
    assert_eq!(packet.data(), b"still here");
}

/// On this machine's first node, on any, and where there is no such node: the packets are there in any case.
#[test]
fn pools_say_which_node_their_packets_are_on() {
    let of = |node| MempoolConfig { capacity: 1023, cache: 0, node, ..MempoolConfig::default() };
    for node in [None, Some(0), Some(7), Some(u32::MAX)] {
        let pool = Mempool::new(eal(), of(node)).unwrap();
        assert!(pool.packet(&[1, 2, 3]).is_some(), "{node:?}");
        let nodes = pool.nodes();
        // Only a kernel without NUMA says nothing.
        let has_nodes = std::path::Path::new("/sys/devices/system/node/node0").exists();
        assert_eq!(nodes.is_empty(), !has_nodes, "{node:?}");
        if !std::path::Path::new("/sys/devices/system/node/node1").exists() {
            assert!(nodes.iter().all(|node| *node == 0), "{nodes:?}");
        }
    }
}

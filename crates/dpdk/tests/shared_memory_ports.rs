//! Ports that another process, or here the same, shares memory with.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]

mod common;

use common::traffic::{close_memif, exchange};
use common::{open, pool};

#[test]
fn memif_carries_packets() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("memif.sock");
    let pool = pool();
    let device = |n, role| format!("net_memif{n},role={role},socket={},socket-abstract=no", socket.display());
    let (mut a, mut b) = (open(&device(0, "server"), &pool), open(&device(1, "client"), &pool));
    exchange(&pool, &mut a, &mut b, 8);
    close_memif(a, b);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn virtio_user_carries_packets_to_vhost() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("vhost.sock");
    let pool = pool();
    let mut vhost = open(&format!("net_vhost0,iface={}", socket.display()), &pool);
    let mut virtio = open(&format!("net_virtio_user0,path={}", socket.display()), &pool);
    exchange(&pool, &mut vhost, &mut virtio, 8);
    drop((virtio, vhost));
    assert_eq!(pool.in_use(), 0);
}

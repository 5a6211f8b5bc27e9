//! The pcap device against captures written and read here (the file format of tcpdump.org, LINKTYPE_ETHERNET).

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]

mod common;

use common::traffic::{frame, receive, send_all};
use common::{open, pool};
use packet::Buffer;
use std::fs;
use std::path::Path;

const HEADER: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, 1];

fn write_capture(path: &Path, frames: &[Vec<u8>]) {
    let mut bytes: Vec<u8> = HEADER.iter().flat_map(|word| word.to_le_bytes()).collect();
    for frame in frames {
        let length = u32::try_from(frame.len()).unwrap();
        bytes.extend([1, 2, length, length].iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(frame);
    }
    fs::write(path, bytes).unwrap();
}

fn read_capture(path: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).unwrap();
    let (mut rest, mut frames) = (&bytes[24..], Vec::new());
    while let Some((header, behind)) = rest.split_first_chunk::<16>() {
        let length = usize::try_from(u32::from_le_bytes(header[8..12].try_into().unwrap())).unwrap();
        frames.push(behind[..length].to_vec());
        rest = &behind[length..];
    }
    frames
}

#[test]
fn a_capture_is_received_and_another_written() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.pcap"), folder.path().join("out.pcap"));
    let frames: Vec<Vec<u8>> = (0..50).map(|n| frame(n, 60 + usize::from(n) * 29)).collect();
    write_capture(&input, &frames);
    let pool = pool();
    let device = format!("net_pcap0,rx_pcap={},tx_pcap={}", input.display(), output.display());
    let mut port = open(&device, &pool);
    let (mut rx, mut tx) = (port.take_rx_queues(), port.take_tx_queues());
    let mut packets = receive(&mut rx[0], 50, |_| true);
    assert_eq!(packets.iter().map(Buffer::data).collect::<Vec<_>>(), frames);
    packets.reverse();
    send_all(&mut tx[0], &mut packets);
    drop((port, rx, tx));
    assert_eq!(read_capture(&output), frames.into_iter().rev().collect::<Vec<_>>());
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_frame_larger_than_a_buffer_comes_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("jumbo.pcap");
    let jumbo = frame(7, 5000);
    write_capture(&input, std::slice::from_ref(&jumbo));
    let pool = pool();
    let mut port = open(&format!("net_pcap1,rx_pcap={}", input.display()), &pool);
    let mut packets = receive(&mut port.take_rx_queues()[0], 1, |_| true);
    let packet = &mut packets[0];
    assert!(!packet.is_contiguous());
    assert_eq!((packet.total_bytes(), packet.data()), (5000, &jumbo[..2048]));
    assert!(packet.append(1).is_none() && packet.truncate(10).is_none());
    packet.trim_front(14).unwrap();
    assert_eq!((packet.total_bytes(), packet.data()), (4986, &jumbo[14..2048]));
    assert_eq!(pool.in_use(), 3);
    drop(packets);
    assert_eq!(pool.in_use(), 0);
}

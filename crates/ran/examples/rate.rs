//! How many packets a second go through: `cargo run --release -p anchorline-ran --example rate`.
//!
//! Sender, gNB and receiver share the machine, so the rate is what they do together; packets a CPU
//! second are the gNB's own.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "it stops where something is wrong")]

#[path = "../tests/lab/mod.rs"]
mod lab;

use anchorline_ran as ran;
use lab::Namespace;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrIn, sendmmsg, setsockopt, sockopt};
use packet::gtpu::{self, PduSession};
use ran::Tunnel;
use ran::gnb::{Bearer, Endpoint, Gnb, Tun};
use rules::Teid;
use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

const N3: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 2);
const GNB: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 1);
const UE: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 1);
const BATCH: usize = 64;
const FOR: Duration = Duration::from_secs(3);

fn main() {
    let Some(namespace) = Namespace::new("rate") else { return };
    namespace.spawn(measure).join().unwrap();
}

fn measure() {
    let config = ran::Config::parse(include_str!("../../../config/ran.toml")).unwrap();
    let ue = &config.ues[0];
    let tun = Tun::open(ue).unwrap();
    let bearer = Bearer::new(ue.address, ue.qfi);
    let (gnb, _refused) = Gnb::start(Endpoint::bind(GNB, 0).unwrap(), vec![(bearer, tun)]).unwrap();
    gnb.set_uplink(0, Some(Tunnel { teid: Teid(1), address: N3 }));
    // A thread names itself once it runs.
    std::thread::sleep(Duration::from_millis(100));
    for length in [64, 690, 1_400] {
        uplink(&gnb, length);
        downlink(&gnb, length);
    }
}

/// The UE's application sends out of the TUN device.
fn uplink(gnb: &Gnb, length: usize) {
    let _user_plane = UdpSocket::bind((N3, gtpu::PORT)).unwrap();
    let socket = UdpSocket::bind((UE, 0)).unwrap();
    setsockopt(&socket, sockopt::BindToDevice, &"ue0".into()).unwrap();
    let mut flood = Flood::new(&socket, vec![0; length - 28], SocketAddrV4::new(SERVER, 9));
    report("uplink", length, &mut flood, || gnb.ue_counts()[0].1.up_packets);
}

/// A user plane sends into the tunnel.
fn downlink(gnb: &Gnb, length: usize) {
    let _application = UdpSocket::bind((UE, 9)).unwrap();
    let socket = UdpSocket::bind((N3, 0)).unwrap();
    let container = Some(PduSession::downlink(9));
    let mut bytes = vec![0; gtpu::encapsulated_length(container)];
    gtpu::write_g_pdu(&mut bytes, 1, container, length).unwrap();
    bytes.extend(user_packet(length));
    let mut flood = Flood::new(&socket, bytes, SocketAddrV4::new(GNB, gtpu::PORT));
    report("downlink", length, &mut flood, || gnb.ue_counts()[0].1.down_packets);
}

/// The same datagram, as often as the kernel takes it.
struct Flood<'a> {
    socket: &'a UdpSocket,
    bytes: Vec<u8>,
    to: [Option<SockaddrIn>; BATCH],
    headers: MultiHeaders<SockaddrIn>,
}

impl<'a> Flood<'a> {
    fn new(socket: &'a UdpSocket, bytes: Vec<u8>, to: SocketAddrV4) -> Self {
        let headers = MultiHeaders::preallocate(BATCH, None);
        Self { socket, bytes, to: [Some(SockaddrIn::from(to)); BATCH], headers }
    }

    /// How many were taken.
    fn send(&mut self, time: Duration) -> u64 {
        let (end, mut sent) = (Instant::now() + time, 0);
        while Instant::now() < end {
            let slices = [[IoSlice::new(&self.bytes)]; BATCH];
            let fd = self.socket.as_raw_fd();
            let taken = sendmmsg(fd, &mut self.headers, &slices, self.to, [], MsgFlags::empty());
            sent += taken.map_or(0, |taken| taken.count() as u64);
        }
        sent
    }
}

fn report(thread: &str, length: usize, flood: &mut Flood<'_>, carried: impl Fn() -> u64) {
    let (packets, cpu) = (carried(), cpu_seconds(thread));
    let offered = flood.send(FOR) as f64 / FOR.as_secs_f64();
    let packets = (carried() - packets) as f64;
    let (rate, cpu) = (packets / FOR.as_secs_f64(), cpu_seconds(thread) - cpu);
    let per_cpu = packets / cpu;
    println!(
        "{thread:<8} {length:>5} bytes: {rate:>8.0} packets/s of {offered:>8.0} offered, {per_cpu:>8.0} a CPU second"
    );
}

/// What the thread of that name has used, user and system, in ticks of 10 ms (proc_pid_stat(5)).
fn cpu_seconds(name: &str) -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let stats = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap());
    let stat = stats.into_iter().find(|stat| stat.contains(&format!("({name})"))).unwrap();
    let ticks = stat.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2);
    ticks.map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

/// UDP to the UE, without a UDP checksum.
fn user_packet(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let header = packet::ipv4::Header::new(SERVER, UE, packet::ipv4::UDP, length - 20).unwrap();
    header.write(&mut bytes).unwrap();
    packet::udp::Header::new(9, 9, length - 28).unwrap().write(&mut bytes[20..]).unwrap();
    bytes
}

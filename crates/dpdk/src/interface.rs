//! The interface of the kernel that a port is on, which may go down, go, or be another one of its name, while the driver says
//! nothing: to AF_PACKET's, the link is up from its start to its end, and what its rings lose is not counted.

use crate::device::Device;
use crate::port::LinkState;
use std::ffi::CString;
use std::fs;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// The interface that was there when its port was opened.
#[derive(Debug)]
pub(crate) struct Interface {
    name: CString,
    index: libc::c_int,
    /// Octets of the port's longest packet.
    mtu: u16,
    /// Of the namespace that the port is in, to ask by.
    asker: OwnedFd,
    /// The driver's, if they are of AF_PACKET, which it closes with the port.
    rings: Vec<RawFd>,
    /// Packets that these have lost so far.
    lost: AtomicU64,
}

impl Interface {
    /// That of a device that has been opened by the calling thread with this MTU; `None` of a device on none.
    pub(crate) fn of(device: &str, mtu: u16) -> Option<Self> {
        let device = Device::new(device).ok()?;
        let name = CString::new(device.interface()?).ok()?;
        let asker = asker()?;
        let index = index(&asker, &name)?;
        let rings = if device.driver() == "net_af_packet" { rings(index) } else { Vec::new() };
        Some(Self { name, index, mtu, asker, rings, lost: AtomicU64::new(0) })
    }

    /// As it is now.
    pub(crate) fn state(&self) -> LinkState {
        let Some(flags) = flags(&self.asker, &self.name) else { return LinkState::Gone };
        if index(&self.asker, &self.name) != Some(self.index) {
            return LinkState::Replaced;
        }
        let running = libc::IFF_UP | libc::IFF_RUNNING;
        if libc::c_int::from(flags) & running == running { LinkState::Up } else { LinkState::Down }
    }

    /// The longest packet it takes, where that is shorter than the port's: AF_PACKET's driver counts longer ones as sent.
    pub(crate) fn narrowed(&self) -> Option<u32> {
        let now = mtu(&self.asker, &self.name).filter(|now| *now < self.mtu.into())?;
        u32::try_from(now).ok()
    }

    /// Packets lost because nobody took them from the driver's rings.
    pub(crate) fn lost(&self) -> u64 {
        let more: u64 = self.rings.iter().map(|ring| u64::from(lost_since(*ring))).sum();
        self.lost.fetch_add(more, Ordering::Relaxed) + more
    }
}

fn asker() -> Option<OwnedFd> {
    // SAFETY: no pointers; what comes back is an open descriptor of nobody else, or less than 0.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    // SAFETY: as above.
    (socket >= 0).then(|| unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Asks for something about an interface by its name.
fn ask(asker: &OwnedFd, name: &CString, what: libc::c_ulong) -> Option<libc::ifreq> {
    // SAFETY: a request of zeros is one: it has integers, pointers and bytes.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    let bytes = name.as_bytes_with_nul();
    for (to, from) in request.ifr_name.get_mut(..bytes.len())?.iter_mut().zip(bytes) {
        *to = from.cast_signed();
    }
    // SAFETY: these requests read the name and write at most the rest of the structure.
    let asked = unsafe { libc::ioctl(asker.as_raw_fd(), what, &raw mut request) };
    (asked == 0).then_some(request)
}

fn index(asker: &OwnedFd, name: &CString) -> Option<libc::c_int> {
    // SAFETY: the kernel has written this part.
    ask(asker, name, libc::SIOCGIFINDEX).map(|request| unsafe { request.ifr_ifru.ifru_ifindex })
}

fn mtu(asker: &OwnedFd, name: &CString) -> Option<libc::c_int> {
    // SAFETY: the kernel has written this part.
    ask(asker, name, libc::SIOCGIFMTU).map(|request| unsafe { request.ifr_ifru.ifru_mtu })
}

fn flags(asker: &OwnedFd, name: &CString) -> Option<libc::c_short> {
    // SAFETY: the kernel has written this part.
    ask(asker, name, libc::SIOCGIFFLAGS).map(|request| unsafe { request.ifr_ifru.ifru_flags })
}

/// The AF_PACKET sockets of this process on an interface. The driver does not say which are its own.
fn rings(index: libc::c_int) -> Vec<RawFd> {
    let all = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|socket| bound_to(*socket) == Some(index)).collect()
}

/// The interface that a descriptor is bound to, if it is a socket of AF_PACKET.
fn bound_to(socket: RawFd) -> Option<libc::c_int> {
    // SAFETY: an address of zeros is one.
    let mut address: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: it writes at most `length` bytes of the address, of whatever family; other descriptors are refused.
    let asked = unsafe { libc::getsockname(socket, (&raw mut address).cast(), &raw mut length) };
    let is_it = asked == 0 && libc::c_int::from(address.sll_family) == libc::AF_PACKET;
    is_it.then_some(address.sll_ifindex)
}

/// Packets that a socket has lost since it was asked last.
fn lost_since(socket: RawFd) -> u32 {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: it writes at most `length` bytes. Where the driver has closed the descriptor the call fails, or is refused by what
    // has its number now.
    let asked = unsafe {
        libc::getsockopt(
            socket,
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &raw mut length,
        )
    };
    if asked == 0 { statistics.tp_drops } else { 0 }
}

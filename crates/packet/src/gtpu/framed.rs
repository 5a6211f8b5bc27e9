//! Ethernet, IPv4, UDP and GTP-U in one piece, for the packets that come most often: one copy, and a few fields patched.

use super::ShortContainer;
use super::header::Head;
use super::template::{Front4, Template4};
use crate::{Buffer, ethernet};
use zerocopy::byteorder::network_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What stands in front of a tunnel's packet without a container.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Frame {
    ethernet: ethernet::Header,
    front: Front4,
    head: Head,
}

/// Bytes of the optional part of the header and a container without a paging policy.
const TAIL: usize = size_of::<U64>();
/// Bytes from the IPv4 header to what GTP-U's length counts.
const FROM_IP: usize = size_of::<Frame>() - ethernet::LENGTH;
/// The first word of the tail before the container: no numbers, and the container's type.
const BEFORE_CONTAINER: u64 = 0x85 << 32;

/// The headers of a tunnel over IPv4, from the Ethernet header on.
#[derive(Clone, Copy, Debug)]
pub struct Framed {
    frame: Frame,
    /// Of the IPv4 header without its total length.
    sum: u16,
}

impl Template4 {
    /// The same with an Ethernet header in front; only of a template whose `tos` is 0.
    pub fn framed(&self, ethernet: ethernet::Header) -> Framed {
        let (sum, front) = self.front();
        Framed { frame: Frame { ethernet, front, head: Head::g_pdu() }, sum }
    }
}

/// What tells the tunnels between two endpoints apart, of packets whose container is short, or that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortTunnel {
    /// The peer's tunnel.
    pub teid: u32,
    /// QFI and reflective QoS; 5G only.
    pub container: ShortContainer,
    /// Type of service: DSCP and ECN.
    pub tos: u8,
}

impl Framed {
    /// Puts the headers in front of the packet in `buffer`, for a tunnel between the same endpoints. `None`, and no
    /// change, where there is no room or the result would be longer than `mtu` bytes of IP.
    #[inline(always)]
    pub fn encapsulate<B: Buffer>(&self, buffer: &mut B, tunnel: ShortTunnel, mtu: u16) -> Option<()> {
        let container = tunnel.container.word();
        let tail = if container == 0 { 0 } else { TAIL };
        let payload = buffer.data().len() + tail;
        let total = u16::try_from(FROM_IP + payload).ok().filter(|total| *total <= mtu)?;
        let bytes = buffer.prepend(size_of::<Frame>() + tail)?;
        let (first, rest) = bytes.split_first_chunk_mut::<{ size_of::<Frame>() }>()?;
        *first = zerocopy::transmute!(self.frame);
        let frame: &mut Frame = zerocopy::transmute_mut!(first);
        frame.front.patch(self.sum, tunnel.tos, total);
        frame.head.patch(tunnel.teid, total - FROM_IP as u16);
        if tail > 0 {
            frame.head.announce_extension();
            let tail: &mut U64 = zerocopy::transmute_mut!(rest.first_chunk_mut::<TAIL>()?);
            tail.set(BEFORE_CONTAINER | u64::from(container));
        }
        Some(())
    }
}

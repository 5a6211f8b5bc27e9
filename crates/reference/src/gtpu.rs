//! GTP-U (TS 29.281) with the PDU session container (TS 38.415).

use crate::bytes::{octets, u8_at, u16_at, u32_at};
use crate::reason::DropReason;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) const PORT: u16 = 2152;

pub(crate) const ECHO_REQUEST: u8 = 1;
pub(crate) const ECHO_RESPONSE: u8 = 2;
pub(crate) const ERROR_INDICATION: u8 = 26;
pub(crate) const SUPPORTED_EXTENSION_HEADERS: u8 = 31;
pub(crate) const END_MARKER: u8 = 254;
pub(crate) const G_PDU: u8 = 255;

/// Type of the extension header that holds a PDU session container.
pub(crate) const PDU_SESSION_CONTAINER: u8 = 0x85;
/// Types of extension headers with which radio nodes number packets in a handover; what they say is of no concern to us.
const PDCP_PDU_NUMBERS: [u8; 2] = [0x82, 0xc0];
/// A longer chain is an attack on the receiver's time.
const EXTENSIONS_MAX: usize = 8;

/// As many go on as leave room for the container of the next tunnel.
const RELAYED_MAX: usize = EXTENSIONS_MAX - 1;

/// Types and contents of extension headers.
pub(crate) type Relayed = Vec<(u8, Vec<u8>)>;

/// A message, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u8,
    pub(crate) teid: u32,
    pub(crate) sequence: Option<u16>,
    /// The last PDU session container.
    pub(crate) container: Option<Container>,
    /// Extension headers that go on with the packet.
    pub(crate) relayed: Relayed,
    pub(crate) payload: &'a [u8],
    /// Bytes before the payload.
    pub(crate) header: usize,
}

impl<'a> Message<'a> {
    /// Reads the message at the front of `bytes` (TS 29.281 5.1), the most basic fault first.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, DropReason> {
        let [flags, kind, l0, l1, t0, t1, t2, t3] = octets(bytes, 0).ok_or(DropReason::GtpuTruncated)?;
        // Version 1, protocol type GTP.
        if flags >> 4 != 0b0011 {
            return Err(DropReason::GtpuVersion);
        }
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        let body = bytes.get(8..8 + length).ok_or(DropReason::GtpuTruncated)?;
        let teid = u32::from_be_bytes([t0, t1, t2, t3]);
        let mut message = Self {
            kind,
            teid,
            sequence: None,
            container: None,
            relayed: Vec::new(),
            payload: body,
            header: 8,
        };
        // Any of E, S and PN brings the four octets of all three along.
        if flags & 0b0111 != 0 {
            let [s0, s1, _, next] = octets(body, 0).ok_or(DropReason::GtpuTruncated)?;
            message.payload = body.get(4..).unwrap_or_default();
            if flags & 0b0010 != 0 {
                message.sequence = Some(u16::from_be_bytes([s0, s1]));
            }
            if flags & 0b0100 != 0 {
                message.read_extensions(next)?;
            }
        }
        message.header = 8 + body.len() - message.payload.len();
        Ok(message)
    }

    /// Takes the chain of extension headers off the payload (TS 29.281 5.2).
    fn read_extensions(&mut self, first: u8) -> Result<(), DropReason> {
        let mut next = first;
        let mut count = 0;
        while next != 0 {
            count += 1;
            if count > EXTENSIONS_MAX {
                return Err(DropReason::GtpuExtension);
            }
            // In units of four octets, itself and the type of the next included.
            let length = 4 * usize::from(u8_at(self.payload, 0).ok_or(DropReason::GtpuExtension)?);
            let extension = self.payload.get(..length).ok_or(DropReason::GtpuExtension)?;
            let (following, rest) = extension.split_last().ok_or(DropReason::GtpuExtension)?;
            self.read_extension(next, rest.get(1..).unwrap_or_default())?;
            next = *following;
            self.payload = self.payload.get(length..).unwrap_or_default();
        }
        Ok(())
    }

    fn read_extension(&mut self, kind: u8, content: &[u8]) -> Result<(), DropReason> {
        if kind == PDU_SESSION_CONTAINER {
            self.container = Some(read_container(content).ok_or(DropReason::GtpuExtension)?);
            return Ok(());
        }
        // The two highest bits 10 and 11: the endpoint must understand it (TS 29.281 figure 5.2.1-2).
        let required = kind & 0b1000_0000 != 0 && !PDCP_PDU_NUMBERS.contains(&kind);
        if required {
            return Err(DropReason::GtpuUnknownExtension);
        }
        // 01: for the next node alone.
        if kind >> 6 != 0b01 && self.relayed.len() < RELAYED_MAX {
            self.relayed.push((kind, content.to_vec()));
        }
        Ok(())
    }
}

/// TS 38.415 5.5.2; `None` where the type is unknown or a paging policy is announced and missing.
fn read_container(content: &[u8]) -> Option<Container> {
    let (kind, flow) = (u8_at(content, 0)? >> 4, u8_at(content, 1)?);
    let (downlink, qfi) = (kind == 0, flow & 0b0011_1111);
    if kind > 1 {
        return None;
    }
    let paging_policy = match downlink && flow & 0b1000_0000 != 0 {
        true => Some(u8_at(content, 2)? >> 5),
        false => None,
    };
    Some(Container { downlink, qfi, reflective: downlink && flow & 0b0100_0000 != 0, paging_policy })
}

/// A PDU session container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Container {
    /// Towards the radio.
    pub(crate) downlink: bool,
    pub(crate) qfi: u8,
    /// RQI; in downlink containers only.
    pub(crate) reflective: bool,
    /// PPI; in downlink containers only.
    pub(crate) paging_policy: Option<u8>,
}

/// A user's packet in a tunnel, with a container and behind it the extension headers that it came with.
pub(crate) fn g_pdu(teid: u32, container: Option<Container>, relayed: &Relayed, packet: &[u8]) -> Vec<u8> {
    let container = container.map(|container| (PDU_SESSION_CONTAINER, container.content()));
    let extensions: Relayed = container.into_iter().chain(relayed.iter().cloned()).collect();
    let Some((first, _)) = extensions.first() else { return message(0x30, G_PDU, teid, packet) };
    let mut body = vec![0, 0, 0, *first];
    let following = extensions.iter().skip(1).map(|(kind, _)| *kind).chain([0]);
    for ((_, content), next) in extensions.iter().zip(following) {
        body.push(((content.len() + 2) / 4) as u8);
        body.extend(content);
        body.push(next);
    }
    body.extend(packet);
    message(0x34, G_PDU, teid, &body)
}

impl Container {
    /// What is between the length of its extension header and the type of the next.
    fn content(self) -> Vec<u8> {
        let kind = if self.downlink { 0x00 } else { 0x10 };
        let rqi = if self.downlink && self.reflective { 0b0100_0000 } else { 0 };
        let flow = rqi | self.qfi;
        match self.paging_policy.filter(|_| self.downlink) {
            None => vec![kind, flow],
            // The rest of eight octets is padding.
            Some(policy) => vec![kind, 0b1000_0000 | flow, policy << 5, 0, 0, 0],
        }
    }
}

/// The header's mandatory part and what follows it.
pub(crate) fn message(flags: u8, kind: u8, teid: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![flags, kind];
    bytes.extend((body.len() as u16).to_be_bytes());
    bytes.extend(teid.to_be_bytes());
    bytes.extend(body);
    bytes
}

/// The answer to the echo request of this number: with a restart counter, which is always 0 (TS 29.281 7.2.2, 8.2).
pub(crate) fn echo_response(sequence: u16) -> Vec<u8> {
    let [s0, s1] = sequence.to_be_bytes();
    message(0x32, ECHO_RESPONSE, 0, &[s0, s1, 0, 0, 14, 0])
}

/// Tells a peer which extension headers we know (TS 29.281 7.2.3).
pub(crate) fn supported_extension_headers() -> Vec<u8> {
    message(
        0x32,
        SUPPORTED_EXTENSION_HEADERS,
        0,
        &[0, 0, 0, 0, 141, 4, PDU_SESSION_CONTAINER, 0x40, 0x82, 0xc0],
    )
}

/// Tells a peer that the tunnel `teid` at `address` of ours leads nowhere (TS 29.281 7.3.1).
pub(crate) fn error_indication(teid: u32, address: IpAddr) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 0, 16];
    body.extend(teid.to_be_bytes());
    body.push(133);
    match address {
        IpAddr::V4(address) => {
            body.extend([0, 4]);
            body.extend(address.octets());
        }
        IpAddr::V6(address) => {
            body.extend([0, 16]);
            body.extend(address.octets());
        }
    }
    message(0x32, ERROR_INDICATION, 0, &body)
}

/// The tunnel a peer has no use for: its TEID Data I and GTP-U Peer Address; `None` where either is missing.
pub(crate) fn read_error_indication(payload: &[u8]) -> Option<(u32, IpAddr)> {
    let (mut teid, mut address) = (None, None);
    let mut at = 0;
    while let Some((kind, value, next)) = element(payload, at) {
        match kind {
            16 => teid = u32_at(value, 0),
            133 => address = read_address(value),
            _ => {}
        }
        at = next;
    }
    Some((teid?, address?))
}

fn read_address(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => octets(value, 0).map(|octets| Ipv4Addr::from_octets(octets).into()),
        16 => octets(value, 0).map(|octets| Ipv6Addr::from_octets(octets).into()),
        _ => None,
    }
}

/// Type and value of the information element at a place, and where the next begins; `None` at the end and behind
/// what cannot be read. Types from 128 on say how long they are (TS 29.281 8.1).
fn element(payload: &[u8], at: usize) -> Option<(u8, &[u8], usize)> {
    let kind = u8_at(payload, at)?;
    let (from, length) = match kind {
        14 => (at + 1, 1),
        16 => (at + 1, 4),
        128.. => (at + 3, usize::from(u16_at(payload, at + 1)?)),
        _ => return None,
    };
    Some((kind, payload.get(from..from + length)?, from + length))
}

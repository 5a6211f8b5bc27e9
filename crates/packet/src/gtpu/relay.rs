//! Extension headers that go on from one tunnel into another (TS 29.281 5.2.1): the numbers that radio nodes give packets in a
//! handover, say.

use super::extension::{EXTENSIONS_MAX, Extension, Extensions, extension_type};
use crate::{ipv6, udp};
use zerocopy::FromBytes;

/// Extension headers of one message, in order.
#[derive(Clone, Copy, Debug)]
pub struct Relayed<'a> {
    all: [Extension<'a>; EXTENSIONS_MAX],
    count: usize,
}

impl<'a> Relayed<'a> {
    const NONE: Self = Self { all: [Extension { kind: 0, content: &[] }; EXTENSIONS_MAX], count: 0 };

    /// Those that who passes a packet on keeps, by the headers that it came with, from IP to the user's packet, which were checked: not
    /// those for the next node alone, nor the container, which is written anew. None where the headers are others.
    pub fn of(headers: &'a [u8]) -> Self {
        let mut relayed = Self::NONE;
        let gtpu = gtpu_at(headers).and_then(|at| headers.get(at..)).unwrap_or_default();
        let kept = |extension: &Extension<'_>| is_relayed(extension.kind);
        // One place is the container's.
        let kept = Extensions::in_front(gtpu).flatten().filter(kept).take(EXTENSIONS_MAX - 1);
        kept.for_each(|extension| relayed.push(extension));
        relayed
    }

    /// The same behind a container with this content, whose place is the first (TS 29.281 5.2.2.7).
    pub(super) fn behind(&self, container: Option<&'a [u8]>) -> Self {
        let mut all = Self::NONE;
        if let Some(content) = container {
            all.push(Extension { kind: extension_type::PDU_SESSION_CONTAINER, content });
        }
        self.as_slice().iter().for_each(|extension| all.push(*extension));
        all
    }

    fn push(&mut self, extension: Extension<'a>) {
        if let Some(place) = self.all.get_mut(self.count) {
            *place = extension;
            self.count += 1;
        }
    }

    /// All of them.
    pub fn as_slice(&self) -> &[Extension<'a>] {
        self.all.get(..self.count).unwrap_or_default()
    }
}

/// Whether who passes a packet on passes such an extension header on, too, as it is.
pub(super) const fn is_relayed(kind: u8) -> bool {
    kind != extension_type::PDU_SESSION_CONTAINER && Extension { kind, content: &[] }.is_relayed()
}

/// Where GTP-U begins behind IP and UDP.
fn gtpu_at(headers: &[u8]) -> Option<usize> {
    let version_ihl = headers.first()?;
    let ip = match version_ihl >> 4 {
        4 => usize::from(version_ihl & 0x0f) * 4,
        _ => {
            let (header, rest) = ipv6::Header::ref_from_prefix(headers).ok()?;
            ipv6::behind(header.next_header(), rest).ok()?.offset
        }
    };
    Some(ip + udp::LENGTH)
}

#[cfg(test)]
mod tests;

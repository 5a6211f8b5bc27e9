//! What became of packets, with the data plane and with the reference, but for what the reference says nothing about.

use crate::{Counters, DropReason};
use reference::{Fate, Layer, Outcome, Reference, Setup};
use std::collections::BTreeMap;
use std::fmt;

/// A server's part of a handshake over TCP.
pub(super) const SYN_AND_ACK: u8 = 0x12;

/// A frame and its port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Frame(pub(super) usize, pub(super) Vec<u8>);

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.0)?;
        self.1.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What became of some packets, whichever way it was found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// In any order: a copy may leave before its original.
    pub(super) sent: Vec<Frame>,
    pub(super) drops: BTreeMap<&'static str, u64>,
    pub(super) consumed: u64,
}

impl Tally {
    /// What is here and not there.
    pub(super) fn without(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.sent.retain(|frame| !other.sent.contains(frame));
        rest.drops.retain(|reason, count| other.drops.get(reason) != Some(count));
        rest
    }

    /// Leaves out fragments that waited too long for others: the reference knows no time.
    pub(super) fn forget_expiries(&mut self) {
        self.drops.remove(DropReason::FragmentsIncomplete.name());
    }

    /// Leaves out which datagram of ours a fragment is of: the reference does not say.
    pub(super) fn forget_identifications(&mut self, setup: &Setup) {
        for Frame(_, frame) in &mut self.sent {
            forget_identification(setup, frame);
        }
    }

    /// Leaves out with which number of the node's a user's handshake goes on: nobody else is to know it.
    pub(super) fn forget_first_numbers(&mut self) {
        for Frame(_, frame) in &mut self.sent {
            if let Some(at) = segment_in_tunnel(frame).filter(|at| frame.get(at + 13) == Some(&SYN_AND_ACK)) {
                frame[at + 4..at + 8].fill(0);
                frame[at + 16..at + 18].fill(0);
            }
        }
    }

    /// What the reference says.
    pub(super) fn expect(&mut self, outcome: Outcome) {
        for fate in outcome.copies.iter().chain([&outcome.fate]) {
            match fate {
                Fate::Dropped(reason) => *self.drops.entry(reason.name()).or_default() += 1,
                Fate::Consumed => self.consumed += 1,
                Fate::Sent | Fate::Gathered | Fate::Held | Fate::Kept => {}
            }
        }
        self.sent.extend(outcome.sent.into_iter().map(|(port, frame)| Frame(port, frame)));
    }
}

/// How many flows are known by what they said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    http: usize,
    tls: usize,
    rtp: usize,
}

impl Known {
    pub(super) fn add(&mut self, reference: &Reference) {
        self.http += reference.known_by(Layer::Http);
        self.tls += reference.known_by(Layer::Tls);
        self.rtp += reference.known_by(Layer::Rtp);
    }

    /// Whether there are some of each.
    pub(super) const fn has_all(self) -> bool {
        self.http > 0 && self.tls > 0 && self.rtp > 0
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} flows known by HTTP, {} by TLS, {} by RTP", self.http, self.tls, self.rtp)
    }
}

/// Octets of all tags, customers', providers' and those of old: what is behind them stands so much later.
pub(super) fn tag_length(frame: &[u8]) -> usize {
    let is_tag =
        |at: &usize| matches!(frame.get(12 + at..14 + at), Some([0x81, 0] | [0x88, 0xa8] | [0x91, 0]));
    4 * (0..).step_by(4).take_while(is_tag).count()
}

/// Where a segment of TCP begins that stands in GTP-U, right behind IP, in a frame that we have sent.
pub(super) fn segment_in_tunnel(frame: &[u8]) -> Option<usize> {
    let word = |at: usize| Some(u16::from_be_bytes(frame.get(at..)?.first_chunk().copied()?));
    let ip = 14 + tag_length(frame);
    let gtpu = ip + 8 + if frame.get(ip)? >> 4 == 4 { 20 } else { 40 };
    if word(gtpu - 6)? != packet::gtpu::PORT {
        return None;
    }
    let optional = if frame.get(gtpu)? & 7 == 0 { 0 } else { 4 };
    let mut at = gtpu + 8 + optional;
    if frame.get(gtpu)? & 4 != 0 && *frame.get(at - 1)? != 0 {
        at += 4 * usize::from(*frame.get(at)?);
    }
    let (length, protocol) = match frame.get(at)? >> 4 {
        4 => (4 * usize::from(frame.get(at)? & 15), *frame.get(at + 9)?),
        _ => (40, *frame.get(at + 6)?),
    };
    (protocol == packet::protocol::TCP && frame.len() >= at + length + 20).then_some(at + length)
}

/// Leaves out of an Ethernet frame what tells fragments of one datagram of ours from those of another.
fn forget_identification(setup: &Setup, frame: &mut [u8]) {
    // All that is read here is behind it.
    let tag = tag_length(frame);
    let frame = &mut frame[tag..];
    let is_ours = |at: usize, is_ipv6: bool| {
        setup.ports.iter().any(|port| match is_ipv6 {
            false => frame.get(at..at + 4) == Some(&port.ipv4.addr().octets()),
            true => port.ipv6.is_some_and(|net| frame.get(at..at + 16) == Some(&net.addr().octets())),
        })
    };
    match frame {
        [..] if frame.get(12..14) == Some(&[8, 0]) && is_ours(26, false) => {
            let is_fragment = frame[20] & 0x3f != 0 || frame[21] != 0;
            if is_fragment {
                frame[18..20].fill(0);
                frame[24..26].fill(0);
            }
        }
        [..] if frame.get(12..14) == Some(&[0x86, 0xdd]) && is_ours(22, true) && frame[20] == 44 => {
            frame[58..62].fill(0);
        }
        _ => {}
    }
}

pub(super) fn drops(before: &Counters, after: &Counters) -> BTreeMap<&'static str, u64> {
    let counts = DropReason::ALL.iter().zip(before.drops.iter().zip(after.drops));
    let new = counts.map(|(reason, (before, after))| (reason.name(), after - before));
    // Packets kept for a user whose rules changed; the reference forgets them.
    new.filter(|(name, count)| *count > 0 && *name != "buffer_dropped").collect()
}

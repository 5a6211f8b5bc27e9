//! Puts together the fragments of UDP datagrams to us (RFC 791 3.2, RFC 8200 4.5).

use crate::Reference;
use crate::bytes::{checksum, u16_at};
use crate::congestion;
use crate::icmp::ToUs;
use crate::ip::{self, UDP};
use crate::outcome::{Fate, Outcome};
use crate::reason::DropReason;
use std::net::IpAddr;

/// Datagrams at once of one side, and of one sender there, the oldest first.
const DATAGRAMS_MAX: usize = 64;
const OF_ONE_SENDER_MAX: usize = 16;
/// Octets of one.
const LENGTH_MAX: usize = 2_000;
/// From its first fragment on.
const PATIENCE_NS: u64 = 1_000_000_000;

/// What has come of a datagram.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    port: usize,
    source: IpAddr,
    identification: u32,
    since_ns: u64,
    parts: Vec<Part>,
}

/// A fragment: where it begins, whether others follow, and what it holds.
#[derive(Clone, Debug)]
struct Part {
    traffic_class: u8,
    at: usize,
    more: bool,
    bytes: Vec<u8>,
}

impl Part {
    fn end(&self) -> usize {
        self.at + self.bytes.len()
    }

    fn makes_sense(&self) -> bool {
        let last_or_even = !self.more || self.bytes.len().is_multiple_of(8);
        !self.bytes.is_empty() && last_or_even && self.end() <= LENGTH_MAX
    }
}

impl Datagram {
    /// No two hold the same octets (RFC 5722), and none is behind the last one.
    fn makes_sense(&self) -> bool {
        let apart = |one: &Part, other: &Part| one.end() <= other.at || other.end() <= one.at;
        let before = |one: &Part, other: &Part| other.more || one.end() <= other.at;
        let fits = |(place, one): (usize, &Part)| {
            let others = self.parts.iter().enumerate().filter(|(at, _)| *at != place);
            one.makes_sense()
                && others.map(|(_, other)| other).all(|other| apart(one, other) && before(one, other))
        };
        self.parts.iter().enumerate().all(fits)
    }

    /// Whether a fragment brings nothing that is not there: a network may bring one twice (RFC 8200 4.5).
    fn has(&self, part: &Part) -> bool {
        let there = |at: usize| {
            let holds = |known: &&Part| (known.at..known.end()).contains(&at);
            let known = self.parts.iter().find(holds)?;
            known.bytes.get(at - known.at)
        };
        let ends = self.parts.iter().any(|known| !known.more && known.end() == part.end());
        let mut octets = part.bytes.iter().enumerate();
        part.makes_sense()
            && part.more != ends
            && octets.all(|(at, octet)| there(part.at + at) == Some(octet))
    }

    /// All of it, once it is there.
    fn whole(&self) -> Option<Vec<u8>> {
        let length = self.parts.iter().find(|part| !part.more)?.end();
        let mut parts = self.parts.clone();
        parts.sort_by_key(|part| part.at);
        let bytes: Vec<u8> = parts.into_iter().flat_map(|part| part.bytes).collect();
        (bytes.len() == length).then_some(bytes)
    }
}

impl Reference {
    /// A fragment of a UDP datagram: all but the one that makes it whole end here.
    pub(crate) fn receive_part(
        &mut self,
        to_us: ToUs<'_>,
        identification: u32,
    ) -> Result<Outcome, DropReason> {
        let now_ns = self.now_ns;
        self.datagrams.retain(|datagram| now_ns.saturating_sub(datagram.since_ns) <= PATIENCE_NS);
        let (port, source) = (to_us.port, to_us.header.source);
        let is_it = |known: &Datagram| {
            (known.port, known.source, known.identification) == (port, source, identification)
        };
        let mut given_up = 0;
        let mut datagram = match self.datagrams.iter().find(|known| is_it(known)) {
            Some(known) => known.clone(),
            None => {
                given_up = self.make_place(port, source)?;
                Datagram { port, source, identification, since_ns: now_ns, parts: Vec::new() }
            }
        };
        let waited = datagram.parts.len();
        let (units, more) = to_us.upper.fragment;
        let (at, bytes) = (8 * usize::from(units), to_us.payload().to_vec());
        let part = Part { traffic_class: to_us.header.traffic_class, at, more, bytes };
        if datagram.has(&part) {
            return Err(DropReason::BadFragment);
        }
        datagram.parts.push(part);
        let classes: Vec<u8> = datagram.parts.iter().map(|part| part.traffic_class).collect();
        // The others are of no use without a bad one, and not to be trusted with it.
        let (mut outcome, those) = match (datagram.makes_sense(), datagram.whole()) {
            (false, _) => (Err(DropReason::BadFragment).into(), Some(Fate::Dropped(DropReason::BadFragment))),
            (true, Some(bytes)) => {
                (self.receive_whole(to_us, (&classes, &bytes)).into(), Some(Fate::Consumed))
            }
            (true, None) => (Outcome::of(Fate::Gathered), None),
        };
        let known = self.datagrams.iter_mut().find(|known| is_it(known));
        match (those, known) {
            (Some(_), _) => self.datagrams.retain(|known| !is_it(known)),
            (None, Some(known)) => *known = datagram,
            (None, None) => self.datagrams.push(datagram),
        }
        outcome.copies.extend(those.into_iter().flat_map(|fate| vec![fate; waited]));
        outcome.copies.extend(vec![Fate::Dropped(DropReason::FragmentsIncomplete); given_up]);
        Ok(outcome)
    }

    /// Sees to it that there may be a further datagram of this sender. Where it has as many as it may, or all of its side
    /// together have, its oldest gives way: so many fragments.
    fn make_place(&mut self, port: usize, source: IpAddr) -> Result<usize, DropReason> {
        let direction = |port: usize| self.port(port).ok().map(|port| port.interface.direction());
        let is_of_side = |known: &Datagram| direction(known.port) == direction(port);
        let is_own = |known: &Datagram| is_of_side(known) && known.source == source;
        let count = |is: &dyn Fn(&Datagram) -> bool| self.datagrams.iter().filter(|known| is(known)).count();
        if count(&is_own) < OF_ONE_SENDER_MAX && count(&is_of_side) < DATAGRAMS_MAX {
            return Ok(0);
        }
        let oldest = self.datagrams.iter().position(is_own).ok_or(DropReason::FragmentsFull)?;
        Ok(self.datagrams.remove(oldest).parts.len())
    }

    /// Identifications come again soon, so that fragments of two datagrams may meet: the checksum, where there is one,
    /// tells (RFC 4963).
    fn receive_whole(
        &mut self,
        last: ToUs<'_>,
        (classes, datagram): (&[u8], &[u8]),
    ) -> Result<Outcome, DropReason> {
        let traffic_class = congestion::of_fragments(classes)?;
        let (source, destination) = (last.header.source, last.header.destination);
        let pseudo = match (source, destination) {
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                ip::pseudo_header(source, destination, UDP, datagram.len())
            }
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let length = (datagram.len() as u16).to_be_bytes();
                [&source.octets()[..], &destination.octets(), &[0, UDP], &length].concat()
            }
            _ => return Err(DropReason::BadFragment),
        };
        let has_checksum = u16_at(datagram, 6) != Some(0);
        if datagram.len() < 8 || has_checksum && checksum(&[&pseudo, datagram]) != 0 {
            return Err(DropReason::UdpChecksum);
        }
        let new = ip::New { protocol: UDP, traffic_class, hops: 64 };
        let packet = ip::packet(source, destination, new, datagram);
        let header = ip::read(&packet).ok_or(DropReason::BadFragment)?;
        let upper = header.upper(&packet).ok_or(DropReason::BadFragment)?;
        self.receive_udp(ToUs { packet: &packet, header, upper, ..last })
    }
}

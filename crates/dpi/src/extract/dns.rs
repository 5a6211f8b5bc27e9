//! DNS messages over UDP and TCP (RFC 1035): the question, and the addresses of an answer, those included that HTTPS and SVCB
//! records tell besides (RFC 9460 7.3).

mod service;
mod stream;

pub(super) use stream::{Begins, begins};
pub use stream::{Boundary, MESSAGES_MAX, in_segment};

use super::name::NAME_MAX;
use super::reader::Reader;
use arrayvec::ArrayVec;
use std::net::IpAddr;

/// The port of DNS.
pub const PORT: u16 = 53;

/// Bytes before the question.
const HEADER: usize = 12;
/// Most bytes of a label.
const LABEL_MAX: u8 = 63;
/// Most pointers of one name. Each leads backwards, so this bounds time, not more.
const POINTERS_MAX: usize = 16;
/// Most records of an answer that are looked at.
pub const RECORDS_MAX: usize = 64;

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
const INTERNET: u16 = 1;

/// A name: labels with dots between, in lower case.
pub type Name = ArrayVec<u8, NAME_MAX>;

/// A message with one question, as all that are sent have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    bytes: &'a [u8],
    /// What answer and query have in common.
    pub id: u16,
    /// It is an answer.
    pub is_response: bool,
    /// 0: no error (RFC 1035 4.1.1).
    pub code: u8,
    /// What is asked for: 1 is A, 28 is AAAA, 65 is HTTPS.
    pub kind: u16,
    answers: u16,
    /// Where they stand.
    answers_at: usize,
}

/// A record of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record<'a> {
    /// Where its name stands.
    owner_at: usize,
    kind: u16,
    ttl_s: u32,
    data: &'a [u8],
    data_at: usize,
}

impl<'a> Message<'a> {
    /// The message that fills a datagram; `None` where it is none, or has not one question for a name of the Internet.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let (id, flags) = (reader.u16()?, reader.u16()?);
        let (questions, answers) = (reader.u16()?, reader.u16()?);
        // Standard queries alone.
        if flags >> 11 & 0xf != 0 || questions != 1 {
            return None;
        }
        let mut length = 0;
        let after = walk(bytes, HEADER, |label| {
            length += label.len() + 1;
            (length <= NAME_MAX + 1 && is_plain(label)).then_some(())
        })?;
        let mut reader = Reader::new(bytes.get(after..)?);
        let (kind, class) = (reader.u16()?, reader.u16()?);
        (class == INTERNET).then_some(())?;
        let (is_response, code) = (flags >> 15 == 1, flags as u8 & 0xf);
        Some(Self { bytes, id, is_response, code, kind, answers, answers_at: after + 4 })
    }

    /// The name asked for.
    pub fn name(&self) -> Name {
        name_at(self.bytes, HEADER).unwrap_or_default()
    }

    /// Addresses of the name asked for, with the seconds they may be used: those of the records that belong to it, or to
    /// what it is an alias of (RFC 1034 3.6.2). Records are looked at in their order, [`RECORDS_MAX`] at most.
    ///
    /// Hints of HTTPS and SVCB records are addresses that clients speak to the name itself at, whatever the record's target
    /// (RFC 9460 9.1); but of names with a port or a service in front of them, those are of something else than that name.
    pub fn addresses(&self) -> impl Iterator<Item = (IpAddr, u32)> + use<'a> {
        let mut owner_at = HEADER;
        let mut ttl_of_aliases = u32::MAX;
        let bytes = self.bytes;
        // The first label's length, and the label.
        let is_of_service = bytes.get(HEADER + 1) == Some(&b'_');
        let of_name = self.records().filter_map(move |record| {
            if !is_same_name(bytes, record.owner_at, owner_at) {
                return None;
            }
            if record.kind == CNAME {
                owner_at = record.data_at;
                ttl_of_aliases = ttl_of_aliases.min(record.ttl_s);
            }
            Some((record.addresses(is_of_service), record.ttl_s.min(ttl_of_aliases)))
        });
        of_name.flat_map(|(addresses, ttl_s)| addresses.map(move |address| (address, ttl_s)))
    }

    fn records(&self) -> impl Iterator<Item = Record<'a>> + use<'a> {
        let (bytes, mut at) = (self.bytes, self.answers_at);
        let count = usize::from(self.answers).min(RECORDS_MAX);
        (0..count).map_while(move |_| {
            let (record, next) = record_at(bytes, at)?;
            at = next;
            Some(record)
        })
    }
}

impl<'a> Record<'a> {
    /// What it says of addresses. `is_of_service`: its name has a service in front of it.
    fn addresses(&self, is_of_service: bool) -> impl Iterator<Item = IpAddr> + use<'a> {
        let (four, six) = match self.kind {
            A if self.data.len() == 4 => (self.data, &[][..]),
            AAAA if self.data.len() == 16 => (&[][..], self.data),
            service::SVCB | service::HTTPS if !is_of_service => service::hints(self.data).unwrap_or_default(),
            _ => Default::default(),
        };
        let (four, _) = four.as_chunks::<4>();
        let (six, _) = six.as_chunks::<16>();
        four.iter().map(|octets| IpAddr::from(*octets)).chain(six.iter().map(|octets| IpAddr::from(*octets)))
    }
}

fn record_at(bytes: &[u8], at: usize) -> Option<(Record<'_>, usize)> {
    let mut reader = Reader::new(bytes.get(behind_name(bytes, at)?..)?);
    let (kind, _class, ttl_s) = (reader.u16()?, reader.u16()?, reader.u32()?);
    let data = reader.counted16()?;
    let end = bytes.len() - reader.rest().len();
    Some((Record { owner_at: at, kind, ttl_s, data, data_at: end - data.len() }, end))
}

/// Takes the labels of the name at a place, over its pointers (RFC 1035 4.1.4); the place behind it.
fn walk(bytes: &[u8], at: usize, mut take: impl FnMut(&[u8]) -> Option<()>) -> Option<usize> {
    let (mut place, mut after) = (at, None);
    let mut pointers = 0;
    loop {
        let length = *bytes.get(place)?;
        match length {
            0 => return Some(after.unwrap_or(place + 1)),
            1..=LABEL_MAX => {
                let end = place + 1 + usize::from(length);
                take(bytes.get(place + 1..end)?)?;
                place = end;
            }
            _ => {
                let target = pointer(bytes, place)?;
                after.get_or_insert(place + 2);
                pointers += 1;
                if target >= place || pointers > POINTERS_MAX {
                    return None;
                }
                place = target;
            }
        }
    }
}

/// Where a pointer at this place leads; `None` where none stands.
fn pointer(bytes: &[u8], at: usize) -> Option<usize> {
    let [high, low] = *bytes.get(at..)?.first_chunk()?;
    (high >= 0xc0).then_some(usize::from(high & 0x3f) << 8 | usize::from(low))
}

/// The place behind a name, whatever its pointer leads to.
fn behind_name(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *bytes.get(at)? {
            0 => return Some(at + 1),
            length @ 1..=LABEL_MAX => at += 1 + usize::from(length),
            0xc0.. => return Some(at + 2),
            _ => return None,
        }
    }
}

/// Whether the names at two places are the same. Mostly both places are, as senders point at what they said before.
fn is_same_name(bytes: &[u8], one: usize, other: usize) -> bool {
    let place = |at: usize| pointer(bytes, at).unwrap_or(at);
    if place(one) == place(other) {
        return true;
    }
    let name = name_at(bytes, one);
    name.is_some() && name == name_at(bytes, other)
}

/// The name that stands at a place.
fn name_at(bytes: &[u8], at: usize) -> Option<Name> {
    let mut name = Name::new();
    walk(bytes, at, |label| {
        if !name.is_empty() {
            name.try_push(b'.').ok()?;
        }
        name.try_extend_from_slice(label).ok()?;
        is_plain(label).then_some(())
    })?;
    name.make_ascii_lowercase();
    Some(name)
}

/// A dot within a label would make it two.
fn is_plain(label: &[u8]) -> bool {
    label.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'.')
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn put_name(out: &mut Vec<u8>, name: &str) {
        for label in name.split('.') {
            out.push(label.len() as u8);
            out.extend(label.as_bytes());
        }
        out.push(0);
    }

    /// A message for tests: a question, and addresses behind as many aliases as are given.
    pub(crate) fn sample(
        (id, name, flags): (u16, &str, u16),
        aliases: &[&str],
        addresses: &[IpAddr],
    ) -> Vec<u8> {
        let mut out = vec![];
        let count = (aliases.len() + addresses.len()) as u16;
        [id, flags, 1, count, 0, 0].iter().for_each(|number| out.extend(number.to_be_bytes()));
        put_name(&mut out, name);
        out.extend([0, if addresses.iter().any(IpAddr::is_ipv6) { 28 } else { 1 }, 0, 1]);
        let mut owner = name.to_owned();
        let record = |out: &mut Vec<u8>, owner: &str, kind: u8, data: &[u8]| {
            if owner == name {
                out.extend([0xc0, 12])
            } else {
                put_name(out, owner)
            }
            out.extend([0, kind, 0, 1, 0, 0, 0, 60, 0, data.len() as u8]);
            out.extend(data);
        };
        for alias in aliases {
            let mut data = vec![];
            put_name(&mut data, alias);
            record(&mut out, &owner, 5, &data);
            owner = (*alias).to_owned();
        }
        for address in addresses {
            match address {
                IpAddr::V4(address) => record(&mut out, &owner, 1, &address.octets()),
                IpAddr::V6(address) => record(&mut out, &owner, 28, &address.octets()),
            }
        }
        out
    }

    pub(crate) const QUERY: u16 = 0x0100;
    pub(crate) const RESPONSE: u16 = 0x8180;

    fn addresses(bytes: &[u8]) -> Vec<(IpAddr, u32)> {
        Message::parse(bytes).unwrap().addresses().collect()
    }

    #[test]
    fn answers_lead_over_aliases_to_addresses() {
        let [one, two] = [1, 2].map(|last| IpAddr::from(Ipv4Addr::new(192, 0, 2, last)));
        let bytes = sample((7, "WWW.a.example", RESPONSE), &[], &[one, two]);
        let message = Message::parse(&bytes).unwrap();
        assert_eq!((message.id, message.is_response, message.kind), (7, true, 1));
        assert_eq!(message.name().as_slice(), b"www.a.example");
        assert_eq!(addresses(&bytes), [(one, 60), (two, 60)]);
        let bytes = sample((7, "www.a.example", RESPONSE), &["b.example", "c.b.example"], &[one]);
        assert_eq!(addresses(&bytes), [(one, 60)]);
        let six: IpAddr = "2001:db8::1".parse().unwrap();
        assert_eq!(addresses(&sample((7, "a.example", RESPONSE), &[], &[six])), [(six, 60)]);
    }

    #[test]
    fn records_of_other_names_are_not_its_addresses() {
        let mut bytes = sample((7, "a.example", RESPONSE), &[], &[]);
        bytes[7] = 1;
        put_name(&mut bytes, "b.example");
        bytes.extend([0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
        assert_eq!(addresses(&bytes), []);
    }

    #[test]
    fn every_message_cut_short_is_none_or_has_fewer_addresses() {
        let address = IpAddr::from(Ipv4Addr::LOCALHOST);
        let bytes = sample((7, "www.a.example", RESPONSE), &["b.example"], &[address]);
        for end in 0..bytes.len() {
            let found = Message::parse(&bytes[..end]).map_or(0, |message| message.addresses().count());
            assert_eq!(found, 0, "{end}");
        }
    }

    #[test]
    fn names_that_lead_round_are_none() {
        let mut bytes = sample((7, "a.example", QUERY), &[], &[]);
        bytes[12..14].copy_from_slice(&[0xc0, 12]);
        assert_eq!(Message::parse(&bytes), None);
        bytes[12..14].copy_from_slice(&[0xc0, 200]);
        assert_eq!(Message::parse(&bytes), None);
        bytes[12] = 0x40;
        assert_eq!(Message::parse(&bytes), None);
        // Backwards over all that stands before: at most sixteen.
        let mut chain = vec![0; 200];
        (2..200).step_by(2).for_each(|at| chain[at..at + 2].copy_from_slice(&[0xc0, at as u8 - 2]));
        assert!(name_at(&chain, 32).is_some() && name_at(&chain, 36).is_none());
        assert_eq!(behind_name(&chain, 36), Some(38));
    }
}

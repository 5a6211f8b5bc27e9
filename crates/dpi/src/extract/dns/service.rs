//! SVCB and HTTPS records (RFC 9460): the addresses they tell.

use super::super::reader::Reader;

pub(super) const SVCB: u16 = 64;
pub(super) const HTTPS: u16 = 65;

/// Keys of parameters (RFC 9460 14.3.2).
const IPV4_HINT: u16 = 4;
const IPV6_HINT: u16 = 6;
/// Most bytes of a label.
const LABEL_MAX: u8 = 63;

/// The addresses that the data of a record hints at: octets of IPv4, and of IPv6. `None` for a record that has to be
/// passed over: one that is an alias (RFC 9460 2.4.2), or whose parameters are not in order (2.2).
pub(super) fn hints(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader::new(data);
    let priority = reader.u16()?;
    (priority != 0).then_some(())?;
    pass_name(&mut reader)?;
    let (mut four, mut six) = (&[][..], &[][..]);
    let mut last = None;
    while !reader.rest().is_empty() {
        let key = reader.u16()?;
        let value = reader.counted16()?;
        last.is_none_or(|last| last < key).then_some(())?;
        last = Some(key);
        match key {
            IPV4_HINT => four = whole(value, 4)?,
            IPV6_HINT => six = whole(value, 16)?,
            _ => {}
        }
    }
    Some((four, six))
}

/// One address at least, and all of each (RFC 9460 7.3).
fn whole(value: &[u8], length: usize) -> Option<&[u8]> {
    (!value.is_empty() && value.len().is_multiple_of(length)).then_some(value)
}

/// The target's name, which is never compressed (RFC 9460 2.2).
fn pass_name(reader: &mut Reader<'_>) -> Option<()> {
    loop {
        match reader.u8()? {
            0 => return Some(()),
            length @ 1..=LABEL_MAX => drop(reader.take(length.into())?),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Message;
    use super::super::tests::{RESPONSE, sample};
    use std::net::IpAddr;

    /// What follows priority and target.
    fn parameters(all: &[(u16, &[u8])]) -> Vec<u8> {
        let one = |(key, value): &(u16, &[u8])| {
            [&key.to_be_bytes()[..], &(value.len() as u16).to_be_bytes(), value].concat()
        };
        all.iter().flat_map(one).collect()
    }

    /// An answer with one record of the name asked for.
    fn answer(name: &str, kind: u8, data: &[u8]) -> Vec<u8> {
        let mut bytes = sample((7, name, RESPONSE), &[], &[]);
        bytes[7] = 1;
        let kind_at = bytes.len() - 3;
        bytes[kind_at] = kind;
        bytes.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 1, 44, 0, data.len() as u8]);
        bytes.extend(data);
        bytes
    }

    fn told(bytes: &[u8]) -> Vec<(IpAddr, u32)> {
        Message::parse(bytes).unwrap().addresses().collect()
    }

    const FOUR: &[u8] = &[192, 0, 2, 1, 192, 0, 2, 2];
    const SIX: &[u8] = &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

    fn expected() -> Vec<(IpAddr, u32)> {
        ["192.0.2.1", "192.0.2.2", "2001:db8::1"].map(|address| (address.parse().unwrap(), 300)).to_vec()
    }

    #[test]
    fn hints_are_addresses_of_the_name_asked_for() {
        let hints = parameters(&[(1, b"\x02h2"), (4, FOUR), (6, SIX)]);
        let own = [&[0, 1, 0][..], &hints].concat();
        for kind in [64, 65] {
            assert_eq!(told(&answer("a.example", kind, &own)), expected());
        }
        // What leads to another host is for the same name.
        let elsewhere = [&[0, 16, 3][..], b"cdn", &[0], &hints].concat();
        assert_eq!(told(&answer("a.example", 65, &elsewhere)), expected());
        // Of any other kind it says nothing.
        assert_eq!(told(&answer("a.example", 16, &own)), []);
    }

    #[test]
    fn what_is_no_hint_is_passed_over() {
        let record = |priority: u8, all: &[(u16, &[u8])]| {
            answer("a.example", 65, &[&[0, priority, 0][..], &parameters(all)].concat())
        };
        assert_eq!(told(&record(1, &[(4, FOUR)])).len(), 2);
        assert_eq!(told(&record(0, &[(4, FOUR)])), [], "an alias");
        assert_eq!(told(&record(1, &[(6, SIX), (4, FOUR)])), [], "out of order");
        assert_eq!(told(&record(1, &[(4, FOUR), (4, FOUR)])), [], "twice");
        assert_eq!(told(&record(1, &[(4, &FOUR[..7])])), [], "half an address");
        assert_eq!(told(&record(1, &[(4, &[])])), [], "none");
        let service = [&[0, 1, 0][..], &parameters(&[(4, FOUR)])].concat();
        assert_eq!(told(&answer("_dns.resolver.arpa", 64, &service)), []);
    }

    #[test]
    fn every_record_cut_short_says_nothing() {
        let data = [&[0, 1, 0][..], &parameters(&[(4, FOUR), (6, SIX)])].concat();
        let bounds = [3, 3 + 12];
        for end in 0..data.len() {
            let found = told(&answer("a.example", 65, &data[..end])).len();
            assert_eq!(found, if bounds[1] == end { 2 } else { 0 }, "{end}");
        }
    }
}

//! Who the user is, as PFCP tells it.

use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// A slice (TS 23.003 28.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Slice/service type.
    pub sst: u8,
    /// Slice differentiator.
    pub sd: Option<[u8; 3]>,
}

impl Slice {
    /// From the S-NSSAI of TS 29.244 8.2.176: the differentiator is `FFFFFF` where there is none.
    pub fn read(octets: &[u8]) -> Option<Self> {
        let (sst, sd) = octets.split_first()?;
        let sd: Option<[u8; 3]> = sd.get(..3).and_then(|sd| sd.try_into().ok());
        Some(Self { sst: *sst, sd: sd.filter(|sd| *sd != [0xFF; 3]) })
    }
}

/// What is known of a user and the user's session; control planes tell more or less.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// 6 to 15 digits.
    pub imsi: Option<String>,
    /// 1 to 15 digits, international.
    pub msisdn: Option<String>,
    /// 14 to 16 digits.
    pub imei: Option<String>,
    /// The network access identifier.
    pub nai: Option<String>,
    /// A SUPI that is none of these (`gci-`, `gli-`), as it is.
    pub supi: Option<String>,
    /// A GPSI that is none of these (`extid-`), as it is.
    pub gpsi: Option<String>,
    /// A PEI that is none of these (`mac-`, `eui-`), as it is.
    pub pei: Option<String>,
    /// The data network: APN or DNN, or else the network instance.
    pub dnn: Option<String>,
    /// The slice.
    pub slice: Option<Slice>,
    /// The user's address.
    pub ipv4: Option<Ipv4Addr>,
    /// The user's address or prefix, with its length.
    pub ipv6: Option<(Ipv6Addr, u8)>,
}

/// No name is longer (TS 23.003 9.1).
const NAME_MAX: usize = 100;
const IMSI_DIGITS: RangeInclusive<usize> = 6..=15;
const MSISDN_DIGITS: RangeInclusive<usize> = 1..=15;

impl User {
    /// Takes what a User ID says (TS 29.244 8.2.101): flags, and a length and value for each that is set, in the order
    /// of their bits. What cannot be read ends the reading.
    pub fn read_user_id(&mut self, octets: &[u8]) {
        const IMSI: u8 = 0;
        const IMEI: u8 = 1;
        const MSISDN: u8 = 2;
        const NAI: u8 = 3;
        const SUPI: u8 = 4;
        const GPSI: u8 = 5;
        const PEI: u8 = 6;
        let Some((flags, mut rest)) = octets.split_first() else { return };
        for bit in (IMSI..=PEI).filter(|bit| flags & 1 << bit != 0) {
            let Some((length, after)) = rest.split_first() else { return };
            let Some((value, after)) = after.split_at_checked(usize::from(*length)) else { return };
            rest = after;
            match bit {
                IMSI => self.imsi = digits(value, IMSI_DIGITS),
                IMEI => self.imei = digits(value, 14..=16),
                MSISDN => self.msisdn = digits(value, MSISDN_DIGITS),
                NAI => self.nai = name(value),
                SUPI => self.take_supi(value),
                GPSI => self.take_gpsi(value),
                _ => self.take_pei(value),
            }
        }
    }

    /// A SUPI (TS 29.571 5.3.2). What has a field of its own goes there, unless that was told already.
    fn take_supi(&mut self, value: &[u8]) {
        match form(value) {
            Some(("imsi", it)) => fill(&mut self.imsi, decimal(it, IMSI_DIGITS)),
            Some(("nai", it)) => fill(&mut self.nai, name(it.as_bytes())),
            _ => self.supi = name(value),
        }
    }

    /// A GPSI (TS 29.571 5.3.2).
    fn take_gpsi(&mut self, value: &[u8]) {
        match form(value) {
            Some(("msisdn", it)) => fill(&mut self.msisdn, decimal(it, MSISDN_DIGITS)),
            _ => self.gpsi = name(value),
        }
    }

    /// A PEI (TS 29.571 5.3.2).
    fn take_pei(&mut self, value: &[u8]) {
        match form(value) {
            Some(("imei", it)) => fill(&mut self.imei, decimal(it, 14..=15)),
            Some(("imeisv", it)) => fill(&mut self.imei, decimal(it, 16..=16)),
            _ => self.pei = name(value),
        }
    }
}

/// The form of a name of 5G, and what is behind it.
fn form(value: &[u8]) -> Option<(&str, &str)> {
    std::str::from_utf8(value).ok()?.split_once('-')
}

fn fill(field: &mut Option<String>, value: Option<String>) {
    *field = field.take().or(value);
}

/// Digits that are written as such.
fn decimal(text: &str, allowed: RangeInclusive<usize>) -> Option<String> {
    let is_right = allowed.contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit());
    is_right.then(|| text.to_owned())
}

/// Digits, the lower half of an octet first; the last half may be filled up (TS 29.002 TBCD-STRING).
fn digits(octets: &[u8], allowed: RangeInclusive<usize>) -> Option<String> {
    let mut halves: Vec<u8> = octets.iter().flat_map(|octet| [octet & 15, octet >> 4]).collect();
    halves.pop_if(|half| *half == 15);
    let text: Option<String> = halves.iter().map(|half| char::from_digit(u32::from(*half), 10)).collect();
    text.filter(|text| allowed.contains(&text.len()))
}

/// Printable text.
fn name(octets: &[u8]) -> Option<String> {
    let is_right = (1..=NAME_MAX).contains(&octets.len()) && octets.iter().all(u8::is_ascii_graphic);
    is_right.then(|| String::from_utf8(octets.to_vec()).ok())?
}

/// Two digits an octet, the first in the lower half.
pub(crate) fn tbcd(digits: &str) -> Vec<u8> {
    let halves: Vec<u8> = digits.bytes().map(|digit| digit.wrapping_sub(b'0') & 15).collect();
    halves.chunks(2).map(|pair| pair.first().unwrap_or(&15) | pair.get(1).unwrap_or(&15) << 4).collect()
}

/// The digits of [`tbcd`], for people.
pub(crate) fn from_tbcd(octets: &[u8]) -> Option<String> {
    digits(octets, 1..=40)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_id_is_read() {
        let mut octets = vec![0b1111];
        for value in
            [&[0x00, 0x01, 0x01, 0x32, 0x54, 0x76, 0x98, 0xF0][..], &[0x53; 8], &[0x94, 0x71, 0xF2], b"a@b"]
        {
            octets.push(value.len() as u8);
            octets.extend(value);
        }
        let mut user = User::default();
        user.read_user_id(&octets);
        assert_eq!(user.imsi.as_deref(), Some("001010234567890"));
        assert_eq!(user.imei.as_deref(), Some("3535353535353535"));
        assert_eq!(user.msisdn.as_deref(), Some("49172"));
        assert_eq!(user.nai.as_deref(), Some("a@b"));
        assert_eq!(tbcd("49172"), [0x94, 0x71, 0xF2]);
        assert_eq!(from_tbcd(&tbcd("001010234567890")).as_deref(), Some("001010234567890"));
    }

    /// A User ID of names alone, with the bits of them.
    fn named(flags: u8, names: &[&str]) -> User {
        let names = names.iter().flat_map(|name| [&[name.len() as u8], name.as_bytes()].concat());
        let octets: Vec<u8> = std::iter::once(flags).chain(names).collect();
        let mut user = User::default();
        user.read_user_id(&octets);
        user
    }

    /// The order is as tshark 4.0 reads it: SUPI, GPSI, PEI, behind the NAI.
    #[test]
    fn names_of_5g_are_read() {
        let told = ["imsi-001010234567890", "msisdn-49172", "imeisv-3535353535353535"];
        let user = named(0b111_0000, &told);
        assert_eq!(user.imsi.as_deref(), Some("001010234567890"));
        assert_eq!((user.msisdn.as_deref(), user.imei.as_deref()), (Some("49172"), Some("3535353535353535")));
        assert_eq!((user.supi, user.gpsi, user.pei), (None, None, None), "told once");
        let user = named(0b101_0000, &["nai-a-b@c", "imei-353535353535353"]);
        assert_eq!((user.nai.as_deref(), user.imei.as_deref()), (Some("a-b@c"), Some("353535353535353")));
        let others = ["gci-00-11@line", "extid-a@b", "mac-00-00-5E-00-53-01"];
        let user = named(0b111_0000, &others);
        let kept = [user.supi.as_deref(), user.gpsi.as_deref(), user.pei.as_deref()];
        assert_eq!(kept, others.map(Some));
        assert_eq!((user.imsi, user.nai, user.msisdn, user.imei), (None, None, None, None));
        assert_eq!(named(0b001_1000, &["told@first", "nai-second"]).nai.as_deref(), Some("told@first"));
        let malformed = ["imsi-12ab56", "msisdn-", "imei-12345678901234567"];
        assert_eq!(named(0b111_0000, &malformed), User::default());
        assert_eq!(named(0b011_0000, &["nai-", "\u{7}"]), User::default());
    }

    #[test]
    fn what_is_no_user_id_names_nobody() {
        let wrong: [&[u8]; 8] = [
            &[],
            &[1],
            &[1, 200, 1],
            &[1, 2, 0xAA, 0xAA],
            &[8, 2, 0xFF, 0xFE],
            &[1, 0],
            &[16, 9, b'i', b'm'],
            &[0x70, 1, 0xFF],
        ];
        for octets in wrong {
            let mut user = User::default();
            user.read_user_id(octets);
            assert_eq!(user, User::default(), "{octets:?}");
        }
    }

    #[test]
    fn slices_may_have_no_differentiator() {
        assert_eq!(Slice::read(&[1, 0xFF, 0xFF, 0xFF]), Some(Slice { sst: 1, sd: None }));
        assert_eq!(Slice::read(&[1, 0, 0, 9]), Some(Slice { sst: 1, sd: Some([0, 0, 9]) }));
        assert_eq!((Slice::read(&[1]), Slice::read(&[])), (Some(Slice { sst: 1, sd: None }), None));
    }
}

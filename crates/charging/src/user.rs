//! Who the user is, as PFCP tells it.

use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, Ipv6Addr};

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

impl User {
    /// Takes what a User ID says (TS 29.244 8.2.101): flags, and a length and value for each that is set, in the order
    /// of their bits. What cannot be read ends the reading.
    pub fn read_user_id(&mut self, octets: &[u8]) {
        const IMSI: u8 = 0;
        const IMEI: u8 = 1;
        const MSISDN: u8 = 2;
        const NAI: u8 = 3;
        let Some((flags, mut rest)) = octets.split_first() else { return };
        for bit in (IMSI..=NAI).filter(|bit| flags & 1 << bit != 0) {
            let Some((length, after)) = rest.split_first() else { return };
            let Some((value, after)) = after.split_at_checked(usize::from(*length)) else { return };
            rest = after;
            match bit {
                IMSI => self.imsi = digits(value, 6..=15),
                IMEI => self.imei = digits(value, 14..=16),
                MSISDN => self.msisdn = digits(value, 1..=15),
                _ => self.nai = name(value),
            }
        }
    }
}

/// Digits, the lower half of an octet first; the last half may be filled up (TS 29.002 TBCD-STRING).
fn digits(octets: &[u8], allowed: std::ops::RangeInclusive<usize>) -> Option<String> {
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

    #[test]
    fn what_is_no_user_id_names_nobody() {
        for octets in [&[][..], &[1], &[1, 200, 1], &[1, 2, 0xAA, 0xAA], &[8, 2, 0xFF, 0xFE], &[1, 0]] {
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

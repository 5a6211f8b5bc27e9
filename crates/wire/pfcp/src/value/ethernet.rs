//! What stands in the headers of Ethernet frames.

use super::take;
use crate::ErrorKind;
use crate::fields::Value;

/// A MAC address.
pub type Mac = [u8; 6];

/// MAC address (TS 29.244 8.2.93). With an upper address, a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MacAddresses {
    /// SOUR.
    pub source: Option<Mac>,
    /// DEST.
    pub destination: Option<Mac>,
    /// USOU: the last source.
    pub upper_source: Option<Mac>,
    /// UDES: the last destination.
    pub upper_destination: Option<Mac>,
}

impl Value for MacAddresses {
    fn read(mut bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let rest = &mut bytes;
        let [flags] = take(rest, ie)?;
        let mut next = |bit: u8| (flags & (1 << bit) != 0).then(|| take(rest, ie)).transpose();
        Ok(Self {
            source: next(0)?,
            destination: next(1)?,
            upper_source: next(2)?,
            upper_destination: next(3)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let all = [self.source, self.destination, self.upper_source, self.upper_destination];
        out.push(all.iter().rev().fold(0, |flags, address| flags << 1 | u8::from(address.is_some())));
        out.extend(all.iter().flatten().flatten());
    }
}

/// C-TAG and S-TAG (TS 29.244 8.2.94, 8.2.95).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// PCP, 3 bits.
    pub priority: Option<u8>,
    /// DEI.
    pub drop_eligible: Option<bool>,
    /// VID, 12 bits.
    pub id: Option<u16>,
}

impl Value for VlanTag {
    fn read(mut bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let [flags, high, low] = take(&mut bytes, ie)?;
        let has = |bit: u8| flags & (1 << bit) != 0;
        Ok(Self {
            priority: has(0).then_some(high & 7),
            drop_eligible: has(1).then_some(high & 8 != 0),
            id: has(2).then_some(u16::from_be_bytes([high >> 4, low])),
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let flags = u8::from(self.priority.is_some())
            | u8::from(self.drop_eligible.is_some()) << 1
            | u8::from(self.id.is_some()) << 2;
        let [high, low] = (self.id.unwrap_or(0) & 0x0FFF).to_be_bytes();
        let eligible = u8::from(self.drop_eligible == Some(true)) << 3;
        out.extend([flags, high << 4 | eligible | self.priority.unwrap_or(0) & 7, low]);
    }
}

/// MAC Addresses Detected and MAC Addresses Removed (TS 29.244 8.2.103, 8.2.104): at most 255 addresses, all seen with
/// the same tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MacAddressList {
    /// The addresses.
    pub addresses: Vec<Mac>,
    /// The customer's tag.
    pub c_tag: Option<VlanTag>,
    /// The provider's tag.
    pub s_tag: Option<VlanTag>,
}

impl MacAddressList {
    /// Without tags.
    pub const fn of(addresses: Vec<Mac>) -> Self {
        Self { addresses, c_tag: None, s_tag: None }
    }
}

impl Value for MacAddressList {
    fn read(mut bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let rest = &mut bytes;
        let [count] = take(rest, ie)?;
        let addresses = (0..count).map(|_| take(rest, ie)).collect::<Result<_, _>>()?;
        Ok(Self { addresses, c_tag: tag(rest, ie)?, s_tag: tag(rest, ie)? })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let most = self.addresses.len().min(usize::from(u8::MAX));
        out.push(most as u8);
        out.extend(self.addresses.iter().take(most).flatten());
        for tag in [self.c_tag, self.s_tag] {
            out.push(if tag.is_some() { 3 } else { 0 });
            tag.iter().for_each(|tag| tag.write(out));
        }
    }
}

/// Behind its length; some leave out the lengths of tags that are not there.
fn tag(bytes: &mut &[u8], ie: u16) -> Result<Option<VlanTag>, ErrorKind> {
    let Some((length, rest)) = bytes.split_first() else { return Ok(None) };
    let (tag, rest) = rest.split_at_checked(usize::from(*length)).ok_or(ErrorKind::InvalidLength(ie))?;
    *bytes = rest;
    if tag.is_empty() { Ok(None) } else { VlanTag::read(tag, ie).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: &impl Value) -> Vec<u8> {
        let mut out = Vec::new();
        value.write(&mut out);
        out
    }

    #[test]
    fn addresses_stand_in_the_order_of_their_flags() {
        let range =
            MacAddresses { source: Some([1; 6]), upper_source: Some([2; 6]), ..MacAddresses::default() };
        assert_eq!(written(&range), [&[0b101][..], &[1; 6], &[2; 6]].concat());
        assert_eq!(MacAddresses::read(&written(&range), 133), Ok(range));
        assert_eq!(MacAddresses::read(&[0b11, 0, 0, 0, 0, 0, 0], 133), Err(ErrorKind::InvalidLength(133)));
    }

    #[test]
    fn a_tag_shares_an_octet() {
        let tag = VlanTag { priority: Some(5), drop_eligible: Some(true), id: Some(0xABC) };
        assert_eq!(written(&tag), [0b111, 0xAD, 0xBC]);
        assert_eq!(VlanTag::read(&[0b111, 0xAD, 0xBC], 134), Ok(tag));
        let id = VlanTag { id: Some(7), ..VlanTag::default() };
        assert_eq!(written(&id), [0b100, 0, 7]);
    }

    #[test]
    fn lists_say_how_long_their_tags_are() {
        let list = MacAddressList {
            c_tag: Some(VlanTag { id: Some(7), ..VlanTag::default() }),
            ..MacAddressList::of(vec![[3; 6], [4; 6]])
        };
        assert_eq!(written(&list), [&[2][..], &[3; 6], &[4; 6], &[3, 0b100, 0, 7, 0]].concat());
        assert_eq!(MacAddressList::read(&written(&list), 144), Ok(list));
        assert_eq!(MacAddressList::read(&[1, 9, 9, 9, 9, 9, 9], 144), Ok(MacAddressList::of(vec![[9; 6]])));
        assert!(MacAddressList::read(&[2, 9, 9, 9, 9, 9, 9], 144).is_err());
        assert!(MacAddressList::read(&[0, 4, 1], 144).is_err());
    }
}

//! Tags, lengths and values of BER (ITU-T X.690), for writing.

pub(super) const INTEGER: u8 = 2;
pub(super) const OCTET_STRING: u8 = 4;
pub(super) const ENUMERATED: u8 = 10;

const CONTEXT: u8 = 0x80;
const CONSTRUCTED: u8 = 0x20;

/// Writes elements one behind the other. Numbers are those of context-specific tags.
#[derive(Debug, Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn into_octets(self) -> Vec<u8> {
        self.0
    }

    /// A value of octets.
    pub(super) fn octets(&mut self, number: u32, value: &[u8]) {
        self.tag(CONTEXT, number);
        self.value(value);
    }

    /// An `INTEGER`, or an `ENUMERATED`, which looks the same.
    pub(super) fn integer(&mut self, number: u32, value: u64) {
        self.octets(number, &integer(value));
    }

    /// A `SEQUENCE`, a `SET`, a list of either, or the explicit tag of a choice.
    pub(super) fn constructed(&mut self, number: u32, fill: impl FnOnce(&mut Self)) {
        self.tag(CONTEXT | CONSTRUCTED, number);
        let mut inner = Self::default();
        fill(&mut inner);
        self.value(&inner.0);
    }

    /// A value without a tag of its own.
    pub(super) fn universal(&mut self, number: u8, value: &[u8]) {
        self.0.push(number);
        self.value(value);
    }

    /// A `SEQUENCE` in a list.
    pub(super) fn sequence(&mut self, fill: impl FnOnce(&mut Self)) {
        const SEQUENCE: u8 = 0x30;
        let mut inner = Self::default();
        fill(&mut inner);
        self.universal(SEQUENCE, &inner.0);
    }

    /// A `BIT STRING` of which so many bits are set, the first being the highest of the first octet.
    pub(super) fn bits(&mut self, number: u32, set: &[u8]) {
        let length = set.iter().max().map_or(0, |last| last / 8 + 1);
        let unused = set.iter().max().map_or(0, |last| 7 - last % 8);
        let octet =
            |at: u8| set.iter().filter(|bit| **bit / 8 == at).fold(0, |all, bit| all | 0x80 >> (bit % 8));
        let value: Vec<u8> = std::iter::once(unused).chain((0..length).map(octet)).collect();
        self.octets(number, &value);
    }

    /// Numbers from 31 on follow in octets of seven bits.
    fn tag(&mut self, kind: u8, number: u32) {
        match number {
            0..31 => self.0.push(kind | number as u8),
            _ => {
                self.0.push(kind | 31);
                let more = |shift: u32| (number >> shift != 0).then_some(0x80 | (number >> shift) as u8);
                self.0.extend([28, 21, 14, 7].into_iter().filter_map(more));
                self.0.push((number & 0x7F) as u8);
            }
        }
    }

    fn value(&mut self, value: &[u8]) {
        match value.len() {
            length @ 0..128 => self.0.push(length as u8),
            length => {
                let octets = length.to_be_bytes();
                let octets = octets.iter().skip_while(|octet| **octet == 0);
                self.0.push(0x80 | octets.clone().count() as u8);
                self.0.extend(octets);
            }
        }
        self.0.extend(value);
    }
}

/// The shortest two's complement of a number that is not negative.
pub(super) fn integer(value: u64) -> Vec<u8> {
    let octets: Vec<u8> = std::iter::once(0).chain(value.to_be_bytes()).collect();
    let needless = octets.windows(2).take_while(|pair| matches!(pair, [0, next] if *next < 0x80)).count();
    octets.into_iter().skip(needless).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(with: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut writer = Writer::default();
        with(&mut writer);
        writer.into_octets()
    }

    /// Examples worked out by hand from X.690 8.1.2, 8.1.3, 8.3 and 8.6.
    #[test]
    fn elements_are_written_as_they_should_be() {
        assert_eq!(written(|it| it.integer(0, 0)), [0x80, 1, 0]);
        assert_eq!(written(|it| it.integer(5, 127)), [0x85, 1, 127]);
        assert_eq!(written(|it| it.integer(30, 128)), [0x9E, 2, 0, 128]);
        assert_eq!(written(|it| it.integer(31, 256)), [0x9F, 31, 2, 1, 0]);
        assert_eq!(written(|it| it.integer(1, u64::MAX))[..3], [0x81, 9, 0]);
        assert_eq!(written(|it| it.constructed(200, |_| ())), [0xBF, 0x81, 0x48, 0]);
        assert_eq!(written(|it| it.bits(8, &[3])), [0x88, 2, 4, 0x10]);
        assert_eq!(written(|it| it.bits(8, &[0, 25])), [0x88, 5, 6, 0x80, 0, 0, 0x40]);
        assert_eq!(written(|it| it.bits(8, &[])), [0x88, 1, 0]);
        assert_eq!(written(|it| it.octets(2, &[7; 128]))[..3], [0x82, 0x81, 128]);
        assert_eq!(written(|it| it.octets(2, &[7; 300]))[..4], [0x82, 0x82, 1, 44]);
        assert_eq!(written(|it| it.sequence(|it| it.integer(1, 1))), [0x30, 3, 0x81, 1, 1]);
    }
}

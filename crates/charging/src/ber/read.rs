//! Tags, lengths and values of BER, for reading. Definite lengths only: writers of CDRs use no others.

/// One element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// The number of its tag.
    pub number: u32,
    /// Its tag is context-specific.
    pub is_context: bool,
    /// Its value is elements.
    pub is_constructed: bool,
    /// Its value.
    pub value: &'a [u8],
}

/// What is not BER, or not of a kind we read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It ends too early.
    #[error("an element is cut off")]
    Short,
    /// A tag of more than 28 bits, or a length of more than 4 octets or of none.
    #[error("a tag or length is of no kind that is read here")]
    Form,
    /// An element that should be there.
    #[error("there is no {0}")]
    Missing(&'static str),
}

impl<'a> Element<'a> {
    /// The first element, and what is behind it.
    ///
    /// # Errors
    /// Octets that are none.
    pub fn read(octets: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        const CONTEXT: u8 = 2;
        let (first, rest) = octets.split_first().ok_or(Malformed::Short)?;
        let (number, rest) = match first & 31 {
            31 => high_number(rest)?,
            number => (number.into(), rest),
        };
        let (length, rest) = length(rest)?;
        let (value, rest) = rest.split_at_checked(length).ok_or(Malformed::Short)?;
        let (is_context, is_constructed) = (first >> 6 == CONTEXT, first & 0x20 != 0);
        Ok((Self { number, is_context, is_constructed, value }, rest))
    }

    /// Its value as a number that is not negative, if it is one of 64 bits.
    pub fn number(&self) -> Option<u64> {
        let octets = self.value.strip_prefix(&[0]).unwrap_or(self.value);
        let is_one = !self.value.is_empty() && octets.len() <= 8;
        is_one.then(|| octets.iter().fold(0, |number, octet| number << 8 | u64::from(*octet)))
    }

    /// The first of its elements with that context-specific number.
    pub fn field(&self, number: u32) -> Option<Element<'a>> {
        elements(self.value)
            .filter_map(Result::ok)
            .find(|element| element.is_context && element.number == number)
    }
}

/// All elements, one behind the other; ends after the first that cannot be read.
pub fn elements(octets: &[u8]) -> impl Iterator<Item = Result<Element<'_>, Malformed>> {
    let mut rest = octets;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let read = Element::read(rest);
        rest = read.map_or(&[], |(_, rest)| rest);
        Some(read.map(|(element, _)| element))
    })
}

fn high_number(octets: &[u8]) -> Result<(u32, &[u8]), Malformed> {
    let mut number = 0;
    for (at, octet) in octets.iter().enumerate().take(4) {
        number = number << 7 | u32::from(octet & 0x7F);
        if octet & 0x80 == 0 {
            return Ok((number, octets.get(at + 1..).unwrap_or_default()));
        }
    }
    Err(if octets.len() < 4 { Malformed::Short } else { Malformed::Form })
}

fn length(octets: &[u8]) -> Result<(usize, &[u8]), Malformed> {
    let (first, rest) = octets.split_first().ok_or(Malformed::Short)?;
    match first {
        0..=0x7F => Ok((usize::from(*first), rest)),
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7F)).ok_or(Malformed::Short)?;
            Ok((length.iter().fold(0, |all, octet| all << 8 | usize::from(*octet)), rest))
        }
        _ => Err(Malformed::Form),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_cut_off_or_odd_is_refused() {
        assert_eq!(Element::read(&[]), Err(Malformed::Short));
        assert_eq!(Element::read(&[0x80]), Err(Malformed::Short));
        assert_eq!(Element::read(&[0x80, 2, 1]), Err(Malformed::Short));
        assert_eq!(Element::read(&[0x80, 0x80, 0, 0]), Err(Malformed::Form));
        assert_eq!(Element::read(&[0x80, 0x85, 0, 0, 0, 0, 1, 1]), Err(Malformed::Form));
        assert_eq!(Element::read(&[0x9F, 0xFF, 0xFF, 0xFF, 0xFF, 1, 0]), Err(Malformed::Form));
        assert_eq!(Element::read(&[0x9F, 0xFF]), Err(Malformed::Short));
        assert_eq!(elements(&[0x80, 1, 1, 0x81]).count(), 2);
    }

    proptest! {
        #[test]
        fn anything_can_be_read_or_refused(octets in prop::collection::vec(any::<u8>(), 0..80)) {
            let all: usize = elements(&octets).filter_map(Result::ok).map(|it| it.value.len()).sum();
            prop_assert!(all <= octets.len());
        }
    }
}

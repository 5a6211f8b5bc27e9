//! Tags of the places of a block: a few bits of what stands in each, all compared at once. An unsafe room, because the
//! compiler takes every vector instruction for unsafe; its invariant is that these touch no memory and are part of every
//! x86-64.
#![allow(unsafe_code)]

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Tags in a block.
pub(super) const TAGS: usize = 32;
const PER_WORD: usize = 4;
const TAG_BITS: usize = 16;

/// One cache line of tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Tags {
    words: [u64; TAGS / PER_WORD],
}

impl Tags {
    /// Of a place where nothing stands.
    pub(super) const FREE: u16 = 0;
    /// Nothing stands anywhere.
    #[cfg(test)]
    const NONE: Self = Self { words: [0; TAGS / PER_WORD] };

    /// The tag of a place.
    #[inline]
    pub(super) const fn get(&self, place: usize) -> u16 {
        (self.words[place / PER_WORD] >> (place % PER_WORD * TAG_BITS)) as u16
    }

    /// Changes the tag of a place.
    pub(super) fn set(&mut self, place: usize, tag: u16) {
        let (word, shift) = (&mut self.words[place / PER_WORD], place % PER_WORD * TAG_BITS);
        *word = *word & !(u64::from(u16::MAX) << shift) | u64::from(tag) << shift;
    }

    /// The places with this tag, from the first on.
    #[inline]
    pub(super) fn places_of(&self, tag: u16) -> impl Iterator<Item = usize> + use<> {
        let mut agree = self.agree(tag);
        std::iter::from_fn(move || {
            let place = (agree != 0).then(|| agree.trailing_zeros() as usize);
            agree &= agree.wrapping_sub(1);
            place
        })
    }

    /// A bit for each place, set where it has this tag.
    #[inline]
    pub(super) fn mask_of(&self, tag: u16) -> u32 {
        self.agree(tag)
    }

    /// The places where something stands: its tag is odd.
    pub(super) fn taken(&self) -> impl Iterator<Item = usize> + use<> {
        let words = self.words;
        (0..TAGS).filter(move |place| Self { words }.get(*place) & 1 == 1)
    }

    /// A bit for each place, set where the tags agree.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn agree(&self, tag: u16) -> u32 {
        use std::arch::x86_64::{
            _mm_cmpeq_epi16, _mm_movemask_epi8, _mm_packs_epi16, _mm_set_epi64x, _mm_set1_epi16,
        };
        let [a, b, c, d, e, f, g, h] = self.words.map(u64::cast_signed);
        // SAFETY: these touch no memory, and SSE2 is part of x86-64.
        unsafe {
            let wanted = _mm_set1_epi16(tag.cast_signed());
            let agree = |low, high| _mm_cmpeq_epi16(_mm_set_epi64x(high, low), wanted);
            let first = _mm_packs_epi16(agree(a, b), agree(c, d));
            let second = _mm_packs_epi16(agree(e, f), agree(g, h));
            (_mm_movemask_epi8(first) | _mm_movemask_epi8(second) << (TAGS / 2)).cast_unsigned()
        }
    }

    /// A bit for each place, set where the tags agree.
    #[cfg(not(target_arch = "x86_64"))]
    fn agree(&self, tag: u16) -> u32 {
        (0..TAGS).fold(0, |agree, place| agree | u32::from(self.get(place) == tag) << place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_are_those_with_the_tag(tags in prop::array::uniform32(0u16..4), wanted in 0u16..4) {
            let mut all = Tags::NONE;
            tags.iter().enumerate().for_each(|(place, tag)| all.set(place, *tag));
            let expected: Vec<usize> = (0..TAGS).filter(|place| tags[*place] == wanted).collect();
            prop_assert_eq!(all.places_of(wanted).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn every_bit_of_a_tag_counts(tag: u16, bit in 0u32..16, place in 0..TAGS) {
            let mut all = Tags::NONE;
            all.set(place, tag | 1);
            prop_assert!(all.places_of(tag | 1).eq([place]));
            let other = (tag | 1) ^ 1 << bit;
            prop_assert!(other == Tags::FREE || all.places_of(other).next().is_none());
        }
    }
}

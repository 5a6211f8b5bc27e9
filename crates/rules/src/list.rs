//! Short lists without an allocation of their own: there are a million sessions, and most lists have one item or none.
//! All of them read as slices.

use smallvec::SmallVec;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Rules that another one names: mostly few, which are in place.
pub type Names<T> = SmallVec<[T; 4]>;

/// Up to [`Places::MAX`] different places in another list, in order. 16 bytes, nothing on the heap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Places([u16; Self::MAX]);

impl Places {
    /// How many it holds at most: what a PDR may name of one kind.
    pub const MAX: usize = 8;

    /// Stands behind the last place.
    const END: u16 = u16::MAX;
}

impl FromIterator<u16> for Places {
    /// Leaves out what stands twice and what is beyond [`Places::MAX`].
    fn from_iter<I: IntoIterator<Item = u16>>(places: I) -> Self {
        let mut list = Self([Self::END; Self::MAX]);
        for place in places.into_iter().filter(|place| *place != Self::END) {
            if let Some(free) = list.0.iter_mut().find(|known| **known == Self::END || **known == place) {
                *free = place;
            }
        }
        list
    }
}

impl Deref for Places {
    type Target = [u16];

    #[inline]
    fn deref(&self) -> &[u16] {
        let length = self.0.iter().position(|place| *place == Self::END).unwrap_or(Self::MAX);
        self.0.get(..length).unwrap_or_default()
    }
}

/// A list that is mostly empty: 8 bytes then.
#[derive(Clone, PartialEq, Eq)]
pub struct Rare<T>(Option<Box<Box<[T]>>>);

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> FromIterator<T> for Rare<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let items: Box<[T]> = items.into_iter().collect();
        Self((!items.is_empty()).then(|| Box::new(items)))
    }
}

impl<T> Deref for Rare<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.0.as_ref().map_or(&[], |items| items)
    }
}

/// A list that mostly has so many items, which are then in place: without a word more, where an item has a value to spare.
#[derive(Clone, PartialEq, Eq)]
pub struct Mostly<T, const N: usize>(Inner<T, N>);

/// A list that mostly has one item.
pub type Mostly1<T> = Mostly<T, 1>;
/// A list that mostly has two items.
pub type Mostly2<T> = Mostly<T, 2>;

#[derive(Clone, PartialEq, Eq)]
enum Inner<T, const N: usize> {
    Usual([T; N]),
    Others(Box<[T]>),
}

impl<T, const N: usize> Default for Mostly<T, N> {
    fn default() -> Self {
        Self(Inner::Others(Box::default()))
    }
}

impl<T, const N: usize> From<Vec<T>> for Mostly<T, N> {
    fn from(items: Vec<T>) -> Self {
        match items.try_into() {
            Ok(usual) => Self(Inner::Usual(usual)),
            Err(others) => Self(Inner::Others(others.into())),
        }
    }
}

impl<T, const N: usize> FromIterator<T> for Mostly<T, N> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        items.into_iter().collect::<Vec<T>>().into()
    }
}

impl<T, const N: usize> Deref for Mostly<T, N> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Inner::Usual(usual) => usual,
            Inner::Others(items) => items,
        }
    }
}

impl<T, const N: usize> DerefMut for Mostly<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Inner::Usual(usual) => usual,
            Inner::Others(items) => items,
        }
    }
}

impl<T, const N: usize> Mostly<T, N> {
    /// Bytes allocated, without what the items own.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.0 {
            Inner::Usual(_) => 0,
            Inner::Others(items) => size_of_val(&**items),
        }
    }
}

impl<T> Rare<T> {
    /// Bytes allocated, without what the items own.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |items| size_of::<Box<[T]>>() + size_of_val(&***items))
    }
}

macro_rules! reads_as_slice {
    ($(($($generics:tt)*), ($($bounds:tt)*), $list:ty, $of:ty);+) => {
        $(
            impl<'a, $($generics)*> IntoIterator for &'a $list {
                type Item = &'a $of;
                type IntoIter = std::slice::Iter<'a, $of>;

                #[inline]
                fn into_iter(self) -> Self::IntoIter {
                    self.iter()
                }
            }

            impl<$($bounds)*> fmt::Debug for $list {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.debug_list().entries(self).finish()
                }
            }
        )+
    };
}

reads_as_slice!(
    (), (), Places, u16;
    (T), (T: fmt::Debug), Rare<T>, T;
    (T, const N: usize), (T: fmt::Debug, const N: usize), Mostly<T, N>, T
);

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn places_keep_their_order_and_leave_out_repetitions() {
        let places: Places = [3, 1, 3, 2, 1].into_iter().collect();
        assert_eq!(*places, [3, 1, 2]);
        assert!(Places::from_iter([]).is_empty());
        let full: Places = (0..20).collect();
        assert_eq!(*full, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn lists_hold_what_they_are_given() {
        for length in 0..5_u32 {
            let items: Vec<u32> = (0..length).collect();
            assert_eq!(*items.iter().copied().collect::<Rare<u32>>(), *items);
            assert_eq!(*items.iter().copied().collect::<Mostly1<u32>>(), *items);
            let mut two: Mostly2<u32> = items.iter().copied().collect();
            assert_eq!(*two, *items);
            two.iter_mut().for_each(|item| *item += 1);
            assert!(two.iter().zip(&items).all(|(more, item)| *more == item + 1));
        }
    }

    #[test]
    fn lists_are_small() {
        assert_eq!(size_of::<Places>(), 16);
        assert_eq!(size_of::<Rare<[u64; 9]>>(), 8);
        assert_eq!(size_of::<Mostly1<Ipv4Addr>>(), 16);
        assert_eq!(
            size_of::<Mostly2<(bool, u64)>>(),
            32,
            "what items have to spare tells how many there are"
        );
    }
}

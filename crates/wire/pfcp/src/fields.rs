//! Groups of IEs: a message body and a grouped IE are read and written the same way (TS 29.244 8.1.1).
//!
//! [`group!`] declares a group once, field by field; reading and writing follow, and a `new` that takes what is mandatory and
//! leaves all else out. A field is one of
//! `one` (mandatory), `opt` (at most one), `some` (at least one) and `all` (any number). In a group that updates a
//! rule they are `set` and `each`: there an IE without octets asks for removal of what it names (5.6.3), and is
//! left in `carried` for the receiver to see.

use crate::ErrorKind;
use smallvec::SmallVec;

/// An IE kept as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawIe {
    /// Its number; 32768 and above are vendors' own (8.1.1).
    pub ie: u16,
    /// Its value. A vendor's starts with the enterprise number.
    pub value: Vec<u8>,
}

/// IEs of most groups, which need no memory of their own.
const USUAL: usize = 8;

/// The value of an IE.
pub(crate) trait Value: Sized {
    /// Reads the value of the IE numbered `ie`.
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind>;
    /// Appends the value.
    fn write(&self, out: &mut Vec<u8>);
}

/// The IEs of a group that have not been taken yet.
pub(crate) struct Fields<'a>(SmallVec<[(u16, &'a [u8]); USUAL]>);

impl<'a> Fields<'a> {
    /// Cuts `bytes`, the value of the group `parent`, into its IEs.
    pub(crate) fn cut(mut bytes: &'a [u8], parent: u16) -> Result<Self, ErrorKind> {
        let mut fields = SmallVec::new();
        while !bytes.is_empty() {
            let ([t0, t1, l0, l1], rest) =
                bytes.split_first_chunk().ok_or(ErrorKind::InvalidLength(parent))?;
            let ie = u16::from_be_bytes([*t0, *t1]);
            let length = usize::from(u16::from_be_bytes([*l0, *l1]));
            let (value, rest) = rest.split_at_checked(length).ok_or(ErrorKind::InvalidLength(ie))?;
            fields.push((ie, value));
            bytes = rest;
        }
        Ok(Self(fields))
    }

    fn first(&mut self, ie: u16) -> Option<&'a [u8]> {
        let at = self.0.iter().position(|(other, _)| *other == ie)?;
        Some(self.0.remove(at).1)
    }

    pub(crate) fn one<T: Value>(&mut self, ie: u16) -> Result<T, ErrorKind> {
        self.opt(ie)?.ok_or(ErrorKind::MandatoryIeMissing(ie))
    }

    /// Of several, the first counts; the others stay in the group's `carried` (7.6.10).
    pub(crate) fn opt<T: Value>(&mut self, ie: u16) -> Result<Option<T>, ErrorKind> {
        self.first(ie).map(|value| T::read(value, ie)).transpose()
    }

    pub(crate) fn some<T: Value>(&mut self, ie: u16) -> Result<Vec<T>, ErrorKind> {
        let values = self.all(ie)?;
        if values.is_empty() { Err(ErrorKind::MandatoryIeMissing(ie)) } else { Ok(values) }
    }

    pub(crate) fn all<T: Value>(&mut self, ie: u16) -> Result<Vec<T>, ErrorKind> {
        self.take(ie, |_| true)
    }

    fn take<T: Value>(&mut self, ie: u16, is_it: impl Fn(&[u8]) -> bool) -> Result<Vec<T>, ErrorKind> {
        let is_taken = |(other, value): &(u16, &[u8])| *other == ie && is_it(value);
        let taken = self.0.iter().filter(|field| is_taken(field)).map(|(_, value)| T::read(value, ie));
        let values = taken.collect::<Result<Vec<T>, ErrorKind>>()?;
        if !values.is_empty() {
            self.0.retain(|field| !is_taken(field));
        }
        Ok(values)
    }

    pub(crate) fn set<T: Value>(&mut self, ie: u16) -> Result<Option<T>, ErrorKind> {
        let at = self.0.iter().position(|(other, value)| *other == ie && !value.is_empty());
        at.map(|at| T::read(self.0.remove(at).1, ie)).transpose()
    }

    pub(crate) fn each<T: Value>(&mut self, ie: u16) -> Result<Vec<T>, ErrorKind> {
        self.take(ie, |value| !value.is_empty())
    }

    /// What nobody took.
    pub(crate) fn rest(self) -> Vec<RawIe> {
        self.0.into_iter().map(|(ie, value)| RawIe { ie, value: value.to_vec() }).collect()
    }
}

/// Writing, by the same words.
pub(crate) mod put {
    use super::{RawIe, Value};

    pub(crate) fn one<T: Value>(ie: u16, value: &T, out: &mut Vec<u8>) {
        framed(ie, out, |out| value.write(out));
    }

    pub(crate) fn opt<T: Value>(ie: u16, value: &Option<T>, out: &mut Vec<u8>) {
        value.iter().for_each(|value| one(ie, value, out));
    }

    pub(crate) use {all as some, all as each, opt as set};

    pub(crate) fn all<T: Value>(ie: u16, values: &[T], out: &mut Vec<u8>) {
        values.iter().for_each(|value| one(ie, value, out));
    }

    pub(crate) fn carried(ies: &[RawIe], out: &mut Vec<u8>) {
        ies.iter().for_each(|other| raw(other.ie, &other.value, out));
    }

    fn raw(ie: u16, value: &[u8], out: &mut Vec<u8>) {
        framed(ie, out, |out| out.extend_from_slice(value));
    }

    /// The length is known when the value is written. One longer than the length field can tell is left out: the message
    /// stays readable.
    fn framed(ie: u16, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        out.extend_from_slice(&ie.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        write(out);
        let length = u16::try_from(out.len() - start - 4);
        match (length, out.get_mut(start + 2..start + 4)) {
            (Ok(length), Some(field)) => field.copy_from_slice(&length.to_be_bytes()),
            _ => out.truncate(start),
        }
    }
}

/// Declares a group: a struct with a `carried` list, and its [`Value`].
macro_rules! group {
    (@type one $type:ty) => { $type };
    (@type opt $type:ty) => { Option<$type> };
    (@type some $type:ty) => { Vec<$type> };
    (@type all $type:ty) => { Vec<$type> };
    (@type set $type:ty) => { Option<$type> };
    (@type each $type:ty) => { Vec<$type> };
    // `new`, put together field by field: arguments so far, values so far, fields still to come.
    (@new {$($argument:tt)*} {$($value:tt)*}) => {
        /// With what is mandatory of it, and nothing else.
        #[allow(clippy::new_without_default, reason = "what may be empty is no default of a rule")]
        pub fn new($($argument)*) -> Self {
            Self { $($value)* carried: vec![] }
        }
    };
    (@new {$($argument:tt)*} {$($value:tt)*} $field:ident one $type:ty, $($rest:tt)*) => {
        group!(@new {$($argument)* $field: $type,} {$($value)* $field,} $($rest)*);
    };
    (@new {$($argument:tt)*} {$($value:tt)*} $field:ident some $type:ty, $($rest:tt)*) => {
        group!(@new {$($argument)* $field: Vec<$type>,} {$($value)* $field,} $($rest)*);
    };
    (@new {$($argument:tt)*} {$($value:tt)*} $field:ident $kind:ident $type:ty, $($rest:tt)*) => {
        group!(@new {$($argument)*} {$($value)* $field: Default::default(),} $($rest)*);
    };
    ($(#[$doc:meta])* $name:ident {
        $($(#[$field_doc:meta])* $field:ident: $kind:ident $type:ty = $ie:ident,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: group!(@type $kind $type),)*
            /// What else is there, as it came.
            pub carried: Vec<$crate::RawIe>,
        }

        impl $name {
            /// What it has by name: the IE and the field.
            pub const FIELDS: &'static [(u16, &'static str)] =
                &[$(($crate::ie::$ie, stringify!($field)),)*];

            group!(@new {} {} $($field $kind $type,)*);

            /// Whether an IE without octets asks for removal of what it names (TS 29.244 5.6.3).
            pub fn removes(&self, ie: u16) -> bool {
                self.carried.iter().any(|other| other.ie == ie && other.value.is_empty())
            }
        }

        impl $crate::fields::Value for $name {
            fn read(bytes: &[u8], ie: u16) -> Result<Self, $crate::ErrorKind> {
                #[allow(unused_mut)]
                let mut fields = $crate::fields::Fields::cut(bytes, ie)?;
                Ok(Self {
                    $($field: fields.$kind($crate::ie::$ie)?,)*
                    carried: fields.rest(),
                })
            }

            fn write(&self, out: &mut Vec<u8>) {
                $($crate::fields::put::$kind($crate::ie::$ie, &self.$field, out);)*
                $crate::fields::put::carried(&self.carried, out);
            }
        }
    };
}
pub(crate) use group;

/// Numbers are read from the first octets: a later release may append more (8.1.1).
macro_rules! number {
    ($($type:ty)*) => {$(
        impl Value for $type {
            fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
                let octets = bytes.first_chunk().ok_or(ErrorKind::InvalidLength(ie))?;
                Ok(<$type>::from_be_bytes(*octets))
            }

            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
        }
    )*};
}
number!(u8 u16 u32 u64);

/// Octets we only keep.
impl Value for Vec<u8> {
    fn read(bytes: &[u8], _: u16) -> Result<Self, ErrorKind> {
        Ok(bytes.to_vec())
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

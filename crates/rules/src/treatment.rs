//! What FARs do to requests of HTTP (TS 29.244 8.2.20 and 8.2.67), to connections, and to where packets go.

use crate::intent::{ApplyAction, Far};
use crate::redirect::{Redirect, RedirectAddresses, RedirectTo};
use serde::{Deserialize, Serialize};

/// Bytes of a header field's name, and of its value, at most (TS 29.244 8.2.67: a length has one octet).
const FIELD_MAX: usize = 255;

/// A field that is put into requests of HTTP/1.x (8 bytes, as few FARs have one): a token as its name, and a value of
/// printable ASCII, neither longer than 255 octets (RFC 9110 5.1 and 5.5, TS 29.244 8.2.67).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(String, String)", into = "(String, String)")]
pub struct HeaderField(Box<(Box<str>, Box<str>)>);

impl HeaderField {
    /// `None` for what is not such a field.
    pub fn new(name: &str, value: &str) -> Option<Self> {
        let is_token = |octet: u8| octet.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&octet);
        let is_named = (1..=FIELD_MAX).contains(&name.len()) && name.bytes().all(is_token);
        let is_valued = value.len() <= FIELD_MAX && value.bytes().all(|octet| (b' '..=b'~').contains(&octet));
        (is_named && is_valued).then(|| Self(Box::new((name.into(), value.into()))))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.0
    }

    /// Its value.
    pub fn value(&self) -> &str {
        &self.0.1
    }
}

impl TryFrom<(String, String)> for HeaderField {
    type Error = &'static str;

    fn try_from((name, value): (String, String)) -> Result<Self, Self::Error> {
        Self::new(&name, &value)
            .ok_or("a header field is a token and a value of printable ASCII, of up to 255 octets each")
    }
}

impl From<HeaderField> for (String, String) {
    fn from(field: HeaderField) -> Self {
        let (name, value) = *field.0;
        (name.into(), value.into())
    }
}

/// What a FAR does to requests, to connections, and to where packets go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Requests are answered with this URL; nothing is forwarded.
    Portal(Box<str>),
    /// What users send goes to these addresses, and what comes back seems to come from where it was sent.
    Readdress(RedirectAddresses),
    /// Requests get this field.
    Enrich(HeaderField),
    /// Their connections are reset; nothing is forwarded.
    Reset,
}

impl Treatment {
    /// That of a FAR; one that resets has nothing left to redirect, and one that redirects nothing left to enrich.
    pub(crate) fn of(far: &Far) -> Option<Self> {
        if far.apply_action == ApplyAction::Reset {
            return Some(Self::Reset);
        }
        let redirect = |redirect: &Redirect| match redirect.to() {
            RedirectTo::Url(url) => Self::Portal(url.clone()),
            RedirectTo::Addresses(addresses) => Self::Readdress(*addresses),
        };
        let enrich = || far.enrichment.clone().map(Self::Enrich);
        far.redirect.as_ref().map(redirect).or_else(enrich)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_one_field() {
        assert!(HeaderField::new("X-MSISDN", "491701234567").is_some());
        assert!(HeaderField::new("X-Empty", "").is_some());
        for (name, value) in
            [("", "a"), ("A B", "a"), ("A:", "a"), ("A", "a\r\nB: b"), ("A", "a\0"), ("A", "ä")]
        {
            assert_eq!(HeaderField::new(name, value), None, "{name:?} {value:?}");
        }
        assert_eq!(HeaderField::new("A", &"a".repeat(256)), None);
    }
}

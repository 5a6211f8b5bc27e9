//! What FARs do to requests of HTTP (TS 29.244 8.2.20 and 8.2.67) and to connections.

use crate::intent::{ApplyAction, Far};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes of a URL at most: the answer with it fits a packet that every link takes.
const URL_MAX: usize = 1_000;
/// Bytes of a header field's name, and of its value, at most (TS 29.244 8.2.67: a length has one octet).
const FIELD_MAX: usize = 255;

/// The URL that users are sent to instead (8 bytes, as few FARs have one): `http://` or `https://` and up to 1,000
/// octets in all, none of them a blank or a control, so that it is one field of one header (TS 29.244 8.2.20).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RedirectUrl(Box<Box<str>>);

impl RedirectUrl {
    /// `None` for what is not such a URL.
    pub fn new(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
        let is_sound =
            !rest.is_empty() && url.len() <= URL_MAX && url.bytes().all(|octet| octet.is_ascii_graphic());
        is_sound.then(|| Self(Box::new(url.into())))
    }

    /// The URL.
    pub fn url(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RedirectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for RedirectUrl {
    type Error = &'static str;

    fn try_from(url: String) -> Result<Self, Self::Error> {
        Self::new(&url).ok_or(
            "a portal's URL begins with http:// or https:// and has up to 1,000 visible ASCII characters",
        )
    }
}

impl From<RedirectUrl> for String {
    fn from(url: RedirectUrl) -> Self {
        Self::from(*url.0)
    }
}

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

/// What a FAR does to requests, and to connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// They are answered with this URL; nothing is forwarded.
    Redirect(RedirectUrl),
    /// They get this field.
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
        let enrich = || far.enrichment.clone().map(Self::Enrich);
        far.redirect.clone().map(Self::Redirect).or_else(enrich)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_cannot_end_its_field() {
        for sound in ["http://portal.example", "https://a.example/buy?more=1&x=%20"] {
            assert_eq!(RedirectUrl::new(sound).unwrap().url(), sound);
        }
        let long = format!("http://{}", "a".repeat(URL_MAX));
        for unsound in
            ["", "portal.example", "http://", "http://a b", "http://a\r\nSet-Cookie: x", "http://ä", &long]
        {
            assert_eq!(RedirectUrl::new(unsound), None, "{unsound:?}");
        }
    }

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

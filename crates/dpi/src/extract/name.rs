//! Names of hosts as protocols carry them.

use std::net::Ipv6Addr;
use std::str;

/// Most bytes of a name (RFC 1035 2.3.4, without the length bytes).
pub const NAME_MAX: usize = 253;

/// The name in what a client says is the host: without port, without the dot at the end. `None` where it is no name and
/// no address: empty, too long, of characters that neither has, or with nothing between two dots. Letters stay as they are.
pub fn host(bytes: &[u8]) -> Option<&[u8]> {
    if let Some(behind) = bytes.strip_prefix(b"[") {
        return address(behind.get(..memchr::memchr(b']', behind)?)?);
    }
    let name = bytes.get(..memchr::memchr(b':', bytes).unwrap_or(bytes.len()))?;
    let name = name.strip_suffix(b".").unwrap_or(name);
    (1..=NAME_MAX).contains(&name.len()).then_some(())?;
    // Underscores are in no host name (RFC 952) and in many a URL.
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_label = |label: &[u8]| !label.is_empty() && label.iter().all(allowed);
    name.split(|byte| *byte == b'.').all(is_label).then_some(name)
}

/// What stands in brackets, which is an IPv6 address (RFC 3986 3.2.2) or nothing that a server knows.
fn address(bytes: &[u8]) -> Option<&[u8]> {
    str::from_utf8(bytes).ok()?.parse::<Ipv6Addr>().ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn ports_and_dots_go_and_what_is_no_name_is_none() {
        for (given, name) in [
            ("a.example", Some("a.example")),
            ("A.Example.:8080", Some("A.Example")),
            ("192.0.2.1:80", Some("192.0.2.1")),
            ("[2001:db8::1]:80", Some("2001:db8::1")),
            ("", None),
            (":80", None),
            (".", None),
            ("..", None),
            (".a.example", None),
            ("a..example", None),
            ("a.example..", None),
            ("[::1]", Some("::1")),
            ("[2001:db8::1", None),
            ("[:]", None),
            ("[]", None),
            ("[a.example]", None),
            ("[192.0.2.1]", None),
            ("a b", None),
            ("a/b", None),
            ("a\0", None),
        ] {
            assert_eq!(host(given.as_bytes()), name.map(str::as_bytes), "{given}");
        }
        assert!(host(&[b'a'; 253]).is_some() && host(&[b'a'; 254]).is_none());
    }
}

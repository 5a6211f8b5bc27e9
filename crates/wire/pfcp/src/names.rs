//! Names on the wire: labels as in DNS (RFC 1035 3.1, without the closing zero), or plain text.

/// `internet.mnc001` as `8 internet 6 mnc001`. A label is cut at the 63 octets it may have.
pub(crate) fn to_labels(name: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len() + 1);
    for label in name.split('.').filter(|label| !label.is_empty()) {
        let label: Vec<u8> = label.bytes().take(63).collect();
        bytes.push(label.len() as u8);
        bytes.extend_from_slice(&label);
    }
    bytes
}

/// Labels where `bytes` are labels from end to end, else plain text. Text never starts with a count of its own
/// first label: counts up to 63 are control characters, digits or punctuation.
pub(crate) fn from_bytes(bytes: &[u8]) -> Option<String> {
    let name = from_labels(bytes).or_else(|| text(bytes).map(str::to_owned));
    // Dots alone separate nothing.
    name.filter(|name| name.bytes().any(|octet| octet != b'.'))
}

fn from_labels(mut bytes: &[u8]) -> Option<String> {
    let mut labels = Vec::new();
    while let Some((count, rest)) = bytes.split_first() {
        // Some senders close with the root's zero nevertheless.
        if *count == 0 && rest.is_empty() {
            break;
        }
        let (label, rest) = rest.split_at_checked(usize::from(*count)).filter(|_| (1..64).contains(count))?;
        labels.push(text(label)?);
        bytes = rest;
    }
    if labels.is_empty() { None } else { Some(labels.join(".")) }
}

fn text(bytes: &[u8]) -> Option<&str> {
    let plain = bytes.iter().all(|octet| octet.is_ascii_graphic());
    std::str::from_utf8(bytes).ok().filter(|text| plain && !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_text_give_the_same_name() {
        assert_eq!(from_bytes(b"\x08internet"), Some("internet".to_owned()));
        assert_eq!(from_bytes(b"internet"), Some("internet".to_owned()));
        assert_eq!(from_bytes(b"\x03smf\x03org\x00"), Some("smf.org".to_owned()));
        assert_eq!(from_bytes(b"smf.org"), Some("smf.org".to_owned()));
    }

    #[test]
    fn what_is_neither_has_no_name() {
        assert_eq!(from_bytes(b""), None);
        assert_eq!(from_bytes(b"\x00"), None);
        assert_eq!(from_bytes(b"\x08inter"), None);
        assert_eq!(from_bytes(&[0xFF, 0xFE]), None);
        assert_eq!(from_bytes(b"..."), None);
        assert_eq!(from_bytes(b"\x01."), None);
    }

    #[test]
    fn a_name_survives() {
        assert_eq!(to_labels("smf.example.org"), b"\x03smf\x07example\x03org");
        assert_eq!(from_bytes(&to_labels("smf.example.org")), Some("smf.example.org".to_owned()));
    }
}

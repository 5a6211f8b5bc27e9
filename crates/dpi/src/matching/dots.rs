//! Dot segments of paths. Servers resolve them before they look for what is asked (RFC 3986 5.2.4, 6.2.2.3), written in plain or
//! not (6.2.2.2), so that a rule for `/free/*` is none for `/free/../paid`. Most servers read an encoded slash as a slash then, and
//! several slashes as one.

use crate::extract::BYTES_MAX;
use arrayvec::ArrayVec;

/// A path without dot segments. No longer one is looked at.
pub(super) type Resolved = ArrayVec<u8, BYTES_MAX>;

/// Whether a path has such a segment, as hardly any has.
#[inline]
pub(crate) fn are_in(path: &[u8]) -> bool {
    let (path, _) = split_query(path);
    let begins = |at: usize| {
        let (before, behind) = path.split_at_checked(at).unwrap_or_default();
        dot(behind).is_some() && ends_with_slash(before) && count(split_segment(behind).0).is_some()
    };
    path.starts_with(b"/") && memchr::memchr2_iter(b'.', b'%', path).any(begins)
}

/// What a server looks for; `None` where a path is too long.
#[cold]
pub(super) fn resolve(path: &[u8]) -> Option<Resolved> {
    let (mut rest, query) = split_query(path);
    let mut resolved = Resolved::new();
    while let Some(behind) = slash(rest) {
        let (segment, next) = split_segment(behind);
        let (dots, is_last) = (count(segment), next.is_empty());
        if dots == Some(2) {
            resolved.truncate(memchr::memrchr(b'/', &resolved).unwrap_or(0));
        }
        // What ends in dots is a folder; of several slashes the last one is enough.
        if is_last || dots.is_none() && !segment.is_empty() {
            resolved.try_push(b'/').ok()?;
        }
        if dots.is_none() {
            resolved.try_extend_from_slice(segment).ok()?;
        }
        rest = next;
    }
    resolved.try_extend_from_slice(query).ok()?;
    Some(resolved)
}

/// The path alone, and the query with its mark.
fn split_query(path: &[u8]) -> (&[u8], &[u8]) {
    path.split_at_checked(memchr::memchr(b'?', path).unwrap_or(path.len())).unwrap_or_default()
}

/// A segment, and what is behind it, from the slash on.
fn split_segment(bytes: &[u8]) -> (&[u8], &[u8]) {
    let is_end = |at: &usize| bytes.get(*at..).and_then(slash).is_some();
    bytes.split_at_checked((0..bytes.len()).find(is_end).unwrap_or(bytes.len())).unwrap_or_default()
}

/// What is behind a slash.
fn slash(bytes: &[u8]) -> Option<&[u8]> {
    character(bytes, b'/', b"%2f")
}

/// What is behind a dot.
fn dot(bytes: &[u8]) -> Option<&[u8]> {
    character(bytes, b'.', b"%2e")
}

fn character<'a>(bytes: &'a [u8], plain: u8, encoded: &[u8; 3]) -> Option<&'a [u8]> {
    match bytes.split_first_chunk::<3>() {
        Some((first, behind)) if first.eq_ignore_ascii_case(encoded) => Some(behind),
        _ => bytes.strip_prefix(&[plain]),
    }
}

fn ends_with_slash(bytes: &[u8]) -> bool {
    bytes.ends_with(b"/") || bytes.last_chunk::<3>().is_some_and(|last| last.eq_ignore_ascii_case(b"%2f"))
}

/// Of a segment that is one dot or two, how many.
fn count(segment: &[u8]) -> Option<usize> {
    let behind = dot(segment)?;
    match dot(behind) {
        None => behind.is_empty().then_some(1),
        Some(behind) => behind.is_empty().then_some(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dots_are_resolved_as_servers_do() {
        for (path, resolved) in [
            // RFC 3986 5.2.4.
            ("/a/b/c/./../../g", "/a/g"),
            ("/free/../paid", "/paid"),
            ("/free/%2e%2E/paid", "/paid"),
            ("/free/..%2fpaid", "/paid"),
            ("/free%2F.%2e/paid", "/paid"),
            ("/free//../paid", "/paid"),
            ("/free/x/../../paid?a=/../b", "/paid?a=/../b"),
            ("/../../a", "/a"),
            ("/a/.", "/a/"),
            ("/a/..", "/"),
            ("/a/../", "/"),
            ("/..?q", "/?q"),
            ("/./a//b%41", "/a/b%41"),
        ] {
            assert!(are_in(path.as_bytes()), "{path}");
            assert_eq!(resolve(path.as_bytes()).as_deref(), Some(resolved.as_bytes()), "{path}");
        }
    }

    #[test]
    fn other_dots_are_let_alone() {
        for path in [
            "/",
            "",
            "/a.b/c.mp4",
            "/.well-known/x",
            "/...",
            "/a..",
            "/..a",
            "/a/%2e%2e%2e",
            "/a?x=/../b",
            "/%2",
            "..",
            "/%2fa",
        ] {
            assert!(!are_in(path.as_bytes()), "{path}");
        }
        let long = format!("/../{}", "a".repeat(BYTES_MAX));
        assert!(are_in(long.as_bytes()) && resolve(long.as_bytes()).is_none());
    }

    proptest! {
        #[test]
        fn what_is_resolved_has_none(path in "/([ab./?]|%2[eEfF]){0,12}") {
            let resolved = resolve(path.as_bytes()).unwrap();
            prop_assert!(resolved.starts_with(b"/") && resolved.len() <= path.len() && !are_in(&resolved));
        }
    }
}

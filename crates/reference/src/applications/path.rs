//! Paths as servers look for them (RFC 3986 5.2.4 and 6.2.2).

/// Without dot segments, where there are any: then an encoded slash is one, and several are one.
pub(super) fn resolved(path: &str) -> String {
    let (place, query) = path.find('?').map_or((path, ""), |at| path.split_at(at));
    let plain = place.replace("%2f", "/").replace("%2F", "/");
    let segments: Vec<&str> = plain.split('/').collect();
    let is_dotted = |segment: &&str| matches!(&*dots(segment), "." | "..");
    if !place.starts_with('/') || !segments.iter().any(is_dotted) {
        return path.to_owned();
    }
    let mut kept = Vec::new();
    for segment in segments.iter().skip(1) {
        match &*dots(segment) {
            ".." => _ = kept.pop(),
            "" | "." => {}
            _ => kept.push(*segment),
        }
    }
    // What ends in a slash or in dots is a folder.
    let is_folder = segments.last().is_some_and(|last| last.is_empty() || is_dotted(last));
    kept.extend(is_folder.then_some(""));
    format!("/{}{query}", kept.join("/"))
}

/// With dots in plain.
fn dots(segment: &str) -> String {
    segment.replace("%2e", ".").replace("%2E", ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_lead_where_the_specification_says() {
        for (path, expected) in [
            ("/a/b/c/./../../g", "/a/g"),
            ("/w/%2e./v%2f1?x=/../y", "/v/1?x=/../y"),
            ("/w/..", "/"),
            ("/a//./b/", "/a/b/"),
            ("//a%2fb", "//a%2fb"),
        ] {
            assert_eq!(resolved(path), expected, "{path}");
        }
    }
}

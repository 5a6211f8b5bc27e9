//! Reading configuration files: TOML in, values that are right by construction out, and errors that name file, line,
//! key and value and say what is allowed.

mod error;
mod node_id;

pub use error::{ConfigError, Refusal};
pub use node_id::{NodeIdText, is_of_one};
pub use toml::Spanned;

use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Reads a file into `File`, whose fields check each value alone, and lets `check` make the configuration of it,
/// which checks the values together.
///
/// # Errors
/// What is wrong, where, and what is allowed.
pub fn read<File: DeserializeOwned, Config>(
    path: &Path,
    check: impl FnOnce(File) -> Result<Config, Refusal>,
) -> Result<Config, ConfigError> {
    let octets = octets(path).map_err(|error| ConfigError::unreadable(path, &error))?;
    let text = String::from_utf8(octets).map_err(|error| ConfigError::not_text(&error).in_file(path))?;
    parse(&text, check).map_err(|error| error.in_file(path))
}

/// Bytes of a file, of which any that somebody has written is much shorter.
const LONGEST: u64 = 64 << 20;

/// Of a pipe or a device, there might never be an end.
fn octets(path: &Path) -> io::Result<Vec<u8>> {
    let kind = fs::metadata(path)?;
    let other = |why| Err(io::Error::new(ErrorKind::InvalidInput, why));
    match kind.is_file() || kind.is_dir() {
        false => other("it is a pipe or a device, and no file"),
        true if kind.len() > LONGEST => other("it is longer than 64 MiB, which no configuration is"),
        true => fs::read(path),
    }
}

/// As [`read`], from the text itself.
///
/// # Errors
/// As [`read`], without the file's name.
pub fn parse<File: DeserializeOwned, Config>(
    text: &str,
    check: impl FnOnce(File) -> Result<Config, Refusal>,
) -> Result<Config, ConfigError> {
    let file = toml::from_str(text)
        .map_err(|error| ConfigError::at(text, error.span(), error.message().trim().replace('\n', ", ")))?;
    check(file).map_err(|refusal| refusal.in_text(text))
}

/// The tables of `[[table.array]]`, each by its key `name` and as a text of its own, which says the same. None of a text that is not
/// right, and none without a name.
pub fn each(text: &str, table: &str, array: &str) -> Vec<(String, String)> {
    let whole: toml::Table = toml::from_str(text).unwrap_or_default();
    let all = whole.get(table).and_then(|inner| inner.get(array)).and_then(toml::Value::as_array);
    let one = |one: &toml::Value| {
        let name = one.get("name")?.as_str()?.to_owned();
        let alone = toml::Value::Array(vec![one.clone()]);
        let inner = toml::Table::from_iter([(array.to_owned(), alone)]);
        let outer = toml::Table::from_iter([(table.to_owned(), toml::Value::Table(inner))]);
        Some((name, toml::to_string(&outer).ok()?))
    };
    all.into_iter().flatten().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        low: u8,
        high: Spanned<u8>,
    }

    fn check(file: File) -> Result<u8, Refusal> {
        match file.high.get_ref().checked_sub(file.low) {
            Some(between) => Ok(between),
            None => Err(Refusal::of(&file.high, "must not be below low")),
        }
    }

    fn error(text: &str) -> String {
        parse(text, check).unwrap_err().to_string()
    }

    #[test]
    fn right_text_makes_a_configuration() {
        assert_eq!(parse("low = 1\nhigh = 3", check), Ok(2));
    }

    #[test]
    fn errors_name_line_key_value_and_what_is_allowed() {
        assert_eq!(error("low = 3\n\nhigh = 1"), "configuration, line 3: high = 1: must not be below low");
        let kind = error("low = 1\nhigh = \"much\"");
        assert!(kind.starts_with("configuration, line 2: high = \"much\": invalid type"), "{kind}");
        let unknown = error("low = 1\nhigh = 2\nhgih = 3");
        assert!(unknown.starts_with("configuration, line 3: hgih = 3: unknown field"), "{unknown}");
        let missing = error("low = 1");
        assert!(missing.contains("missing field `high`"), "{missing}");
    }

    #[test]
    fn each_table_of_an_array_is_a_text_that_says_the_same() {
        let text = "[[a.b]]\nname = \"x\"\nrates = { up = 1 }\n[[a.b]]\nname = \"y \\\" z\"\n[[a.c]]\nname = \"w\"\n";
        let all = each(text, "a", "b");
        assert_eq!(all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["x", "y \" z"]);
        let again = |(_, text): &(String, String)| toml::from_str::<toml::Table>(text).unwrap();
        let whole: toml::Table = toml::from_str(text).unwrap();
        for (one, table) in all.iter().zip(whole["a"]["b"].as_array().unwrap()) {
            assert_eq!(again(one)["a"]["b"].as_array().unwrap(), std::slice::from_ref(table));
        }
        assert!(each("[[a.b]]\nrates = 1", "a", "b").is_empty() && each("[[a.b", "a", "b").is_empty());
    }

    /// Nor waited for.
    #[test]
    fn what_may_have_no_end_is_not_read() {
        let error = read(Path::new("/dev/zero"), check).unwrap_err().to_string();
        assert_eq!(error, "/dev/zero: cannot be read: it is a pipe or a device, and no file");
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("long.toml");
        std::fs::File::create(&long).unwrap().set_len(LONGEST + 1).unwrap();
        let error = read(&long, check).unwrap_err().to_string();
        assert!(error.ends_with("it is longer than 64 MiB, which no configuration is"), "{error}");
    }

    #[test]
    fn what_is_no_text_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latin.toml");
        std::fs::write(&path, b"# \xc3\xa4\nlow = 1\n  high = 2 # gr\xfc\xdfe\n").unwrap();
        let error = read(&path, check).unwrap_err();
        let expected =
            "latin.toml, line 3: high = 2 # gr\u{fffd}\u{fffd}e: is not in UTF-8: save the file in it";
        assert!(error.to_string().ends_with(expected) && error.line() == Some(3), "{error}");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("absent.toml");
        let error = read(&path, check).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: cannot be read", path.display())), "{error}");
    }
}

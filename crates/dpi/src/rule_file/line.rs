//! A rule in a line, both ways.

use super::error::What;
use super::field::{Fields, is_flag, is_list, protocol_name};
use crate::matching::{Conditions, Rule};
use std::fmt::{self, Display, Write};

/// The fields of a line; `None` where it has none.
pub(super) fn fields(line: &str) -> Option<Fields> {
    let mut fields = None;
    let mut rest = line.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let end = rest.find(|letter: char| letter == '=' || letter.is_whitespace()).unwrap_or(rest.len());
        let (key, behind) = rest.split_at_checked(end).unwrap_or_default();
        let fields = fields.get_or_insert_with(Fields::default);
        rest = match behind.strip_prefix('=').map(value) {
            None => {
                fields.take(key, None);
                behind.trim_start()
            }
            Some(Ok((value, behind))) => {
                take_all(fields, key, &value);
                behind.trim_start()
            }
            // Where the value ends nobody knows.
            Some(Err(what)) => {
                fields.refuse(what);
                ""
            }
        };
    }
    fields
}

fn take_all(fields: &mut Fields, key: &str, value: &str) {
    match value {
        "" if !is_flag(key) => fields.take(key, None),
        _ if is_list(key) => value.split(',').for_each(|one| fields.take(key, Some(one))),
        _ => fields.take(key, Some(value)),
    }
}

/// A value, in quotes or not, and what follows it.
fn value(text: &str) -> Result<(String, &str), What> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (value, rest) = text.split_at_checked(end).unwrap_or_default();
        return Ok((value.to_owned(), rest));
    };
    let mut value = String::new();
    loop {
        let (piece, behind) = rest.split_once('"').ok_or(What::Quotes)?;
        value.push_str(piece);
        match behind.strip_prefix('"') {
            Some(behind) => {
                value.push('"');
                rest = behind;
            }
            None if behind.is_empty() || behind.starts_with(char::is_whitespace) => {
                return Ok((value, behind));
            }
            None => return Err(What::Quotes),
        }
    }
}

impl Display for Rule {
    /// As a line of a rule file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, precedence, rating_group, service, application, when } = self;
        write!(f, "id={id} precedence={precedence} rating-group={rating_group}")?;
        if let Some(service) = service {
            write!(f, " service={service}")?;
        }
        if let Some(name) = application {
            write!(f, " application=\"{}\"", name.replace('"', "\"\""))?;
        }
        write_conditions(f, when)
    }
}

fn write_conditions(f: &mut fmt::Formatter<'_>, when: &Conditions) -> fmt::Result {
    write_list(f, "host", &when.hosts)?;
    when.paths.iter().try_for_each(|path| write!(f, " path={path}"))?;
    for (key, regex) in [("host-regex", &when.host_regex), ("url-regex", &when.url_regex)] {
        if let Some(regex) = regex {
            write!(f, " {key}=\"{}\"", regex.replace('"', "\"\""))?;
        }
    }
    write_list(f, "network", &when.networks)?;
    let port = |range: &crate::matching::PortRange| match range.first == range.last {
        true => range.first.to_string(),
        false => format!("{}-{}", range.first, range.last),
    };
    write_list(f, "port", &when.ports.iter().map(port).collect::<Vec<_>>())?;
    if let Some(number) = when.protocol {
        write!(f, " protocol={}", protocol_name(number))?;
    }
    write_list(f, "layer", &when.layers)?;
    f.write_str(if when.ech { " ech" } else { "" })?;
    write_list(f, "alpn", &when.alpn)?;
    if let Some(dscp) = when.dscp {
        write!(f, " dscp={dscp}")?;
    }
    if *when == Conditions::default() { f.write_str(" any") } else { Ok(()) }
}

fn write_list(f: &mut fmt::Formatter<'_>, key: &str, list: &[impl Display]) -> fmt::Result {
    for (number, one) in list.iter().enumerate() {
        match number {
            0 => write!(f, " {key}={one}")?,
            _ => {
                f.write_char(',')?;
                one.fmt(f)?;
            }
        }
    }
    Ok(())
}

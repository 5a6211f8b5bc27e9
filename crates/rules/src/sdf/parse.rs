//! Reads a flow description: the IPFilterRule of RFC 6733 4.3.1 as TS 29.212 5.4.2 and TS 29.244 8.2.5 restrict it.
//!
//! `permit out PROTOCOL from SOURCE [PORTS] to DESTINATION [PORTS]`, and, because control planes send them, `in` for
//! `out`, names of protocols, capitals, any white space, and `!` before an address or prefix. Nothing else: no `deny`, no
//! options.

use super::{Addresses, FlowDescription, FlowEnd, PortRange};
use ipnet::IpNet;
use std::net::IpAddr;
use std::str::{FromStr, SplitAsciiWhitespace};

/// Longer descriptions are refused: with all the port ranges a filter may have, one has some 900 bytes.
pub(super) const MAX_BYTES: usize = 1_024;

/// Why a flow description is refused, with the word at fault as it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SdfError {
    /// More than 1,024 bytes; how many.
    #[error("a flow description has at most {MAX_BYTES} bytes, not {0}")]
    TooLong(usize),
    /// It ends too early.
    #[error("the flow description ends where {0} should stand")]
    Ends(&'static str),
    /// A word stands where another must.
    #[error("{word:?} stands where {expected} should")]
    Unexpected {
        /// What was written.
        word: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// `deny`: what packets do not match is said by other rules (TS 29.212 5.4.2).
    #[error("{0:?} is not allowed, only \"permit\"")]
    Denies(String),
    /// `!` before what is every address there is, of its IP version.
    #[error("{0:?} leaves no address: \"!\" stands before an address, or a prefix of some")]
    NoAddress(String),
    /// Neither `ip`, nor 0 to 255, nor a known name.
    #[error("{0:?} is no protocol: ip, or 0 to 255")]
    Protocol(String),
    /// Neither `any`, nor `assigned`, nor an address or prefix.
    #[error("{0:?} is no address: any, assigned, or an address or prefix of IPv4 or IPv6")]
    Address(String),
    /// Not a list of ports and ranges.
    #[error("{0:?} is no list of ports such as 80,443,1000-2000")]
    Ports(String),
    /// Options (TS 29.212 5.4.2).
    #[error("{0:?} is an option, which is not allowed")]
    Option(String),
}

impl FromStr for FlowDescription {
    type Err = SdfError;

    /// # Errors
    /// The first word at fault.
    fn from_str(text: &str) -> Result<Self, SdfError> {
        if text.len() > MAX_BYTES {
            return Err(SdfError::TooLong(text.len()));
        }
        let mut words = Words { rest: text.split_ascii_whitespace(), pending: None };
        words.action()?;
        let inwards = words.direction()?;
        let protocol = protocol(words.next("a protocol")?)?;
        words.keyword("from", "\"from\"")?;
        let source = words.end()?;
        words.keyword("to", "\"to\" or ports")?;
        let destination = words.end()?;
        match words.pending() {
            Some(option) => Err(SdfError::Option(option.to_owned())),
            None => Ok(description(protocol, source, destination, inwards)),
        }
    }
}

/// An end as it was written.
struct End {
    is_assigned: bool,
    end: FlowEnd,
}

/// `out` is towards the user, so its end is the destination; unless only the source is `assigned`, which no end but
/// the user's can be.
fn description(protocol: Option<u8>, source: End, destination: End, inwards: bool) -> FlowDescription {
    let from_user = match (source.is_assigned, destination.is_assigned) {
        (true, false) => true,
        (false, true) => false,
        _ => inwards,
    };
    let (user, remote) = if from_user { (source, destination) } else { (destination, source) };
    FlowDescription { protocol, remote: remote.end, user: user.end }
}

struct Words<'a> {
    rest: SplitAsciiWhitespace<'a>,
    /// A word looked at and left.
    pending: Option<&'a str>,
}

impl<'a> Words<'a> {
    fn next(&mut self, expected: &'static str) -> Result<&'a str, SdfError> {
        self.pending.take().or_else(|| self.rest.next()).ok_or(SdfError::Ends(expected))
    }

    fn pending(&mut self) -> Option<&'a str> {
        self.pending = self.pending.or_else(|| self.rest.next());
        self.pending
    }

    fn action(&mut self) -> Result<(), SdfError> {
        let word = self.next("\"permit\"")?;
        match word {
            _ if word.eq_ignore_ascii_case("permit") => Ok(()),
            _ if word.eq_ignore_ascii_case("deny") => Err(SdfError::Denies(word.to_owned())),
            _ => Err(unexpected(word, "\"permit\"")),
        }
    }

    /// Whether it is `in`.
    fn direction(&mut self) -> Result<bool, SdfError> {
        let word = self.next("\"out\"")?;
        match word {
            _ if word.eq_ignore_ascii_case("out") => Ok(false),
            _ if word.eq_ignore_ascii_case("in") => Ok(true),
            _ => Err(unexpected(word, "\"out\" or \"in\"")),
        }
    }

    fn keyword(&mut self, keyword: &str, expected: &'static str) -> Result<(), SdfError> {
        let word = self.next(expected)?;
        match word.eq_ignore_ascii_case(keyword) {
            true => Ok(()),
            false => Err(unexpected(word, expected)),
        }
    }

    fn end(&mut self) -> Result<End, SdfError> {
        let word = self.next("an address")?;
        let (addresses, is_assigned) = addresses(word)?;
        let begins_ports = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
        let ports = match self.pending().filter(begins_ports) {
            Some(word) => {
                self.pending = None;
                ports(word)?
            }
            None => vec![],
        };
        Ok(End { is_assigned, end: FlowEnd { addresses, ports } })
    }
}

fn unexpected(word: &str, expected: &'static str) -> SdfError {
    SdfError::Unexpected { word: word.to_owned(), expected }
}

/// Names that control planes write although only numbers are foreseen; numbers as IANA assigns them.
const PROTOCOL_NAMES: [(&str, u8); 10] = [
    ("icmp", 1),
    ("tcp", 6),
    ("udp", 17),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("icmp6", 58),
    ("ipv6-icmp", 58),
    ("sctp", 132),
];

fn protocol(word: &str) -> Result<Option<u8>, SdfError> {
    if word.eq_ignore_ascii_case("ip") {
        return Ok(None);
    }
    let named = PROTOCOL_NAMES.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
    let number = named.map(|(_, number)| *number).or_else(|| number(word));
    number.map(Some).ok_or_else(|| SdfError::Protocol(word.to_owned()))
}

/// Digits only: a sign, which Rust would read, is none.
fn number<T: FromStr>(digits: &str) -> Option<T> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Those that are wanted, unless it is any, and whether it is `assigned`.
fn addresses(word: &str) -> Result<(Option<Addresses>, bool), SdfError> {
    if word.eq_ignore_ascii_case("any") {
        return Ok((None, false));
    }
    if word.eq_ignore_ascii_case("assigned") {
        return Ok((None, true));
    }
    match word.strip_prefix('!') {
        None => Ok((Some(prefix(word)?.into()), false)),
        Some(others) if others.eq_ignore_ascii_case("any") => Err(SdfError::NoAddress(word.to_owned())),
        Some(others) => match prefix(others)? {
            all if all.prefix_len() == 0 => Err(SdfError::NoAddress(word.to_owned())),
            prefix => Ok((Some(Addresses { prefix, inverted: true }), false)),
        },
    }
}

fn prefix(word: &str) -> Result<IpNet, SdfError> {
    let single = || word.parse::<IpAddr>().map(IpNet::from);
    word.parse().or_else(|_| single()).map_err(|_| SdfError::Address(word.to_owned()))
}

fn ports(word: &str) -> Result<Vec<PortRange>, SdfError> {
    let ranges: Option<Vec<PortRange>> = word.split(',').map(range).collect();
    ranges.ok_or_else(|| SdfError::Ports(word.to_owned()))
}

fn range(text: &str) -> Option<PortRange> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = PortRange { first: number(first)?, last: number(last)? };
    (range.first <= range.last).then_some(range)
}

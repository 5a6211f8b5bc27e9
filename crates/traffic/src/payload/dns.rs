//! DNS queries and answers over UDP (RFC 1035, AAAA: RFC 3596, EDNS: RFC 6891).

use super::{counted16, put_name, put16};
use std::net::IpAddr;

/// A question, and what makes its answer belong to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub(crate) id: u16,
    pub(crate) host: &'a str,
    pub(crate) family: Family,
}

/// Which addresses are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

const A: u16 = 1;
const AAAA: u16 = 28;
const OPT: u16 = 41;
const INTERNET: u16 = 1;
const RECURSION_DESIRED: u16 = 0x0100;
const RECURSIVE_ANSWER: u16 = 0x8180;
/// To the name of the question, which is behind the header (RFC 1035 4.1.4).
const POINTER_TO_QUESTION: u16 = 0xc00c;
const UDP_SIZE: u16 = 1_232;
const TTL_SECONDS: [u16; 2] = [0, 300];

/// Appends a query.
pub(crate) fn query(out: &mut Vec<u8>, question: Question<'_>) {
    put16(out, &[question.id, RECURSION_DESIRED, 1, 0, 0, 1]);
    put_question(out, question);
    // The root's name, then OPT with the size of our buffer, no flags, no options.
    out.push(0);
    put16(out, &[OPT, UDP_SIZE, 0, 0, 0]);
}

/// Appends the answer, with all `addresses` of the question's family.
pub(crate) fn answer(out: &mut Vec<u8>, question: Question<'_>, addresses: &[IpAddr]) {
    let fits = |address: &&IpAddr| address.is_ipv4() == (question.family == Family::V4);
    let count = addresses.iter().filter(fits).count() as u16;
    put16(out, &[question.id, RECURSIVE_ANSWER, 1, count, 0, 0]);
    put_question(out, question);
    for address in addresses.iter().filter(fits) {
        put16(out, &[POINTER_TO_QUESTION, kind(question.family), INTERNET]);
        put16(out, &TTL_SECONDS);
        counted16(out, |out| match address {
            IpAddr::V4(address) => out.extend(address.octets()),
            IpAddr::V6(address) => out.extend(address.octets()),
        });
    }
}

fn put_question(out: &mut Vec<u8>, question: Question<'_>) {
    put_name(out, question.host);
    put16(out, &[kind(question.family), INTERNET]);
}

const fn kind(family: Family) -> u16 {
    match family {
        Family::V4 => A,
        Family::V6 => AAAA,
    }
}

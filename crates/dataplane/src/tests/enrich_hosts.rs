//! Header enrichment for one application: whom a request is for is known before the field is put into it, or it gets none.

use super::enrich::{FIELD, GET, counts, say, shake_hands};
use super::redirect::{USER_FIRST, bench_with, flow, load};
use crate::fixture::{Bench, SERVED, enriched, rules};
use rules::{ApplicationId, Far, FarId, PdrId, Rules};

/// The partner's requests get a field; for all others there is another rule.
fn partner() -> Rules {
    let mut all = rules(SERVED);
    let mut pdr = all.pdrs[0].clone();
    (pdr.id, pdr.precedence, pdr.far) = (PdrId(7), 1, FarId(7));
    pdr.pdi.application = ApplicationId::new("partner");
    all.pdrs.push(pdr);
    let enriched = enriched(SERVED).fars[0].enrichment.clone();
    all.fars.push(Far { id: FarId(7), enrichment: enriched, ..all.fars[0].clone() });
    all
}

fn bench(rules: Rules) -> Bench {
    let mut bench = bench_with(SERVED, rules);
    load(&mut bench, "id=1 precedence=1 rating-group=1 application=partner host=partner.example\n");
    bench
}

fn request(host: &str) -> Vec<u8> {
    format!("GET /some/where HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()
}

/// Whether what the server hears has the field: of a request to the partner, and of the next one, which comes in two pieces.
fn are_enriched(rules: Rules, next: &[u8], cut: usize) -> (bool, bool) {
    let (mut bench, flow) = (bench(rules), flow(SERVED));
    shake_hands(&mut bench, &flow);
    let has_field = |said: &[u8]| said.windows(FIELD.len()).any(|part| part == FIELD);
    let first = request("partner.example");
    let (_, heard) = say(&mut bench, &flow, USER_FIRST, &first);
    // What was put in must be acknowledged first.
    let is_first = has_field(&heard);
    let put = if is_first { FIELD.len() as u32 } else { 0 };
    let second = USER_FIRST + first.len() as u32;
    super::enrich::acknowledge(&mut bench, &flow, second + put);
    let (_, begin) = say(&mut bench, &flow, second, &next[..cut]);
    let (_, end) = say(&mut bench, &flow, second + cut as u32, &next[cut..]);
    (is_first, has_field(&begin) || has_field(&end))
}

#[test]
fn a_request_whose_host_comes_later_gets_no_field_that_was_for_the_one_before() {
    let (stranger, line) = (request("third.example"), b"GET /some/where HTTP/1.1\r\n".len());
    for cut in [line, line + 3, line + 10, stranger.len() - 4] {
        assert_eq!(are_enriched(partner(), &stranger, cut), (true, false), "cut at {cut}");
    }
    assert_eq!(are_enriched(partner(), &stranger, stranger.len() - 1), (true, false));
    let own = request("partner.example");
    assert_eq!(are_enriched(partner(), &own, own.len() - 2), (true, true));
    assert_eq!(are_enriched(partner(), &own, line), (true, false));
}

/// Nor does one that may turn out to be of an application whose rule has none.
#[test]
fn a_field_for_all_others_waits_for_the_host_too() {
    let all_but = || {
        let mut all = partner();
        let field = all.fars[2].enrichment.take();
        all.fars[0].enrichment = field;
        all
    };
    let (others, line) = (request("third.example"), b"GET /some/where HTTP/1.1\r\n".len());
    assert_eq!(are_enriched(all_but(), &others, others.len() - 2), (false, true));
    assert_eq!(are_enriched(all_but(), &others, line), (false, false));
    let (mut bench, flow) = (bench(all_but()), flow(SERVED));
    shake_hands(&mut bench, &flow);
    let heard = say(&mut bench, &flow, USER_FIRST, &others[..line]);
    assert_eq!((heard, counts(&bench)), ((USER_FIRST, others[..line].to_vec()), (0, 1)));
}

/// Where no rule tells requests apart, all of a connection are of what it is.
#[test]
fn what_addresses_tell_needs_no_host() {
    let (mut bench, flow) = (bench_with(SERVED, partner()), flow(SERVED));
    load(&mut bench, "id=1 precedence=1 rating-group=1 application=partner any\n");
    shake_hands(&mut bench, &flow);
    say(&mut bench, &flow, USER_FIRST, GET);
    let line = b"GET /a HTTP/1.1\r\n".len();
    let next = USER_FIRST + GET.len() as u32;
    super::enrich::acknowledge(&mut bench, &flow, next + FIELD.len() as u32);
    let (_, heard) = say(&mut bench, &flow, next, &GET[..line + 3]);
    assert_eq!(heard, [&GET[..line], FIELD, &GET[line..line + 3]].concat());
}

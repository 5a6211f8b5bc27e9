//! What a client of OpenSSL says, read whole and otherwise.

use super::*;

/// For A.Example, with h2 and http/1.1.
const SAMPLE: &str = "\
    1603010200010001fc03031f148f4a218dbd40b8d1db9a6888b67319e30318c3c055a36564ce6c8a9047932019d785a2eea3f80947ea64\
    7e964c7df9fa6a2b4272d410dab47f16f1b3784d5b000a130213031301c02f00ff010001a90000000e000c000009412e4578616d706c65\
    000b000403000102000a00160014001d0017001e0019001801000101010201030104002300000010000e000c02683208687474702f312e\
    310016000000170000000d002a0028040305030603080708080809080a080b080408050806040105010601030303010302040205020602\
    002b00050403040303002d00020101003300260024001d0020f4a749a06f55986b1d2bd9cf78d788f80f085d555c21e13c306a07ea8e6a\
    e043001500ec00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
    00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
    00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
    00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
    00000000000000000000000000000000000000000000";

fn sample() -> Vec<u8> {
    let digits = SAMPLE.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// The same in records of so many octets.
fn in_records(length: usize) -> Vec<u8> {
    let part = |part: &[u8]| [&[22, 3, 3, 0, part.len() as u8], part].concat();
    sample()[5..].chunks(length).flat_map(part).collect()
}

fn of_tls(host: Option<&str>) -> Option<Reading> {
    let host = host.map(str::to_owned);
    Some(Reading::Said(Said { layer: Some(Layer::Tls), host, ..Said::default() }))
}

#[test]
fn a_client_names_its_server() {
    assert_eq!(read(&sample(), false), of_tls(Some("a.example")));
    assert_eq!(read(&[&sample()[..], b"more"].concat(), false), of_tls(Some("a.example")));
    for length in [1, 8, 100, 255] {
        assert_eq!(read(&in_records(length), false), of_tls(Some("a.example")), "{length}");
    }
}

/// As servers pass them over: empty ones, and warnings.
#[test]
fn records_before_and_within_a_hello_may_say_nothing() {
    for nothing in [&[22, 3, 1, 0, 0][..], &[20, 3, 1, 0, 0], &[21, 3, 1, 0, 2, 1, 90], &[22, 9, 1, 0, 0]] {
        let nothing = nothing.repeat(3);
        for records in [0, 1, 2, 30] {
            let whole = in_records(2);
            let (front, behind) = whole.split_at(7 * records);
            let stream = [front, &nothing, behind].concat();
            assert_eq!(read(&stream, false), of_tls(Some("a.example")), "{records}");
            for end in 1..=front.len() + nothing.len() {
                assert_eq!(read(&stream[..end], false), Some(Reading::More), "{records} {end}");
            }
        }
    }
}

/// At the bounds what is there counts, from the extensions on.
#[test]
fn a_hello_is_waited_for_as_long_as_there_may_be_more() {
    let sample = sample();
    let at = |wanted: &[u8]| sample.windows(wanted.len()).position(|part| part == wanted).unwrap();
    let (extensions, named) = (at(b"\0\0\0\x0e\0\x0c"), at(b"A.Example") + 9);
    for end in 1..sample.len() {
        assert_eq!(read(&sample[..end], false), Some(Reading::More), "{end}");
        let expected = match end {
            _ if end < extensions => Some(Reading::Other),
            _ if end < named => of_tls(None),
            _ => of_tls(Some("a.example")),
        };
        assert_eq!(read(&sample[..end], true), expected, "{end}");
    }
}

#[test]
fn what_begins_otherwise_is_something_else() {
    for (at, value) in [(0, 21), (0, 20), (0, 23), (1, 16), (5, 2)] {
        let mut stream = sample();
        stream[at] = value;
        assert_eq!(read(&stream, false), None, "{at}");
    }
    assert_eq!(read(b"", true), None);
}

/// A second record that is none, and lengths that do not fit.
#[test]
fn what_servers_refuse_says_nothing() {
    let refused = |change: &dyn Fn(&mut Vec<u8>), stream: Vec<u8>| {
        let mut stream = stream;
        change(&mut stream);
        assert_eq!(read(&stream, false), Some(Reading::Other), "{stream:02x?}");
    };
    for (at, value) in [(105, 23), (105, 21), (105, 20), (106, 16), (108, 0x41)] {
        refused(&|stream| stream[at] = value, in_records(100));
    }
    let at = |wanted: &[u8]| sample().windows(wanted.len()).position(|part| part == wanted).unwrap();
    // Of the message, the session, the name's extension, its list and the name, and that it is one.
    for (at, value) in [(8, 0), (43, 33), (at(b"\0\0\0\x0e\0") + 3, 13), (at(b"\0\x0c\0\0\x09") + 1, 11)] {
        refused(&|stream| stream[at] = value, sample());
    }
    refused(&|stream| stream[at(b"A.Example") + 1] = b' ', sample());
    refused(&|stream| stream[at(b"A.Example") - 3] = 1, sample());
    refused(&|stream| stream[at(b"\x02h2") - 1] = 11, sample());
}

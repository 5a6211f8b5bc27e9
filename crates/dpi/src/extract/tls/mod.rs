//! TLS over a stream: the client's first handshake message, put together from its records (RFC 8446 5.1).

mod hello;
mod records;

pub use hello::{ClientHello, Protocols};

#[cfg(test)]
pub(crate) use hello::tests::sample as hello_sample;

use super::assembly::Assembly;
use super::{Look, Seen, Unknown};
use hello::CLIENT_HELLO;
use records::{NotHandshake, Records};
use std::ops::Range;

/// How far a stream was looked through, so that however small its records and segments are, none is read with each of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Where the first record stands that was not whole.
    at: u16,
    /// Bytes of the message in those before it.
    have: u16,
    /// Bytes that its header says are behind it, as far as that is there; of more than fit as many as do.
    length: u16,
}

/// Bytes before the body of a handshake message: type and length.
pub(super) const MESSAGE_HEADER: usize = 4;

/// Whether a stream that begins so can be TLS, by its first bytes: a handshake record with the beginning of a ClientHello, behind any
/// that servers pass over.
pub(super) fn can_begin(bytes: &[u8]) -> bool {
    let mut records = Records::new(bytes);
    match records.by_ref().find(has_content) {
        Some(record) => record.is_ok_and(|record| bytes.get(record.start) == Some(&CLIENT_HELLO)),
        None => records::can_begin(bytes.get(records.at()..).unwrap_or_default()),
    }
}

/// Whether there is something in a record, or it is none.
fn has_content(record: &Result<Range<usize>, NotHandshake>) -> bool {
    record.as_ref().map_or(true, |record| !record.is_empty())
}

/// Bytes of a handshake message, header included, that begins so; `None` where its header is not whole.
pub(super) fn message_length(message: &[u8]) -> Option<usize> {
    let mut reader = super::reader::Reader::new(message);
    reader.u8()?;
    Some(reader.u24()? + MESSAGE_HEADER)
}

/// The ClientHello at the front of handshake bytes, of which there may be more or fewer than it has.
pub(super) fn message(bytes: &[u8]) -> Option<ClientHello<'_>> {
    let length = message_length(bytes)?;
    let body = bytes.get(MESSAGE_HEADER..length.min(bytes.len()))?;
    ClientHello::parse(body, bytes.len() >= length)
}

/// Looks at the beginning of a stream that is in one place: known where the first record with anything has the whole ClientHello.
pub(super) fn look(bytes: &[u8]) -> Look<'_> {
    let Some(Ok(record)) = Records::new(bytes).find(has_content) else { return Look::More };
    let Some(handshake) = bytes.get(record) else { return Look::More };
    match message_length(handshake) {
        Some(length) if length <= handshake.len() => seen(message(handshake)),
        _ => Look::More,
    }
}

/// Looks at the beginning of a stream; `last`: there will be no more of it, so part of a ClientHello will do.
///
/// Where it is in several records, these are pushed together in place: there is no second look.
pub(super) fn look_assembled<'a>(
    assembly: &'a mut Assembly,
    progress: &mut Progress,
    last: bool,
) -> Look<'a> {
    match progress.is_whole(assembly.prefix()) {
        Err(NotHandshake) => return Look::Unknown(Unknown::Malformed),
        Ok(false) if !last => return Look::More,
        Ok(_) => {}
    }
    let length = records::push_together(assembly.prefix_mut());
    seen(message(assembly.prefix().get(..length).unwrap_or_default()))
}

impl Progress {
    pub(super) const fn new() -> Self {
        Self { at: 0, have: 0, length: 0 }
    }

    /// As [`can_begin`], of a stream that has been looked through so far.
    pub(super) fn can_begin(&self, bytes: &[u8]) -> bool {
        self.have > 0 || can_begin(bytes.get(usize::from(self.at)..).unwrap_or_default())
    }

    /// Whether all of the message is there, counted over its records.
    fn is_whole(&mut self, bytes: &[u8]) -> Result<bool, NotHandshake> {
        let mut records = Records::from(bytes, self.at.into());
        while let Some(record) = records.next() {
            let ahead = self.behind(bytes.get(record?).unwrap_or_default(), records.at());
            if ahead.is_enough() {
                return Ok(true);
            }
            if records.at() <= bytes.len() {
                *self = ahead;
            }
        }
        Ok(false)
    }

    /// Behind a record that ends there. Of the message there are no more bytes than of the stream, of which there are 4 KiB at most.
    fn behind(&self, content: &[u8], at: usize) -> Self {
        let header = (usize::from(self.have)..MESSAGE_HEADER).zip(content).filter(|(place, _)| *place > 0);
        let length = header.fold(self.length, |length, (_, byte)| match length {
            ..=0xff => length << 8 | u16::from(*byte),
            _ => u16::MAX,
        });
        Self { at: at as u16, have: self.have + content.len() as u16, length }
    }

    fn is_enough(&self) -> bool {
        let have = usize::from(self.have);
        have >= MESSAGE_HEADER && MESSAGE_HEADER + usize::from(self.length) <= have
    }
}

fn seen(hello: Option<ClientHello<'_>>) -> Look<'_> {
    hello.map_or(Look::Unknown(Unknown::Malformed), |hello| Look::Seen(Seen::Tls(hello)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::extract::{Inspection, Verdict};
    use records::HEADER;

    /// A stream of records of `size` bytes at most.
    pub(crate) fn in_records(message: &[u8], size: usize) -> Vec<u8> {
        let record = |body: &[u8]| [&[22, 3, 1], &(body.len() as u16).to_be_bytes()[..], body].concat();
        message.chunks(size).flat_map(record).collect()
    }

    #[test]
    fn one_record_is_read_where_it_stands_and_more_are_pushed_together() {
        let message = hello::tests::sample("a.example");
        for size in [message.len(), 1_000, 100, 23, 4] {
            let stream = in_records(&message, size);
            let mut assembly = Assembly::new();
            assembly.insert(0, &stream).unwrap();
            let in_place = matches!(look(&stream), Look::Seen(_));
            assert_eq!(in_place, size >= message.len());
            let Look::Seen(Seen::Tls(hello)) = look_assembled(&mut assembly, &mut Progress::new(), false)
            else {
                panic!("{size}")
            };
            assert_eq!(hello.server_name, Some(&b"a.example"[..]));
            assert!(hello.is_whole);
        }
    }

    #[test]
    fn a_hello_is_known_when_all_of_it_is_there_or_no_more_comes() {
        let message = hello::tests::sample("a.example");
        let stream = in_records(&message, 90);
        for end in 1..stream.len() {
            let mut assembly = Assembly::new();
            assembly.insert(0, &stream[..end]).unwrap();
            assert!(can_begin(&stream[..end]));
            assert!(
                matches!(look_assembled(&mut assembly, &mut Progress::new(), false), Look::More),
                "{end}"
            );
            match look_assembled(&mut assembly, &mut Progress::new(), true) {
                Look::Seen(Seen::Tls(hello)) => assert!(!hello.is_whole && end > 40),
                Look::Unknown(Unknown::Malformed) => assert!(end < 60, "{end}"),
                other => panic!("{end}: {other:?}"),
            }
        }
    }

    /// However it comes, what is found is the same, and records are counted once.
    #[test]
    fn records_are_counted_from_where_they_were() {
        let stream = in_records(&hello::tests::sample("a.example"), 9);
        let mut progress = Progress::new();
        for end in 1..=stream.len() {
            let whole = progress.is_whole(&stream[..end]);
            assert_eq!(whole, Progress::new().is_whole(&stream[..end]));
            assert_eq!(whole, Ok(end == stream.len()));
            assert!(end - usize::from(progress.at) < HEADER + 9 || end == stream.len());
        }
    }

    #[test]
    fn records_that_are_none_are_refused() {
        let message = hello::tests::sample("a.example");
        let mut stream = in_records(&message, 90);
        // The second record becomes an alert, though of no length that one has.
        stream[HEADER + 90] = 21;
        let mut assembly = Assembly::new();
        assembly.insert(0, &stream).unwrap();
        assert!(matches!(
            look_assembled(&mut assembly, &mut Progress::new(), false),
            Look::Unknown(Unknown::Malformed)
        ));
        for none in
            [&[21, 3, 1, 0, 2, 2, 80][..], &[20, 3, 1, 0, 1, 1], &[23, 3, 1, 0, 0], &[22, 16, 1, 0, 0]]
        {
            assert!(!can_begin(none), "{none:02x?}");
            assert_eq!(Progress::new().is_whole(none), Err(NotHandshake), "{none:02x?}");
        }
    }

    /// As each of them is taken by OpenSSL 3.0 or Go 1.24, in front of the ClientHello, within the header of the message, and within it.
    #[test]
    fn records_that_servers_pass_over_hide_no_name() {
        let message = hello::tests::sample("a.example");
        let warning = [21, 3, 1, 0, 2, 1, 90];
        let [empty, of_cipher, old] = [[22, 3, 1, 0, 0], [20, 3, 3, 0, 0], [22, 2, 0, 0, 0]];
        for passed_over in [&empty[..], &empty.repeat(32), &of_cipher, &warning, &warning.repeat(5), &old] {
            for place in [0, 2, 50] {
                let (front, behind) = message.split_at(place);
                let front = if place == 0 { vec![] } else { in_records(front, place) };
                let stream = [&front, passed_over, &in_records(behind, 16_384)].concat();
                assert_eq!(name_in(&[&stream]).as_deref(), Some("a.example"), "{passed_over:02x?} {place}");
                for cut in 1..stream.len().min(250) {
                    let (one, other) = stream.split_at(cut);
                    assert_eq!(name_in(&[one, other]).as_deref(), Some("a.example"), "{place} {cut}");
                }
            }
        }
    }

    /// No server minds it as long as it does not know what is spoken.
    #[test]
    fn records_may_be_of_any_version() {
        for version in [[3, 0], [3, 4], [3, 0xff], [4, 1], [2, 0], [15, 0]] {
            let mut stream = in_records(&hello::tests::sample("a.example"), 16_384);
            stream[1..3].copy_from_slice(&version);
            assert_eq!(name_in(&[&stream]).as_deref(), Some("a.example"), "{version:?}");
        }
    }

    /// What a stream in these segments names.
    fn name_in(segments: &[&[u8]]) -> Option<String> {
        let mut inspection = Inspection::new();
        let mut at = 0;
        for segment in segments {
            if let Verdict::Seen(seen) = inspection.segment(at, segment) {
                return seen.host().map(|host| String::from_utf8_lossy(host).into_owned());
            }
            at += segment.len() as u32;
        }
        None
    }
}

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

/// How far a stream was looked through, so that however small its records and segments are, none is read with each of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Where the first record stands that was not whole.
    at: u16,
    /// Bytes of the message in those before it.
    have: u16,
}

/// Bytes before the body of a handshake message: type and length.
pub(super) const MESSAGE_HEADER: usize = 4;

/// Whether a stream that begins so can be TLS, by its first bytes: a handshake record of version 3.x, in it a
/// ClientHello.
pub(super) fn can_begin(bytes: &[u8]) -> bool {
    let expected =
        [Some(records::HANDSHAKE), Some(records::MAJOR_VERSION), None, None, None, Some(CLIENT_HELLO)];
    bytes.iter().zip(expected).all(|(byte, expected)| expected.is_none_or(|expected| *byte == expected))
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

/// Looks at the beginning of a stream that is in one place: known where the first record has the whole ClientHello.
pub(super) fn look(bytes: &[u8]) -> Look<'_> {
    let Some(Ok(record)) = Records::new(bytes).next() else { return Look::More };
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
        Self { at: 0, have: 0 }
    }

    /// Whether all of the message is there, counted over its records.
    fn is_whole(&mut self, bytes: &[u8]) -> Result<bool, NotHandshake> {
        let length = head(bytes).and_then(|head| message_length(&head));
        let is_enough = |have: usize| length.is_some_and(|length| length <= have);
        let mut records = Records::from(bytes, self.at.into());
        while let Some(record) = records.next() {
            let have = usize::from(self.have) + record?.len();
            if is_enough(have) {
                return Ok(true);
            }
            if records.at() <= bytes.len() {
                // No more than there are bytes, of which there are 4 KiB at most.
                (self.at, self.have) = (records.at() as u16, have as u16);
            }
        }
        Ok(false)
    }
}

/// The header of the message, as each record has a byte of it at least; `None` where it is not whole.
fn head(bytes: &[u8]) -> Option<[u8; MESSAGE_HEADER]> {
    let records = Records::new(bytes).map_while(Result::ok).take(MESSAGE_HEADER);
    let mut head = records.flat_map(|record| bytes.get(record).unwrap_or_default()).copied();
    Some([head.next()?, head.next()?, head.next()?, head.next()?])
}

fn seen(hello: Option<ClientHello<'_>>) -> Look<'_> {
    hello.map_or(Look::Unknown(Unknown::Malformed), |hello| Look::Seen(Seen::Tls(hello)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
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
        // The second record becomes an alert; then, there is an empty one.
        stream[HEADER + 90] = 21;
        let mut assembly = Assembly::new();
        assembly.insert(0, &stream).unwrap();
        assert!(matches!(
            look_assembled(&mut assembly, &mut Progress::new(), false),
            Look::Unknown(Unknown::Malformed)
        ));
        let mut assembly = Assembly::new();
        assembly.insert(0, &[22, 3, 1, 0, 0]).unwrap();
        assert!(matches!(
            look_assembled(&mut assembly, &mut Progress::new(), false),
            Look::Unknown(Unknown::Malformed)
        ));
    }
}

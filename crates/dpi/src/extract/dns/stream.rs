//! Messages over TCP, each behind its length in two octets (RFC 1035 4.2.2, RFC 7766 8).

use super::super::reader::Reader;
use super::{HEADER, Message};

/// Most messages of a segment that are looked at; clients may send several before they are answered (RFC 7766 6.2.1.1).
pub const MESSAGES_MAX: usize = 8;
/// Longer queries nobody has: a name, and the options of EDNS.
const QUERY_MAX: usize = 2_048;
/// Bytes of the shortest question: the root's name, kind and class.
const QUESTION: usize = 5;

/// The messages that begin in a segment of either direction, if one begins where the segment does. Of the last, what has
/// come is taken for all of it: records that have not come yet are not seen. Some senders put the length into a segment
/// of its own; a message without is taken, too.
pub fn in_segment(payload: &[u8]) -> impl Iterator<Item = Message<'_>> + use<'_> {
    let bare = if counted(payload).is_none() { Message::parse(payload) } else { None };
    let mut rest = payload;
    let all = std::iter::from_fn(move || {
        let (message, behind) = counted(rest)?;
        rest = behind;
        Some(message)
    });
    bare.into_iter().chain(all.take(MESSAGES_MAX))
}

/// The message behind its length, as far as it is there, and what is behind that.
fn counted(bytes: &[u8]) -> Option<(Message<'_>, &[u8])> {
    let mut reader = Reader::new(bytes);
    let length = usize::from(reader.u16()?);
    let (message, behind) = reader.rest().split_at_checked(length).unwrap_or((reader.rest(), &[]));
    Some((Message::parse(message)?, behind))
}

/// How a client's stream begins.
pub(in super::super) enum Begins<'a> {
    /// With a lookup.
    Lookup(Message<'a>),
    /// Perhaps with one.
    Perhaps,
    /// With something else.
    Otherwise,
}

/// Whether a client's stream begins with a lookup.
pub(in super::super) fn begins(bytes: &[u8]) -> Begins<'_> {
    let mut reader = Reader::new(bytes);
    let Some(length) = reader.u16().map(usize::from) else { return Begins::Perhaps };
    if !(HEADER + QUESTION..=QUERY_MAX).contains(&length) {
        return Begins::Otherwise;
    }
    let Some(message) = reader.rest().get(..length) else {
        return if can_begin(reader.rest()) { Begins::Perhaps } else { Begins::Otherwise };
    };
    let query = Message::parse(message).filter(|message| !message.is_response);
    query.map_or(Begins::Otherwise, Begins::Lookup)
}

/// Whether a standard query with one question begins so, as far as it is there.
fn can_begin(bytes: &[u8]) -> bool {
    let at = |place: usize| bytes.get(place);
    at(2).is_none_or(|flags| flags & 0xf8 == 0)
        && at(4).is_none_or(|high| *high == 0)
        && at(5).is_none_or(|low| *low == 1)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{QUERY, RESPONSE, sample};
    use super::*;
    use proptest::prelude::*;

    fn framed(message: &[u8]) -> Vec<u8> {
        [&(message.len() as u16).to_be_bytes()[..], message].concat()
    }

    fn ids(payload: &[u8]) -> Vec<u16> {
        in_segment(payload).map(|message| message.id).collect()
    }

    #[test]
    fn each_message_of_a_segment_is_found() {
        let one = framed(&sample((1, "a.example", QUERY), &[], &[]));
        let two = framed(&sample((2, "b.example", QUERY), &[], &[]));
        assert_eq!(ids(&one), [1]);
        assert_eq!(ids(&[&one[..], &two].concat()), [1, 2]);
        // The length went before, alone.
        assert_eq!((ids(&one[..2]), ids(&one[2..])), (vec![], vec![1]));
        assert_eq!(ids(&one.repeat(20)).len(), MESSAGES_MAX);
        assert_eq!(ids(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), []);
    }

    #[test]
    fn of_an_answer_in_two_segments_what_the_first_says_is_seen() {
        let addresses = [1, 2, 3].map(|last| std::net::IpAddr::from([192, 0, 2, last]));
        let whole = framed(&sample((1, "a.example", RESPONSE), &[], &addresses));
        let told = |payload: &[u8]| in_segment(payload).flat_map(|message| message.addresses()).count();
        assert_eq!(told(&whole), 3);
        assert_eq!(told(&whole[..whole.len() - 1]), 2);
        assert_eq!(told(&whole[whole.len() - 16..]), 0);
    }

    #[test]
    fn a_stream_begins_with_a_lookup_or_not() {
        let query = framed(&sample((1, "a.example", QUERY), &[], &[]));
        for end in 0..query.len() {
            assert!(matches!(begins(&query[..end]), Begins::Perhaps), "{end}");
        }
        assert!(matches!(begins(&query), Begins::Lookup(message) if message.id == 1));
        let answer = framed(&sample((1, "a.example", RESPONSE), &[], &[]));
        assert!(matches!(begins(&answer), Begins::Otherwise));
        for other in [&b"SSH-2.0-x"[..], b"\x00\x05", b"\xff\xff", b"\x00\x20ab\x80"] {
            assert!(matches!(begins(other), Begins::Otherwise), "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_breaks(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = in_segment(&bytes).flat_map(|message| message.addresses()).count();
            let _ = begins(&bytes);
        }
    }
}

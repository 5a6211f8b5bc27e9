//! Messages over TCP, each behind its length in two octets (RFC 1035 4.2.2, RFC 7766 8).

use super::super::reader::Reader;
use super::{HEADER, Message};
use arrayvec::ArrayVec;

/// Most messages of a segment that are looked at; clients may send several before they are answered (RFC 7766 6.2.1.1).
pub const MESSAGES_MAX: usize = 8;
/// Longer queries nobody has: a name, and the options of EDNS.
const QUERY_MAX: usize = 2_048;
/// Bytes of the shortest question: the root's name, kind and class.
const QUESTION: usize = 5;

/// The messages that begin in a segment of a stream that is not followed, if one begins where the segment does. Of the last, what has
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

/// Where in a stream something begins that has not been seen: a message, or its length. A stream that is followed from its
/// first byte tells its messages from whatever looks like one within another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// The sequence number.
    at: u32,
    /// What is known there of the length of the next message.
    length: Length,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Unknown,
    /// Its first octet.
    Half(u8),
    /// The message begins.
    Known(u16),
}

impl Boundary {
    /// Of a stream whose first byte has this sequence number.
    pub const fn first(sequence: u32) -> Self {
        Self { at: sequence, length: Length::Unknown }
    }

    /// The messages that begin in a segment, [`MESSAGES_MAX`] at most; of the last, what has come is taken for all of it:
    /// one whose question is cut is none, as nothing of a segment is kept. There are none in an old copy, nor behind bytes that have not come.
    pub fn follow<'a>(&mut self, sequence: u32, payload: &'a [u8]) -> ArrayVec<Message<'a>, MESSAGES_MAX> {
        let mut messages = ArrayVec::new();
        let ahead = self.at.wrapping_sub(sequence) as usize;
        let mut rest = payload.get(ahead..).unwrap_or_default();
        while let Some((octet, behind)) = rest.split_first() {
            match self.length {
                Length::Unknown => (self.length, rest) = (Length::Half(*octet), behind),
                Length::Half(high) => {
                    (self.length, rest) = (Length::Known(u16::from_be_bytes([high, *octet])), behind);
                }
                Length::Known(length) => {
                    let whole = rest.split_at_checked(length.into());
                    let (message, behind) = whole.unwrap_or((rest, &[]));
                    if !messages.is_full() {
                        messages.extend(Message::parse(message));
                    }
                    (*self, rest) = (Self::first(self.at.wrapping_add(length.into())), behind);
                    continue;
                }
            }
            self.at = self.at.wrapping_add(1);
        }
        messages
    }
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

    /// What each segment of a stream says, if it is cut at these places.
    fn followed(stream: &[u8], cuts: &[usize]) -> Vec<Vec<u16>> {
        let first = u32::MAX - 20;
        let mut boundary = Boundary::first(first);
        let places = [&[0], cuts, &[stream.len()]].concat();
        let segments = places.windows(2).map(|ends| {
            let sequence = first.wrapping_add(ends[0] as u32);
            let messages = boundary.follow(sequence, &stream[ends[0]..ends[1]]);
            messages.iter().map(|message| message.id).collect()
        });
        segments.collect()
    }

    #[test]
    fn a_stream_that_is_followed_says_each_message_where_it_begins() {
        let address = [192, 0, 2, 9].into();
        let [one, two] = [1, 2].map(|id| framed(&sample((id, "a.example", RESPONSE), &[], &[address])));
        let (all, length) = ([&one[..], &two].concat(), one.len());
        assert_eq!(followed(&all, &[]), [[1, 2]]);
        // Behind the tail of another.
        assert_eq!(followed(&all, &[length - 1]), [[1], [2]]);
        // A length alone, or one octet of it.
        for cut in [1, 2] {
            assert_eq!(followed(&all, &[cut, length + cut]), [vec![], vec![1], vec![2]]);
        }
        // A message within another is none, wherever the segment begins: also one that has a segment for itself.
        let inner = framed(&sample((7, "b.example", RESPONSE), &[], &[address]));
        let outer = sample((1, "a.example", RESPONSE), &[], &[]);
        let all = [framed(&[&outer[..], &inner].concat()), two].concat();
        let cut = 2 + outer.len();
        assert_eq!(ids(&all[cut..]), [7, 2], "as a stream looks that is not followed");
        assert_eq!(followed(&all, &[cut, cut + inner.len()]), [vec![1], vec![], vec![2]]);
    }

    #[test]
    fn a_message_that_is_cut_within_its_question_says_nothing_and_the_next_one_is_found() {
        let answer = |id| framed(&sample((id, "a.example", RESPONSE), &[], &[[192, 0, 2, 9].into()]));
        let (one, all) = (answer(1), [answer(1), answer(2)].concat());
        let question = 2 + HEADER + "a.example".len() + 2 + 4;
        for cut in 3..question {
            assert_eq!(followed(&all, &[cut]), [vec![], vec![2]], "{cut}");
        }
        assert_eq!(followed(&all, &[question]), [vec![1], vec![2]]);
        assert_eq!(followed(&all, &[one.len() + 9]), [vec![1], vec![]]);
    }

    #[test]
    fn old_copies_and_what_comes_too_early_say_nothing() {
        let [one, two] = [1, 2].map(|id| framed(&sample((id, "a.example", QUERY), &[], &[])));
        let mut boundary = Boundary::first(10);
        let behind = 10 + one.len() as u32;
        assert!(boundary.follow(behind, &two).is_empty());
        assert_eq!(boundary.follow(10, &one).len(), 1);
        assert!(boundary.follow(10, &one).is_empty());
        assert_eq!(boundary.follow(behind, &two).len(), 1);
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
            let _ = Boundary::first(0).follow(0, &bytes);
        }

        /// Wherever a stream is cut, it ends where it ends.
        #[test]
        fn cuts_do_not_matter_to_where_messages_end(
            bytes in proptest::collection::vec(0u8..3, 0..200), mut cuts in proptest::collection::vec(0usize..200, 0..6),
        ) {
            cuts.iter_mut().for_each(|cut| *cut = (*cut).min(bytes.len()));
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let (mut whole, mut parts) = (Boundary::first(9), Boundary::first(9));
            whole.follow(9, &bytes);
            cuts.windows(2).for_each(|ends| { parts.follow(9 + ends[0] as u32, &bytes[ends[0]..ends[1]]); });
            prop_assert_eq!(whole, parts);
        }
    }
}

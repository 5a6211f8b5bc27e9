//! Connections of users with a portal, which go on with a number that nobody but the node and its user knows.

use super::tally::{Frame, SYN_AND_ACK, segment_in_tunnel};
use packet::FiveTuple;
use rand::Rng;
use reference::Reference;
use reference::worlds::Random;
use std::net::IpAddr;

/// A world goes on with so many of the last ones.
const KEPT: usize = 8;
const SYN: u8 = 0x02;
/// What the portal of random worlds says takes so many numbers, with the end of the connection.
const SAID: u32 = 124;

/// Handshakes that were answered.
#[derive(Default)]
pub(super) struct Portals {
    known: Vec<Begun>,
}

/// What a user began with, and the number it heard.
struct Begun {
    syn: Frame,
    number: u32,
}

type Ends = ((IpAddr, u16), (IpAddr, u16));

impl Portals {
    /// Looks for answers to these frames among what was sent, and lets the reference know.
    pub(super) fn hear(&mut self, frames: &[Frame], sent: &[Frame], reference: &mut Reference) {
        let answers: Vec<(Ends, u32)> = sent.iter().filter_map(|frame| answer(&frame.1)).collect();
        for frame in frames {
            let Some((ends, _)) = read(&frame.1).filter(|(_, segment)| segment[13] == SYN) else { continue };
            let answer = answers.iter().find(|((server, user), _)| (*user, *server) == ends);
            if let Some((_, number)) = answer {
                reference.hear_first_number(ends, *number);
                self.known.insert(0, Begun { syn: frame.clone(), number: *number });
                self.known.truncate(KEPT);
            }
        }
    }

    /// Now and then what a user goes on to say.
    pub(super) fn next(&self, random: &mut Random) -> Option<Frame> {
        let place = random.random_range(0..50 * KEPT);
        let Begun { syn: Frame(port, frame), number } = self.known.get(place)?;
        let (mut frame, at) = (frame.clone(), segment_in_tunnel(frame)?);
        let header = frame.get_mut(at..at + 20)?;
        let sequence = u32::from_be_bytes(*header[4..].first_chunk()?).wrapping_add(1);
        let heard = [0, 1, 1, 1, 2, SAID / 2, SAID - 1, SAID, SAID + 1, SAID + 2][random.random_range(0..10)];
        header[4..8].copy_from_slice(&sequence.to_be_bytes());
        header[8..12].copy_from_slice(&number.wrapping_add(heard).to_be_bytes());
        header[13] = [0x10, 0x18, 0x18, 0x11, 0x19, 0x04, 0x14, 0x12][random.random_range(0..8)];
        let payload = at + 4 * usize::from(header[12] >> 4);
        if let Some(text) = frame.get_mut(payload..payload + 6).filter(|_| random.random_range(0..3) > 0) {
            text.copy_from_slice(b"GET / ");
        }
        Some(Frame(*port, frame))
    }
}

/// The ends of a segment in a tunnel, and all that follows from its header on.
fn read(frame: &[u8]) -> Option<(Ends, &[u8])> {
    let at = segment_in_tunnel(frame)?;
    let version = |length: usize| {
        frame.get(at - length).is_some_and(|first| first >> 4 == if length == 40 { 6 } else { 4 })
    };
    let found =
        FiveTuple::parse(frame.get(at - [40, 20].into_iter().find(|length| version(*length))?..)?).ok()?;
    let tuple = found.tuple;
    let source = (tuple.source_address(), tuple.source_port);
    Some(((source, (tuple.destination_address(), tuple.destination_port)), frame.get(at..)?))
}

fn answer(frame: &[u8]) -> Option<(Ends, u32)> {
    let (ends, segment) = read(frame).filter(|(_, segment)| segment[13] == SYN_AND_ACK)?;
    Some((ends, u32::from_be_bytes(*segment[4..].first_chunk()?)))
}

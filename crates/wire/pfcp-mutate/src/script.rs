//! A conversation as octets, which fuzzers keep: datagrams, each with who sends it and what the data plane is like.

use crate::datagram::Datagram;
use crate::dice::Dice;
use crate::mutate::mutate;

/// Lines in a conversation that mutation makes no longer.
const LINES: usize = 24;

/// A datagram and its circumstances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Who sends it, what the data plane does, how much time has passed: the reader's concern.
    pub mood: u8,
    /// What is sent; at most 65,535 octets.
    pub bytes: Vec<u8>,
}

/// A conversation: each line is two octets of length, the mood, and the datagram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// In order.
    pub lines: Vec<Line>,
}

impl Script {
    /// Any octets are a conversation; the last line may be cut short.
    pub fn read(mut bytes: &[u8]) -> Self {
        let mut lines = vec![];
        while let [high, low, mood, after @ ..] = bytes {
            let length = usize::from(u16::from_be_bytes([*high, *low])).min(after.len());
            let (datagram, rest) = after.split_at(length);
            lines.push(Line { mood: *mood, bytes: datagram.to_vec() });
            bytes = rest;
        }
        Self { lines }
    }

    /// As it is read.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = vec![];
        for line in &self.lines {
            bytes.extend(u16::try_from(line.bytes.len()).unwrap_or(u16::MAX).to_be_bytes());
            bytes.push(line.mood);
            bytes.extend(line.bytes.iter().take(usize::from(u16::MAX)));
        }
        bytes
    }

    /// Changes one thing: a message, or the course of the conversation.
    pub fn mutate(&mut self, dice: &mut Dice) {
        let (at, other) = (dice.below(self.lines.len()), dice.below(self.lines.len()));
        let Some(donor) = self.lines.get(other).cloned() else { return };
        match dice.below(12) {
            0 => drop(self.lines.remove(at)),
            1 if self.lines.len() < LINES => self.lines.insert(at, donor),
            2 => self.lines.swap(at, other),
            3 => self.lines.get_mut(at).into_iter().for_each(|line| line.mood = dice.number() as u8),
            _ => self.mutate_line(at, &donor, dice),
        }
    }

    fn mutate_line(&mut self, at: usize, donor: &Line, dice: &mut Dice) {
        let Some(line) = self.lines.get_mut(at) else { return };
        if let Some((mut datagram, donor)) = Datagram::read(&line.bytes).zip(Datagram::read(&donor.bytes)) {
            mutate(&mut datagram, &donor, dice);
            line.bytes = datagram.write();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_come_out_as_they_went_in() {
        let line = |mood, bytes: &[u8]| Line { mood, bytes: bytes.to_vec() };
        let script = Script { lines: vec![line(3, b"abc"), line(9, b"")] };
        assert_eq!(script.write(), b"\0\x03\x03abc\0\0\x09");
        assert_eq!(Script::read(&script.write()), script);
        assert_eq!(Script::read(b"\0\x03\x03a").lines, [line(3, b"a")]);
    }

    #[test]
    fn mutation_keeps_within_limits() {
        let heartbeat = [0x20, 1, 0, 12, 0, 0, 1, 0, 0, 96, 0, 4, 1, 2, 3, 4].to_vec();
        let mut script = Script { lines: vec![Line { mood: 0, bytes: heartbeat }; 3] };
        for seed in 0..2_000 {
            script.mutate(&mut Dice::new(seed));
            assert!(script.lines.len() <= LINES);
        }
    }
}

//! Frames on a byte stream: four bytes of length, least significant first, then a `postcard` value.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// No frame is longer. A session of 1,000 PDRs takes about a tenth of it; one with more than fits cannot be had ([`fits`]).
pub const LIMIT: usize = 1 << 20;

const PREFIX: usize = 4;
/// Most values are no longer: octets are put one by one into an array faster than behind each other into a vector.
const SHORT: usize = 512;
/// For the name of a command around a value.
const SPARE: usize = 16;

/// The stream cannot be read any further, or the value cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Longer than [`LIMIT`].
    #[error("a frame of {0} bytes is longer than {LIMIT}")]
    TooLong(usize),
    /// Not a value of the expected type.
    #[error("a frame does not hold what it should: {0}")]
    Content(#[from] postcard::Error),
}

/// Appends `value` as one frame to `stream`.
///
/// # Errors
/// [`FrameError::TooLong`]; `stream` is then unchanged.
pub fn write<T: Serialize>(value: &T, stream: &mut Vec<u8>) -> Result<(), FrameError> {
    let start = stream.len();
    let written = append(value, stream);
    if written.is_err() {
        stream.truncate(start);
    }
    written
}

/// The value is written where it goes: commands come by the ten thousands a second.
fn append<T: Serialize>(value: &T, stream: &mut Vec<u8>) -> Result<(), FrameError> {
    let start = stream.len();
    stream.extend_from_slice(&[0; PREFIX]);
    match machine::write_short(value, &mut [0; SHORT]) {
        Some(octets) => stream.extend_from_slice(octets),
        None => {
            postcard::to_extend(value, Tail(stream))?;
        }
    }
    let length = stream.len() - start - PREFIX;
    if length > LIMIT {
        return Err(FrameError::TooLong(length));
    }
    let prefix = (length as u32).to_le_bytes();
    stream.iter_mut().skip(start).zip(prefix).for_each(|(octet, value)| *octet = value);
    Ok(())
}

/// Whether `value` fits a frame, with some octets to spare for what it may be part of. Takes time linear in its size.
pub fn fits<T: Serialize>(value: &T) -> bool {
    // Most are short, and octets that are written in a row cost less than octets that are counted one by one.
    machine::write_short(value, &mut [0; SHORT]).is_some()
        || postcard::to_extend(value, Length(0)).is_ok_and(|Length(length)| length <= LIMIT - SPARE)
}

/// Octets that nobody wants.
struct Length(usize);

impl Extend<u8> for Length {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, octets: I) {
        self.0 += octets.into_iter().count();
    }
}

/// The end of a stream.
struct Tail<'a>(&'a mut Vec<u8>);

impl Extend<u8> for Tail<'_> {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, octets: I) {
        self.0.extend(octets);
    }
}

/// Cuts a byte stream into values.
#[derive(Debug, Default)]
pub struct Reader {
    bytes: Vec<u8>,
    taken: usize,
}

impl Reader {
    /// More of the stream has come.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next value, or `None` until more of the stream has come.
    ///
    /// # Errors
    /// The stream is broken for good: close it.
    pub fn take<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let rest = self.bytes.get(self.taken..).unwrap_or_default();
        let Some((prefix, rest)) = rest.split_first_chunk::<PREFIX>() else { return Ok(None) };
        let length = u32::from_le_bytes(*prefix) as usize;
        if length > LIMIT {
            return Err(FrameError::TooLong(length));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let value = postcard::from_bytes(body)?;
        self.taken += PREFIX + length;
        Ok(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, ContentStatistics, Desired, Role, VERSION};
    use proptest::prelude::*;
    use rules::{Rules, Seid};

    fn commands() -> Vec<Command> {
        let desired = Desired::new(Seid(1), 2, Rules::default());
        vec![
            Command::Hello { version: VERSION, role: Role::Control },
            Command::ResyncBegin { recovery_time_stamp: 3_900_000_000 },
            Command::Put(desired),
            Command::ResyncEnd,
        ]
    }

    fn read_all(reader: &mut Reader) -> Vec<Command> {
        std::iter::from_fn(|| reader.take().unwrap()).collect()
    }

    proptest! {
        #[test]
        fn values_survive_any_cut_of_the_stream(cut in 1usize..40) {
            let mut stream = Vec::new();
            commands().iter().for_each(|command| write(command, &mut stream).unwrap());
            let mut reader = Reader::default();
            let mut read = Vec::new();
            for chunk in stream.chunks(cut) {
                reader.extend(chunk);
                read.extend(read_all(&mut reader));
            }
            prop_assert_eq!(read, commands());
        }

        #[test]
        fn any_bytes_end_in_an_error_or_wait_for_more(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = Reader::default();
            reader.extend(&bytes);
            while let Ok(Some(_)) = reader.take::<Command>() {}
        }
    }

    /// What JSON has in another form is a number here, as it was for engines before.
    #[test]
    fn a_seid_is_its_number() {
        for number in [1, 0xeeb3_2352_0000_0001, u64::MAX] {
            let (mut seid, mut plain) = (Vec::new(), Vec::new());
            write(&Seid(number), &mut seid).unwrap();
            write(&number, &mut plain).unwrap();
            assert_eq!(seid, plain);
            let mut reader = Reader::default();
            reader.extend(&seid);
            assert_eq!(reader.take::<Seid>().unwrap(), Some(Seid(number)));
        }
    }

    #[test]
    fn a_revision_of_content_rules_is_its_number() {
        for revision in [0, 0xeeb3_2352_0000_0001] {
            let content = ContentStatistics { revision, waiting: 7, ..ContentStatistics::default() };
            let (mut told, mut plain) = (Vec::new(), Vec::new());
            write(&content, &mut told).unwrap();
            write(&(revision, 7u64, [0u64; 7]), &mut plain).unwrap();
            assert_eq!(told, plain);
            let mut reader = Reader::default();
            reader.extend(&told);
            assert_eq!(reader.take::<ContentStatistics>().unwrap(), Some(content));
        }
    }

    #[test]
    fn a_value_beyond_the_limit_leaves_the_stream_as_it_was() {
        let mut stream = vec![1, 2, 3];
        assert!(matches!(write(&vec![7u8; LIMIT], &mut stream), Err(FrameError::TooLong(_))));
        assert_eq!(stream, [1, 2, 3]);
    }

    #[test]
    fn values_of_any_length_come_out_as_they_went_in() {
        for length in [0, 1, SHORT - 3, SHORT - 2, SHORT - 1, SHORT, SHORT + 1, 4 * SHORT] {
            let (value, mut stream) = (vec![7u8; length], vec![]);
            write(&value, &mut stream).unwrap();
            let mut reader = Reader::default();
            reader.extend(&stream);
            assert_eq!(reader.take::<Vec<u8>>().unwrap(), Some(value), "{length}");
            assert!(reader.take::<Vec<u8>>().unwrap().is_none());
        }
    }

    #[test]
    fn what_fits_is_known_beforehand() {
        let mut stream = Vec::new();
        for length in [LIMIT - 2 * SPARE, LIMIT] {
            let value = vec![7u8; length];
            assert_eq!(fits(&value), write(&value, &mut stream).is_ok());
        }
    }

    #[test]
    fn a_frame_beyond_the_limit_is_refused() {
        let mut reader = Reader::default();
        reader.extend(&(LIMIT as u32 + 1).to_le_bytes());
        assert!(matches!(reader.take::<Command>(), Err(FrameError::TooLong(_))));
    }
}

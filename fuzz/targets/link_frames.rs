//! Any bytes on the link, from either end, are messages, an error, or wait for more; and what was read can be written, and is
//! the same when it is read again.

#![no_main]

use dplink::frame::{Reader, write};
use dplink::{Command, Notice};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a stream to its end, which comes in small pieces.
fn read<T: Serialize + DeserializeOwned>(stream: &[u8]) {
    let mut reader = Reader::default();
    for chunk in stream.chunks(7) {
        reader.extend(chunk);
        while let Ok(Some(value)) = reader.take::<T>() {
            again(&value);
        }
    }
}

/// Octets are compared: of numbers, some are not what they are themselves.
fn again<T: Serialize + DeserializeOwned>(value: &T) {
    let (mut octets, mut others, mut reader) = (Vec::new(), Vec::new(), Reader::default());
    write(value, &mut octets).expect("it came in a frame no shorter");
    reader.extend(&octets);
    let value = reader.take::<T>().expect("what was written can be read").expect("it is whole");
    write(&value, &mut others).expect("it was written before");
    assert_eq!(octets, others);
}

// A length that is right takes long to be found; so it is given, or not, as the first octet says, which also says who reads.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((mood, rest)) = bytes.split_first() else { return };
    let stream = match mood & 2 {
        0 => rest.to_vec(),
        _ => [&(rest.len() as u32).to_le_bytes()[..], rest].concat(),
    };
    if mood & 1 == 0 { read::<Command>(&stream) } else { read::<Notice>(&stream) }
});

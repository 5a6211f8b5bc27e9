//! Frames of Initial packets (RFC 9000 12.4, 17.2.2).

use crate::extract::assembly::Assembly;
use crate::extract::reader::Reader;

const PADDING: u8 = 0;
const PING: u8 = 1;
const ACK: u8 = 2;
const ACK_ECN: u8 = 3;
const CRYPTO: u8 = 6;
const CONNECTION_CLOSE: u8 = 0x1c;

/// Takes what the CRYPTO frames carry. `None` where a frame is malformed, or not allowed in an Initial packet; what
/// stood before it was taken.
pub(super) fn take(plain: &[u8], assembly: &mut Assembly) -> Option<()> {
    let mut reader = Reader::new(plain);
    loop {
        skip_padding(&mut reader);
        let Some(kind) = reader.u8() else { return Some(()) };
        match kind {
            PING => {}
            ACK | ACK_ECN => skip_ack(&mut reader, kind == ACK_ECN)?,
            CRYPTO => {
                let (offset, length) = (reader.length()?, reader.length()?);
                let data = reader.take(length)?;
                // What there is no room for is missing, no more.
                let _ = assembly.insert(offset, data);
            }
            CONNECTION_CLOSE => return Some(()),
            _ => return None,
        }
    }
}

/// Most of an Initial packet is padding, so it is skipped a few bytes at a time.
fn skip_padding(reader: &mut Reader<'_>) {
    let (chunks, _) = reader.rest().as_chunks::<32>();
    let chunks = chunks.iter().take_while(|chunk| **chunk == [PADDING; 32]).count();
    reader.take(chunks * 32);
    let padding = reader.rest().iter().take_while(|byte| **byte == PADDING).count();
    reader.take(padding);
}

/// RFC 9000 19.3: each range is two numbers, and takes bytes, so the packet bounds their count.
fn skip_ack(reader: &mut Reader<'_>, ecn: bool) -> Option<()> {
    let _largest = reader.varint()?;
    let _delay = reader.varint()?;
    let ranges = reader.varint()?;
    let _first = reader.varint()?;
    for _ in 0..ranges {
        let (_gap, _length) = (reader.varint()?, reader.varint()?);
    }
    if ecn {
        let _counts = (reader.varint()?, reader.varint()?, reader.varint()?);
    }
    Some(())
}

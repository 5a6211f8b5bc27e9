//! Values in octets, where there are few.

use postcard::ser_flavors::Flavor;
use serde::Serialize;

/// Writes `value` as postcard does, if there is room: most records and messages are short, and are written by the ten thousands a
/// second.
pub fn write_short<'a, T: Serialize>(value: &T, room: &'a mut [u8]) -> Option<&'a [u8]> {
    let length = postcard::serialize_with_flavor(value, Room { octets: room, length: 0 }).ok()?;
    room.get(..length)
}

/// Memory that is filled.
struct Room<'a> {
    octets: &'a mut [u8],
    length: usize,
}

impl Flavor for Room<'_> {
    type Output = usize;

    #[inline(always)]
    fn try_push(&mut self, octet: u8) -> postcard::Result<()> {
        let place = self.octets.get_mut(self.length).ok_or(postcard::Error::SerializeBufferFull)?;
        *place = octet;
        self.length += 1;
        Ok(())
    }

    /// Most numbers are one octet: it is put where it belongs, where postcard's own would call for a copy.
    #[inline(always)]
    fn try_extend(&mut self, octets: &[u8]) -> postcard::Result<()> {
        if let [octet] = octets {
            return self.try_push(*octet);
        }
        let end = self.length.saturating_add(octets.len());
        let place = self.octets.get_mut(self.length..end).ok_or(postcard::Error::SerializeBufferFull)?;
        place.copy_from_slice(octets);
        self.length = end;
        Ok(())
    }

    fn finalize(self) -> postcard::Result<usize> {
        Ok(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_written_as_postcard_does_and_nothing_else_is() {
        let value = (7_u8, 300_u16, -5_i32, u64::MAX, Some("name"), vec![[1_u8; 4]; 3], 1.5_f64);
        let octets = postcard::to_stdvec(&value).unwrap();
        for length in 0..octets.len() {
            assert_eq!(write_short(&value, &mut vec![0; length]), None, "{length}");
        }
        for more in 0..3 {
            assert_eq!(write_short(&value, &mut vec![0; octets.len() + more]), Some(&octets[..]));
        }
        assert_eq!(write_short(&(), &mut []), Some(&[][..]));
    }
}

//! What has to be known of a connection whose numbers differ on both sides as long as it lives, in memory that outlives the process: without
//! it, the server would take as many octets of the user's as were put in for copies, and nobody would notice.

use super::Connection;
use crate::lasting::seal;
use crate::state::FlowKey;
use std::sync::Arc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A field's name and value are of 255 octets at most (TS 29.244 8.2.67), between a colon, a space and a line's end.
const TEXT_MAX: usize = 520;

/// As a connection is while nothing of it is under way, but for what is put in and not acknowledged.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Shift {
    key: FlowKey,
    /// Octets put in and acknowledged.
    base: u32,
    /// The octet in front of which `text` was put, if `is_open` is not 0.
    open: u32,
    is_open: u8,
    _unused: [u8; 1],
    text_length: u16,
    /// That all else was written.
    seal: u32,
    text: [u8; TEXT_MAX],
}

impl Shift {
    pub(super) const NONE: Self = Self {
        key: FlowKey::NONE,
        base: 0,
        open: 0,
        is_open: 0,
        _unused: [0],
        text_length: 0,
        seal: 0,
        text: [0; TEXT_MAX],
    };

    /// Of a connection that has had a field.
    pub(super) fn of(connection: &Connection) -> Self {
        let text = connection.text.as_deref().unwrap_or_default();
        let mut octets = [0; TEXT_MAX];
        let Some(room) = octets.get_mut(..text.len()) else { return Self::NONE };
        room.copy_from_slice(text);
        let shift = Self {
            key: connection.key,
            base: connection.base,
            open: connection.open.unwrap_or_default(),
            is_open: connection.open.is_some().into(),
            text_length: text.len() as u16,
            text: octets,
            ..Self::NONE
        };
        Self { seal: shift.right_seal(), ..shift }
    }

    fn right_seal(&self) -> u32 {
        seal(Self { seal: 0, ..*self }.as_bytes())
    }

    pub(crate) const fn key(&self) -> &FlowKey {
        &self.key
    }

    /// Whose it is, if it is one, and was written whole. In the next life, what is between tunnels of this node stands elsewhere.
    pub(crate) fn user(&self) -> Option<u64> {
        let is_whole = self.key != FlowKey::NONE && self.seal == self.right_seal();
        (is_whole && !self.key.is_between()).then_some(self.key.user())
    }

    /// The connection again. Where its requests begin nobody knows any more.
    pub(crate) fn connection(&self) -> Connection {
        let text = self.text.get(..self.text_length.into()).unwrap_or_default();
        Connection {
            key: self.key,
            base: self.base,
            open: (self.is_open != 0).then_some(self.open),
            text: Some(Arc::from(text)),
            is_kept: true,
            ..Connection::NONE
        }
    }
}

/// Those of a worker, by place.
pub(super) type Shifts = crate::lasting::Table<Shift>;

const _: () = assert!(size_of::<Shift>().is_multiple_of(8), "as a seal is of words");

#[cfg(test)]
mod tests {
    use super::*;
    use packet::FiveTuple;
    use rules::Direction;

    fn shift() -> Shift {
        let tuple = FiveTuple { source: 7 << 96, source_port: 9, version: 4, ..FiveTuple::default() };
        let key = FlowKey::new(&tuple, Direction::Uplink);
        Shift::of(&Connection {
            key,
            base: 5,
            open: Some(8),
            text: Some(Arc::from(&b"text"[..])),
            ..Connection::NONE
        })
    }

    #[test]
    fn a_connection_comes_out_as_it_was_written_down() {
        let shift = shift();
        let again = shift.connection();
        assert_eq!(shift.user(), Some(shift.key().user()));
        assert_eq!((again.base, again.open, again.text.as_deref()), (5, Some(8), Some(&b"text"[..])));
        let longest = Connection { text: Some(vec![b'x'; TEXT_MAX].into()), ..again.clone() };
        assert_eq!(Shift::of(&longest).connection().text, longest.text);
        let longer = Connection { text: Some(vec![b'x'; TEXT_MAX + 1].into()), ..again };
        assert_eq!(Shift::of(&longer).user(), None);
    }

    /// A process may be killed while it writes.
    #[test]
    fn what_was_not_written_whole_is_nothing() {
        let whole = shift();
        assert_eq!(Shift::NONE.user(), None);
        for end in (0..size_of::<Shift>()).step_by(8) {
            let mut half = Shift::NONE;
            half.as_mut_bytes()[..end].copy_from_slice(&whole.as_bytes()[..end]);
            let is_whole = half.as_bytes() == whole.as_bytes();
            assert_eq!(half.user().is_some(), is_whole, "{end}");
        }
    }
}

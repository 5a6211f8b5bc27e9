//! Who owns what the function cannot say.

use crate::state::{Framed, KEYS_PER_SESSION, Key, Table, around, found_by};

/// Keys of sessions of other workers, and who they are.
pub(super) struct Directory {
    tunnels: Table,
    users: Table,
    routes: Framed,
}

/// Bytes of a directory of up to so many sessions.
pub(crate) const fn directory_bytes(sessions: usize) -> usize {
    2 * Table::bytes(sessions * KEYS_PER_SESSION)
}

impl Directory {
    /// Of up to so many sessions, and networks behind users.
    pub(super) fn new(sessions: usize, framed_routes: usize) -> Self {
        let limit = sessions * KEYS_PER_SESSION;
        Self { tunnels: Table::new(limit), users: Table::new(limit), routes: Framed::new(framed_routes) }
    }

    pub(super) fn find(&self, key: Key) -> Option<u8> {
        let owner = match found_by(key) {
            Key::Tunnel(key) => self.tunnels.get(key),
            Key::User(address, instance) => self.users.get((address, instance)),
            Key::Route(bits, length, instance) => self.routes.get((bits, length, instance)),
        };
        owner.map(|owner| owner as u8)
    }

    /// Lengths of networks behind users, a bit each.
    pub(super) const fn route_lengths(&self) -> u128 {
        self.routes.lengths()
    }

    /// Whether a key is within a network of another worker's.
    pub(super) fn is_around(&self, key: Key) -> bool {
        around(key, self.routes.lengths()).any(|network| self.routes.get(network).is_some())
    }

    /// A worker owns a key from now on. All workers together take no more keys than there is room for here.
    pub(super) fn enter(&mut self, key: Key, owner: u8) {
        let owner = owner.into();
        let entered = match found_by(key) {
            Key::Tunnel(key) => self.tunnels.insert(key, owner),
            Key::User(address, instance) => self.users.insert((address, instance), owner),
            Key::Route(bits, length, instance) => self.routes.insert((bits, length, instance), owner),
        };
        debug_assert!(entered.is_ok(), "there is room for the keys of all sessions");
    }

    /// A worker owns a key no longer; somebody else may meanwhile.
    pub(super) fn leave(&mut self, key: Key, owner: u8) {
        if self.find(key) == Some(owner) {
            self.erase(key);
        }
    }

    /// No other worker is known to own a key.
    pub(super) fn erase(&mut self, key: Key) {
        match found_by(key) {
            Key::Tunnel(key) => self.tunnels.remove(key),
            Key::User(address, instance) => self.users.remove((address, instance)),
            Key::Route(bits, length, instance) => self.routes.remove((bits, length, instance)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The notes of two owners may arrive in any order.
    #[test]
    fn a_key_that_changed_its_owner_stays_with_the_new_one() {
        let mut directory = Directory::new(2, 0);
        directory.enter(Key::Tunnel(7), 1);
        directory.enter(Key::Tunnel(7), 2);
        directory.leave(Key::Tunnel(7), 1);
        assert_eq!(
            (directory.find(Key::Tunnel(7)), directory.find(Key::User(7, rules::Instance::DEFAULT))),
            (Some(2), None)
        );
        directory.leave(Key::Tunnel(7), 2);
        assert_eq!(directory.find(Key::Tunnel(7)), None);
    }
}

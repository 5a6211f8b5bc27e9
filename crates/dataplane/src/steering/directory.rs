//! Who owns what the function cannot say.

use crate::state::{KEYS_PER_SESSION, Key, Table, TableName};

/// Keys of sessions of other workers, and who they are.
pub(super) struct Directory {
    tunnels: Table,
    users: Table,
}

impl Directory {
    /// Of up to so many sessions.
    pub(super) fn new(sessions: usize) -> Self {
        let limit = sessions * KEYS_PER_SESSION;
        Self { tunnels: Table::new(limit), users: Table::new(limit) }
    }

    pub(super) fn find(&self, key: Key) -> Option<u8> {
        let (table, key): (_, TableName) = match key {
            Key::Tunnel(key) => (&self.tunnels, key.into()),
            Key::User(address, instance) => (&self.users, (address, instance).into()),
        };
        table.get(key).map(|owner| owner as u8)
    }

    /// A worker owns a key from now on. All workers together take no more keys than there is room for here.
    pub(super) fn enter(&mut self, key: Key, owner: u8) {
        let (table, key) = self.table(key);
        let entered = table.insert(key, owner.into());
        debug_assert!(entered.is_ok(), "there is room for the keys of all sessions");
    }

    /// A worker owns a key no longer; somebody else may meanwhile.
    pub(super) fn leave(&mut self, key: Key, owner: u8) {
        let (table, key) = self.table(key);
        if table.get(key) == Some(owner.into()) {
            table.remove(key);
        }
    }

    fn table(&mut self, key: Key) -> (&mut Table, TableName) {
        match key {
            Key::Tunnel(key) => (&mut self.tunnels, key.into()),
            Key::User(address, instance) => (&mut self.users, (address, instance).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The notes of two owners may arrive in any order.
    #[test]
    fn a_key_that_changed_its_owner_stays_with_the_new_one() {
        let mut directory = Directory::new(2);
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

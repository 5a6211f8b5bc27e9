//! What a life of the engine that is over knew of connections, and what one of its sessions has of that.

use super::{Header, Part, written};
use crate::state::{Connection, Key, Redirection, Shift, is_of};
use rules::Seid;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use zerocopy::{FromBytes, IntoBytes};

/// Entries that are read at once.
const PORTION: u64 = 1_024;

/// By whose it is, until that session is in force again.
#[derive(Debug, Default)]
pub struct Legacy {
    redirections: HashMap<Seid, Vec<Redirection>>,
    /// By the user's address, as [`FlowKey::user`](crate::state::FlowKey::user) has it.
    shifts: HashMap<u64, Vec<Shift>>,
}

/// What a session goes on with.
#[derive(Debug)]
pub(crate) struct Inherited {
    pub(crate) redirections: Vec<Redirection>,
    pub(crate) connections: Vec<Connection>,
}

impl Legacy {
    pub(super) fn read(file: &File, header: &Header) -> io::Result<Self> {
        let mut legacy = Self::default();
        if header.bytes() > file.metadata()?.len() {
            return Ok(legacy);
        }
        for worker in 0..header.workers {
            each((file, header), (worker, Part::Redirections), |known: Redirection| {
                if let Some(session) = known.session() {
                    legacy.redirections.entry(session).or_default().push(known);
                }
            })?;
            each((file, header), (worker, Part::Shifts), |shift: Shift| {
                if let Some(user) = shift.user() {
                    legacy.shifts.entry(user).or_default().push(shift);
                }
            })?;
        }
        Ok(legacy)
    }

    /// Whether there is nothing to go on with.
    pub fn is_empty(&self) -> bool {
        self.redirections.is_empty() && self.shifts.is_empty()
    }

    /// What is of a session that comes into force with these keys, which nobody else gets then.
    pub(crate) fn take(&mut self, session: Seid, keys: &[Key]) -> Option<Box<Inherited>> {
        let redirections = self.redirections.remove(&session).unwrap_or_default();
        let connections: Vec<Connection> = self.take_shifts(keys).iter().map(Shift::connection).collect();
        let is_any = !redirections.is_empty() || !connections.is_empty();
        is_any.then(|| Box::new(Inherited { redirections, connections }))
    }

    fn take_shifts(&mut self, keys: &[Key]) -> Vec<Shift> {
        let is_mine = |shift: &mut Shift| is_of(keys, shift.key());
        let mut taken = vec![];
        if keys.iter().any(|key| matches!(key, Key::Route(..))) {
            // Which of its addresses are of users nobody knows but by looking.
            taken.extend(self.shifts.values_mut().flat_map(|all| all.extract_if(.., is_mine)));
        }
        for user in keys.iter().filter_map(Key::user_bits) {
            let all = self.shifts.get_mut(&user).into_iter();
            taken.extend(all.flat_map(|all| all.extract_if(.., is_mine)));
        }
        taken
    }
}

/// Shows what a worker's table holds, in the order of entries, of which some may be empty.
fn each<T: FromBytes + IntoBytes>(
    (file, header): (&File, &Header),
    (worker, part): (u64, Part),
    mut see: impl FnMut(T),
) -> io::Result<()> {
    let ((entries, bytes), at) = (header.shape(part), header.place(worker, part));
    let mut next = 0;
    while let Some(found) = written(file, (at + next * bytes, at + entries * bytes))? {
        let first = next.max((found - at) / bytes);
        let count = PORTION.min(entries - first);
        let mut some = T::new_vec_zeroed(count as usize).map_err(|_| io::ErrorKind::OutOfMemory)?;
        file.read_exact_at(some.as_mut_bytes(), at + first * bytes)?;
        some.into_iter().for_each(&mut see);
        next = first + count;
    }
    Ok(())
}

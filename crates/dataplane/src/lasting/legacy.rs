//! What a life of the engine that is over knew of connections, and what one of its sessions has of that.

use super::{Header, Learned, LearnedFlow, Part, monotonic_ns, written};
use crate::content::{ContentRules, Detected, Named};
use crate::state::{Connection, FlowBlock, FlowKey, Key, Redirection, Shift, is_of};
use rules::Seid;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
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
    shifts: ByUser<Shift>,
    flows: ByUser<LearnedFlow>,
    /// What applications of flows were called by number, until they have numbers of this life...
    names: Vec<Named>,
    /// ... which are these.
    numbers: Vec<Option<Detected>>,
}

/// By the user's address, as [`FlowKey::user`] has it.
type ByUser<T> = BTreeMap<u64, Vec<T>>;

/// What a session goes on with.
#[derive(Debug)]
pub(crate) struct Inherited {
    pub(crate) redirections: Vec<Redirection>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) flows: Vec<LearnedFlow>,
}

impl Legacy {
    /// All that is known of connections and flows.
    pub(super) fn read(file: &File, header: &Header) -> io::Result<Self> {
        let mut legacy = Self::of_connections(file, header)?;
        if header.bytes() > file.metadata()?.len() {
            return Ok(legacy);
        }
        let now_ns = monotonic_ns()?.saturating_sub(header.zero_ns);
        for worker in 0..header.workers {
            each((file, header), (worker, Part::Flows), |place, block: FlowBlock| {
                block.learned(place, now_ns).for_each(|flow| legacy.add(flow));
            })?;
        }
        Ok(legacy)
    }

    /// What is known of connections alone.
    pub(super) fn of_connections(file: &File, header: &Header) -> io::Result<Self> {
        let mut legacy = Self::default();
        if header.bytes() > file.metadata()?.len() {
            return Ok(legacy);
        }
        let now_ns = monotonic_ns()?.saturating_sub(header.zero_ns);
        for worker in 0..header.workers {
            each((file, header), (worker, Part::Redirections), |_, known: Redirection| {
                if let Some(session) = known.session(now_ns) {
                    legacy.redirections.entry(session).or_default().push(known);
                }
            })?;
            each((file, header), (worker, Part::Shifts), |_, shift: Shift| {
                if let Some(user) = shift.user() {
                    legacy.shifts.entry(user).or_default().push(shift);
                }
            })?;
        }
        Ok(legacy)
    }

    /// With what was said of flows.
    #[must_use]
    pub fn with(mut self, learned: Learned) -> Self {
        self.names = learned.names;
        learned.flows.into_iter().for_each(|flow| self.add(flow));
        self
    }

    fn add(&mut self, flow: LearnedFlow) {
        self.flows.entry(flow.key.user()).or_default().push(flow);
    }

    /// Whether there is nothing to go on with.
    pub fn is_empty(&self) -> bool {
        self.redirections.is_empty() && self.shifts.is_empty() && self.flows.is_empty()
    }

    /// Content rules are in force, by whose numbers flows are known in this life.
    pub(crate) fn number(&mut self, content: &ContentRules) {
        self.numbers = content.numbers(&self.names);
    }

    /// What is of a session that comes into force with these keys, which nobody else gets then.
    pub(crate) fn take(&mut self, session: Seid, keys: &[Key]) -> Option<Box<Inherited>> {
        let redirections = self.redirections.remove(&session).unwrap_or_default();
        let shifts = take(&mut self.shifts, keys, Shift::key);
        let connections: Vec<Connection> = shifts.iter().map(Shift::connection).collect();
        let mut flows = take(&mut self.flows, keys, |flow| &flow.key);
        // Where a session has moved, its old worker may know of a flow what is over: what was said last comes last.
        flows.sort_by_key(|flow| Reverse(flow.age));
        let flows: Vec<LearnedFlow> = flows.into_iter().filter_map(|flow| self.numbered(flow)).collect();
        let is_any = !redirections.is_empty() || !connections.is_empty() || !flows.is_empty();
        is_any.then(|| Box::new(Inherited { redirections, connections, flows }))
    }

    /// A flow by this life's numbers; `None` where no rules name its application any more.
    fn numbered(&self, flow: LearnedFlow) -> Option<LearnedFlow> {
        let place = flow.detected.place()?;
        let detected = (*self.numbers.get(place)?)?.looking_again_as(flow.detected);
        Some(LearnedFlow { detected, ..flow })
    }
}

/// Takes out what is of a session that has these keys.
fn take<T>(all: &mut ByUser<T>, keys: &[Key], key: impl Fn(&T) -> &FlowKey) -> Vec<T> {
    let mut taken = vec![];
    for users in keys.iter().filter_map(Key::users) {
        let found =
            all.range_mut(users).flat_map(|(_, of_user)| of_user.extract_if(.., |it| is_of(keys, key(it))));
        taken.extend(found);
    }
    taken
}

/// Shows what a worker's table holds, in the order of entries and with their places, of which some may be empty.
fn each<T: FromBytes + IntoBytes>(
    (file, header): (&File, &Header),
    (worker, part): (u64, Part),
    mut see: impl FnMut(usize, T),
) -> io::Result<()> {
    let ((entries, bytes), at) = (header.shape(part), header.place(worker, part));
    let mut next = 0;
    while let Some(found) = written(file, (at + next * bytes, at + entries * bytes))? {
        let first = next.max((found - at) / bytes);
        let count = PORTION.min(entries - first);
        let mut some = T::new_vec_zeroed(count as usize).map_err(|_| io::ErrorKind::OutOfMemory)?;
        file.read_exact_at(some.as_mut_bytes(), at + first * bytes)?;
        (first as usize..).zip(some).for_each(|(place, entry)| see(place, entry));
        next = first + count;
    }
    Ok(())
}

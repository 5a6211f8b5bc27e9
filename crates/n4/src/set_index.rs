//! Which sessions are of which set, so that the end of one costs no look at all the others (TS 29.244 6.2.9). Sessions
//! that are of none, as most are, take nothing here.

use pfcp::FqCsid;
use rules::Seid;
use session::SessionRecord;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::ops::Bound;

/// A set: how its node is named, the name, and the set's number there (TS 29.244 8.2.43).
pub(crate) type Set = (u8, Vec<u8>, u16);

/// Sessions by set.
#[derive(Debug, Default)]
pub(crate) struct SetIndex {
    by_set: HashMap<Set, BTreeSet<Seid>>,
    /// By Group ID (TS 29.244 5.22.2).
    by_group: HashMap<Vec<u8>, BTreeSet<Seid>>,
}

fn sets(fq_csid: &FqCsid) -> impl Iterator<Item = Set> {
    let FqCsid { node_id_type, node, csids, .. } = fq_csid;
    csids.iter().map(|csid| (*node_id_type, node.clone(), *csid))
}

fn sets_of(record: &SessionRecord) -> impl Iterator<Item = Set> {
    let told = record.extras.iter().flat_map(|extras| &extras.fq_csids);
    let told: Vec<FqCsid> = told.filter_map(|octets| FqCsid::of_octets(octets)).collect();
    told.into_iter().flat_map(|fq_csid| sets(&fq_csid).collect::<Vec<_>>())
}

/// None, where it is empty.
fn group_of(record: &SessionRecord) -> Option<&Vec<u8>> {
    record.extras.as_ref().map(|extras| &extras.group_id).filter(|group| !group.is_empty())
}

fn leave<K: Eq + Hash>(index: &mut HashMap<K, BTreeSet<Seid>>, key: &K, seid: Seid) {
    let Some(sessions) = index.get_mut(key) else { return };
    sessions.remove(&seid);
    if sessions.is_empty() {
        index.remove(key);
    }
}

fn range(sessions: &BTreeSet<Seid>, (after, last): (Seid, Seid)) -> impl Iterator<Item = Seid> {
    let bounds = (Bound::Excluded(after), Bound::Included(last));
    (after < last).then(|| sessions.range(bounds)).into_iter().flatten().copied()
}

impl SetIndex {
    /// A session is there.
    pub(crate) fn enter(&mut self, record: &SessionRecord) {
        for set in sets_of(record) {
            self.by_set.entry(set).or_default().insert(record.seid);
        }
        if let Some(group) = group_of(record) {
            self.by_group.entry(group.clone()).or_default().insert(record.seid);
        }
    }

    /// A session is no more as it was.
    pub(crate) fn leave(&mut self, record: &SessionRecord) {
        for set in sets_of(record) {
            leave(&mut self.by_set, &set, record.seid);
        }
        if let Some(group) = group_of(record) {
            leave(&mut self.by_group, group, record.seid);
        }
    }

    /// Of these sets those that have sessions, whatever the type of the node that named them. A set may be named very often: it is
    /// here once.
    pub(crate) fn known<'a>(&self, fq_csids: impl IntoIterator<Item = &'a FqCsid>) -> BTreeSet<Set> {
        let named = fq_csids.into_iter().flat_map(sets);
        named.filter(|set| self.by_set.contains_key(set)).collect()
    }

    /// Sessions of a set, in the order of their SEIDs: those behind the first SEID, up to the second.
    pub(crate) fn of_set(&self, set: &Set, between: (Seid, Seid)) -> impl Iterator<Item = Seid> {
        self.by_set.get(set).into_iter().flat_map(move |sessions| range(sessions, between))
    }

    /// The same of a group.
    pub(crate) fn of_group(&self, group_id: &[u8], between: (Seid, Seid)) -> impl Iterator<Item = Seid> {
        self.by_group.get(group_id).into_iter().flat_map(move |sessions| range(sessions, between))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use session::{CpFSeid, Extras, UsageRecord};

    fn fq_csid(csids: &[u16]) -> FqCsid {
        FqCsid { node_id_type: 0, node: vec![10, 0, 0, 7], csids: csids.to_vec(), node_type: None }
    }

    fn session(seid: u64, csids: &[u16]) -> SessionRecord {
        let (fq_csids, group_id) = (vec![fq_csid(csids).octets()], vec![seid as u8 % 2 + 1]);
        let extras = Extras { fq_csids, group_id, ..Extras::default() };
        SessionRecord {
            era: 0,
            seid: Seid(seid),
            revision: 1,
            owner: "smf.example".to_owned(),
            cp_f_seid: CpFSeid { seid, address: [10, 40, 0, 9].into() },
            rules: rules::Rules::default().into(),
            usage: UsageRecord::default(),
            extras: Some(Box::new(extras)),
            charging: None,
        }
    }

    #[test]
    fn sets_are_found_and_leave_nothing_behind() {
        let mut index = SetIndex::default();
        let sessions = [session(1, &[1, 2]), session(2, &[2]), session(3, &[3])];
        sessions.iter().for_each(|session| index.enter(session));
        let all = (Seid(0), Seid(9));
        let between = |index: &SetIndex, csids, between| {
            let known = index.known(&[fq_csid(csids), fq_csid(csids)]);
            let found = known.iter().flat_map(|set| index.of_set(set, between));
            found.map(|seid| seid.0).collect::<Vec<_>>()
        };
        let of = |index: &SetIndex, csids| between(index, csids, all);
        let in_group = |index: &SetIndex, group: &[u8]| index.of_group(group, all).count();
        assert_eq!(
            (of(&index, &[2]), of(&index, &[1, 3]), of(&index, &[4])),
            (vec![1, 2], vec![1, 3], vec![])
        );
        let parts = [(Seid(0), Seid(1)), (Seid(1), Seid(9)), (Seid(2), Seid(2)), (Seid(9), Seid(2))];
        assert_eq!(parts.map(|part| between(&index, &[2], part)), [vec![1], vec![2], vec![], vec![]]);
        assert_eq!([&[2][..], &[1], &[]].map(|group| in_group(&index, group)), [2, 1, 0]);
        index.leave(&sessions[0]);
        assert_eq!((of(&index, &[1, 2, 3]), in_group(&index, &[2])), (vec![2, 3], 1));
        sessions.iter().for_each(|session| index.leave(session));
        assert!(index.by_set.is_empty() && index.by_group.is_empty());
    }
}

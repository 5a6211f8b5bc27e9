//! Which session has which user's address, and which network behind a user, in each network instance: so that a session that
//! gives way to another is found without a look at all of them.

use ipnet::IpNet;
use rules::{Instance, Pdi, Seid};
use session::SessionRecord;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

/// What the data plane gives to one session only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// A user's own address or prefix.
    User(Instance, IpNet),
    /// A network behind a user (a framed route).
    Behind(Instance, IpNet),
}

impl Place {
    /// Those of a session; one may come several times.
    pub(crate) fn of(record: &SessionRecord) -> impl Iterator<Item = Self> {
        record.rules.pdrs.iter().flat_map(|pdr| Self::of_pdi(&pdr.pdi))
    }

    /// Those of a PDR.
    pub(crate) fn of_pdi(pdi: &Pdi) -> impl Iterator<Item = Self> {
        let instance = pdi.instance;
        let own = pdi.ue_ipv4.map(|address| IpNet::from(std::net::IpAddr::V4(address)));
        let own = own.into_iter().chain(pdi.ue_ipv6.map(IpNet::V6));
        let behind = pdi.framed_routes.iter().map(move |route| Self::Behind(instance, *route));
        own.map(move |net| Self::User(instance, net)).chain(behind)
    }

    /// The IE that asks for it.
    pub(crate) const fn ie(self) -> u16 {
        match self {
            Self::User(..) => pfcp::ie::UE_IP_ADDRESS,
            Self::Behind(_, IpNet::V4(_)) => pfcp::ie::FRAMED_ROUTE,
            Self::Behind(_, IpNet::V6(_)) => pfcp::ie::FRAMED_IPV6_ROUTE,
        }
    }

    /// The same, but one that the place before was already: rules both ways name one user.
    fn each_of(record: &SessionRecord) -> impl Iterator<Item = Self> {
        let mut before = None;
        Self::of(record).filter(move |place| before.replace(*place) != Some(*place))
    }
}

/// Sessions by place. Who came first has it. There are as many places as users, so 8 octets stand for one: a digest that
/// nobody foresees. Of two that are the same by this, the second is not found.
#[derive(Debug, Default)]
pub(crate) struct UserIndex {
    digests: RandomState,
    owners: HashMap<u64, Seid, BuildHasherDefault<Digest>>,
    /// Whether anybody ever came to a place that was another's: as long as nobody has, whoever stays where it is has what is its,
    /// and need not be looked for in a table of a million.
    is_contested: bool,
}

/// What is a digest already needs no other.
#[derive(Debug, Default)]
struct Digest(u64);

impl Hasher for Digest {
    fn write(&mut self, octets: &[u8]) {
        octets.iter().for_each(|octet| self.0 = self.0.rotate_left(8) ^ u64::from(*octet));
    }

    fn write_u64(&mut self, digest: u64) {
        self.0 = digest;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl UserIndex {
    /// With room for so many users from the start.
    pub(crate) fn new(users: usize) -> Self {
        let owners = HashMap::with_capacity_and_hasher(users, BuildHasherDefault::new());
        Self { owners, ..Self::default() }
    }

    /// A session is there.
    pub(crate) fn enter(&mut self, record: &SessionRecord) {
        for place in Place::each_of(record) {
            let owner = self.owners.entry(self.digests.hash_one(place)).or_insert(record.seid);
            self.is_contested |= *owner != record.seid;
        }
    }

    /// A session is no more as it was, or gives way.
    pub(crate) fn leave(&mut self, record: &SessionRecord) {
        for place in Place::each_of(record) {
            let digest = self.digests.hash_one(place);
            if self.owners.get(&digest) == Some(&record.seid) {
                self.owners.remove(&digest);
            }
        }
    }

    /// A session has become another. What it had and has it need not leave; it may have become free for it meanwhile.
    pub(crate) fn change(&mut self, before: &SessionRecord, after: &SessionRecord) {
        let stays = Place::of(before).eq(Place::of(after));
        if !stays {
            self.leave(before);
        }
        if !stays || self.is_contested {
            self.enter(after);
        }
    }

    /// Who has it, if anybody does.
    pub(crate) fn owner(&self, place: Place) -> Option<Seid> {
        self.owners.get(&self.digests.hash_one(place)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::{FarId, Interface, Pdr, PdrId, Rules};
    use session::{CpFSeid, UsageRecord};
    use std::net::IpAddr;

    fn pdr(id: u16, user: u8, source_interface: Interface) -> Pdr {
        let pdi = Pdi {
            source_interface,
            instance: Instance::DEFAULT,
            f_teid: None,
            ue_ipv4: Some([10, 60, 0, user].into()),
            ue_ipv6: None,
            framed_routes: vec![],
            qfis: vec![],
            sdf_filters: vec![],
            application: None,
            ethernet: None,
        };
        let (far, outer_header_removal) = (FarId(1), false);
        Pdr {
            id: PdrId(id),
            precedence: 1,
            pdi,
            outer_header_removal,
            far,
            qers: vec![].into(),
            urrs: vec![].into(),
        }
    }

    /// Rules both ways for each user.
    fn session(seid: u64, users: &[u8]) -> SessionRecord {
        let both = |user: &u8| [Interface::Access, Interface::Core].map(|side| pdr(1, *user, side));
        SessionRecord {
            seid: Seid(seid),
            revision: 1,
            owner: "smf.example".to_owned(),
            cp_f_seid: CpFSeid { seid, address: [10, 40, 0, 1].into() },
            era: 0,
            rules: Rules { pdrs: users.iter().flat_map(both).collect(), ..Rules::default() }.into(),
            usage: UsageRecord::default(),
            extras: None,
            charging: None,
        }
    }

    fn owners(index: &UserIndex, users: &[u8]) -> Vec<Option<u64>> {
        let place = |user: &u8| Place::User(Instance::DEFAULT, IpAddr::from([10, 60, 0, *user]).into());
        users.iter().map(|user| index.owner(place(user)).map(|seid| seid.0)).collect()
    }

    #[test]
    fn who_changes_keeps_leaves_and_takes_what_is_free() {
        let mut index = UserIndex::default();
        index.enter(&session(1, &[1, 2]));
        index.enter(&session(2, &[2, 3]));
        assert_eq!(owners(&index, &[1, 2, 3, 4]), [Some(1), Some(1), Some(2), None]);
        index.change(&session(1, &[1, 2]), &session(1, &[1, 4]));
        assert_eq!(owners(&index, &[1, 2, 3, 4]), [Some(1), None, Some(2), Some(1)]);
        // It has no other than before, but one of them is free by now.
        index.change(&session(2, &[2, 3]), &session(2, &[2, 3]));
        assert_eq!(owners(&index, &[1, 2, 3, 4]), [Some(1), Some(2), Some(2), Some(1)]);
        index.leave(&session(1, &[1, 4]));
        index.leave(&session(2, &[2, 3]));
        assert!(index.owners.is_empty());
    }
}

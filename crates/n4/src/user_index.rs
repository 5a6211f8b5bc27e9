//! Which session has which user's address, and which network behind a user, in each network instance: so that a session that
//! gives way to another is found without a look at all of them.

use ipnet::IpNet;
use rules::{Instance, Pdi, Seid};
use session::SessionRecord;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

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

    fn of_pdi(pdi: &Pdi) -> impl Iterator<Item = Self> {
        let instance = pdi.instance;
        let own = pdi.ue_ipv4.map(|address| IpNet::from(std::net::IpAddr::V4(address)));
        let own = own.into_iter().chain(pdi.ue_ipv6.map(IpNet::V6));
        let behind = pdi.framed_routes.iter().map(move |route| Self::Behind(instance, *route));
        own.map(move |net| Self::User(instance, net)).chain(behind)
    }

    /// There are as many as users, so 8 octets stand for one. Of two that are the same by this, the second is not found.
    fn digest(self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// Sessions by place. Who came first has it.
#[derive(Debug, Default)]
pub(crate) struct UserIndex {
    owners: HashMap<u64, Seid>,
}

impl UserIndex {
    /// A session is there.
    pub(crate) fn enter(&mut self, record: &SessionRecord) {
        for place in Place::of(record) {
            self.owners.entry(place.digest()).or_insert(record.seid);
        }
    }

    /// A session is no more as it was, or gives way.
    pub(crate) fn leave(&mut self, record: &SessionRecord) {
        for digest in Place::of(record).map(Place::digest) {
            if self.owners.get(&digest) == Some(&record.seid) {
                self.owners.remove(&digest);
            }
        }
    }

    /// Who has it, if anybody does.
    pub(crate) fn owner(&self, place: Place) -> Option<Seid> {
        self.owners.get(&place.digest()).copied()
    }
}

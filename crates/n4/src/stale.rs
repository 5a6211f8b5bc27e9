//! Sessions that their owner may have forgotten. A set-up of a control plane that is associated takes the place of the association there
//! was, whatever its time stamp, and sessions that it does not ask to retain are to be deleted (TS 29.244 6.2.6.2.2). Where the time stamp
//! is the one it had, we do not: some control planes associate anew when a heartbeat was lost, ask for nothing to be retained, and go on
//! with their sessions, whose users would be cut off. Others have none after it, and give out tunnels and addresses anew.
//! Which it is cannot be known until then, so a session is stale, of an earlier era: it stays until a session of the owner, a new one or
//! one that changes, wants what it has, until there is no room for others (`room.rs`), or for as long as the operator says. One that
//! its owner names again is of today. Sessions of a control plane that is silent give way to anybody's: containers come back by
//! another address, and so by another Node ID. Behind address translation they come back by the same address, and answer heartbeats
//! in the name of who they were: there sessions give way whose owner has said nothing since the other was set up.

use crate::ending::{Lost, Then};
use crate::interface::{Level, Output};
use crate::node::Node;
use crate::peers::{Association, Peers};
use crate::translate::framed_routes;
use crate::user_index::Place;
use crate::values::{self, Endpoint};
use ipnet::IpNet;
use pfcp::{
    CreateTrafficEndpoint, FTeid, NetworkInstance, Pdi, RawIe, SessionEstablishmentRequest,
    SessionModificationRequest, UeIpAddress,
};
use rules::{Instance, Interface, Seid};
use session::SessionRecord;
use std::net::IpAddr;

/// What part of a request says of tunnels and addresses.
pub(crate) struct Said<'a> {
    f_teid: Option<FTeid>,
    addresses: &'a [UeIpAddress],
    network: Option<&'a NetworkInstance>,
    carried: &'a [RawIe],
}

/// What a request for a new session asks for.
pub(crate) fn wanted_by(request: &SessionEstablishmentRequest) -> impl Iterator<Item = Said<'_>> {
    let pdis = request.create_pdrs.iter().map(|pdr| of_pdi(&pdr.pdi));
    pdis.chain(request.create_traffic_endpoints.iter().map(of_endpoint))
}

/// What a change of a session asks for.
pub(crate) fn wanted_by_change(request: &SessionModificationRequest) -> impl Iterator<Item = Said<'_>> {
    let created = request.create_pdrs.iter().map(|pdr| of_pdi(&pdr.pdi));
    let updated = request.update_pdrs.iter().filter_map(|pdr| pdr.pdi.as_ref()).map(of_pdi);
    let endpoints = request.create_traffic_endpoints.iter().map(of_endpoint);
    let changed = request.update_traffic_endpoints.iter().map(|endpoint| Said {
        f_teid: endpoint.local_f_teid,
        addresses: &endpoint.ue_ip_addresses,
        network: endpoint.network_instance.as_ref(),
        carried: &endpoint.carried,
    });
    created.chain(updated).chain(endpoints).chain(changed)
}

fn of_pdi(pdi: &Pdi) -> Said<'_> {
    let Pdi { f_teid, ue_ip_addresses, network_instance, carried, .. } = pdi;
    Said { f_teid: *f_teid, addresses: ue_ip_addresses, network: network_instance.as_ref(), carried }
}

fn of_endpoint(endpoint: &CreateTrafficEndpoint) -> Said<'_> {
    Said {
        f_teid: endpoint.local_f_teid,
        addresses: &endpoint.ue_ip_addresses,
        network: endpoint.network_instance.as_ref(),
        carried: &endpoint.carried,
    }
}

impl Association {
    /// Whether a later one than the other, which has not spoken since, at the one address that both are behind.
    pub(crate) fn may_be(&self, old: &Self) -> bool {
        let is_behind_it = |peer: &Self| peer.record.node_id != peer.record.address.ip().to_string();
        self.record.node_id != old.record.node_id
            && self.record.set_up_ms > old.record.named_ms
            && self.record.address == old.record.address
            && is_behind_it(self)
            && is_behind_it(old)
    }
}

impl Peers {
    /// Whether a control plane may be another one that came back by another name: set up at the same address behind address
    /// translation, where the other has not spoken since. Heartbeats say nothing: whoever is there answers them.
    fn has_succeeded(&self, new: &str, old: &str) -> bool {
        self.get(new).zip(self.get(old)).is_some_and(|(new, old)| new.may_be(old))
    }

    /// Whether there is anybody whom it may be.
    fn has_forerunners(&self, new: &str) -> bool {
        let Some(new) = self.get(new) else { return false };
        self.iter().any(|old| old.is_doubted && new.may_be(old))
    }
}

impl Node {
    /// How often a control plane has associated anew without having restarted, or told of a restart by heartbeats: one that is
    /// not over counts, too.
    pub(crate) fn era(&self, owner: &str) -> u32 {
        let era = |peer: &Association| peer.record.era.saturating_add(peer.restarted.is_some().into());
        self.peers.get(owner).map_or(0, era)
    }

    /// Whether the owner has not spoken of it since it associated anew, or is silent where another one asks, which may be that one
    /// under another name. One with something under way is not looked at.
    fn is_stale(&self, seid: Seid, (owner, era): (&str, u32)) -> bool {
        let is_it = |record: &SessionRecord| match record.owner == owner {
            true => record.era < era,
            false => self.gives_way(record, owner),
        };
        self.sessions.get(seid).is_some_and(|session| session.pending.is_none() && is_it(&session.record))
    }

    /// Whether a session of one control plane gives way to those of another.
    fn gives_way(&self, record: &SessionRecord, new: &str) -> bool {
        let old = &record.owner;
        self.is_out_of_reach(old) || self.peers.has_succeeded(new, old) || self.endings.have(record)
    }

    /// Sessions that their owners have not named for as long as the operator waits for that. Nobody is told: whoever counts on one finds out
    /// by naming it.
    pub(crate) fn end_stale(&mut self) {
        for (node_id, era) in self.peers.stale(self.now) {
            self.end_sessions_of(node_id, Lost::UpTo(era), Then::Nothing);
        }
    }

    pub(crate) fn note_stale(&mut self, node_id: &str, ended: usize) {
        if ended > 0 {
            let text =
                format!("{ended} sessions that {node_id} has not named since it associated anew are over");
            self.note(Level::Warning, text);
        }
    }

    /// A control plane that was doubted is there by its name.
    pub(crate) fn speaks_by_name(&mut self, node_id: &str) {
        let now_ms = self.wall_ms();
        let Some(association) = self.peers.get_mut(node_id) else { return };
        (association.is_doubted, association.record.named_ms) = (false, now_ms);
        self.out.push(Output::SaveAssociation(association.record.clone()));
    }

    /// The owner speaks of it: it has not forgotten it.
    pub(crate) fn spoken_of(&mut self, seid: Seid) {
        let Some(record) = self.sessions.get(seid).map(|session| &session.record) else { return };
        if self.peers.spoken_for(&record.owner, self.now) {
            let owner = record.owner.clone();
            self.speaks_by_name(&owner);
        }
        self.is_of_today(seid);
    }

    /// It is not forgotten, whoever knows of it.
    pub(crate) fn is_of_today(&mut self, seid: Seid) {
        let Some(record) = self.sessions.get(seid).map(|session| &session.record) else { return };
        let (before, era) = (record.era, self.era(&record.owner));
        self.is_named_by_suspect(seid);
        if before != era {
            self.is_named_in(seid, era);
        }
    }

    /// Its owner counts on it, as of this era. What is under way must not forget it.
    pub(crate) fn is_named_in(&mut self, seid: Seid, era: u32) {
        let Some(session) = self.sessions.get_mut(seid) else { return };
        session.record.era = era;
        let next = session.pending.as_mut().and_then(|pending| pending.next());
        next.into_iter().for_each(|next| next.era = era);
        if session.is_established() {
            session.save();
        }
    }

    /// Stale sessions that have what the owner of another asks for: a tunnel, a user's address, a network behind a user.
    pub(crate) fn stale_in_the_way<'a>(
        &self,
        owner: &str,
        wanted: impl Iterator<Item = Said<'a>>,
    ) -> Vec<Seid> {
        let era = self.era(owner);
        let are_there = || self.peers.iter().all(Association::is_up) && self.endings.are_none();
        if era == 0 && are_there() && !self.peers.has_forerunners(owner) {
            return vec![];
        }
        let mut stale: Vec<Seid> = wanted.flat_map(|said| self.holders(&said)).collect();
        stale.sort_unstable();
        stale.dedup();
        stale.retain(|seid| self.is_stale(*seid, (owner, era)));
        stale
    }

    /// Who has what is asked for.
    fn holders(&self, said: &Said<'_>) -> Vec<Seid> {
        let instance = values::instance(said.network, self.config.has_instances());
        let tunnel = said.f_teid.and_then(|f_teid| {
            let origin = values::Origin { interface: Interface::Access, instance, interface_type: None };
            match values::endpoint(f_teid, origin, &self.config.gtpu) {
                Ok(Endpoint::Given(f_teid)) => self.tunnels.owner(f_teid),
                _ => None,
            }
        });
        let places = places(said, instance);
        tunnel.into_iter().chain(places.filter_map(|place| self.sessions.at(place))).collect()
    }

    /// Whether a session that is there has to go for a new one: it has its name, or something that is one session's.
    pub(crate) fn is_in_the_place_of(&self, old: Seid, new: &SessionRecord) -> bool {
        let Some(old) = self.sessions.get(old).map(|old| &old.record).filter(|old| !self.is_going(old.seid))
        else {
            return false;
        };
        let shares_tunnel = || self.tunnels.share(old, new);
        let shares_place = || Place::of(old).any(|place| Place::of(new).any(|other| other == place));
        let is_owners = old.owner == new.owner || self.gives_way(old, &new.owner);
        is_owners && (old.cp_f_seid == new.cp_f_seid || shares_tunnel() || shares_place())
    }
}

fn places(said: &Said<'_>, instance: Instance) -> impl Iterator<Item = Place> {
    // What is wrong is refused when it is translated.
    let given = |address: &&UeIpAddress| !address.choose_ipv4 && !address.choose_ipv6;
    let given: Vec<UeIpAddress> = said.addresses.iter().filter(given).copied().collect();
    let user = values::user(&given).unwrap_or_default();
    let ipv4 = user.ipv4.map(|address| IpNet::from(IpAddr::V4(address)));
    let own = ipv4.into_iter().chain(user.link().map(IpNet::V6));
    let behind = framed_routes(said.carried).unwrap_or_default();
    let behind = behind.into_iter().chain(user.delegated()).map(move |route| Place::Behind(instance, route));
    own.map(move |net| Place::User(instance, net)).chain(behind)
}

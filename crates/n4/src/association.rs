//! Associations: set up from either side, updated, released (TS 29.244 6.2.6 to 6.2.8).

mod asking;
mod former;

use crate::ending::{Associating, Lost, Retained, Then, is_of_retained};
use crate::establishment::cp_f_seid;
use crate::exchange::Asked;
use crate::interface::{Level, Output};
use crate::node::Node;
use crate::peers::Association;
use crate::refusal::{self, Refusal};
use crate::sessions::Session;
use crate::support;
use pfcp::{
    AssociationReleaseRequest, AssociationReleaseResponse, AssociationSetupRequest, AssociationSetupResponse,
    AssociationUpdateRequest, Cause, CpFunctionFeatures, CpIpAddress, NodeId, RawIe,
    SessionEstablishmentRequest, SessionRetentionInformation, flags, ie,
};
use session::{AssociationRecord, PeerNews};
use std::collections::BTreeSet;
use std::net::IpAddr;

impl Node {
    /// Some control planes that associate anew without having restarted count on their sessions, others have forgotten them:
    /// what they do next tells (`stale.rs`).
    pub(crate) fn set_up(&mut self, asked: &Asked, request: &AssociationSetupRequest) -> Result<(), Refusal> {
        let node_id = request.node_id.to_string();
        if self.peers.leaves().is_some() || self.is_leaving(&node_id) {
            // For a time: it may ask again (TS 29.244 8.2.1).
            return Err(Refusal::of(Cause::NoResourcesAvailable));
        }
        self.may_be_named(asked.key.from.ip(), request)?;
        let retained = retained(&request.carried)?;
        if !self.make_room_for(&node_id, asked.key.from.ip()) {
            return Err(Refusal::of(Cause::NoResourcesAvailable));
        }
        let address = self.peers.request_address(asked.key.from.ip());
        let (alternatives, preferred) = self.alternatives(&node_id, &request.alternatives);
        let record = AssociationRecord {
            node_id: node_id.clone(),
            address,
            recovery_time_stamp: request.recovery_time_stamp,
            features: features(request.cp_function_features.as_ref()),
            set_id: request.smf_set_id.clone().unwrap_or_default(),
            alternatives,
            preferred,
            answers_heartbeats: self.answers_heartbeats(&node_id),
            era: self.next_era(request, retained.is_some()),
            ends_ms: None,
            ending_sets: vec![],
            set_up_ms: self.wall_ms(),
            named_ms: self.wall_ms(),
            capabilities: self.capabilities(),
            unconfirmed: PeerNews::default(),
        };
        self.associate(record, retained, Some(*asked));
        Ok(())
    }

    fn accept_setup(&mut self, asked: &Asked, is_retained: bool) {
        // If the peer has restarted, this request was forgotten with its earlier ones.
        self.answers.begin(asked.key, self.now);
        let response = AssociationSetupResponse {
            node_id: self.config.node_id.clone(),
            cause: Cause::RequestAccepted,
            recovery_time_stamp: self.recovery_time_stamp,
            up_function_features: Some(support::features(&self.config)),
            cp_function_features: None,
            pools: self.pool_information(),
            smf_set_id: None,
            alternatives: vec![],
            carried: self.ip_resources().into_iter().chain(is_retained.then(psrei)).collect(),
        };
        self.accept(asked, None, response);
    }

    /// What it retains it has not forgotten.
    fn next_era(&self, request: &AssociationSetupRequest, retains: bool) -> u32 {
        let known = self.peers.get(&request.node_id.to_string()).map(|association| &association.record);
        let era = known.map_or(0, |known| known.era);
        let is_same = known.is_some_and(|known| known.recovery_time_stamp == request.recovery_time_stamp);
        era.saturating_add((is_same && !retains).into())
    }

    fn answers_heartbeats(&self, node_id: &str) -> bool {
        self.peers.get(node_id).is_some_and(|known| known.record.answers_heartbeats)
    }

    /// While the one who is associated by a Node ID is there, nobody else takes its place, and its sessions with it. Only a Node
    /// ID that is an address is that of whoever has the address; a host name may have another one after a restart, which the
    /// recovery time stamp tells.
    fn may_be_named(&self, from: IpAddr, request: &AssociationSetupRequest) -> Result<(), Refusal> {
        let (node_id, stamp) = (&request.node_id, request.recovery_time_stamp);
        let is_own = match node_id {
            NodeId::Ipv4(address) => from == *address,
            NodeId::Ipv6(address) => from == *address,
            NodeId::Fqdn(_) => false,
        };
        let known = self.peers.get(&node_id.to_string());
        let is_there = |known: &Association| {
            let is_same = known.record.recovery_time_stamp == stamp || !matches!(node_id, NodeId::Fqdn(_));
            known.is_up() && !known.speaks_from(from) && is_same
        };
        match !is_own && known.is_some_and(is_there) {
            true => Err(Refusal::blaming(Cause::RequestRejected, ie::NODE_ID)),
            false => Ok(()),
        }
    }

    pub(crate) fn update(
        &mut self,
        asked: &Asked,
        request: &AssociationUpdateRequest,
    ) -> Result<(), Refusal> {
        let node_id = self.associated(asked, &request.node_id)?;
        if self.peers.spoken_for(&node_id, self.now) {
            self.speaks_by_name(&node_id);
        }
        self.learn(&node_id, request);
        let response = refusal::update_response(
            self.config.node_id.clone(),
            Cause::RequestAccepted,
            support::features(&self.config),
        );
        self.accept(asked, None, response);
        Ok(())
    }

    /// What the peer tells anew of itself.
    fn learn(&mut self, node_id: &str, request: &AssociationUpdateRequest) {
        let told = self.alternatives(node_id, &request.alternatives);
        let Some(association) = self.peers.get_mut(node_id) else { return };
        let record = &mut association.record;
        if request.cp_function_features.is_some() {
            record.features = features(request.cp_function_features.as_ref());
        }
        if let Some(set_id) = &request.smf_set_id {
            record.set_id.clone_from(set_id);
        }
        if !request.alternatives.is_empty() {
            (record.alternatives, record.preferred) = told;
            association.turn = 0;
        }
        self.out.push(Output::SaveAssociation(record.clone()));
    }

    /// The association is over when its sessions are.
    pub(crate) fn end_association(&mut self, node_id: String) {
        self.end_sessions_of(node_id, Lost::All, Then::Over(None));
    }

    /// Whoever asked for it is answered.
    pub(crate) fn association_is_over(&mut self, node_id: String, asked: Option<&Asked>) {
        self.drop_sessions_of(&node_id);
        self.drop_pfds_of(&node_id);
        self.pass_on_sets(&node_id);
        self.forget_answers(&node_id, asked.map(|asked| asked.key));
        self.peers.remove(&node_id, self.now + self.config.heartbeat_interval);
        self.out.push(Output::EraseAssociation(node_id));
        if let Some(asked) = asked {
            let node_id = self.config.node_id.clone();
            let cause = Cause::RequestAccepted;
            self.accept(asked, None, AssociationReleaseResponse { node_id, cause, carried: vec![] });
        }
    }

    pub(crate) fn release(
        &mut self,
        asked: &Asked,
        request: &AssociationReleaseRequest,
    ) -> Result<(), Refusal> {
        let node_id = match self.associated(asked, &request.node_id) {
            Err(_) if request.node_id == NodeId::Ipv4([0, 0, 0, 0].into()) => self.only_at(asked)?,
            other => other?,
        };
        self.note(Level::Info, format!("the association with {node_id} is released by it"));
        self.end_sessions_of(node_id, Lost::All, Then::Over(Some(*asked)));
        Ok(())
    }

    /// The association of a Node ID, if it is the sender's.
    pub(crate) fn associated(&self, asked: &Asked, node_id: &NodeId) -> Result<String, Refusal> {
        let node_id = node_id.to_string();
        let peer = self.peers.get(&node_id);
        match peer.is_some_and(|association| association.speaks_from(asked.key.from.ip())) {
            true => Ok(node_id),
            false => Err(Refusal::of(Cause::NoEstablishedPfcpAssociation)),
        }
    }

    /// Whose session it is to be. A control plane with a host name has one association and any number of addresses (TS 29.244
    /// 5.8.1).
    pub(crate) fn establishing(
        &self,
        asked: &Asked,
        request: &SessionEstablishmentRequest,
    ) -> Result<String, Refusal> {
        match self.is_named_there(asked.key.from.ip(), request) {
            true => Ok(request.node_id.to_string()),
            false => self.associated(asked, &request.node_id),
        }
    }

    /// Whether a session gets a name at the sender's address, by a control plane that is not bound to one. So whoever else sends it
    /// has nothing of that control plane's: sessions at its other addresses it can neither speak of nor replace.
    pub(crate) fn is_named_there(&self, from: IpAddr, request: &SessionEstablishmentRequest) -> bool {
        let is_known = || self.peers.get(&request.node_id.to_string()).is_some();
        let name = cp_f_seid(&request.cp_f_seid, &self.config);
        matches!(request.node_id, NodeId::Fqdn(_))
            && name.is_ok_and(|name| name.address == from)
            && is_known()
    }

    /// Some control planes release an association in the name of nobody, meaning the one they have.
    fn only_at(&self, asked: &Asked) -> Result<String, Refusal> {
        let mut there = self.peers.at(asked.key.from.ip());
        match (there.next(), there.next()) {
            (Some(only), None) => Ok(only.record.node_id.clone()),
            _ => Err(Refusal::of(Cause::NoEstablishedPfcpAssociation)),
        }
    }

    /// A new association, or an old one anew. A peer that restarted in between has lost its sessions, so they go
    /// (TS 23.007), but those it asks to retain; one that did not still counts on them, so they stay. One of a set need not change its
    /// time stamp when it restarts: it is known by what it asks to retain (TS 23.527 4.3, 29.244 6.2.6.2.2).
    fn associate(&mut self, record: AssociationRecord, retained: Option<Retained>, asked: Option<Asked>) {
        let old = self.peers.get(&record.node_id).map(|association| association.record.recovery_time_stamp);
        let has_restarted = old.is_some_and(|old| old != record.recovery_time_stamp);
        // Of what ends already none would be counted on, and what an association had ends with it: nothing of that is retained.
        let is_after_end = self.endings.end_association(&record.node_id);
        let loses_all = has_restarted || self.endings.are_under_way(&record.node_id);
        let lost = match &retained {
            Some(retained) if !is_after_end => Some(Lost::But(retained.clone())),
            _ => loses_all.then_some(Lost::All),
        };
        let owner = record.node_id.clone();
        let associating = Associating { record, has_restarted, is_after_end, asked, retained };
        match lost.filter(|_| old.is_some()) {
            Some(lost) => self.end_sessions_of(owner, lost, Then::Associate(Box::new(associating))),
            None => self.associated_anew(associating),
        }
    }

    /// What it has lost is gone.
    pub(crate) fn associated_anew(&mut self, associating: Associating) {
        let Associating { mut record, has_restarted, asked, retained, .. } = associating;
        let node_id = record.node_id.clone();
        if has_restarted {
            let from = asked.map_or(record.address, |asked| asked.key.from);
            self.begins_anew(&node_id, (from, asked.map(|asked| asked.key.sequence)));
        }
        self.note(Level::Info, format!("associated with {node_id} at {}", record.address));
        let old = self.peers.get(&node_id);
        let (is_new, ends) = (old.is_none(), old.and_then(|association| association.ends));
        record.ending_sets = self.endings.sets_of(&node_id);
        self.peers.insert(record.clone(), (Some(self.now), self.now + self.config.heartbeat_interval));
        self.out.push(Output::SaveAssociation(record));
        if let Some(asked) = asked {
            if is_new {
                self.begins(&node_id, &asked);
            }
            let is_retained = retained.is_some_and(|retained| self.has_retained(&node_id, &retained));
            self.accept_setup(&asked, is_retained);
        }
        self.tell_failed_paths(&node_id);
        // It was asked before we took leave; or was to release us, and has forgotten that.
        if let Some(until) = self.peers.leaves().or(ends) {
            self.release_association(&node_id, until);
        }
    }

    /// A peer restarted and did not associate in time: the sessions it has not spoken of since are lost (`stale.rs`).
    pub(crate) fn restarted(&mut self, node_id: &str, recovery_time_stamp: u32) {
        if let Some(before) = self.peers.get(node_id).map(|association| association.record.era) {
            let then = Then::Restarted(recovery_time_stamp);
            self.end_sessions_of(node_id.to_owned(), Lost::UpTo(before), then);
        }
    }

    /// What it has lost is gone.
    pub(crate) fn has_restarted(&mut self, node_id: &str, recovery_time_stamp: u32) {
        let Some(association) = self.peers.get_mut(node_id) else { return };
        (association.restarted, association.is_forgotten) = (None, true);
        association.record.era = association.record.era.saturating_add(1);
        association.record.recovery_time_stamp = recovery_time_stamp;
        self.out.push(Output::SaveAssociation(association.record.clone()));
    }

    /// Whether there are sessions of those it asks to retain: it need not restore them (TS 29.244 8.2.134).
    fn has_retained(&self, node_id: &str, retained: &Retained) -> bool {
        let is_one = |session: &Session| is_of_retained(&session.record, retained);
        self.sessions.all_of(node_id).into_iter().any(|seid| self.sessions.look(seid, is_one))
    }

    /// Where others of a control plane's set speak in its name: where they may.
    fn alternatives(&mut self, node_id: &str, told: &[CpIpAddress]) -> (Vec<IpAddr>, u8) {
        let all = told.iter().flat_map(CpIpAddress::addresses);
        let others: BTreeSet<IpAddr> = all.filter(|address| !self.config.allows(*address)).collect();
        for address in &others {
            let text =
                format!("{node_id} is at {address}, too, which is not allowed: it is not spoken with there");
            self.note(Level::Warning, text);
        }
        alternatives(told, |address| !others.contains(address))
    }
}

/// Others of its set that are remembered for a peer; more are not needed to go on without it.
const ALTERNATIVES: usize = 16;

/// PFCP Session Retention Information (TS 29.244 6.2.6.2, 7.4.4.1-1).
fn retained(carried: &[RawIe]) -> Result<Option<Retained>, Refusal> {
    const IE: u16 = ie::PFCP_SESSION_RETENTION_INFORMATION;
    let Some(told) = carried.iter().find(|other| other.ie == IE) else { return Ok(None) };
    let told = SessionRetentionInformation::of_octets(&told.value).map_err(|_| Refusal::incorrect(IE))?;
    Ok(Some(told.cp_pfcp_entities.iter().flat_map(CpIpAddress::addresses).collect()))
}

/// PFCP Session Retained Indication (TS 29.244 8.2.134).
fn psrei() -> RawIe {
    RawIe { ie: ie::PFCPASRSP_FLAGS, value: vec![flags::PFCPASRSP_PSREI] }
}

fn features(told: Option<&CpFunctionFeatures>) -> Vec<u8> {
    told.map(|told| told.octets().to_vec()).unwrap_or_default()
}

/// The preferred ones first (PPE, TS 29.244 8.2.129), and how many these are.
fn alternatives(told: &[CpIpAddress], is_allowed: impl Fn(&IpAddr) -> bool) -> (Vec<IpAddr>, u8) {
    let (preferred, others): (Vec<_>, Vec<_>) = told.iter().partition(|told| told.is_preferred);
    let addresses = |told: Vec<&CpIpAddress>| {
        told.into_iter().flat_map(CpIpAddress::addresses).filter(&is_allowed).collect()
    };
    let (mut all, others): (Vec<IpAddr>, Vec<IpAddr>) = (addresses(preferred), addresses(others));
    all.truncate(ALTERNATIVES);
    let preferred = all.len() as u8;
    all.extend(others.into_iter().take(ALTERNATIVES - all.len()));
    (all, preferred)
}

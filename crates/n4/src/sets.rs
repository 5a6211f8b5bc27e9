//! Many sessions at once: sets of sessions that end or move together (TS 29.244 6.2.9, 7.4.7), and control planes of a
//! set that take sessions over from one another (5.22).

use crate::ending::{Lost, Source, Then};
use crate::exchange::{Asked, Asking};
use crate::interface::Level;
use crate::node::Node;
use crate::peers::Association;
use crate::refusal::Refusal;
use crate::sessions::Session;
use pfcp::{
    Body, Cause, CpIpAddress, FSeid, FqCsid, Message, NodeId, SessionChangeInfo, SessionReportRequest,
    SessionSetDeletionRequest, SessionSetDeletionResponse, SessionSetModificationRequest,
    SessionSetModificationResponse, ie,
};
use rules::Seid;
use session::{AssociationRecord, CpFSeid, SessionRecord};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// Which sessions move, and where to.
#[derive(Clone, Debug)]
pub(crate) struct Moving(Vec<(SessionChangeInfo, IpAddr)>);

impl Moving {
    /// Where one does. Of several changes that mean it, the last one holds.
    pub(crate) fn to(&self, record: &SessionRecord) -> Option<IpAddr> {
        self.0.iter().rev().find(|(change, _)| is_meant(record, change)).map(|(_, to)| *to)
    }
}

impl Node {
    /// All sessions of the sender that are of any of these sets end, without telling what they used.
    pub(crate) fn delete_set(
        &mut self,
        asked: &Asked,
        request: &SessionSetDeletionRequest,
    ) -> Result<(), Refusal> {
        let node_id = self.associated(asked, &request.node_id)?;
        if request.fq_csids.is_empty() {
            return Err(Refusal::blaming(Cause::ConditionalIeMissing, ie::FQ_CSID));
        }
        self.end_sets(asked, node_id, &request.fq_csids)
    }

    pub(crate) fn set_is_gone(&mut self, asked: &Asked) {
        let node_id = self.config.node_id.clone();
        let (cause, offending_ie, carried) = (Cause::RequestAccepted, None, vec![]);
        self.accept(asked, None, SessionSetDeletionResponse { node_id, cause, offending_ie, carried });
    }

    /// What we have to say of sessions goes elsewhere from now on.
    pub(crate) fn modify_set(
        &mut self,
        asked: &Asked,
        request: &SessionSetModificationRequest,
    ) -> Result<(), Refusal> {
        let node_id = self.associated(asked, &request.node_id)?;
        let moving = self.moving(request)?;
        let named = self.named(&node_id, &request.changes);
        let (lost, then) = (Lost::Moving(moving), Then::SetHasMoved(*asked));
        self.begin_set((node_id, lost), named, then)
    }

    pub(crate) fn set_has_moved(&mut self, asked: &Asked) {
        let node_id = self.config.node_id.clone();
        let (cause, offending_ie, carried) = (Cause::RequestAccepted, None, vec![]);
        self.accept(asked, None, SessionSetModificationResponse { node_id, cause, offending_ie, carried });
    }

    /// Nothing moves where one of the places cannot be.
    fn moving(&self, request: &SessionSetModificationRequest) -> Result<Moving, Refusal> {
        let to = |change: &SessionChangeInfo| {
            let to = change.alternative.addresses().find(|to| self.config.allows(*to));
            Ok((change.clone(), to.ok_or(Refusal::incorrect(ie::ALTERNATIVE_SMF_IP_ADDRESS))?))
        };
        request.changes.iter().map(to).collect::<Result<_, _>>().map(Moving)
    }

    /// Where sessions are that any of these changes may mean. An address is that of all sessions of a control plane, or nearly. One
    /// request has room for thousands of changes that name the same, so each name is looked up once.
    fn named(&self, node_id: &str, changes: &[SessionChangeInfo]) -> Vec<Source> {
        let fq_csids = changes.iter().flat_map(|change| &change.fq_csids);
        let groups: BTreeSet<&Vec<u8>> = changes.iter().flat_map(|change| &change.group_ids).collect();
        let mut named = self.sessions.known_sets(fq_csids);
        named.extend(groups.into_iter().cloned().map(Source::Group));
        if changes.iter().any(|change| !change.cp_ip_addresses.is_empty()) {
            let owners = self.sessions.owners().filter(|owner| self.peers.are_one(node_id, owner));
            // The same order in every run.
            let owners: BTreeSet<String> = owners.map(str::to_owned).collect();
            named.extend(owners.into_iter().map(Source::Owner));
        }
        named
    }

    pub(crate) fn look_to(&mut self, seid: Seid, to: IpAddr) {
        let Some(session) = self.sessions.get_mut(seid) else { return };
        session.look_to(Some(to));
        if session.is_established() {
            session.save();
        }
        self.release_held(seid);
    }

    /// Whether a sender may speak of a session: its owner, one of the owner's set, who looks after it, or who has its CP F-SEID,
    /// which need not be where the association is (TS 29.244 5.6.2).
    pub(crate) fn may_speak(&self, from: IpAddr, session: &Session) -> bool {
        let owner = &session.record.owner;
        let mut peers = self.peers.speaking_from(from);
        session.alternative() == Some(from)
            || session.record.cp_f_seid.address == from
            || peers.any(|association| self.peers.are_one(&association.record.node_id, owner))
    }

    /// The control plane that has the session after a modification: one of the owner's set (TS 29.244 5.22.3).
    pub(crate) fn new_owner(&self, owner: &str, node_id: Option<&NodeId>) -> Result<String, Refusal> {
        let Some(new) = node_id.map(NodeId::to_string) else { return Ok(owner.to_owned()) };
        let is_there = self.peers.get(&new).is_some_and(|new| !new.is_over());
        match is_there && self.peers.are_one(&new, owner) {
            true => Ok(new),
            false => Err(Refusal::blaming(Cause::NoEstablishedPfcpAssociation, ie::NODE_ID)),
        }
    }

    /// Where a session's reports go, and by which name: those who did not give the session its name are told who did.
    pub(crate) fn looks_after(&self, seid: Seid) -> Option<(SocketAddr, u64, Option<FSeid>)> {
        let session = self.sessions.get(seid)?;
        let CpFSeid { seid: cp_seid, address } = session.record.cp_f_seid;
        let old = Some(FSeid::new(cp_seid, address));
        let owner = self.peers.get(&session.record.owner);
        if let Some(to) = session.alternative() {
            return Some((self.peers.request_address(to), 0, old));
        }
        if owner.is_some_and(|owner| !owner.is_up())
            && let Some(to) = self.stand_in(&session.record.owner)
        {
            return Some((to, 0, old));
        }
        Some((self.report_address(&session.record.owner, address), cp_seid, None))
    }

    /// Who hears of a control plane's sessions in its place: of those who might, the one whose turn it is.
    pub(crate) fn stand_in(&self, owner: &str) -> Option<SocketAddr> {
        let turn = self.peers.get(owner)?.turn;
        let all = self.stand_ins(owner);
        all.get(turn.checked_rem(all.len())?).copied()
    }

    /// First whom it would rather have (PPE, TS 29.244 8.2.129), then those of its set that answer, then those of whom nothing is
    /// known.
    fn stand_ins(&self, owner: &str) -> Vec<SocketAddr> {
        let Some(association) = self.peers.get(owner) else { return vec![] };
        let AssociationRecord { alternatives, preferred, .. } = &association.record;
        let (preferred, unknown) = alternatives.split_at(usize::from(*preferred).min(alternatives.len()));
        let is_of_set = |other: &&Association| {
            other.is_up() && other.record.node_id != owner && self.peers.are_one(&other.record.node_id, owner)
        };
        let of_set = self.peers.iter().filter(is_of_set).map(|other| other.record.address);
        let addresses = |told: &[IpAddr]| -> Vec<SocketAddr> {
            told.iter().filter(|to| self.may_answer(**to)).map(|to| self.peers.request_address(*to)).collect()
        };
        let mut all = Vec::new();
        for to in addresses(preferred).into_iter().chain(of_set).chain(addresses(unknown)) {
            if !all.contains(&to) {
                all.push(to);
            }
        }
        all
    }

    /// Not where we are associated with somebody who is silent.
    fn may_answer(&self, to: IpAddr) -> bool {
        let mut there = self.peers.at(to).peekable();
        there.peek().is_none() || there.any(Association::is_up)
    }

    /// Nobody answered a request about a session: if that was who stands in for its owner, it is the next one's turn.
    pub(crate) fn next_stand_in(&mut self, asking: &Asking) {
        let Some(owner) = asking.owner.as_deref() else { return };
        if self.stand_in(owner) == Some(asking.to)
            && let Some(association) = self.peers.get_mut(owner)
        {
            association.turn = association.turn.wrapping_add(1);
        }
    }

    /// Nobody answered at its owner's what there is to tell of a session: whoever stands in hears of it at once, though the owner may be
    /// thought to be there, as it answers heartbeats or never has (TS 29.244 5.22.3). Where the owner has two addresses, both come
    /// first. Whether it is told.
    pub(crate) fn tell_stand_in(&mut self, asking: &Asking) -> bool {
        let Some((to, old)) = self.instead_of_owner(asking) else { return false };
        let Ok(Body::SessionReportRequest(request)) = pfcp::decode(&asking.bytes).map(|message| message.body)
        else {
            return false;
        };
        let request = SessionReportRequest { old_cp_f_seid: Some(old), ..request };
        let is_told = self.ask(to, asking.purpose.clone(), |sequence| Message::session(0, sequence, request));
        self.counters.unanswered += u64::from(is_told);
        is_told
    }

    /// Who hears of a session that is there, after its owner was asked, and by which name the owner knows it.
    fn instead_of_owner(&self, asking: &Asking) -> Option<(SocketAddr, FSeid)> {
        let session = self.sessions.get(asking.purpose.session()?)?;
        let SessionRecord { owner, cp_f_seid: CpFSeid { seid, address }, .. } = &session.record;
        if session.alternative().is_some() || asking.owner.as_ref() != Some(owner) {
            return None;
        }
        let own = self.peers.get(owner)?.record.address;
        let is_last = asking.to == own || asking.to == self.report_address(owner, *address);
        let to = self.stand_in(owner).filter(|to| is_last && *to != asking.to)?;
        Some((to, FSeid::new(*seid, *address)))
    }

    /// Whether an answer is of one who was asked in the place of an owner that is thought to be there.
    pub(crate) fn is_of_stand_in(&self, session: &Session, from: SocketAddr) -> bool {
        let SessionRecord { owner, cp_f_seid, .. } = &session.record;
        let is_known = [session.alternative(), Some(cp_f_seid.address)].contains(&Some(from.ip()));
        let owner = self.peers.get(owner).filter(|owner| owner.is_up());
        !is_known && owner.is_some_and(|owner| owner.record.address.ip() != from.ip())
    }

    /// The control plane calls the session otherwise from now on (TS 29.244 7.5.9). Where that is another than the owner, it is
    /// the owner now.
    pub(crate) fn rename(&mut self, seid: Seid, cp_f_seid: CpFSeid) {
        let Some(session) = self.sessions.get(seid) else { return };
        let owner = session.record.owner.clone();
        let is_its = self.peers.get(&owner).is_some_and(|owner| owner.speaks_from(cp_f_seid.address));
        let heir = if is_its { None } else { self.heir(&owner, cp_f_seid.address) };
        let owner = heir.unwrap_or(owner);
        let named = self.sessions.of_owner(&owner, cp_f_seid);
        if named.is_some_and(|other| other != seid) {
            return self.note(Level::Warning, format!("session {seid} cannot have the name of another"));
        }
        self.belongs_to(seid, owner, cp_f_seid);
        let Some(session) = self.sessions.get_mut(seid) else { return };
        session.look_to(None);
        if session.is_established() {
            session.save();
        }
    }

    /// Whose a session is once its owner has none any more: another one looks after it by now (TS 29.244 5.22.3, 7.4.7).
    pub(crate) fn heir_of(&self, session: &Session) -> Option<String> {
        let SessionRecord { owner, cp_f_seid, .. } = &session.record;
        let heir = self.heir(owner, session.alternative()?)?;
        self.sessions.of_owner(&heir, *cp_f_seid).is_none().then_some(heir)
    }

    pub(crate) fn hand_over(&mut self, seid: Seid, heir: String) {
        if let Some(cp_f_seid) = self.sessions.get(seid).map(|session| session.record.cp_f_seid) {
            self.belongs_to(seid, heir, cp_f_seid);
        }
    }

    /// Another control plane at this address, which has not left: rather one of its set.
    fn heir(&self, node_id: &str, at: IpAddr) -> Option<String> {
        let others = self.peers.at(at).filter(|other| !other.is_over());
        let others = others.map(|other| &other.record.node_id).filter(|other| *other != node_id);
        others.min_by_key(|other| !self.peers.are_one(node_id, other)).cloned()
    }

    /// What is under way must not forget it.
    fn belongs_to(&mut self, seid: Seid, owner: String, cp_f_seid: CpFSeid) {
        let era = self.era(&owner);
        self.is_named(cp_f_seid);
        let Some(session) = self.sessions.get_mut(seid) else { return };
        let record = SessionRecord { owner, cp_f_seid, era, ..session.record.clone() };
        let next = session.pending.as_mut().and_then(|pending| pending.next());
        if let Some(next) = next.filter(|next| next.owner == session.record.owner) {
            next.owner.clone_from(&record.owner);
            next.era = era;
        }
        if session.is_established() {
            session.save();
        }
        self.sessions.replace_record(record);
    }
}

pub(crate) fn is_of_any(record: &SessionRecord, fq_csids: &[FqCsid]) -> bool {
    let own = record.extras.iter().flat_map(|extras| &extras.fq_csids);
    let mut own = own.filter_map(|octets| FqCsid::of_octets(octets));
    own.any(|own| fq_csids.iter().any(|other| own.overlaps(other)))
}

fn is_meant(record: &SessionRecord, change: &SessionChangeInfo) -> bool {
    let group = record.extras.as_ref().map_or(&[][..], |extras| &extras.group_id);
    let address = record.cp_f_seid.address;
    let mut addresses = change.cp_ip_addresses.iter().flat_map(CpIpAddress::addresses);
    is_of_any(record, &change.fq_csids)
        || (!group.is_empty() && change.group_ids.iter().any(|other| other == group))
        || addresses.any(|other| other == address)
}

//! Error Indications of peers, reported to the owners of the sessions they hit (TS 29.244 5.10, 7.5.8.4).

use crate::asking::Telling;
use crate::establishment::cp_f_seid;
use crate::exchange::{Asking, Purpose};
use crate::interface::Level;
use crate::node::Node;
use crate::peers::Association;
use crate::sessions::Session;
use machine::Time;
use pfcp::{
    Body, Cause, ErrorIndicationReport, FTeid, Message, ReportType, SessionReportRequest,
    SessionReportResponse,
};
use rules::{Interface, Rules, Seid, Teid};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A peer's tunnel.
type Remote = (Teid, IpAddr);

/// Whether a tunnel leads to the access side.
type Towards = bool;

/// Which sessions send into which tunnel of a peer, and what was reported lately.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    users: BTreeSet<(Remote, Seid, Towards)>,
    /// Until when not again.
    lately: BTreeMap<(Seid, Remote), Time>,
    /// The same by time: the first is over first. What a session has forgotten stays here until then.
    over: VecDeque<(Time, (Seid, Remote))>,
}

impl Reports {
    /// A session's rules have changed: its owner may have given a tunnel of the same name anew, and what a peer says of
    /// that one is news.
    pub(crate) fn reindex(&mut self, seid: Seid, old: &Rules, new: &Rules) {
        self.forget(seid);
        for (remote, towards) in remotes(old) {
            self.users.remove(&(remote, seid, towards));
        }
        self.users.extend(remotes(new).map(|(remote, towards)| (remote, seid, towards)));
    }

    /// What was reported of a session is long ago.
    fn forget(&mut self, seid: Seid) {
        let least = (Teid(0), IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let of_session = self.lately.range((seid, least)..).take_while(|((other, _), _)| *other == seid);
        let keys: Vec<(Seid, Remote)> = of_session.map(|(key, _)| *key).collect();
        for key in keys {
            self.lately.remove(&key);
        }
    }

    /// Whether to report now: not what was reported lately, and not beyond `limit` at once.
    fn is_due(&mut self, key: (Seid, Remote), (now, limit): (Time, usize)) -> bool {
        while let Some((until, key)) = self.over.pop_front_if(|(until, _)| *until <= now) {
            if self.lately.get(&key) == Some(&until) {
                self.lately.remove(&key);
            }
        }
        !self.lately.contains_key(&key) && self.over.len() < limit
    }

    /// It is being reported: not again before `until`, which is never earlier than that of the report before.
    fn begin(&mut self, key: (Seid, Remote), until: Time) {
        self.lately.insert(key, until);
        self.over.push_back((until, key));
    }

    /// Sessions that send into a tunnel of that peer, on that side or on either.
    fn users(&self, remote: Remote, side: Option<Interface>) -> Vec<Seid> {
        let all = (remote, Seid(0), false)..=(remote, Seid(u64::MAX), true);
        let is_meant = |towards: Towards| side.is_none_or(|side| towards == (side == Interface::Access));
        let mut users: Vec<Seid> = self
            .users
            .range(all)
            .filter(|(.., towards)| is_meant(*towards))
            .map(|(_, seid, _)| *seid)
            .collect();
        users.dedup();
        users
    }
}

fn remotes(rules: &Rules) -> impl Iterator<Item = (Remote, Towards)> {
    rules.fars.iter().filter_map(|far| {
        let to = far.forwarding?;
        let tunnel = to.outer_header_creation?;
        Some(((tunnel.teid()?, tunnel.address), to.destination_interface == Interface::Access))
    })
}

/// Addresses of CP F-SEIDs of one control plane that may be known to be out of reach.
const UNREACHED: usize = 16;

impl Node {
    pub(crate) fn error_indication(&mut self, remote: Remote, towards: Option<Interface>) {
        // A peer repeats itself for every packet; its owner hears it once in a while.
        let (until, terms) =
            (self.now + self.config.heartbeat_interval, (self.now, self.config.limits.reports));
        for seid in self.reports.users(remote, towards) {
            // Who cannot be told now hears of it from the next one the peer sends.
            let key = (seid, remote);
            match !self.must_wait(seid) && self.reports.is_due(key, terms) && self.report(seid, remote) {
                true => self.reports.begin(key, until),
                false => self.counters.reports_held_back += 1,
            }
        }
    }

    fn report(&mut self, seid: Seid, (teid, peer): Remote) -> bool {
        let (ipv4, ipv6) = match peer {
            IpAddr::V4(address) => (Some(address), None),
            IpAddr::V6(address) => (None, Some(address)),
        };
        let remote_f_teids = vec![FTeid::Explicit { teid: teid.0, ipv4, ipv6 }];
        let request = SessionReportRequest {
            report_type: ReportType(ReportType::ERIR),
            error_indication_report: Some(ErrorIndicationReport { remote_f_teids, carried: vec![] }),
            ..SessionReportRequest::default()
        };
        self.tell_owner(seid, Purpose::Report(seid), request) == Telling::UnderWay
    }

    /// Sends a report about a session to its owner, if that one answers and there is room for it.
    pub(crate) fn tell_owner(
        &mut self,
        seid: Seid,
        purpose: Purpose,
        request: SessionReportRequest,
    ) -> Telling {
        if self.must_wait(seid) {
            return Telling::Silent;
        }
        let Some((to, cp_seid, old_cp_f_seid)) = self.looks_after(seid) else { return Telling::NoRoom };
        let request = SessionReportRequest { old_cp_f_seid, ..request };
        match self.ask(to, purpose, |sequence| Message::session(cp_seid, sequence, request)) {
            true => Telling::UnderWay,
            false => Telling::NoRoom,
        }
    }

    /// Requests about a session go to the address of its CP F-SEID (TS 29.244 5.6.2). Some control planes give one that cannot be
    /// reached from here (behind address translation, or an adapter): where nobody answers there, they go to the owner's own, if
    /// nobody else is behind that.
    pub(crate) fn report_address(&self, owner: &str, address: IpAddr) -> SocketAddr {
        let instead = |owner: &&Association| {
            let own = owner.record.address;
            own.ip() == address || owner.unreached.contains(&address) && !self.peers.is_shared(own)
        };
        let associated = self.peers.get(owner).filter(instead);
        associated.map_or(self.peers.request_address(address), |owner| owner.record.address)
    }

    /// Nobody answered what a session's control plane was told. What comes next goes to the other of its two addresses.
    pub(crate) fn tell_elsewhere(&mut self, asking: &Asking) {
        let session = asking.purpose.session().and_then(|seid| self.sessions.get(seid));
        let named = session.map(|session| session.record.cp_f_seid.address);
        let Some(association) = asking.owner.as_deref().and_then(|owner| self.peers.get_mut(owner)) else {
            return;
        };
        let (to, own) = (asking.to.ip(), association.record.address.ip());
        if named == Some(to) && to != own && association.unreached.len() < UNREACHED {
            if association.unreached.insert(to) {
                let owner = &association.record.node_id;
                let text = format!(
                    "nobody answers at {to}, where {owner} wants to hear of its sessions: it is told at {own}"
                );
                self.note(Level::Warning, text);
            }
        } else if to == own {
            named.into_iter().for_each(|named| {
                association.unreached.remove(&named);
            });
        }
    }

    /// An owner that does not know the session has lost it: it would stay for ever. Where others are behind its address, it may not be
    /// the owner who says so.
    pub(crate) fn answered_report(
        &mut self,
        seid: Seid,
        (sequence, asking): (u32, &Asking),
        response: &SessionReportResponse,
    ) {
        if !self.sessions.has(seid) {
            return;
        }
        if let Some(owner) = &asking.owner {
            self.peers.spoken_for(owner, self.now);
        }
        if response.cause == Cause::SessionContextNotFound {
            // Who wants it gone may have forgotten it already, and hears the rest in answer to that, be it after a change.
            let is_to_be_deleted = self.sessions.look(seid, Session::is_to_be_deleted);
            // Who was asked in the owner's place may know less than that one, which is thought to be there.
            let knows_less = self.sessions.get(seid).is_some_and(|it| self.is_of_stand_in(it, asking.to));
            if self.peers.is_shared(asking.to) || is_to_be_deleted || knows_less {
                return self.unanswered(sequence, asking);
            }
            self.note(Level::Warning, format!("{} does not know session {seid}: it is removed", asking.to));
            return self.drop_session(seid);
        }
        // Who takes what is told of it knows it, though it may have nothing to say of it until its end.
        if response.cause.is_accepted() && !self.peers.is_shared(asking.to) {
            self.is_of_today(seid);
        }
        let renamed = response.cp_f_seid.as_ref().map(|name| cp_f_seid(name, &self.config));
        if let Some(Ok(cp_f_seid)) = renamed {
            self.rename(seid, cp_f_seid);
        }
        if response.cause == Cause::RedirectionRequested {
            return self.redirected(seid, (sequence, asking), response);
        }
        match &asking.purpose {
            Purpose::Usage(_) => self.usage_answered(seid, asking.to, response.cause),
            Purpose::Silence(_, attempt) => self.silence_answered(seid, *attempt, response.cause),
            Purpose::Paging(_, pdrs) => self.page_answered(seid, pdrs, response.cause),
            _ => {}
        }
        self.buffer_otherwise(seid, response);
    }

    /// Another control plane is to hear of the session from now on, of this first (TS 29.244 7.5.9.1). Those who send us on from
    /// one to the other are not followed at once: they might do so for ever.
    fn redirected(
        &mut self,
        seid: Seid,
        (sequence, asking): (u32, &Asking),
        response: &SessionReportResponse,
    ) {
        let told = response.alternative.as_ref();
        let to = told.and_then(|told| told.addresses().find(|to| self.config.allows(*to)));
        let session = self.sessions.get(seid);
        let is_first = session.is_some_and(|session| session.alternative() != Some(asking.to.ip()));
        to.into_iter().for_each(|to| self.look_to(seid, to));
        let request = match pfcp::decode(&asking.bytes).map(|message| message.body) {
            Ok(Body::SessionReportRequest(request)) if to.is_some() && is_first => Some(request),
            _ => None,
        };
        let is_sent_on = request.map(|request| self.tell_owner(seid, asking.purpose.clone(), request));
        if is_sent_on != Some(Telling::UnderWay) {
            self.unanswered(sequence, asking);
        }
    }
}

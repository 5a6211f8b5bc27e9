//! Paths to other user planes and to radios, as the data plane finds them, told to all control planes (TS 29.244 6.2.10,
//! 7.4.5), and restarts of their other ends (TS 23.007 18A). What a control plane has not confirmed is kept as a state, not as an event: it is told how things are when it answers
//! again, by our next life if need be.

use crate::capabilities::DOUBLINGS;
use crate::exchange::Purpose;
use crate::interface::{Level, Output};
use crate::node::Node;
use crate::peers::{Association, Peers};
use machine::Time;
use pfcp::{CpFeature, Message, NodeReportRequest, PathReport, RemoteGtpuPeer, flags};
use rules::Interface;
use session::{AssociationRecord, PathRecord, PeerNews};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// Peers named in one message, which is to stay smaller than what paths carry whole.
const PEERS: usize = 48;
/// A path that failed before we started and of which the data plane has not said so again within this time has recovered: peers are
/// asked every 60 s, and have failed when they have not answered for 15 s (TS 29.281 7.2.1).
const UNHEARD: Duration = Duration::from_secs(90);
/// Peers of which the next process hears what a control plane has not confirmed, of each kind of news: the association's record is
/// written with all of them whenever they change.
const KEPT: usize = 256;
/// Messages to one control plane that wait for an answer.
const UNDER_WAY: usize = 16;

/// What there is to tell of a peer. That it answers again replaces that it is silent, and the other way round; that it was
/// restarted is told besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Failed,
    Recovered,
    Restarted,
}

impl What {
    const fn of_path(is_up: bool) -> Self {
        if is_up { Self::Recovered } else { Self::Failed }
    }

    /// What there is to tell by it: newer replaces older of the same.
    fn topic(self, peer: IpAddr) -> Topic {
        (self == Self::Restarted, peer)
    }
}

/// Whether it is about a restart, and of whom.
type Topic = (bool, IpAddr);

/// What there is to tell one control plane of peers: whether each is there, and was restarted.
#[derive(Debug, Default)]
pub(crate) struct News {
    untold: BTreeMap<Topic, What>,
    /// What messages that wait for an answer say, by their sequence numbers.
    under_way: BTreeMap<u32, (Vec<IpAddr>, What)>,
    /// Nothing is told before: it was told often enough for now.
    again: Option<Time>,
    /// How often nobody has answered, up to a limit: some control planes know nothing of these messages.
    unheard: u32,
    /// Peers that have failed in this life of ours, which was never confirmed: nobody may know of it.
    unknown: BTreeSet<IpAddr>,
}

impl News {
    /// At most `limit` peers: of those that never answer again somebody is forgotten.
    fn learn(&mut self, peer: IpAddr, what: What, limit: usize) {
        let topic = what.topic(peer);
        // Whoever is still to hear that it is well again knows that it had failed.
        if what == What::Failed && !self.is_owed(What::Recovered, peer) {
            self.unknown.insert(peer);
        }
        self.untold.insert(topic, what);
        if self.untold.len() > limit {
            let other = self.untold.keys().copied().find(|other| *other != topic);
            self.untold.retain(|known, _| Some(*known) != other);
            self.unknown.retain(|known| other.is_none_or(|(_, peer)| peer != *known));
        }
    }

    /// Whether that has been told and not confirmed, or is to be.
    fn is_owed(&self, what: What, peer: IpAddr) -> bool {
        let is_under_way = |(peers, said): &(Vec<IpAddr>, What)| *said == what && peers.contains(&peer);
        self.untold.get(&what.topic(peer)) == Some(&what) || self.under_way.values().any(is_under_way)
    }

    /// A message was answered.
    fn confirm(&mut self, sequence: u32) {
        (self.again, self.unheard) = (None, 0);
        let peers = self.under_way.remove(&sequence).map_or(vec![], |(peers, _)| peers);
        self.unknown.retain(|peer| !peers.contains(peer));
    }

    /// A message was not answered by one who is there, or is not. What is left is told after an interval, then after two, four...
    fn wait(&mut self, sequence: u32, is_there: bool, (now, interval): (Time, Duration)) {
        let recovered = self.under_way.get(&sequence).filter(|(_, what)| *what == What::Recovered);
        let recovered = recovered.map_or(vec![], |(peers, _)| peers.clone());
        self.take_back(sequence);
        if is_there {
            recovered.into_iter().for_each(|peer| self.let_be(peer));
        }
        // Messages that were sent together are one attempt.
        if self.again.is_none_or(|again| again <= now) {
            self.again = Some(now + interval * (1 << self.unheard));
            self.unheard = (self.unheard + 1).min(DOUBLINGS);
        }
    }

    /// Who never knew that a peer had failed need not know that it is well again.
    fn let_be(&mut self, peer: IpAddr) {
        let topic = What::Recovered.topic(peer);
        if self.untold.get(&topic) == Some(&What::Recovered) && self.unknown.remove(&peer) {
            self.untold.remove(&topic);
        }
    }

    /// Messages that say otherwise of these peers.
    fn outdated(&self, peers: &[IpAddr], what: What) -> Vec<u32> {
        let topics: Vec<Topic> = peers.iter().map(|peer| what.topic(*peer)).collect();
        let is_outdated =
            |(said, what): &(Vec<IpAddr>, What)| said.iter().any(|peer| topics.contains(&what.topic(*peer)));
        let all = self.under_way.iter().filter(|(_, said)| is_outdated(said));
        all.map(|(sequence, _)| *sequence).collect()
    }

    /// A message did not arrive, or is not sent any more: what it said is told again, where nothing newer is known.
    fn take_back(&mut self, sequence: u32) {
        let Some((peers, what)) = self.under_way.remove(&sequence) else { return };
        for peer in peers {
            self.untold.entry(what.topic(peer)).or_insert(what);
        }
    }

    /// What a control plane had not confirmed when our former life ended.
    fn unheard(record: &AssociationRecord) -> Self {
        let PeerNews { restarted, recovered } = &record.unconfirmed;
        let restarted = restarted.iter().map(|peer| (*peer, What::Restarted));
        let all = restarted.chain(recovered.iter().map(|peer| (*peer, What::Recovered)));
        let untold = all.map(|(peer, what)| (what.topic(peer), what)).collect();
        Self { untold, ..Self::default() }
    }

    /// What the next process is to tell if this one ends.
    fn unconfirmed(&self) -> PeerNews {
        PeerNews {
            restarted: self.unconfirmed_of(What::Restarted),
            recovered: self.unconfirmed_of(What::Recovered),
        }
    }

    fn unconfirmed_of(&self, what: What) -> Vec<IpAddr> {
        let untold = self.untold.iter().filter(|(_, other)| **other == what).map(|((_, peer), _)| *peer);
        let under_way = self.under_way.values().filter(|(_, other)| *other == what);
        let all: BTreeSet<IpAddr> = untold.chain(under_way.flat_map(|(peers, _)| peers.clone())).collect();
        all.into_iter().take(KEPT).collect()
    }

    /// Some of what is to be told, the same of all of them.
    fn take(&mut self) -> Option<(Vec<IpAddr>, What)> {
        let what = *self.untold.first_key_value()?.1;
        let same = self.untold.iter().filter(|(_, other)| **other == what);
        let peers: Vec<IpAddr> = same.map(|((_, peer), _)| *peer).take(PEERS).collect();
        self.untold.retain(|(_, peer), other| *other != what || !peers.contains(peer));
        Some((peers, what))
    }
}

impl Node {
    /// A peer no longer answers on a side, or answers again. What is no news is not told; a report names no side, so a peer
    /// is there again when it is on all.
    pub(crate) fn user_plane_path(&mut self, (side, peer): (Interface, IpAddr), is_up: bool) {
        let is_unheard = self.unheard_paths.remove(&(side, peer));
        let is_changed = match is_up {
            true => self.path_recovers((side, peer)),
            // Those who were to hear of it in our former life may not have.
            false => self.path_fails((side, peer)) || is_unheard,
        };
        let fails_elsewhere = self.failed_paths.keys().any(|(other, known)| *known == peer && *other != side);
        if !is_changed || fails_elsewhere {
            return;
        }
        let (level, what) =
            if is_up { (Level::Info, "answers again") } else { (Level::Warning, "is silent") };
        self.note(level, format!("the GTP-U peer {peer} {what}"));
        let told: Vec<String> = self.peers.iter().map(|peer| peer.record.node_id.clone()).collect();
        told.into_iter().for_each(|to| self.tell_paths(&to, [peer], What::of_path(is_up)));
    }

    /// A peer was restarted, and has lost its tunnels. Which sessions that ends is for control planes to say, those that
    /// understand the report (TS 29.244 8.2.58, RPGUR): the others hear of it by Error Indications.
    pub(crate) fn user_plane_restart(&mut self, peer: IpAddr) {
        self.note(Level::Warning, format!("the GTP-U peer {peer} was restarted"));
        let understand = self.peers.iter().filter(|peer| peer.has(CpFeature::Rpgur));
        let told: Vec<String> = understand.map(|peer| peer.record.node_id.clone()).collect();
        told.into_iter().for_each(|to| self.tell_paths(&to, [peer], What::Restarted));
    }

    /// The data plane is there: it tells anew which paths have failed.
    pub(crate) fn hear_of_paths(&mut self) {
        let waits = !self.unheard_paths.is_empty();
        self.paths_due = waits.then(|| self.now + UNHEARD);
    }

    /// The data plane is gone, and cannot tell.
    pub(crate) const fn hear_no_more_of_paths(&mut self) {
        self.paths_due = None;
    }

    /// Paths that failed in our former life, and of which the data plane says no more that they have: they recovered while nobody
    /// was there to tell.
    pub(crate) fn unheard_have_recovered(&mut self) {
        if self.paths_due.is_none_or(|due| due > self.now) {
            return;
        }
        self.paths_due = None;
        let all = std::mem::take(&mut self.unheard_paths);
        all.into_iter().for_each(|path| self.user_plane_path(path, true));
    }

    fn path_recovers(&mut self, (side, peer): (Interface, IpAddr)) -> bool {
        let has_failed = self.failed_paths.remove(&(side, peer)).is_some();
        self.out.extend(has_failed.then_some(Output::ErasePath(PathRecord { side, peer })));
        has_failed
    }

    /// What failed before a control plane came is news to it.
    pub(crate) fn tell_failed_paths(&mut self, node_id: &str) {
        let old = self.path_news.remove(node_id).unwrap_or_default();
        old.under_way.keys().for_each(|sequence| drop(self.requests.finish(*sequence)));
        let failed: BTreeSet<IpAddr> = self.failed_paths.keys().map(|(_, peer)| *peer).collect();
        self.tell_paths(node_id, failed, What::Failed);
    }

    fn tell_paths(&mut self, node_id: &str, peers: impl IntoIterator<Item = IpAddr>, what: What) {
        let peers: Vec<IpAddr> = peers.into_iter().collect();
        let limit = self.config.limits.reports;
        let news = self.path_news.entry(node_id.to_owned()).or_default();
        peers.iter().for_each(|peer| news.learn(*peer, what, limit));
        // What is new does not wait as long as what is old.
        news.again = news.again.map(|again| again.min(self.now + self.config.heartbeat_interval));
        let outdated = news.outdated(&peers, what);
        for sequence in outdated {
            news.take_back(sequence);
            // Sent again, it would be heard after what is true now.
            self.requests.finish(sequence);
        }
        self.tell_news(node_id);
        self.save_news(node_id);
    }

    /// What each control plane has not confirmed, as the database has it.
    pub(crate) fn news_unheard_of(peers: &Peers) -> BTreeMap<String, News> {
        let all = peers.iter().map(|peer| (peer.record.node_id.clone(), News::unheard(&peer.record)));
        all.filter(|(_, news)| !news.untold.is_empty()).collect()
    }

    fn save_news(&mut self, node_id: &str) {
        let unconfirmed = self.path_news.get(node_id).map(News::unconfirmed).unwrap_or_default();
        let Some(association) = self.peers.get_mut(node_id) else { return };
        if association.record.unconfirmed != unconfirmed {
            association.record.unconfirmed = unconfirmed;
            self.out.push(Output::SaveAssociation(association.record.clone()));
        }
    }

    /// Tells what there is to tell, unless the control plane does not answer.
    fn tell_news(&mut self, node_id: &str) {
        let Some(peer) = self.peers.get(node_id).filter(|peer| peer.is_up()) else { return };
        let address = peer.record.address;
        while let Some(news) = self.path_news.get_mut(node_id)
            && news.under_way.len() < UNDER_WAY
            && news.again.is_none_or(|again| again <= self.now)
            && let Some((peers, what)) = news.take()
        {
            let request = self.path_report(&peers, what);
            let purpose = Purpose::NodeReport(node_id.to_owned());
            let is_sent = self.ask(address, purpose, |sequence| Message::node(sequence, request));
            let Some(news) = self.path_news.get_mut(node_id) else { return };
            news.under_way.insert(self.sequences.last(), (peers, what));
            if !is_sent {
                self.counters.reports_held_back += 1;
                return news.take_back(self.sequences.last());
            }
        }
    }

    /// Whoever answers heartbeats is told what it missed; whoever is associated no more, nothing.
    pub(crate) fn tell_news_again(&mut self) {
        let peers = &self.peers;
        self.path_news.retain(|node_id, news| {
            let is_empty = news.untold.is_empty() && news.under_way.is_empty();
            let peer = peers.get(node_id);
            if peer.is_some_and(|peer| !peer.is_up()) {
                (news.again, news.unheard) = (None, 0);
            }
            peer.is_some() && !is_empty
        });
        let all: Vec<String> = self.path_news.keys().cloned().collect();
        all.into_iter().for_each(|node_id| self.tell_news(&node_id));
    }

    /// When somebody is told again.
    pub(crate) fn news_due(&self) -> Option<Time> {
        let due = self.path_news.iter().filter(|(_, news)| !news.untold.is_empty());
        let due = due.filter(|(node_id, _)| self.peers.get(node_id).is_some_and(|peer| peer.is_up()));
        due.filter_map(|(_, news)| news.again.filter(|again| *again > self.now)).min()
    }

    /// A message has been answered, whatever the answer says.
    pub(crate) fn news_told(&mut self, node_id: &str, sequence: u32) {
        if let Some(news) = self.path_news.get_mut(node_id) {
            news.confirm(sequence);
        }
        self.tell_news(node_id);
        self.save_news(node_id);
    }

    /// A message was not answered.
    pub(crate) fn news_unheard(&mut self, node_id: &str, sequence: u32) {
        let is_there = self.peers.get(node_id).is_some_and(Association::is_up);
        let when = (self.now, self.config.heartbeat_interval);
        if let Some(news) = self.path_news.get_mut(node_id) {
            news.wait(sequence, is_there, when);
        }
        self.save_news(node_id);
    }

    /// Whether that is news. Peers that never come back must not keep others from being told of: the one that failed first
    /// is forgotten.
    fn path_fails(&mut self, path: (Interface, IpAddr)) -> bool {
        if self.failed_paths.contains_key(&path) {
            return false;
        }
        if self.failed_paths.len() >= self.config.limits.reports {
            let first = self.failed_paths.iter().min_by_key(|(_, since)| **since).map(|(path, _)| *path);
            first.into_iter().for_each(|first| {
                self.path_recovers(first);
            });
        }
        let (side, peer) = path;
        self.out.push(Output::SavePath(PathRecord { side, peer }));
        self.failed_paths.insert(path, self.now).is_none()
    }

    fn path_report(&self, peers: &[IpAddr], what: What) -> NodeReportRequest {
        let peers = peers.iter().copied().map(RemoteGtpuPeer::new).collect();
        let report = Some(PathReport { peers, carried: vec![] });
        let (report_type, failed, recovered, restarted) = match what {
            What::Failed => (flags::NODE_REPORT_UPFR, report, None, None),
            What::Recovered => (flags::NODE_REPORT_UPRR, None, report, None),
            What::Restarted => (flags::NODE_REPORT_PURR, None, None, report),
        };
        let node_id = self.config.node_id.clone();
        NodeReportRequest { node_id, report_type, failed, recovered, restarted, carried: vec![] }
    }
}

//! Paths to other user planes and to radios, as the data plane finds them, told to all control planes (TS 29.244 6.2.10,
//! 7.4.5).

use crate::exchange::Purpose;
use crate::interface::Level;
use crate::node::Node;
use pfcp::{Message, NodeReportRequest, PathReport, RemoteGtpuPeer, flags};
use rules::Interface;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// Peers named in one message, which is to stay smaller than what paths carry whole.
const PEERS: usize = 48;

impl Node {
    /// A peer no longer answers on a side, or answers again. What is no news is not told; a report names no side, so a peer
    /// is there again when it is on all.
    pub(crate) fn user_plane_path(&mut self, (side, peer): (Interface, IpAddr), is_up: bool) {
        let is_changed = match is_up {
            true => self.failed_paths.remove(&(side, peer)).is_some(),
            false => self.path_fails((side, peer)),
        };
        let fails_elsewhere = self.failed_paths.keys().any(|(other, known)| *known == peer && *other != side);
        if !is_changed || fails_elsewhere {
            return;
        }
        let (level, what) =
            if is_up { (Level::Info, "answers again") } else { (Level::Warning, "is silent") };
        self.note(level, format!("the GTP-U peer {peer} {what}"));
        let told = self.peers.iter().map(|peer| (peer.record.node_id.clone(), peer.record.address));
        let told: Vec<(String, SocketAddr)> = told.collect();
        told.into_iter().for_each(|to| self.tell_paths(to, &[peer], is_up));
    }

    /// What failed before a control plane came is news to it.
    pub(crate) fn tell_failed_paths(&mut self, node_id: &str) {
        let Some(address) = self.peers.get(node_id).map(|peer| peer.record.address) else { return };
        let failed: BTreeSet<IpAddr> = self.failed_paths.keys().map(|(_, peer)| *peer).collect();
        let failed: Vec<IpAddr> = failed.into_iter().collect();
        failed.chunks(PEERS).for_each(|some| self.tell_paths((node_id.to_owned(), address), some, false));
    }

    fn tell_paths(&mut self, (node_id, address): (String, SocketAddr), peers: &[IpAddr], is_up: bool) {
        let request = self.path_report(peers, is_up);
        if !self.ask(address, Purpose::NodeReport(node_id), |sequence| Message::node(sequence, request)) {
            self.counters.reports_held_back += 1;
        }
    }

    /// Whether that is news. Peers that never come back must not keep others from being told of: the one that failed first
    /// is forgotten.
    fn path_fails(&mut self, path: (Interface, IpAddr)) -> bool {
        if self.failed_paths.contains_key(&path) {
            return false;
        }
        if self.failed_paths.len() >= self.config.limits.reports {
            let first = self.failed_paths.iter().min_by_key(|(_, since)| **since).map(|(path, _)| *path);
            self.failed_paths.retain(|path, _| Some(*path) != first);
        }
        self.failed_paths.insert(path, self.now).is_none()
    }

    fn path_report(&self, peers: &[IpAddr], is_up: bool) -> NodeReportRequest {
        let peers = peers.iter().copied().map(RemoteGtpuPeer::new).collect();
        let report = Some(PathReport { peers, carried: vec![] });
        let (report_type, failed, recovered) = match is_up {
            true => (flags::NODE_REPORT_UPRR, None, report),
            false => (flags::NODE_REPORT_UPFR, report, None),
        };
        let node_id = self.config.node_id.clone();
        NodeReportRequest { node_id, report_type, failed, recovered, carried: vec![] }
    }
}

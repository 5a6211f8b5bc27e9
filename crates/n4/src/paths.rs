//! Paths to other user planes and to radios, as the data plane finds them, told to all control planes (TS 29.244 6.2.10,
//! 7.4.5).

use crate::exchange::Purpose;
use crate::interface::Level;
use crate::node::Node;
use pfcp::{Message, NodeReportRequest, PathReport, RemoteGtpuPeer, flags};
use std::net::{IpAddr, SocketAddr};

impl Node {
    /// A peer no longer answers, or answers again. What is no news is not told.
    pub(crate) fn user_plane_path(&mut self, peer: IpAddr, is_up: bool) {
        let is_news = match is_up {
            true => self.failed_paths.remove(&peer).is_some(),
            false => self.path_fails(peer),
        };
        if !is_news {
            return;
        }
        let (level, what) =
            if is_up { (Level::Info, "answers again") } else { (Level::Warning, "is silent") };
        self.note(level, format!("the GTP-U peer {peer} {what}"));
        let told = self.peers.iter().map(|peer| (peer.record.node_id.clone(), peer.record.address));
        let told: Vec<(String, SocketAddr)> = told.collect();
        for (node_id, address) in told {
            let request = self.path_report(peer, is_up);
            let purpose = Purpose::NodeReport(node_id);
            if !self.ask(address, purpose, |sequence| Message::node(sequence, request)) {
                self.counters.reports_held_back += 1;
            }
        }
    }

    /// Whether that is news. Peers that never come back must not keep others from being told of: the one that failed first
    /// is forgotten.
    fn path_fails(&mut self, peer: IpAddr) -> bool {
        if self.failed_paths.contains_key(&peer) {
            return false;
        }
        if self.failed_paths.len() >= self.config.limits.reports {
            let first = self.failed_paths.iter().min_by_key(|(_, since)| **since).map(|(peer, _)| *peer);
            self.failed_paths.retain(|peer, _| Some(*peer) != first);
        }
        self.failed_paths.insert(peer, self.now).is_none()
    }

    fn path_report(&self, peer: IpAddr, is_up: bool) -> NodeReportRequest {
        let report = Some(PathReport { peers: vec![RemoteGtpuPeer::new(peer)], carried: vec![] });
        let (report_type, failed, recovered) = match is_up {
            true => (flags::NODE_REPORT_UPRR, None, report),
            false => (flags::NODE_REPORT_UPFR, report, None),
        };
        let node_id = self.config.node_id.clone();
        NodeReportRequest { node_id, report_type, failed, recovered, carried: vec![] }
    }
}

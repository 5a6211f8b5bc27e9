//! What must hold at any time, and be the same after a refusal.

use crate::common::Lab;
use dplink::Desired;
use pfcp::Message;
use rules::{Seid, Since};
use session::{AssociationRecord, PfdRecord, SessionRecord};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

/// Everything a request may change, but the numbers of revisions.
#[derive(Debug, PartialEq)]
pub struct State {
    desired: BTreeMap<Seid, Desired>,
    in_force: BTreeMap<Seid, Desired>,
    saved: BTreeMap<Seid, SessionRecord>,
    associations: BTreeMap<String, AssociationRecord>,
    pfds: BTreeMap<String, PfdRecord>,
    taken: [usize; 3],
}

impl State {
    pub fn of(lab: &Lab) -> Self {
        let unnumbered = |mut all: BTreeMap<Seid, Desired>| {
            for desired in all.values_mut() {
                desired.revision = 0;
                // What is left of quotas and thresholds, and how often traffic stopped, follows from what was used.
                Arc::make_mut(&mut desired.rules).urrs.iter_mut().for_each(|urr| {
                    (urr.volume_quota, urr.volume_threshold, urr.quota_grant) = (None, None, 0);
                    (urr.starts_awaited, urr.threshold_since, urr.quota_since) = (0, Since::default(), None);
                });
            }
            all
        };
        let mut saved = lab.saved.clone();
        for record in saved.values_mut() {
            record.revision = 0;
            // What was used is learnt at any time.
            (record.usage, record.charging) = (session::UsageRecord::default(), None);
            // Whoever is refused has named it all the same.
            record.era = 0;
        }
        Self {
            desired: unnumbered(lab.desired()),
            in_force: unnumbered(lab.in_force.clone()),
            saved,
            associations: lab.associations.clone(),
            pfds: lab.pfds.clone(),
            taken: [lab.node.sessions(), lab.node.tunnels(), lab.node.addresses()],
        }
    }

    /// Says where they differ.
    pub fn assert_same(&self, after: &Self, sent: &[(SocketAddr, Message)]) {
        if self != after {
            let (before, after) = (format!("{self:#?}"), format!("{after:#?}"));
            let pairs = before.lines().zip(after.lines());
            let different: Vec<_> = pairs.filter(|(before, after)| before != after).take(8).collect();
            panic!(
                "{} and {} lines: {different:#?} {sent:#?}",
                before.lines().count(),
                after.lines().count()
            );
        }
    }

    /// Rules make sense, and no two sessions have one tunnel or one address of a pool.
    pub fn check(lab: &Lab) {
        let (mut tunnels, mut addresses) = (HashMap::new(), HashMap::new());
        for (seid, desired) in lab.desired() {
            assert_eq!(desired.rules.check(), Ok(()), "{seid}");
            for pdi in desired.rules.pdrs.iter().map(|pdr| &pdr.pdi) {
                let tunnel = pdi.f_teid.map(|f_teid| tunnels.insert(f_teid, seid));
                assert!(tunnel.flatten().is_none_or(|other| other == seid), "{pdi:?} of two sessions");
                let pooled = pdi.ue_ipv4.filter(|address| matches!(address.octets(), [10, 70 | 71, ..]));
                let address = pooled.map(|address| addresses.insert((pdi.instance, address), seid));
                assert!(address.flatten().is_none_or(|other| other == seid), "{pdi:?} of two sessions");
            }
        }
    }

    pub fn assert_empty(lab: &Lab) {
        let left = [lab.node.sessions(), lab.node.tunnels(), lab.node.addresses()];
        assert_eq!(left, [0; 3]);
        assert!(lab.in_force.is_empty(), "{:?}", lab.in_force);
        assert!(lab.saved.is_empty() && lab.over.is_empty(), "{:?}", lab.over.keys());
    }
}

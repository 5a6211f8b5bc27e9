//! Session Establishment (TS 29.244 6.3.2).

use crate::config::Config;
use crate::exchange::Asked;
use crate::load::Pressure;
use crate::networks;
use crate::node::Node;
use crate::offline;
use crate::peers::Association;
use crate::refusal::Refusal;
use crate::repeated;
use crate::sessions::{Session, Work};
use crate::support;
use crate::translate::{Sources, Taken, Translated, Translator};
use crate::usage;
use pfcp::{Cause, FSeid, SessionEstablishmentRequest, SessionEstablishmentResponse, ie};
use rules::{Rules, Seid};
use session::{CpFSeid, SessionRecord, UsageRecord};
use std::net::IpAddr;
use std::sync::Arc;

impl Node {
    pub(crate) fn establish(
        &mut self,
        asked: &Asked,
        request: &SessionEstablishmentRequest,
    ) -> Result<(), Refusal> {
        let request = &*repeated::establishment(networks::known_establishment(request, &self.config));
        let owner = self.establishing(asked, request)?;
        if self.peers.spoken_for(&owner, self.now) {
            self.speaks_by_name(&owner);
        }
        // Who has left makes none; what is left of its own is ending.
        if self.peers.get(&owner).is_some_and(Association::is_over) {
            return Err(Refusal::of(Cause::NoEstablishedPfcpAssociation));
        }
        if self.is_leaving(&owner) {
            return Err(Refusal::of(Cause::RequestRejected));
        }
        let cp_f_seid = cp_f_seid(&request.cp_f_seid, &self.config)?;
        support::establishment(request, &self.config)?;
        // The owner counts on one session of that name only: it lost the one before.
        let mut way = self.in_the_way(&owner, cp_f_seid, request);
        if !self.has_place(&mut way) {
            return Err(Refusal::of(Cause::NoResourcesAvailable));
        }
        let seid = self.new_seid();
        let none = Rules::default();
        let Translated { rules, extras, taken } = self.with_room(&mut way, |node| {
            Translator::new(node.sources(), seid, (&none, None)).establishment(request)
        })?;
        let mut usage = UsageRecord { epoch: self.epoch.unwrap_or(0), ..UsageRecord::default() };
        let given = (&taken.given[..], request.user_plane_inactivity_timer);
        usage::apply(&mut usage, (&none, &rules), given, self.clock());
        let era = self.era(&owner);
        let mut record = SessionRecord {
            seid,
            revision: 0,
            owner,
            cp_f_seid,
            era,
            rules: Arc::new(rules),
            usage,
            extras,
            charging: None,
        };
        let charging = self.config.charging.as_ref();
        record.charging =
            charging.map(|charging| offline::opened(&record, request, (charging, self.clock())));
        offline::meet(&mut record, &self.config, (&none, self.wall_ms()));
        let old = self.replaced(&way, &record);
        old.iter().for_each(|old| self.give_way(*old, asked));
        self.is_named(cp_f_seid);
        self.sessions.insert(Session::new(record));
        self.is_named_by_suspect(seid);
        self.order(seid, asked, Work::Establish(taken, old));
        Ok(())
    }

    /// What translations draw on.
    pub(crate) fn sources(&mut self) -> Sources<'_> {
        Sources {
            ours: &self.config.gtpu,
            tunnels: &mut self.tunnels,
            pools: &mut self.pools,
            predefined: &self.config.predefined,
            pfds: &self.pfds,
            config: &self.config,
        }
    }

    pub(crate) fn established(
        &mut self,
        seid: Seid,
        asked: &Asked,
        taken: &Taken,
    ) -> SessionEstablishmentResponse {
        let Pressure { load, overload } = self.pressure(asked.key.from.ip());
        SessionEstablishmentResponse {
            created_pdrs: taken.created_pdrs.clone(),
            created_traffic_endpoints: taken.created_endpoints.clone(),
            load,
            overload,
            ..self.promised(seid)
        }
    }
}

/// Reports go to its address: over an IP version that we have, where it has both, and nowhere that is not allowed.
pub(crate) fn cp_f_seid(value: &FSeid, config: &Config) -> Result<CpFSeid, Refusal> {
    let over_ipv6 = value.ipv6.map(IpAddr::V6).filter(|_| config.ipv4.is_none());
    let address = over_ipv6.or(value.address()).ok_or(Refusal::incorrect(ie::F_SEID))?;
    if !config.allows(address) {
        return Err(Refusal::blaming(Cause::RequestRejected, ie::F_SEID));
    }
    Ok(CpFSeid { seid: value.seid, address })
}

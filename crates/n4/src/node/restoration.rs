//! What a start finds in the database, taken up where the former process left it.

use super::Node;
use machine::Time;
use rules::{Instance, Pdi, Rules};
use session::{Packed, SessionRecord};
use std::net::IpAddr;

impl Node {
    /// Goes on where the former process ended.
    pub(super) fn take_up(&mut self, sessions: &[Packed]) {
        self.find_outdated();
        self.restore_all(sessions);
        self.renew_all();
        self.resume_endings();
    }

    fn restore_all(&mut self, kept: &[Packed]) {
        // The database has found that all can be read.
        for mut record in kept.iter().filter_map(|packed| packed.record().ok()) {
            self.restore_charging(&mut record);
            self.restore_answer(&record);
            match record.usage.is_over {
                true => {
                    self.sessions.pass_over(record.seid);
                    self.over.push_back((Time::ZERO + self.config.answer_lifetime, record.seid));
                }
                false => self.restore(record),
            }
        }
    }

    fn restore(&mut self, record: SessionRecord) {
        self.tunnels.restore(&record, self.recovery_time_stamp);
        for address in record.extras.iter().flat_map(|extras| &extras.addresses) {
            self.pools.claim_again(*address, self.instance_of(&record, *address), record.seid);
        }
        self.reports.reindex(record.seid, &Rules::default(), &record.rules);
        let seid = self.sessions.restore(record);
        self.restore_meters(seid);
        self.wake(seid, Some(Time::ZERO));
        self.sessions.rest(self.wall_ms());
    }

    /// The network in which a session has an address, where there are several.
    pub(crate) fn instance_of(&self, record: &SessionRecord, address: IpAddr) -> Option<Instance> {
        self.config.has_instances().then(|| instance_of(record, address))
    }
}

/// The network in which a session has an address.
fn instance_of(record: &SessionRecord, address: IpAddr) -> Instance {
    let has = |pdi: &&Pdi| match address {
        IpAddr::V4(address) => pdi.ue_ipv4 == Some(address),
        IpAddr::V6(address) => pdi.ue_ipv6.is_some_and(|prefix| prefix.contains(&address)),
    };
    let pdis = record.rules.pdrs.iter().map(|pdr| &pdr.pdi).filter(has);
    let mut instances = pdis.map(|pdi| pdi.instance).filter(|instance| *instance != Instance::DEFAULT);
    instances.next().unwrap_or_default()
}

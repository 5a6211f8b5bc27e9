//! CHOOSE IDs. One holds within one request (TS 29.244 8.2.3). But QoS flows of a PDU session share its tunnel, and control planes in use
//! add flows by the ID that the session's first were created with, and tell the radio of no other endpoint (Open5GS, OpenAirInterface).
//! So where a PDR has a QFI, the ID stands for what it stood for before, as long as that is the same leg.

use super::Translator;
use crate::tunnels::Unavailable;
use crate::values::{self, Wish};
use pfcp::SessionModificationRequest;
use rules::{FTeid, FarId, Instance, Interface, Pdr, Rules};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Where packets come from by a PDR whose endpoint is ours to choose, and its FAR.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    pub(super) source: Interface,
    pub(super) instance: Instance,
    pub(super) address: IpAddr,
    pub(super) far: Option<FarId>,
}

impl Translator<'_> {
    /// A CHOOSE ID that may have been in a request before.
    pub(super) fn recall(&mut self, id: u8, leg: Leg) {
        let known =
            self.extras.chosen.iter().find(|(other, f_teid)| *other == id && self.is_of(*f_teid, leg));
        if let Some((_, f_teid)) = known.copied() {
            self.chosen.entry(id).or_insert(f_teid);
        }
        self.remembered.push(id);
    }

    /// Whether an endpoint is that of this leg. What comes from the access side and goes back there is forwarded indirectly (TS 23.502
    /// 4.9.1.3.3), and not what the user sends: an endpoint that has some of that is not the other's.
    fn is_of(&self, f_teid: FTeid, leg: Leg) -> bool {
        let is_there = |pdr: &&Pdr| {
            let is_same = (pdr.pdi.source_interface, pdr.pdi.instance) == (leg.source, leg.instance);
            is_same && pdr.pdi.f_teid == Some(f_teid)
        };
        let mut there = self.before.pdrs.iter().filter(is_there).peekable();
        let leads_back = |far: FarId| self.destination(far) == Some(Interface::Access);
        let is_same_way = match leg.far.is_some_and(leads_back) {
            true => there.peek().is_some() && there.all(|pdr| leads_back(pdr.far)),
            false => there.any(|pdr| !leads_back(pdr.far)),
        };
        f_teid.address == leg.address && is_same_way
    }

    /// Where a FAR leads, as of this request.
    fn destination(&self, far: FarId) -> Option<Interface> {
        let before = || self.fars.get(far)?.forwarding.map(|to| to.destination_interface);
        self.destinations.get(&far).copied().or_else(before)
    }

    /// Where the request has FARs lead.
    pub(super) fn note_destinations(&mut self, request: &SessionModificationRequest) {
        if self.extras.chosen.is_empty() {
            return;
        }
        let created = request.create_fars.iter();
        let created = created
            .filter_map(|far| Some((far.far_id, far.forwarding_parameters.as_ref()?.destination_interface)));
        let updated = request.update_fars.iter();
        let updated = updated.filter_map(|far| Some((far.far_id, far.parameters()?.destination_interface?)));
        let interface = |to| values::destination(to, true).ok();
        let told = created.chain(updated).filter_map(|(far, to)| Some((FarId(far), interface(to)?)));
        self.destinations.extend(told);
    }

    /// Keeps those whose endpoints are still in use.
    pub(super) fn remember_chosen(&mut self, rules: &Rules) {
        let asked: BTreeSet<u8> = self.remembered.iter().copied().collect();
        let chosen = asked.into_iter().filter_map(|id| Some((id, *self.chosen.get(&id)?)));
        for each in chosen {
            if !self.extras.chosen.contains(&each) {
                self.extras.chosen.push(each);
            }
        }
        let in_use = |f_teid| rules.pdrs.iter().any(|pdr| pdr.pdi.f_teid == Some(f_teid));
        self.extras.chosen.retain(|(_, f_teid)| in_use(*f_teid));
    }

    pub(super) fn choose(&mut self, Wish { id, address, .. }: Wish) -> Result<FTeid, Unavailable> {
        if let Some(f_teid) = id.and_then(|id| self.chosen.get(&id)) {
            return Ok(*f_teid);
        }
        let f_teid = self.tunnels.allocate(self.session, self.user, address)?;
        self.taken.f_teids.push(f_teid);
        self.chosen.extend(id.map(|id| (id, f_teid)));
        Ok(f_teid)
    }
}

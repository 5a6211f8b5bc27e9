//! MAC addresses of users of Ethernet PDU sessions, told by URRs that ask for them (TS 29.244 5.13.5, TS 23.501
//! 5.8.2.12). The data plane says which a session has now; a report tells how that differs from the reports before.

use pfcp::{EthernetTrafficInformation, MacAddressList, UsageReport, UsageReportTrigger as Trigger, VlanTag};
use rules::{Rules, SeenMac, Triggers, Urr, UrrId};
use session::{MacRecord, ToldMacs, UsageRecord};

/// The data plane says which addresses there are.
pub(crate) fn hear_macs(record: &mut UsageRecord, macs: &[SeenMac]) {
    let known = &mut record.macs.get_or_insert_default().known;
    *known = macs.to_vec();
    known.sort_unstable();
    known.dedup();
}

/// URRs that have something to tell become due.
pub(super) fn look(record: &mut UsageRecord, rules: &Rules) {
    let Some(macs) = &record.macs else { return };
    for (usage, urr) in record.urrs.iter_mut().zip(&rules.urrs) {
        if urr.triggers.contains(Triggers::MAC_ADDRESSES) && macs.known != told(macs, urr.id) {
            usage.due |= Trigger::MACAR;
        }
    }
}

fn told(macs: &MacRecord, urr: UrrId) -> &[SeenMac] {
    macs.told.iter().find(|told| told.urr == urr).map_or(&[], |told| &told.macs)
}

/// Tells in the last of a URR's reports what has not been told of its addresses.
pub(super) fn tell(macs: &mut Option<Box<MacRecord>>, urr: &Urr, reports: &mut [UsageReport]) {
    let (Some(macs), Some(report)) = (macs, reports.last_mut()) else { return };
    if !urr.triggers.contains(Triggers::MAC_ADDRESSES) {
        return;
    }
    let before = told(macs, urr.id);
    let detected = without(&macs.known, before);
    let removed = without(before, &macs.known);
    if detected.is_empty() && removed.is_empty() {
        return;
    }
    report.usage_report_trigger.0 |= Trigger::MACAR;
    report.ethernet_traffic_information = Some(EthernetTrafficInformation {
        mac_addresses_detected: lists(detected),
        mac_addresses_removed: lists(removed),
        carried: vec![],
    });
    macs.told.retain(|told| told.urr != urr.id);
    macs.told.push(ToldMacs { urr: urr.id, macs: macs.known.clone() });
}

fn without(all: &[SeenMac], others: &[SeenMac]) -> Vec<SeenMac> {
    all.iter().filter(|seen| !others.contains(seen)).copied().collect()
}

/// One list for each combination of tags (TS 29.244 8.2.103).
fn lists(mut seen: Vec<SeenMac>) -> Vec<MacAddressList> {
    seen.sort_unstable_by_key(|seen| (seen.s_vlan, seen.c_vlan, seen.mac));
    let alike = seen.chunk_by(|one, next| (one.s_vlan, one.c_vlan) == (next.s_vlan, next.c_vlan));
    alike.map(list).collect()
}

/// Of addresses that were seen with the same tags.
fn list(seen: &[SeenMac]) -> MacAddressList {
    let tags = seen.first().map_or((None, None), |first| (first.c_vlan, first.s_vlan));
    let [c_tag, s_tag] = [tags.0, tags.1].map(|vlan| vlan.map(vlan_tag));
    MacAddressList { addresses: seen.iter().map(|seen| seen.mac).collect(), c_tag, s_tag }
}

const fn vlan_tag(id: u16) -> VlanTag {
    VlanTag { priority: None, drop_eligible: None, id: Some(id) }
}

/// URRs that are gone, or made anew, have told nothing.
pub(super) fn forget(record: &mut UsageRecord, stays: impl Fn(UrrId) -> bool) {
    if let Some(macs) = &mut record.macs {
        macs.told.retain(|told| stays(told.urr));
    }
}

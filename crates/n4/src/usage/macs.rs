//! MAC addresses of users of Ethernet PDU sessions, told by URRs that ask for them (TS 29.244 5.13.5, TS 23.501
//! 5.8.2.12). The data plane says which a session has now; a report tells how that differs from the reports before.

use pfcp::{EthernetTrafficInformation, Mac, MacAddressList, UsageReport, UsageReportTrigger as Trigger};
use rules::{Rules, Triggers, Urr, UrrId};
use session::{MacRecord, ToldMacs, UsageRecord};

/// The data plane says which addresses there are.
pub(crate) fn hear_macs(record: &mut UsageRecord, macs: &[Mac]) {
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

fn told(macs: &MacRecord, urr: UrrId) -> &[Mac] {
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

fn without(all: &[Mac], others: &[Mac]) -> Vec<Mac> {
    all.iter().filter(|mac| !others.contains(mac)).copied().collect()
}

fn lists(addresses: Vec<Mac>) -> Vec<MacAddressList> {
    if addresses.is_empty() { vec![] } else { vec![MacAddressList::of(addresses)] }
}

/// URRs that are gone, or made anew, have told nothing.
pub(super) fn forget(record: &mut UsageRecord, stays: impl Fn(UrrId) -> bool) {
    if let Some(macs) = &mut record.macs {
        macs.told.retain(|told| stays(told.urr));
    }
}

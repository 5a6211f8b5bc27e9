//! QERs and BARs.

use crate::values;
use pfcp::{CreateBar, CreateQer, Rates, UpdateBar, UpdateQer, ie};
use rules::{Bar, BarId, BarUpdate, BitRates, Qer, QerId, QerUpdate};

/// The first bit of RQI: reflective QoS (TS 29.244 8.2.88).
const RQI: u8 = 1;

pub(super) fn qer(qer: &CreateQer) -> Qer {
    Qer {
        id: QerId(qer.qer_id),
        uplink_gate: values::gate(qer.gate_status.uplink),
        downlink_gate: values::gate(qer.gate_status.downlink),
        mbr: qer.mbr.map(rates),
        gbr: qer.gbr.map(rates),
        qfi: qer.qfi.and_then(values::qfi),
        reflective: qer.rqi.is_some_and(is_reflective),
    }
}

pub(super) fn update(update: &UpdateQer) -> QerUpdate {
    QerUpdate {
        id: QerId(update.qer_id),
        gates: update.gate_status.map(|gates| (values::gate(gates.uplink), values::gate(gates.downlink))),
        mbr: update.mbr.map(|mbr| Some(rates(mbr))).or(update.removes(ie::MBR).then_some(None)),
        gbr: update.gbr.map(|gbr| Some(rates(gbr))).or(update.removes(ie::GBR).then_some(None)),
        qfi: update.qfi.map(values::qfi).or(update.removes(ie::QFI).then_some(None)),
        reflective: update.rqi.map(is_reflective).or(update.removes(ie::RQI).then_some(false)),
    }
}

const fn rates(rates: Rates) -> BitRates {
    BitRates { uplink_kbps: rates.uplink_kbps, downlink_kbps: rates.downlink_kbps }
}

const fn is_reflective(rqi: u8) -> bool {
    rqi & RQI != 0
}

pub(super) fn bar(bar: &CreateBar) -> Bar {
    Bar {
        id: BarId(bar.bar_id),
        notification_delay_50ms: bar.downlink_data_notification_delay.unwrap_or(0),
        suggested_packets: bar.suggested_buffering_packets_count.map(u16::from),
    }
}

pub(super) fn bar_update(update: &UpdateBar) -> BarUpdate {
    let no_delay = update.removes(ie::DOWNLINK_DATA_NOTIFICATION_DELAY).then_some(0);
    let no_count = update.removes(ie::SUGGESTED_BUFFERING_PACKETS_COUNT).then_some(None);
    let count = update.suggested_buffering_packets_count;
    BarUpdate {
        id: BarId(update.bar_id),
        notification_delay_50ms: update.downlink_data_notification_delay.or(no_delay),
        suggested_packets: count.map(|count| Some(u16::from(count))).or(no_count),
    }
}

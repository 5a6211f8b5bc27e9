//! QERs and BARs.

use crate::refusal::Refusal;
use crate::values;
use pfcp::{CreateBar, CreateQer, Rates, RawIe, UpdateBar, UpdateQer, ie};
use rules::{Bar, BarId, BarUpdate, BitRates, PacketRate, PacketRates, Qer, QerId, QerUpdate};

/// The first bit of RQI: reflective QoS (TS 29.244 8.2.88).
const RQI: u8 = 1;

pub(super) fn qer(qer: &CreateQer) -> Result<Qer, Refusal> {
    Ok(Qer {
        id: QerId(qer.qer_id),
        uplink_gate: values::gate(qer.gate_status.uplink),
        downlink_gate: values::gate(qer.gate_status.downlink),
        mbr: qer.mbr.map(rates),
        packet_rates: packet_rates(&qer.carried)?.unwrap_or_default(),
        correlation: qer.qer_correlation_id.map(u64::from),
        gbr: qer.gbr.map(rates),
        qfi: qer.qfi.and_then(values::qfi),
        reflective: qer.rqi.is_some_and(is_reflective),
    })
}

pub(super) fn update(update: &UpdateQer) -> Result<QerUpdate, Refusal> {
    let correlation = update.qer_correlation_id.map(|number| Some(u64::from(number)));
    Ok(QerUpdate {
        id: QerId(update.qer_id),
        gates: update.gate_status.map(|gates| (values::gate(gates.uplink), values::gate(gates.downlink))),
        mbr: update.mbr.map(|mbr| Some(rates(mbr))).or(update.removes(ie::MBR).then_some(None)),
        packet_rates: packet_rates(&update.carried)?,
        correlation: correlation.or(update.removes(ie::QER_CORRELATION_ID).then_some(None)),
        gbr: update.gbr.map(|gbr| Some(rates(gbr))).or(update.removes(ie::GBR).then_some(None)),
        qfi: update.qfi.map(values::qfi).or(update.removes(ie::QFI).then_some(None)),
        reflective: update.rqi.map(is_reflective).or(update.removes(ie::RQI).then_some(false)),
    })
}

/// Packet Rate (TS 29.244 8.2.64); none where it is empty, `None` where it is not there. Exception reports that may pass
/// besides (APRC) cannot be told from other packets.
fn packet_rates(carried: &[RawIe]) -> Result<Option<PacketRates>, Refusal> {
    const ULPR: u8 = 1;
    const DLPR: u8 = 1 << 1;
    const APRC: u8 = 1 << 2;
    let Some(told) = carried.iter().find(|other| other.ie == ie::PACKET_RATE) else { return Ok(None) };
    let Some((flags, mut rest)) = told.value.split_first() else {
        return Ok(Some(PacketRates::default()));
    };
    if flags & APRC != 0 {
        return Err(Refusal::unsupported(ie::PACKET_RATE));
    }
    let mut next = |flag| match flags & flag {
        0 => Ok(None),
        _ => packet_rate(&mut rest).map(Some).ok_or(Refusal::incorrect(ie::PACKET_RATE)),
    };
    Ok(Some(PacketRates { uplink: next(ULPR)?, downlink: next(DLPR)? }))
}

/// A unit of time and a number of packets; `None` where octets are missing or the unit is unknown.
fn packet_rate(octets: &mut &[u8]) -> Option<PacketRate> {
    let ([unit, high, low], rest) = octets.split_first_chunk()?;
    *octets = rest;
    let minutes = match unit & 0b111 {
        0 => 1,
        1 => 6,
        2 => 60,
        3 => 24 * 60,
        4 => 7 * 24 * 60,
        _ => return None,
    };
    Some(PacketRate { packets: u16::from_be_bytes([*high, *low]), window_s: minutes * 60 })
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
        extended: None,
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
        extended: None,
    }
}

//! CHFRecord: `CHFRecord ::= CHOICE { chargingFunctionRecord [200] ChargingRecord }`.
//!
//! A charging function writes these of what session managements tell it. Here the user plane does, in their place: the
//! consumer named is the control plane that owns the session, the recording function is this node. PFCP tells no PDU
//! session ID; the field, which must be there, is 0.

use super::write::Writer;
use super::{Context, NAI, charging_id, ia5, ip_address, ipv6_prefix, pgw, seconds, subscription};
use crate::record::{Cdr, Conditions, Container, Key, Session};
use crate::user::User;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Numbers of fields of the record that a reader looks for as well.
pub(super) mod field {
    pub(in crate::ber) const RECORD: u32 = 200;
    pub(in crate::ber) const SUBSCRIBER: u32 = 2;
    pub(in crate::ber) const UNIT_USAGE: u32 = 5;
    pub(in crate::ber) const OPENING_TIME: u32 = 6;
    pub(in crate::ber) const DURATION: u32 = 7;
    pub(in crate::ber) const SEQUENCE: u32 = 8;
    pub(in crate::ber) const CAUSE: u32 = 9;
    pub(in crate::ber) const SERIAL: u32 = 11;
    pub(in crate::ber) const PDU_SESSION: u32 = 13;
    pub(in crate::ber) const CHARGING_ID: u32 = 0;
    pub(in crate::ber) const PDU_ADDRESS: u32 = 14;
    pub(in crate::ber) const RATING_GROUP: u32 = 0;
    pub(in crate::ber) const CONTAINERS: u32 = 1;
    pub(in crate::ber) const SERVICE_ID: u32 = 0;
    pub(in crate::ber) const TIME: u32 = 1;
    pub(in crate::ber) const UPLINK: u32 = 5;
    pub(in crate::ber) const DOWNLINK: u32 = 6;
}

/// `RecordType` of a charging function's record.
const RECORD_TYPE: u64 = 200;
/// `NetworkFunctionality`: sMF.
const SMF: u64 = 1;
/// Of `NetworkFunctionName`.
const NAME_MAX: usize = 36;
/// Of `DataNetworkNameIdentifier`.
const DNN_MAX: usize = 63;

pub(super) fn encode(cdr: &Cdr, context: Context<'_>) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.constructed(field::RECORD, |record| fields(record, cdr, context));
    writer.into_octets()
}

fn fields(record: &mut Writer, cdr: &Cdr, context: Context<'_>) {
    let session = &cdr.session;
    record.integer(0, RECORD_TYPE);
    record.octets(1, &ia5(context.node, NAME_MAX));
    subscriber(record, field::SUBSCRIBER, &session.user);
    record.constructed(3, |it| consumer(it, session));
    if !cdr.containers.is_empty() {
        record.constructed(field::UNIT_USAGE, |all| unit_usage(all, &cdr.containers, context));
    }
    record.octets(field::OPENING_TIME, &context.time(cdr.opened_ms));
    record.integer(field::DURATION, seconds(cdr.closed_ms.saturating_sub(cdr.opened_ms)));
    if !cdr.is_only() {
        record.integer(field::SEQUENCE, cdr.sequence.into());
    }
    record.integer(field::CAUSE, cdr.cause.number().into());
    record.integer(field::SERIAL, cdr.serial & 0xFFFF_FFFF);
    record.constructed(field::PDU_SESSION, |it| pdu_session(it, cdr, context));
    // The session's name, the same in all its records.
    record.octets(16, format!("{:016x}", session.seid).as_bytes());
}

/// `SubscriptionID`: the IMSI, or else the NAI, or another SUPI as it is, or else the MSISDN, or another GPSI.
fn subscriber(record: &mut Writer, number: u32, user: &User) {
    const E164: u64 = 0;
    const IMSI: u64 = 1;
    const PRIVATE: u64 = 4;
    let User { imsi, nai, supi, msisdn, gpsi, .. } = user;
    let names = [(IMSI, imsi), (NAI, nai), (PRIVATE, supi), (E164, msisdn), (PRIVATE, gpsi)];
    let mut known = names.into_iter().filter_map(|(kind, name)| Some((kind, name.as_deref()?)));
    let Some((kind, name)) = known.next() else { return };
    record.constructed(number, |it| subscription(it, kind, name));
}

/// `NetworkFunctionInformation`.
fn consumer(it: &mut Writer, session: &Session) {
    it.integer(0, SMF);
    it.octets(1, &ia5(&session.owner, NAME_MAX));
    let number = if session.cp_address.is_ipv4() { 2 } else { 4 };
    it.constructed(number, |it| ip_address(it, session.cp_address));
}

/// A `MultipleUnitUsage` for each rating group.
fn unit_usage(all: &mut Writer, containers: &[Container], context: Context<'_>) {
    let mut groups = BTreeMap::<u32, Vec<&Container>>::new();
    for container in containers {
        groups.entry(container.key.rating_group).or_default().push(container);
    }
    for (rating_group, containers) in groups {
        all.sequence(|group| {
            group.integer(field::RATING_GROUP, rating_group.into());
            group.constructed(field::CONTAINERS, |all| {
                containers.iter().for_each(|it| all.sequence(|one| container(one, it, context)));
            });
            group.octets(2, &ia5(context.node, NAME_MAX));
        });
    }
}

/// `UsedUnitContainer`.
fn container(one: &mut Writer, container: &Container, context: Context<'_>) {
    let Container { key: Key { service_id, .. }, uplink_bytes, downlink_bytes, .. } = *container;
    if let Some(service_id) = service_id {
        one.integer(field::SERVICE_ID, service_id.into());
    }
    if container.duration_ms > 0 {
        one.integer(field::TIME, seconds(container.duration_ms));
    }
    let triggers = smf_triggers(container.conditions);
    one.constructed(2, |all| triggers.iter().for_each(|trigger| all.integer(0, *trigger)));
    one.octets(3, &context.time(container.until_ms));
    one.integer(4, uplink_bytes.saturating_add(downlink_bytes));
    one.integer(field::UPLINK, uplink_bytes);
    one.integer(field::DOWNLINK, downlink_bytes);
    one.integer(9, container.sequence.into());
    one.constructed(11, |it| {
        if let Some(first) = container.first_packet_ms {
            it.octets(2, &context.time(first));
        }
        if let Some(last) = container.last_packet_ms {
            it.octets(3, &context.time(last));
        }
    });
}

/// Numbers of `SMFTrigger`.
fn smf_triggers(conditions: Conditions) -> Vec<u64> {
    const NUMBERS: [(Conditions, u64); 12] = [
        (Conditions::QOS_CHANGE, 100),
        (Conditions::SERVING_NODE_CHANGE, 102),
        (Conditions::TARIFF_SWITCH, 105),
        (Conditions::TIME_LIMIT, 200),
        (Conditions::VOLUME_LIMIT, 201),
        (Conditions::MAX_CHANGES, 203),
        // terminationOfServiceDataFlow: what a rule was ends, and what it is begins; its change is no trigger (TS 32.255 5.2.1).
        (Conditions::SERVICE_STOP, 500),
        (Conditions::RULE_CHANGE, 500),
        // managementIntervention: what the operator configures has no number of its own.
        (Conditions::MANAGEMENT, 501),
        (Conditions::CONFIGURATION_CHANGE, 501),
        (Conditions::SESSION_END, 503),
        (Conditions::ABNORMAL, 506),
    ];
    let mut numbers: Vec<u64> =
        NUMBERS.iter().filter(|(one, _)| conditions.contains(*one)).map(|(_, number)| *number).collect();
    numbers.dedup();
    numbers
}

/// `PDUSessionChargingInformation`.
fn pdu_session(it: &mut Writer, cdr: &Cdr, context: Context<'_>) {
    let user = &cdr.session.user;
    it.integer(field::CHARGING_ID, charging_id(cdr.session.seid));
    if let Some(msisdn) = &user.msisdn {
        // InvolvedParty: iSDN-E164.
        it.constructed(1, |it| it.octets(3, msisdn.as_bytes()));
    }
    if let Some(imei) = &user.imei {
        // SubscriberEquipmentNumber: iMEISV, as in the GSM tables.
        it.constructed(2, |it| {
            it.integer(0, 0);
            it.octets(1, &pgw::equipment(imei));
        });
    }
    it.integer(6, 0);
    if let Some(slice) = user.slice {
        it.constructed(7, |it| {
            it.integer(0, slice.sst.into());
            slice.sd.iter().for_each(|sd| it.octets(1, sd));
        });
    }
    let kind = match (user.ipv4, user.ipv6) {
        (Some(_), Some(_)) => Some(0),
        (Some(_), None) => Some(1),
        (None, Some(_)) => Some(2),
        (None, None) => None,
    };
    kind.into_iter().for_each(|kind| it.integer(8, kind));
    if let Some(dnn) = &user.dnn {
        it.octets(13, &ia5(dnn, DNN_MAX));
    }
    if kind.is_some() {
        it.constructed(field::PDU_ADDRESS, |it| pdu_address(it, user));
    }
    it.octets(17, &context.time(cdr.started_ms));
    if !cdr.cause.is_partial() {
        it.octets(18, &context.time(cdr.closed_ms));
    }
}

/// `PDUAddress`.
fn pdu_address(it: &mut Writer, user: &User) {
    if let Some(ipv4) = user.ipv4 {
        it.constructed(0, |it| ip_address(it, IpAddr::V4(ipv4)));
    }
    if let Some(prefix) = user.ipv6 {
        it.constructed(1, |it| ipv6_prefix(it, prefix));
    }
}

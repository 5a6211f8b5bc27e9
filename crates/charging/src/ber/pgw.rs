//! PGWRecord: `GPRSRecord ::= CHOICE { ... pGWRecord [79] PGWRecord ... }`.
//!
//! A user plane does not know all a PDN gateway knows. `p-GWAddress` is that of the control plane (its CP F-SEID),
//! `servingNodeAddress` are the peers of the user's tunnels (a container has room for one of those at once), and the
//! charging characteristics are "normal".

use super::write::{ENUMERATED, Writer};
use super::{Context, NAI, charging_id, ia5, ip_address, ipv6_prefix, seconds, subscription};
use crate::record::{Cdr, Conditions, Container};
use crate::user::{User, tbcd};

/// Numbers of fields of the record that a reader looks for as well.
pub(super) mod field {
    pub(in crate::ber) const RECORD: u32 = 79;
    pub(in crate::ber) const RECORD_TYPE: u32 = 0;
    pub(in crate::ber) const IMSI: u32 = 3;
    pub(in crate::ber) const CHARGING_ID: u32 = 5;
    pub(in crate::ber) const ADDRESS: u32 = 9;
    pub(in crate::ber) const OPENING_TIME: u32 = 13;
    pub(in crate::ber) const DURATION: u32 = 14;
    pub(in crate::ber) const CAUSE: u32 = 15;
    pub(in crate::ber) const SEQUENCE: u32 = 17;
    pub(in crate::ber) const SERIAL: u32 = 20;
    pub(in crate::ber) const SERVICE_DATA: u32 = 34;
    pub(in crate::ber) const NAI: u32 = 36;
    pub(in crate::ber) const RATING_GROUP: u32 = 1;
    pub(in crate::ber) const TIME_USAGE: u32 = 7;
    pub(in crate::ber) const UPLINK: u32 = 12;
    pub(in crate::ber) const DOWNLINK: u32 = 13;
    pub(in crate::ber) const SERVICE_ID: u32 = 17;
}

/// `RecordType` of a PGWRecord.
const RECORD_TYPE: u64 = 85;
/// `ChargingCharacteristics`: charged as usual (TS 32.298 A).
const NORMAL: [u8; 2] = [0x08, 0x00];
/// `ServingNodeType`: gTPSGW.
const GTP_SGW: u8 = 2;
/// Of `NodeID`.
const NODE_ID_MAX: usize = 20;
/// Of `AccessPointNameNI`.
const APN_MAX: usize = 63;

pub(super) fn encode(cdr: &Cdr, context: Context<'_>) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.constructed(field::RECORD, |record| fields(record, cdr, context));
    writer.into_octets()
}

fn fields(record: &mut Writer, cdr: &Cdr, context: Context<'_>) {
    let (session, user) = (&cdr.session, &cdr.session.user);
    record.integer(field::RECORD_TYPE, RECORD_TYPE);
    if let Some(imsi) = &user.imsi {
        record.octets(field::IMSI, &tbcd(imsi));
    }
    record.constructed(4, |it| ip_address(it, session.cp_address));
    record.integer(field::CHARGING_ID, charging_id(session.seid));
    record.constructed(6, |all| session.serving_nodes.iter().for_each(|node| ip_address(all, *node)));
    if let Some(dnn) = &user.dnn {
        record.octets(7, &ia5(network_identifier(dnn), APN_MAX));
    }
    addresses(record, user);
    record.octets(field::OPENING_TIME, &context.time(cdr.opened_ms));
    record.integer(field::DURATION, seconds(cdr.closed_ms.saturating_sub(cdr.opened_ms)));
    record.integer(field::CAUSE, cdr.cause.number().into());
    if !cdr.is_only() {
        record.integer(field::SEQUENCE, cdr.sequence.into());
    }
    record.octets(18, &ia5(context.node, NODE_ID_MAX));
    record.integer(field::SERIAL, cdr.serial & 0xFFFF_FFFF);
    if let Some(msisdn) = &user.msisdn {
        record.octets(22, &international(msisdn));
    }
    record.octets(23, &NORMAL);
    if let Some(imei) = &user.imei {
        record.octets(29, &equipment(imei));
    }
    if !cdr.containers.is_empty() {
        let each = |all: &mut Writer, it| all.sequence(|one| container(one, it, context));
        record.constructed(field::SERVICE_DATA, |all| cdr.containers.iter().for_each(|it| each(all, it)));
    }
    let types =
        |all: &mut Writer| session.serving_nodes.iter().for_each(|_| all.universal(ENUMERATED, &[GTP_SGW]));
    record.constructed(35, types);
    if let Some(nai) = &user.nai {
        record.constructed(field::NAI, |it| subscription(it, NAI, nai));
    }
    record.octets(38, &context.time(cdr.started_ms));
    if !cdr.cause.is_partial() {
        record.octets(39, &context.time(cdr.closed_ms));
    }
    if let (Some(_), Some(prefix)) = (user.ipv4, user.ipv6) {
        record.constructed(45, |it| it.constructed(0, |it| ipv6_prefix(it, prefix)));
    }
}

/// What of an APN is no operator's (TS 23.003 9.1.2: `mnc<MNC>.mcc<MCC>.gprs` behind it).
fn network_identifier(apn: &str) -> &str {
    let mut labels = apn.rsplitn(4, '.');
    let [gprs, mcc, mnc, rest] = std::array::from_fn(|_| labels.next().unwrap_or_default());
    let is = |label: &str, name: &str| label.get(..3).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
    let is_operators =
        gprs.eq_ignore_ascii_case("gprs") && is(mcc, "mcc") && is(mnc, "mnc") && !rest.is_empty();
    if is_operators { rest } else { apn }
}

/// The type of the connection as on the wire (TS 29.060 7.7.27: IETF, and the family), and the address. With two
/// addresses the IPv6 one goes into the extension.
fn addresses(record: &mut Writer, user: &User) {
    const IETF: u8 = 0xF1;
    let family = match (user.ipv4, user.ipv6) {
        (Some(_), Some(_)) => 0x8D,
        (None, Some(_)) => 0x57,
        (Some(_), None) => 0x21,
        (None, None) => return,
    };
    record.octets(8, &[IETF, family]);
    record.constructed(field::ADDRESS, |it| {
        it.constructed(0, |it| match (user.ipv4, user.ipv6) {
            (Some(ipv4), _) => ip_address(it, ipv4.into()),
            (None, prefix) => prefix.into_iter().for_each(|prefix| ipv6_prefix(it, prefix)),
        });
    });
}

/// `ISDN-AddressString`: an international number of E.164 (TS 29.002 17.7.8).
fn international(msisdn: &str) -> Vec<u8> {
    const INTERNATIONAL_E164: u8 = 0x91;
    std::iter::once(INTERNATIONAL_E164).chain(tbcd(msisdn)).collect()
}

/// `IMEI`: eight octets, filled up.
pub(super) fn equipment(imei: &str) -> [u8; 8] {
    let mut octets = [0xFF; 8];
    octets.iter_mut().zip(tbcd(imei)).for_each(|(octet, digits)| *octet = digits);
    octets
}

/// `ChangeOfServiceCondition`.
fn container(one: &mut Writer, container: &Container, context: Context<'_>) {
    one.integer(field::RATING_GROUP, container.key.rating_group.into());
    one.integer(4, container.sequence.into());
    if let Some(first) = container.first_packet_ms {
        one.octets(5, &context.time(first));
    }
    if let Some(last) = container.last_packet_ms {
        one.octets(6, &context.time(last));
    }
    if container.duration_ms > 0 {
        one.integer(field::TIME_USAGE, seconds(container.duration_ms));
    }
    one.bits(8, &service_condition_change(container.conditions));
    if let Some(node) = container.serving_nodes.first() {
        one.constructed(10, |it| ip_address(it, *node));
    }
    one.integer(field::UPLINK, container.uplink_bytes);
    one.integer(field::DOWNLINK, container.downlink_bytes);
    one.octets(14, &context.time(container.until_ms));
    if let Some(service_id) = container.key.service_id {
        one.integer(field::SERVICE_ID, service_id.into());
    }
}

/// Bits of `ServiceConditionChange`.
fn service_condition_change(conditions: Conditions) -> Vec<u8> {
    const BITS: [(Conditions, u8); 12] = [
        (Conditions::QOS_CHANGE, 0),
        // sGSNChange, which stands for a change of any serving node.
        (Conditions::SERVING_NODE_CHANGE, 1),
        (Conditions::TARIFF_SWITCH, 3),
        // pDPContextRelease.
        (Conditions::SESSION_END, 4),
        (Conditions::ABNORMAL, 4),
        // configurationChange: what a control plane changes of a rule has no bit of its own, beside its QoS.
        (Conditions::CONFIGURATION_CHANGE, 8),
        (Conditions::RULE_CHANGE, 8),
        (Conditions::SERVICE_STOP, 9),
        // recordClosure.
        (Conditions::MAX_CHANGES, 24),
        (Conditions::MANAGEMENT, 24),
        (Conditions::TIME_LIMIT, 25),
        (Conditions::VOLUME_LIMIT, 26),
    ];
    BITS.iter().filter(|(one, _)| conditions.contains(*one)).map(|(_, bit)| *bit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_apn_the_network_s_own_part_is_told() {
        for (apn, told) in [
            ("internet.mnc001.mcc001.gprs", "internet"),
            ("ims.example.MNC01.MCC001.GPRS", "ims.example"),
            ("a.mnc001.gprs", "a.mnc001.gprs"),
            (".mnc001.mcc001.gprs", ".mnc001.mcc001.gprs"),
            ("internet", "internet"),
        ] {
            assert_eq!(network_identifier(apn), told);
        }
    }
}

//! What stands in charging data records, when they are closed, and what splits what was used in them.

use crate::charging::{charging, lab_of, volumes};
use crate::common::billing::*;
use crate::common::{Lab, config, smf};
use ::charging::{Cause as Closed, Conditions, Policy};
use n4::{Config, Predefined, PredefinedRule};
use pfcp::*;
use rules::{BitRates, Seid};

pub(crate) const HOUR_S: u64 = 3_600;

#[test]
fn records_tell_whose_they_are() {
    let imsi = vec![1, 8, 0x00, 0x01, 0x01, 0x32, 0x54, 0x76, 0x98, 0xF0];
    let supi = [&[16, 20][..], b"imsi-001010234567890"].concat();
    for user_id in [imsi, supi] {
        let mut lab = Lab::associated_with(charging(Policy::default()));
        let mut request = metered(77, vec![]);
        request.user_id = Some(user_id);
        request.apn_dnn = Some(b"\x03ims".to_vec());
        request.s_nssai = Some(vec![1, 0, 0, 9]);
        let session = lab.establish(request);
        lab.delete(session);
        let user = &lab.cdrs[0].session.user;
        assert_eq!((user.imsi.as_deref(), user.dnn.as_deref()), (Some("001010234567890"), Some("ims")));
        assert_eq!(user.slice.unwrap().sd, Some([0, 0, 9]));
        assert!(user.ipv4.is_some());
    }
}

#[test]
fn records_tell_all_of_a_delegated_prefix() {
    for (length, told) in [(Some(56), "2001:db8:7:100::/56"), (None, "2001:db8:7:105::/64")] {
        let mut lab = Lab::associated_with(charging(Policy::default()));
        let mut request = metered(77, vec![]);
        request.create_pdrs[1].pdi.ue_ip_addresses = vec![UeIpAddress {
            ipv6: Some("2001:db8:7:105::1".parse().unwrap()),
            ipv6_prefix_length: length,
            is_destination: true,
            ..UeIpAddress::default()
        }];
        let session = lab.establish(request);
        lab.delete(session);
        let (address, length) = lab.cdrs[0].session.user.ipv6.unwrap();
        assert_eq!(format!("{address}/{length}"), told);
    }
}

/// As that of a router to which all leads.
#[test]
fn a_network_behind_the_user_is_not_his_address() {
    for network in ["::/0", "2001:db8::/32"] {
        let mut lab = Lab::associated_with(charging(Policy::default()));
        let mut request = metered(77, vec![]);
        let pdi = &mut request.create_pdrs[1].pdi;
        let ipv6 = Some("2001:db8:7:105::1".parse().unwrap());
        pdi.ue_ip_addresses = vec![UeIpAddress { ipv6, is_destination: true, ..UeIpAddress::default() }];
        pdi.carried = vec![RawIe { ie: ie::FRAMED_IPV6_ROUTE, value: network.as_bytes().to_vec() }];
        let session = lab.establish(request);
        lab.delete(session);
        let (address, length) = lab.cdrs[0].session.user.ipv6.unwrap();
        assert_eq!(format!("{address}/{length}"), "2001:db8:7:105::/64", "{network}");
    }
}

#[test]
fn records_are_closed_on_time_with_the_counts_of_then() {
    let (mut lab, session) = lab_of(Policy::default(), vec![]);
    lab.traffic(session, (7, 0), true);
    seconds(&mut lab, HOUR_S - 1);
    assert!(lab.cdrs.is_empty());
    seconds(&mut lab, 1);
    assert_eq!((lab.cdrs[0].cause, volumes(&lab.cdrs[0])), (Closed::TimeLimit, vec![(1, 7, 0)]));
    seconds(&mut lab, 3 * HOUR_S);
    assert_eq!(lab.cdrs.len(), 1, "nothing was used");
    lab.traffic(session, (8, 0), true);
    lab.delete(session);
    assert_eq!((lab.cdrs[1].sequence, volumes(&lab.cdrs[1])), (2, vec![(1, 8, 0)]));
    assert_eq!(lab.cdrs[1].opened_ms, lab.cdrs[0].closed_ms);
}

#[test]
fn tariffs_split_what_was_used() {
    // The lab's day begins at some second of it: the next full minute of the next hour is a tariff time.
    let minute = |lab: &Lab| (now_s(lab) % 86_400 / 60 + 30) % 1_440;
    let tariff_minutes = vec![minute(&Lab::new(config()))];
    let (mut lab, session) = lab_of(Policy { tariff_minutes, ..Policy::default() }, vec![]);
    lab.traffic(session, (1, 0), true);
    seconds(&mut lab, 1_801);
    lab.traffic(session, (2, 0), true);
    lab.delete(session);
    assert_eq!(volumes(&lab.cdrs[0]), [(1, 1, 0), (1, 2, 0)]);
    assert_eq!(lab.cdrs[0].containers[0].conditions, Conditions::TARIFF_SWITCH);
}

#[test]
fn records_are_closed_when_they_are_full() {
    let (mut lab, session) = lab_of(Policy { volume_limit_bytes: 8_000, ..Policy::default() }, vec![]);
    (0..9).for_each(|_| lab.traffic(session, (600, 400), false));
    assert_eq!((lab.cdrs[0].cause, volumes(&lab.cdrs[0])), (Closed::VolumeLimit, vec![(1, 4_800, 3_200)]));
    lab.delete(session);
    assert_eq!(volumes(&lab.cdrs[1]), [(1, 600, 400)]);
}

/// What one meter was told to be full by, others have used besides, of which nothing was told so far.
#[test]
fn a_full_record_has_what_all_meters_have_counted() {
    let mut patient = urr(10, 1 << 1);
    patient.volume_threshold = total(1_000_000);
    let policy = Policy { volume_limit_bytes: 8_000, ..Policy::default() };
    let (mut lab, session) = lab_of(policy, vec![patient, urr(11, 0)]);
    for _ in 0..8 {
        seconds(&mut lab, 1);
        lab.traffic(session, (600, 400), false);
    }
    assert_eq!((lab.cdrs[0].cause, volumes(&lab.cdrs[0])), (Closed::VolumeLimit, vec![(10, 8_400, 5_600)]));
    lab.traffic(session, (60, 40), true);
    lab.delete(session);
    assert_eq!(volumes(&lab.cdrs[1]), [(10, 1_320, 880)]);
    for cdr in &lab.cdrs {
        let moments = |it: &::charging::Container| it.first_packet_ms.zip(it.last_packet_ms);
        assert!(cdr.containers.iter().filter_map(moments).all(|(first, last)| first <= last), "{cdr:?}");
    }
}

/// The user's tunnel leads to a node, or the user sleeps.
fn lead(lab: &mut Lab, session: Seid, to: Option<[u8; 4]>) {
    let mut request = smf::path_switch(9);
    let update = &mut request.update_fars[0];
    match to {
        Some(to) => {
            let parameters = update.update_forwarding_parameters.as_mut().unwrap();
            let (teid, address) = (9, to.into());
            parameters.outer_header_creation = Some(OuterHeaderCreation::GtpuIpv4 { teid, address });
        }
        None => {
            let apply_action = Some(ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP));
            *update = UpdateFar { apply_action, ..UpdateFar::new(2) };
        }
    }
    assert_eq!(lab.modify(session, request).cause, Cause::RequestAccepted);
}

#[test]
fn a_handover_splits_what_was_used_before_and_after_it() {
    let (mut lab, session) = lab_of(Policy::default(), vec![]);
    let nodes = [[10, 30, 0, 98], [10, 30, 0, 99], [10, 30, 0, 98]];
    for (bytes, node) in (1..).zip(nodes) {
        lead(&mut lab, session, Some(node));
        lab.traffic(session, (bytes, 0), true);
    }
    // Asleep, and awake again elsewhere.
    lead(&mut lab, session, None);
    lead(&mut lab, session, Some([10, 30, 0, 97]));
    lead(&mut lab, session, None);
    lab.delete(session);
    let cdr = &lab.cdrs[0];
    assert_eq!(volumes(cdr), [(1, 1, 0), (1, 2, 0), (1, 3, 0)]);
    let told = cdr.containers.iter().map(|it| (it.conditions, it.serving_nodes.clone()));
    let moved = nodes.map(|node| (Conditions::SERVING_NODE_CHANGE, vec![node.into()]));
    assert_eq!(told.collect::<Vec<_>>(), moved);
    let all = [[10, 30, 0, 98], [10, 30, 0, 99], [10, 30, 0, 97]].map(std::net::IpAddr::from);
    assert_eq!(cdr.session.serving_nodes, all);
}

/// A rule that is switched on brings a rate; a PDR goes by another QER; and what changes no rate splits nothing.
#[test]
fn what_changes_the_qos_splits_what_was_used_before_and_after_it() {
    let rates = BitRates { uplink_kbps: 100, downlink_kbps: 100 };
    let slow = PredefinedRule { mbr: Some(rates), ..PredefinedRule::new("slow".to_owned()) };
    let plain = PredefinedRule::new("plain".to_owned());
    let predefined = Predefined::new(vec![slow, plain], &[]).unwrap();
    let config = Config { predefined, ..charging(Policy::default()) };
    let mut lab = Lab::associated_with(config);
    let mut request = smf::establishment(78);
    request.create_qers.push(CreateQer { qer_id: 9, ..smf::qer(9) });
    let session = lab.establish(request);
    let activate =
        |name: &[u8]| UpdatePdr { activate_predefined_rules: vec![name.to_vec()], ..UpdatePdr::new(2) };
    let other_qer = UpdatePdr { qer_ids: vec![9], ..UpdatePdr::new(1) };
    for (packets, update) in [(1, activate(b"plain")), (2, activate(b"slow")), (4, other_qer)] {
        lab.traffic(session, (packets, 0), true);
        let request = SessionModificationRequest { update_pdrs: vec![update], ..Default::default() };
        assert_eq!(lab.modify(session, request).cause, Cause::RequestAccepted);
    }
    lab.traffic(session, (8, 0), true);
    lab.delete(session);
    assert_eq!(volumes(&lab.cdrs[0]), [(1, 3, 0), (1, 4, 0), (1, 8, 0)]);
    let conditions: Vec<Conditions> = lab.cdrs[0].containers.iter().map(|it| it.conditions).collect();
    assert_eq!(conditions, [Conditions::QOS_CHANGE, Conditions::QOS_CHANGE, Conditions::SESSION_END]);
}

#[test]
fn a_urr_that_is_removed_is_charged_to_its_end() {
    let (mut lab, session) = lab_of(Policy::default(), vec![urr(10, 0)]);
    lab.traffic(session, (3, 0), true);
    let update = |pdr_id| UpdatePdr {
        pdr_id,
        carried: vec![RawIe { ie: ie::URR_ID, value: vec![] }],
        ..UpdatePdr::default()
    };
    let request = SessionModificationRequest {
        remove_urrs: vec![RemoveUrr { urr_id: 10, carried: vec![] }],
        update_pdrs: vec![update(1), update(2)],
        ..SessionModificationRequest::default()
    };
    assert_eq!(lab.modify(session, request).cause, Cause::RequestAccepted);
    lab.traffic(session, (4, 0), true);
    lab.delete(session);
    assert_eq!(volumes(&lab.cdrs[0]), [(10, 3, 0), (1, 4, 0)]);
    assert_eq!(lab.cdrs[0].containers[0].conditions, Conditions::SERVICE_STOP);
}

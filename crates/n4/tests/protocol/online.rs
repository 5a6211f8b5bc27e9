//! Online charging by a control plane: quotas of rating groups, which it asks for, hands out and takes back.

use crate::common::Lab;
use crate::common::billing::*;
use pfcp::UsageReportTrigger as Trigger;
use pfcp::*;
use rules::Seid;
use std::net::{IpAddr, Ipv6Addr};

const QUHTI: u32 = 1 << 3;
const VOLQU: u32 = 1 << 8;
const TIMQU: u32 = 1 << 9;
const QUVTI: u32 = 1 << 15;

fn update(lab: &mut Lab, session: Seid, update: UpdateUrr) {
    let request = SessionModificationRequest { update_urrs: vec![update], ..Default::default() };
    assert_eq!(lab.modify(session, request).cause, Cause::RequestAccepted);
}

fn triggers(lab: &mut Lab, session: Seid) -> Vec<Trigger> {
    reported(lab, session).iter().map(|report| report.usage_report_trigger).collect()
}

/// TS 29.244 5.2.2.2: the times belong to the quota, and begin with it.
#[test]
fn times_of_a_quota_begin_anew_with_the_next() {
    let mut rule = urr(1, VOLQU | QUVTI | QUHTI);
    (rule.quota_validity_time, rule.quota_holding_time) = (Some(100), Some(30));
    rule.volume_quota = total(1_000);
    let (mut lab, session) = lab(vec![rule]);
    let grant = || UpdateUrr { urr_id: 1, volume_quota: total(1_000), ..UpdateUrr::default() };
    seconds(&mut lab, 29);
    update(&mut lab, session, grant());
    seconds(&mut lab, 29);
    assert_eq!(triggers(&mut lab, session), [], "held since the second quota");
    seconds(&mut lab, 1);
    assert_eq!(triggers(&mut lab, session), [Trigger(Trigger::QUHTI)]);
    update(&mut lab, session, grant());
    for _ in 0..4 {
        seconds(&mut lab, 20);
        lab.traffic(session, (1, 0), false);
    }
    seconds(&mut lab, 19);
    assert_eq!(triggers(&mut lab, session), []);
    seconds(&mut lab, 1);
    assert_eq!(triggers(&mut lab, session), [Trigger(Trigger::QUVTI)]);
}

/// As [`times_of_a_quota_begin_anew_with_the_next`], where no quota has ended.
#[test]
fn a_validity_that_is_given_before_the_last_one_ends_begins_anew() {
    let mut rule = urr(1, VOLQU | QUVTI);
    (rule.quota_validity_time, rule.volume_quota) = (Some(100), total(1_000));
    let (mut lab, session) = lab(vec![rule]);
    seconds(&mut lab, 90);
    let times = UpdateUrr { urr_id: 1, quota_validity_time: Some(50), ..UpdateUrr::default() };
    update(&mut lab, session, times);
    seconds(&mut lab, 49);
    assert_eq!(triggers(&mut lab, session), []);
    seconds(&mut lab, 1);
    assert_eq!(triggers(&mut lab, session), [Trigger(Trigger::QUVTI)]);
}

/// What the data plane lets pass.
fn quota(lab: &Lab, session: Seid) -> Option<u64> {
    lab.in_force[&session].rules.urrs[0].volume_quota.and_then(|quota| quota.total)
}

/// A session whose quota's validity has just ended, which was told.
fn no_longer_valid(change: impl Fn(&mut CreateUrr)) -> (Lab, Seid) {
    let mut rule = urr(1, VOLQU | QUVTI);
    (rule.quota_validity_time, rule.volume_quota) = (Some(100), total(1_000));
    change(&mut rule);
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (300, 0), false);
    seconds(&mut lab, 100);
    assert_eq!(triggers(&mut lab, session), [Trigger(Trigger::QUVTI)]);
    (lab, session)
}

/// TS 29.244 5.2.2.2.1: packets are no longer forwarded once a quota's validity is over, until there is another one.
#[test]
fn a_quota_that_is_no_longer_valid_lets_nothing_pass_until_the_next() {
    let (mut lab, session) = no_longer_valid(|_| {});
    assert_eq!(quota(&lab, session), Some(0));
    lab.traffic(session, (50, 0), false);
    let times = UpdateUrr { urr_id: 1, quota_validity_time: Some(50), ..UpdateUrr::default() };
    update(&mut lab, session, times);
    seconds(&mut lab, 100);
    assert_eq!(quota(&lab, session), Some(0), "a time is no quota");
    assert_eq!(triggers(&mut lab, session), [], "told once");
    let grant = UpdateUrr { urr_id: 1, volume_quota: total(700), ..UpdateUrr::default() };
    update(&mut lab, session, grant);
    assert_eq!(quota(&lab, session), Some(700));
    lab.traffic(session, (40, 0), false);
    seconds(&mut lab, 50);
    let report = reported(&mut lab, session).remove(0);
    assert_eq!((report.usage_report_trigger, octets(&report)), (Trigger(Trigger::QUVTI), (40, 0)));
    assert_eq!(quota(&lab, session), Some(0));
}

/// Whichever is given: of a quota of time and volume, each alone.
#[test]
fn any_quota_ends_that_the_last_is_no_longer_valid() {
    let (volume_quota, time_quota, event_quota) = (total(900), Some(500), Some(5));
    for grant in [
        UpdateUrr { urr_id: 1, volume_quota, ..UpdateUrr::default() },
        UpdateUrr { urr_id: 1, time_quota, ..UpdateUrr::default() },
        UpdateUrr { urr_id: 1, event_quota, ..UpdateUrr::default() },
    ] {
        let (mut lab, session) = no_longer_valid(|rule| {
            rule.measurement_method |= flags::METHOD_EVENT;
            rule.time_quota = Some(400);
        });
        update(&mut lab, session, grant.clone());
        assert_ne!(quota(&lab, session), Some(0), "{grant:?}");
    }
}

/// Nor does one of volume bring back time that is used up.
#[test]
fn a_quota_that_is_no_longer_valid_and_used_up_needs_one_of_its_kind() {
    let mut rule = urr(1, VOLQU | TIMQU | QUVTI);
    rule.measurement_information = Some(flags::MEASUREMENT_ISTM);
    (rule.quota_validity_time, rule.volume_quota) = (Some(100), total(1_000));
    rule.time_quota = Some(30);
    let (mut lab, session) = lab(vec![rule]);
    seconds(&mut lab, 30);
    assert_eq!(triggers(&mut lab, session), [Trigger(Trigger::TIMQU)]);
    seconds(&mut lab, 70);
    assert_eq!(triggers(&mut lab, session), [Trigger(Trigger::QUVTI)]);
    update(&mut lab, session, UpdateUrr { urr_id: 1, volume_quota: total(700), ..UpdateUrr::default() });
    assert_eq!(quota(&lab, session), Some(0));
    update(&mut lab, session, UpdateUrr { urr_id: 1, time_quota: Some(30), ..UpdateUrr::default() });
    assert_eq!(quota(&lab, session), Some(700));
}

/// What passes by a FAR once the validity is over takes nothing of the next quota.
#[test]
fn a_quota_after_one_that_is_no_longer_valid_counts_from_where_it_is_put_in_force() {
    let (mut lab, session) = no_longer_valid(|rule| rule.quota_far_id = Some(1));
    assert_eq!(lab.in_force[&session].rules.urrs[0].quota_far.map(|far| far.0), Some(1));
    lab.traffic(session, (600, 0), false);
    update(&mut lab, session, UpdateUrr { urr_id: 1, volume_quota: total(700), ..UpdateUrr::default() });
    assert_eq!(left(&lab, session), 700);
}

/// A monitoring time's quota is of the same grant, and no more valid than that.
#[test]
fn a_monitoring_time_does_not_prolong_the_validity() {
    let (mut lab, session) = no_longer_valid(|rule| {
        rule.monitoring_time = Some((crate::common::SINCE_1900_MS / 1_000) as u32 + 200);
        rule.subsequent_volume_quota = total(500);
    });
    seconds(&mut lab, 101);
    assert_eq!(quota(&lab, session), Some(0));
}

/// Where none is left there is none to be valid.
#[test]
fn who_has_no_quota_any_more_is_not_held_up_by_its_validity() {
    let (mut lab, session) = no_longer_valid(|_| {});
    let carried = vec![RawIe { ie: ie::VOLUME_QUOTA, value: vec![] }];
    update(&mut lab, session, UpdateUrr { urr_id: 1, carried, ..UpdateUrr::default() });
    assert_eq!(quota(&lab, session), None);
    seconds(&mut lab, 200);
    assert_eq!((quota(&lab, session), triggers(&mut lab, session)), (None, vec![]));
}

/// Another process knows it from the database.
#[test]
fn a_quota_is_no_more_valid_after_a_restart() {
    let (mut lab, session) = no_longer_valid(|_| {});
    lab.restart();
    seconds(&mut lab, 5);
    assert_eq!(quota(&lab, session), Some(0));
    update(&mut lab, session, UpdateUrr { urr_id: 1, volume_quota: total(700), ..UpdateUrr::default() });
    assert_eq!(quota(&lab, session), Some(700));
}

/// A quota that spans a tariff time: what was used on each side is told apart, and the second tariff has a quota of its
/// own that only what comes after it uses up.
#[test]
fn a_tariff_change_has_a_quota_on_each_side() {
    let mut rule = urr(1, VOLQU);
    rule.volume_quota = total(10_000);
    rule.monitoring_time = Some((crate::common::SINCE_1900_MS / 1_000) as u32 + 60);
    rule.subsequent_volume_quota = total(500);
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (700, 0), false);
    seconds(&mut lab, 61);
    assert_eq!(triggers(&mut lab, session), [], "no quota is used up");
    lab.traffic(session, (400, 0), false);
    assert_eq!(triggers(&mut lab, session), []);
    lab.traffic(session, (0, 100), false);
    let reports = reported(&mut lab, session);
    let told: Vec<_> = reports.iter().map(|it| (it.usage_information, octets(it))).collect();
    assert_eq!(
        told,
        [(Some(flags::USAGE_BEF), (700, 0)), (Some(flags::USAGE_AFT), (400, 100))],
        "{reports:?}"
    );
    assert!(reports.iter().all(|report| report.usage_report_trigger.contains(Trigger::VOLQU)));
}

/// What a control plane hands back: the last report tells what was used of a quota that is not used up.
#[test]
fn the_rest_of_a_quota_is_told_at_the_end() {
    let mut rule = urr(1, VOLQU);
    rule.volume_quota = total(10_000);
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (700, 0), true);
    let last = lab.delete(session).usage_reports.remove(0);
    assert_eq!((octets(&last), last.usage_report_trigger), ((700, 0), Trigger(Trigger::TERMR)));
}

/// A session with a quota, and a FAR for the time after it that sends users there.
fn redirecting(to: RedirectInformation) -> SessionEstablishmentRequest {
    let mut request = metered(77, vec![CreateUrr { quota_far_id: Some(9), ..urr(1, VOLQU) }]);
    request.create_urrs[0].volume_quota = total(1_000);
    let parameters = ForwardingParameters {
        redirect_information: Some(to),
        ..crate::common::smf::forwarding(DestinationInterface::Access)
    };
    request.create_fars.push(crate::common::smf::far(9, ApplyAction::FORW, Some(parameters)));
    request
}

#[test]
fn where_nobody_can_be_sent_is_refused() {
    let mut lab = Lab::associated();
    for (to, cause) in [
        (RedirectInformation::Url("portal.example".to_owned()), Cause::MandatoryIeIncorrect),
        (RedirectInformation::Url("http://a\r\nX: y".to_owned()), Cause::MandatoryIeIncorrect),
        (RedirectInformation::Address(IpAddr::from([224, 0, 0, 1])), Cause::MandatoryIeIncorrect),
        (
            RedirectInformation::Addresses([192, 0, 2, 1].into(), Ipv6Addr::LOCALHOST),
            Cause::MandatoryIeIncorrect,
        ),
        // An address of the other version, a SIP URI, an address with a port.
        (RedirectInformation::Other([&[1, 0, 9][..], b"192.0.2.1"].concat()), Cause::MandatoryIeIncorrect),
        (RedirectInformation::Other([&[3, 0, 7][..], b"sip:a@b"].concat()), Cause::ServiceNotSupported),
        (
            RedirectInformation::Other([&[6, 0, 9][..], b"192.0.2.1", &[0, 80]].concat()),
            Cause::ServiceNotSupported,
        ),
    ] {
        match lab.ask(crate::common::SMF, &Message::session(0, 5, redirecting(to))) {
            Body::SessionEstablishmentResponse(response) => {
                assert_eq!((response.cause, response.offending_ie), (cause, Some(ie::REDIRECT_INFORMATION)));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// TS 29.244 8.2.20: to a URL or to addresses, the usual FAR for the time after a quota; nothing else is taken for it.
#[test]
fn a_quota_may_end_at_a_portal() {
    let mut lab = Lab::associated();
    let url = "http://portal.example/?more=1";
    let request = redirecting(RedirectInformation::Url(url.to_owned()));
    let (session, _) = crate::common::personas::established(&mut lab, request);
    let portal = |lab: &Lab| crate::common::personas::rules(lab, session).fars[2].redirect.clone();
    assert_eq!(portal(&lab).unwrap().to_string(), url);
    let change = |redirect_information, carried| SessionModificationRequest {
        update_fars: vec![UpdateFar {
            far_id: 9,
            update_forwarding_parameters: Some(UpdateForwardingParameters {
                redirect_information,
                carried,
                ..Default::default()
            }),
            ..Default::default()
        }],
        ..Default::default()
    };
    let other = RedirectInformation::Url("https://other.example".to_owned());
    assert_eq!(lab.modify(session, change(Some(other), vec![])).cause, Cause::RequestAccepted);
    assert_eq!(portal(&lab).unwrap().to_string(), "https://other.example");
    // To addresses: of one IP version or both, whichever stands first.
    let addresses = [
        (RedirectInformation::Address(IpAddr::from([192, 0, 2, 80])), "192.0.2.80"),
        (RedirectInformation::Address("2001:db8::80".parse().unwrap()), "2001:db8::80"),
        (
            RedirectInformation::Other([&[4, 0, 12][..], b"2001:db8::80", &[0, 10], b"192.0.2.80"].concat()),
            "192.0.2.80,2001:db8::80",
        ),
    ];
    for (to, told) in addresses {
        assert_eq!(lab.modify(session, change(Some(to), vec![])).cause, Cause::RequestAccepted);
        assert_eq!(portal(&lab).unwrap().to_string(), told);
    }
    // An update of something else leaves it; an empty one takes it away (TS 29.244 5.6.3).
    assert_eq!(lab.modify(session, change(None, vec![])).cause, Cause::RequestAccepted);
    assert!(portal(&lab).is_some());
    let nothing = RawIe { ie: ie::REDIRECT_INFORMATION, value: vec![] };
    assert_eq!(lab.modify(session, change(None, vec![nothing])).cause, Cause::RequestAccepted);
    assert_eq!(portal(&lab), None);
}

//! URRs that measure events (TS 29.244 8.2.40): each use of the service is one, told once and with its time.

use crate::common::billing::*;
use crate::common::{Lab, SMF, config, smf};
use dplink::{Notice, UsageCause, UsageCounts};
use n4::Input;
use pfcp::UsageReportTrigger as Trigger;
use pfcp::*;
use proptest::collection::vec;
use proptest::prelude::*;
use rules::{Seid, UrrId};

const START: u32 = 1 << 4;
const STOPT: u32 = 1 << 5;
const LIUSA: u32 = 1 << 7;
const VOLTH: u32 = 1 << 1;
pub const EVETH: u32 = ReportingTriggers::EVETH;
pub const EVEQU: u32 = ReportingTriggers::EVEQU;
/// A use is over that had no packet for so long, unless the rule says otherwise.
pub const STOPS_S: u64 = 60;
/// Times that wait to be told.
const MOST: usize = 64;

pub fn events(triggers: u32) -> CreateUrr {
    CreateUrr { measurement_method: flags::METHOD_EVENT, ..urr(1, triggers) }
}

/// A session, and a control plane that hears what it is told each second, and confirms it or not.
pub struct Stage {
    pub lab: Lab,
    pub session: Seid,
    bill: Bill,
    confirms: bool,
}

impl Stage {
    pub fn new(urrs: Vec<CreateUrr>) -> Self {
        let (lab, session) = lab(urrs);
        Self { lab, session, bill: Bill::default(), confirms: true }
    }

    pub fn seconds(&mut self, count: u64) {
        for _ in 0..count {
            seconds(&mut self.lab, 1);
            self.lab.bill(&mut self.bill, self.session, self.confirms);
        }
    }

    pub fn packet(&mut self) {
        self.lab.traffic(self.session, (10, 0), false);
        self.lab.bill(&mut self.bill, self.session, self.confirms);
    }

    /// A use that is over at the end: when it began.
    pub fn uses(&mut self) -> u32 {
        let at = now_s(&self.lab);
        self.packet();
        self.seconds(STOPS_S + 5);
        at
    }

    pub fn many(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.uses()).collect()
    }

    /// What was told since it was looked at last.
    pub fn reports(&mut self) -> Vec<UsageReport> {
        self.lab.bill(&mut self.bill, self.session, self.confirms);
        std::mem::take(&mut self.bill.order)
    }

    /// Triggers and times of these.
    pub fn told(&mut self) -> Vec<(u32, Vec<u32>)> {
        self.reports().iter().map(of).collect()
    }

    /// What the data plane lets pass of URR 1.
    pub fn passes(&self) -> Option<u64> {
        self.lab.in_force[&self.session].rules.urrs[0].volume_quota.and_then(|quota| quota.total)
    }

    pub fn modify(&mut self, request: SessionModificationRequest) -> SessionModificationResponse {
        let answer = self.lab.modify(self.session, request);
        assert_eq!(answer.cause, Cause::RequestAccepted, "{:?}", self.lab.notes);
        answer
    }

    pub fn update(&mut self, update: UpdateUrr) {
        let update_urrs = vec![UpdateUrr { urr_id: 1, ..update }];
        self.modify(SessionModificationRequest { update_urrs, ..Default::default() });
    }

    /// What the answer to its deletion tells of URR 1.
    pub fn last(&mut self) -> (u32, Vec<u32>) {
        of(&self.lab.delete(self.session).usage_reports[0])
    }
}

pub fn of(report: &UsageReport) -> (u32, Vec<u32>) {
    (report.usage_report_trigger.0, report.event_time_stamps.clone())
}

/// URR 1, of which these IEs are removed (TS 29.244 5.6.3: without a value).
pub fn without(ies: &[u16]) -> UpdateUrr {
    let carried = ies.iter().map(|ie| RawIe { ie: *ie, value: vec![] }).collect();
    UpdateUrr { carried, ..UpdateUrr::default() }
}

fn query(reference: u32) -> SessionModificationRequest {
    SessionModificationRequest {
        query_urrs: vec![QueryUrr { urr_id: 1, carried: vec![] }],
        query_urr_reference: Some(reference),
        ..SessionModificationRequest::default()
    }
}

fn additional(carried: &[RawIe]) -> Option<&[u8]> {
    let is_it = |other: &&RawIe| other.ie == ie::ADDITIONAL_USAGE_REPORTS_INFORMATION;
    carried.iter().find(is_it).map(|it| &it.value[..])
}

#[test]
fn a_threshold_tells_so_many_uses_again_and_again() {
    let mut rule = events(EVETH);
    rule.event_threshold = Some(3);
    let mut stage = Stage::new(vec![rule]);
    for _ in 0..2 {
        let mut expected = stage.many(2);
        assert_eq!(stage.told(), []);
        expected.push(now_s(&stage.lab));
        // One use, however many packets it has, as long as no gap between them ends it.
        for _ in 0..4 {
            stage.packet();
            stage.seconds(STOPS_S - 10);
        }
        let [report] = &stage.reports()[..] else { panic!("one report") };
        assert_eq!(of(report), (Trigger::EVETH, expected));
        assert_eq!((report.volume_measurement, report.duration_measurement), (None, None));
        stage.seconds(STOPS_S);
    }
    assert_eq!(stage.told(), []);
}

/// The rule's own inactivity detection time says when a use is over.
#[test]
fn the_inactivity_detection_time_tells_uses_apart() {
    for (gap, expected) in [(None, 1), (Some(30), 4)] {
        let rule = CreateUrr { inactivity_detection_time: gap, ..events(0) };
        let mut stage = Stage::new(vec![rule]);
        for _ in 0..4 {
            stage.packet();
            stage.seconds(35);
        }
        assert_eq!(stage.last().1.len(), expected);
    }
}

/// Another life of the data plane tells of the first packet it sees.
#[test]
fn a_start_that_is_told_again_is_one_use() {
    let mut stage = Stage::new(vec![events(0)]);
    let at = now_s(&stage.lab);
    stage.packet();
    stage.seconds(20);
    stage.lab.restart_plane();
    stage.packet();
    stage.seconds(20);
    stage.lab.restart();
    stage.packet();
    stage.seconds(STOPS_S + 5);
    stage.lab.restart_plane();
    let again = stage.uses();
    assert_eq!(stage.last().1, [at, again]);
}

/// A packet that waits for its next hop is told of before it is counted. One that misses a quota of octets begins nothing.
#[test]
fn a_start_is_a_use_before_its_packet_is_counted_but_not_without_a_quota() {
    for (first_packet_age_ms, expected) in [(Some(0), 1), (None, 0)] {
        let mut stage = Stage::new(vec![events(0)]);
        stage.seconds(10);
        let at = now_s(&stage.lab);
        let counts = UsageCounts {
            urr: UrrId(1),
            first_packet_age_ms,
            last_packet_age_ms: first_packet_age_ms,
            ..UsageCounts::default()
        };
        let (session, cause) = (stage.session, UsageCause::StartOfTraffic(None));
        stage.lab.handle(Input::DataPath(&Notice::Usage { session, cause, counts: vec![counts] }));
        assert_eq!(stage.lab.saved[&session].usage.urrs[0].event_times.len(), expected);
        stage.seconds(10);
        // What is counted then is of it.
        stage.packet();
        stage.seconds(STOPS_S + 5);
        let again = stage.uses();
        let begun = if expected == 0 { at + 10 } else { at };
        assert_eq!(stage.last().1, [begun, again]);
    }
}

#[test]
fn times_outlive_the_process_and_are_told_once() {
    let mut rule = events(EVETH);
    rule.event_threshold = Some(4);
    let mut stage = Stage::new(vec![rule]);
    let mut expected = stage.many(2);
    stage.lab.restart();
    expected.push(stage.uses());
    expected.push(now_s(&stage.lab));
    stage.confirms = false;
    stage.packet();
    // The report is not confirmed; the next process sends the same again.
    assert_eq!(stage.told(), [(Trigger::EVETH, expected.clone())]);
    stage.lab.restart();
    stage.confirms = true;
    stage.seconds(1);
    assert_eq!(stage.told(), [(Trigger::EVETH, expected)]);
    // Neither process nor data plane is there any more: the time is.
    stage.seconds(STOPS_S + 5);
    let at = now_s(&stage.lab);
    stage.packet();
    stage.seconds(30);
    stage.lab.restart_plane();
    stage.lab.restart();
    assert_eq!(stage.last().1, [at]);
}

/// TS 29.244 tables 7.5.5.2-1 and 7.5.8.3-1: times have room in requests alone, so the report follows the answer.
#[test]
fn a_query_is_answered_by_a_request_behind_the_answer() {
    let mut stage = Stage::new(vec![events(0)]);
    let expected = stage.many(2);
    let answer = stage.modify(query(7));
    assert_eq!((answer.usage_reports, additional(&answer.carried)), (vec![], Some(&[0, 1][..])));
    stage.lab.reports();
    stage.lab.restart();
    stage.seconds(1);
    let [report] = &stage.reports()[..] else { panic!("one report") };
    assert_eq!((of(report), report.query_urr_reference), ((Trigger::IMMER, expected), Some(7)));
    // Where there is no event, there is room.
    let answer = stage.modify(query(8));
    assert_eq!((of(&answer.usage_reports[0]), answer.carried), ((Trigger::IMMER, vec![]), vec![]));
}

/// Who does not read that more follows has it in the answer: it would be lost.
#[test]
fn a_deletion_tells_all_times() {
    for features in [&[][..], &[CpFeature::Ardr]] {
        let mut lab = Lab::new(config());
        let mut setup = smf::setup(SMF, 1);
        setup.cp_function_features = Some(CpFunctionFeatures::of(features));
        lab.ask(SMF, &Message::node(0xFFF0, setup));
        let session = lab.establish(metered(77, vec![events(0)]));
        let mut stage = Stage { lab, session, bill: Bill::default(), confirms: true };
        let expected = (Trigger::TERMR, stage.many(3));
        let answer = stage.lab.delete(session);
        if features.is_empty() {
            assert_eq!(of(&answer.usage_reports[0]), expected);
        } else {
            assert_eq!((answer.usage_reports, additional(&answer.carried)), (vec![], Some(&[0, 1][..])));
        }
        let rest = stage.told();
        assert_eq!(rest, if features.is_empty() { vec![] } else { vec![expected] });
    }
}

/// It was to follow the answer to a query, and nobody has confirmed it: it is told again, as it was.
#[test]
fn a_deletion_tells_what_a_query_left() {
    let mut stage = Stage::new(vec![events(0)]);
    let expected = stage.many(2);
    stage.modify(query(7));
    let deletion = Message::session(stage.session.0, 9_000, SessionDeletionRequest::default());
    stage.lab.tell(SMF, &deletion);
    seconds(&mut stage.lab, 3);
    let Body::SessionDeletionResponse(answer) = stage.lab.answer(9_000).body else { panic!("no answer") };
    let [left, last] = &answer.usage_reports[..] else { panic!("{answer:?}") };
    assert_eq!((of(left), left.query_urr_reference), ((Trigger::IMMER, expected), Some(7)));
    assert_eq!(of(last), (Trigger::TERMR, vec![]));
}

#[test]
fn what_another_trigger_reports_has_the_times_that_wait() {
    let mut rule = urr(1, VOLTH | EVETH);
    rule.measurement_method = flags::METHOD_EVENT | flags::METHOD_VOLUM;
    (rule.volume_threshold, rule.event_threshold) = (total(30), Some(3));
    let linked = CreateUrr { urr_id: 2, linked_urr_ids: vec![1], ..events(LIUSA) };
    let mut stage = Stage::new(vec![rule, linked]);
    let mut expected = stage.many(1);
    expected.push(now_s(&stage.lab));
    stage.packet();
    stage.seconds(5);
    stage.packet();
    stage.seconds(STOPS_S + 5);
    let both = [(Trigger::VOLTH, expected.clone()), (Trigger::LIUSA, expected)];
    assert_eq!(stage.told(), both);
    let mut expected = stage.many(2);
    assert_eq!(stage.told(), [], "counted from the last report");
    expected.push(now_s(&stage.lab));
    stage.lab.traffic(stage.session, (1, 0), false);
    stage.seconds(1);
    assert_eq!(stage.told()[0], (Trigger::EVETH, expected));
}

#[test]
fn starts_and_stops_are_told_beside_as_they_were() {
    for triggers in [START, START | STOPT] {
        let mut stage = Stage::new(vec![events(triggers)]);
        for round in 0..3 {
            let at = now_s(&stage.lab);
            stage.packet();
            stage.seconds(1);
            let is_told = round == 0 || triggers & STOPT != 0;
            let start = is_told.then_some((Trigger::START, vec![at]));
            assert_eq!(stage.told(), start.into_iter().collect::<Vec<_>>());
            stage.seconds(STOPS_S + 5);
            let stop = (triggers & STOPT != 0).then_some((Trigger::STOPT, vec![]));
            assert_eq!(stage.told(), stop.into_iter().collect::<Vec<_>>());
        }
        let left = if triggers & STOPT != 0 { 0 } else { 2 };
        assert_eq!(stage.last().1.len(), left);
    }
}

/// Nobody asked for a threshold: the times have no room for more.
#[test]
fn as_many_times_as_there_is_room_for_are_told_at_once() {
    let mut stage = Stage::new(vec![events(0)]);
    let mut expected = stage.many(MOST - 1);
    assert_eq!(stage.told(), []);
    expected.push(stage.uses());
    assert_eq!(stage.told(), [(Trigger::EVETH, expected)]);
}

/// While the control plane takes nothing, no more times are kept than that; the events are counted and told all the same.
#[test]
fn no_event_is_lost_while_nobody_takes_them() {
    let mut stage = Stage::new(vec![events(0)]);
    stage.confirms = false;
    let mut expected = stage.many(2 * MOST + 5);
    let last = expected[2 * MOST - 1];
    expected[2 * MOST..].fill(last);
    let usage = &stage.lab.saved[&stage.session].usage.urrs[0];
    assert_eq!((usage.event_times.len(), usage.known.events as usize), (MOST, expected.len()));
    stage.confirms = true;
    stage.seconds(600);
    let told = stage.bill.reports.values().map(|report| report.event_time_stamps.len());
    assert_eq!(told.collect::<Vec<_>>(), [MOST, MOST]);
    let mut all: Vec<u32> =
        stage.bill.reports.values().flat_map(|report| report.event_time_stamps.clone()).collect();
    all.extend(stage.last().1);
    assert_eq!(all, expected);
}

/// What is measured no longer is told once more; what is measured again is measured from then on.
#[test]
fn a_urr_stops_and_begins_to_measure_events() {
    let mut stage = Stage::new(vec![events(0)]);
    let expected = stage.many(2);
    let volume = UpdateUrr { measurement_method: Some(flags::METHOD_VOLUM), ..UpdateUrr::default() };
    stage.update(volume);
    stage.many(2);
    stage.modify(query(1));
    assert_eq!(stage.told(), [(Trigger::IMMER, expected)]);
    stage.many(2);
    let event = UpdateUrr { measurement_method: Some(flags::METHOD_EVENT), ..UpdateUrr::default() };
    stage.update(event);
    let expected = stage.many(2);
    assert_eq!(stage.last().1, expected);
}

/// A new rule of the same name measures from its creation on, and what the old one had is told with its end.
#[test]
fn a_rule_in_the_place_of_another_has_events_of_its_own() {
    let mut stage = Stage::new(vec![events(0)]);
    let old = stage.many(2);
    let create_urrs = vec![CreateUrr { measurement_period: Some(5_000), ..events(0) }];
    let remove_urrs = vec![RemoveUrr { urr_id: 1, carried: vec![] }];
    let pdr = |pdr_id| UpdatePdr { pdr_id, urr_ids: vec![1], ..UpdatePdr::default() };
    let update_pdrs = vec![pdr(1), pdr(2)];
    let request = SessionModificationRequest { create_urrs, remove_urrs, update_pdrs, ..Default::default() };
    assert_eq!(stage.modify(request).cause, Cause::RequestAccepted);
    assert_eq!(stage.told(), [(Trigger::TERMR, old)]);
    let new = stage.many(1);
    assert_eq!(stage.last().1, new);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Packet,
    Wait(u64),
    Restart,
    RestartPlane,
    Query,
    Deliver,
    Interim,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Packet),
        4 => prop_oneof![1u64..50, 70u64..200].prop_map(Step::Wait),
        1 => Just(Step::Restart),
        1 => Just(Step::RestartPlane),
        1 => Just(Step::Query),
        2 => Just(Step::Deliver),
        1 => Just(Step::Interim),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever happens, all reports together tell each use once, by the time of its first packet.
    #[test]
    fn each_use_is_told_once(steps in vec(step(), 1..60), threshold in 1u32..5) {
        let rule = CreateUrr { event_threshold: Some(threshold), ..events(EVETH) };
        let (mut lab, session) = lab(vec![rule]);
        let (mut bill, mut expected, mut last) = (Bill::default(), vec![], None);
        for step in steps {
            match step {
                Step::Packet => {
                    let now = now_s(&lab);
                    let is_new = last.is_none_or(|last| u64::from(now - last) >= STOPS_S);
                    expected.extend(is_new.then_some(now));
                    last = Some(now);
                    lab.traffic(session, (10, 0), false);
                }
                Step::Wait(for_s) => {
                    // Between any two packets there is less than that or clearly more.
                    let since = last.map_or(0, |last| u64::from(now_s(&lab) - last));
                    let near = (STOPS_S - 5..STOPS_S + 5).contains(&(since + for_s));
                    seconds(&mut lab, if near { for_s + 10 } else { for_s });
                }
                Step::Restart => lab.restart(),
                // What it had not told would be lost with it.
                Step::RestartPlane => {
                    lab.interim(session, false);
                    lab.restart_plane();
                }
                Step::Query => bill.add(&lab.modify(session, query(3)).usage_reports),
                Step::Deliver => lab.bill(&mut bill, session, true),
                Step::Interim => lab.interim(session, false),
            }
        }
        lab.bill(&mut bill, session, true);
        bill.add(&lab.delete(session).usage_reports);
        let mut all: Vec<u32> = bill.reports.values().flat_map(|it| it.event_time_stamps.clone()).collect();
        all.sort_unstable();
        prop_assert_eq!(all, expected);
    }
}

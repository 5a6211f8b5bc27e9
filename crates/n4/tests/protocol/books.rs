//! Whatever happens, all reports together tell what was counted, once.

use crate::common::billing::{Bill, metered, total, urr};
use crate::common::{Lab, Obedience, SMF};
use pfcp::*;
use proptest::prelude::*;
use proptest::sample::Index;
use rules::{Seid, UrrId};
use std::time::Duration;

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    Traffic {
        bytes: (u16, u16),
        notices_lost: bool,
    },
    /// The data plane tells what has been used so far, and is not heard, or is.
    Interim {
        is_lost: bool,
    },
    Pass(u32),
    /// Reports reach the control plane, and its answers us, or not.
    Deliver {
        confirms: bool,
    },
    /// Reports get lost.
    Lose,
    /// Of one URR, or of all. The first answer may be lost, and the process with it.
    Query {
        urr: Option<Index>,
        is_lost: bool,
        restarts: bool,
    },
    Update {
        urr: Index,
        with: Urr,
    },
    Replace {
        urr: Index,
        with: Urr,
    },
    /// The process starts anew.
    Restart,
    DataPathLost,
    Obedience(bool),
}

/// What a URR says, as far as it matters here.
#[derive(Clone, Debug)]
struct Urr {
    triggers: u32,
    threshold: Option<u64>,
    quota: Option<u64>,
    seconds: [Option<u32>; 5],
    is_linked: bool,
}

fn rule() -> impl Strategy<Value = Urr> {
    let seconds = proptest::array::uniform5(prop::option::of(1u32..40));
    let volumes = (prop::option::of(1u64..100_000), prop::option::of(1u64..300_000));
    let triggers = prop::bits::u32::masked(0x839F);
    (triggers, volumes, seconds, any::<bool>()).prop_map(
        |(triggers, (threshold, quota), seconds, is_linked)| Urr {
            triggers,
            threshold,
            quota,
            seconds,
            is_linked,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    use Step::*;
    prop_oneof![
        8 => (any::<(u16, u16)>(), any::<bool>()).prop_map(|(bytes, notices_lost)| Traffic { bytes, notices_lost }),
        3 => prop::bool::weighted(0.2).prop_map(|is_lost| Interim { is_lost }),
        6 => (0u32..15_000).prop_map(Pass),
        4 => any::<bool>().prop_map(|confirms| Deliver { confirms }),
        1 => Just(Lose),
        2 => (prop::option::of(any::<Index>()), any::<bool>(), any::<bool>())
            .prop_map(|(urr, is_lost, restarts)| Query { urr, is_lost, restarts }),
        2 => (any::<Index>(), rule()).prop_map(|(urr, with)| Update { urr, with }),
        2 => (any::<Index>(), rule()).prop_map(|(urr, with)| Replace { urr, with }),
        1 => Just(Restart),
        1 => Just(DataPathLost),
        1 => any::<bool>().prop_map(Obedience),
    ]
}

struct Books {
    lab: Lab,
    session: Seid,
    bill: Bill,
    urrs: Vec<u32>,
    next: u32,
    sequence: u32,
}

impl Books {
    fn new(rules: Vec<Urr>) -> Self {
        let mut lab = Lab::associated();
        let urrs: Vec<u32> = (1..=rules.len() as u32).collect();
        let create = rules.iter().zip(&urrs).map(|(rule, id)| created(*id, rule, 1)).collect();
        let session = lab.establish(metered(77, create));
        let next = urrs.len() as u32 + 1;
        Self { lab, session, bill: Bill::default(), urrs, next, sequence: 100_000 }
    }

    /// The request is repeated until it is answered, as a control plane does, unless the data plane does not obey.
    fn modify(&mut self, request: SessionModificationRequest, (is_lost, restarts): (bool, bool)) {
        self.sequence += 1;
        let message = Message::session(self.session.0, self.sequence, request);
        self.lab.tell(SMF, &message);
        if is_lost {
            self.drop_answer();
            if restarts {
                self.restart();
            }
            self.lab.tell(SMF, &message);
        }
        if self.lab.obedience == Obedience::Waits {
            self.lab.pass(Duration::from_secs(2));
        }
        match self.lab.answer(self.sequence).body {
            Body::SessionModificationResponse(response) => self.bill.add(&response.usage_reports),
            other => panic!("{other:?}"),
        }
    }

    fn drop_answer(&mut self) {
        let sequence = self.sequence;
        self.lab.sent.retain(|(_, message)| message.sequence != sequence);
    }

    fn restart(&mut self) {
        self.lab.orders.clear();
        self.lab.restart();
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Traffic { bytes: (uplink, downlink), notices_lost } => {
                self.lab.traffic(self.session, (uplink.into(), downlink.into()), notices_lost);
            }
            Step::Interim { is_lost } => self.lab.interim(self.session, is_lost),
            Step::Pass(millis) => self.lab.pass(Duration::from_millis(millis.into())),
            Step::Deliver { confirms } => self.lab.bill(&mut self.bill, self.session, confirms),
            Step::Lose => drop(self.lab.reports()),
            Step::Query { urr, is_lost, restarts } => self.query(urr, (is_lost, restarts)),
            Step::Update { urr, with } => self.update(&urr, &with),
            Step::Replace { urr, with } => self.replace(&urr, &with),
            Step::Restart => self.restart(),
            Step::DataPathLost => {
                self.lab.orders.clear();
                self.lab.handle(n4::Input::DataPathLost);
                self.lab.orders.clear();
                self.lab.connect();
            }
            Step::Obedience(obeys) => self.obedience(obeys),
        }
    }

    fn obedience(&mut self, obeys: bool) {
        self.lab.obedience = if obeys { Obedience::Obeys } else { Obedience::Waits };
        if obeys {
            self.lab.obey();
        }
    }

    fn query(&mut self, urr: Option<Index>, fate: (bool, bool)) {
        let one = urr.map(|urr| QueryUrr { urr_id: *urr.get(&self.urrs), carried: vec![] });
        let request = SessionModificationRequest {
            pfcpsm_req_flags: one.is_none().then_some(flags::PFCPSM_QAURR),
            query_urrs: one.into_iter().collect(),
            ..SessionModificationRequest::default()
        };
        self.modify(request, fate);
    }

    fn update(&mut self, urr: &Index, with: &Urr) {
        let created = created(*urr.get(&self.urrs), with, self.urrs[0]);
        let update = UpdateUrr {
            urr_id: created.urr_id,
            reporting_triggers: Some(created.reporting_triggers),
            measurement_period: created.measurement_period,
            volume_threshold: created.volume_threshold,
            volume_quota: created.volume_quota,
            time_threshold: created.time_threshold,
            time_quota: created.time_quota,
            quota_holding_time: created.quota_holding_time,
            monitoring_time: created.monitoring_time,
            additional_monitoring_times: created.additional_monitoring_times,
            inactivity_detection_time: created.inactivity_detection_time,
            ..UpdateUrr::default()
        };
        let request =
            SessionModificationRequest { update_urrs: vec![update], ..SessionModificationRequest::default() };
        self.modify(request, (false, false));
    }

    /// The last URR may go; another takes its place. The first stays: others may be linked to it.
    fn replace(&mut self, urr: &Index, with: &Urr) {
        let at = urr.index(self.urrs.len()).max(1);
        let gone = (at < self.urrs.len()).then(|| self.urrs.remove(at));
        self.urrs.push(self.next);
        self.next += 1;
        let ids = self.urrs.clone();
        let update = |pdr_id| UpdatePdr { pdr_id, urr_ids: ids.clone(), ..UpdatePdr::default() };
        let request = SessionModificationRequest {
            remove_urrs: gone.map(|urr_id| RemoveUrr { urr_id, carried: vec![] }).into_iter().collect(),
            create_urrs: vec![created(self.next - 1, with, self.urrs[0])],
            update_pdrs: vec![update(1), update(2)],
            ..SessionModificationRequest::default()
        };
        let ids_in_force = |lab: &Lab| -> Vec<UrrId> {
            lab.desired().values().flat_map(|desired| &desired.rules.urrs).map(|urr| urr.id).collect()
        };
        let before = ids_in_force(&self.lab);
        self.modify(request, (false, false));
        if self.lab.obedience == Obedience::Waits {
            // It was not done.
            assert_eq!(ids_in_force(&self.lab), before);
            self.urrs.pop();
            if let Some(gone) = gone {
                self.urrs.insert(at, gone);
            }
        }
    }

    /// The data plane obeys again, and the session ends: when everything has calmed down and all reports have arrived, or at once,
    /// whatever has not been confirmed.
    fn close(&mut self, is_calm: bool) {
        self.obedience(true);
        if is_calm {
            self.calm_down();
        }
        self.sequence += 1;
        let deletion = SessionDeletionRequest::default();
        let message = Message::session(self.session.0, self.sequence, deletion);
        self.lab.tell(SMF, &message);
        // For as long as a report is on its way.
        self.lab.pass(Duration::from_secs(2));
        // The answer is lost, and the process with it.
        self.drop_answer();
        self.restart();
        match self.lab.ask(SMF, &message) {
            Body::SessionDeletionResponse(response) => self.bill.add(&response.usage_reports),
            other => panic!("{other:?}"),
        }
        self.lab.bill(&mut self.bill, self.session, true);
    }

    fn calm_down(&mut self) {
        self.lab.bill(&mut self.bill, self.session, true);
        // What was left unanswered again and again comes again after 320 s.
        for _ in 0..360 {
            self.lab.pass(Duration::from_secs(1));
            self.lab.bill(&mut self.bill, self.session, true);
        }
    }
}

fn time(after_s: u32) -> u32 {
    (crate::common::SINCE_1900_MS / 1_000) as u32 + after_s
}

/// Monitoring times behind the first, the later one first.
fn more(first_s: u32) -> Vec<AdditionalMonitoringTime> {
    [first_s + 40, first_s + 7].map(|after_s| AdditionalMonitoringTime::new(time(after_s))).into()
}

fn created(id: u32, rule: &Urr, linked: u32) -> CreateUrr {
    let [period, threshold, quota, holding, gap] = rule.seconds;
    let period = period.map_or(20, |period| period + 5);
    CreateUrr {
        measurement_period: Some(period),
        volume_threshold: rule.threshold.and_then(total),
        volume_quota: rule.quota.and_then(total),
        time_threshold: threshold,
        time_quota: quota,
        quota_holding_time: holding,
        inactivity_detection_time: gap,
        monitoring_time: gap.map(time),
        additional_monitoring_times: gap.map_or(vec![], more),
        linked_urr_ids: if rule.is_linked { vec![linked] } else { vec![] },
        ..urr(id, rule.triggers)
    }
}

fn urr_ids(sums: impl IntoIterator<Item = (UrrId, (u64, u64))>) -> Vec<(UrrId, (u64, u64))> {
    sums.into_iter().filter(|(id, sum)| *sum != (0, 0) && id.0 != u32::MAX).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn reports_tell_what_was_counted_once(
        rules in prop::collection::vec(rule(), 1..4),
        steps in prop::collection::vec(step(), 1..60),
        is_calm: bool,
    ) {
        let mut books = Books::new(rules);
        steps.into_iter().for_each(|step| books.run(step));
        books.close(is_calm);
        prop_assert_eq!(urr_ids(books.bill.sums()), urr_ids(books.lab.plane.counted.clone()));
    }

    /// A data plane that dies takes with it what it has not told: no more is lost, and nothing is told twice.
    #[test]
    fn only_what_a_dead_data_plane_never_told_is_lost(
        rules in prop::collection::vec(rule(), 1..3),
        lives in prop::collection::vec(prop::collection::vec(step(), 1..15), 1..5),
        is_calm: bool,
    ) {
        let mut books = Books::new(rules);
        for steps in lives {
            steps.into_iter().filter(|step| !matches!(step, Step::Restart)).for_each(|step| match step {
                Step::Query { urr, is_lost, .. } => books.query(urr, (is_lost, false)),
                step => books.run(step),
            });
            books.lab.restart_plane();
        }
        books.close(is_calm);
        prop_assert_eq!(urr_ids(books.bill.sums()), urr_ids(books.lab.plane.counted.clone()));
    }

    /// One that is killed leaves what it has counted, whoever dies with it, and whatever of its notices got lost before. A deletion is
    /// answered with what was told of it: that is for those that die meanwhile.
    #[test]
    fn nothing_is_lost_with_a_data_plane_that_is_killed(
        rules in prop::collection::vec(rule(), 1..3),
        lives in prop::collection::vec((prop::collection::vec(step(), 1..15), any::<[bool; 2]>()), 1..5),
        is_calm: bool,
    ) {
        let mut books = Books::new(rules);
        for (steps, [is_alone, breaks]) in lives {
            steps.into_iter().for_each(|step| books.run(step));
            books.lab.kill_plane(is_alone, breaks);
        }
        books.close(is_calm);
        prop_assert_eq!(urr_ids(books.bill.sums()), urr_ids(books.lab.plane.counted.clone()));
    }

    /// One that ends as it is told to takes nothing with it, whatever of its notices got lost before.
    #[test]
    fn nothing_is_lost_with_a_data_plane_that_ends(
        rules in prop::collection::vec(rule(), 1..3),
        lives in prop::collection::vec(prop::collection::vec(step(), 1..15), 1..5),
        is_calm: bool,
    ) {
        let mut books = Books::new(rules);
        for steps in lives {
            steps.into_iter().for_each(|step| books.run(step));
            let counted = books.lab.plane.counted.clone();
            books.lab.stop_and_start();
            let told = books.lab.plane.counted.clone();
            prop_assert_eq!(urr_ids(told), urr_ids(counted), "it takes something with it");
        }
        books.close(is_calm);
        prop_assert_eq!(urr_ids(books.bill.sums()), urr_ids(books.lab.plane.counted.clone()));
    }
}

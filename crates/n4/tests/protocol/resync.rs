//! A data plane that comes, is lost and comes back, empty or not, while very many sessions are used, change, come and go: it is
//! met by portions, and what is told of usage is what it would be otherwise.

use crate::common::billing::{Bill, metered, total, urr};
use crate::common::smf::path_switch;
use crate::common::{Lab, Obedience, SMF};
use dplink::{Desired, Notice};
use n4::{Input, Output};
use pfcp::*;
use proptest::prelude::*;
use proptest::sample::Index;
use rules::{Seid, UrrId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const VOLTH: u32 = 1 << 1;
const VOLQU: u32 = 1 << 8;
/// More than one portion, and less than one.
const SESSIONS: [u64; 2] = [150, 20];
const QUOTA: u64 = 3_000;
const PACKET: u64 = 1_000;

/// A session of one PDR whose URR has the session's number.
fn request(number: u64) -> SessionEstablishmentRequest {
    let mut rule = urr(number as u32, VOLTH | VOLQU);
    (rule.volume_threshold, rule.volume_quota) = (total(800), total(QUOTA));
    let mut request = metered(number, vec![rule]);
    request.create_pdrs.truncate(1);
    request
}

fn query() -> SessionModificationRequest {
    SessionModificationRequest {
        pfcpsm_req_flags: Some(flags::PFCPSM_QAURR),
        ..SessionModificationRequest::default()
    }
}

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    Pass(u16),
    /// So many sessions are named to the data plane.
    Name(u8),
    Traffic {
        session: Index,
        bytes: u64,
        is_lost: bool,
    },
    Modify(Index, u32),
    Query(Index),
    Delete(Index),
    Establish,
    Deliver {
        confirms: bool,
    },
    Lost,
    /// The data plane is there again, or for the first time in a new life.
    Found {
        is_reborn: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    use Step::*;
    prop_oneof![
        6 => (0u16..4).prop_map(Pass),
        1 => (0u16..6_000).prop_map(Pass),
        6 => (1u8..60).prop_map(Name),
        8 => (any::<Index>(), 1..=PACKET, any::<bool>())
            .prop_map(|(session, bytes, is_lost)| Traffic { session, bytes, is_lost }),
        3 => (any::<Index>(), 1u32..9).prop_map(|(session, teid)| Modify(session, teid)),
        3 => any::<Index>().prop_map(Query),
        2 => any::<Index>().prop_map(Delete),
        2 => Just(Establish),
        2 => any::<bool>().prop_map(|confirms| Deliver { confirms }),
        1 => Just(Lost),
        3 => any::<bool>().prop_map(|is_reborn| Found { is_reborn }),
    ]
}

/// Node and data plane, and between them what names the sessions.
struct Crowd {
    lab: Lab,
    bill: Bill,
    /// Sessions that are yet to be named, where the link stands.
    unnamed: Option<Vec<Seid>>,
    number: u64,
    sequence: u32,
    /// Requests to be answered once in the end.
    owed: BTreeSet<u32>,
}

impl Crowd {
    fn new(sessions: u64) -> Self {
        let mut lab = Lab::associated();
        for number in 1..=sessions {
            lab.establish(request(number));
        }
        let (unnamed, owed) = (Some(vec![]), BTreeSet::new());
        Self { lab, bill: Bill::default(), unnamed, number: sessions, sequence: 1 << 20, owed }
    }

    fn any(&self, session: &Index) -> Option<Seid> {
        let all: Vec<Seid> = self.lab.saved.keys().copied().collect();
        (!all.is_empty()).then(|| *session.get(&all))
    }

    fn tell(&mut self, seid: u64, body: impl Into<Body>) {
        self.sequence += 1;
        self.owed.insert(self.sequence);
        self.lab.tell(SMF, &Message::session(seid, self.sequence, body));
        self.hear_answers();
    }

    fn hear_answers(&mut self) {
        let owed = &mut self.owed;
        for (_, message) in self.lab.sent.extract_if(.., |(_, message)| owed.remove(&message.sequence)) {
            match message.body {
                Body::SessionModificationResponse(response) => self.bill.add(&response.usage_reports),
                Body::SessionDeletionResponse(response) => self.bill.add(&response.usage_reports),
                _ => {}
            }
        }
    }

    fn lose(&mut self) {
        self.lab.obedience = Obedience::Waits;
        self.lab.handle(Input::DataPathLost);
        self.lab.orders.clear();
        self.unnamed = None;
    }

    fn find(&mut self, is_reborn: bool) {
        self.lose();
        if is_reborn {
            self.lab.in_force.clear();
            self.lab.plane = self.lab.plane.reborn();
        }
        self.lab.obedience = Obedience::Obeys;
        self.lab.orders.clear();
        let (sessions, epoch) = (self.lab.in_force.len() as u64, self.lab.plane.epoch);
        let hello = Notice::Hello { version: dplink::VERSION, sessions, epoch, content: 0 };
        self.unnamed = Some(self.lab.node.all());
        self.lab.handle(Input::DataPath(&hello));
    }

    /// As the runtime does: each as it is to be at that moment, and what was not named goes in the end.
    fn name(&mut self, count: usize) {
        let Some(unnamed) = &mut self.unnamed else { return };
        let left = unnamed.len().saturating_sub(count);
        for seid in unnamed.split_off(left) {
            self.lab.node.desired_of(seid).into_iter().for_each(|desired| self.put(desired));
        }
        if left == 0 {
            let wanted = self.lab.desired();
            self.lab.in_force.retain(|session, _| wanted.contains_key(session));
            self.lab.plane.retain(|session| wanted.contains_key(session));
        }
    }

    fn put(&mut self, desired: Desired) {
        let (session, revision) = (desired.session, desired.revision);
        let is_there = self.lab.in_force.get(&session).is_some_and(|held| held.revision == revision);
        let removed = if is_there { vec![] } else { self.lab.plane.put(&desired, self.lab.now) };
        self.lab.in_force.insert(session, desired);
        self.lab.handle(Input::DataPath(&Notice::Applied { session, revision, removed }));
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Pass(ms) => self.lab.pass(Duration::from_millis(ms.into())),
            Step::Name(count) => self.name(count.into()),
            Step::Traffic { session, bytes, is_lost } => {
                let is_lost = is_lost || self.unnamed.is_none();
                self.any(&session).into_iter().for_each(|it| self.lab.traffic(it, (bytes, 0), is_lost));
            }
            Step::Modify(session, teid) => {
                self.any(&session).into_iter().for_each(|it| self.tell(it.0, path_switch(teid)));
            }
            Step::Query(session) => {
                self.any(&session).into_iter().for_each(|it| self.tell(it.0, query()));
            }
            Step::Delete(session) => {
                let deletion = SessionDeletionRequest::default;
                self.any(&session).into_iter().for_each(|it| self.tell(it.0, deletion()));
            }
            Step::Establish => {
                self.number += 1;
                self.tell(0, request(self.number));
            }
            Step::Deliver { confirms } => self.deliver(confirms),
            Step::Lost => self.lose(),
            Step::Found { is_reborn } => self.find(is_reborn),
        }
        if self.unnamed.is_none() {
            self.lab.orders.clear();
        }
        self.hear_answers();
    }

    fn deliver(&mut self, confirms: bool) {
        self.lab.bill(&mut self.bill, Seid(0), confirms);
    }

    /// Everything calms down, all reports arrive, and all sessions end.
    fn close(&mut self) {
        self.find(false);
        self.name(usize::MAX);
        for _ in 0..360 {
            self.lab.pass(Duration::from_secs(1));
            self.deliver(true);
        }
        for seid in self.lab.node.all() {
            self.tell(seid.0, SessionDeletionRequest::default());
        }
        self.deliver(true);
        self.hear_answers();
    }
}

fn known(sums: BTreeMap<UrrId, (u64, u64)>) -> Vec<(UrrId, (u64, u64))> {
    sums.into_iter().filter(|(_, sum)| *sum != (0, 0)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    /// What the node was told of usage is billed, once; no quota is given twice; whoever asked is answered.
    #[test]
    fn sessions_are_what_they_were_however_the_data_plane_comes_and_goes(
        sessions in prop::sample::select(&SESSIONS),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut crowd = Crowd::new(sessions);
        for step in steps {
            crowd.run(step);
            for (urr, counted) in &crowd.lab.plane.counted {
                prop_assert!(counted.0 < QUOTA + PACKET, "{urr:?} has used {}", counted.0);
            }
        }
        crowd.close();
        prop_assert_eq!(known(crowd.bill.sums()), known(crowd.lab.plane.told.clone()));
        prop_assert!(crowd.owed.is_empty(), "{:?} were not answered", crowd.owed);
        prop_assert_eq!((crowd.lab.node.sessions(), crowd.lab.saved.len()), (0, 0));
    }

    /// The same happens in the same order again.
    #[test]
    fn the_same_inputs_come_to_the_same(steps in prop::collection::vec(step(), 1..60)) {
        let run = |steps: &[Step]| {
            let mut crowd = Crowd::new(SESSIONS[0]);
            steps.iter().for_each(|step| crowd.run(step.clone()));
            crowd.close();
            crowd.lab.told
        };
        prop_assert!(run(&steps) == run(&steps));
    }
}

/// Sessions the node has asked the data plane about since it was asked last.
fn asked(lab: &mut Lab) -> BTreeSet<Seid> {
    let asks = |order: Output| match order {
        Output::QueryUsage { session, .. } => Some(session),
        _ => None,
    };
    lab.told.drain(..).filter_map(asks).collect()
}

#[test]
fn every_session_is_asked_about_once_the_data_plane_is_back() {
    let mut crowd = Crowd::new(SESSIONS[0]);
    asked(&mut crowd.lab);
    crowd.find(true);
    // It is lost again before all were attended to: nobody is asked who is not there.
    crowd.lose();
    crowd.lab.pass(Duration::from_secs(15));
    assert_eq!(asked(&mut crowd.lab), BTreeSet::new());
    crowd.find(true);
    crowd.lab.pass(Duration::from_secs(15));
    assert_eq!(asked(&mut crowd.lab), crowd.lab.node.all().into_iter().collect());
    assert_eq!(crowd.lab.node.all().len() as u64, SESSIONS[0]);
}

/// What came while nobody was there is put in force by the life that comes, which knows nothing of what passed of a quota.
#[test]
fn a_change_under_way_gives_no_quota_twice() {
    let mut crowd = Crowd::new(1);
    let session = crowd.lab.node.all()[0];
    crowd.lab.traffic(session, (2_000, 0), false);
    crowd.lab.modify(session, query());
    crowd.lose();
    crowd.tell(session.0, path_switch(5));
    crowd.find(true);
    let desired = crowd.lab.node.desired_of(session).unwrap();
    let urr = &desired.rules.urrs[0];
    assert_eq!(urr.volume_quota.unwrap().total, Some(QUOTA));
    assert_eq!(urr.quota_since, Some(rules::Since { uplink: -2_000, downlink: 0 }));
    crowd.name(1);
    assert!(crowd.owed.is_empty() || !crowd.lab.sent.is_empty());
}

/// A data plane in a new life is met: how long each input takes until all sessions have been attended to.
fn meet_again(crowd: &mut Crowd) -> Vec<Duration> {
    crowd.lose();
    crowd.lab.plane = crowd.lab.plane.reborn();
    let (version, epoch) = (dplink::VERSION, crowd.lab.plane.epoch);
    let hello = Notice::Hello { version, sessions: 0, epoch, content: 0 };
    let (mut took, mut input) = (vec![], Input::DataPath(&hello));
    // Two inputs a portion: there is a tick in between that has nothing to do.
    for _ in 0..=2 * crowd.lab.node.sessions() / 64 {
        let start = Instant::now();
        crowd.lab.node.handle(input, crowd.lab.time());
        took.push(start.elapsed());
        input = Input::Tick;
        crowd.lab.now = crowd.lab.now + Duration::from_micros(500);
    }
    took
}

/// Whoever asks meanwhile waits for a portion, not for all. A machine that is busy may stop us in any input: not in every try.
#[test]
fn no_input_takes_as_long_as_all_sessions() {
    let mut crowd = Crowd::new(4_000);
    let is_short = |took: Vec<Duration>| {
        let (all, longest): (Duration, _) = (took.iter().sum(), took.iter().max().unwrap());
        *longest * 8 < all
    };
    assert!((0..8).any(|_| is_short(meet_again(&mut crowd))));
}

/// Whoever reads the log of an orderly end is not to look for what was lost.
#[test]
fn a_data_plane_that_said_that_it_ends_is_lost_only_to_what_is_under_way() {
    let lost = |lab: &Lab| lab.notes.iter().filter(|note| note.contains("the data plane is lost")).count();
    for (says_so, is_under_way, expected) in
        [(true, false, 0), (false, false, 1), (true, true, 1), (false, true, 1)]
    {
        let mut lab = Lab::associated();
        let session = lab.establish(request(7));
        if is_under_way {
            lab.obedience = Obedience::Waits;
            lab.tell(SMF, &Message::session(session.0, 900, path_switch(5)));
        }
        if says_so {
            lab.handle(Input::DataPath(&Notice::Leaving));
        }
        lab.handle(Input::DataPathLost);
        assert_eq!(lost(&lab), expected, "{says_so}, {is_under_way}");
        // The next one has said nothing.
        lab.connect();
        lab.handle(Input::DataPathLost);
        assert_eq!(lost(&lab), expected + 1, "{says_so}, {is_under_way}");
    }
}

//! Very many sessions that come and go at once leave nothing behind: no name, endpoint, address, record or memory.
//! A program of its own, as it measures the memory it takes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

#[path = "protocol/common/mod.rs"]
mod common;

use common::smf::{self, establishment};
use common::{SINCE_1900_MS, SMF, STAMP, at};
use dplink::Notice;
use machine::Time;
use n4::{Config, Input, Limits, Node, Output, Start, UePool};
use pfcp::*;
use rules::Seid;
use session::NodeRecord;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const SESSIONS: u32 = 100_000;
const GROUP: &[u8] = &[7, 7];

/// The set all sessions are of.
fn set() -> FqCsid {
    FqCsid { node_id_type: 0, node: vec![10, 40, 0, 1], csids: vec![5], node_type: None }
}

/// A node, what its database holds, and a data plane that obeys at once.
struct Bench {
    node: Node,
    now: Time,
    saved: BTreeSet<Seid>,
    sequence: u32,
    /// Sessions that end in one go.
    portion: usize,
}

impl Bench {
    fn new() -> Self {
        let prefix = "10.60.0.0/15".parse().unwrap();
        let ue_pools = vec![UePool { name: "users".to_owned(), prefix, network_instance: None }];
        let limits = Limits { sessions: SESSIONS as usize, ..Limits::default() };
        let portion = limits.portion;
        let config = Config { ue_pools, limits, ..common::config() };
        let node = NodeRecord::new(STAMP);
        let start = Start::new(node, SINCE_1900_MS);
        let node = Node::new(config, start);
        let mut bench = Self { node, now: Time::ZERO, saved: BTreeSet::new(), sequence: 0, portion };
        let (version, epoch) = (dplink::VERSION, 1);
        bench.handle(Input::DataPath(&Notice::Hello { version, sessions: 0, epoch, content: 0 }));
        bench.ask(None, smf::setup(SMF, 1));
        bench
    }

    /// What is answered, if anything is.
    fn handle(&mut self, input: Input<'_>) -> Option<Body> {
        let mut answer = None;
        for output in self.node.handle(input, self.now) {
            let notice = match output {
                Output::Put(desired) => {
                    Notice::Applied { session: desired.session, revision: desired.revision, removed: vec![] }
                }
                Output::Delete(session) => Notice::Removed { session, usage: vec![] },
                Output::SaveSession(seid, _) => {
                    self.saved.insert(seid);
                    continue;
                }
                Output::EraseSession(seid) => {
                    self.saved.remove(&seid);
                    continue;
                }
                Output::Send { bytes, .. } => {
                    answer = Some(decode(&bytes).unwrap().body);
                    continue;
                }
                _ => continue,
            };
            answer = self.handle(Input::DataPath(&notice)).or(answer);
        }
        answer
    }

    fn ask(&mut self, seid: Option<u64>, body: impl Into<Body>) -> Body {
        self.sequence += 1;
        let message = Message { seid, sequence: self.sequence, priority: None, body: body.into() };
        let bytes = encode(&message);
        self.handle(Input::Datagram { from: at(SMF), bytes: &bytes }).expect("an answer")
    }

    fn establish(&mut self, number: u32) -> u64 {
        let mut request = establishment(u64::from(number) + 1);
        let mut address = smf::ue([0, 0, 0, 0].into());
        (address.ipv4, address.choose_ipv4) = (None, true);
        request.create_pdrs[1].pdi.ue_ip_addresses = vec![address];
        request.fq_csids = vec![set()];
        request.group_id = Some(GROUP.to_vec());
        match self.ask(Some(0), request) {
            Body::SessionEstablishmentResponse(response) => {
                assert_eq!(response.cause, Cause::RequestAccepted);
                response.up_f_seid.unwrap().seid
            }
            other => panic!("{other:?}"),
        }
    }

    fn delete(&mut self, seid: u64) {
        let request = SessionDeletionRequest { carried: vec![] };
        match self.ask(Some(seid), request) {
            Body::SessionDeletionResponse(response) => assert_eq!(response.cause, Cause::RequestAccepted),
            other => panic!("{other:?}"),
        }
    }

    /// All of them together; the answer comes when they are gone. How long each portion took.
    fn delete_set(&mut self) -> Vec<Duration> {
        let request =
            SessionSetDeletionRequest { node_id: NodeId::Ipv4(SMF), fq_csids: vec![set()], carried: vec![] };
        let (answer, took) = self.ask_of_set(request);
        let Body::SessionSetDeletionResponse(response) = answer else { panic!("{answer:?}") };
        assert_eq!((response.cause, self.saved.len()), (Cause::RequestAccepted, 0));
        took
    }

    /// What is done by portions, and how long each of these took.
    fn ask_of_set(&mut self, request: impl Into<Body>) -> (Body, Vec<Duration>) {
        self.sequence += 1;
        let bytes = encode(&Message::node(self.sequence, request.into()));
        let (mut took, mut left) = (vec![], self.saved.len());
        let mut start = Instant::now();
        let mut answer = self.handle(Input::Datagram { from: at(SMF), bytes: &bytes });
        loop {
            took.push(start.elapsed());
            assert!(left - self.saved.len() <= self.portion, "no more than a portion in one go");
            left = self.saved.len();
            if let Some(answer) = answer {
                return (answer, took);
            }
            assert!(self.is_heard(), "others are served meanwhile");
            start = Instant::now();
            answer = self.handle(Input::Tick);
        }
    }

    /// A control plane that is there.
    fn is_heard(&mut self) -> bool {
        let request = HeartbeatRequest { recovery_time_stamp: 1, carried: vec![] };
        matches!(self.ask(None, request), Body::HeartbeatResponse(_))
    }

    /// Everything comes and goes, and time passes until answers are forgotten.
    fn burst(&mut self, end: impl Fn(&mut Self, Vec<u64>)) {
        let seids: Vec<u64> = (0..SESSIONS).map(|number| self.establish(number)).collect();
        let held = (self.node.sessions(), self.node.tunnels(), self.node.addresses(), self.saved.len());
        assert_eq!(held, (seids.len(), seids.len(), seids.len(), seids.len()));
        end(self, seids);
        for _ in 0..2 {
            self.now = self.now + Duration::from_secs(40);
            self.handle(Input::Tick);
            self.ask(None, smf::setup(SMF, 1));
        }
        let held = (self.node.sessions(), self.node.tunnels(), self.node.addresses(), self.saved.len());
        assert_eq!(held, (0, 0, 0, 0));
        assert_eq!(self.node.desired().count(), 0);
    }
}

/// Memory is that of the whole process, and time is measured: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Of this process.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn leaves_nothing_behind(end: impl Fn(&mut Bench, Vec<u64>)) {
    let _alone = ALONE.lock();
    let mut bench = Bench::new();
    bench.burst(&end);
    // Tables, and the allocator, keep the room they grew to, and may grow a little once more. A burst of which 5 % stayed
    // would take 4 MiB more every time.
    let mut resident = resident_kib();
    let stays = (0..4).any(|_| {
        bench.burst(&end);
        let before = std::mem::replace(&mut resident, resident_kib());
        resident <= before + (3 << 10)
    });
    assert!(stays, "every burst takes more, at last {resident} KiB");
}

/// What the node may take for each session that nothing happens to.
const OCTETS_AT_REST: u64 = 1_536;

#[test]
#[ignore = "needs a process of its own: a_session_at_rest_takes_less_than_1536_octets runs it"]
fn sessions_at_rest() {
    let mut bench = Bench::new();
    let before = resident_kib();
    for number in 0..SESSIONS {
        bench.establish(number);
    }
    // Until answers are forgotten.
    bench.now = bench.now + Duration::from_secs(40);
    bench.handle(Input::Tick);
    assert_eq!(bench.node.sessions(), SESSIONS as usize);
    let each = (resident_kib() - before) * 1_024 / u64::from(SESSIONS);
    println!("{each} octets a session");
    assert!((1..OCTETS_AT_REST).contains(&each), "{each} octets a session");
}

/// Memory that other tests gave back would be taken first, and not be seen.
#[test]
fn a_session_at_rest_takes_less_than_1536_octets() {
    let _alone = ALONE.lock();
    let program = std::env::current_exe().unwrap();
    let arguments = ["--ignored", "--exact", "sessions_at_rest", "--nocapture"];
    let run = std::process::Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout) + String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn a_hundred_thousand_sessions_that_end_leave_nothing_behind() {
    leaves_nothing_behind(|bench, seids| seids.into_iter().for_each(|seid| bench.delete(seid)));
}

#[test]
fn a_hundred_thousand_sessions_that_end_as_a_set_leave_nothing_behind() {
    leaves_nothing_behind(|bench, _| {
        let took = bench.delete_set();
        println!(
            "{} portions, the longest {:?}, all {:?}",
            took.len(),
            took.iter().max(),
            took.iter().sum::<Duration>()
        );
    });
}

/// A change that means no session looks at none, however many there are.
#[test]
fn a_set_that_moves_costs_nothing_but_its_sessions() {
    let _alone = ALONE.lock();
    let mut bench = Bench::new();
    let seids: Vec<u64> = (0..SESSIONS).map(|number| bench.establish(number)).collect();
    let moves = |group: &[u8]| SessionSetModificationRequest {
        node_id: NodeId::Ipv4(SMF),
        changes: vec![SessionChangeInfo {
            fq_csids: vec![],
            group_ids: vec![group.to_vec()],
            cp_ip_addresses: vec![],
            alternative: CpIpAddress::new([10, 40, 0, 77].into()),
            carried: vec![],
        }],
        carried: vec![],
    };
    let mut took = |group: &[u8]| {
        let (answer, took) = bench.ask_of_set(moves(group));
        let Body::SessionSetModificationResponse(response) = answer else { panic!("{answer:?}") };
        assert_eq!(response.cause, Cause::RequestAccepted);
        took.iter().sum::<Duration>()
    };
    let (all, none) = (took(GROUP), took(&[9]));
    assert!(none * 100 < all, "{none:?} for none, {all:?} for {}", seids.len());
}

/// T1 x N1 of control planes.
const ASKED_AGAIN: Duration = Duration::from_secs(9);

/// 100,000 requests a second: what is asked again after T1 is still answered as it was, and done once. Strangers, however
/// many, do nothing to that.
#[test]
fn an_answer_outlives_the_time_in_which_it_is_asked_for() {
    let _alone = ALONE.lock();
    let mut bench = Bench::new();
    let first = message(u32::MAX >> 8, establishment(1));
    let Some(answer) = bench.handle(Input::Datagram { from: at(SMF), bytes: &first }) else { panic!() };
    let seids: Vec<Seid> = bench.saved.iter().copied().collect();
    for millisecond in 0..3_000 {
        bench.now = Time::from_millis(millisecond);
        let stranger = SocketAddr::from(([10, 99, 0, 1], 8_805));
        for from in [at(SMF), stranger] {
            for number in 0..100 {
                let request = SessionDeletionRequest { carried: vec![] };
                let sequence = millisecond as u32 * 100 + number;
                let body = request.into();
                let bytes = encode(&Message { seid: Some(1), sequence, priority: None, body });
                bench.node.handle(Input::Datagram { from, bytes: &bytes }, bench.now);
            }
        }
    }
    let again = bench.handle(Input::Datagram { from: at(SMF), bytes: &first });
    assert_eq!(again, Some(answer));
    assert_eq!(bench.saved.iter().copied().collect::<Vec<_>>(), seids);
    assert_eq!(bench.node.counters().repeated, 1);
    let config = common::config();
    let all = ASKED_AGAIN.as_secs() as usize * 100_000;
    assert!(config.answer_lifetime >= ASKED_AGAIN && config.limits.answers >= all);
    // An answer has some 100 octets.
    assert!(config.limits.answer_octets >= all * 100);
}

fn message(sequence: u32, request: SessionEstablishmentRequest) -> Vec<u8> {
    encode(&Message::session(0, sequence, request))
}

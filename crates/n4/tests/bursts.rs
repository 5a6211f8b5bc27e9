//! Very many sessions that come and go at once leave nothing behind: no name, endpoint, address, record or memory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

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
use std::time::Duration;

const SESSIONS: u32 = 100_000;

/// A node, what its database holds, and a data plane that obeys at once.
struct Bench {
    node: Node,
    now: Time,
    saved: BTreeSet<Seid>,
    sequence: u32,
}

impl Bench {
    fn new() -> Self {
        let prefix = "10.60.0.0/15".parse().unwrap();
        let ue_pools = vec![UePool { name: "users".to_owned(), prefix, network_instance: None }];
        let limits = Limits { sessions: SESSIONS as usize, ..Limits::default() };
        let config = Config { ue_pools, limits, ..common::config() };
        let node = NodeRecord { recovery_time_stamp: STAMP };
        let start = Start {
            node,
            associations: vec![],
            sessions: vec![],
            pfds: vec![],
            last_cdr: 0,
            since_1900_ms: SINCE_1900_MS,
        };
        let node = Node::new(config, start);
        let mut bench = Self { node, now: Time::ZERO, saved: BTreeSet::new(), sequence: 0 };
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
                Output::SaveSession(record) => {
                    self.saved.insert(record.seid);
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

    /// Everything comes and goes, and time passes until answers are forgotten.
    fn burst(&mut self) {
        let seids: Vec<u64> = (0..SESSIONS).map(|number| self.establish(number)).collect();
        let held = (self.node.sessions(), self.node.tunnels(), self.node.addresses(), self.saved.len());
        assert_eq!(held, (seids.len(), seids.len(), seids.len(), seids.len()));
        seids.into_iter().for_each(|seid| self.delete(seid));
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

/// Of this process.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_hundred_thousand_sessions_that_end_leave_nothing_behind() {
    let mut bench = Bench::new();
    bench.burst();
    bench.burst();
    let before = resident_kib();
    bench.burst();
    let after = resident_kib();
    // Tables, and the allocator, keep the room they grew to; a burst of which 5 % stayed would take 8 MiB more.
    assert!(after <= before + (4 << 10), "{before} KiB, then {after} KiB");
}

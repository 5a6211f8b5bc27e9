//! A node that hears any conversation, from several peers, over a data plane that obeys, refuses or is silent. The input is a
//! list of datagrams (`pfcp_mutate::Script`), each with a mood: what the data plane does (two bits), who sends (two), how
//! much time passes (three), and whether something happens to a session (one). What answers a question of the node's gets its
//! number.

#![no_main]

use dplink::{Event, Notice, RefusalCause, UsageCause, UsageCounts};
use machine::Time;
use n4::{Config, Input, Node, Output, Predefined, PredefinedRule, Start, UePool};
use pfcp_mutate::{Datagram, Dice, Line, Script};
use rules::{PdrId, Qfi, Seid, UrrId};
use session::NodeRecord;
use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};

/// Our name for a session begins with it: that of the seeds.
const STAMP: u32 = 0xE000_0001;
const SINCE_1900_MS: u64 = 0xE000_0100 * 1_000;
/// What passes before a datagram, in milliseconds.
const PAUSES_MS: [u64; 8] = [0, 100, 1_000, 2_000, 5_000, 12_000, 30_000, 70_000];

fn config() -> Config {
    let address = Ipv4Addr::new(10, 40, 0, 2);
    let mut config = Config::new(pfcp::NodeId::Ipv4(address), address, Ipv4Addr::new(10, 30, 0, 2));
    let pool = |name: &str, prefix: &str| {
        let network_instance = Some("internet".to_owned());
        prefix.parse().ok().map(|prefix| UePool { name: name.to_owned(), prefix, network_instance })
    };
    config.ue_pools.extend(pool("users", "10.70.0.0/28").into_iter().chain(pool("others", "10.71.0.0/28")));
    config.network_instances = ["internet", "ims"].map(str::to_owned).to_vec();
    config.forwarding_policies = ["mec", "bras"].map(n4::ForwardingPolicy::of_any).to_vec();
    let rules = ["video", "ads"].map(|name| PredefinedRule::new(name.to_owned())).to_vec();
    config.predefined = Predefined::new(rules, &[]).unwrap_or_default();
    config.limits.sessions = 10;
    config
}

struct World {
    node: Node,
    now: Time,
    mood: u8,
    /// Sessions the data plane was told of last.
    sessions: VecDeque<Seid>,
    /// The last question of the node's, by the type of its answer.
    asked: HashMap<u8, u32>,
}

impl World {
    fn new() -> Self {
        let node = NodeRecord::new(STAMP);
        let start = Start::new(node, SINCE_1900_MS);
        let node = Node::new(config(), start);
        let (sessions, asked) = (VecDeque::new(), HashMap::new());
        let mut world = Self { node, now: Time::ZERO, mood: 0, sessions, asked };
        let hello = Notice::Hello { version: dplink::VERSION, sessions: 0, epoch: 1, content: 0 };
        world.handle(Input::DataPath(&hello));
        world
    }

    fn handle(&mut self, input: Input<'_>) {
        let mut waiting: VecDeque<Output> = self.node.handle(input, self.now).into();
        while let Some(output) = waiting.pop_front() {
            if let Some(notice) = self.carry_out(output) {
                waiting.extend(self.node.handle(Input::DataPath(&notice), self.now));
            }
        }
    }

    /// What a data plane in this mood says about an output.
    fn carry_out(&mut self, output: Output) -> Option<Notice> {
        match (output, self.mood & 3) {
            (Output::Send { bytes, .. }, _) => {
                let message = pfcp::decode(&bytes).expect("what we say can be read");
                self.asked.insert(message.body.message_type() + 1, message.sequence);
                None
            }
            (Output::Put(put), 0 | 1) => {
                assert_eq!(put.rules.check(), Ok(()));
                self.sessions.push_front(put.session);
                self.sessions.truncate(4);
                Some(Notice::Applied { session: put.session, revision: put.revision, removed: vec![] })
            }
            (Output::Put(put), 2) => {
                let (cause, reason) = (RefusalCause::Full, String::new());
                Some(Notice::Refused { session: put.session, revision: put.revision, cause, reason })
            }
            (Output::Delete(session), 0..=2) => Some(Notice::Removed { session, usage: vec![] }),
            (Output::QueryUsage { session, urrs, token, .. }, 0 | 1) => {
                let bytes = self.now.since_zero().as_millis() as u64;
                let count = |urr: UrrId| UsageCounts { urr, uplink_bytes: bytes, ..UsageCounts::default() };
                let counts = urrs.into_iter().map(count).collect();
                Some(Notice::Usage { session, cause: UsageCause::Query(token), counts })
            }
            _ => None,
        }
    }

    fn hear(&mut self, line: &Line) {
        self.mood = line.mood;
        self.now = Time::from_millis(
            self.now.since_zero().as_millis() as u64 + PAUSES_MS[usize::from(line.mood >> 4 & 7)],
        );
        self.handle(Input::Tick);
        if line.mood & 0x80 != 0 {
            self.happen();
        }
        let from = SocketAddr::from(([10, 40, 0, 9 - (line.mood >> 2 & 3)], 8805));
        let datagram = Datagram::read(&line.bytes).and_then(|mut datagram| {
            datagram.number(*self.asked.get(&datagram.message_type())?);
            Some(datagram.write())
        });
        let is_answer = matches!(line.bytes.get(1), Some(2 | 6 | 8 | 13 | 57));
        let bytes = datagram.filter(|_| is_answer).unwrap_or(line.bytes.clone());
        self.handle(Input::Datagram { from, bytes: &bytes });
    }

    /// Packets come, tunnels and paths fail.
    fn happen(&mut self) {
        let Some(session) = self.sessions.front().copied() else { return };
        let counts = vec![UsageCounts { urr: UrrId(1), uplink_bytes: 1_000, ..UsageCounts::default() }];
        let interim =
            Notice::InterimUsage { counts: counts.iter().map(|counts| (session, *counts)).collect() };
        let usage = Notice::Usage { session, cause: UsageCause::VolumeThreshold, counts };
        let packet = Event::DownlinkData { session, pdr: PdrId(2), qfi: Qfi::new(9), traffic_class: 0 };
        let peer = [10, 30, 0, 1].into();
        let indication = Event::ErrorIndication { teid: rules::Teid(9), peer, towards: None };
        let macs = Notice::Macs { session, macs: vec![rules::SeenMac::untagged([2, 0, 0, 0, 0, 1])] };
        for notice in [usage, interim, Notice::Event(packet), Notice::Event(indication), macs] {
            self.handle(Input::DataPath(&notice));
        }
        let side = if self.mood & 2 == 0 { rules::Interface::Access } else { rules::Interface::Core };
        self.handle(Input::UserPlanePath { side, peer, is_up: self.mood & 4 != 0 });
    }

    /// All rules make sense, and no two sessions have one tunnel.
    fn check(&self) {
        let mut tunnels = HashMap::new();
        for desired in self.node.desired() {
            assert_eq!(desired.rules.check(), Ok(()));
            for f_teid in desired.rules.pdrs.iter().filter_map(|pdr| pdr.pdi.f_teid) {
                let other = tunnels.insert(f_teid, desired.session);
                assert!(other.is_none_or(|other| other == desired.session), "{f_teid:?} of two sessions");
            }
        }
        assert!(self.node.sessions() > 0 || self.node.tunnels() + self.node.addresses() == 0);
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut world = World::new();
    for line in &Script::read(bytes).lines {
        world.hear(line);
    }
    world.check();
});

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut dice = Dice::new(u64::from(seed));
    let script = data.get(..size).map(Script::read).filter(|script| !script.lines.is_empty());
    let Some(mut script) = script.filter(|_| !dice.once_in(8)) else {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    };
    (0..=dice.below(3)).for_each(|_| script.mutate(&mut dice));
    let bytes = script.write();
    match data.get_mut(..bytes.len()).filter(|_| bytes.len() <= max_size) {
        Some(place) => {
            place.copy_from_slice(&bytes);
            bytes.len()
        }
        None => libfuzzer_sys::fuzzer_mutate(data, size, max_size),
    }
});

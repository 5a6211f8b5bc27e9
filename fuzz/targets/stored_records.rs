//! Records of the session database as they may be after another version, a bug or a broken disk: those that can be read
//! are what a node starts with. The input is a list of records: what it is (one octet), its length (two), and its octets
//! as the database has them. The node starts, hears of the data plane that it has no sessions, and lives for some hours.

#![no_main]

use charging::ber::Context;
use charging::file::{self, Format};
use charging::{Cdr, Key, Rating, Zone};
use dplink::{Notice, UsageCause, UsageCounts};
use machine::Time;
use n4::{Charging, Config, Input, Node, Output, Predefined, PredefinedRule, Start};
use rules::{Seid, UrrId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use session::{
    AssociationRecord, LifeRecord, NodeRecord, Packed, PathRecord, PfdRecord, PredefinedRecord,
    SessionRecord, ToldRecord,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};

const STAMP: u32 = 0xE000_0001;
const SINCE_1900_MS: u64 = 0xE000_0100 * 1_000;
/// When the node is woken, in milliseconds.
const MOMENTS_MS: [u64; 8] = [0, 100, 2_000, 10_000, 61_000, 600_000, 3_700_000, 90_000_000];

fn config() -> Config {
    let address = Ipv4Addr::new(10, 40, 0, 2);
    let mut config = Config::new(pfcp::NodeId::Ipv4(address), address, Ipv4Addr::new(10, 30, 0, 2));
    let rules = ["video", "ads"].map(|name| PredefinedRule::new(name.to_owned())).to_vec();
    config.predefined = Predefined::new(rules, &[]).unwrap_or_default();
    let key = Key { rating_group: 1, service_id: None };
    let rating = Rating::new(Some(key), vec![], std::iter::empty()).unwrap_or_default();
    config.charging = Some(Charging { rating, ..Charging::default() });
    config
}

/// As the database reads one, which has to be written as it was read.
fn read<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(octets: &[u8]) -> Option<T> {
    let record: T = postcard::from_bytes(octets).ok()?;
    let written = postcard::to_stdvec(&record).expect("what was read can be written");
    assert_eq!(postcard::from_bytes::<T>(&written).as_ref(), Ok(&record));
    Some(record)
}

struct Stored {
    start: Start,
    sessions: BTreeMap<Seid, Packed>,
}

impl Stored {
    fn new() -> Self {
        let node = NodeRecord::new(STAMP);
        let start = Start::new(node, SINCE_1900_MS);
        Self { start, sessions: BTreeMap::new() }
    }

    fn take(&mut self, kind: u8, octets: &[u8]) {
        match kind % 9 {
            0 => self.sessions.extend(read(octets).map(packed)),
            1 => {
                let record: Option<AssociationRecord> = read(octets);
                let known =
                    |one: &AssociationRecord| Some(&one.node_id) == record.as_ref().map(|it| &it.node_id);
                self.start.associations.retain(|one| !known(one));
                self.start.associations.extend(record);
            }
            2 => self.start.pfds.extend(read::<PfdRecord>(octets)),
            3 => self.start.paths.extend(read::<PathRecord>(octets)),
            4 => self.start.told = read::<Vec<ToldRecord>>(octets).unwrap_or_default(),
            5 => self.start.node = read(octets).unwrap_or(self.start.node.clone()),
            6 => read(octets).into_iter().for_each(|cdr| write(&cdr)),
            7 => drop(read::<LifeRecord>(octets)),
            _ => drop(read::<PredefinedRecord>(octets)),
        }
    }
}

fn packed(record: SessionRecord) -> (Seid, Packed) {
    let packed = Packed::of(&record);
    assert_eq!((packed.record().ok().as_ref(), packed.era()), (Some(&record), Some(record.era)));
    (record.seid, packed)
}

/// Records wait in the database for a file.
fn write(cdr: &Cdr) {
    let zone = Zone::Fixed(60);
    for format in [Format::Pgw, Format::Chf, Format::Json] {
        assert!(!file::record(cdr, format, Context { node: "upf.example", zone: &zone }).is_empty());
    }
}

/// What a data plane that has lost everything says about an output.
fn obey(output: Output) -> Option<Notice> {
    match output {
        Output::Put(put) if put.rules.check().is_ok() => {
            Some(Notice::Applied { session: put.session, revision: put.revision, removed: vec![] })
        }
        Output::Delete(session) => Some(Notice::Removed { session, usage: vec![] }),
        Output::QueryUsage { session, urrs, token, .. } => {
            let count = |urr: UrrId| UsageCounts { urr, uplink_bytes: u64::MAX, ..UsageCounts::default() };
            let counts = urrs.into_iter().map(count).collect();
            Some(Notice::Usage { session, cause: UsageCause::Query(token), counts })
        }
        Output::SaveSession(seid, packed) => {
            assert_eq!(packed.record().map(|record| record.seid).ok(), Some(seid));
            None
        }
        _ => None,
    }
}

fn handle(node: &mut Node, input: Input<'_>, now: Time) {
    let mut waiting: VecDeque<Output> = node.handle(input, now).into();
    // Whatever was stored, it comes to an end.
    for _ in 0..10_000 {
        let Some(output) = waiting.pop_front() else { return };
        if let Some(notice) = obey(output) {
            waiting.extend(node.handle(Input::DataPath(&notice), now));
        }
    }
    panic!("the node and the data plane have no end to tell each other");
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut stored = Stored::new();
    let mut rest = bytes;
    while let [kind, high, low, more @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(more.len());
        let (octets, behind) = more.split_at(length);
        stored.take(*kind, octets);
        rest = behind;
    }
    let Stored { mut start, sessions } = stored;
    start.sessions = sessions.into_values().collect();
    let mut node = Node::new(config(), start);
    let hello = Notice::Hello { version: dplink::VERSION, sessions: 0, epoch: 1, content: 0 };
    handle(&mut node, Input::DataPath(&hello), Time::ZERO);
    for moment_ms in MOMENTS_MS {
        let now = Time::from_millis(moment_ms);
        handle(&mut node, Input::Tick, now);
        let heartbeat = [0x20, 1, 0, 12, 0, 0, 1, 0, 0, 96, 0, 4, 0xE0, 0, 0, 1];
        let from = SocketAddr::from(([10, 40, 0, 9], 8805));
        handle(&mut node, Input::Datagram { from, bytes: &heartbeat }, now);
    }
    node.desired().for_each(drop);
});

//! From packets to files of charging records, through processes that die anywhere.

use crate::common::billing::*;
use crate::common::{Lab, SMF, STAMP, config};
use ::charging::file::{self, Format};
use ::charging::spool::{Folder, Kept, Now, Settings, Spool};
use ::charging::{Cdr, Key, OWN_METERS, Policy, Rating};
use machine::Time;
use n4::{Charging, Config};
use proptest::prelude::*;
use rules::Seid;
use std::collections::BTreeMap;
use std::time::Duration;

/// A folder in memory that refuses everything after so many operations, and may leave a half-written file.
#[derive(Default)]
struct Memory {
    files: BTreeMap<String, Vec<u8>>,
    left: usize,
}

impl Memory {
    fn step(&mut self) -> Result<(), &'static str> {
        self.left = self.left.checked_sub(1).ok_or("dead")?;
        Ok(())
    }
}

impl Folder for Memory {
    type Error = &'static str;

    fn list(&self) -> Result<Vec<String>, Self::Error> {
        Ok(self.files.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Self::Error> {
        Ok(self.files.get(name).cloned())
    }

    fn write(&mut self, name: &str, octets: &[u8]) -> Result<(), Self::Error> {
        if let Err(error) = self.step() {
            self.files.insert(name.to_owned(), octets[..octets.len() / 2].to_vec());
            return Err(error);
        }
        self.files.insert(name.to_owned(), octets.to_vec());
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), Self::Error> {
        self.step()?;
        let octets = self.files.remove(from).ok_or("there is no such file")?;
        self.files.insert(to.to_owned(), octets);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), Self::Error> {
        self.step()?;
        self.files.remove(name);
        Ok(())
    }
}

const FORMATS: [Format; 3] = [Format::Pgw, Format::Chf, Format::Json];

/// A whole node: the PFCP machine, the records its database holds, and the spool.
struct Whole {
    lab: Lab,
    session: Seid,
    database: BTreeMap<u64, Cdr>,
    /// The last that it has forgotten.
    filed: Option<u64>,
    seen: usize,
    folder: Memory,
    spool: Option<Spool>,
}

impl Whole {
    fn new() -> Self {
        let policy = Policy { volume_limit_bytes: 9_000, containers: 3, ..Policy::default() };
        let rating = Rating::new(Some(Key { rating_group: 1, service_id: None }), vec![], []).unwrap();
        let charging = Some(Charging { rating, policy });
        let mut lab = Lab::associated_with(Config { charging, ..config() });
        let session = lab.establish(metered(77, vec![]));
        let (database, folder) = (BTreeMap::new(), Memory { left: usize::MAX, ..Memory::default() });
        let mut whole = Self { lab, session, database, filed: None, seen: 0, folder, spool: None };
        whole.open();
        whole
    }

    fn open(&mut self) {
        let settings = Settings {
            node: "upf".to_owned(),
            address: crate::common::US.into(),
            zone: charging::Zone::default(),
            formats: FORMATS.to_vec(),
            file_age: Duration::from_millis(1),
            file_cdrs: 2,
            file_bytes: 1 << 20,
            stream: STAMP,
        };
        let kept = Kept { waiting: self.database.values().cloned().collect(), filed: self.filed };
        self.spool = Spool::open(settings, &mut self.folder, kept, Time::ZERO).ok();
    }

    /// What was closed meanwhile goes into files; whether the process lived through it. `forgets` is whether it lived to
    /// forget what is durable.
    fn write(&mut self, left: usize, forgets: bool) -> bool {
        self.folder.left = left;
        for cdr in &self.lab.cdrs[self.seen..] {
            self.database.insert(cdr.serial, cdr.clone());
            self.spool.iter_mut().for_each(|spool| spool.add(cdr.clone(), Time::ZERO));
        }
        self.seen = self.lab.cdrs.len();
        let Some(spool) = &mut self.spool else { return false };
        let now = Now { time: Time::from_millis(10), wall_ms: 10 };
        loop {
            match spool.rotate(&mut self.folder, true, now) {
                Ok(None) => return true,
                Ok(Some(durable)) if forgets => {
                    self.database.retain(|serial, _| !(durable.first..=durable.last).contains(serial));
                    self.filed = Some(durable.last);
                }
                Ok(Some(_)) | Err(_) => return false,
            }
        }
    }

    /// Another process in the place of one that died.
    fn restart(&mut self, left: usize) {
        self.folder.left = left;
        self.lab.restart();
        self.open();
    }

    /// Bytes each way in all files of a format, and how many records there are.
    fn filed(&self, format: Format) -> ((u64, u64), usize) {
        let ending = format!("_-_{}.", format.name());
        let files = self.folder.files.iter().filter(|(name, _)| name.contains(&ending));
        let records: Vec<_> = files.flat_map(|(_, octets)| file::read(octets).unwrap().records).collect();
        let containers = records.iter().flat_map(|record| &record.containers);
        let sum = containers.fold((0, 0), |sum, it| (sum.0 + it.uplink_bytes, sum.1 + it.downlink_bytes));
        (sum, records.len())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Sessions come and go, notices get lost, either process dies, files are half written: in the end the files of each
    /// format hold what was counted, once.
    #[test]
    fn files_hold_what_was_counted_once(
        steps in prop::collection::vec((0u8..9, 0u64..4_000, 0usize..40, any::<bool>()), 1..40),
    ) {
        let mut whole = Whole::new();
        for (what, bytes, left, flag) in steps {
            whole.lab.sent.clear();
            match what {
                0 => whole.restart(left),
                1 => seconds(&mut whole.lab, bytes),
                2 => {
                    seconds(&mut whole.lab, 11);
                    whole.lab.restart_plane();
                }
                3 => {
                    whole.lab.delete(whole.session);
                    whole.session = whole.lab.establish(metered(77, vec![]));
                }
                4 => {
                    // The control plane has lost its sessions: whatever its stamp was, it is another.
                    whole.lab.associate(SMF, 100 + bytes as u32);
                    if whole.lab.node.sessions() == 0 {
                        whole.session = whole.lab.establish(metered(77, vec![]));
                    }
                }
                _ => whole.lab.traffic(whole.session, (bytes, bytes / 2), flag),
            }
            if !whole.write(left, flag) {
                whole.restart(usize::MAX);
            }
        }
        whole.lab.sent.clear();
        whole.lab.delete(whole.session);
        whole.restart(usize::MAX);
        prop_assert!(whole.write(usize::MAX, true));
        let own = whole.lab.plane.counted.iter().filter(|(urr, _)| urr.0 >= OWN_METERS);
        let counted = own.fold((0, 0), |sum, (_, bytes)| (sum.0 + bytes.0, sum.1 + bytes.1));
        for format in FORMATS {
            prop_assert_eq!(whole.filed(format), (counted, whole.lab.cdrs.len()));
        }
        prop_assert!(whole.database.is_empty());
    }
}

/// The file of records that were never made would be nowhere.
#[test]
fn the_test_above_would_notice_a_record_that_is_missing() {
    let mut whole = Whole::new();
    whole.lab.traffic(whole.session, (10, 20), true);
    whole.lab.delete(whole.session);
    assert_eq!(whole.filed(Format::Chf), ((0, 0), 0));
    assert!(whole.write(usize::MAX, true));
    assert_eq!(whole.filed(Format::Chf), ((10, 20), 1));
}

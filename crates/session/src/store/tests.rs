//! What is kept, what is not, and what becomes of what cannot be read.

use super::*;
use crate::{CpFSeid, EndingSet, PeerNews, SessionRecord, UsageRecord};
use machine::Clock;
use rules::{Interface, Rules};

fn session(seid: u64, revision: u64) -> SessionRecord {
    SessionRecord {
        era: 0,
        seid: Seid(seid),
        revision,
        owner: "smf.example".to_owned(),
        cp_f_seid: CpFSeid { seid: 7, address: [10, 40, 0, 1].into() },
        rules: Rules::default().into(),
        usage: UsageRecord::default(),
        extras: None,
        charging: None,
    }
}

fn save(seid: u64, revision: u64) -> Change {
    Change::SaveSession(Seid(seid), Packed::of(&session(seid, revision)))
}

fn cdr(serial: u64) -> Cdr {
    let session = charging::Session {
        seid: 1,
        owner: "smf.example".to_owned(),
        cp_seid: 7,
        cp_address: [10, 40, 0, 1].into(),
        serving_nodes: vec![],
        user: charging::User::default(),
    };
    let mut account = charging::Account::new(session, &charging::Policy::default(), Clock::at(1));
    Cdr { serial, ..account.end(&[], charging::Cause::NormalRelease, 2).remove(0) }
}

#[test]
fn charging_data_records_stay_until_they_are_erased_and_their_numbers_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::open(folder.path()).unwrap().0;
    open().apply(&[256, 255, 257].map(|serial| Change::SaveCdr(cdr(serial)))).unwrap();
    let contents = open().load().unwrap();
    assert_eq!(contents.cdrs.iter().map(|cdr| cdr.serial).collect::<Vec<_>>(), [255, 256, 257]);
    assert_eq!(contents.filed_cdr, None);
    open().apply(&[Change::EraseCdrs(255, 256), Change::SkipCdr(258)]).unwrap();
    let contents = open().load().unwrap();
    assert_eq!((contents.cdrs, contents.last_cdr, contents.filed_cdr), (vec![cdr(257)], 258, Some(256)));
}

#[test]
fn it_is_kept_how_many_records_were_lost_and_since_when() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::open(folder.path()).unwrap().0;
    assert_eq!(open().load().unwrap().lost_cdrs, LostCdrs::default());
    let lost = LostCdrs::default().and(5, 1_000).and(6, 2_000);
    assert_eq!(lost, LostCdrs { records: 2, bytes: 11, first_ms: 1_000, last_ms: 2_000 });
    open().apply(&[Change::SkipCdr(258), Change::SaveLost(lost)]).unwrap();
    assert_eq!(open().load().unwrap().lost_cdrs, lost);
}

fn pfds(application: &str, octet: u8) -> PfdRecord {
    let owner = "smf.example".to_owned();
    PfdRecord { application: application.to_owned(), owner, pfds: vec![vec![vec![octet]]] }
}

fn association() -> AssociationRecord {
    AssociationRecord {
        era: 1,
        ends_ms: Some(4_000_000_000_000),
        ending_sets: vec![EndingSet { fq_csid: vec![1, 10, 0, 0, 7, 0, 1], last: Seid(u64::MAX) }],
        set_up_ms: 3_900_000_000_001,
        named_ms: 3_900_000_000_002,
        capabilities: u64::MAX - 1,
        node_id: "smf.example".to_owned(),
        address: ([10, 40, 0, 1], 8805).into(),
        recovery_time_stamp: 3_900_000_000,
        features: vec![1],
        set_id: vec![],
        alternatives: vec![],
        preferred: 1,
        answers_heartbeats: true,
        unconfirmed: PeerNews { restarted: vec![[10, 30, 0, 1].into()], recovered: vec![] },
    }
}

fn predefined(name: &str, text: &str) -> PredefinedRecord {
    PredefinedRecord { name: name.to_owned(), text: text.to_owned() }
}

fn told(whole: u64) -> ToldRecord {
    ToldRecord { name: "ads".to_owned(), whole, qers: 7 }
}

fn path(host: u8) -> PathRecord {
    PathRecord { side: Interface::Access, peer: [10, 30, 0, host].into() }
}

#[test]
fn what_was_applied_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let node = NodeRecord {
        recovery_time_stamp: 1,
        leaves_ms: Some(4_000_000_000_000),
        clock_ahead_ms: -7,
        reserved_seids: 9,
        reserved_sequences: Some(9),
    };
    let changes = [
        Change::SaveNode(node),
        Change::SaveNodeId("10.40.0.2".to_owned()),
        Change::SaveNodeId("upf.example".to_owned()),
        Change::SaveAssociation(association()),
        Change::SavePfds(pfds("video", 1)),
        Change::SavePfds(pfds("video", 2)),
        Change::SavePfds(pfds("voice", 1)),
        Change::ErasePfds("voice".to_owned()),
        Change::SavePredefined(predefined("ads", "first")),
        Change::SavePredefined(predefined("ads", "second")),
        Change::SavePredefined(predefined("video", "")),
        Change::ErasePredefined("video".to_owned()),
        Change::SaveTold(vec![told(1), told(2)]),
        Change::SaveTold(vec![told(3)]),
        Change::SavePath(path(1)),
        Change::SavePath(path(2)),
        Change::ErasePath(path(1)),
        save(1, 1),
        save(2, 1),
        save(2, 2),
        Change::EraseSession(Seid(1)),
    ];
    Store::open(folder.path()).unwrap().0.apply(&changes).unwrap();
    let contents = Store::open(folder.path()).unwrap().0.load().unwrap();
    let expected = Contents {
        node: Some(node),
        node_id: Some("upf.example".to_owned()),
        associations: vec![association()],
        pfds: vec![pfds("video", 2)],
        predefined: vec![predefined("ads", "second")],
        told: vec![told(3)],
        paths: vec![path(2)],
        sessions: vec![Packed::of(&session(2, 2))],
        ..Contents::default()
    };
    assert_eq!(contents, expected);
}

#[test]
fn erased_records_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap().0;
    store.apply(&[Change::SaveAssociation(association()), save(1, 1)]).unwrap();
    let erase = [Change::EraseAssociation("smf.example".to_owned()), Change::EraseSession(Seid(1))];
    store.apply(&erase).unwrap();
    assert_eq!(store.load().unwrap(), Contents::default());
}

#[test]
fn a_packed_record_is_the_record() {
    assert_eq!(Packed::of(&session(1, 7)).record().unwrap(), session(1, 7));
    let named = SessionRecord { era: 70_000, ..session(1, 7) };
    assert_eq!((Packed::of(&named).era(), Packed::default().era()), (Some(70_000), None));
    for length in [400, 450, 500, 550, 5_000] {
        let long = SessionRecord { owner: "x".repeat(length), ..session(1, 7) };
        assert_eq!(Packed::of(&long).record().unwrap(), long);
    }
}

#[test]
fn records_that_cannot_be_read_are_told_and_the_others_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap().0;
    store.apply(&[save(1, 1), Change::SaveSession(Seid(2), Packed::default()), save(3, 1)]).unwrap();
    store.apply(&[Change::SaveAssociation(association()), Change::SaveCdr(cdr(7))]).unwrap();
    let damage = |open: &Open| {
        open.associations.insert("other.example", [0xff])?;
        Ok(open.cdrs.insert(8_u64.to_be_bytes(), [0xff])?)
    };
    store.with(damage).unwrap();
    let contents = store.load().unwrap();
    assert_eq!(contents.sessions, [1, 3].map(|seid| Packed::of(&session(seid, 1))));
    assert_eq!((contents.associations, contents.cdrs), (vec![association()], vec![cdr(7)]));
    let damaged = [
        Change::EraseAssociation("other.example".to_owned()),
        Change::EraseSession(Seid(2)),
        Change::LoseCdr(8),
    ];
    assert_eq!(contents.damaged, damaged);
    store.apply(&damaged).unwrap();
    let contents = store.load().unwrap();
    assert_eq!((contents.damaged, contents.filed_cdr), (vec![], None), "it is in no file");
}

#[test]
fn a_database_of_another_format_is_set_aside() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("sessions");
    for number in 1..=2 {
        let (store, none) = Store::open(&folder).unwrap();
        store.apply(&[save(1, 1)]).unwrap();
        store.with(|open| Ok(open.node.insert(FORMAT_KEY, [FORMAT[0] + 1])?)).unwrap();
        drop(store);
        let (store, aside) = Store::open(&folder).unwrap();
        assert_eq!((none, aside), (None, Some(folder.with_extension(format!("other-version-{number}")))));
        assert_eq!(store.load().unwrap(), Contents::default());
    }
}

#[test]
fn a_database_that_is_opened_again_has_what_it_had() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap().0;
    store.apply(&[save(1, 1)]).unwrap();
    store.reopen().unwrap();
    store.apply(&[save(2, 1)]).unwrap();
    assert_eq!(store.load().unwrap().sessions, [1, 2].map(|seid| Packed::of(&session(seid, 1))));
}

/// `mount -t tmpfs -o size=1m tmpfs DIR` makes a small one for `TMPDIR=DIR`.
#[test]
#[ignore = "needs TMPDIR on a file system with less than 8 MiB"]
fn a_full_disk_loses_nothing_that_was_applied() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("sessions")).unwrap().0;
    store.apply(&[save(1, 1)]).unwrap();
    let filler = folder.path().join("filler");
    let _ = std::fs::write(&filler, vec![0; 8 << 20]);
    let many: Vec<Change> = (2..2_000).map(|seid| save(seid, 1)).collect();
    store.apply(&many).unwrap_err();
    let reopened = store.reopen();
    assert!(reopened.is_err() || store.apply(&many).is_err());
    std::fs::remove_file(&filler).unwrap();
    store.reopen().unwrap();
    assert_eq!(store.load().unwrap().sessions, [Packed::of(&session(1, 1))]);
    store.apply(&[save(2, 1)]).unwrap();
    store.reopen().unwrap();
    assert_eq!(store.load().unwrap().sessions.len(), 2);
}

/// What is there can be gone on with; what is new cannot be kept.
#[test]
#[ignore = "needs TMPDIR on a file system with less than 8 MiB"]
fn a_full_disk_is_opened_where_there_is_a_database() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("sessions");
    Store::open(&folder).unwrap().0.apply(&[save(1, 1)]).unwrap();
    let _ = std::fs::write(above.path().join("filler"), vec![0; 8 << 20]);
    let store = Store::open(&folder).unwrap().0;
    assert_eq!(store.load().unwrap().sessions, [Packed::of(&session(1, 1))]);
    store.sync().unwrap();
    let many: Vec<Change> = (2..2_000).map(|seid| save(seid, 1)).collect();
    store.apply(&many).unwrap_err();
    let Err(error) = Store::open(&above.path().join("new")) else { panic!("there is no room for it") };
    assert!(error.to_string().contains("No space left on device"), "{error}");
}

#[test]
fn a_database_that_another_has_open_is_said_to_be_so() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(folder.path()).unwrap();
    let second = Store::open(folder.path()).err().unwrap();
    assert!(matches!(&second, StoreError::Locked(of) if of == folder.path()), "{second}");
    drop(store);
    assert!(Store::open(folder.path()).is_ok());
}

/// What comes and goes, as sessions do, leaves nothing behind that a start would have to read for long.
#[test]
fn journals_do_not_grow_by_what_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap().0;
    let long = SessionRecord { owner: "x".repeat(4_000), ..session(1, 1) };
    for round in 0..25_u64 {
        for first in (0..2_000_u64).step_by(50) {
            let seids = first..first + 50;
            let save = |seid| {
                Change::SaveSession(
                    Seid(seid),
                    Packed::of(&SessionRecord { revision: round, ..long.clone() }),
                )
            };
            store.apply(&seids.clone().map(save).collect::<Vec<_>>()).unwrap();
            store.apply(&seids.map(|seid| Change::EraseSession(Seid(seid))).collect::<Vec<_>>()).unwrap();
        }
    }
    let files = std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
    let journals = files.filter(|file| file.path().extension().is_some_and(|extension| extension == "jnl"));
    let bytes: u64 = journals.map(|file| file.metadata().unwrap().len()).sum();
    // One that is written, one that goes into tables, and perhaps one more meanwhile.
    assert!(bytes <= 3 * JOURNALS_MAX, "{bytes} bytes of journals, of 200 MB written");
}

#[test]
fn what_the_system_refuses_is_no_damage() {
    let told = |kind| {
        let error = StoreError::from(fjall::Error::Io(kind));
        (error.is_damage(), error.refused(), error.to_string())
    };
    for kind in [ErrorKind::PermissionDenied, ErrorKind::StorageFull, ErrorKind::Other] {
        let said = format!("the session database cannot be used: {}", io::Error::from(kind));
        assert_eq!(told(kind.into()), (false, Some(kind), said));
    }
    assert!(told(ErrorKind::NotFound.into()).0 && told(ErrorKind::UnexpectedEof.into()).0);
    let lost = StoreError::from(fjall::Error::Unrecoverable);
    assert_eq!((lost.is_damage(), lost.refused()), (true, None));
    assert_eq!(lost.to_string(), "the session database cannot be used: Unrecoverable");
}

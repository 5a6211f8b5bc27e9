use super::*;
use session::{AssociationRecord, ChargingRecord, CpFSeid, PfdRecord, UsageRecord};

const SEID: rules::Seid = rules::Seid(7);
const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 30, 0, 2));
const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 30, 0, 3));

/// As the node of these tests.
fn begin(store: &Store, boot: &str, endpoints: Vec<IpAddr>) -> anyhow::Result<Begun> {
    super::begin(store, boot, Identity { node_id: "10.40.0.2".to_owned(), endpoints })
}

/// The same, by another Node ID.
fn begin_renamed(store: &Store, boot: &str) -> anyhow::Result<Begun> {
    super::begin(store, boot, Identity { node_id: "upf.example".to_owned(), endpoints: vec![HERE] })
}

fn session(charging: Option<Box<ChargingRecord>>) -> SessionRecord {
    SessionRecord {
        era: 0,
        seid: SEID,
        revision: 1,
        owner: "smf.example".to_owned(),
        cp_f_seid: CpFSeid { seid: 7, address: [10, 40, 0, 1].into() },
        rules: rules::Rules::default().into(),
        usage: UsageRecord::default(),
        extras: None,
        charging,
    }
}

fn charged() -> Option<Box<ChargingRecord>> {
    let session = ::charging::Session {
        seid: SEID.0,
        owner: "smf.example".to_owned(),
        cp_seid: 7,
        cp_address: [10, 40, 0, 1].into(),
        serving_nodes: vec![],
        user: ::charging::User::default(),
    };
    let account = ::charging::Account::new(session, &::charging::Policy::default(), machine::Clock::at(1));
    Some(Box::new(ChargingRecord { account, own: vec![] }))
}

fn association() -> AssociationRecord {
    AssociationRecord {
        era: 0,
        ends_ms: None,
        ending_sets: vec![],
        set_up_ms: 0,
        named_ms: 0,
        capabilities: 0,
        node_id: "smf.example".to_owned(),
        address: ([10, 40, 0, 1], 8805).into(),
        recovery_time_stamp: 1,
        features: vec![],
        set_id: vec![],
        alternatives: vec![],
        preferred: 0,
        answers_heartbeats: false,
        unconfirmed: session::PeerNews::default(),
    }
}

fn pfds() -> PfdRecord {
    PfdRecord { application: "video".to_owned(), owner: "smf.example".to_owned(), pfds: vec![] }
}

/// A database that was in use in this life of the machine.
fn in_use(store: &Store, boot: &str, record: &SessionRecord) -> Begun {
    let begun = begin(store, boot, vec![HERE]).unwrap();
    let session = Change::SaveSession(record.seid, Packed::of(record));
    store.apply(&[session, Change::SaveAssociation(association()), Change::SavePfds(pfds())]).unwrap();
    begun
}

#[test]
fn a_control_plane_that_starts_again_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap().0;
    let before = in_use(&store, "one", &session(None));
    let after = begin(&store, "one", vec![HERE]).unwrap();
    assert_eq!(after.start.node, before.start.node);
    assert_eq!(after.start.sessions, [Packed::of(&session(None))]);
    assert_eq!((after.start.associations, after.start.pfds), (vec![association()], vec![pfds()]));
}

#[test]
fn so_does_one_that_ended_before_the_machine_did() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap().0;
    let before = in_use(&store, "one", &session(None));
    end(&store, before.life);
    let after = begin(&store, "two", vec![HERE]).unwrap();
    assert_eq!((after.start.node, after.start.sessions.len()), (before.start.node, 1));
    // This time it has not.
    assert_eq!(begin(&store, "three", vec![HERE]).unwrap().start.sessions, []);
}

#[test]
fn after_a_crash_of_the_machine_control_planes_are_told_that_sessions_were_lost() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap().0;
    let before = in_use(&store, "one", &session(None));
    let after = begin(&store, "two", vec![HERE]).unwrap();
    let (old, new) = (before.start.node.recovery_time_stamp, after.start.node.recovery_time_stamp);
    assert!(new > old, "{new} is not later than {old}");
    let start = after.start;
    assert_eq!((start.sessions, start.associations, start.pfds), (vec![], vec![], vec![]));
    assert_eq!(start.forgotten, [association().address], "some control planes ask for no heartbeats");
    let kept = begin(&store, "two", vec![HERE]).unwrap().start;
    assert_eq!((kept.node.recovery_time_stamp, kept.sessions, kept.associations), (new, vec![], vec![]));
}

#[test]
fn what_an_operator_has_put_is_there_after_a_crash_of_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap().0;
    in_use(&store, "one", &session(None));
    let record = PredefinedRecord { name: "ads".to_owned(), text: "[[n4.predefined_rule]]".to_owned() };
    store.apply(&[Change::SavePredefined(record.clone())]).unwrap();
    for boot in ["one", "two"] {
        let kept = begin(&store, boot, vec![HERE]).unwrap().predefined;
        assert_eq!(kept, std::slice::from_ref(&record), "{boot}");
    }
}

#[test]
fn what_was_charged_before_the_crash_is_charged_for_the_last_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap().0;
    let before = in_use(&store, "one", &session(charged()));
    let after = begin(&store, "two", vec![HERE]).unwrap();
    assert_eq!(after.life.stream, before.life.stream, "records go on in the stream they are numbered in");
    let left = after.start.sessions.first().unwrap().record().unwrap();
    assert!(left.usage.is_over && left.charging.is_some());
}

fn with_tunnel() -> SessionRecord {
    let mut record = session(None);
    let pdi = rules::Pdi {
        source_interface: rules::Interface::Access,
        instance: rules::Instance::DEFAULT,
        f_teid: Some(rules::FTeid { teid: rules::Teid(7), address: HERE }),
        ue_ipv4: None,
        ue_ipv6: None,
        framed_routes: vec![],
        sdf_filters: vec![],
        application: None,
        ethernet: None,
        qfis: vec![],
    };
    std::sync::Arc::make_mut(&mut record.rules).pdrs.push(rules::Pdr {
        id: rules::PdrId(1),
        precedence: 1,
        outer_header_removal: true,
        pdi,
        far: rules::FarId(1),
        qers: vec![].into(),
        urrs: vec![].into(),
    });
    record
}

/// What is known is kept: sessions tell what they used, and others go on.
#[test]
fn a_node_with_other_addresses_says_that_it_began_anew() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap().0;
    let before = in_use(&store, "one", &with_tunnel()).start.node.recovery_time_stamp;
    let begin = |endpoints: &[IpAddr]| begin(&store, "one", endpoints.to_vec()).unwrap().start;
    assert_eq!(begin(&[HERE, THERE]).node.recovery_time_stamp, before, "one more is no loss");
    let moved = begin(&[THERE]);
    let stamp = moved.node.recovery_time_stamp;
    assert!(stamp > before, "{stamp} is not later than {before}");
    assert_eq!((moved.sessions, moved.associations.len()), (vec![Packed::of(&with_tunnel())], 1));
    assert_eq!(begin(&[THERE]).node.recovery_time_stamp, stamp, "once is enough");
}

#[test]
fn an_address_that_no_session_has_a_tunnel_at_may_go() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap().0;
    let before = in_use(&store, "one", &session(None)).start.node;
    assert_eq!(begin(&store, "one", vec![THERE]).unwrap().start.node, before);
}

fn noted(store: &Store) -> Option<String> {
    store.load().unwrap().node_id
}

#[test]
fn what_is_known_under_another_node_id_is_not_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap().0;
    in_use(&store, "one", &session(None));
    let said = format!("{:#}", begin_renamed(&store, "one").err().unwrap());
    for part in [
        "1 association(s) and 1 session(s)",
        "under node.id 10.40.0.2, and node.id is upf.example now",
        "--wait",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    let kept = begin(&store, "one", vec![HERE]).unwrap().start;
    assert_eq!((kept.sessions.len(), kept.associations.len()), (1, 1), "to refuse it loses nothing");
}

#[test]
fn either_an_association_or_a_session_holds_the_node_to_its_node_id() {
    let erased = [Change::EraseSession(SEID), Change::EraseAssociation(association().node_id)];
    for one in &erased {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap().0;
        in_use(&store, "one", &session(None));
        store.apply(std::slice::from_ref(one)).unwrap();
        assert!(begin_renamed(&store, "one").is_err(), "{one:?}");
        store.apply(&erased).unwrap();
        begin_renamed(&store, "one").unwrap();
        assert_eq!(noted(&store).as_deref(), Some("upf.example"), "whatever comes is under that");
    }
}

#[test]
fn a_session_that_only_has_to_be_charged_may_be_of_another_node_id() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap().0;
    let mut over = session(charged());
    over.usage.is_over = true;
    in_use(&store, "one", &over);
    store.apply(&[Change::EraseAssociation(association().node_id)]).unwrap();
    assert_eq!(begin_renamed(&store, "one").unwrap().start.sessions, [Packed::of(&over)]);
}

#[test]
fn what_a_crash_of_the_machine_ends_holds_it_to_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap().0;
    in_use(&store, "one", &session(None));
    assert_eq!(begin_renamed(&store, "two").unwrap().start.sessions, []);
    assert_eq!(noted(&store).as_deref(), Some("upf.example"));
}

/// Nobody knows under which they were made: most likely it has not changed.
#[test]
fn a_database_that_does_not_say_the_node_id_is_gone_on_with_and_says_it_from_then_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap().0;
    let life = LifeRecord { boot: "one".to_owned(), is_closed: false, stream: 1, endpoints: vec![HERE] };
    let node = NodeRecord::new(1);
    let kept = Change::SaveSession(SEID, Packed::of(&session(None)));
    store.apply(&[Change::SaveNode(node), Change::SaveLife(life), kept]).unwrap();
    assert_eq!(noted(&store), None);
    assert_eq!(begin(&store, "one", vec![HERE]).unwrap().start.sessions.len(), 1);
    assert_eq!(noted(&store).as_deref(), Some("10.40.0.2"));
    assert!(begin_renamed(&store, "one").is_err());
}

/// Nothing has to be written to go on in the same life of the machine.
#[test]
#[ignore = "needs TMPDIR on a file system with less than 8 MiB"]
fn a_full_disk_keeps_nobody_from_going_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions");
    in_use(&Store::open(&path).unwrap().0, "one", &session(None));
    let _ = fs::write(folder.path().join("filler"), vec![0; 8 << 20]);
    let store = Store::open(&path).unwrap().0;
    let start = begin(&store, "one", vec![HERE]).unwrap().start;
    assert_eq!((start.sessions, start.associations), (vec![Packed::of(&session(None))], vec![association()]));
}

#[test]
fn a_second_node_with_the_same_state_is_told_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let state_dir = format!("{:?}", folder.path());
    let text =
        include_str!("../../../../../config/upf.toml").replacen("\"/var/lib/anchorline\"", &state_dir, 1);
    let settings = Settings::parse(&text).unwrap();
    let _first = open(&settings).unwrap();
    let said = format!("{:#}", open(&settings).err().unwrap());
    assert!(
        said.starts_with("another node uses ") && said.ends_with("; stop it or change node.state_dir"),
        "{said}"
    );
}

/// One of the files of a database.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Whichever of its files is away or empty: it is opened, or the sentence says what to do.
#[test]
fn a_database_that_is_damaged_is_told_of_with_its_folder_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let text = include_str!("../../../../../config/upf.toml");
    let text = text.replacen("\"/var/lib/anchorline\"", &format!("{:?}", folder.path()), 1);
    let settings = Settings::parse(&text).unwrap();
    in_use(&open(&settings).unwrap(), "one", &session(None));
    let [sessions, whole] = ["sessions", "whole"].map(|name| folder.path().join(name));
    let copy = |from: &Path, to: &Path| {
        let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status().unwrap();
        assert!(copied.success());
    };
    copy(&sessions, &whole);
    let damages: [fn(&Path) -> std::io::Result<()>; 3] =
        [|path| fs::remove_file(path), |path| fs::write(path, b""), |path| fs::write(path, [0xa5; 64])];
    let mut refused = 0;
    for file in files(&sessions) {
        for damage in damages {
            // Who opens it changes its files.
            fs::remove_dir_all(&sessions).unwrap();
            copy(&whole, &sessions);
            damage(&file).unwrap();
            let opened = open(&settings).and_then(|store| Ok(store.load().map(drop)?));
            let said = opened.map_err(|error| format!("{:#}", unusable(&settings, error)));
            if let Err(said) = said {
                refused += 1;
                assert!(
                    said.starts_with(&format!("node.state_dir {} cannot", folder.path().display())),
                    "{said}"
                );
                let advice = format!("move {} away, and one is made anew", sessions.display());
                assert!(said.matches(&advice).count() == 1 && !said.contains("Os {"), "{said}");
            }
        }
    }
    assert!(refused > 2, "{refused} refused");
}

#[test]
fn sessions_that_are_over_are_not_among_those_that_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap().0;
    in_use(&store, "one", &session(None));
    let mut over = SessionRecord { seid: rules::Seid(8), ..session(None) };
    over.usage.is_over = true;
    store.apply(&[Change::SaveSession(over.seid, Packed::of(&over))]).unwrap();
    let start = begin(&store, "one", vec![HERE]).unwrap().start;
    let (kept, associations) = (start.sessions.len(), start.associations.len());
    let settings = Settings::parse(include_str!("../../../../../config/upf.toml")).unwrap();
    let node = n4::Node::new(crate::cpe::config(&settings).unwrap(), start);
    assert_eq!(
        in_database((kept, node.sessions()), associations),
        "1 sessions and 1 associations in the database, and 1 sessions that are over, kept for their last answers or reports"
    );
    assert_eq!(in_database((7, 7), 1), "7 sessions and 1 associations in the database");
}

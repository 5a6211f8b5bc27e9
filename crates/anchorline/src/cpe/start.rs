//! Where the node goes on: the session database, and whether it has all that was ever said to be in it.
//!
//! What is applied to the database survives the end of the process, at whatever moment, but not that of the machine: to
//! sync it before each answer costs what a disk takes for it, many times a request's time. So the database says in which life of the
//! machine it was used last, and whether all of it was synced then. Where a crash may have taken changes from it, sessions
//! that control planes count on may be missing, and ones that they ended may be there. Such a start is one of a new
//! database: with another recovery time stamp, by which control planes learn of it (TS 23.007 19A, TS 23.527 4.3.2), and
//! without sessions, of which none is in any data plane after that either.
//!
//! A node whose ports have other addresses than before cannot take back sessions with tunnels at those that are gone, and
//! few of them measure anything that would let their control planes hear of it. So it has another recovery time stamp then, too, but
//! keeps what it knows: what sessions used is told, and those whose tunnels are still there go on until their control
//! planes set them up anew.

use crate::exit;
use crate::settings::Settings;
use ::charging::Cdr;
use anyhow::Context;
use n4::Start;
use session::{Change, Contents, LifeRecord, NodeRecord, Packed, PredefinedRecord, SessionRecord, Store};
use std::fs;
use std::net::IpAddr;
use std::time::{SystemTime, SystemTimeError, UNIX_EPOCH};
use tokio::time::Instant;

/// Seconds from 1900, where PFCP counts from, to 1970 (TS 29.244 8.2.65, RFC 5905 6).
const NTP_TO_UNIX_S: u64 = 2_208_988_800;
/// A number the kernel makes anew whenever it starts.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// What there is to go on with.
pub(super) struct Begun {
    pub(super) start: Start,
    /// Charging records that are not in files yet.
    pub(super) cdrs: Vec<Cdr>,
    pub(super) life: LifeRecord,
    /// Predefined rules and groups that operators have put: a crash ends sessions, not these.
    pub(super) predefined: Vec<PredefinedRecord>,
    /// The node's zero of time.
    pub(super) zero: Instant,
}

/// This life of the machine; nothing where the kernel does not say.
pub(super) fn boot() -> String {
    fs::read_to_string(BOOT).map(|boot| boot.trim().to_owned()).unwrap_or_default()
}

/// The session database. One of another version is set aside, and a new one takes its place.
pub(super) fn open(settings: &Settings) -> anyhow::Result<Store> {
    let folder = &settings.state_dir;
    let unusable = || format!("the state folder {} cannot be used", folder.display());
    fs::create_dir_all(folder).with_context(unusable)?;
    let (store, set_aside) = Store::open(&folder.join("sessions")).with_context(unusable)?;
    if let Some(aside) = set_aside {
        let aside = aside.display();
        tracing::warn!(
            "the session database was written by another version: it is {aside} now, and control planes have to set up their \
             sessions anew; charging records that waited in it are in no file"
        );
    }
    Ok(store)
}

/// A database that cannot be gone on with: where it is, and why.
pub(super) fn unusable(settings: &Settings, error: anyhow::Error) -> anyhow::Error {
    exit::unusable(error.context(format!("the state folder {} cannot be used", settings.state_dir.display())))
}

/// Milliseconds since 1900.
pub(crate) fn time_of_day(clock: SystemTime) -> Result<u64, SystemTimeError> {
    Ok(clock.duration_since(UNIX_EPOCH)?.as_millis() as u64 + NTP_TO_UNIX_S * 1_000)
}

/// Addresses at which tunnels end, in order.
pub(super) fn endpoints(settings: &Settings) -> Vec<IpAddr> {
    let addresses = settings.gtpu_addresses();
    let all = addresses.iter().flat_map(|port| [Some(IpAddr::V4(port.ipv4)), port.ipv6.map(IpAddr::V6)]);
    let mut endpoints: Vec<IpAddr> = all.flatten().collect();
    endpoints.sort();
    endpoints
}

/// Everything the node knew when it last ran, if that is all; in this life of the machine, `boot`, and with tunnels that end at
/// these addresses.
pub(super) fn begin(store: &Store, boot: &str, endpoints: Vec<IpAddr>) -> anyhow::Result<Begun> {
    let (since_1900_ms, zero) = (time_of_day(SystemTime::now())?, Instant::now());
    let mut known = store.load()?;
    make_an_end(store, &known.damaged)?;
    let before = known.life.take();
    let stream = before.as_ref().map(|life| life.stream).or(known.node.map(|node| node.recovery_time_stamp));
    let may_lack = before.as_ref().is_some_and(|life| life.boot != boot && !life.is_closed);
    let now_s = (since_1900_ms / 1_000) as u32;
    let mut forgotten = vec![];
    let node = match known.node.filter(|_| !may_lack) {
        Some(node) => {
            let gone = before.iter().flat_map(|life| &life.endpoints).filter(|old| !endpoints.contains(old));
            let gone: Vec<IpAddr> = gone.copied().collect();
            match lost_at(&gone, &known.sessions) {
                0 => node,
                lost => begin_elsewhere(store, (node, now_s), (&gone, lost))?,
            }
        }
        None => {
            forgotten = known.associations.iter().map(|association| association.address).collect();
            begin_anew(store, &mut known, now_s)?
        }
    };
    let stream = stream.unwrap_or(node.recovery_time_stamp);
    let life = LifeRecord { boot: boot.to_owned(), is_closed: false, stream, endpoints };
    // Where that is what it says already, there is nothing to write: a disk that is full keeps nobody from going on.
    if before.as_ref() != Some(&life) {
        store.apply(&[Change::SaveLife(life.clone())])?;
    }
    // What is lost from here on, after a crash of the machine, was applied after this.
    store.sync()?;
    let Contents { associations, pfds, predefined, paths, told, sessions, cdrs, last_cdr, .. } = known;
    tracing::info!("{} sessions and {} associations in the database", sessions.len(), associations.len());
    let start = Start { node, associations, forgotten, sessions, pfds, paths, told, last_cdr, since_1900_ms };
    Ok(Begun { start, cdrs, life, predefined, zero })
}

/// Records that cannot be read are nothing to go on with, and no reason not to go on with all others.
fn make_an_end(store: &Store, damaged: &[Change]) -> anyhow::Result<()> {
    for end in damaged {
        match end {
            Change::EraseSession(seid) => {
                tracing::error!("session {seid} is lost: its record in the database cannot be read");
            }
            other => tracing::error!("a record of the database cannot be read and is lost: {other:?}"),
        }
    }
    Ok(store.apply(damaged)?)
}

/// As with a new database, but for what is to be charged. The new time stamp is later than the last, whatever the clock.
fn begin_anew(store: &Store, known: &mut Contents, now_s: u32) -> anyhow::Result<NodeRecord> {
    if let Some(old) = known.node {
        tracing::warn!(
            "the machine ended without the control plane: of its database the last moments may be missing, and {} \
             sessions are over; control planes hear of it by the recovery time stamp",
            known.sessions.len()
        );
        return forget(store, known, later(old, now_s));
    }
    // The stamp wraps in 2036, as the specification has it.
    forget(store, known, now_s)
}

/// A time stamp later than the node's last, whatever the clock.
fn later(node: NodeRecord, now_s: u32) -> u32 {
    now_s.max(node.recovery_time_stamp.wrapping_add(1))
}

/// Sessions with tunnels that end at one of these addresses.
fn lost_at(gone: &[IpAddr], sessions: &[Packed]) -> usize {
    if gone.is_empty() {
        return 0;
    }
    let is_lost = |record: &SessionRecord| {
        let mut ends = record.rules.pdrs.iter().filter_map(|pdr| pdr.pdi.f_teid);
        ends.any(|f_teid| gone.contains(&f_teid.address))
    };
    sessions.iter().filter_map(|packed| packed.record().ok()).filter(is_lost).count()
}

/// With all there is in the database, of which some sessions cannot be taken back.
fn begin_elsewhere(
    store: &Store,
    (old, now_s): (NodeRecord, u32),
    (gone, lost): (&[IpAddr], usize),
) -> anyhow::Result<NodeRecord> {
    let gone = gone.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ");
    tracing::warn!(
        "{lost} sessions have tunnels at {gone}, where this node is no more: control planes hear by the recovery time stamp that \
         they have to set up their sessions anew"
    );
    let node = NodeRecord { recovery_time_stamp: later(old, now_s), ..old };
    store.apply(&[Change::SaveNode(node)])?;
    Ok(node)
}

/// Who was charged is charged for the last time: as a session that is over, and whose last counts will not come.
fn forget(store: &Store, known: &mut Contents, recovery_time_stamp: u32) -> anyhow::Result<NodeRecord> {
    let fresh = NodeRecord { recovery_time_stamp, leaves_ms: None, clock_ahead_ms: 0, reserved_seids: 0 };
    let mut changes = vec![];
    let sessions = std::mem::take(&mut known.sessions);
    for mut record in sessions.iter().filter_map(|packed| packed.record().ok()) {
        if record.charging.is_none() {
            changes.push(Change::EraseSession(record.seid));
            continue;
        }
        (record.usage.is_over, record.usage.answer) = (true, None);
        known.sessions.push(Packed::of(&record));
        changes.push(Change::SaveSession(record.seid, Packed::of(&record)));
    }
    let associations = std::mem::take(&mut known.associations).into_iter();
    changes.extend(associations.map(|record| Change::EraseAssociation(record.node_id)));
    let pfds = std::mem::take(&mut known.pfds).into_iter();
    changes.extend(pfds.map(|record| Change::ErasePfds(record.application)));
    let paths = std::mem::take(&mut known.paths).into_iter();
    changes.extend(paths.map(Change::ErasePath));
    changes.push(Change::SaveNode(fresh));
    store.apply(&changes)?;
    Ok(fresh)
}

/// All that was applied is on the disk before anybody is told that it is.
pub(super) fn end(store: &Store, life: LifeRecord) {
    let closed = Change::SaveLife(LifeRecord { is_closed: true, ..life });
    if let Err(error) = store.sync().and_then(|()| store.apply(&[closed])).and_then(|()| store.sync()) {
        tracing::warn!("a restart of the machine will cost the sessions: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use session::{AssociationRecord, ChargingRecord, CpFSeid, PfdRecord, UsageRecord};

    const SEID: rules::Seid = rules::Seid(7);
    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 30, 0, 2));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 30, 0, 3));

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
        let account =
            ::charging::Account::new(session, &::charging::Policy::default(), machine::Clock::at(1));
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
        assert_eq!(
            (start.sessions, start.associations),
            (vec![Packed::of(&session(None))], vec![association()])
        );
    }
}

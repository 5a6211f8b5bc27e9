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
//!
//! Nor is an association or a session of one Node ID anything under another: no message gives either a new one (TS 29.244 6.2.6 to
//! 6.2.8), and control planes would go on with a node that is no more. So the database says by which they know this one, and what it has
//! under another is not gone on with.

use crate::exit;
use crate::settings::Settings;
use ::charging::spool::Kept;
use anyhow::Context;
use n4::Start;
use session::{
    Change, Contents, LifeRecord, LostCdrs, NodeRecord, Packed, PredefinedRecord, SessionRecord, Store,
    StoreError,
};
use std::fs;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::Path;
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
    pub(super) cdrs: Kept,
    /// Those that there was no room for.
    pub(super) lost: LostCdrs,
    pub(super) life: LifeRecord,
    /// Predefined rules and groups that operators have put: a crash ends sessions, not these.
    pub(super) predefined: Vec<PredefinedRecord>,
    /// The node's zero of time.
    pub(super) zero: Instant,
}

/// What peers know the node by.
pub(super) struct Identity {
    /// Control planes: its PFCP Node ID.
    pub(super) node_id: String,
    /// GTP-U peers: addresses at which tunnels end, in order.
    pub(super) endpoints: Vec<IpAddr>,
}

/// This life of the machine; nothing where the kernel does not say.
pub(super) fn boot() -> String {
    fs::read_to_string(BOOT).map(|boot| boot.trim().to_owned()).unwrap_or_default()
}

/// The session database. One of another version is set aside, and a new one takes its place.
pub(super) fn open(settings: &Settings) -> anyhow::Result<Store> {
    let folder = &settings.state_dir;
    let unusable = || format!("node.state_dir {} cannot be used", folder.display());
    fs::create_dir_all(folder).with_context(unusable)?;
    let opened = Store::open(&folder.join("sessions"));
    if let Err(StoreError::Locked(_)) = opened {
        anyhow::bail!(
            "another node uses node.state_dir {}; stop it or change node.state_dir",
            folder.display()
        );
    }
    let (store, set_aside) = opened.map_err(|error| advised(error.into(), folder)).with_context(unusable)?;
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
    let folder = &settings.state_dir;
    let error = advised(error, folder);
    exit::unusable(error.context(format!("node.state_dir {} cannot be used", folder.display())))
}

/// With what to do about it, where that is known. What is damaged is lost; where only the system refuses something, all is there still.
fn advised(error: anyhow::Error, folder: &Path) -> anyhow::Error {
    let Some(why) = error.downcast_ref::<StoreError>() else { return error };
    let sessions = folder.join("sessions");
    let sessions = sessions.display();
    let advice = if why.is_damage() {
        format!(
            "it is damaged, or of another version: move {sessions} away, and one is made anew; its sessions are lost then, and \
             charging records that wait in it"
        )
    } else {
        match why.refused() {
            Some(ErrorKind::PermissionDenied) => {
                format!("give this process the right to read and write in {sessions}")
            }
            Some(ErrorKind::ReadOnlyFilesystem) => format!("make {sessions} writable"),
            Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                "make room on its file system".to_owned()
            }
            _ => return error,
        }
    };
    anyhow::anyhow!("{error}; {advice}")
}

/// Milliseconds since 1900.
pub(crate) fn time_of_day(clock: SystemTime) -> Result<u64, SystemTimeError> {
    Ok(clock.duration_since(UNIX_EPOCH)?.as_millis() as u64 + NTP_TO_UNIX_S * 1_000)
}

/// What the configuration says of it.
pub(super) fn identity(settings: &Settings) -> Identity {
    let addresses = settings.gtpu_addresses();
    let all = addresses.iter().flat_map(|port| [Some(IpAddr::V4(port.ipv4)), port.ipv6.map(IpAddr::V6)]);
    let mut endpoints: Vec<IpAddr> = all.flatten().collect();
    endpoints.sort();
    Identity { node_id: settings.node_id.to_string(), endpoints }
}

/// Everything the node knew when it last ran, if that is all; in this life of the machine, `boot`, and known by this now.
///
/// # Errors
/// The disk; what is known under another Node ID.
pub(super) fn begin(store: &Store, boot: &str, identity: Identity) -> anyhow::Result<Begun> {
    let Identity { node_id, endpoints } = identity;
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
            check_known_by(&node_id, &known)?;
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
    let said = [
        (before.as_ref() != Some(&life)).then(|| Change::SaveLife(life.clone())),
        (known.node_id.as_ref() != Some(&node_id)).then_some(Change::SaveNodeId(node_id)),
    ];
    let unsaid: Vec<Change> = said.into_iter().flatten().collect();
    // Where it says all that already, there is nothing to write: a disk that is full keeps nobody from going on.
    if !unsaid.is_empty() {
        store.apply(&unsaid)?;
    }
    // What is lost from here on, after a crash of the machine, was applied after this.
    store.sync()?;
    let cdrs = Kept { waiting: known.cdrs, filed: known.filed_cdr };
    let Contents { associations, pfds, predefined, paths, told, sessions, last_cdr, lost_cdrs, .. } = known;
    let start = Start { node, associations, forgotten, sessions, pfds, paths, told, last_cdr, since_1900_ms };
    Ok(Begun { start, cdrs, lost: lost_cdrs, life, predefined, zero })
}

/// What the log says of it: of how many sessions, of which so many are users', and how many associations.
pub(super) fn in_database((sessions, live): (usize, usize), associations: usize) -> String {
    let told = format!("{live} sessions and {associations} associations in the database");
    match sessions.saturating_sub(live) {
        0 => told,
        over => format!("{told}, and {over} sessions that are over, kept for their last answers or reports"),
    }
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

/// Whether nothing is known that control planes know this node by another Node ID for. Sessions that only have to be charged are
/// theirs no more. A database that does not say by which is of an earlier version, and is taken for this one's.
fn check_known_by(node_id: &str, known: &Contents) -> anyhow::Result<()> {
    let Some(old) = known.node_id.as_deref().filter(|old| *old != node_id) else { return Ok(()) };
    let is_live = |packed: &&Packed| packed.record().is_ok_and(|record| !record.usage.is_over);
    let sessions = known.sessions.iter().filter(is_live).count();
    let associations = known.associations.len();
    anyhow::ensure!(
        (associations, sessions) == (0, 0),
        "its database has {associations} association(s) and {sessions} session(s) under node.id {old}, and node.id is {node_id} now, by which \
         no control plane knows them; start with {old} and let `anchorline ctl release --wait` end them first, or move the folder \
         \"sessions\" away from there to lose them, and what is still to be charged"
    );
    Ok(())
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
    // Peers may know requests of ours by their numbers; where none are reserved, nothing is known of these.
    let reserved_sequences = known.node.and_then(|node| node.reserved_sequences);
    let fresh = NodeRecord { reserved_sequences, ..NodeRecord::new(recovery_time_stamp) };
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
mod tests;

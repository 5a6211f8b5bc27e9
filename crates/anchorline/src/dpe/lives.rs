//! Where this life of the data plane counts, and notes what it knows of connections, so that the next one can tell the one and go on
//! with the other; and what those before it have left.

use dataplane::{ContentRules, Crew, Former, Lasting, Learned, LearnedFlow, Legacy, Limits};
use dplink::UsageCounts;
use host::{MemoryFolder, Root};
use rules::Seid;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where every Linux has memory with names.
const SHARED_MEMORY: &str = "/dev/shm";
/// What files in a folder of the node's own are called.
const ALONE: &str = "dpe";

/// What some URRs have counted.
type Counts = Vec<(Seid, UsageCounts)>;

/// This life, and one before it of which the control plane has not been told.
#[derive(Debug, Default)]
pub(super) struct Lives {
    own: Option<Arc<Lasting>>,
    former: Option<Former>,
    legacy: Legacy,
}

impl Lives {
    /// Looks for what former lives of the node have left, and makes a place for this one's counts: the first that has the room.
    pub(super) fn find(run_dir: &Path, epoch: u64, (crew, limits): (&Crew, &Limits)) -> Self {
        let places = places(run_dir);
        let (former, legacy) = former(&places);
        let mut reasons = vec![];
        let found = places.iter().find_map(|place| {
            create(place, epoch, (crew, limits)).map_err(|reason: String| reasons.push(reason)).ok()
        });
        if found.is_none() {
            let reasons = reasons.join("; ");
            tracing::warn!(
                "if this process is killed, what sessions have used since it was told last (dpe.interim_usage_s) is lost: neither \
                 node.run_dir ({}) nor {SHARED_MEMORY} is a tmpfs with room for it{}{reasons}",
                run_dir.display(),
                if reasons.is_empty() { "" } else { ": " }
            );
        }
        Self { own: found.map(Arc::new), former, legacy }
    }

    /// What the last life knew of connections; nothing, once it was asked for.
    pub(super) fn legacy(&mut self) -> Legacy {
        std::mem::take(&mut self.legacy)
    }

    /// Flows are about to be of what these rules name: a life that is killed cannot say so afterwards.
    pub(super) fn name(&self, content: &ContentRules) {
        let keeping = self.own.as_ref().filter(|own| own.keeps_flows());
        report(keeping.map(|own| own.say(&Learned::new(content, vec![]))));
    }

    /// This life is over, and flows are of these applications. Without a place for it, the next one does not know.
    pub(super) fn leave(&self, content: &ContentRules, flows: Vec<LearnedFlow>) {
        report(self.own.as_ref().map(|own| own.leave(&Learned::new(content, flows))));
    }

    /// Where this life counts.
    pub(super) fn own(&self) -> Option<Arc<Lasting>> {
        self.own.clone()
    }

    /// Whether there is anything to tell.
    pub(super) fn are_any(&self) -> bool {
        self.former.is_some()
    }

    /// From the beginning: another one is told.
    pub(super) fn rewind(&mut self) {
        self.former.iter_mut().for_each(Former::rewind);
    }

    /// What it has counted, in part, and which it is; no counts once that was all. `None` once there is none.
    pub(super) fn next(&mut self) -> Option<(u64, Option<Counts>)> {
        let former = self.former.as_mut()?;
        let counts = former.counts().unwrap_or_else(|error| {
            tracing::warn!("{} cannot be read to its end: {error}", former.path().display());
            None
        });
        Some((former.epoch(), counts))
    }

    /// The control plane has heard all of it.
    pub(super) fn heard(&mut self, is_kept: bool) {
        let Some(former) = self.former.take() else { return };
        if is_kept {
            tracing::info!(
                "the control plane was told what a data plane before this one had counted when it was killed"
            );
        } else {
            tracing::warn!(
                "the control plane was told what a data plane before this one had counted, and its disk does not take it: if it ends \
                 before that does, what its database lacks is lost"
            );
        }
        forget(former);
    }

    /// This life is over. Where it was told, only what it knew of connections is left, if it did of any; else where its counts are.
    pub(super) fn end(&self, is_told: bool) -> Option<&Path> {
        let own = self.own.as_deref()?;
        if is_told && let Err(error) = own.forget_counts() {
            tracing::warn!("{} is left behind: {error}", own.path().display());
        }
        Some(own.path())
    }
}

/// In a folder that has the room; for flows, too, if it can.
fn create(
    (folder, node): &(PathBuf, String),
    epoch: u64,
    (crew, limits): (&Crew, &Limits),
) -> Result<Lasting, String> {
    let has_huge_pages = has_huge_pages(folder);
    let own = Lasting::create(folder, node, epoch)
        .map_err(|error| format!("{} cannot be written to: {error}", folder.display()))?;
    let own = own.keeping_flows(has_huge_pages);
    let has_room = own.has_room_for(crew, limits);
    let own = own.keeping_flows(has_huge_pages && has_room.is_ok());
    has_room.or_else(|_| own.has_room_for(crew, limits)).map_err(|error| {
        // Who gives up leaves nothing behind.
        drop(own.forget());
        format!("{} has not the room: {error}", folder.display())
    })?;
    if !own.keeps_flows() {
        tracing::info!(
            "if this process is killed, the next data plane does not know of what applications flows are: {} has not the room for \
             them, or no huge pages",
            folder.display()
        );
    }
    Ok(own)
}

fn report(said: Option<io::Result<()>>) {
    if let Some(Err(error)) = said {
        tracing::warn!("the next data plane will not know of what applications flows are: {error}");
    }
}

/// The last that has counted anything. There is no other, as each is told before the next has sessions; if one was overlooked then, what
/// it counted can be added to nothing any more. And what the last of all knew of connections.
fn former(places: &[(PathBuf, String)]) -> (Option<Former>, Legacy) {
    let unread = |path: &Path, error: io::Error| {
        let path = path.display();
        tracing::warn!(
            "what an earlier data plane has counted cannot be read from {path}: {error}; remove it if nobody else can"
        );
    };
    let found = places.iter().flat_map(|(folder, node)| Former::all(folder, node, unread));
    let mut all: Vec<Former> = found.collect();
    all.sort_by_key(Former::written);
    let legacy = all.last().map(legacy).unwrap_or_default();
    let mut counted = vec![];
    for mut former in all {
        match former.has_counted() {
            Ok(false) => forget(former),
            _ => counted.push(former),
        }
    }
    let last = counted.pop();
    for former in counted {
        tracing::warn!("what {} holds was told too late, and is lost", former.path().display());
        forget(former);
    }
    (last, legacy.with(learned(places)))
}

/// Of what applications flows were, if the last life ended in order.
fn learned(places: &[(PathBuf, String)]) -> Learned {
    let unread = |path: &Path, error: io::Error| {
        tracing::warn!("of what applications flows were cannot be read from {}: {error}", path.display());
    };
    // None stays to be taken for a later life's.
    let all: Vec<Learned> =
        places.iter().filter_map(|(folder, node)| Learned::take(folder, node, unread)).collect();
    all.into_iter().next().unwrap_or_default()
}

fn legacy(former: &Former) -> Legacy {
    former.legacy().unwrap_or_else(|error| {
        tracing::warn!("what {} holds of connections cannot be read: {error}", former.path().display());
        Legacy::default()
    })
}

fn forget(former: Former) {
    let path = former.path().to_owned();
    if let Err(error) = former.forget() {
        tracing::warn!("{} is left behind: {error}", path.display());
    }
}

/// Folders in memory, and what files of this node are called there.
fn places(run_dir: &Path) -> Vec<(PathBuf, String)> {
    let alone = (run_dir.to_owned(), ALONE.to_owned());
    let among_others = run_dir
        .canonicalize()
        .ok()
        .map(|run_dir| (PathBuf::from(SHARED_MEMORY), format!("anchorline{}", named(&run_dir))));
    [Some(alone), among_others]
        .into_iter()
        .flatten()
        .filter(|(folder, _)| in_memory(folder).is_some())
        .collect()
}

fn in_memory(folder: &Path) -> Option<MemoryFolder> {
    MemoryFolder::of(&Root::system(), &folder.canonicalize().ok()?)
}

/// Packets read these counts at random, which takes longer by small pages; where the folder lets nobody have huge ones, it is told to.
/// Whether it does then.
fn has_huge_pages(folder: &Path) -> bool {
    let Some(small) = in_memory(folder).filter(|found| !found.has_huge_pages()) else { return true };
    let allowed = small.allow_huge_pages();
    match &allowed {
        Ok(()) => tracing::info!(
            "files in {} may have huge pages, if they ask for them (huge=advise)",
            folder.display()
        ),
        Err(error) => tracing::warn!(
            "what sessions use is counted in small pages, which is slower with very many: {} cannot have huge ones ({error}); mount \
             it with huge=advise",
            folder.display()
        ),
    }
    allowed.is_ok()
}

/// A path as part of a file's name, unlike that of any other.
fn named(path: &Path) -> String {
    let character = |octet: &u8| match octet {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(*octet).to_string(),
        b'/' => "-".to_owned(),
        other => format!("_{other:02x}"),
    };
    path.as_os_str().as_encoded_bytes().iter().map(character).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn find(run_dir: &Path, epoch: u64) -> Lives {
        let limits = Limits { sessions: 16, pdrs: 32, ..Limits::default() };
        Lives::find(run_dir, epoch, (&Crew::default(), &limits))
    }

    fn files(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_run_dir_in_memory_has_its_own_counts() {
        let folder = tempfile::tempdir_in(SHARED_MEMORY).unwrap();
        let mut first = find(folder.path(), 1);
        assert_eq!(first.own().unwrap().path().parent(), Some(folder.path()));
        assert!(!first.are_any() && first.next().is_none());
        // It has a name until it is told.
        assert!(first.end(false).unwrap().exists());
        assert!(!first.end(true).unwrap().exists());
    }

    /// What has counted nothing is of no use to anybody; and a life that goes on is not over.
    #[test]
    fn empty_files_of_former_lives_are_removed() {
        let folder = tempfile::tempdir_in(SHARED_MEMORY).unwrap();
        let config = |epoch| {
            let lives = find(folder.path(), epoch);
            dataplane::Config { lasting: lives.own(), epoch, ..dataplane::Config::default() }
        };
        let engine = |config: &dataplane::Config| {
            dataplane::connect::<crate::dpe::room::Silence>(config, vec![], || 0).unwrap()
        };
        let [one, two] = [1, 2].map(config);
        let (first, second) = (engine(&one), engine(&two));
        assert!(!find(folder.path(), 3).are_any());
        drop((first, one));
        assert_eq!(files(folder.path()), 3, "the first, the second and the third");
        assert!(!find(folder.path(), 4).are_any());
        assert_eq!(files(folder.path()), 2, "the second lives, and so did the fourth until now");
        drop((second, two));
    }

    /// Where flows have no room, counts have.
    #[test]
    fn flows_are_kept_where_there_is_room_and_huge_pages() {
        let folder = tempfile::tempdir_in(SHARED_MEMORY).unwrap();
        let keeps = |epoch, flows| {
            let limits = Limits { sessions: 16, pdrs: 32, flows, ..Limits::default() };
            let lives = Lives::find(folder.path(), epoch, (&Crew::default(), &limits));
            lives.own().unwrap().keeps_flows()
        };
        assert!(!keeps(1, 1 << 40));
        assert_eq!(keeps(2, 1_000), in_memory(folder.path()).unwrap().has_huge_pages());
    }

    #[test]
    fn a_folder_without_the_room_is_left_alone() {
        let folder = tempfile::tempdir_in(SHARED_MEMORY).unwrap();
        let limits = Limits { sessions: usize::MAX >> 16, ..Limits::default() };
        let crew = Crew { workers: 32, ..Crew::default() };
        let lives = Lives::find(folder.path(), 1, (&crew, &limits));
        assert!(lives.own().is_none() && lives.end(true).is_none());
        assert_eq!(files(folder.path()), 0);
    }

    #[test]
    fn run_dirs_on_disk_have_names_in_shared_memory_that_nobody_shares() {
        let names = ["/run/a-b", "/run/a/b", "/run/a_2db", "/run/a.b"].map(|path| named(Path::new(path)));
        assert_eq!(names[1], "-run-a-b");
        let all: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(all.len(), names.len(), "{names:?}");
        assert!(names.iter().all(|name| !name.contains(['.', '/'])));
        let folders =
            |run_dir| places(Path::new(run_dir)).into_iter().map(|(folder, _)| folder).collect::<Vec<_>>();
        assert_eq!(folders("/proc/self"), [Path::new(SHARED_MEMORY)]);
        let folder = tempfile::tempdir_in(SHARED_MEMORY).unwrap();
        assert_eq!(folders(folder.path().to_str().unwrap()), [folder.path(), Path::new(SHARED_MEMORY)]);
    }
}

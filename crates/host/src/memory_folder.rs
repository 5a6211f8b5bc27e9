//! Folders that are in memory (tmpfs): what is in their files outlives processes, and ends with the machine.

use crate::root::Root;
use nix::mount::{MsFlags, mount};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The mount that a folder in memory is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFolder {
    point: PathBuf,
    /// As the kernel writes them.
    options: Vec<String>,
    has_huge_pages: bool,
}

impl MemoryFolder {
    /// Of a path without links; `None` where that is not in memory, or the kernel does not say.
    pub fn of(root: &Root, folder: &Path) -> Option<Self> {
        Self::find(&root.text("/proc/self/mountinfo")?, folder)
    }

    /// By the lines of proc(5), of which later ones hide earlier ones.
    fn find(mounts: &str, folder: &Path) -> Option<Self> {
        let all = mounts.lines().filter_map(parsed).filter(|(mount, _)| folder.starts_with(&mount.point));
        let (mount, is_memory) = all.max_by_key(|(mount, _)| mount.point.components().count())?;
        is_memory.then_some(mount)
    }

    /// Whether files may have huge pages, if their owners ask for them.
    pub const fn has_huge_pages(&self) -> bool {
        self.has_huge_pages
    }

    /// Lets files have huge pages where their owners ask for them (`huge=advise`); for all others nothing changes.
    ///
    /// # Errors
    /// The system's: it takes CAP_SYS_ADMIN.
    pub fn allow_huge_pages(&self) -> io::Result<()> {
        let flags = self.options.iter().map(|option| flag(option)).fold(MsFlags::MS_REMOUNT, MsFlags::union);
        Ok(mount(None::<&str>, &self.point, None::<&str>, flags, Some("huge=advise"))?)
    }
}

/// What a remount would take away if it were not said again.
fn flag(option: &str) -> MsFlags {
    match option {
        "ro" => MsFlags::MS_RDONLY,
        "nosuid" => MsFlags::MS_NOSUID,
        "nodev" => MsFlags::MS_NODEV,
        "noexec" => MsFlags::MS_NOEXEC,
        "noatime" => MsFlags::MS_NOATIME,
        "nodiratime" => MsFlags::MS_NODIRATIME,
        "relatime" => MsFlags::MS_RELATIME,
        _ => MsFlags::empty(),
    }
}

/// A mount, and whether it is in memory.
fn parsed(line: &str) -> Option<(MemoryFolder, bool)> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(4);
    let (point, options) = (unescaped(mount.next()?), mount.next()?);
    let mut file_system = file_system.split(' ');
    let (kind, own) = (file_system.next()?, file_system.nth(1).unwrap_or_default());
    let has_huge_pages = own.split(',').any(|option| option.starts_with("huge=") && option != "huge=never");
    let options = options.split(',').map(str::to_owned).collect();
    Some((MemoryFolder { point, options, has_huge_pages }, kind == "tmpfs"))
}

/// Blanks, tabs, line ends and backslashes are written as three octal digits.
fn unescaped(point: &str) -> PathBuf {
    let mut octets = Vec::new();
    let mut rest = point.as_bytes();
    while let Some((octet, behind)) = rest.split_first() {
        let digits = behind.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let written =
            digits.filter(|_| *octet == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok());
        octets.push(written.unwrap_or(*octet));
        rest = if written.is_some() { behind.get(3..).unwrap_or_default() } else { behind };
    }
    OsString::from_vec(octets).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
        25 22 0:23 / /run rw,nosuid,nodev shared:2 - tmpfs tmpfs rw,size=2468408k,mode=755\n\
        26 25 0:24 / /run/user\\040one rw - tmpfs tmpfs rw,huge=within_size\n\
        27 22 0:25 / /dev/shm rw,nosuid,nodev,noexec,relatime shared:3 master:1 - tmpfs tmpfs rw,huge=never\n\
        28 25 254:0 /x /run/disk rw - ext4 /dev/vda rw\n\
        29 27 0:26 / /dev/shm rw - tmpfs tmpfs rw,huge=advise\n\
        a line that says nothing\n";

    fn find(folder: &str) -> Option<MemoryFolder> {
        MemoryFolder::find(MOUNTS, Path::new(folder))
    }

    #[test]
    fn the_innermost_mount_says_whether_a_folder_is_in_memory() {
        assert_eq!(find("/home").or_else(|| find("/run/disk/a")).or_else(|| find("/runner")), None);
        let run = find("/run/anchorline").unwrap();
        assert_eq!((run.point.as_path(), run.has_huge_pages()), (Path::new("/run"), false));
        assert_eq!(run.options, ["rw", "nosuid", "nodev"]);
        let inner = find("/run/user one/x").unwrap();
        assert_eq!((inner.point.as_path(), inner.has_huge_pages()), (Path::new("/run/user one"), true));
        assert!(find("/dev/shm").unwrap().has_huge_pages(), "the mount on top of the other");
    }

    #[test]
    fn a_remount_says_again_what_holds() {
        let flags =
            ["rw", "nosuid", "nodev", "noexec", "relatime"].map(flag).into_iter().collect::<MsFlags>();
        let all = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC | MsFlags::MS_RELATIME;
        assert_eq!(flags, all);
    }

    /// What the kernel of this machine writes.
    #[test]
    fn shared_memory_is_in_memory_and_the_kernels_own_files_are_not() {
        let root = Root::system();
        assert!(MemoryFolder::of(&root, Path::new("/dev/shm")).is_some());
        assert!(MemoryFolder::of(&root, Path::new("/proc/self")).is_none());
    }
}

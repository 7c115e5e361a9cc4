//! Debug information that was split off a program: what the child says that it lacks, looked for and opened by this process,
//! which reads none of it.
//!
//! Names and links are a foreign file's word, and this process is often root. So a link is a file's name and no path, what
//! several programs share lies below a folder of debug information, and what is opened is a plain file that everybody may
//! read, or that is the watched process's user's own.

use crate::maps::Mapping;
use host::Root;
use nix::unistd::geteuid;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use structs::split_off::{self, DEBUG_ROOT};

/// Which file the child lacks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The one that the program's debug information was moved to.
    Debug,
    /// The one that several programs' debug information shares.
    Shared,
}

/// What the child lacks, as the file that it read names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lack {
    pub(super) part: Part,
    pub(super) build_id: Option<Vec<u8>>,
    pub(super) link: Option<String>,
}

/// A program, and the files with its debug information that were found; open.
#[derive(Debug)]
pub(super) struct Handed {
    pub(super) program: File,
    pub(super) debug: Option<File>,
    pub(super) shared: Option<File>,
}

impl Handed {
    pub(super) fn new(program: File) -> Handed {
        Handed { program, debug: None, shared: None }
    }

    /// The place of a part.
    pub(super) fn part(&mut self, part: Part) -> &mut Option<File> {
        match part {
            Part::Debug => &mut self.debug,
            Part::Shared => &mut self.shared,
        }
    }
}

/// Where to look for what a process's program lacks.
pub(super) struct Search<'a> {
    pub(super) pid: u32,
    /// The program's path, as the process sees it.
    pub(super) path: &'a Path,
    /// Folders like [`DEBUG_ROOT`], before which they are looked in.
    pub(super) folders: &'a [PathBuf],
}

impl Search<'_> {
    /// The files that may be it, with where they lie, the likeliest first. `debug`: where the one lies that names it, where that
    /// is not the program.
    pub(super) fn files(&self, lack: &Lack, debug: Option<&Path>) -> Vec<(PathBuf, File)> {
        let owner = host::ownership(&Root::system(), self.pid).map(|owner| owner.user);
        let places = match lack.part {
            Part::Debug => self.places_of_debug(lack),
            Part::Shared => self.places_of_shared(lack, debug),
        };
        let open = |path: PathBuf| Some((path.clone(), plain_file(&path).filter(|file| may_be_read(file, owner))?));
        places.into_iter().filter_map(open).collect()
    }

    fn places_of_debug(&self, lack: &Lack) -> Vec<PathBuf> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let (id, link) = (lack.build_id.as_deref(), lack.link.as_deref().map(str::as_bytes));
        let own = split_off::places(id, link, folder, self.folders).into_iter();
        let as_it_sees = split_off::places(id, link, folder, &[PathBuf::from(DEBUG_ROOT)]);
        own.chain(self.seen(&as_it_sees)).collect()
    }

    fn places_of_shared(&self, lack: &Lack, debug: Option<&Path>) -> Vec<PathBuf> {
        let roots = [self.folders, &self.seen(&[PathBuf::from(DEBUG_ROOT)])].concat();
        let mut places = lack.build_id.as_deref().map_or_else(Vec::new, |id| split_off::by_build_id(id, &roots));
        let folder = debug.unwrap_or(self.path).parent().unwrap_or(Path::new("/"));
        let named = lack.link.as_deref().map(|link| folder.join(OsStr::from_bytes(link.as_bytes())));
        // Whatever the name says: what lies elsewhere is no debug information.
        let whole = named.and_then(|named| named.canonicalize().ok());
        let roots: Vec<PathBuf> = roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
        places.extend(whole.filter(|whole| roots.iter().any(|root| whole.starts_with(root))));
        places
    }

    /// Places as the process sees them, where it has another root, and as this one does.
    fn seen(&self, places: &[PathBuf]) -> Vec<PathBuf> {
        let root = PathBuf::from(format!("/proc/{}/root", self.pid));
        let same = |a: std::fs::Metadata, b: std::fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        let is_own = root.metadata().ok().zip(Path::new("/").metadata().ok()).is_none_or(|(a, b)| same(a, b));
        let within = |place: &PathBuf| root.join(place.strip_prefix("/").unwrap_or(place));
        let foreign = places.iter().filter(|_| !is_own).map(within);
        foreign.chain(places.iter().cloned()).collect()
    }
}

/// Opens what is mapped there: by the mapping itself where that is permitted, which finds deleted files and those of
/// other file systems too; else by its path as the process sees it.
pub(crate) fn open(pid: u32, mapping: &Mapping) -> Option<File> {
    let path = mapping.path.clone().unwrap_or_default();
    let names =
        [format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.start, mapping.end), format!("/proc/{pid}/root{path}")];
    names.iter().find_map(|name| plain_file(Path::new(name)))
}

/// A plain file, open; `None` for what is none, which is not opened: opening a device or a pipe may do something.
fn plain_file(path: &Path) -> Option<File> {
    let found = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path).ok()?;
    if !found.metadata().is_ok_and(|about| about.is_file()) {
        return None;
    }
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd())).ok()
}

/// Whether the watched could read it, too: else it might be shown what it may not see.
fn may_be_read(file: &File, owner: Option<u32>) -> bool {
    const BY_OTHERS: u32 = 0o004;
    !geteuid().is_root()
        || file
            .metadata()
            .is_ok_and(|about| about.mode() & BY_OTHERS != 0 || owner.is_some_and(|user| user == about.uid()))
}

#[cfg(test)]
mod tests {
    use super::{Lack, Part, Search, plain_file};
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    #[test]
    fn what_is_no_plain_file_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(plain_file(&pipe).is_none() && plain_file(folder.path()).is_none());
        assert!(plain_file(Path::new("/dev/null")).is_none() && plain_file(Path::new("/proc/self/exe")).is_some());
    }

    #[test]
    fn a_shared_part_lies_below_a_folder_of_debug_information_whatever_its_name_says() {
        let folder = tempfile::tempdir().unwrap();
        let (roots, outside) = ([folder.path().join("debug")], folder.path().join("secret"));
        fs::create_dir_all(roots[0].join(".dwz")).unwrap();
        for file in [&outside, &roots[0].join(".dwz/shared")] {
            fs::write(file, "").unwrap();
            fs::set_permissions(file, Permissions::from_mode(0o644)).unwrap();
        }
        symlink(&outside, roots[0].join("link")).unwrap();
        let program = roots[0].join("p.debug");
        let search = Search { pid: std::process::id(), path: Path::new("/no/such/program"), folders: &roots };
        let found = |link: &str| {
            let lack = Lack { part: Part::Shared, build_id: None, link: Some(link.to_owned()) };
            search.files(&lack, Some(&program)).len()
        };
        assert_eq!([found(".dwz/shared"), found("../secret"), found("link"), found("/etc/passwd")], [1, 0, 0, 0]);
    }

    #[test]
    fn root_hands_on_what_everybody_may_read_or_the_watched_user_owns() {
        if !nix::unistd::geteuid().is_root() {
            return testing::skip("whoever is not root opens what is open to it");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.debug");
        fs::write(&path, "").unwrap();
        let may = |mode: u32, user: u32| {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            super::may_be_read(&fs::File::open(&path).unwrap(), Some(user))
        };
        assert_eq!([may(0o644, 1000), may(0o600, 1000), may(0o600, 0)], [true, false, true]);
    }
}

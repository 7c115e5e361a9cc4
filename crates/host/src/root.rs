//! Where `/proc` and `/sys` are looked for.

use std::path::{Path, PathBuf};

/// The directory that holds `proc` and `sys`: `/`, or a fixture's folder.
///
/// Only [`Root::system`] also asks the processor (cpuid) and the kernel (affinity) directly; a fixture answers from its
/// files alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    path: PathBuf,
    system: bool,
}

impl Root {
    /// The machine this process runs on.
    pub fn system() -> Root {
        Root { path: PathBuf::from("/"), system: true }
    }

    /// A folder that holds `proc` and `sys` trees of some machine.
    pub fn at(path: impl AsRef<Path>) -> Root {
        Root { path: path.as_ref().to_owned(), system: false }
    }

    /// Whether this is the running machine rather than a fixture.
    pub fn is_system(&self) -> bool {
        self.system
    }

    /// The full path of `relative` (`proc/stat`), for messages.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.path.join(relative)
    }

    /// The file's text without surrounding white space; `None` where it cannot be read. Every file under `/proc` and
    /// `/sys` may be absent (containers mask them, virtual machines lack them), so absence is an answer here.
    pub(crate) fn text(&self, relative: &str) -> Option<String> {
        let bytes = std::fs::read(self.path(relative)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Why the file cannot be opened; `None` where it can. What reads a file takes one that cannot be read for absent,
    /// and asks here where that would be no answer: a process without a descriptor left (EMFILE) finds every file so.
    pub fn closed(&self, relative: &str) -> Option<std::io::Error> {
        std::fs::File::open(self.path(relative)).err()
    }

    /// Whether the machine says that it has no `name` in `folder` (`proc/sys/kernel`): the folder can be read, holds
    /// something, and not that. An absence below a folder that is hidden or empty, as sandboxes leave them, says
    /// nothing, and neither does a file that is there and cannot be read.
    pub fn lacks(&self, folder: &str, name: &str) -> bool {
        let names = self.names(folder);
        !names.is_empty() && !names.iter().any(|known| known == name)
    }

    /// The file's text as a number; `None` where there is none.
    pub(crate) fn number<T: std::str::FromStr>(&self, relative: &str) -> Option<T> {
        self.text(relative)?.parse().ok()
    }

    /// The length of a file, or of what a link leads to, bytes; `None` where it cannot be asked.
    pub fn file_bytes(&self, relative: &str) -> Option<u64> {
        std::fs::metadata(self.path(relative)).ok().filter(|of| of.is_file()).map(|of| of.len())
    }

    /// Names in a directory, sorted; empty where it cannot be read.
    pub(crate) fn names(&self, relative: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(relative)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect();
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::Fixture;

    #[test]
    fn a_file_that_cannot_be_opened_says_why() {
        let fixture = Fixture::new().file("proc/stat", "cpu 1\n");
        assert!(fixture.root().closed("proc/stat").is_none());
        let error = fixture.root().closed("proc/self/cgroup").expect("no such file");
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    }

    #[test]
    fn only_a_folder_that_shows_something_can_lack_something() {
        let fixture = Fixture::new().file("proc/sys/kernel/osrelease", "6.1\n").file("sys/kernel/mm/ksm/run", "0\n");
        let of = |folder, name| fixture.root().lacks(folder, name);
        assert!(of("proc/sys/kernel", "numa_balancing") && of("sys/kernel/mm", "transparent_hugepage"));
        assert!(!of("proc/sys/kernel", "osrelease") && !of("sys/kernel/mm", "ksm"), "they are there");
        assert!(!of("proc/sys/vm", "stat_interval") && !of("sys/kernel/debug", "x"), "the folder is not");
    }
}

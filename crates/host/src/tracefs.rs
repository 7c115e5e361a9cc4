//! Whether this process can read tracefs, the file system that gives the kernel's tracepoints their numbers.

use crate::limits::privileges;
use crate::mounts::mount_at;
use crate::named_rows::row;
use crate::root::Root;
use std::io::ErrorKind;

/// Its own place since Linux 4.1.
const OWN: &str = "sys/kernel/tracing";

/// Where debugfs shows it, which is closed to all but root.
const WITHIN_DEBUGFS: &str = "sys/kernel/debug/tracing";

/// The state of tracefs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Tracefs {
    /// This process can read the events in this folder, below `/`.
    Readable(&'static str),
    /// Mounted in this folder, below `/`, and closed to this process. Only root may read it unless root allows more.
    Closed(&'static str),
    /// The kernel has it, and nobody has mounted it in its own place; debugfs may hold one that this process may not
    /// reach.
    NotMounted {
        /// Whether this process could read it once it is mounted: it runs as root, to whom it is open.
        as_root: bool,
    },
    /// This kernel has no tracefs, or a container hides it.
    Absent,
}

/// Looks for tracefs: the one place that decides whether tracepoints can be looked up.
///
/// # References
/// `Documentation/trace/ftrace.rst`, "The File System"; `Documentation/trace/events.rst`.
pub fn tracefs(root: &Root) -> Tracefs {
    let folders = [OWN, WITHIN_DEBUGFS];
    let seen = folders.map(|folder| access(root, folder));
    if let Some(at) = seen.iter().position(|access| *access == Access::Readable) {
        return Tracefs::Readable(folders[at]);
    }
    let mounts = root.text("proc/self/mounts").unwrap_or_default();
    let has_place = root.path(OWN).is_dir();
    // What another mount lies over, as where a sandbox hides /sys, is still in the table.
    let is_mounted = || has_place && mount_at(&mounts, &format!("/{OWN}")).is_some_and(|mount| mount.kind == "tracefs");
    // All may enter the mount point, so that a refusal means a mount behind it.
    if seen[0] == Access::Refused || is_mounted() {
        return Tracefs::Closed(OWN);
    }
    // Where debugfs lies within reach and what it holds does not, its own place is still the way in.
    match seen[1] == Access::Refused || has_place {
        true => Tracefs::NotMounted { as_root: runs_as_root(root) },
        false => Tracefs::Absent,
    }
}

/// Whether this process is root, and root of the machine: the second user id of the row is the effective one
/// (proc_pid_status(5)). Unknown counts as no.
fn runs_as_root(root: &Root) -> bool {
    let status = root.text("proc/self/status").unwrap_or_default();
    let effective = row(&status, "Uid").and_then(|ids| ids.split_whitespace().nth(1));
    effective == Some("0") && !privileges(root).user_namespace
}

impl Tracefs {
    /// The command that opens it; `None` where it is open, or nothing does.
    ///
    /// # References
    /// `Documentation/trace/ftrace.rst`; mount options `gid` and `mode` in `fs/tracefs/inode.c`. The files that hold
    /// numbers are readable by owner and group alone whatever the folder's mode, so a group it must be.
    pub fn cure(self) -> Option<&'static str> {
        match self {
            Tracefs::Readable(_) | Tracefs::Absent => None,
            Tracefs::NotMounted { as_root: true } => Some("sudo mount -t tracefs tracefs /sys/kernel/tracing"),
            Tracefs::NotMounted { as_root: false } => {
                Some("sudo mount -t tracefs tracefs /sys/kernel/tracing, and run as root")
            }
            Tracefs::Closed(_) => Some("run as root, or sudo mount -o remount,mode=750,gid=GROUP /sys/kernel/tracing"),
        }
    }
}

/// In half a sentence, for an error's text and the doctor's line.
impl std::fmt::Display for Tracefs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Tracefs::Readable(folder) => write!(f, "readable at /{folder}"),
            Tracefs::Closed(folder) => write!(f, "mounted at /{folder}, closed to this process"),
            Tracefs::NotMounted { .. } => write!(f, "not mounted at /{OWN}"),
            Tracefs::Absent => write!(f, "not in this kernel, or hidden by a container"),
        }
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Access {
    Readable,
    Refused,
    NotThere,
}

/// Whether events can be listed and their files read, which a folder's mode can allow apart.
fn access(root: &Root, folder: &str) -> Access {
    let refused = |kind| if kind == ErrorKind::PermissionDenied { Access::Refused } else { Access::NotThere };
    match std::fs::read_dir(root.path(&format!("{folder}/events"))).map(Iterator::count) {
        Err(error) => refused(error.kind()),
        // The mount point without a mount.
        Ok(0) => Access::NotThere,
        // Beside the systems lies a file of the same mode as their numbers.
        Ok(_) => match std::fs::File::open(root.path(&format!("{folder}/events/header_page"))) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Access::Refused,
            _ => Access::Readable,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{Tracefs, tracefs};
    use crate::fixture::Fixture;

    #[test]
    fn each_state_is_told_from_the_others() {
        let own = Fixture::new().file("sys/kernel/tracing/events/sched/enable", "0\n");
        assert_eq!(tracefs(&own.root()), Tracefs::Readable("sys/kernel/tracing"));
        let older = Fixture::new().file("sys/kernel/debug/tracing/events/sched/enable", "0\n");
        assert_eq!(tracefs(&older.root()), Tracefs::Readable("sys/kernel/debug/tracing"));
        let closed = Fixture::new()
            .file("sys/kernel/tracing/.keep", "")
            .file("proc/self/mounts", "proc /proc proc rw 0 0\ntracefs /sys/kernel/tracing tracefs rw 0 0\n");
        assert_eq!(tracefs(&closed.root()), Tracefs::Closed("sys/kernel/tracing"));
        let unmounted = Fixture::new().file("sys/kernel/tracing/.keep", "");
        assert_eq!(tracefs(&unmounted.root()), Tracefs::NotMounted { as_root: false });
        assert_eq!(tracefs(&Fixture::new().root()), Tracefs::Absent);
        let covered =
            Fixture::new().file("proc/self/mounts", "tracefs /sys/kernel/tracing tracefs rw 0 0\ntmpfs /sys tmpfs\n");
        assert_eq!(tracefs(&covered.root()), Tracefs::Absent, "the mount lies below another");
    }

    #[test]
    fn one_within_a_closed_debugfs_is_reached_by_a_mount_of_its_own() {
        let within = Fixture::new()
            .file("sys/kernel/tracing/.keep", "")
            .file("proc/self/mounts", "tracefs /sys/kernel/debug/tracing tracefs rw 0 0\n");
        let seen = tracefs(&within.root());
        assert_eq!(seen, Tracefs::NotMounted { as_root: false });
        assert!(seen.cure().unwrap().contains("mount -t tracefs"), "remounting within debugfs opens nothing");
    }

    /// Root was told to "run as root".
    #[test]
    fn who_is_root_need_not_become_it() {
        let unmounted = |uids: &str, map: &str| {
            let place = Fixture::new().file("sys/kernel/tracing/.keep", "");
            let status = format!("Name:\tx\nUid:\t{uids}\n");
            let seen = tracefs(&place.file("proc/self/status", &status).file("proc/self/uid_map", map).root());
            seen.cure().unwrap()
        };
        let machine = "         0          0 4294967295\n";
        assert_eq!(unmounted("0\t0\t0\t0", machine), "sudo mount -t tracefs tracefs /sys/kernel/tracing");
        assert_eq!(unmounted("1000\t0\t0\t0", machine), "sudo mount -t tracefs tracefs /sys/kernel/tracing");
        assert!(unmounted("1000\t1000\t1000\t1000", machine).ends_with("and run as root"));
        assert!(unmounted("0\t1000\t0\t1000", machine).ends_with("and run as root"), "the effective user decides");
        assert!(unmounted("0\t0\t0\t0", "0 1000 1\n").ends_with("and run as root"), "root of a container alone");
    }

    #[test]
    fn what_can_be_opened_says_how() {
        assert!(Tracefs::Closed("sys/kernel/tracing").cure().unwrap().contains("mode=750,gid=GROUP"));
        assert_eq!((Tracefs::Absent.cure(), Tracefs::Readable("x").cure()), (None, None));
    }
}

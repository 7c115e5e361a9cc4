//! Whether this process can look up the kernel's tracepoints.

use crate::root::Root;

/// Where tracefs is mounted: its own place, then the older one within debugfs.
const FOLDERS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// The state of tracefs, which gives tracepoints their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tracing {
    /// This process can read the list of events in this folder, below `/`.
    Readable(&'static str),
    /// Mounted in this folder, below `/`, and closed to this process.
    Closed(&'static str),
    /// The kernel has it, and nobody has mounted it.
    NotMounted,
    /// This kernel has no tracefs, or a container hides it.
    Absent,
}

/// Looks for tracefs.
///
/// # References
/// `Documentation/trace/ftrace.rst`, "The File System"; `Documentation/trace/events.rst`.
pub fn tracing(root: &Root) -> Tracing {
    let readable = |folder: &&str| !root.names(&format!("{folder}/events")).is_empty();
    if let Some(folder) = FOLDERS.into_iter().find(|folder| readable(folder)) {
        return Tracing::Readable(folder);
    }
    if let Some(folder) = FOLDERS.into_iter().find(|folder| is_mounted(root, folder)) {
        return Tracing::Closed(folder);
    }
    if root.path(FOLDERS[0]).is_dir() { Tracing::NotMounted } else { Tracing::Absent }
}

/// Whether a tracefs lies there, by proc_pid_mounts(5).
fn is_mounted(root: &Root, folder: &str) -> bool {
    let mounts = root.text("proc/self/mounts").unwrap_or_default();
    let here = |row: &str| {
        let mut columns = row.split(' ').skip(1);
        columns.next().and_then(|path| path.strip_prefix('/')) == Some(folder) && columns.next() == Some("tracefs")
    };
    mounts.lines().any(here)
}

#[cfg(test)]
mod tests {
    use super::{Tracing, tracing};
    use crate::fixture::Fixture;

    #[test]
    fn each_state_is_told_from_the_others() {
        let own = Fixture::new().file("sys/kernel/tracing/events/sched/enable", "0\n");
        assert_eq!(tracing(&own.root()), Tracing::Readable("sys/kernel/tracing"));
        let older = Fixture::new().file("sys/kernel/debug/tracing/events/sched/enable", "0\n");
        assert_eq!(tracing(&older.root()), Tracing::Readable("sys/kernel/debug/tracing"));
        let closed = Fixture::new()
            .file("sys/kernel/tracing/.keep", "")
            .file("proc/self/mounts", "proc /proc proc rw 0 0\ntracefs /sys/kernel/tracing tracefs rw 0 0\n");
        assert_eq!(tracing(&closed.root()), Tracing::Closed("sys/kernel/tracing"));
        let unmounted = Fixture::new().file("sys/kernel/tracing/.keep", "");
        assert_eq!(tracing(&unmounted.root()), Tracing::NotMounted);
        assert_eq!(tracing(&Fixture::new().root()), Tracing::Absent);
    }
}

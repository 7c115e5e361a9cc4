//! What is mounted where, as this process sees it.

/// One row of the table of mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount<'a> {
    /// `tmpfs`, `tracefs`.
    pub(crate) kind: &'a str,
    /// Comma by comma.
    pub(crate) options: Vec<&'a str>,
}

/// What lies at `folder` (`/dev/shm`) by the text of `/proc/self/mounts`: of several mounts there the last, which lies
/// on top. `None` where nothing is mounted.
///
/// # References
/// proc_pid_mounts(5); fstab(5), which escapes blanks in paths: the lab asks for none that has any.
pub(crate) fn mount_at<'a>(mounts: &'a str, folder: &str) -> Option<Mount<'a>> {
    let here = |row: &'a str| {
        let mut columns = row.split(' ').skip(1);
        let is_here = columns.next() == Some(folder);
        let (kind, options) = (columns.next()?, columns.next().unwrap_or_default());
        is_here.then(|| Mount { kind, options: options.split(',').filter(|option| !option.is_empty()).collect() })
    };
    mounts.lines().filter_map(here).next_back()
}

#[cfg(test)]
mod tests {
    use super::{Mount, mount_at};

    #[test]
    fn the_last_mount_of_a_folder_lies_on_top() {
        let table = "proc /proc proc rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\nnone /dev/shm ramfs ro,noexec 0 0\nodd\n\
                     tmpfs /dev/shm/x tmpfs rw 0 0\n";
        let of = |folder| mount_at(table, folder);
        assert_eq!(of("/dev/shm"), Some(Mount { kind: "ramfs", options: vec!["ro", "noexec"] }));
        assert_eq!(of("/proc"), Some(Mount { kind: "proc", options: vec!["rw"] }));
        assert_eq!((of("/dev"), mount_at("", "/proc")), (None, None));
    }
}

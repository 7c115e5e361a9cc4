//! All shared segments of the machine and who maps them, as far as this process may look.

use crate::segment::{self, Key};
use crate::target::mapping;
use host::{Mapping, Root};
use record::{AttachListing, ListedSegment, SCHEMA_VERSION, SegmentKind, SegmentQuiet, SegmentUser};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;

/// Lists them: those that most processes map first, those on which nobody contends last.
///
/// The look takes no pidfds: a process that ends meanwhile may be listed, and one that begins may be missing.
pub fn census(root: &Root) -> AttachListing {
    let mut mapped: BTreeMap<Key, Vec<(u32, Mapping)>> = BTreeMap::new();
    let mut closed = Vec::new();
    for pid in host::process_numbers(root) {
        match host::mappings(root, pid) {
            Ok(seen) => {
                for one in seen.shared().filter(|one| segment::is_memory(one)) {
                    mapped.entry(segment::key(one)).or_default().push((pid, one.clone()));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => closed.push(pid),
            // It has ended.
            Err(_) => {}
        }
    }
    let mut segments: Vec<ListedSegment> = mapped.into_values().map(|mappings| listed(root, &mappings)).collect();
    segments.sort_by_cached_key(rank);
    AttachListing { schema_version: SCHEMA_VERSION, segments, closed }
}

/// Who may contend, then by number of processes, then what was made to be shared before files, then by name.
fn rank(of: &ListedSegment) -> (Option<SegmentQuiet>, Reverse<usize>, SegmentKind, String, u64) {
    (of.quiet, Reverse(of.users.len()), of.segment.kind, of.segment.name.clone(), of.segment.inode)
}

fn listed(root: &Root, mappings: &[(u32, Mapping)]) -> ListedSegment {
    let segment = segment::describe(root, mappings);
    let mut users: Vec<SegmentUser> = Vec::new();
    for (pid, one) in mappings {
        match users.last_mut().filter(|user| user.pid == *pid) {
            Some(user) => user.mappings.push(mapping(one)),
            None => users.push(SegmentUser {
                pid: *pid,
                command: host::command_of(root, *pid).unwrap_or_default(),
                mappings: vec![mapping(one)],
            }),
        }
    }
    let written = mappings.iter().any(|(_, one)| one.writable);
    // What has a name made for sharing may be waiting for its others.
    let is_named = matches!(segment.kind, SegmentKind::Posix | SegmentKind::Sysv) && !segment.deleted;
    let quiet = match (written, users.len()) {
        (false, _) => Some(SegmentQuiet::ReadOnly),
        (true, 1) if !is_named => Some(SegmentQuiet::OneProcess),
        _ => None,
    };
    ListedSegment { choose: segment::choose(&segment), segment, users, quiet }
}

#[cfg(test)]
mod tests {
    use super::census;
    use host::Root;
    use record::SegmentQuiet;
    use std::path::Path;

    fn process(folder: &Path, pid: u32, command: &str, maps: &str) {
        let of = folder.join(format!("proc/{pid}"));
        std::fs::create_dir_all(&of).expect("a folder");
        std::fs::write(of.join("comm"), format!("{command}\n")).expect("a file");
        std::fs::write(of.join("maps"), maps).expect("a file");
    }

    #[test]
    fn segments_are_listed_with_their_users_and_those_nobody_contends_on_come_last() {
        let folder = tempfile::tempdir().expect("a folder");
        let font = "7f00-7f01 r--s 00000000 fd:01 9 /usr/share/font\n";
        let ring = "1000-2000 rw-s 00000000 00:1b 42 /dev/shm/ring\n";
        process(folder.path(), 11, "writer", &format!("{ring}{font}8000-9000 rw-s 00000000 fd:01 5 /var/log/own\n"));
        process(folder.path(), 12, "reader", &format!("{font}5000-6000 r--s 00000000 00:1b 42 /dev/shm/ring\n"));
        process(folder.path(), 13, "lonely", "1000-2000 rw-s 00000000 00:1b 50 /dev/shm/waiting\n");
        process(folder.path(), 14, "kernel", "");
        process(folder.path(), 15, "screen", "1000-2000 rw-s 00000000 00:06 1 /dev/dri/card0\n");
        let seen = census(&Root::at(folder.path()));
        let rows: Vec<(&str, Vec<u32>, Option<SegmentQuiet>)> = seen
            .segments
            .iter()
            .map(|of| (of.segment.name.as_str(), of.users.iter().map(|user| user.pid).collect(), of.quiet))
            .collect();
        assert_eq!(
            rows,
            [
                ("/dev/shm/ring", vec![11, 12], None),
                ("/dev/shm/waiting", vec![13], None),
                ("/usr/share/font", vec![11, 12], Some(SegmentQuiet::ReadOnly)),
                ("/var/log/own", vec![11], Some(SegmentQuiet::OneProcess)),
            ]
        );
        let ring = &seen.segments[0];
        assert_eq!((ring.choose.as_str(), ring.users[0].command.as_str()), ("--segment /ring", "writer"));
        assert!(ring.users[0].mappings[0].writable && !ring.users[1].mappings[0].writable);
    }
}

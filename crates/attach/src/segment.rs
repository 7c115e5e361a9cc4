//! What a shared segment is called, how it came to be, and how long it is.

use host::{Mapping, Root};
use record::{AttachedSegment, SegmentKind};

/// What follows a name that is gone.
const DELETED: &str = " (deleted)";

/// By what the kernel tells one segment from another: device and inode.
pub(crate) type Key = ((u32, u32), u64);

pub(crate) fn key(mapping: &Mapping) -> Key {
    (mapping.device, mapping.inode)
}

/// Mappings of what is no memory that programs share, or not as memory alone: devices, rings between a program and the
/// kernel, graphics memory. Programs choose file names and not these.
const NO_MEMORY: [&str; 6] = ["anon_inode:", "socket:", "/[aio]", "/dmabuf:", "/drm mm object", "/i915"];

/// Folders below `/dev` whose files are memory, beside `/dev/zero`, which stands for memory without a file.
const MEMORY_BELOW_DEV: [&str; 4] = ["/dev/shm/", "/dev/hugepages", "/dev/mqueue/", "/dev/zero"];

/// Whether a mapping is of memory.
pub(crate) fn is_memory(mapping: &Mapping) -> bool {
    let name = mapping.name.as_str();
    let is_device = name.starts_with("/dev/") && !MEMORY_BELOW_DEV.iter().any(|folder| name.starts_with(folder));
    !is_device && !NO_MEMORY.iter().any(|begin| name.starts_with(begin))
}

/// How it came to be, by the name that the kernel gives it.
///
/// # References
/// proc_pid_maps(5); `ipc/shm.c` (`SYSV%08x`), `mm/memfd.c` (`memfd:`), `mm/shmem.c` (`dev/zero`), `fs/hugetlbfs/inode.c`
/// (`anon_hugepage`).
pub(crate) fn kind(name: &str) -> SegmentKind {
    let is_sysv = |key: &str| key.len() >= 8 && key.bytes().take(8).all(|digit| digit.is_ascii_hexdigit());
    match name {
        _ if name.starts_with("/dev/shm/") => SegmentKind::Posix,
        _ if name.starts_with("/memfd:") => SegmentKind::Memfd,
        _ if name.strip_prefix("/SYSV").is_some_and(is_sysv) => SegmentKind::Sysv,
        "/dev/zero (deleted)" | "/anon_hugepage (deleted)" => SegmentKind::Anonymous,
        _ => SegmentKind::File,
    }
}

/// The name without the word that it is gone.
pub(crate) fn bare_name(segment: &AttachedSegment) -> &str {
    segment.name.strip_suffix(DELETED).unwrap_or(&segment.name)
}

/// The segment of some mappings, each with its process: never empty.
pub(crate) fn describe(root: &Root, mappings: &[(u32, Mapping)]) -> AttachedSegment {
    let (_, first) = &mappings[0];
    let kind = kind(&first.name);
    let sysv = || host::sysv_segments(root).into_iter().find(|segment| segment.id == first.inode);
    let sysv = if kind == SegmentKind::Sysv { sysv() } else { None };
    let asked = sysv.map(|segment| segment.bytes).or_else(|| mappings.iter().find_map(|of| length(root, of)));
    let furthest = mappings.iter().map(|(_, mapping)| mapping.offset.saturating_add(mapping.bytes)).max();
    AttachedSegment {
        name: first.name.clone(),
        kind,
        device: first.device,
        inode: first.inode,
        bytes: asked.or(furthest).unwrap_or(0),
        deleted: match kind {
            // The kernel writes it behind every such name; what can be attached by number is listed.
            SegmentKind::Sysv => sysv.is_none_or(|segment| segment.doomed),
            _ => first.name.ends_with(DELETED),
        },
    }
}

/// The file's length, asked through a mapping of it, which reaches files without a name too.
///
/// # References
/// proc_pid_map_files(5): takes CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE.
fn length(root: &Root, (pid, mapping): &(u32, Mapping)) -> Option<u64> {
    let end = mapping.address + mapping.bytes;
    root.file_bytes(&format!("proc/{pid}/map_files/{:x}-{end:x}", mapping.address))
}

/// The options that name this segment and no other.
pub(crate) fn choose(segment: &AttachedSegment) -> String {
    let name = bare_name(segment);
    match segment.kind {
        SegmentKind::Posix if !segment.deleted => format!("--segment {}", quoted(&name["/dev/shm".len()..])),
        SegmentKind::Sysv => format!("--sysv {}", segment.inode),
        SegmentKind::File if !segment.deleted => format!("--file {}", quoted(name)),
        _ => format!("--segment {}", number(segment)),
    }
}

/// `00:1b:1042`: device and inode, as the maps write them.
fn number(segment: &AttachedSegment) -> String {
    let (major, minor) = segment.device;
    format!("{major:02x}:{minor:02x}:{}", segment.inode)
}

/// Device and inode of such a text; `None` of any other.
pub(crate) fn parsed_number(text: &str) -> Option<Key> {
    let hex = |text: &str| u32::from_str_radix(text, 16).ok();
    let parts: Vec<&str> = text.split(':').collect();
    let &[major, minor, inode] = &parts[..] else { return None };
    Some(((hex(major)?, hex(minor)?), inode.parse().ok()?))
}

/// As a shell takes it for one word.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(name: &str) -> Mapping {
        let (device, inode) = ((0, 0x1b), 1042);
        Mapping {
            address: 0x1000,
            bytes: 0x2000,
            offset: 0x1000,
            shared: true,
            writable: true,
            executable: false,
            device,
            inode,
            name: name.into(),
        }
    }

    fn described(name: &str) -> AttachedSegment {
        describe(&Root::at("/nowhere"), &[(7, mapping(name))])
    }

    #[test]
    fn the_kernel_s_names_tell_how_a_segment_came_to_be() {
        let kinds = [
            ("/dev/shm/ring", SegmentKind::Posix),
            ("/dev/shm/ring (deleted)", SegmentKind::Posix),
            ("/memfd:ring (deleted)", SegmentKind::Memfd),
            ("/SYSV0000002a (deleted)", SegmentKind::Sysv),
            ("/SYSVer", SegmentKind::File),
            ("/dev/zero (deleted)", SegmentKind::Anonymous),
            ("/anon_hugepage (deleted)", SegmentKind::Anonymous),
            ("/var/lib/db/index", SegmentKind::File),
        ];
        for (name, expected) in kinds {
            assert_eq!(kind(name), expected, "{name}");
        }
    }

    #[test]
    fn devices_and_the_kernel_s_rings_are_no_memory() {
        for name in ["/dev/dri/card0", "anon_inode:[perf_event]", "anon_inode:[io_uring]", "/[aio] (deleted)"] {
            assert!(!is_memory(&mapping(name)), "{name}");
        }
        for name in ["/dev/shm/ring", "/dev/zero (deleted)", "/dev/hugepages/pool", "/memfd:x (deleted)", "/home/x"] {
            assert!(is_memory(&mapping(name)), "{name}");
        }
    }

    #[test]
    fn each_segment_is_named_by_options_that_name_it_alone() {
        let options = |name: &str| choose(&described(name));
        assert_eq!(options("/dev/shm/ring"), "--segment /ring");
        assert_eq!(options("/dev/shm/my ring"), "--segment '/my ring'");
        assert_eq!(options("/dev/shm/ring (deleted)"), "--segment 00:1b:1042");
        assert_eq!(options("/memfd:ring (deleted)"), "--segment 00:1b:1042");
        assert_eq!(options("/SYSV0000002a (deleted)"), "--sysv 1042");
        assert_eq!(options("/var/it's"), "--file '/var/it'\\''s'");
        assert_eq!(parsed_number("00:1b:1042"), Some(((0, 0x1b), 1042)));
        assert_eq!((parsed_number("memfd:ring"), parsed_number("/a:b:c")), (None, None));
    }

    #[test]
    fn where_a_length_cannot_be_asked_the_furthest_mapped_byte_stands_for_it() {
        let seen = described("/memfd:ring (deleted)");
        assert_eq!((seen.bytes, seen.deleted), (0x3000, true));
        assert!(!described("/dev/shm/ring").deleted);
    }
}

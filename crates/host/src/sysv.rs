//! System V shared memory, as `/proc/sysvipc/shm` lists it.

use crate::root::Root;

/// In the column of modes: removed once the last process detaches (`SHM_DEST` of `linux/shm.h`).
const DOOMED: u32 = 0o1000;

/// One segment of `shmget`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SysvSegment {
    /// Its number, which is the inode of its mappings.
    pub id: u64,
    /// Length, bytes.
    pub bytes: u64,
    /// Whether it was removed, and lives until the last process detaches.
    pub doomed: bool,
}

/// The segments of this process's namespace of System V IPC, which are not those of another container.
///
/// # References
/// proc_sysvipc(5): key, shmid, perms, size, ….
pub fn sysv_segments(root: &Root) -> Vec<SysvSegment> {
    let segment = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[_, id, modes, bytes, ..] = &fields[..] else { return None };
        let doomed = u32::from_str_radix(modes, 8).ok()? & DOOMED != 0;
        Some(SysvSegment { id: id.parse().ok()?, bytes: bytes.parse().ok()?, doomed })
    };
    root.text("proc/sysvipc/shm").unwrap_or_default().lines().filter_map(segment).collect()
}

#[cfg(test)]
mod tests {
    use super::{SysvSegment, sysv_segments};
    use crate::fixture::Fixture;

    #[test]
    fn segments_are_listed_with_those_that_wait_for_their_end() {
        let text = "       key      shmid perms                  size  cpid  lpid nattch\n\
                    \x20        0      32769  1600                  8192   411   411      2\n\
                    \x20 16909060          3   666               1048576   400   400      1\n";
        let of = |id, bytes, doomed| SysvSegment { id, bytes, doomed };
        let fixture = Fixture::new().file("proc/sysvipc/shm", text);
        assert_eq!(sysv_segments(&fixture.root()), [of(32769, 8192, true), of(3, 1_048_576, false)]);
        assert_eq!(sysv_segments(&Fixture::new().root()), []);
    }
}

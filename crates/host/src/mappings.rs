//! The shared mappings of a process, as `/proc/PID/maps` lists them.

use crate::root::Root;
use std::collections::BTreeMap;
use std::io;

/// A mapping that other processes may see the writes of (`MAP_SHARED`), of something that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedMapping {
    /// First address in that process.
    pub address: u64,
    /// Length, bytes.
    pub bytes: u64,
    /// Where in the file it begins, bytes.
    pub offset: u64,
    /// Whether it may be written through now.
    pub writable: bool,
    /// Major and minor number of the file's device.
    pub device: (u32, u32),
    /// The file's number there.
    pub inode: u64,
    /// The file as the kernel names it, with ` (deleted)` behind a name that is gone.
    pub name: String,
}

/// What a process maps: what it shares, and by what the rest is told from another program's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mappings {
    /// Those that are shared, ascending by address.
    pub shared: Vec<SharedMapping>,
    /// Bits of the addresses: 32 where all of them fit, which no process of 64 bits has. `None` of a process without
    /// memory: a kernel thread, or one that has ended.
    pub address_bits: Option<u32>,
    /// Where the kernel put what every program gets: `[stack]`'s end and `[vdso]`'s begin. Chosen at random at each
    /// execve, so that a process in which they changed runs another program.
    pub image: BTreeMap<String, u64>,
}

/// Reads them. They are read in pieces, so that what maps and unmaps meanwhile can be seen half.
///
/// # Errors
/// Of the file: not found or ESRCH where there is no such process any more; EACCES where this process may not look at it
/// (ptrace(2), PTRACE_MODE_READ).
///
/// # References
/// proc_pid_maps(5); `fs/proc/task_mmu.c`, show_map_vma: of a name only line ends are escaped.
pub fn mappings(root: &Root, pid: u32) -> io::Result<Mappings> {
    let bytes = std::fs::read(root.path(&format!("proc/{pid}/maps")))?;
    Ok(parsed(&String::from_utf8_lossy(&bytes)))
}

fn parsed(text: &str) -> Mappings {
    let mut seen = Mappings::default();
    for line in text.lines().filter_map(Line::of) {
        let bits = if line.end <= 1 << 32 { 32 } else { 64 };
        seen.address_bits = Some(seen.address_bits.unwrap_or(32).max(bits));
        match line.name {
            "[stack]" => _ = seen.image.insert(line.name.to_owned(), line.end),
            "[vdso]" => _ = seen.image.insert(line.name.to_owned(), line.begin),
            _ => {}
        }
        seen.shared.extend(line.shared());
    }
    seen
}

/// `7f5a-7f5b rw-s 00001000 00:1b 1042   /dev/shm/ring`
struct Line<'a> {
    begin: u64,
    end: u64,
    modes: &'a str,
    offset: u64,
    device: (u32, u32),
    inode: u64,
    name: &'a str,
}

impl Line<'_> {
    fn of(line: &str) -> Option<Line<'_>> {
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let mut rest = line;
        let mut field = || {
            let (field, behind) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = behind.trim_start_matches(' ');
            field
        };
        let (begin, end) = field().split_once('-')?;
        let (modes, offset) = (field(), hex(field())?);
        let (major, minor) = field().split_once(':')?;
        let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
        let inode = field().parse().ok()?;
        Some(Line { begin: hex(begin)?, end: hex(end)?, modes, offset, device, inode, name: rest })
    }

    fn shared(&self) -> Option<SharedMapping> {
        let modes = self.modes.as_bytes();
        // The first segment of shmget has the number 0, which is its inode.
        let is_shared = modes.get(3) == Some(&b's') && !self.name.is_empty();
        is_shared.then(|| SharedMapping {
            address: self.begin,
            bytes: self.end.saturating_sub(self.begin),
            offset: self.offset,
            writable: modes.get(1) == Some(&b'w'),
            device: self.device,
            inode: self.inode,
            name: self.name.replace("\\012", "\n"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{SharedMapping, mappings};
    use crate::fixture::Fixture;
    use crate::root::Root;

    const RING: &str = "\
55d0c0a00000-55d0c0a01000 r--p 00000000 fd:01 131 /usr/bin/server
7f1200000000-7f1200002000 rw-s 00001000 00:1b 1042                       /dev/shm/a ring (deleted)
7f1300000000-7f1300001000 r--s 00000000 fd:01 77 /tmp/two\\012lines
7f1400000000-7f1400001000 rw-p 00000000 00:00 0 
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
7ffd00100000-7ffd00102000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";

    fn seen(text: &str) -> super::Mappings {
        mappings(&Fixture::new().file("proc/7/maps", text).root(), 7).expect("a file")
    }

    #[test]
    fn shared_mappings_are_told_from_private_ones() {
        let seen = seen(RING);
        let ring = SharedMapping {
            address: 0x7f12_0000_0000,
            bytes: 0x2000,
            offset: 0x1000,
            writable: true,
            device: (0, 0x1b),
            inode: 1042,
            name: "/dev/shm/a ring (deleted)".to_owned(),
        };
        assert_eq!(seen.shared[0], ring);
        assert_eq!((seen.shared.len(), seen.shared[1].writable), (2, false));
        assert_eq!(seen.shared[1].name, "/tmp/two\nlines");
    }

    #[test]
    fn the_first_segment_of_shmget_is_inode_0() {
        let seen = seen("1000-2000 rw-s 00000000 00:01 0                  /SYSV00000000 (deleted)\n");
        assert_eq!((seen.shared.len(), seen.shared[0].inode), (1, 0));
    }

    #[test]
    fn a_program_is_known_by_where_the_kernel_put_its_stack() {
        let image = seen(RING).image;
        assert_eq!((image["[stack]"], image["[vdso]"]), (0x7ffd_0002_1000, 0x7ffd_0010_0000));
    }

    #[test]
    fn addresses_of_32_bits_are_told_and_no_memory_is_neither() {
        assert_eq!(seen(RING).address_bits, Some(64));
        let small =
            "08048000-08049000 r-xp 00000000 fd:01 5 /bin/old\nfffdd000-100000000 rw-p 00000000 00:00 0 [stack]\n";
        assert_eq!(seen(small).address_bits, Some(32));
        assert_eq!(seen("").address_bits, None);
    }

    #[test]
    fn no_process_is_an_error_and_this_one_has_a_stack() {
        let error = mappings(&Fixture::new().root(), 7).expect_err("no such process");
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        let own = mappings(&Root::system(), std::process::id()).expect("one may look at oneself");
        assert_eq!(own.address_bits, Some(usize::BITS));
        assert!(own.image.contains_key("[stack]"), "{own:?}");
    }
}

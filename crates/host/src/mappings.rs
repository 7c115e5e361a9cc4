//! The mappings of a process, as `/proc/PID/maps` lists them.

use crate::root::Root;
use std::io;

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address in that process.
    pub address: u64,
    /// Length, bytes.
    pub bytes: u64,
    /// Where in the file it begins, bytes.
    pub offset: u64,
    /// Whether other processes may see what is written through it (`MAP_SHARED`).
    pub shared: bool,
    /// Whether it may be written through now.
    pub writable: bool,
    /// Whether code may run there now.
    pub executable: bool,
    /// Major and minor number of the file's device.
    pub device: (u32, u32),
    /// The file's number there; 0 where there is no file, and of the first segment of shmget.
    pub inode: u64,
    /// The file as the kernel names it, with ` (deleted)` behind a name that is gone; empty where there is none.
    pub name: String,
}

/// What a process maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mappings {
    /// All of it, ascending by address.
    pub all: Vec<Mapping>,
}

impl Mappings {
    /// Those of something that other processes can map too.
    pub fn shared(&self) -> impl Iterator<Item = &Mapping> {
        self.all.iter().filter(|one| one.shared && !one.name.is_empty())
    }

    /// Bits of the addresses: 32 where all of them fit, which no process of 64 bits has. `None` of a process without
    /// memory: a kernel thread, or one that has ended.
    pub fn address_bits(&self) -> Option<u32> {
        let end = self.all.iter().map(|one| one.address.saturating_add(one.bytes)).max()?;
        Some(if end <= 1 << 32 { 32 } else { 64 })
    }

    /// Where the kernel put what every program gets: the end of its stack and the begin of the kernel's page in it.
    /// Chosen at random at each execve, so that a process in which they changed runs another program.
    pub fn image(&self) -> Image {
        let of = |name: &str| self.all.iter().find(|one| one.name == name);
        Image {
            stack_end: of("[stack]").map(|one| one.address.saturating_add(one.bytes)),
            vdso: of("[vdso]").map(|one| one.address),
        }
    }
}

/// By what one program of a process is told from the next.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    stack_end: Option<u64>,
    vdso: Option<u64>,
}

/// Reads them. They are read in pieces, so that what maps and unmaps meanwhile can be seen half.
///
/// # Errors
/// Of the file: not found or ESRCH where there is no such process any more; EACCES where this process may not look at
/// it (ptrace(2), PTRACE_MODE_READ).
///
/// # References
/// proc_pid_maps(5); `fs/proc/task_mmu.c`, show_map_vma: of a name only line ends are escaped.
pub fn mappings(root: &Root, pid: u32) -> io::Result<Mappings> {
    let bytes = std::fs::read(root.path(&format!("proc/{pid}/maps")))?;
    Ok(parsed(&String::from_utf8_lossy(&bytes)))
}

fn parsed(text: &str) -> Mappings {
    Mappings { all: text.lines().filter_map(mapping).collect() }
}

/// `7f5a-7f5b rw-s 00001000 00:1b 1042   /dev/shm/ring`
fn mapping(line: &str) -> Option<Mapping> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut rest = line;
    let mut field = || {
        let (field, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = behind.trim_start_matches(' ');
        field
    };
    let (begin, end) = field().split_once('-')?;
    let (address, end) = (hex(begin)?, hex(end)?);
    let (modes, offset) = (field().as_bytes(), hex(field())?);
    let (major, minor) = field().split_once(':')?;
    let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    let inode = field().parse().ok()?;
    let may = |at: usize, mode: u8| modes.get(at) == Some(&mode);
    Some(Mapping {
        address,
        bytes: end.saturating_sub(address),
        offset,
        shared: may(3, b's'),
        writable: may(1, b'w'),
        executable: may(2, b'x'),
        device,
        inode,
        name: rest.replace("\\012", "\n"),
    })
}

#[cfg(test)]
mod tests {
    use super::{Image, Mapping, mappings};
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
        let ring = Mapping {
            address: 0x7f12_0000_0000,
            bytes: 0x2000,
            offset: 0x1000,
            shared: true,
            writable: true,
            executable: false,
            device: (0, 0x1b),
            inode: 1042,
            name: "/dev/shm/a ring (deleted)".to_owned(),
        };
        let shared: Vec<&Mapping> = seen.shared().collect();
        assert_eq!(*shared[0], ring);
        assert_eq!((shared.len(), shared[1].writable, shared[1].name.as_str()), (2, false, "/tmp/two\nlines"));
        assert_eq!((seen.all.len(), seen.all[0].name.as_str(), seen.all[5].executable), (7, "/usr/bin/server", true));
    }

    #[test]
    fn the_first_segment_of_shmget_is_inode_0() {
        let seen = seen("1000-2000 rw-s 00000000 00:01 0                  /SYSV00000000 (deleted)\n");
        assert_eq!(seen.shared().map(|one| one.inode).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn a_program_is_known_by_where_the_kernel_put_its_stack() {
        let (stack_end, vdso) = (Some(0x7ffd_0002_1000), Some(0x7ffd_0010_0000));
        assert_eq!(seen(RING).image(), Image { stack_end, vdso });
    }

    #[test]
    fn addresses_of_32_bits_are_told_and_no_memory_is_neither() {
        assert_eq!(seen(RING).address_bits(), Some(64));
        let small =
            "08048000-08049000 r-xp 00000000 fd:01 5 /bin/old\nfffdd000-100000000 rw-p 00000000 00:00 0 [stack]\n";
        assert_eq!(seen(small).address_bits(), Some(32));
        assert_eq!(seen("").address_bits(), None);
    }

    #[test]
    fn no_process_is_an_error_and_this_one_has_a_stack() {
        let error = mappings(&Fixture::new().root(), 7).expect_err("no such process");
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        let own = mappings(&Root::system(), std::process::id()).expect("one may look at oneself");
        assert_eq!(own.address_bits(), Some(usize::BITS));
        assert!(own.image().stack_end.is_some(), "{own:?}");
    }
}

//! The segment: a POSIX shared-memory object, created or attached, and the typed views of its parts.
#![allow(unsafe_code)] // views of mapped memory

mod create;
mod ownership;
mod regions;

#[cfg(test)]
pub(crate) use create::random_name;
pub use create::{CreateError, SegmentSpec};
pub use regions::{RegionError, region_file};

use crate::SharedMemory;
use crate::check::{ProgramError, check_program};
use crate::control::Control;
use crate::header::{Header, HeaderError, program_hash};
use crate::lock::LockPlace;
use crate::map::SegmentMap;
use crate::slot::Slot;
use nix::fcntl::Flock;
use nix::sys::mman::shm_unlink;
use plan::{LockKind, Program, TickRate};
use shared_memory::{Shmem, ShmemConf, ShmemError};
use std::mem::size_of;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, Ordering};

/// What every segment's name begins with; the rest is 16 random hexadecimal digits.
pub(crate) const NAME_PREFIX: &str = "contention-lab-";

/// Where Linux mounts POSIX shared memory (`shm_overview(7)`).
pub(crate) const SHM_FOLDER: &str = "/dev/shm";

/// Why a worker could not attach.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// It cannot be opened or mapped.
    #[error("opening shared memory `{name}` failed: {source}")]
    Open {
        /// The name.
        name: String,
        /// What the library said.
        source: ShmemError,
    },
    /// It is shorter than its map.
    #[error("shared memory `{name}` has {found} bytes where the program needs {expected}")]
    TooShort {
        /// The name.
        name: String,
        /// Its size.
        found: u64,
        /// The map's.
        expected: u64,
    },
    /// Its header is not what it should be.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The Program fits no segment; nothing was opened.
    #[error(transparent)]
    Program(#[from] ProgramError),
}

/// A mapped segment. Dropping the creator's unlinks the name, unless [`Segment::unlink`] has.
pub struct Segment {
    shmem: Shmem,
    map: SegmentMap,
    /// Offset of each lock in the area, inside it and aligned, as `check_program` saw; and its kind.
    locks: Vec<(u64, LockKind)>,
    /// How fast the clock ticks: the creator's calibration, checked once and kept here, where nobody else can change it.
    rate: TickRate,
    /// Held by the creator while the name exists: what nobody holds, `clean` may remove. Close-on-exec.
    guard: Option<Flock<OwnedFd>>,
}

// SAFETY: a shared reference gives names, numbers, views of atomics ([`SharedMemory`], vouched for by whoever
// implements it) and raw pointers, to which their users hold the same rules between threads as between processes. What
// it takes a `Shmem` for is reading its address, length and name, which change under `&mut self` alone.
unsafe impl Sync for Segment {}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segment").field("name", &self.name()).field("map", &self.map).finish_non_exhaustive()
    }
}

impl Segment {
    /// Attaches to a segment that a coordinator created for `program`. Everything is checked before it is used.
    ///
    /// # Errors
    /// [`AttachError`], naming what does not fit.
    pub fn attach(name: &str, program: &Program, encoded_program: &[u8], slots: u32) -> Result<Segment, AttachError> {
        let map = check_program(program, slots)?;
        let shmem = ShmemConf::new()
            .os_id(format!("/{name}"))
            .open()
            .map_err(|source| AttachError::Open { name: name.to_owned(), source })?;
        if (shmem.len() as u64) < map.segment_bytes {
            let (found, expected) = (shmem.len() as u64, map.segment_bytes);
            return Err(AttachError::TooShort { name: name.to_owned(), found, expected });
        }
        let rate = TickRate { ticks_per_ns: 0.0 };
        let segment = Segment { shmem, map, locks: placed_locks(program), rate, guard: None };
        segment.header().check(&map, program_hash(encoded_program))?;
        Ok(Segment { rate: segment.header().tick_rate()?, ..segment })
    }

    /// Removes the name; the memory lives on in those who mapped it. Coordinator, when all have attached.
    pub fn unlink(&mut self) {
        if self.shmem.set_owner(false) {
            // ENOENT (someone removed the name by hand) leaves nothing to do.
            let _ = shm_unlink(self.shmem.get_os_id());
        }
        self.guard = None;
    }

    /// The name, without its slash.
    pub fn name(&self) -> &str {
        self.shmem.get_os_id().trim_start_matches('/')
    }

    /// Where everything lies.
    pub fn map(&self) -> &SegmentMap {
        &self.map
    }

    /// How fast this machine's clock ticks, as the creator calibrated it.
    pub fn tick_rate(&self) -> TickRate {
        self.rate
    }

    /// The header.
    pub fn header(&self) -> &Header {
        self.view(0)
    }

    /// The control block.
    pub fn control(&self) -> &Control {
        self.view(self.map.control_offset)
    }

    /// The slot of a worker.
    ///
    /// # Panics
    /// If there is no such slot: callers take indices from a Program that was checked against the map.
    pub fn slot(&self, index: u32) -> &Slot {
        let Some(offset) = self.map.slot_offset(index) else { panic!("slot {index} of {}", self.map.workers) };
        self.view(offset)
    }

    /// The fields area: page-aligned, `area_bytes` long, valid while the segment lives. No plain reference may be made
    /// into it.
    pub fn area(&self) -> *mut u8 {
        // SAFETY: the map lies within the mapping: `create_named` sized the one by the other, `attach` compared them.
        unsafe { self.shmem.as_ptr().add(self.map.area_offset as usize) }
    }

    /// The integer of `bytes` bytes (1 to 8) at an offset in the fields area, however it is aligned; `None` where it
    /// does not lie in the area. Read byte by byte: what a worker writes meanwhile may be seen in part, so the
    /// coordinator asks when all have ended, which it learns from the kernel: their stores are visible then.
    pub fn integer(&self, offset: u64, bytes: u64) -> Option<u64> {
        let end = offset.checked_add(bytes).filter(|end| (1..=8).contains(&bytes) && *end <= self.map.area_bytes)?;
        Some((offset..end).rev().fold(0, |value, at| {
            // SAFETY: `at` lies inside the area, by the check above; an atomic read of a byte races with nothing.
            let byte = unsafe { (*self.area().add(at as usize).cast::<AtomicU8>()).load(Ordering::Relaxed) };
            value << 8 | u64::from(byte)
        }))
    }

    /// Where a lock of the Program lies, by its index there; valid while the segment lives.
    ///
    /// # Panics
    /// If there is no such lock: callers take indices from a Program that was checked.
    pub fn lock_place(&self, index: u32) -> LockPlace {
        let nodes = self.map.lock_nodes_offset(index);
        let (Some(nodes), Some(&(offset, _))) = (nodes, self.locks.get(index as usize)) else {
            panic!("lock {index} of {}", self.map.locks);
        };
        // SAFETY: both lie within the mapping: the nodes by the map, the lock by `check_program`, which both
        // constructors of a Segment call; the map fits the mapping, as for `area`.
        let (at, nodes) = unsafe { (self.area().add(offset as usize), self.shmem.as_ptr().add(nodes as usize)) };
        LockPlace { at, nodes, slots: self.map.workers }
    }

    fn view<T: SharedMemory>(&self, offset: u64) -> &T {
        let end = offset + size_of::<T>() as u64;
        assert!(end <= self.map.segment_bytes && offset.is_multiple_of(align_of::<T>() as u64));
        // SAFETY: in bounds and aligned (asserted; mmap aligns the mapping to a page); whoever implements SharedMemory
        // for `T` vouches that any content is valid and every change atomic; the mapping lives as long as `self`.
        unsafe { &*self.shmem.as_ptr().add(offset as usize).cast::<T>() }
    }
}

fn placed_locks(program: &Program) -> Vec<(u64, LockKind)> {
    program.locks.iter().map(|lock| (lock.offset, lock.kind)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orphans::{orphans, remove_orphan};
    use crate::testing::{exists, program, spec};
    use std::path::Path;

    #[test]
    fn created_is_private_attachable_and_gone_when_dropped() {
        use std::os::unix::fs::PermissionsExt;
        let program = program(4096);
        let segment = Segment::create(&spec(&program, b"p")).unwrap();
        let name = segment.name().to_owned();
        let mode = std::fs::metadata(Path::new(SHM_FOLDER).join(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let attached = Segment::attach(&name, &program, b"p", 2).unwrap();
        assert_ne!(attached.area(), segment.area(), "two mappings of one segment");
        attached.slot(1).set_waits_for(Some(4));
        assert_eq!(segment.slot(1).waits_for(), Some(4));
        assert!(matches!(Segment::attach(&name, &program, b"other", 2), Err(AttachError::Header(_))));
        assert!(matches!(
            Segment::attach(&name, &program, b"p", 64),
            Err(AttachError::TooShort { .. } | AttachError::Header(_))
        ));
        drop(segment);
        assert!(!exists(&name));
        assert!(matches!(Segment::attach(&name, &program, b"p", 2), Err(AttachError::Open { .. })));
    }

    /// What any other process of this user could have done to it.
    fn altered(name: &str, offset: usize, bytes: &[u8]) {
        use std::os::unix::fs::FileExt;
        let file = std::fs::OpenOptions::new().write(true).open(Path::new(SHM_FOLDER).join(name)).unwrap();
        file.write_all_at(bytes, offset as u64).unwrap();
    }

    #[test]
    fn a_header_with_any_byte_changed_is_refused_and_its_padding_is_nobodys() {
        let program = program(4096);
        let segment = Segment::create(&spec(&program, b"p")).unwrap();
        let name = segment.name();
        let attach = || Segment::attach(name, &program, b"p", 2);
        let mut sound = [0_u8; size_of::<Header>()];
        // SAFETY: the header is the first of the mapping's many bytes, and nobody writes it meanwhile.
        unsafe { std::ptr::copy_nonoverlapping(segment.shmem.as_ptr(), sound.as_mut_ptr(), sound.len()) };
        for (at, byte) in sound.into_iter().enumerate() {
            let is_rate = (64..72).contains(&at);
            let is_padding = at >= 84;
            for other in
                [byte ^ 1, byte ^ 0x80, !byte, byte.wrapping_add(1), 0, 0xff].into_iter().filter(|b| *b != byte)
            {
                altered(name, at, &[other]);
                match attach() {
                    // A rate may be another clock's; what may not is tried below.
                    Ok(attached) => assert!(is_padding || is_rate && attached.tick_rate().ticks_per_ns > 0.0, "{at}"),
                    Err(AttachError::Header(_)) => assert!(!is_padding, "{at}: {other:#x}"),
                    Err(other) => panic!("{at}: {other}"),
                }
            }
            altered(name, at, &[byte]);
        }
        attach().unwrap();
    }

    #[test]
    fn offsets_that_point_outside_and_sizes_that_are_not_there_are_refused() {
        let program = program(4096);
        let segment = Segment::create(&spec(&program, b"p")).unwrap();
        let name = segment.name();
        let attach = || Segment::attach(name, &program, b"p", 2);
        let end = segment.map().segment_bytes;
        // Segment size, slots, a slot, area, its size, nodes: the numbers by which a reader could be led astray.
        for at in [24, 32, 40, 48, 56, 72] {
            let bytes = u64::to_le_bytes;
            // SAFETY: within the header, aligned, and nobody writes it meanwhile.
            let sound = unsafe { segment.shmem.as_ptr().add(at).cast::<u64>().read() };
            for outside in [end, end - 1, end + 4096, 0, 1, 1 << 40, i64::MAX as u64, u64::MAX - 8, u64::MAX] {
                if outside != sound {
                    altered(name, at, &bytes(outside));
                    assert!(
                        matches!(attach(), Err(AttachError::Header(HeaderError::Mismatch { .. }))),
                        "{at}: {outside}"
                    );
                }
            }
            altered(name, at, &bytes(sound));
        }
        for odd in [0.0, -2.5, f64::NAN, f64::INFINITY, 1e300, 5e-324] {
            altered(name, 64, &f64::to_le_bytes(odd));
            assert!(matches!(attach(), Err(AttachError::Header(HeaderError::Rate { .. }))), "{odd}");
        }
        altered(name, 64, &f64::to_le_bytes(1.0));
        let file = std::fs::OpenOptions::new().write(true).open(Path::new(SHM_FOLDER).join(name)).unwrap();
        for shorter in [0, 1, 127, 128, 4096, end - 4096] {
            file.set_len(shorter).unwrap();
            assert!(
                matches!(attach(), Err(AttachError::TooShort { .. } | AttachError::Open { .. })),
                "{shorter} bytes"
            );
        }
        file.set_len(end + 4096).unwrap();
        assert!(attach().is_err(), "its header is gone with what was cut off");
    }

    #[test]
    fn a_held_segment_is_no_orphan_and_an_unlinked_name_is_gone() {
        let program = program(4096);
        let mut segment = Segment::create(&spec(&program, b"p")).unwrap();
        let name = segment.name().to_owned();
        assert!(!orphans().unwrap().iter().any(|o| o.name == name));
        assert!(!remove_orphan(&name));
        segment.unlink();
        assert!(!exists(&name));
        segment.control().release();
        assert_eq!(segment.control().phase(), crate::Phase::Released, "the memory lives on");
    }

    #[test]
    fn integers_of_the_area_are_read_whole_and_never_beyond_it() {
        let program = program(4096);
        let segment = Segment::create(&spec(&program, b"p")).unwrap();
        let attached = Segment::attach(segment.name(), &program, b"p", 2).unwrap();
        for (offset, byte) in (3u64..).zip([0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01]) {
            // SAFETY: inside the area of 4096 bytes; nobody else touches it in this test.
            unsafe { attached.area().add(offset as usize).write_volatile(byte) };
        }
        assert_eq!(segment.integer(3, 8), Some(0x0102_0304_0506_0708));
        assert_eq!((segment.integer(3, 2), segment.integer(3, 1)), (Some(0x0708), Some(8)));
        assert_eq!(segment.integer(4088, 8), Some(0));
        for (offset, bytes) in [(4089, 8), (4096, 1), (u64::MAX, 8), (0, 0), (0, 9)] {
            assert_eq!(segment.integer(offset, bytes), None, "{offset}, {bytes}");
        }
    }

    #[test]
    fn who_owned_a_lock_last_is_seen_from_outside() {
        use crate::lock::{Effort, SharedLock};
        let program = program(4096);
        let segment = Segment::create(&spec(&program, b"p")).unwrap();
        assert_eq!(segment.last_owner(0), None);
        for (worker, times) in [(1, 2), (0, 1)] {
            // SAFETY: made by `Segment::create` with this kind, and this is the worker's only one.
            let mut lock = unsafe { SharedLock::new(segment.lock_place(0), program.locks[0].kind, worker) };
            for _ in 1..=times {
                lock.acquire(false, &mut Effort::default(), &|| false).unwrap();
                assert_eq!(segment.last_owner(0), Some(worker));
                lock.release(false, &|| false).unwrap();
            }
        }
    }

    #[test]
    fn a_program_that_fits_no_segment_is_refused_before_anything_is_made_or_opened() {
        let mut bad = program(4096);
        bad.locks[0].offset = 4096;
        let refused = Segment::create(&spec(&bad, b"p"));
        assert!(matches!(refused, Err(CreateError::Program(ProgramError::OutsideArea { .. }))), "{refused:?}");
        let refused = Segment::attach("contention-lab-absent", &bad, b"p", 2);
        assert!(matches!(refused, Err(AttachError::Program(ProgramError::OutsideArea { .. }))), "{refused:?}");
        bad.locks[0].offset = 4;
        let refused = Segment::create(&spec(&bad, b"p"));
        assert!(matches!(refused, Err(CreateError::Program(ProgramError::MisalignedLock { .. }))), "{refused:?}");
        let huge = Segment::create(&spec(&program(u64::MAX), b"p"));
        assert!(matches!(huge, Err(CreateError::Program(ProgramError::TooLarge { .. }))), "{huge:?}");
    }
}

//! The segment: a POSIX shared-memory object, created, reserved, attached and removed.
#![allow(unsafe_code)] // views of mapped memory; NUMA system calls that no safe wrapper offers

use crate::SharedMemory;
use crate::clock::TickRate;
use crate::control::Control;
use crate::header::{Header, HeaderError, SegmentMap, check_program, program_hash};
use crate::lock::{self, LockError};
use crate::slot::Slot;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag, posix_fallocate};
use nix::sys::mman::{shm_open, shm_unlink};
use nix::sys::stat::{Mode, fstat};
use plan::Program;
use rand::{TryRngCore, rngs::OsRng};
use shared_memory::{Shmem, ShmemConf, ShmemError};
use std::mem::size_of;
use std::os::fd::OwnedFd;
use std::path::Path;

/// What every segment's name begins with; the rest is 16 random hexadecimal digits.
pub const NAME_PREFIX: &str = "contention-lab-";

/// Where Linux mounts POSIX shared memory (`shm_overview(7)`).
const SHM_FOLDER: &str = "/dev/shm";

/// Names tried before giving up: with 64 random bits, the second collision in a row already means sabotage.
const NAME_ATTEMPTS: usize = 16;

/// What a segment is made for.
#[derive(Debug)]
pub struct SegmentSpec<'a> {
    /// The Program its workers will run.
    pub program: &'a Program,
    /// The same, encoded as the workers receive it.
    pub encoded_program: &'a [u8],
    /// How many slots: the highest worker index plus one.
    pub slots: u32,
    /// The coordinator's calibration.
    pub rate: TickRate,
    /// NUMA node to take the memory from; `None` leaves it to the kernel.
    pub node: Option<u32>,
}

impl SegmentSpec<'_> {
    fn map(&self) -> SegmentMap {
        SegmentMap::new(self.slots, self.program.area_bytes)
    }
}

/// Why a segment could not be made. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The name exists. `Segment::create` takes another; from [`Segment::create_named`] it is final.
    #[error("shared memory `{name}` exists already")]
    NameTaken {
        /// The name, without its leading slash.
        name: String,
    },
    /// No room for the segment.
    #[error(
        "{SHM_FOLDER} has no room for a segment of {bytes} bytes ({errno}): see `df -h {SHM_FOLDER}`, remove what fills \
         it (`coordinator clean` removes what dead runs left), or enlarge it with `mount -o remount,size=SIZE {SHM_FOLDER}`"
    )]
    Full {
        /// Bytes asked for.
        bytes: u64,
        /// ENOSPC, or EDQUOT, ENOMEM.
        errno: Errno,
    },
    /// A system call failed.
    #[error("{call} on shared memory `{name}` failed: {errno}")]
    System {
        /// The call.
        call: &'static str,
        /// The name.
        name: String,
        /// Its errno.
        errno: Errno,
    },
    /// The library that maps segments failed otherwise.
    #[error("creating shared memory `{name}` failed: {source}")]
    Library {
        /// The name.
        name: String,
        /// What it said.
        source: ShmemError,
    },
    /// The memory lies on another NUMA node than it was bound to.
    #[error(
        "the segment's memory was bound to NUMA node {asked} and lies on node {found}: is node {asked} full? see `numastat -m`"
    )]
    WrongNode {
        /// Asked for.
        asked: u32,
        /// Read back.
        found: u32,
    },
    /// A lock could not be initialised.
    #[error(transparent)]
    Lock(#[from] LockError),
}

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
    /// Its header, or the Program, is not what it should be.
    #[error(transparent)]
    Header(#[from] HeaderError),
}

/// A mapped segment. Dropping the creator's unlinks the name, unless [`Segment::unlink`] has.
pub struct Segment {
    shmem: Shmem,
    map: SegmentMap,
    /// Held by the creator while the name exists: what nobody holds, `clean` may remove. Close-on-exec.
    guard: Option<Flock<OwnedFd>>,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segment").field("name", &self.name()).field("map", &self.map).finish_non_exhaustive()
    }
}

impl Segment {
    /// Creates a segment under a fresh random name: exclusively, mode 0600, every page reserved (on `spec.node` if one is
    /// given), locks initialised, header written.
    ///
    /// # Errors
    /// [`CreateError`]; nothing is left behind.
    pub fn create(spec: &SegmentSpec<'_>) -> Result<Segment, CreateError> {
        let mut taken = CreateError::NameTaken { name: String::new() };
        for _ in 0..NAME_ATTEMPTS {
            let name = random_name()?;
            match Segment::create_named(&name, spec) {
                Err(error @ CreateError::NameTaken { .. }) => taken = error,
                other => return other,
            }
        }
        Err(taken)
    }

    /// Creates a segment of that name (no slash in it).
    ///
    /// # Errors
    /// [`CreateError::NameTaken`] where it exists, or where a concurrent `clean` removed it before it could be locked.
    pub fn create_named(name: &str, spec: &SegmentSpec<'_>) -> Result<Segment, CreateError> {
        let map = spec.map();
        let system = |call| move |errno| CreateError::System { call, name: name.to_owned(), errno };
        let shmem =
            ShmemConf::new().os_id(format!("/{name}")).size(map.segment_bytes as usize).create().map_err(|source| {
                match source {
                    ShmemError::MappingIdExists => CreateError::NameTaken { name: name.to_owned() },
                    ShmemError::UnknownOsError(errno) if is_no_room(Errno::from_raw(errno as i32)) => {
                        CreateError::Full { bytes: map.segment_bytes, errno: Errno::from_raw(errno as i32) }
                    }
                    ShmemError::MapCreateFailed(errno) | ShmemError::UnknownOsError(errno) => {
                        system("shm_open, ftruncate or mmap")(Errno::from_raw(errno as i32))
                    }
                    source => CreateError::Library { name: name.to_owned(), source },
                }
            })?;
        // shared_memory shows no descriptor: open the same name for the reservation and the lock.
        let fd = shm_open(format!("/{name}").as_str(), OFlag::O_RDWR, Mode::empty()).map_err(system("shm_open"))?;
        let guard = Flock::lock(fd, FlockArg::LockExclusiveNonblock).map_err(|(_, e)| system("flock")(e))?;
        let link_is_gone = fstat(&*guard).map_err(system("fstat"))?.st_nlink == 0;
        if link_is_gone {
            return Err(CreateError::NameTaken { name: name.to_owned() });
        }
        reserve(&guard, map.segment_bytes, spec.node).map_err(|errno| match errno {
            errno if is_no_room(errno) => CreateError::Full { bytes: map.segment_bytes, errno },
            errno => system("posix_fallocate")(errno),
        })?;
        let segment = Segment { shmem, map, guard: Some(guard) };
        segment.check_node(spec.node)?;
        for lock in &spec.program.locks {
            // SAFETY: the area is ours alone until the header is written; `area_bytes` holds every lock (bind's promise,
            // checked again by each worker), and the offset keeps the lock's alignment because the area is page-aligned.
            unsafe { lock::initialise(segment.area().add(lock.offset as usize), lock.kind)? };
        }
        segment.header().write(&map, program_hash(spec.encoded_program), spec.rate);
        Ok(segment)
    }

    /// Attaches to a segment that a coordinator created for `program`. Everything is checked before it is used.
    ///
    /// # Errors
    /// [`AttachError`], naming what does not fit.
    pub fn attach(name: &str, program: &Program, encoded_program: &[u8], slots: u32) -> Result<Segment, AttachError> {
        check_program(program)?;
        if let Some(worker) = program.workers.iter().find(|w| w.index.0 >= slots) {
            let (index, count) = (u64::from(worker.index.0), u64::from(slots));
            return Err(HeaderError::NoSuch { what: "worker", index, count }.into());
        }
        let map = SegmentMap::new(slots, program.area_bytes);
        let shmem = ShmemConf::new()
            .os_id(format!("/{name}"))
            .open()
            .map_err(|source| AttachError::Open { name: name.to_owned(), source })?;
        if (shmem.len() as u64) < map.segment_bytes {
            let (found, expected) = (shmem.len() as u64, map.segment_bytes);
            return Err(AttachError::TooShort { name: name.to_owned(), found, expected });
        }
        let segment = Segment { shmem, map, guard: None };
        segment.header().check(&map, program_hash(encoded_program))?;
        Ok(segment)
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
        assert!(index < self.map.workers, "slot {index} of {}", self.map.workers);
        self.view(self.map.slots_offset + u64::from(index) * size_of::<Slot>() as u64)
    }

    /// The fields area: page-aligned, `area_bytes` long, valid while the segment lives. No reference may be made into it.
    pub fn area(&self) -> *mut u8 {
        // SAFETY: the map lies within the mapping: `create` sized it so, `attach` checked it.
        unsafe { self.shmem.as_ptr().add(self.map.area_offset as usize) }
    }

    fn view<T: SharedMemory>(&self, offset: u64) -> &T {
        let end = offset + size_of::<T>() as u64;
        assert!(end <= self.map.segment_bytes && offset.is_multiple_of(align_of::<T>() as u64));
        // SAFETY: in bounds and aligned (asserted; the mapping is page-aligned); `T: SharedMemory` makes any content
        // valid and every change atomic; the mapping outlives the borrow of `self`.
        unsafe { &*self.shmem.as_ptr().add(offset as usize).cast::<T>() }
    }

    fn check_node(&self, asked: Option<u32>) -> Result<(), CreateError> {
        let (Some(asked), Some(found)) = (asked, asked.and_then(|_| node_of(self.area()))) else {
            return Ok(());
        };
        if asked == found { Ok(()) } else { Err(CreateError::WrongNode { asked, found }) }
    }
}

/// A name that nobody can guess.
fn random_name() -> Result<String, CreateError> {
    let name = |digits| format!("{NAME_PREFIX}{digits:016x}");
    match OsRng.try_next_u64() {
        Ok(digits) => Ok(name(digits)),
        Err(_) => Err(CreateError::System { call: "getrandom", name: name(0), errno: Errno::last() }),
    }
}

fn is_no_room(errno: Errno) -> bool {
    matches!(errno, Errno::ENOSPC | Errno::EDQUOT | Errno::ENOMEM | Errno::EFBIG)
}

/// Allocates every page now, so that no later touch can find the file system full (SIGBUS).
fn reserve(fd: &OwnedFd, bytes: u64, node: Option<u32>) -> Result<(), Errno> {
    if let Some(node) = node {
        set_memory_policy(Some(node))?;
    }
    let reserved = loop {
        match posix_fallocate(fd, 0, bytes as i64) {
            Err(Errno::EINTR) => {}
            other => break other,
        }
    };
    if node.is_some() {
        set_memory_policy(None)?;
    }
    reserved
}

/// Binds this thread's allocations to a node, or back to the default (`set_mempolicy(2)`).
fn set_memory_policy(node: Option<u32>) -> Result<(), Errno> {
    const MASK_BITS: usize = 1024; // the kernel's own bound on x86-64, MAX_NUMNODES
    let mut mask = [0u64; MASK_BITS / 64];
    let (mode, bits) = match node {
        Some(node) if (node as usize) < MASK_BITS => {
            mask[node as usize / 64] |= 1 << (node % 64);
            (libc::MPOL_BIND, MASK_BITS + 1) // the kernel reads one bit less than it is told
        }
        Some(_) => return Err(Errno::EINVAL),
        None => (libc::MPOL_DEFAULT, 0),
    };
    let mask_ptr = if bits == 0 { std::ptr::null() } else { mask.as_ptr() };
    // SAFETY: the mask is at least `bits - 1` bits long, or null with a length of 0.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask_ptr, bits) };
    Errno::result(result).map(drop)
}

/// The NUMA node of the page at `address` (`get_mempolicy(2)`), where the kernel says.
fn node_of(address: *mut u8) -> Option<u32> {
    const MPOL_F_NODE_AND_ADDR: libc::c_ulong = 1 | 2;
    let mut node: libc::c_int = -1;
    // SAFETY: `address` is mapped; the kernel touches the page itself and writes one int.
    let result = unsafe {
        address.read_volatile();
        let null = std::ptr::null_mut::<libc::c_void>();
        libc::syscall(libc::SYS_get_mempolicy, &raw mut node, null, 0usize, address, MPOL_F_NODE_AND_ADDR)
    };
    (result == 0).then(|| u32::try_from(node).ok()).flatten()
}

/// A segment of the lab's, found by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// The lab's segments that no living creator holds, this user's own alone.
///
/// # Errors
/// Where `/dev/shm` cannot be read.
pub fn orphans() -> std::io::Result<Vec<Orphan>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(Path::new(SHM_FOLDER))? {
        let Ok(name) = entry?.file_name().into_string() else {
            continue;
        };
        if let Some((_, bytes)) = claim(&name) {
            found.push(Orphan { name, bytes });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Removes one of them, if nobody holds it still. Returns whether it was removed.
pub fn remove_orphan(name: &str) -> bool {
    // Unlinked while the lock is held: a creator that lost this race sees its link gone and takes another name.
    claim(name).is_some_and(|(_guard, _)| shm_unlink(format!("/{name}").as_str()).is_ok())
}

/// Locks a segment that its creator no longer holds. Never one of another user, nor anything but a lab's regular file.
fn claim(name: &str) -> Option<(Flock<OwnedFd>, u64)> {
    let digits = name.strip_prefix(NAME_PREFIX)?;
    if digits.len() != 16 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let fd = shm_open(format!("/{name}").as_str(), OFlag::O_RDWR | OFlag::O_NOFOLLOW, Mode::empty()).ok()?;
    let stat = fstat(&fd).ok()?;
    let ours = stat.st_uid == nix::unistd::geteuid().as_raw() && stat.st_mode & libc::S_IFMT == libc::S_IFREG;
    if !ours {
        return None;
    }
    let guard = Flock::lock(fd, FlockArg::LockExclusiveNonblock).ok()?;
    Some((guard, stat.st_size as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{CpuId, Layout, LockKind, Nanos, PlacedLock, WorkerIndex, WorkerProgram};

    fn program(area_bytes: u64) -> Program {
        Program {
            arm: "test".into(),
            window: Nanos(1_000_000),
            warm_up: Nanos(0),
            layout: Layout { placed: vec![], bytes: area_bytes },
            area_bytes,
            locks: vec![PlacedLock { name: "m".into(), kind: LockKind::Pthread, offset: 64 }],
            workers: vec![WorkerProgram {
                index: WorkerIndex(0),
                role: 0,
                role_name: "r".into(),
                cpu: CpuId(0),
                steps: vec![],
                ops: vec![],
            }],
            shares_cpu: false,
            seed: 1,
        }
    }

    fn spec<'a>(program: &'a Program, encoded: &'a [u8]) -> SegmentSpec<'a> {
        SegmentSpec { program, encoded_program: encoded, slots: 2, rate: TickRate { ticks_per_ns: 1.0 }, node: None }
    }

    fn exists(name: &str) -> bool {
        Path::new(SHM_FOLDER).join(name).exists()
    }

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

    #[test]
    fn a_taken_name_is_refused_and_left_alone() {
        let program = program(64 + 48);
        let name = random_name().unwrap();
        let first = Segment::create_named(&name, &spec(&program, b"p")).unwrap();
        let error = Segment::create_named(&name, &spec(&program, b"p")).unwrap_err();
        assert_eq!(error.to_string(), format!("shared memory `{name}` exists already"));
        assert!(exists(&name), "the first owner's segment stays");
        drop(first);
    }

    #[test]
    fn an_impossible_size_says_full_and_leaves_nothing() {
        let before: Vec<_> = orphans().unwrap();
        let program = program(1 << 50);
        let error = Segment::create(&spec(&program, b"p")).unwrap_err();
        assert!(matches!(error, CreateError::Full { .. } | CreateError::System { .. }), "{error:?}");
        assert_eq!(orphans().unwrap(), before);
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
    fn what_a_dead_creator_left_is_removed() {
        let name = random_name().unwrap();
        std::fs::write(Path::new(SHM_FOLDER).join(&name), b"left").unwrap();
        assert!(orphans().unwrap().contains(&Orphan { name: name.clone(), bytes: 4 }));
        assert!(remove_orphan(&name));
        assert!(!exists(&name));
    }

    #[test]
    fn a_program_that_points_outside_its_area_is_refused_before_anything_is_mapped() {
        use plan::{AccessKind, Address, Op, OpKind, Width};
        let mut bad = program(128);
        let access =
            |at| Op { every: 1, step: 0, kind: OpKind::Access { kind: AccessKind::Add, width: Width::U64, at } };
        for at in [Address::Fixed(121), Address::Fixed(u64::MAX - 3), Address::Any(vec![0, 128])] {
            bad.workers[0].ops = vec![access(at)];
            let refused = Segment::attach("contention-lab-absent", &bad, b"p", 2);
            assert!(matches!(refused, Err(AttachError::Header(HeaderError::OutsideArea { .. }))), "{refused:?}");
        }
        bad.workers[0].ops = vec![Op { every: 1, step: 0, kind: OpKind::Lock { lock: 1 } }];
        let refused = Segment::attach("contention-lab-absent", &bad, b"p", 2);
        assert!(matches!(refused, Err(AttachError::Header(HeaderError::NoSuch { what: "lock", .. }))));
    }
}

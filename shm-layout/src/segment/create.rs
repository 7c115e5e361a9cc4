//! Making a segment: a name of its own, held against sweeps, room for every page, locks and header.

use super::{NAME_PREFIX, SHM_FOLDER, Segment, placed_locks};
use crate::check::{ProgramError, check_program};
use crate::header::program_hash;
use crate::lock::{self, LockError};
use crate::map::SegmentMap;
use crate::reserve::{ReserveError, node_of, reserve};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use nix::sys::mman::shm_open;
use nix::sys::stat::{Mode, fstat};
use plan::Program;
use plan::TickRate;
use rand::{TryRngCore, rngs::OsRng};
use shared_memory::{Shmem, ShmemConf, ShmemError};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Names tried before giving up. One is lost where another run's sweep meets it between its making and its locking, a
/// few microseconds; losing so many in a row means that something removes every file in the folder.
const NAME_ATTEMPTS: usize = 64;

/// How long a creator waits for a sweep that looks at its name. A sweep holds it for microseconds; only one that was
/// stopped in between holds it longer, and must not hang a run.
const LOCK_TIME: Duration = Duration::from_secs(5);

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

/// Why a segment could not be made. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The name exists, or a sweep removed it before it could be locked: under every name that was tried.
    #[error(
        "no name for a segment, the last tried was `{name}`: does something else make or remove files in {SHM_FOLDER}?"
    )]
    NameTaken {
        /// The name, without its leading slash.
        name: String,
    },
    /// No room for the segment.
    #[error("{SHM_FOLDER} has no room for a segment of {bytes} bytes ({errno}): {}", room_cure(*.errno))]
    Full {
        /// Bytes asked for.
        bytes: u64,
        /// ENOSPC, or EDQUOT, EFBIG, ENOMEM.
        errno: Errno,
    },
    /// A system call failed.
    #[error("{call} for shared memory `{name}` failed: {errno}: {}", cure(*.errno))]
    System {
        /// The call.
        call: &'static str,
        /// The name.
        name: String,
        /// Its errno.
        errno: Errno,
    },
    /// The memory policy could not be set.
    #[error(
        "set_mempolicy for NUMA node {node} failed: {errno}: is there such a node, and allowed here? see `numactl -s`"
    )]
    Policy {
        /// The node asked for.
        node: u32,
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
        "the segment's memory was bound to NUMA node {asked} and lies on node {found}: is node {asked} full? \
         see `numastat -m`"
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
    /// The Program fits no segment; nothing was made.
    #[error(transparent)]
    Program(#[from] ProgramError),
}

impl Segment {
    /// Creates a segment under a fresh random name: exclusively, mode 0600, every page reserved (on `spec.node` if one
    /// is given), locks initialised, header written. The Program is checked first.
    ///
    /// # Errors
    /// [`CreateError`]; nothing is left behind.
    pub fn create(spec: &SegmentSpec<'_>) -> Result<Segment, CreateError> {
        Segment::create_under(random_name, spec)
    }

    /// Creates a segment under the first of these names that can be had.
    fn create_under(
        mut next_name: impl FnMut() -> Result<String, CreateError>,
        spec: &SegmentSpec<'_>,
    ) -> Result<Segment, CreateError> {
        let map = check_program(spec.program, spec.slots)?;
        let mut taken = CreateError::NameTaken { name: String::new() };
        for _ in 0..NAME_ATTEMPTS {
            match Segment::create_named(&next_name()?, spec, map) {
                Err(error @ CreateError::NameTaken { .. }) => taken = error,
                other => return other,
            }
        }
        Err(taken)
    }

    /// Creates a segment of that name, or fails. `map` is what [`check_program`] gave for `spec`. No name is used twice
    /// (64 random bits), so a name that is there after it was made is the one that was made.
    fn create_named(name: &str, spec: &SegmentSpec<'_>, map: SegmentMap) -> Result<Segment, CreateError> {
        let mut shmem = make(name, map.segment_bytes)?;
        let guard = hold(name, &mut shmem)?;
        let segment = Segment { shmem, map, locks: placed_locks(spec.program), rate: spec.rate, guard: Some(guard) };
        segment.reserve(spec.node)?;
        segment.check_node(spec.node)?;
        for (index, lock) in (0..).zip(&spec.program.locks) {
            // SAFETY: `lock_place` gives what `check_program`, which made `map`, saw inside the area and aligned in it,
            // and the nodes of the map. Nobody else uses it: no worker attaches before the header below is written.
            unsafe { lock::initialise(segment.lock_place(index), lock.kind)? };
        }
        segment.header().write(&map, program_hash(spec.encoded_program), spec.rate);
        Ok(segment)
    }

    fn reserve(&self, node: Option<u32>) -> Result<(), CreateError> {
        let Some(fd) = &self.guard else { return Ok(()) };
        let bytes = self.map.segment_bytes;
        reserve(fd, bytes, node).map_err(|ReserveError { call, errno }| match node {
            Some(node) if call == "set_mempolicy" => CreateError::Policy { node, errno },
            _ => failed(call, self.name(), bytes)(errno),
        })
    }

    fn check_node(&self, asked: Option<u32>) -> Result<(), CreateError> {
        let Some(asked) = asked else { return Ok(()) };
        // SAFETY: the area's first byte is mapped (`SegmentMap` gives every area a page) and its page reserved.
        match unsafe { node_of(self.area()) } {
            Some(found) if found != asked => Err(CreateError::WrongNode { asked, found }),
            _ => Ok(()),
        }
    }
}

/// Makes and maps the object, exclusively; its drop removes the name again.
fn make(name: &str, bytes: u64) -> Result<Shmem, CreateError> {
    let size = usize::try_from(bytes).map_err(|_| CreateError::Full { bytes, errno: Errno::EFBIG })?;
    ShmemConf::new().os_id(format!("/{name}")).size(size).create().map_err(|source| match source {
        ShmemError::MappingIdExists => CreateError::NameTaken { name: name.to_owned() },
        ShmemError::MapCreateFailed(errno) | ShmemError::UnknownOsError(errno) => {
            failed("shm_open, ftruncate or mmap", name, bytes)(Errno::from_raw(errno as i32))
        }
        source => CreateError::Library { name: name.to_owned(), source },
    })
}

/// Locks the name that was just made, so that no sweep takes it for a leftover. Where one was faster and removed it, it
/// is not ours to remove any more.
fn hold(name: &str, shmem: &mut Shmem) -> Result<Flock<OwnedFd>, CreateError> {
    let system = |call| move |errno| CreateError::System { call, name: name.to_owned(), errno };
    // shared_memory shows no descriptor: open the same name for the reservation and the lock.
    let held = match shm_open(format!("/{name}").as_str(), OFlag::O_RDWR, Mode::empty()) {
        Err(Errno::ENOENT) => None,
        Err(errno) => return Err(system("shm_open")(errno)),
        Ok(fd) => {
            let guard = lock_in_time(fd).map_err(system("flock"))?;
            let linked = fstat(&*guard).map_err(system("fstat"))?.st_nlink > 0;
            linked.then_some(guard)
        }
    };
    held.ok_or_else(|| {
        shmem.set_owner(false);
        CreateError::NameTaken { name: name.to_owned() }
    })
}

fn lock_in_time(mut fd: OwnedFd) -> Result<Flock<OwnedFd>, Errno> {
    let deadline = Instant::now() + LOCK_TIME;
    loop {
        match Flock::lock(fd, FlockArg::LockExclusiveNonblock) {
            Ok(guard) => return Ok(guard),
            Err((same, Errno::EWOULDBLOCK | Errno::EINTR)) if Instant::now() < deadline => fd = same,
            Err((_, errno)) => return Err(errno),
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// A name that nobody can guess.
pub(crate) fn random_name() -> Result<String, CreateError> {
    let name = |digits| format!("{NAME_PREFIX}{digits:016x}");
    match OsRng.try_next_u64() {
        Ok(digits) => Ok(name(digits)),
        Err(_) => Err(CreateError::System { call: "getrandom", name: name(0), errno: Errno::last() }),
    }
}

/// What a failed call means: no room, whichever call says so, or something else.
fn failed(call: &'static str, name: &str, bytes: u64) -> impl FnOnce(Errno) -> CreateError {
    move |errno| match errno {
        Errno::ENOSPC | Errno::EDQUOT | Errno::ENOMEM | Errno::EFBIG => CreateError::Full { bytes, errno },
        errno => CreateError::System { call, name: name.to_owned(), errno },
    }
}

/// What to do about a call that failed for another reason than room.
pub(super) fn cure(errno: Errno) -> String {
    match errno {
        Errno::ENOENT => format!(
            "there is no {SHM_FOLDER}: `mkdir -p {SHM_FOLDER} && mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs \
             {SHM_FOLDER}` makes it; a container or sandbox needs to be started with one"
        ),
        Errno::EROFS => format!(
            "{SHM_FOLDER} is mounted read-only: `mount -o remount,rw {SHM_FOLDER}`; a container or sandbox needs to be \
             started with a writable one, such as `docker run --tmpfs {SHM_FOLDER}:mode=1777`"
        ),
        Errno::EACCES | Errno::EPERM => format!(
            "this user may not make files in {SHM_FOLDER}: `ls -ld {SHM_FOLDER}` should say drwxrwxrwt, which `chmod \
             1777 {SHM_FOLDER}` restores"
        ),
        Errno::EMFILE => {
            "this process has all the open files it may have: raise the limit with `ulimit -n 4096`".into()
        }
        Errno::ENFILE => "the system has all the open files it may have: raise `sysctl fs.file-max`".into(),
        _ => format!("`findmnt {SHM_FOLDER}` should say tmpfs, and rw"),
    }
}

pub(super) fn room_cure(errno: Errno) -> String {
    match errno {
        Errno::ENOMEM => {
            "is it more than this process or its group may map? see `ulimit -v` and the memory cgroup's `memory.max`"
                .into()
        }
        _ => format!(
            "see `df -h {SHM_FOLDER}`, remove what fills it (`coordinator clean` removes what dead runs left), or \
             enlarge it with `mount -o remount,size=SIZE {SHM_FOLDER}`"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orphans::{orphans, remove_orphan};
    use crate::testing::{exists, program, spec};
    use nix::sys::mman::shm_unlink;
    use std::path::Path;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn create_named(name: &str, spec: &SegmentSpec<'_>) -> Result<Segment, CreateError> {
        Segment::create_named(name, spec, check_program(spec.program, spec.slots)?)
    }

    #[test]
    fn a_taken_name_is_left_alone_and_another_taken() {
        let program = program(4096);
        let spec = spec(&program, b"p");
        let first = Segment::create(&spec).unwrap();
        let name = first.name().to_owned();
        let mut asked = 0;
        let second = Segment::create_under(
            || {
                asked += 1;
                if asked < 3 { Ok(name.clone()) } else { random_name() }
            },
            &spec,
        );
        assert!(second.unwrap().name() != name && asked >= 3);
        let always = Segment::create_under(|| Ok(name.clone()), &spec).unwrap_err();
        assert!(matches!(always, CreateError::NameTaken { name: n } if n == name));
        assert!(exists(&name), "the first owner's segment stays");
        drop(first);
        assert!(!exists(&name));
    }

    #[test]
    fn a_name_that_was_removed_before_it_was_locked_is_not_ours_to_remove() {
        let program = program(4096);
        let next = Segment::create(&spec(&program, b"p")).unwrap();
        let name = random_name().unwrap();
        let mut lost = make(&name, 4096).unwrap();
        // By us, or by a run elsewhere on this machine.
        let _ = shm_unlink(format!("/{name}").as_str());
        assert!(matches!(hold(&name, &mut lost), Err(CreateError::NameTaken { .. })));
        // The next owner of the name: a link to a segment that is held, so that no sweep takes it.
        let path = |name: &str| Path::new(SHM_FOLDER).join(name);
        std::fs::hard_link(path(next.name()), path(&name)).unwrap();
        drop(lost);
        assert!(exists(&name), "the next owner's");
        std::fs::remove_file(path(&name)).unwrap();
    }

    /// Sweeps that meet a name at any moment of its making leave its creator a segment that nobody can remove, or send
    /// it to another name; never an error, never a segment without its name.
    #[test]
    fn sweeps_race_creation() {
        let program = program(4096);
        let spec = spec(&program, b"p");
        let (current, stop) = (Mutex::new(random_name().unwrap()), AtomicBool::new(false));
        // Removing this test's own names alone: another test's leftovers are for that test to remove.
        let until_stopped = |sweep: &dyn Fn()| {
            while !stop.load(Ordering::Relaxed) {
                sweep();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                until_stopped(&|| {
                    let name = current.lock().unwrap().clone();
                    remove_orphan(&name);
                })
            });
            scope.spawn(|| until_stopped(&|| drop(orphans().unwrap())));
            let deadline = Instant::now() + Duration::from_secs(1);
            let outcome = std::panic::catch_unwind(|| {
                while Instant::now() < deadline {
                    let name = random_name().unwrap();
                    name.clone_into(&mut current.lock().unwrap());
                    match create_named(&name, &spec) {
                        Ok(segment) => {
                            assert!(exists(&name) && !remove_orphan(&name));
                            assert!(Segment::attach(&name, &program, b"p", 2).is_ok());
                            drop(segment);
                        }
                        Err(CreateError::NameTaken { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                    assert!(!exists(&name));
                }
            });
            stop.store(true, Ordering::Relaxed);
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        });
    }

    #[test]
    fn an_impossible_size_says_full_and_leaves_nothing() {
        let program = program(1 << 50);
        let name = random_name().unwrap();
        let error = create_named(&name, &spec(&program, b"p")).unwrap_err();
        assert!(matches!(error, CreateError::Full { .. }), "{error:?}");
        assert!(!exists(&name));
    }

    #[test]
    fn no_room_is_told_by_whichever_call_meets_it() {
        for call in ["shm_open, ftruncate or mmap", "posix_fallocate"] {
            for errno in [Errno::ENOSPC, Errno::ENOMEM, Errno::EDQUOT, Errno::EFBIG] {
                assert!(matches!(failed(call, "n", 1)(errno), CreateError::Full { bytes: 1, .. }));
            }
            assert!(matches!(failed(call, "n", 1)(Errno::EACCES), CreateError::System { errno: Errno::EACCES, .. }));
        }
    }

    #[test]
    fn what_is_missing_is_named_and_no_limit_that_was_not_met() {
        let said = |errno| failed("shm_open", "n", 1)(errno).to_string();
        for (errno, cure) in [
            (Errno::ENOENT, "there is no /dev/shm"),
            (Errno::EROFS, "mount -o remount,rw /dev/shm"),
            (Errno::EACCES, "chmod 1777 /dev/shm"),
            (Errno::EINVAL, "findmnt /dev/shm"),
        ] {
            assert!(said(errno).contains(cure) && !said(errno).contains("ulimit"), "{}", said(errno));
        }
        assert!(said(Errno::EMFILE).contains("ulimit -n"));
    }

    #[test]
    fn a_node_that_is_not_there_is_blamed_on_the_policy() {
        let program = program(4096);
        let spec = SegmentSpec { node: Some(u32::MAX), ..spec(&program, b"p") };
        let error = Segment::create(&spec).unwrap_err();
        assert!(matches!(error, CreateError::Policy { node: u32::MAX, errno: Errno::EINVAL }), "{error:?}");
    }
}

//! What one repetition needs before a worker exists: the segment, the sealed Program, the pipes and report files.

use crate::cures;
use counters::Orders;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::pipe2;
use plan::{Pages, Program, TickRate};
use shm_layout::{CreateError, RegionError, Segment, SegmentSpec, region_file};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use worker::Handover;

/// Lowest number of a descriptor that is handed to workers: above the numbers at which they receive it, so that placing
/// one never overwrites another.
pub(crate) const LOWEST_FD: i32 = 16;

/// One repetition's means.
pub(crate) struct Provision {
    pub(crate) segment: Segment,
    pub(crate) slots: u32,
    pub(crate) program_fd: OwnedFd,
    /// The shared regions of small pages, and of huge ones, where there are any.
    pub(crate) regions: [Option<OwnedFd>; 2],
    /// One a process, in the Program's order.
    pub(crate) reports: Vec<File>,
    /// Workers write one byte each when they have attached.
    pub(crate) ready_read: OwnedFd,
    pub(crate) ready_write: OwnedFd,
    /// Its write end lives as long as this; workers watch the read end.
    pub(crate) life_read: OwnedFd,
    _life_write: OwnedFd,
}

/// Why a repetition cannot start. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProvisionError {
    #[error(transparent)]
    Segment(#[from] CreateError),
    #[error(transparent)]
    Regions(#[from] RegionError),
    #[error("{0} failed: {1}: {cure}", cure = cures::of(Errno::from_raw(.1.raw_os_error().unwrap_or(0))))]
    System(&'static str, io::Error),
}

/// How many slots a segment for `program` has: workers keep their indices in an arm that leaves some of them out.
pub(crate) fn slots(program: &Program) -> u32 {
    program.workers.iter().map(|w| w.index.0 + 1).max().unwrap_or(0)
}

/// Makes everything for one repetition of `program`, whose workers count what `orders` say, its memory on `node` where
/// one is given.
pub(crate) fn provision(
    program: &Program,
    orders: &[Orders],
    rate: TickRate,
    node: Option<u32>,
) -> Result<Provision, ProvisionError> {
    let system = |call| move |error: io::Error| ProvisionError::System(call, error);
    let errno = |call| move |error: Errno| ProvisionError::System(call, error.into());
    let handover = Handover::new(program, orders).map_err(system("making the sealed program"))?;
    let slots = slots(program);
    let spec = SegmentSpec { program, encoded_program: &handover.encoded, slots, rate, node };
    let segment = Segment::create(&spec)?;
    let regions = |pages| match program.shared_file(pages).1 {
        0 => Ok(None),
        bytes => high(region_file(bytes, pages, node)?).map(Some),
    };
    let pipe = || {
        let (read, write) = pipe2(OFlag::O_CLOEXEC).map_err(errno("pipe2"))?;
        Ok::<_, ProvisionError>((high(read)?, high(write)?))
    };
    let (ready_read, ready_write) = pipe()?;
    let (life_read, life_write) = pipe()?;
    let report = |_| {
        let fd = memfd_create("contention-lab-report", MFdFlags::MFD_CLOEXEC).map_err(errno("memfd_create"))?;
        Ok::<_, ProvisionError>(File::from(high(fd)?))
    };
    Ok(Provision {
        slots,
        program_fd: high(handover.memfd)?,
        reports: program.processes().map(report).collect::<Result<_, _>>()?,
        segment,
        regions: [regions(Pages::Small)?, regions(Pages::Huge)?],
        ready_read,
        ready_write,
        life_read,
        _life_write: life_write,
    })
}

/// The same open file under a number of at least [`LOWEST_FD`], close-on-exec.
#[allow(unsafe_code)]
fn high(fd: OwnedFd) -> Result<OwnedFd, ProvisionError> {
    let duplicate = fcntl(fd.as_fd(), FcntlArg::F_DUPFD_CLOEXEC(LOWEST_FD)).map_err(|errno| {
        // fcntl(2): it says so where the limit allows no number as high as that.
        let errno = if errno == Errno::EINVAL { Errno::EMFILE } else { errno };
        ProvisionError::System("fcntl(F_DUPFD_CLOEXEC)", errno.into())
    })?;
    // SAFETY: the kernel has just made this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(duplicate) })
}

//! The files that hold shared regions, one for each kind of page: memory without a name, so that nothing stays behind
//! when the last process that has it ends, and `clean` has nothing to look for.

use super::SHM_FOLDER;
use super::create::{cure, room_cure};
use crate::reserve::{ReserveError, reserve};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::Mode;
use plan::Pages;
use std::os::fd::OwnedFd;

/// Why memory for shared regions could not be had. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// No room in the file system of shared memory.
    #[error("{SHM_FOLDER} has no room for shared regions of {bytes} bytes ({errno}): {}", room_cure(*.errno))]
    Full {
        /// Bytes asked for.
        bytes: u64,
        /// ENOSPC, or EDQUOT, EFBIG, ENOMEM.
        errno: Errno,
    },
    /// Too few huge pages are free.
    #[error(
        "there are no huge pages of 2 MiB for shared regions of {bytes} bytes ({errno}): have more set apart, with \
         `sysctl vm.nr_hugepages`; others may have taken some since the run began"
    )]
    NoHugePages {
        /// Bytes asked for.
        bytes: u64,
        /// ENOSPC or ENOMEM.
        errno: Errno,
    },
    /// A system call failed.
    #[error("{call} for shared regions failed: {errno}: {}", cure(*.errno))]
    System {
        /// The call.
        call: &'static str,
        /// Its errno.
        errno: Errno,
    },
}

/// A new file of `bytes` bytes for shared regions of that kind of page, every page reserved, on `node` where one is
/// given: a nameless one in the file system of POSIX shared memory, or for huge pages a memfd. Coordinator, for one
/// repetition: what is punched gives up what was reserved, so that the next one needs its own.
///
/// # Errors
/// [`RegionError`]: no room, no huge pages, or what a call said.
///
/// # References
/// open(2), `O_TMPFILE`; memfd_create(2), `MFD_HUGETLB`; posix_fallocate(3).
pub fn region_file(bytes: u64, pages: Pages, node: Option<u32>) -> Result<OwnedFd, RegionError> {
    let huge = pages == Pages::Huge;
    let failed = |call| {
        move |errno| match errno {
            Errno::ENOSPC | Errno::ENOMEM if huge => RegionError::NoHugePages { bytes, errno },
            Errno::ENOSPC | Errno::EDQUOT | Errno::ENOMEM | Errno::EFBIG => RegionError::Full { bytes, errno },
            errno => RegionError::System { call, errno },
        }
    };
    let file = match huge {
        true => {
            let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_HUGETLB | MFdFlags::MFD_HUGE_2MB;
            memfd_create("contention-lab-regions", flags).map_err(failed("memfd_create(MFD_HUGETLB)"))?
        }
        false => {
            let flags = OFlag::O_TMPFILE | OFlag::O_RDWR | OFlag::O_CLOEXEC;
            open(SHM_FOLDER, flags, Mode::S_IRUSR | Mode::S_IWUSR).map_err(failed("open(O_TMPFILE)"))?
        }
    };
    reserve(&file, bytes, node).map_err(|ReserveError { call, errno }| failed(call)(errno))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{FallocateFlags, fallocate};
    use nix::sys::stat::fstat;

    const BYTES: u64 = 1 << 20;

    fn allocated(file: &OwnedFd) -> u64 {
        fstat(file).unwrap().st_blocks as u64 * 512
    }

    #[test]
    fn it_has_no_name_every_page_and_gives_up_what_is_punched() {
        let file = region_file(BYTES, Pages::Small, None).unwrap();
        let stat = fstat(&file).unwrap();
        assert_eq!((stat.st_nlink, stat.st_size as u64, stat.st_mode & 0o777), (0, BYTES, 0o600));
        assert_eq!(allocated(&file), BYTES);
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        fallocate(&file, flags, 0, BYTES as i64 / 2).unwrap();
        assert_eq!(allocated(&file), BYTES / 2, "so the next repetition reserves its own");
        assert_eq!(allocated(&region_file(BYTES, Pages::Small, None).unwrap()), BYTES);
    }

    #[test]
    fn what_there_is_no_room_for_is_refused_with_its_cure() {
        // More than any machine of today has, and less than a file may be long.
        let error = region_file(1 << 50, Pages::Small, None).unwrap_err();
        assert!(matches!(error, RegionError::Full { errno: Errno::ENOSPC | Errno::ENOMEM, .. }), "{error}");
        assert!(error.to_string().contains("shared regions of 1125899906842624 bytes"), "{error}");
        let error = region_file(1 << 50, Pages::Huge, None).unwrap_err();
        assert!(matches!(error, RegionError::NoHugePages { .. } | RegionError::System { .. }), "{error}");
    }
}

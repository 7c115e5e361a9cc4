//! Whether this process may make memory that holds code, as the workers' compiler does.
#![allow(unsafe_code)] // mapping memory

use crate::root::Root;
use nix::errno::Errno;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::num::NonZeroUsize;

/// One page on x86-64; the kernel rounds up to its own.
const BYTES: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// Maps private memory, writes to it, makes it executable and unmaps it: nothing remains. Workers of this process
/// inherit what decides here, seccomp filters and PR_SET_MDWE among it. A fixture, which is no process, is `None`.
///
/// # Errors
/// What the kernel answers to the mapping or to making it executable; EACCES or EPERM where that is denied.
///
/// # References
/// mprotect(2), EACCES; prctl(2), PR_SET_MDWE; systemd.exec(5), MemoryDenyWriteExecute=.
pub fn executable_memory(root: &Root) -> Option<Result<(), Errno>> {
    root.is_system().then(probe)
}

fn probe() -> Result<(), Errno> {
    let writable = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: the kernel chooses an unused address for a private mapping of its own; no other memory is touched.
    let page = unsafe { mmap_anonymous(None, BYTES, writable, MapFlags::MAP_PRIVATE) }?;
    // SAFETY: `page` is the mapping above, BYTES long and writable, known to this function alone; it is executable only
    // after the write, never run, and not used again once it is unmapped.
    unsafe {
        page.cast::<u8>().write_volatile(0);
        let allowed = mprotect(page, BYTES.get(), ProtFlags::PROT_READ | ProtFlags::PROT_EXEC);
        munmap(page, BYTES.get())?;
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::executable_memory;
    use crate::fixture::Fixture;
    use crate::root::Root;

    #[test]
    fn only_the_running_machine_can_be_asked() {
        assert_eq!(executable_memory(&Fixture::new().root()), None);
        // Either answer is right; it is the same each time, and nothing is left mapped.
        let maps = || std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
        let (answer, before) = (executable_memory(&Root::system()), maps());
        assert!(answer.is_some());
        for _ in 0..1_000 {
            assert_eq!(executable_memory(&Root::system()), answer);
        }
        assert!(maps() < before + 500, "pages of the probe stay mapped");
    }
}

//! Room for a segment, taken before it is used: every page allocated, on one NUMA node where one is asked for.
#![allow(unsafe_code)] // NUMA system calls that no safe wrapper offers

use nix::errno::Errno;
use nix::fcntl::posix_fallocate;
use std::os::fd::OwnedFd;

/// A reservation failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReserveError {
    /// The call that failed.
    pub(crate) call: &'static str,
    /// What it said.
    pub(crate) errno: Errno,
}

/// Allocates every page now, so that no later touch can find the file system full (SIGBUS).
///
/// # Errors
/// [`ReserveError`]; this thread's memory policy is the default again.
pub(crate) fn reserve(fd: &OwnedFd, bytes: u64, node: Option<u32>) -> Result<(), ReserveError> {
    let policy = |node| set_memory_policy(node).map_err(|errno| ReserveError { call: "set_mempolicy", errno });
    if node.is_some() {
        policy(node)?;
    }
    let reserved = allocate(fd, bytes).map_err(|errno| ReserveError { call: "posix_fallocate", errno });
    let restored = if node.is_some() { policy(None) } else { Ok(()) };
    reserved.and(restored)
}

fn allocate(fd: &OwnedFd, bytes: u64) -> Result<(), Errno> {
    let bytes = i64::try_from(bytes).map_err(|_| Errno::EFBIG)?;
    loop {
        match posix_fallocate(fd, 0, bytes) {
            Err(Errno::EINTR) => {}
            other => return other,
        }
    }
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
    // SAFETY: the kernel reads `bits - 1` bits from `mask`, which this function made that long and which outlives the
    // call; with a null mask, `bits` is 0 and it reads nothing.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask_ptr, bits) };
    Errno::result(result).map(drop)
}

/// The NUMA node of the page at `address` (`get_mempolicy(2)`), where the kernel says.
///
/// # Safety
/// `address` is readable: the page is touched, so that it has a node.
pub(crate) unsafe fn node_of(address: *mut u8) -> Option<u32> {
    const MPOL_F_NODE_AND_ADDR: libc::c_ulong = 1 | 2;
    let mut node: libc::c_int = -1;
    // SAFETY: `address` is readable by this function's contract; the kernel looks its page up and writes one int, to
    // `node`, which outlives the call.
    let result = unsafe {
        address.read_volatile();
        let null = std::ptr::null_mut::<libc::c_void>();
        libc::syscall(libc::SYS_get_mempolicy, &raw mut node, null, 0usize, address, MPOL_F_NODE_AND_ADDR)
    };
    (result == 0).then(|| u32::try_from(node).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::memfd::{MFdFlags, memfd_create};

    #[test]
    fn what_fails_is_named_by_its_own_call() {
        let fd = memfd_create("reserve", MFdFlags::MFD_CLOEXEC).unwrap();
        let no_such_node = reserve(&fd, 4096, Some(u32::MAX));
        assert_eq!(no_such_node, Err(ReserveError { call: "set_mempolicy", errno: Errno::EINVAL }));
        let too_large = reserve(&fd, u64::MAX, None);
        assert_eq!(too_large, Err(ReserveError { call: "posix_fallocate", errno: Errno::EFBIG }));
        assert_eq!(reserve(&fd, 4096, None), Ok(()));
    }
}

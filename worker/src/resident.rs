//! A worker's own pages, brought in before its window: code that has not run yet and a stack that has not grown yet
//! would fault in it, and be counted as the loop's page faults.
#![allow(unsafe_code)] // asking the kernel for pages of memory that is mapped

use nix::errno::Errno;
use nix::sys::mman::{MmapAdvise, madvise, mlock, munlock};
use plan::PAGE_BYTES;
use std::ffi::c_void;
use std::hint::black_box;
use std::ops::Range;
use std::ptr::NonNull;

/// Stack below the present frame that the window may grow into: hooks, clock reads and locks nest a few frames deep.
const STACK_BYTES: usize = 64 * 1024;
/// Bytes that [`lock_briefly`] holds at once: what RLIMIT_MEMLOCK allowed everybody before Linux 5.16.
const LOCKED_BYTES: usize = 64 * 1024;

/// Brings in what this process executes and keeps: code and constants of the program and its libraries, their
/// variables, the heap, the stack. Not what has no name, such as large allocations, which whoever makes them touches,
/// and regions, which must stay untouched; nor the segment, which is shared. Where there is no procfs, nothing but the
/// stack.
///
/// The kernel is asked for the pages, rather than reading them: a mapping may reach past its file's end, where reading
/// is SIGBUS and asking is an error. What cannot be brought in is left: the window counts its faults, should it use it.
///
/// Call it when all that the window uses is allocated. It takes a millisecond or two.
pub(crate) fn touch_own_pages() {
    touch_stack();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().filter_map(own_mapping).for_each(|own| bring_in(&own));
}

/// An empty vector whose whole capacity has been written. For logs, which are large allocations and so not among what
/// [`touch_own_pages`] brings in.
pub(crate) fn touched<T: Copy>(capacity: usize, nonzero: T) -> Vec<T> {
    let mut log = vec![nonzero; capacity];
    log.clear();
    log
}

/// A kernel before 5.14 does not know the advice, and locking does the same in more calls.
fn bring_in(own: &Own) {
    if populate(own) == Err(Errno::EINVAL) {
        lock_briefly(own);
    }
}

/// Fills the page tables as reads would, and of what is writable as writes would, up to the first page that has nothing
/// behind it.
///
/// # References
/// madvise(2), MADV_POPULATE_READ and MADV_POPULATE_WRITE.
fn populate(own: &Own) -> nix::Result<()> {
    let advice = if own.writable { MmapAdvise::MADV_POPULATE_WRITE } else { MmapAdvise::MADV_POPULATE_READ };
    let Some(start) = at(own.pages.start) else { return Ok(()) };
    // SAFETY: this advice changes no content and takes no page away, whatever is mapped there by now.
    unsafe { madvise(start, own.pages.len(), advice) }
}

/// Locks and unlocks a few pages at a time: locking brings in the same pages as [`populate`], and is refused with
/// ENOMEM where there are none.
///
/// # References
/// mlock(2).
fn lock_briefly(own: &Own) {
    for start in own.pages.clone().step_by(LOCKED_BYTES) {
        let bytes = LOCKED_BYTES.min(own.pages.end - start);
        let Some(start) = at(start) else { continue };
        // SAFETY: locking changes no content, and the worker has no pages locked that this could unlock. Where locking
        // failed midway, the pages before are locked too.
        let _ = unsafe { (mlock(start, bytes), munlock(start, bytes)) };
    }
}

fn at(address: usize) -> Option<NonNull<c_void>> {
    NonNull::new(std::ptr::with_exposed_provenance_mut(address))
}

/// A mapping to bring in.
#[derive(Debug, PartialEq, Eq)]
struct Own {
    pages: Range<usize>,
    writable: bool,
}

/// A line of `/proc/self/maps` (proc_pid_maps(5)), if it is a private mapping of a file, the heap or the stack.
fn own_mapping(line: &str) -> Option<Own> {
    let mut words = line.split_ascii_whitespace();
    let (addresses, permissions, name) = (words.next()?, words.next()?, words.nth(3)?);
    let (start, end) = addresses.split_once('-')?;
    let address = |digits| usize::from_str_radix(digits, 16).ok();
    let named = name.starts_with('/') || name == "[heap]" || name == "[stack]";
    let own = named && permissions.starts_with('r') && permissions.ends_with('p');
    let pages = address(start)?..address(end)?;
    own.then_some(Own { pages, writable: permissions.as_bytes().get(1) == Some(&b'w') })
}

#[inline(never)]
fn touch_stack() {
    let mut frames = [0u8; STACK_BYTES];
    for byte in frames.iter_mut().step_by(PAGE_BYTES as usize) {
        *byte = black_box(1);
    }
    black_box(&frames);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::pagemap::present;
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use nix::sys::mman::{MapFlags, ProtFlags, mmap};
    use std::num::NonZeroUsize;

    #[test]
    fn code_variables_heap_and_stack_are_ones_own_and_nothing_else() {
        let own = |line| own_mapping(line).map(|own| (own.pages, own.writable));
        let code = "5000-7000 r-xp 00607000 fe:00 13672456                   /usr/bin/a program";
        assert_eq!(own(code), Some((0x5000..0x7000, false)));
        assert_eq!(own("5000-6000 rw-p 018e6000 fe:00 13672456   /usr/lib/libc.so.6"), Some((0x5000..0x6000, true)));
        assert_eq!(own("5000-6000 rw-p 00000000 00:00 0          [heap]"), Some((0x5000..0x6000, true)));
        for other in [
            "5000-6000 rw-p 00000000 00:00 0 ",
            "5000-6000 rw-s 00000000 00:1b 92570        /dev/shm/contention-lab-0 (deleted)",
            "5000-6000 ---p 00000000 fe:00 13672456     /usr/lib/libc.so.6",
            "5000-6000 r--p 00000000 00:00 0            [vvar]",
            "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0    [vsyscall]",
            "nonsense",
            "",
        ] {
            assert_eq!(own(other), None, "{other}");
        }
    }

    #[test]
    fn code_that_never_ran_is_there_once_brought_in() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let code = maps.lines().filter(|line| line.contains(" r-xp ")).filter_map(own_mapping);
        // Of the largest, these tests use a part.
        let own = code.max_by_key(|own| own.pages.len()).unwrap();
        bring_in(&own);
        // The kernel may take pages back while memory is short, but hardly so many at once.
        let (there, all) = (present(&own.pages), own.pages.len() / PAGE_BYTES as usize);
        assert!(there > all / 10 * 9, "{there} of {all} pages");
    }

    /// Three pages of a file that ends in the second; the third is SIGBUS to whoever reads it.
    fn mapping_past_the_end(writable: bool) -> Own {
        let pages = |count: u64| (count * PAGE_BYTES) as usize;
        let file = memfd_create(c"resident", MFdFlags::MFD_CLOEXEC).unwrap();
        nix::unistd::write(&file, &vec![7; pages(2) - 100]).unwrap();
        let rights = if writable { ProtFlags::PROT_READ | ProtFlags::PROT_WRITE } else { ProtFlags::PROT_READ };
        let length = NonZeroUsize::new(pages(3)).unwrap();
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing; it stays until the tests end.
        let start = unsafe { mmap(None, length, rights, MapFlags::MAP_PRIVATE, &file, 0) }.unwrap();
        let start = start.as_ptr().expose_provenance();
        Own { pages: start..start + pages(3), writable }
    }

    #[test]
    fn a_mapping_that_reaches_past_its_file_s_end_kills_nobody() {
        for writable in [false, true] {
            for way in [bring_in as fn(&Own), lock_briefly] {
                let own = mapping_past_the_end(writable);
                way(&own);
                assert_eq!(present(&own.pages), 2, "writable: {writable}");
            }
        }
    }
}

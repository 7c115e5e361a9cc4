//! A worker's own pages, brought in before its window: code that has not run yet and a stack that has not grown yet would
//! fault in it, and be counted as the loop's page faults.
#![allow(unsafe_code)] // reading and writing memory that the kernel says is mapped

use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

/// Smallest page: touching by it meets every larger one too.
const PAGE: usize = 4096;
/// Stack below the present frame that the window may grow into: hooks, clock reads and locks nest a few frames deep.
const STACK_BYTES: usize = 64 * 1024;

/// Touches what this process executes and keeps: code and constants of the program and its libraries, their variables,
/// the heap, the stack. Not what has no name, such as large allocations, which whoever makes them touches, and regions,
/// which must stay untouched; nor the segment, which is shared. Where there is no procfs, nothing but the stack.
///
/// Call it when all that the window uses is allocated. It takes a millisecond or two: most pages come sixteen at a time.
pub(crate) fn touch_own_pages() {
    touch_stack();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    // SAFETY: the process has one thread, this one, and it unmaps nothing meanwhile.
    maps.lines().filter_map(own_mapping).for_each(|own| unsafe { touch(own) });
}

/// # Safety
/// The mapping is there as it was read from procfs.
unsafe fn touch(own: Own) {
    for page in own.pages.step_by(PAGE) {
        let page = std::ptr::with_exposed_provenance_mut::<u8>(page);
        // SAFETY: mapped and readable by the caller's promise. Volatile: a read that nobody uses must not be dropped.
        black_box(unsafe { page.read_volatile() });
        if own.writable {
            // SAFETY: as above, and writable; an atomic or of zero changes nothing.
            black_box(unsafe { (*page.cast::<AtomicU8>()).fetch_or(0, Ordering::Relaxed) });
        }
    }
}

/// A mapping to touch.
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
    for byte in frames.iter_mut().step_by(PAGE) {
        *byte = black_box(1);
    }
    black_box(&frames);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

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

    /// How many of its pages are there: bit 63 of an entry of `/proc/self/pagemap` (proc_pid_pagemap(5)).
    fn present(pages: &Range<usize>) -> usize {
        let mut entries = vec![0u8; pages.len() / PAGE * 8];
        let pagemap = std::fs::File::open("/proc/self/pagemap").unwrap();
        pagemap.read_exact_at(&mut entries, (pages.start / PAGE * 8) as u64).unwrap();
        entries.chunks_exact(8).filter(|entry| entry[7] & 0x80 != 0).count()
    }

    #[test]
    fn code_that_never_ran_is_there_once_touched() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let code = maps.lines().filter(|line| line.contains(" r-xp ")).filter_map(own_mapping);
        // Of the largest, these tests use a part.
        let largest = || code.clone().max_by_key(|own| own.pages.len()).unwrap();
        let (pages, all) = (largest().pages, largest().pages.len() / PAGE);
        // SAFETY: no thread of the tests unmaps their code.
        unsafe { touch(largest()) };
        // The kernel may take pages back while memory is short, but hardly so many at once.
        let there = present(&pages);
        assert!(there > all / 10 * 9, "{there} of {all} pages");
    }
}

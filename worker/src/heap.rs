//! The allocator of the lab's program. In a process of several workers it keeps their allocations apart: what one
//! worker writes each pass, such as its counts of a lock, would else share a cache line with another's, and slow both
//! by what is no part of the scenario. An arena for each thread, as glibc has them, does not see to that: a thread also
//! gets again what it freed for another, and the environment may limit the arenas.
#![allow(unsafe_code)] // an allocator

use plan::LINE_PAIR_BYTES;
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, Ordering};

/// What glibc's `malloc` aligns to where a pointer has 64 bits (malloc(3)); a stricter alignment is asked for by name.
const MALLOC_ALIGN: usize = 16;

/// Whether allocations are kept apart.
static APART: AtomicBool = AtomicBool::new(false);

/// From now on, no allocation shares a pair of lines with another, and all that are small come from the heap of the
/// process's first thread, which has a name in `/proc/self/maps`: so that [`crate::resident`] brings it in. For a
/// process that is about to start threads.
pub(crate) fn keep_apart() {
    // SAFETY: sets a number of glibc's, which it reads under a lock of its own. Where it is refused, the heaps of
    // threads stay without a name, and their first touches are counted. Miri has no glibc.
    #[cfg(not(miri))]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1)
    };
    // Relaxed: threads that are started later see it; for others it makes no difference to correctness.
    APART.store(true, Ordering::Relaxed);
}

/// Size from which on [`map_large_blocks`] has blocks mapped by themselves: glibc's own default.
const MAPPED_BYTES: i32 = 128 * 1024;

/// From now on, blocks of [`MAPPED_BYTES`] or more are mapped by themselves and unmapped when they go back. Left alone,
/// glibc does so until the first of them goes back, and then takes ever larger ones from its heap (mallopt(3), "dynamic
/// mmap threshold"): a loop that frees large blocks would unmap one and then none.
pub(crate) fn map_large_blocks() {
    // SAFETY: sets a number of glibc's, which it reads under a lock of its own.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES) };
}

/// glibc's heap, as Rust uses it by default, until a worker process asks for more: see the module. The program's global
/// allocator.
#[derive(Debug)]
pub struct Heap;

/// What is really asked for: whole pairs where allocations are kept apart.
fn asked(layout: Layout) -> Layout {
    match APART.load(Ordering::Relaxed) {
        // A size that cannot be padded cannot be had either: the heap refuses it.
        true => layout.align_to(LINE_PAIR_BYTES as usize).map_or(layout, |layout| layout.pad_to_align()),
        false => layout,
    }
}

/// What is said before the program ends, as it does as a rule, by Rust's own words (`memory allocation of … failed`).
const SHORT: &[u8] =
    b"error: memory is short or limited: see `free -m`, `ulimit -v` and the memory cgroup's `memory.max`\n";

/// Says why, where a block cannot be had: whoever asked has nothing to say it with. Without memory of its own.
fn had(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        // SAFETY: the bytes are a constant's. Where nobody reads standard error, there is nobody to tell.
        unsafe { libc::write(libc::STDERR_FILENO, SHORT.as_ptr().cast(), SHORT.len()) };
    }
    block
}

// SAFETY: every block comes from glibc's malloc, calloc, realloc or posix_memalign, at least as large and as strictly
// aligned as asked, and goes back by its free, which takes the blocks of all four, whatever `APART` was at either time.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let asked = asked(layout);
        if asked.align() <= MALLOC_ALIGN {
            // SAFETY: touches no memory of ours.
            return had(unsafe { libc::malloc(asked.size()) }.cast());
        }
        let mut block = std::ptr::null_mut();
        // SAFETY: the alignment is a power of two and a multiple of a pointer's size, being above `MALLOC_ALIGN`.
        match unsafe { libc::posix_memalign(&mut block, asked.align(), asked.size()) } {
            0 => block.cast(),
            _ => had(std::ptr::null_mut()),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if asked(layout).align() <= MALLOC_ALIGN {
            // SAFETY: touches no memory of ours.
            return had(unsafe { libc::calloc(1, layout.size()) }.cast());
        }
        // SAFETY: the caller's layout is passed on.
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() {
            // SAFETY: the block is new and at least so large.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: by contract a block of this allocator's, and all of them are glibc's.
        unsafe { libc::free(block.cast()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: by contract a valid layout: its size does not overflow when rounded up to its alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if asked(wanted).align() <= MALLOC_ALIGN {
            // SAFETY: by contract a block of this allocator's, and all of them are glibc's.
            return had(unsafe { libc::realloc(block.cast(), size) }.cast());
        }
        // SAFETY: the caller's promises are passed on; old and new block do not overlap, both are at least as large as
        // what is copied, and the old one is given back once.
        unsafe {
            let new = self.alloc(wanted);
            if !new.is_null() {
                block.copy_to_nonoverlapping(new, layout.size().min(size));
                self.dealloc(block, layout);
            }
            new
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const PAIR: usize = LINE_PAIR_BYTES as usize;

    fn bytes(size: usize) -> Layout {
        Layout::from_size_align(size, 8).unwrap()
    }

    /// A block whose every byte is `mark`.
    fn marked(size: usize, mark: u8) -> usize {
        // SAFETY: a block of that size is written to.
        unsafe {
            let block = Heap.alloc(bytes(size));
            assert!(!block.is_null());
            block.write_bytes(mark, size);
            block.expose_provenance()
        }
    }

    fn is_marked(block: usize, size: usize, mark: u8) -> bool {
        let block = std::ptr::with_exposed_provenance::<u8>(block);
        // SAFETY: `marked` made the block, of at least that size; no other thread uses it.
        (0..size).all(|at| unsafe { *block.add(at) } == mark)
    }

    fn give_back(block: usize, size: usize) {
        // SAFETY: `marked` made it, and it is given back once.
        unsafe { Heap.dealloc(std::ptr::with_exposed_provenance_mut(block), bytes(size)) }
    }

    /// Also where a thread gets again what it freed for another, which lies among that one's.
    #[test]
    fn no_two_threads_share_a_pair_and_blocks_from_before_go_back_too() {
        let before: Vec<usize> = (0..64).map(|_| marked(24, 1)).collect();
        keep_apart();
        let (blocks, all) = channel();
        std::thread::scope(|scope| {
            for some in before.chunks(16) {
                let blocks = blocks.clone();
                scope.spawn(move || {
                    some.iter().for_each(|block| give_back(*block, 24));
                    (0..200).for_each(|nth| blocks.send((marked(nth + 1, 2), nth + 1)).unwrap());
                });
            }
        });
        drop(blocks);
        let mut blocks: Vec<(usize, usize)> = all.into_iter().collect();
        blocks.sort_unstable();
        assert_eq!(blocks.len(), 800);
        assert!(blocks.windows(2).all(|two| (two[0].0 + two[0].1 - 1) / PAIR < two[1].0 / PAIR));
        blocks.iter().for_each(|(block, size)| give_back(*block, *size));
    }

    #[test]
    fn a_block_keeps_what_it_holds_when_it_grows_or_shrinks_and_zeroed_ones_are_zero() {
        let check = || {
            let block = std::ptr::with_exposed_provenance_mut(marked(40, 7));
            // SAFETY: each block is of the layout that is named, and the last one is given back once.
            let (grown, shrunk) = unsafe {
                let grown = Heap.realloc(block, bytes(40), 4_000).expose_provenance();
                assert!(is_marked(grown, 40, 7));
                let shrunk = Heap.realloc(std::ptr::with_exposed_provenance_mut(grown), bytes(4_000), 8);
                (grown, shrunk.expose_provenance())
            };
            assert!(grown != 0 && is_marked(shrunk, 8, 7));
            give_back(shrunk, 8);
            let used = marked(200, 9);
            give_back(used, 200);
            // SAFETY: as above.
            let zeroed = unsafe { Heap.alloc_zeroed(bytes(200)) }.expose_provenance();
            assert!(is_marked(zeroed, 200, 0));
            give_back(zeroed, 200);
        };
        check();
        keep_apart();
        check();
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        keep_apart();
        // SAFETY: nothing is written to a block that is not there.
        let block = unsafe { Heap.alloc(bytes(isize::MAX as usize - 7)) };
        assert!(block.is_null());
    }
}

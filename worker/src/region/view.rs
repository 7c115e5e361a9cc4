//! A process's view of one region: the mapped memory, and what the kernel is asked to do with parts of it.
#![allow(unsafe_code)] // mapping memory, writing to it, giving it back

use crate::failure::Failure;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, mmap_anonymous, mprotect, munmap};
use plan::{CACHE_LINE_BYTES, HUGE_PAGE_BYTES, PAGE_BYTES, Pages, Region};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const RIGHTS: ProtFlags = ProtFlags::PROT_READ.union(ProtFlags::PROT_WRITE);
/// Lines of a page: that many pages in a row are touched in as many sets of a cache.
const LINES: u64 = PAGE_BYTES / CACHE_LINE_BYTES;

/// Where in the file of its kind of page a shared region begins.
#[derive(Clone, Debug)]
pub(super) struct FilePart {
    pub(super) file: Arc<OwnedFd>,
    pub(super) offset: u64,
}

/// Mapped memory, whole pages of its kind. What it is told to do, it does to the bytes from an offset on; offsets and
/// lengths are whole pages inside it, as the scenario's reading saw to.
#[derive(Debug)]
pub(super) struct View {
    name: String,
    base: NonNull<c_void>,
    bytes: u64,
    /// What is unmapped at the end: the view and what was mapped to align it.
    mapping: (NonNull<c_void>, usize),
    part: Option<FilePart>,
}

// SAFETY: a view is an address and a length. Threads of a process share it as processes share a segment: its bytes are
// written by atomic stores alone, no reference points into it, and what the kernel does to its pages it does for all.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

impl View {
    /// Maps a region: the part of the file that it is, or memory of this process's own. No page of it is touched.
    pub(super) fn new(region: &Region, part: Option<FilePart>) -> Result<View, Failure> {
        match part {
            Some(part) => View::of_file(region, part),
            None => View::private(&region.name, region.bytes, region.pages),
        }
    }

    /// Memory of this process's own, of that kind of page.
    pub(super) fn private(name: &str, bytes: u64, pages: Pages) -> Result<View, Failure> {
        // A huge page needs its own alignment; without that the first and the last would be small ones.
        let slack = if pages == Pages::Transparent { HUGE_PAGE_BYTES } else { 0 };
        let length = length(bytes.saturating_add(slack)).ok_or_else(|| refused(name, "mmap", bytes, Errno::EINVAL))?;
        let kind = if pages == Pages::Huge { MapFlags::MAP_HUGETLB } else { MapFlags::empty() };
        // SAFETY: a new anonymous mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap_anonymous(None, length, RIGHTS, MapFlags::MAP_PRIVATE | kind) };
        let start = start.map_err(|errno| match pages {
            Pages::Huge => no_huge_pages(name, bytes, errno),
            Pages::Small | Pages::Transparent => refused(name, "mmap", bytes, errno),
        })?;
        let ahead = if slack > 0 { start.as_ptr().align_offset(HUGE_PAGE_BYTES as usize) } else { 0 };
        // SAFETY: less than the slack ahead of the start, so inside the mapping.
        let base = unsafe { start.byte_add(ahead) };
        let view = View { name: name.to_owned(), base, bytes, mapping: (start, length.get()), part: None };
        let (advice, called) = match pages {
            Pages::Small => (MmapAdvise::MADV_NOHUGEPAGE, "madvise(MADV_NOHUGEPAGE)"),
            Pages::Transparent => (MmapAdvise::MADV_HUGEPAGE, "madvise(MADV_HUGEPAGE)"),
            Pages::Huge => return Ok(view),
        };
        // SAFETY: advises on the whole of a mapping that `view` owns; it changes no content.
        match unsafe { madvise(view.base, bytes as usize, advice) } {
            Ok(()) => Ok(view),
            // A kernel without huge pages knows no such advice, and to rule them out needs none.
            Err(Errno::EINVAL) if pages == Pages::Small => Ok(view),
            Err(errno) => Err(refused(name, called, bytes, errno)),
        }
    }

    fn of_file(region: &Region, part: FilePart) -> Result<View, Failure> {
        let (name, bytes) = (&region.name, region.bytes);
        let failed = |errno| refused(name, "mmap", bytes, errno);
        let length = length(bytes).ok_or_else(|| failed(Errno::EINVAL))?;
        let offset = i64::try_from(part.offset).map_err(|_| failed(Errno::EOVERFLOW))?;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing; what others do to its content is
        // seen through atomics alone.
        let base = unsafe { mmap(None, length, RIGHTS, MapFlags::MAP_SHARED, &*part.file, offset) }.map_err(failed)?;
        Ok(View { name: name.clone(), base, bytes, mapping: (base, length.get()), part: Some(part) })
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether other processes map it too.
    pub(super) fn is_shared(&self) -> bool {
        self.part.is_some()
    }

    /// Writes one byte in each page of 4 KiB, in order, each page's in another line than its neighbours'.
    #[inline]
    pub(super) fn touch(&self, offset: u64, bytes: u64) {
        let end = (offset + bytes).min(self.bytes);
        let mut at = offset;
        while at < end {
            let line = at / PAGE_BYTES % LINES * CACHE_LINE_BYTES;
            // SAFETY: inside the view, which is mapped as long as self lives; atomic, so that threads and processes may
            // write at once.
            unsafe { AtomicU8::from_ptr(self.base.as_ptr().cast::<u8>().add((at + line) as usize)) }
                .store(1, Ordering::Relaxed);
            at += PAGE_BYTES;
        }
    }

    /// Takes a part away from everybody who maps it. Nothing where the region is private.
    pub(super) fn punch(&self, offset: u64, bytes: u64) -> Result<(), Failure> {
        let Some(part) = &self.part else { return Ok(()) };
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        let at = (part.offset + offset) as i64;
        self.done("fallocate(PUNCH_HOLE)", || fallocate(&*part.file, flags, at, bytes as i64))
    }

    /// The same, asked for by address.
    pub(super) fn remove(&self, offset: u64, bytes: u64) -> Result<(), Failure> {
        // SAFETY: a part of the view; its content becomes zero, and nobody relies on it.
        self.done("madvise(MADV_REMOVE)", || unsafe {
            madvise(self.at(offset), bytes as usize, MmapAdvise::MADV_REMOVE)
        })
    }

    /// Drops this process's pages: the memory itself where it is private, the view where it is shared.
    pub(super) fn dont_need(&self, offset: u64, bytes: u64) -> Result<(), Failure> {
        // SAFETY: as in `remove`.
        self.done("madvise(MADV_DONTNEED)", || unsafe {
            madvise(self.at(offset), bytes as usize, MmapAdvise::MADV_DONTNEED)
        })
    }

    /// Makes a part read-only and writable again.
    pub(super) fn protect(&self, offset: u64, bytes: u64) -> Result<(), Failure> {
        for rights in [ProtFlags::PROT_READ, RIGHTS] {
            // SAFETY: a part of the view. A thread that writes to it meanwhile faults: the scenario lets one thread
            // protect what another touches at its own risk, and the kernel's SIGSEGV is the answer.
            self.done("mprotect", || unsafe { mprotect(self.at(offset), bytes as usize, rights) })?;
        }
        Ok(())
    }

    /// Unmaps a part of a shared view and maps the same memory in its place, untouched. In one call: between two
    /// another thread of the process could be given the address.
    pub(super) fn unmap_and_map(&self, offset: u64, bytes: u64) -> Result<(), Failure> {
        let (Some(part), Some(length)) = (&self.part, length(bytes)) else { return Ok(()) };
        let address = NonZeroUsize::new(self.at(offset).addr().get());
        let flags = MapFlags::MAP_SHARED | MapFlags::MAP_FIXED;
        let at = (part.offset + offset) as i64;
        // SAFETY: replaces a part of the view, which self owns, by the same part of the same file.
        self.done("mmap(MAP_FIXED)", || unsafe { mmap(address, length, RIGHTS, flags, &*part.file, at) }.map(drop))
    }

    /// Unmaps the first `bytes` of what is left of a private view, which is then so much shorter.
    pub(super) fn unmap_front(&mut self, bytes: u64) -> Result<(), Failure> {
        let (start, length) = self.mapping;
        let ahead = self.base.addr().get() - start.addr().get();
        let gone = if bytes >= self.bytes { length } else { ahead + bytes as usize };
        // SAFETY: the front of the mapping, which is self's own and nothing points into; it is self's no longer then.
        self.done("munmap", || unsafe { munmap(start, gone) })?;
        // SAFETY: at most one past the end of what was mapped.
        let rest = unsafe { start.byte_add(gone) };
        (self.mapping, self.base, self.bytes) = ((rest, length - gone), rest, self.bytes.saturating_sub(bytes));
        Ok(())
    }

    fn at(&self, offset: u64) -> NonNull<c_void> {
        // SAFETY: offsets lie inside the view.
        unsafe { self.base.byte_add(offset as usize) }
    }

    fn done(&self, call: &str, mut ask: impl FnMut() -> nix::Result<()>) -> Result<(), Failure> {
        loop {
            match ask() {
                Ok(()) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(errno) => {
                    let what = format!("region `{}`: {call} failed in the loop: {errno}", self.name);
                    return Err(Failure::new(what, cure(errno)));
                }
            }
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let (start, length) = self.mapping;
        if length > 0 {
            // SAFETY: the mapping is self's own, and nothing points into it.
            let _ = unsafe { munmap(start, length) };
        }
    }
}

fn length(bytes: u64) -> Option<NonZeroUsize> {
    usize::try_from(bytes).ok().and_then(NonZeroUsize::new)
}

fn cure(errno: Errno) -> &'static str {
    match errno {
        Errno::ENOMEM => "use larger chunks; see `sysctl vm.max_map_count` and `free -m`",
        Errno::EOPNOTSUPP | Errno::EINVAL => {
            "this kernel cannot do that with such pages: leave `pages` out, or the step"
        }
        _ => "run again; if it stays, `strace -f` shows the call",
    }
}

fn refused(name: &str, call: &str, bytes: u64, errno: Errno) -> Failure {
    let what = format!("region `{name}`: {call} of {bytes} bytes failed: {errno}");
    Failure::new(what, "make the region smaller; see `ulimit -v`, `free -m` and `sysctl vm.overcommit_memory`")
}

fn no_huge_pages(name: &str, bytes: u64, errno: Errno) -> Failure {
    let what = format!("region `{name}`: mmap of {bytes} bytes in huge pages failed: {errno}");
    Failure::new(
        what,
        "have more of them set apart, with `sysctl vm.nr_hugepages`; others may have taken some meanwhile",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::pagemap;
    use nix::sys::memfd::{MFdFlags, memfd_create};

    const PAGES: u64 = 8;

    fn region(pages: Pages) -> Region {
        Region { name: "heap".into(), bytes: PAGES * PAGE_BYTES, shared: false, pages }
    }

    fn private() -> View {
        View::new(&region(Pages::Small), None).unwrap()
    }

    /// Two views of one file, as two processes have them; the region begins at its second page.
    fn shared() -> (View, View) {
        let file = Arc::new(memfd_create(c"region", MFdFlags::MFD_CLOEXEC).unwrap());
        nix::unistd::ftruncate(&*file, ((PAGES + 1) * PAGE_BYTES) as i64).unwrap();
        let view =
            || View::new(&region(Pages::Small), Some(FilePart { file: file.clone(), offset: PAGE_BYTES })).unwrap();
        (view(), view())
    }

    fn present(view: &View) -> usize {
        let start = view.base.addr().get();
        pagemap::present(&(start..start + view.bytes as usize))
    }

    #[test]
    fn a_new_view_is_untouched_and_a_touch_brings_each_page_of_its_part() {
        let view = private();
        assert_eq!(present(&view), 0);
        view.touch(2 * PAGE_BYTES, 3 * PAGE_BYTES);
        assert_eq!(present(&view), 3);
        view.touch(0, view.bytes());
        assert_eq!(present(&view), 8);
    }

    #[test]
    fn what_is_punched_or_removed_is_gone_from_every_view() {
        let (victim, culprit) = shared();
        for (times, take) in [(1, View::punch as fn(&View, u64, u64) -> _), (2, View::remove)] {
            [&victim, &culprit].iter().for_each(|view| view.touch(0, view.bytes()));
            assert_eq!((present(&victim), present(&culprit)), (8, 8));
            take(&culprit, PAGE_BYTES, times * PAGE_BYTES).unwrap();
            assert_eq!((present(&victim), present(&culprit)), (8 - times as usize, 8 - times as usize));
        }
    }

    #[test]
    fn a_view_of_one_s_own_is_dropped_without_the_other_s() {
        let (victim, culprit) = shared();
        for give_back in [View::dont_need as fn(&View, u64, u64) -> _, View::unmap_and_map] {
            [&victim, &culprit].iter().for_each(|view| view.touch(0, view.bytes()));
            give_back(&culprit, 4 * PAGE_BYTES, 2 * PAGE_BYTES).unwrap();
            assert_eq!((present(&victim), present(&culprit)), (8, 6));
        }
        culprit.touch(0, culprit.bytes());
        assert_eq!(present(&culprit), 8, "what was mapped in its place is the same memory");
    }

    #[test]
    fn protected_memory_is_writable_again_and_private_pages_that_are_not_needed_go() {
        let view = private();
        view.touch(0, view.bytes());
        view.protect(PAGE_BYTES, 2 * PAGE_BYTES).unwrap();
        view.touch(0, view.bytes());
        assert_eq!(present(&view), 8);
        view.dont_need(0, PAGE_BYTES).unwrap();
        assert_eq!(present(&view), 7);
    }

    #[test]
    fn a_view_is_unmapped_from_its_front_until_nothing_is_left() {
        let mut view = View::private("heap", 2 * HUGE_PAGE_BYTES, Pages::Transparent).unwrap();
        assert!(view.base.as_ptr().addr().is_multiple_of(HUGE_PAGE_BYTES as usize));
        let end = view.base.addr().get() + view.bytes as usize;
        view.unmap_front(PAGE_BYTES).unwrap();
        view.touch(0, view.bytes());
        assert_eq!((view.base.addr().get() + view.bytes as usize, view.bytes), (end, 2 * HUGE_PAGE_BYTES - PAGE_BYTES));
        view.unmap_front(view.bytes).unwrap();
        assert_eq!((view.bytes, view.mapping.1), (0, 0));
    }

    #[test]
    fn memory_that_the_system_refuses_is_named() {
        let failure = View::private("heap", 1 << 62, Pages::Small).unwrap_err();
        assert!(failure.what.contains("region `heap`: mmap of") && failure.cure.contains("smaller"), "{failure:?}");
        let failure = View::private("heap", 1 << 46, Pages::Huge).unwrap_err();
        assert!(failure.what.contains("in huge pages") && failure.cure.contains("vm.nr_hugepages"), "{failure:?}");
        // Private memory has no file to punch: the kernel says so of MADV_REMOVE.
        let failure = private().remove(0, PAGE_BYTES).unwrap_err();
        assert!(failure.what.contains("madvise(MADV_REMOVE) failed in the loop: EINVAL"), "{failure:?}");
    }
}

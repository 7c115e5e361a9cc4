//! Private memory that a worker's own steps touch: mapped before the window, and until its first touch not there.
#![allow(unsafe_code)] // mapping memory, and writing to it

use crate::failure::Failure;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};
use plan::{OpKind, PAGE_BYTES, Program, WorkerProgram};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

/// One mapped region, whole pages. Its pages are of 4 KiB: a transparent huge page would come with the first touch of
/// any of its 512.
#[derive(Debug)]
pub(crate) struct Mapped {
    base: NonNull<c_void>,
    bytes: usize,
}

/// Maps those of the Program's regions that `me` has steps for, by the Program's index. No page of them is touched.
///
/// # Errors
/// [`Failure`] where the system gives no address space.
pub(crate) fn map(program: &Program, me: &WorkerProgram) -> Result<Vec<Option<Mapped>>, Failure> {
    let uses =
        |region: usize| me.ops.iter().any(|op| matches!(op.kind, OpKind::Touch { region: r } if r as usize == region));
    let regions = program.regions.iter().enumerate();
    regions.map(|(index, region)| uses(index).then(|| Mapped::new(&region.name, region.bytes)).transpose()).collect()
}

impl Mapped {
    fn new(name: &str, bytes: u64) -> Result<Mapped, Failure> {
        let failed = |call: &str, errno| {
            let what = format!("region `{name}`: {call} of {bytes} bytes failed: {errno}");
            Failure::new(what, "make the region smaller; see `ulimit -v`, `free -m` and `sysctl vm.overcommit_memory`")
        };
        let length = usize::try_from(bytes).ok().and_then(NonZeroUsize::new);
        let length = length.ok_or_else(|| failed("mmap", nix::errno::Errno::EINVAL))?;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice overlaps nothing.
        let base = unsafe {
            mmap_anonymous(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE)
        };
        let mapped = Mapped { base: base.map_err(|errno| failed("mmap", errno))?, bytes: length.get() };
        // SAFETY: advises on the whole of a mapping that `mapped` owns; it changes no content.
        match unsafe { madvise(mapped.base, mapped.bytes, MmapAdvise::MADV_NOHUGEPAGE) } {
            // A kernel without huge pages knows no such advice, and needs none.
            Ok(()) | Err(nix::errno::Errno::EINVAL) => Ok(mapped),
            Err(errno) => Err(failed("madvise(MADV_NOHUGEPAGE)", errno)),
        }
    }

    /// Writes one byte in each page, in order.
    pub(crate) fn touch(&self) {
        for offset in (0..self.bytes).step_by(PAGE_BYTES as usize) {
            // SAFETY: inside the mapping, which self owns and no reference points into. Volatile, or the compiler would
            // drop a write that nobody reads.
            unsafe { self.base.cast::<u8>().add(offset).write_volatile(1) };
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is self's own, and nothing points into it.
        let _ = unsafe { munmap(self.base, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{CpuId, Layout, Nanos, Op, Region, WorkerIndex};

    /// A program of one worker that touches its second region, of 8 pages.
    fn program() -> Program {
        let region = |name: &str, pages| Region { name: name.into(), bytes: pages * PAGE_BYTES };
        Program {
            timed_locks: true,
            arm: "a".into(),
            window: Nanos(1),
            warm_up: Nanos(0),
            layout: Layout { placed: vec![], bytes: 0 },
            area_bytes: 0,
            locks: vec![],
            regions: vec![region("unused", 4), region("used", 8)],
            workers: vec![WorkerProgram {
                process: 0,
                period: None,
                latency: false,
                index: WorkerIndex(0),
                role: 0,
                role_name: "r".into(),
                cpu: CpuId(0),
                after: Nanos(0),
                steps: vec!["touch used".into()],
                ops: vec![Op { every: 1, step: 0, kind: OpKind::Touch { region: 1 } }],
            }],
            shares_cpu: false,
            seed: 0,
        }
    }

    fn present(mapped: &Mapped) -> usize {
        let start = mapped.base.addr().get();
        crate::pagemap::present(&(start..start + mapped.bytes))
    }

    #[test]
    fn a_used_region_is_mapped_untouched_and_a_touch_brings_every_page() {
        let program = program();
        let regions = map(&program, &program.workers[0]).unwrap();
        assert!(regions[0].is_none(), "no step touches it");
        let used = regions[1].as_ref().unwrap();
        assert_eq!(present(used), 0);
        used.touch();
        assert_eq!(present(used), 8);
    }

    #[test]
    fn a_region_that_the_system_refuses_is_named() {
        let failure = Mapped::new("heap", 1 << 62).unwrap_err();
        assert!(failure.what.contains("region `heap`") && failure.cure.contains("smaller"), "{failure:?}");
    }
}

//! Regions: memory in pages, beside the fields, for steps that the kernel's paging is under study in.

use crate::units::{HUGE_PAGE_BYTES, Nanos, PAGE_BYTES};
use serde::{Deserialize, Serialize};

/// Memory of a size and a kind of page, mapped before the window by each process of which a worker names it, and
/// untouched but for [`WorkerProgram::populate`](crate::WorkerProgram::populate).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Its name in steps.
    pub name: String,
    /// Its size: whole pages of its kind, at least one.
    pub bytes: u64,
    /// Whether all processes map the same memory. Else each process has its own, which its threads share.
    pub shared: bool,
    /// What its pages are.
    pub pages: Pages,
}

/// What pages a region has.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pages {
    /// Of [`PAGE_BYTES`]; huge ones are ruled out.
    #[default]
    Small,
    /// Small ones, and huge ones where the kernel has them to give (`MADV_HUGEPAGE`): of private regions alone.
    Transparent,
    /// Of [`HUGE_PAGE_BYTES`], set apart by the machine's keeper.
    Huge,
}

impl Pages {
    /// As scenarios spell them.
    pub const ALL: [(&str, Pages); 3] =
        [("4KiB", Pages::Small), ("transparent", Pages::Transparent), ("2MiB", Pages::Huge)];

    /// The least that can be given back or protected, bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Pages::Small | Pages::Transparent => PAGE_BYTES,
            Pages::Huge => HUGE_PAGE_BYTES,
        }
    }
}

impl Region {
    /// How many pages of [`PAGE_BYTES`] it has: each is touched once, whatever the kind of page.
    pub fn pages(&self) -> u64 {
        self.bytes / PAGE_BYTES
    }
}

/// A step on a region: each pass does [`MemoryStep::bytes`] of it in chunks, from where the pass before left off.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryStep {
    /// What is done.
    pub verb: MemoryVerb,
    /// Index into [`Case::regions`](crate::Case::regions), or into [`Program::regions`](crate::Program::regions).
    pub region: u32,
    /// Bytes a pass: a multiple of the chunk, at most the region's.
    pub bytes: u64,
    /// Bytes of one call, or of one batch of touches: divides the region's size, so that none goes across its end.
    pub chunk: u64,
    /// Time without work behind each chunk.
    pub pause: Nanos,
}

impl MemoryStep {
    /// Chunks of a pass.
    pub fn chunks(&self) -> u64 {
        self.bytes.checked_div(self.chunk).unwrap_or(0)
    }
}

/// What a memory step does. Those that [give memory back](MemoryVerb::gives_back) are what shoots translations down.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MemoryVerb {
    /// Writes one byte in each page; a chunk is a batch, which is timed.
    Touch,
    /// `fallocate(PUNCH_HOLE)`: takes the memory from every process that maps it.
    Punch,
    /// `madvise(MADV_REMOVE)`: likewise.
    Remove,
    /// `madvise(MADV_DONTNEED)`: of private memory its pages, of shared memory this process's view alone.
    DontNeed,
    /// `mprotect` to read-only and back, of this process's view.
    Protect,
    /// `mmap` of new private memory, touched; it stays until the pass unmaps it. Of the region only size and pages
    /// count.
    Map,
    /// `munmap` of what the pass has mapped; of a shared region, of this process's view, which is mapped anew in its
    /// place.
    Unmap,
    /// `malloc` of a chunk, touched, and `free`. Of the region only the size counts.
    Free,
    /// The same memory touched in each pass, and nothing given back.
    Reuse,
}

impl MemoryVerb {
    /// As steps spell them.
    pub const ALL: [(&str, MemoryVerb); 9] = [
        ("touch", MemoryVerb::Touch),
        ("punch", MemoryVerb::Punch),
        ("remove", MemoryVerb::Remove),
        ("dontneed", MemoryVerb::DontNeed),
        ("protect", MemoryVerb::Protect),
        ("map", MemoryVerb::Map),
        ("unmap", MemoryVerb::Unmap),
        ("free", MemoryVerb::Free),
        ("reuse", MemoryVerb::Reuse),
    ];

    /// As steps spell it.
    pub fn name(self) -> &'static str {
        MemoryVerb::ALL.iter().find(|(_, verb)| *verb == self).map_or("", |(name, _)| name)
    }

    /// Whether each of its calls is logged as one that may interrupt others: it takes pages or rights away.
    pub fn gives_back(self) -> bool {
        !matches!(self, MemoryVerb::Touch | MemoryVerb::Reuse | MemoryVerb::Map)
    }

    /// Whether the memory itself goes, for all who map it, and with it what was reserved.
    pub fn punches(self) -> bool {
        matches!(self, MemoryVerb::Punch | MemoryVerb::Remove)
    }

    /// Whether it works on the region's own mapping, rather than on memory made for the step.
    pub fn needs_mapping(self, shared: bool) -> bool {
        match self {
            MemoryVerb::Map | MemoryVerb::Free => false,
            MemoryVerb::Unmap => shared,
            _ => true,
        }
    }
}

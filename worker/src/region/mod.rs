//! Regions: memory in pages that a worker's steps use and give back. Mapped before the window by each process that has
//! a worker whose Program names it, and, but for what is populated, until its first touch not there.
//!
//! [`view`] is the mapped memory and what the kernel is asked to do with it; [`steps`] makes the steps of a pass, chunk
//! by chunk; [`batches`] and [`calls`] are what is kept of them.

mod batches;
mod calls;
mod steps;
mod view;

pub(crate) use steps::{Paging, make_step};

use crate::failure::Failure;
use crate::handover;
use plan::{MemoryVerb, Pages, Program, WorkerProgram};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use view::{FilePart, View};

/// A process's views of the Program's regions, by its index; its threads share them.
#[derive(Debug, Default)]
pub(crate) struct Views(Vec<Option<View>>);

/// The files that hold the shared regions, one for each kind of page.
#[derive(Debug, Default)]
pub(crate) struct Files {
    small: Option<Arc<OwnedFd>>,
    huge: Option<Arc<OwnedFd>>,
}

impl Files {
    /// Takes over what the coordinator has handed to this process for `program`. Once.
    pub(crate) fn adopt(program: &Program) -> Files {
        let file = |pages, adopt: fn() -> OwnedFd| (program.shared_file(pages).1 > 0).then(|| Arc::new(adopt()));
        Files {
            small: file(Pages::Small, handover::adopt_regions),
            huge: file(Pages::Huge, handover::adopt_huge_regions),
        }
    }

    fn of(&self, pages: Pages) -> Option<&Arc<OwnedFd>> {
        match pages {
            Pages::Huge => self.huge.as_ref(),
            Pages::Small | Pages::Transparent => self.small.as_ref(),
        }
    }
}

impl Views {
    /// Maps those of the Program's regions that a worker of `crew`, the workers of this process, needs. No page of them
    /// is touched.
    ///
    /// # Errors
    /// [`Failure`] where the system gives no address space, or no huge pages.
    pub(crate) fn map(program: &Program, crew: &[WorkerProgram], files: &Files) -> Result<Views, Failure> {
        let places = [Pages::Small, Pages::Huge].map(|pages| (pages, program.shared_file(pages).0));
        let part = |region: usize| {
            let (pages, offset) = places.iter().find_map(|(pages, offsets)| Some((*pages, offsets[region]?)))?;
            Some(FilePart { file: files.of(pages)?.clone(), offset })
        };
        let view = |(index, region): (usize, &plan::Region)| {
            let needed = crew.iter().any(|worker| program.maps(worker, index as u32));
            needed.then(|| View::new(region, part(index))).transpose()
        };
        let views: Result<Vec<_>, Failure> = program.regions.iter().enumerate().map(view).collect();
        if crew.iter().any(|worker| worker.memory_steps().any(|(_, step)| step.verb == MemoryVerb::Free)) {
            crate::heap::map_large_blocks();
        }
        views.map(Views)
    }

    /// The view of the region of that index, where this process has one.
    fn get(&self, region: u32) -> Option<&View> {
        self.0.get(region as usize)?.as_ref()
    }

    /// Touches whole what `me` is to have there. After pinning, and before the warm-up.
    pub(crate) fn populate(&self, me: &WorkerProgram) {
        let views = me.populate.iter().filter_map(|region| self.get(*region));
        views.for_each(|view| view.touch(0, view.bytes()));
    }
}

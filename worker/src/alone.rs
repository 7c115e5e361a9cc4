//! A worker's loop without a worker's life: for whoever measures the lab from outside (`bench`), and sets its pace.

use crate::compile::{CompiledLoop, LockSites};
use crate::context::Context;
use crate::failure::Failure;
use crate::measure;
use crate::probe::Reading;
use crate::region::{Files, Views};
use plan::Program;
use record::{LockTrace, Trace};
use shm_layout::{Phase, Segment, ticks};
use std::sync::Arc;

/// One worker's compiled loop on a segment, with all that a worker keeps of its passes: locks and their logs, clock
/// reads between batches. The window opens when every worker of the program has made its first batch and the warm-up
/// has passed; what is logged is logged in it.
pub struct LoopOnSegment<'s> {
    compiled: CompiledLoop,
    context: Context<'s>,
    cpu: u32,
}

impl<'s> LoopOnSegment<'s> {
    /// The loop of the program's worker of that index, who is none of its own: this thread, pinned already, plays it,
    /// and is the only one to do so. `segment` was made for this program. `work_ns_per_turn` is what
    /// [`work_turn_ns`](crate::compile::work_turn_ns) says, or whatever the lengths of `work` are to be divided by.
    ///
    /// # Errors
    /// [`Failure`]: there is no such worker, its loop does not compile, or a region cannot be mapped.
    pub fn new(
        segment: &'s Segment,
        program: &Program,
        index: u32,
        work_ns_per_turn: f64,
    ) -> Result<LoopOnSegment<'s>, Failure> {
        let mine = program.worker(index).ok_or_else(|| Failure::no_such_worker(index))?;
        measure::touch(segment);
        let sites = LockSites::of(program, segment.map(), mine.index);
        let compiled = CompiledLoop::compile(mine, &sites, program.seed, work_ns_per_turn, &crate::hooks());
        let compiled = compiled.map_err(Failure::compile)?;
        let views = Views::map(program, std::slice::from_ref(mine), &Files::default())?;
        let context = Context::new(segment, program, mine, &[], Arc::new(views));
        Ok(LoopOnSegment { compiled, context, cpu: mine.cpu.0 })
    }

    /// Makes `passes` passes, as a batch between two clock reads; in several where a long wait ends one early, as with
    /// a worker.
    ///
    /// # Errors
    /// [`Failure`] where a lock failed, the repetition was given up, or all have left the window.
    ///
    /// # Panics
    /// If `passes` is no multiple of what the loop makes an iteration: 1 where it can block.
    pub fn run(&mut self, passes: u64) -> Result<(), Failure> {
        let mut left = passes;
        while left > 0 {
            let (progress, _) = measure::batch(&mut self.compiled, &mut self.context, left);
            left -= progress.passes;
            if let Some(failure) = self.context.failure.take() {
                return Err(failure);
            }
            match self.context.segment.control().phase() {
                Phase::Aborted => return Err(Failure::aborted()),
                Phase::Stopped => return Err(window_was_short(&self.context)),
                Phase::Attaching | Phase::Released => {}
            }
        }
        Ok(())
    }

    /// What was recorded of each lock that the loop uses.
    ///
    /// # Errors
    /// [`Failure`] where the window has closed by now, or never opened: then the records lack what was run outside.
    pub fn into_locks(self) -> Result<Vec<LockTrace>, Failure> {
        let was_short = window_was_short(&self.context);
        let nothing = Reading::default;
        let Trace { close_ticks, locks, .. } = self.context.into_trace(self.cpu, nothing(), nothing());
        if close_ticks < ticks() { Err(was_short) } else { Ok(locks) }
    }
}

fn window_was_short(context: &Context<'_>) -> Failure {
    let what =
        format!("the window of {} ms was not open to the end of the last batch", context.window_ns.1 / 1_000_000);
    Failure::new(what, "run it where less else runs, or make its window longer")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{AccessKind, Address, Layout, LockKind, Nanos, OpKind, PlacedLock, Width, WorkerProgram};
    use shm_layout::{SegmentSpec, calibrate};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    const WORD: u64 = 128;

    fn program(window: Duration) -> Program {
        let kinds = [
            OpKind::Lock { lock: 0, shared: false, timeout: None },
            OpKind::Access { kind: AccessKind::Bump, width: Width::U64, at: Address::Fixed(WORD) },
            OpKind::Unlock { lock: 0, shared: false },
        ];
        Program {
            window: Nanos(window.as_nanos() as u64),
            layout: Layout { placed: vec![], bytes: 4096 },
            area_bytes: 4096,
            locks: vec![PlacedLock { name: "m".into(), kind: LockKind::Pthread, offset: 0 }],
            ..Program::of([WorkerProgram::of(kinds)])
        }
    }

    fn segment(program: &Program) -> Segment {
        let rate = calibrate(Duration::from_millis(5));
        let spec = SegmentSpec { program, encoded_program: b"alone", slots: 1, rate, node: None };
        Segment::create(&spec).unwrap()
    }

    #[test]
    fn it_makes_the_passes_asked_for_and_records_those_in_the_window() {
        let program = program(Duration::from_secs(3_600));
        let segment = segment(&program);
        let mut lone = LoopOnSegment::new(&segment, &program, 0, 1.0).unwrap();
        for passes in [1, 7, 1_000] {
            lone.run(passes).unwrap();
        }
        #[allow(unsafe_code)] // a word of the area
        // SAFETY: in the area of 4096 bytes, aligned, and touched by this thread alone.
        let word = unsafe { &*segment.area().add(WORD as usize).cast::<AtomicU64>() };
        assert_eq!(word.load(Ordering::Relaxed), 1_008);
        // The first batch opens the window.
        let lock = &lone.into_locks().unwrap()[0];
        assert_eq!((lock.acquisitions, lock.contended), (1_007, 0));
    }

    #[test]
    fn a_window_that_closed_or_never_opened_is_an_error() {
        let program = program(Duration::from_millis(1));
        for batches in [0, 1, 2] {
            let segment = segment(&program);
            let mut lone = LoopOnSegment::new(&segment, &program, 0, 1.0).unwrap();
            let mut run = || {
                let ran = lone.run(1);
                std::thread::sleep(Duration::from_millis(2));
                ran
            };
            let ran = (0..batches).try_for_each(|_| run());
            let failure = ran.and_then(|()| lone.into_locks().map(drop)).unwrap_err();
            assert!(failure.what.contains("the window of 1 ms"), "{batches} batches: {failure:?}");
        }
    }

    #[test]
    fn it_leaves_when_the_repetition_is_given_up_and_knows_its_workers() {
        let program = program(Duration::from_secs(3_600));
        let segment = segment(&program);
        assert!(LoopOnSegment::new(&segment, &program, 1, 1.0).is_err());
        let mut lone = LoopOnSegment::new(&segment, &program, 0, 1.0).unwrap();
        segment.control().abort();
        assert!(lone.run(10).unwrap_err().aborted);
    }
}

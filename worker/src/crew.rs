//! The workers of one process: its first thread is one, and each further one has a thread of its own.

use crate::failure::Failure;
use crate::handover::{Report, Reporter};
use crate::heap;
use plan::WorkerProgram;
use record::Trace;
use std::thread::Builder;

/// Lets each of `crew`, the workers of this process, do its `work`, and returns their traces in order. The first works
/// on the calling thread. Where one fails by itself it reports that and ends the process there and then: its siblings
/// may wait for it in ways that nothing but the end of the process gets them out of, and the coordinator sees that end.
///
/// # Errors
/// Of a crew of one its failure. Else the first that left because the repetition was given up, and why.
pub(crate) fn run<'p>(
    crew: &'p [WorkerProgram],
    reporter: &Reporter,
    work: impl Fn(&'p WorkerProgram) -> Result<Trace, Failure> + Sync,
) -> Result<Vec<Trace>, Report> {
    let [first, others @ ..] = crew else { return Ok(Vec::new()) };
    if others.is_empty() {
        return work(first).map(|trace| vec![trace]).map_err(|failure| Report::of_failed(first, failure));
    }
    heap::keep_apart();
    let work_or_end = |me: &'p WorkerProgram| {
        let _end = EndIfPanicking;
        match work(me) {
            Err(failure) if !failure.aborted => reporter.end_process(&Report::of_failed(me, failure)),
            outcome => outcome.map_err(|failure| Report::of_failed(me, failure)),
        }
    };
    std::thread::scope(|scope| {
        let start = |me: &'p WorkerProgram| {
            let thread = Builder::new().name(format!("worker {}", me.index));
            // Those that have started wait for all to attach.
            let failed = |error| reporter.end_process(&Report::of_failed(me, Failure::thread(&error)));
            thread.spawn_scoped(scope, move || work_or_end(me)).unwrap_or_else(failed)
        };
        let others: Vec<_> = others.iter().map(start).collect();
        let first = work_or_end(first);
        let others = others.into_iter().map(|other| other.join().unwrap_or_else(|it| std::panic::resume_unwind(it)));
        std::iter::once(first).chain(others.collect::<Vec<_>>()).collect()
    })
}

/// A thread that panics would leave its siblings waiting for it.
struct EndIfPanicking;

impl Drop for EndIfPanicking {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // As the runtime ends a process whose first thread has panicked.
            std::process::exit(101);
        }
    }
}

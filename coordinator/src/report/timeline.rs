//! `timeline.csv`: what the steps on regions did through each window, in the order in which it began: the batches of
//! touches by millisecond, each call that gave memory back, each batch that took long, and each flush and function-call
//! interrupt of the kernel's, with the step of the call it falls into and in `count` its pages.

use super::rows::{Repetition, Rows};
use super::write_error::WriteError;
use analysis::{Moment, MomentKind, moments};
use record::{KernelEventKind, TimelineBucket};
use std::io::{self, Write};
use std::path::Path;

const HEAD: [&str; 13] = [
    "arm", "block", "worker", "role", "what", "step", "start_ns", "end_ns", "count", "min_ns", "p50_ns", "p99_ns",
    "max_ns",
];

/// The log of a run that is being made.
pub(crate) struct TimelineLog(Rows);

impl TimelineLog {
    pub(super) fn create(folder: &Path) -> Result<TimelineLog, WriteError> {
        Rows::create(folder, "write the timeline to a file in", &HEAD).map(TimelineLog)
    }

    pub(super) fn repetition(&mut self, repetition: Repetition<'_>) -> Result<(), WriteError> {
        let Repetition { block, program, traces, rate } = repetition;
        let block = block.to_string();
        self.0.add(|rows| {
            moments(program, traces, rate).into_iter().try_for_each(|moment| {
                let Moment { worker, role, what, start_ns, end_ns } = moment;
                let (what, step, figures) = columns(what);
                let [worker, start, end] = [worker.to_string(), format!("{start_ns:.1}"), format!("{end_ns:.1}")];
                let place = [&program.arm, &block, &worker, &role, what, &step, &start, &end];
                rows.write_record(place.into_iter().chain(figures.iter().map(String::as_str)))
            })
        })
    }

    pub(super) fn copy(self, out: &mut impl Write) -> io::Result<()> {
        self.0.copy(out)
    }
}

/// What it is, its step, and the figures of batches, which nothing else has.
fn columns(what: MomentKind) -> (&'static str, String, [String; 5]) {
    match what {
        MomentKind::Batches(TimelineBucket { count, min_ns, p50_ns, p99_ns, max_ns, .. }) => {
            let [min, p50, p99, max] = [min_ns, p50_ns, p99_ns, max_ns].map(|ns| format!("{ns:.1}"));
            ("batches", String::new(), [count.to_string(), min, p50, p99, max])
        }
        MomentKind::Call(step) => ("call", step, Default::default()),
        MomentKind::Stall(step) => ("stall", step, Default::default()),
        MomentKind::Kernel { kind, step } => {
            let pages = match kind {
                KernelEventKind::Flush { pages: Some(pages), .. } => pages.to_string(),
                KernelEventKind::Flush { pages: None, .. } | KernelEventKind::Interrupt => String::new(),
            };
            (kind.name(), step.unwrap_or_default(), [pages, String::new(), String::new(), String::new(), String::new()])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Program, TickRate};
    use record::{BatchBucket, MemoryCall, MemoryTrace, Stall, Trace};

    #[test]
    fn a_row_says_what_it_is_and_leaves_empty_what_it_has_not() {
        let call = |at| MemoryCall { step: 0, verb: plan::MemoryVerb::Punch, start_ticks: at, end_ticks: at + 10 };
        let bucket = BatchBucket { number: 1, count: 9, min_ticks: 4, p50_ticks: 5, p99_ticks: 60, max_ticks: 70 };
        let memory = MemoryTrace {
            bucket_ticks: 100,
            buckets: vec![bucket],
            calls: vec![call(1_050), call(1_210)],
            stalls: vec![Stall { start_ticks: 1_055, end_ticks: 1_125 }],
            ..MemoryTrace::default()
        };
        let traces = [Trace { worker: 3, open_ticks: 1_000, memory: Some(memory), ..Trace::default() }];
        let program = Program { arm: "punch, by another".into(), ..Program::of([]) };
        let mut log = TimelineLog::create(&std::env::temp_dir()).unwrap();
        let rate = TickRate { ticks_per_ns: 2.0 };
        log.repetition(Repetition { block: 7, program: &program, traces: &traces, rate }).unwrap();
        let mut written = Vec::new();
        log.copy(&mut written).unwrap();
        let expected = "arm,block,worker,role,what,step,start_ns,end_ns,count,min_ns,p50_ns,p99_ns,max_ns\n\
            \"punch, by another\",7,3,,call,punch,25.0,30.0,,,,,\n\
            \"punch, by another\",7,3,,stall,touch,27.5,62.5,,,,,\n\
            \"punch, by another\",7,3,,batches,,50.0,100.0,9,2.0,2.5,30.0,35.0\n\
            \"punch, by another\",7,3,,call,punch,105.0,110.0,,,,,\n";
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }
}

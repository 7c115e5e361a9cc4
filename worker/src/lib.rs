//! What one process of pinned workers does: attach, and for each worker pin, compile its program, warm up, run, record.
//!
//! A worker process is a fresh execution of the coordinator's program with a hidden first argument. It is given its
//! Program by a sealed memfd, the segment by name, and answers with a [`Report`] in another memfd. Its first thread is
//! a worker; where a role has `threads`, each further one is one more. [`main`] reads as its life.
//!
//! Why not a bare fork: a fork'd child inherits mappings, heap layout and lock states of its parent, so all workers
//! would have one address layout and the measurement one environment; and a library that owns a segment would unlink it
//! in every child.

mod alone;
mod batch;
pub mod compile;
mod context;
mod costs;
mod crew;
mod draw;
mod failure;
mod gate;
mod handover;
mod heap;
mod hooks;
mod latency;
mod lifeline;
mod locks;
mod markers;
mod measure;
mod pace;
mod pin;
mod probe;
mod recorder;
mod region;
mod resident;
mod schedstat;
#[cfg(test)]
mod tests;

pub use alone::LoopOnSegment;
pub use failure::Failure;
pub use handover::{
    Arguments, HUGE_REGIONS_FD, Handover, LIFE_FD, PROGRAM_FD, READY_FD, REGIONS_FD, REPORT_FD, Report, WORKER_ARGUMENT,
};
pub use heap::Heap;
pub use hooks::hooks;

use compile::{CompiledLoop, LockSites};
use context::Context;
use counters::Orders;
use crossbeam_utils::Backoff;
use gate::Gatekeeper;
use handover::{Brief, Encoded, ReadyPipe, Reporter};
use plan::{Program, WorkerProgram};
use region::{Files, Views};
use shm_layout::{Phase, Segment, WorkerState};
use std::process::ExitCode;
use std::sync::Arc;

/// Runs a process's workers with the arguments that follow [`WORKER_ARGUMENT`]. Never called by a user.
pub fn main(arguments: &[String]) -> ExitCode {
    let Some(arguments) = Arguments::parse(arguments) else {
        eprintln!("this argument is for the lab's own use: see `coordinator --help`");
        return ExitCode::from(2);
    };
    if lifeline::tie_to(arguments.parent).is_err() {
        return ExitCode::FAILURE; // the coordinator is gone: there is nobody to tell
    }
    let reporter = Reporter::adopt();
    let report = live(&arguments, &reporter).unwrap_or_else(|failed| failed);
    let ran = matches!(report, Report::Traces(_));
    match reporter.write(&report) {
        Ok(()) if ran => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// What the workers of a process share, and which of them they are: each does [`Process::work`] on a thread of its own.
struct Process<'a> {
    program: &'a Program,
    orders: &'a [Orders],
    segment: &'a Segment,
    ready: ReadyPipe,
    views: Arc<Views>,
}

/// What is left to report: traces, or who failed.
fn live(arguments: &Arguments, reporter: &Reporter) -> Result<Report, Report> {
    let of_process = |failure| Report::Failed { worker: None, failure };
    let Encoded { brief: Brief { program, orders }, bytes } = handover::read_brief().map_err(of_process)?;
    let crew = program.processes().nth(arguments.process as usize);
    let crew = crew.ok_or_else(|| of_process(Failure::no_such_process(arguments.process)))?;
    lifeline::set_deadline(&program);
    let segment = Segment::attach(&arguments.segment, &program, &bytes, arguments.slots);
    let segment = &segment.map_err(|error| of_process(Failure::attach(error)))?;
    let views = Arc::new(Views::map(&program, crew, &Files::adopt(&program)).map_err(of_process)?);
    let process = Process { program: &program, orders: &orders, segment, ready: ReadyPipe::adopt(), views };
    crew::run(crew, reporter, |me| process.work(me)).map(Report::Traces)
}

impl Process<'_> {
    /// One worker's life, on the calling thread.
    fn work(&self, me: &WorkerProgram) -> Result<record::Trace, Failure> {
        let Process { program, segment, ready, .. } = self;
        let (index, slot) = (me.index.0, segment.slot(me.index.0));
        let cpu = pin::pin(me.cpu)?;
        measure::touch(segment);
        let mut compiled = compile(program, me, segment)?;
        let mut contender = probe::Contender::compile()?;
        let costs = costs::Costs::prepare(me.cpu)?;
        let orders = counters::orders_for(self.orders, me.cpu);
        self.views.populate(me);
        let mut context = Context::new(segment, program, me, orders, Arc::clone(&self.views));
        let mut gatekeeper = Gatekeeper { program, segment, index, ready };
        resident::touch_own_pages();
        slot.set_thread(nix::unistd::gettid().as_raw());
        slot.set_state(WorkerState::Attached);
        ready.say()?;
        wait_for_release(segment)?;

        let costs = costs.measure(segment, program, me)?;
        let before = probe::probe(segment, program, me, &mut contender)?;
        measure::run(&mut compiled, &mut context, &mut gatekeeper)?;
        let after = probe::probe(segment, program, me, &mut contender)?;
        slot.set_state(WorkerState::Done);
        Ok(record::Trace { costs, ..context.into_trace(cpu, before, after) })
    }
}

/// Compiles a worker's loop for the CPU this thread runs on.
fn compile(program: &Program, me: &WorkerProgram, segment: &Segment) -> Result<CompiledLoop, Failure> {
    let turn_ns = compile::work_turn_ns().map_err(Failure::compile)?;
    let sites = LockSites::of(program, segment.map(), me.index);
    CompiledLoop::compile(me, &sites, program.seed, turn_ns, &hooks()).map_err(Failure::compile)
}

fn wait_for_release(segment: &Segment) -> Result<(), Failure> {
    let backoff = Backoff::new();
    loop {
        match segment.control().phase() {
            Phase::Attaching => backoff.snooze(), // yields soon: the coordinator may need this CPU to unlink the name
            Phase::Aborted => return Err(Failure::aborted()),
            _ => return Ok(()),
        }
    }
}

//! What one pinned process of the lab does: attach, pin, compile its program, warm up, run, record.
//!
//! A worker is a fresh execution of the coordinator's program with a hidden first argument. It is given its Program by
//! a sealed memfd, the segment by name, and answers with a [`Report`] in another memfd. [`main`] reads as its life.
//!
//! Why not a bare fork: a fork'd child inherits mappings, heap layout and lock states of its parent, so all workers would
//! have one address layout and the measurement one environment; and a library that owns a segment would unlink it in
//! every child.

mod alone;
pub mod compile;
mod context;
mod failure;
mod gate;
mod handover;
mod hooks;
mod latency;
mod lifeline;
mod locks;
mod measure;
mod pace;
#[cfg(test)]
mod pagemap;
mod pin;
mod probe;
mod recorder;
mod region;
#[cfg(test)]
mod rehearsal;
mod resident;

pub use alone::LoopOnSegment;
pub use failure::Failure;
pub use handover::{Arguments, Handover, LIFE_FD, PROGRAM_FD, READY_FD, REPORT_FD, Report, WORKER_ARGUMENT};
pub use hooks::hooks;

use compile::{CompiledLoop, LockSites};
use context::Context;
use crossbeam_utils::Backoff;
use gate::Gatekeeper;
use handover::{Brief, Encoded, ReadyPipe};
use plan::{Program, WorkerProgram};
use shm_layout::{Phase, Segment, WorkerState};
use std::process::ExitCode;

/// Runs a worker with the arguments that follow [`WORKER_ARGUMENT`]. Never called by a user.
pub fn main(arguments: &[String]) -> ExitCode {
    let Some(arguments) = Arguments::parse(arguments) else {
        eprintln!("this argument is for the lab's own use: see `coordinator --help`");
        return ExitCode::from(2);
    };
    if lifeline::tie_to(arguments.parent).is_err() {
        return ExitCode::FAILURE; // the coordinator is gone: there is nobody to tell
    }
    let report = match live(&arguments) {
        Ok(trace) => Report::Trace(Box::new(trace)),
        Err(failure) => Report::Failure(failure),
    };
    let failed = matches!(report, Report::Failure(_));
    match handover::write_report(&report) {
        Ok(()) if !failed => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn live(arguments: &Arguments) -> Result<record::Trace, Failure> {
    let Encoded { brief: Brief { program, orders }, bytes } = handover::read_brief()?;
    let mine = program
        .workers
        .iter()
        .find(|w| w.index.0 == arguments.index)
        .ok_or_else(|| Failure::no_such_worker(arguments.index))?;
    lifeline::set_deadline(&program);
    let segment = Segment::attach(&arguments.segment, &program, &bytes, arguments.slots).map_err(Failure::attach)?;
    let cpu = pin::pin(mine.cpu)?;
    measure::touch(&segment);
    let mut compiled = compile(&program, mine, &segment)?;
    let mut contender = probe::Contender::compile(mine)?;
    let orders = counters::orders_for(&orders, mine.cpu);
    let regions = region::map(&program, mine)?;
    let mut context = Context::new(&segment, &program, mine, orders, regions);
    let ready = ReadyPipe::adopt();
    let mut gatekeeper = Gatekeeper { program: &program, segment: &segment, index: arguments.index, ready };
    resident::touch_own_pages();
    segment.slot(arguments.index).set_state(WorkerState::Attached);
    gatekeeper.ready.say()?;
    wait_for_release(&segment)?;

    let before = probe::probe(&segment, &program, mine, &mut contender)?;
    measure::run(&mut compiled, &mut context, &mut gatekeeper)?;
    let after = probe::probe(&segment, &program, mine, &mut contender)?;
    segment.slot(arguments.index).set_state(WorkerState::Done);
    Ok(context.into_trace(cpu, before, after))
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

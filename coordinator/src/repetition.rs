//! One repetition: a set of fresh processes over a fresh segment, from nothing to their traces.

use crate::collect::{self, Collected, Failed};
use crate::hold::HeldArm;
use crate::launch::{self, Child, LaunchError};
use crate::provision::{self, Provision, ProvisionError};
use crate::signals::Signals;
use crate::supervise::{self, Stop};
use counters::Orders;
use nix::unistd::Pid;
use plan::Program;
use plan::TickRate;
use record::Trace;
use shm_layout::Segment;

/// Why a repetition gave no traces. Its segment is gone, and its processes have ended unless the error says otherwise.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RepetitionError {
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error("interrupted")]
    Interrupted,
    /// A worker said why.
    #[error("{worker}: {what}: {cure}")]
    Worker { worker: String, what: String, cure: String },
    /// A worker ended and said nothing.
    #[error("{worker} {how} while {state}: the run cannot go on without it; {why}")]
    Ended { worker: String, how: String, state: String, why: &'static str },
    /// Nobody ended, and the time is up.
    #[error("the repetition did not end in its time and was stopped: {0}")]
    Stuck(String),
    /// A worker died holding a lock that nobody can take over.
    #[error("{0}")]
    Orphaned(String),
    /// A killed worker stays: the one case in which a process is left, until the kernel lets go of it.
    #[error(
        "{worker} was killed and has not ended: it is in a call that cannot be interrupted; see \
         `cat /proc/{pid}/stack` and `dmesg`, and go on when it is gone"
    )]
    Unkillable { worker: String, pid: Pid },
}

/// Runs `program` once, its workers counting what `orders` say and stopping at gates where they are `held`.
///
/// # Errors
/// [`RepetitionError`], with no segment left, and no process but an [`Unkillable`](RepetitionError::Unkillable) one.
pub(crate) fn run(
    program: &Program,
    orders: &[Orders],
    rate: TickRate,
    node: Option<u32>,
    signals: &Signals,
    held: Option<HeldArm<'_>>,
) -> Result<Vec<Trace>, RepetitionError> {
    let mut provision = provision::provision(program, orders, rate, node)?;
    run_on(program, &mut provision, signals, held)
}

/// Runs `program` once with nothing counted, and has `look` read the memory that its workers left.
///
/// # Errors
/// As [`run`].
pub(crate) fn inspected<T>(
    program: &Program,
    rate: TickRate,
    signals: &Signals,
    look: impl FnOnce(&[Trace], &Segment) -> T,
) -> Result<T, RepetitionError> {
    let mut provision = provision::provision(program, &[], rate, None)?;
    let traces = run_on(program, &mut provision, signals, None)?;
    Ok(look(&traces, &provision.segment))
}

fn run_on(
    program: &Program,
    provision: &mut Provision,
    signals: &Signals,
    held: Option<HeldArm<'_>>,
) -> Result<Vec<Trace>, RepetitionError> {
    let mut children = launch::launch(program, provision)?;
    match supervise::supervise(program, provision, &mut children, signals, held) {
        Ok(()) => traces(program, provision, &children),
        Err(stop) => Err(explain(stop, provision, children)),
    }
}

fn traces(program: &Program, provision: &mut Provision, children: &[Child]) -> Result<Vec<Trace>, RepetitionError> {
    match collect::collect(provision, children) {
        Collected::Traces(traces) => Ok(traces),
        Collected::Failed(failed) => Err(worker_error(children, failed)),
        Collected::Missing(nth) => Err(RepetitionError::Ended {
            worker: children[nth].name.clone(),
            how: "left no report".into(),
            state: supervise::state_of(program, &provision.segment, &children[nth]),
            why: "is memory short (`free -m`, the memory cgroup's `memory.max`), or a file-size limit set (`ulimit -f`)?",
        }),
    }
}

fn explain(stop: Stop, provision: &mut Provision, mut children: Vec<Child>) -> RepetitionError {
    // All have been told to leave or killed: reaped here, so that every report is whole.
    if let Some(stays) = children.iter_mut().find_map(|child| (!child.reap()).then_some(child)) {
        return RepetitionError::Unkillable { worker: stays.name.clone(), pid: stays.pid };
    }
    match stop {
        Stop::Interrupted => RepetitionError::Interrupted,
        Stop::Stuck(who) => RepetitionError::Stuck(who),
        Stop::Orphaned(what) => RepetitionError::Orphaned(what),
        Stop::Ended { nth, how, state, why, .. } => match collect::failure_of(provision, &children) {
            Some(failed) => worker_error(&children, failed),
            None => RepetitionError::Ended { worker: children[nth].name.clone(), how, state, why },
        },
    }
}

fn worker_error(children: &[Child], Failed { nth, worker, failure }: Failed) -> RepetitionError {
    let worker = children[nth].name_of(worker).to_owned();
    RepetitionError::Worker { worker, what: failure.what, cure: failure.cure }
}

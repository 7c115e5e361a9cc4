//! One repetition: a set of fresh processes over a fresh segment, from nothing to their traces.

use crate::collect::{self, Collected};
use crate::launch::{self, Child, LaunchError};
use crate::provision::{self, Provision, ProvisionError};
use crate::signals::Signals;
use crate::supervise::{self, Stop};
use plan::Program;
use record::Trace;
use shm_layout::TickRate;

/// Why a repetition gave no traces. In every case its processes have ended and its segment is gone.
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
    #[error(
        "{worker} {how} while {state}: the run cannot go on without it; was it killed by hand, by a limit, or for lack of memory (`dmesg`)?"
    )]
    Ended { worker: String, how: String, state: String },
    /// Nobody ended, and the time is up.
    #[error(
        "the repetition did not end in its time and was stopped: {0}; does a step wait for what no other role does, or do locks form a circle?"
    )]
    Stuck(String),
}

/// Runs `program` once.
///
/// # Errors
/// [`RepetitionError`], with no process and no segment left.
pub(crate) fn run(
    program: &Program,
    rate: TickRate,
    node: Option<u32>,
    signals: &Signals,
) -> Result<Vec<Trace>, RepetitionError> {
    let mut provision = provision::provision(program, rate, node)?;
    let mut children = launch::launch(program, &provision)?;
    match supervise::supervise(program, &mut provision, &mut children, signals) {
        Ok(()) => traces(program, &mut provision, &children),
        Err(stop) => Err(explain(stop, program, &mut provision, children)),
    }
}

fn traces(program: &Program, provision: &mut Provision, children: &[Child]) -> Result<Vec<Trace>, RepetitionError> {
    match collect::collect(provision) {
        Collected::Traces(traces) => Ok(traces),
        Collected::Failed(nth, failure) => Err(worker_error(&children[nth], failure)),
        Collected::Missing(nth) => Err(RepetitionError::Ended {
            worker: children[nth].name.clone(),
            how: "left no report".into(),
            state: supervise::state_of(program, &provision.segment, children[nth].index),
        }),
    }
}

fn explain(stop: Stop, program: &Program, provision: &mut Provision, mut children: Vec<Child>) -> RepetitionError {
    let state = |provision: &Provision, child: &Child| supervise::state_of(program, &provision.segment, child.index);
    match stop {
        Stop::Interrupted => RepetitionError::Interrupted,
        Stop::Stuck(who) => RepetitionError::Stuck(who),
        Stop::Ended { nth, how } => {
            let state = state(provision, &children[nth]);
            // All have been told to leave or killed: reaped here, so that every report is whole.
            for child in &mut children {
                while child.poll_status().is_none() {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
            match collect::failure_of(provision, &children) {
                Some((nth, failure)) => worker_error(&children[nth], failure),
                None => RepetitionError::Ended { worker: children[nth].name.clone(), how, state },
            }
        }
    }
}

fn worker_error(child: &Child, failure: worker::Failure) -> RepetitionError {
    RepetitionError::Worker { worker: child.name.clone(), what: failure.what, cure: failure.cure }
}

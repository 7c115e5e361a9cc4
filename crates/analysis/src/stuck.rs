//! Workers that completed no pass, and whether that is the scenario's fault.

use crate::evictions::Evictions;
use crate::mask::role_name;
use plan::{Program, TickRate, WorkerProgram};
use record::Trace;

/// A repetition without a pass is excused where evictions took more than this part of the window: on a busy machine two
/// that hand over to each other may hardly ever run at once.
const EXCUSE: u64 = 10;

/// A worker that completed no pass in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Its index.
    pub worker: u32,
    /// Its role's name.
    pub role: String,
    /// The step in which it stood when the window closed, as written; `None` where the worker could not say.
    pub step: Option<String>,
}

/// The workers of a repetition that completed no pass although they were running: an error of the scenario, for the
/// coordinator to name. There are none where some worker was off its CPU for over a tenth of the window.
pub fn stuck(program: &Program, traces: &[Trace], clock: TickRate) -> Vec<Stuck> {
    // Whoever was off its CPU may be the one that the others waited for.
    if traces.iter().any(|trace| evicted_enough_to_excuse(program, trace, clock)) {
        return Vec::new();
    }
    let passless = traces.iter().filter(|t| t.passes == 0);
    passless
        .map(|trace| {
            let worker = program.worker(trace.worker);
            let step = |w: &WorkerProgram| w.steps.get(trace.stuck_in_step? as usize).cloned();
            Stuck { worker: trace.worker, role: role_name(worker), step: worker.and_then(step) }
        })
        .collect()
}

fn evicted_enough_to_excuse(program: &Program, trace: &Trace, clock: TickRate) -> bool {
    let window = trace.working_ticks();
    // A worker that cannot block reads the clock all the time that it runs.
    let silent = || {
        let can_block = program.worker(trace.worker).is_none_or(WorkerProgram::can_block);
        !can_block && trace.stuck_in_step.is_none() && trace.span_ticks < window / 2
    };
    Evictions::of(std::slice::from_ref(trace), clock).inside(trace.work_ticks, trace.close_ticks) > window / EXCUSE
        || silent()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{counters_program, steady_trace};

    const CLOCK: TickRate = TickRate { ticks_per_ns: 2.0 };

    #[test]
    fn a_stuck_worker_is_named_with_its_role_and_step() {
        let mut trace = steady_trace(1, 23.0, CLOCK);
        (trace.passes, trace.slices, trace.stuck_in_step) = (0, Vec::new(), Some(0));
        let named = stuck(&counters_program(8), &[steady_trace(0, 23.0, CLOCK), trace], CLOCK);
        let expected = Stuck { worker: 1, role: "counter".to_owned(), step: Some("add hits[me]".to_owned()) };
        assert_eq!(named, [expected]);
    }
}

//! The campaign: blocks of repetitions. Each block runs every arm once, in a seeded random order of its own, so that
//! slow drift of the machine falls on all arms alike.

mod whole;

pub(crate) use whole::command_error;

use crate::hold::{HeldArm, Hold};
use crate::launch::name_of;
use crate::machine::Machine;
use crate::repetition::{self, RepetitionError};
use crate::report::logs::Logs;
use crate::report::rows::Repetition;
use crate::report::write_error::WriteError;
use crate::signals::Signals;
use analysis::Findings;
use counters::Orders;
use plan::{ArmKind, Bound, Plan, Program, Repetitions};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use record::{CountedEvent, Observation, Trace};
use std::time::Instant;

/// Blocks after which `repetitions = "auto"` first looks at its precision: fewer give no interval worth the name.
const AUTO_FIRST_LOOK: u32 = 6;
/// Blocks that `repetitions = "auto"` never exceeds.
const AUTO_MOST: u32 = 10_000;

/// `repetitions = "auto"` looks again once there are a quarter more blocks than at its last look, at least one: each
/// look analyses everything, so that looking after every block would take time by the square of the blocks. A run may
/// so be longer than it had to be by a fifth of its blocks; never than its budget.
const AUTO_GROWTH: u32 = 4;
/// Spreads the seeds of successive blocks over the word: 2^32 over the golden ratio, the multiplier of Fibonacci
/// hashing (Knuth, The Art of Computer Programming 3, section 6.4).
const GOLDEN: u64 = 0x9e37_79b9;

/// Who is told how far a campaign is. Called between windows only: what it does then evicts no worker.
pub(crate) trait Observer {
    /// What is done now: `measuring`, `analysing`.
    fn phase(&mut self, phase: &str);
    /// A repetition is complete: all its workers.
    fn repetition(&mut self, workers: &[Observation]);
    /// So many blocks are complete. `look` makes the findings of all of them, which takes the time of an analysis.
    fn block(&mut self, _blocks: u64, _look: &mut dyn FnMut() -> Findings) {}
    /// So many repetitions more than was thought.
    fn extend(&mut self, more: u64);
}

/// What a campaign works with.
pub(crate) struct Campaign<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) bound: &'a Bound,
    pub(crate) machine: &'a Machine,
    /// What workers count, by kind of core.
    pub(crate) orders: &'a [Orders],
    /// What the counters' names stand for here.
    pub(crate) events: &'a [CountedEvent],
    pub(crate) signals: &'a Signals,
    pub(crate) seed: u64,
    /// Where someone wants to look at the workers of each repetition.
    pub(crate) hold: Option<&'a Hold>,
}

/// What it brought home; the observations of complete repetitions even where it ended early.
pub(crate) struct Measured {
    pub(crate) observations: Vec<Observation>,
    pub(crate) findings: Findings,
    pub(crate) blocks: u32,
    pub(crate) extended: bool,
    /// Median over repetitions of the share of time that watching took.
    pub(crate) watching_cost: Option<f64>,
    pub(crate) ended_early: Option<RunError>,
}

/// What has been seen so far.
struct Seen<'a> {
    observations: Vec<Observation>,
    /// Where goes what is too much to keep.
    logs: &'a mut Logs,
    /// Share of time that watching took, by repetition.
    watching: Vec<f64>,
}

/// Why a campaign ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("arm `{arm}`, block {block}: {error}")]
    Log { arm: String, block: u32, error: WriteError },
    #[error("arm `{arm}`, block {block}: {error}")]
    Repetition { arm: String, block: u32, error: RepetitionError },
    /// Whatever the repetition died of, this is why.
    #[error(
        "arm `{arm}`, block {block}: the CPU of {workers} was taken away during the run: for this process, {limits}; \
         choose other CPUs with `--cpus`, or have it given back and run again (seen as: {error})"
    )]
    CpuTaken { arm: String, block: u32, workers: String, limits: String, error: Box<RepetitionError> },
    #[error(
        "arm `{arm}`: role `{role}` (worker {worker}) completed no pass in the window of {window}{at}: lengthen \
         `[measure] window`, or see whether another role does what that step waits for"
    )]
    NoPass { arm: String, role: String, worker: u32, window: plan::Nanos, at: String },
}

impl RunError {
    pub(crate) fn interrupted(&self) -> bool {
        matches!(self, RunError::Repetition { error: RepetitionError::Interrupted, .. })
    }
}

impl Campaign<'_> {
    /// Runs all blocks, as many as the plan asks for; once more half as many where noise hid the answer.
    ///
    /// # Errors
    /// Where it ended before any repetition was complete; later, [`Measured::ended_early`] says so.
    pub(crate) fn measure(&self, watcher: &mut dyn Observer, logs: &mut Logs) -> Result<Measured, RunError> {
        watcher.phase("measuring");
        let mut seen = Seen { observations: Vec::new(), logs, watching: Vec::new() };
        let mut extended = false;
        let (mut blocks, outcome) = match self.plan.measure.repetitions {
            Repetitions::Fixed(blocks) => (blocks, self.blocks(0..blocks, &mut seen, watcher)),
            Repetitions::Auto => self.until_precise(&mut seen, watcher),
        };
        let mut ended_early = match outcome {
            Err(error) if seen.observations.is_empty() => return Err(error),
            outcome => outcome.err(),
        };
        watcher.phase("analysing");
        let mut findings = self.analyse(&mut seen.observations);
        let may_extend = matches!(self.plan.measure.repetitions, Repetitions::Fixed(_)) && ended_early.is_none();
        let more = blocks / 2;
        if may_extend && !findings.conclusive && more > 0 {
            watcher.phase("extending by half: noise hid the answer");
            watcher.extend(self.repetitions(blocks..blocks + more));
            extended = true;
            ended_early = self.blocks(blocks..blocks + more, &mut seen, watcher).err();
            blocks += more;
            findings = self.analyse(&mut seen.observations);
        }
        seen.watching.sort_by(f64::total_cmp);
        let watching_cost = seen.watching.get(seen.watching.len() / 2).copied();
        Ok(Measured { observations: seen.observations, findings, blocks, extended, watching_cost, ended_early })
    }

    /// How many repetitions are planned at first: for `auto`, those before the first look.
    pub(crate) fn planned_repetitions(&self) -> u64 {
        match self.plan.measure.repetitions {
            Repetitions::Fixed(blocks) => self.repetitions(0..blocks),
            Repetitions::Auto => self.repetitions(0..AUTO_FIRST_LOOK),
        }
    }

    fn repetitions(&self, blocks: std::ops::Range<u32>) -> u64 {
        blocks.map(|block| self.programs(block).count() as u64).sum()
    }

    /// What this block runs, in the plan's order. Baselines run in every other block.
    fn programs(&self, block: u32) -> impl Iterator<Item = &Program> {
        self.bound.arms.iter().filter_map(move |arm| {
            let baseline = matches!(arm.arm.kind, ArmKind::Solo { .. } | ArmKind::Unshared);
            arm.program.as_ref().ok().filter(|_| !baseline || block.is_multiple_of(2))
        })
    }

    fn until_precise(&self, seen: &mut Seen<'_>, watcher: &mut dyn Observer) -> (u32, Result<(), RunError>) {
        let start = Instant::now();
        let mut next_look = AUTO_FIRST_LOOK;
        for block in 0..AUTO_MOST {
            if let Err(error) = self.blocks(block..block + 1, seen, watcher) {
                return (block, Err(error));
            }
            let done = block + 1;
            if start.elapsed() >= self.plan.measure.budget.duration() {
                return (done, Ok(()));
            }
            if done == next_look {
                let reached = self.analyse(&mut seen.observations).precision_reached;
                if reached.is_some_and(|reached| reached <= self.plan.measure.precision) {
                    return (done, Ok(()));
                }
                next_look = look_after(done);
                watcher.extend(self.repetitions(done..next_look));
            }
        }
        (AUTO_MOST, Ok(()))
    }

    fn blocks(
        &self,
        blocks: std::ops::Range<u32>,
        seen: &mut Seen<'_>,
        watcher: &mut dyn Observer,
    ) -> Result<(), RunError> {
        for block in blocks {
            let mut order: Vec<&Program> = self.programs(block).collect();
            order.shuffle(&mut SmallRng::seed_from_u64(self.seed_of(block)));
            for program in order {
                let traces = self.repetition(program, block)?;
                let observations = analysis::observe(&program.arm, block, program, &traces, self.machine.rate);
                let repetition = Repetition { block, program, traces: &traces, rate: self.machine.rate };
                let logged = seen.logs.repetition(repetition);
                logged.map_err(|error| RunError::Log { arm: program.arm.clone(), block, error })?;
                watcher.repetition(&observations);
                seen.watching.extend(analysis::watching_share(&traces));
                seen.observations.extend(observations);
            }
            watcher.block(u64::from(block) + 1, &mut || self.analyse(&mut seen.observations));
        }
        Ok(())
    }

    /// A block's own seed.
    fn seed_of(&self, block: u32) -> u64 {
        self.seed.wrapping_add(u64::from(block)).wrapping_mul(GOLDEN)
    }

    fn repetition(&self, program: &Program, block: u32) -> Result<Vec<Trace>, RunError> {
        let node = self.machine.memory_node(program, self.plan.measure.headline_role);
        let held = self.hold.map(|hold| HeldArm { hold, arm: &program.arm, block });
        // What is drawn (`[any]`, when an open loop's first pass is due) is sampled too, and alike in a block's arms.
        let program = &Program { seed: self.seed_of(block), ..program.clone() };
        let traces = repetition::run(program, self.orders, self.machine.rate, node, self.signals, held)
            .map_err(|error| self.why(program, block, error))?;
        self.check_passes(program, &traces)?;
        Ok(traces)
    }

    /// A repetition dies in many ways of a CPU that a cpuset takes away in its middle: its workers then share another,
    /// and what took microseconds takes a scheduler's turn.
    fn why(&self, program: &Program, block: u32, error: RepetitionError) -> RunError {
        let arm = program.arm.clone();
        let lost = match error {
            RepetitionError::Interrupted => Vec::new(),
            _ => self.machine.workers_without_cpu(program),
        };
        if lost.is_empty() {
            return RunError::Repetition { arm, block, error };
        }
        let workers = lost.into_iter().map(|worker| name_of(program, worker)).collect::<Vec<_>>().join(", ");
        RunError::CpuTaken { arm, block, workers, limits: Machine::cpu_limits(), error: Box::new(error) }
    }

    fn analyse(&self, observations: &mut [Observation]) -> Findings {
        analysis::analyse(self.plan, self.bound, &self.machine.topology, self.events, observations, self.seed)
    }

    /// A role that completes no pass measures nothing: an error of the scenario, unless the worker was merely evicted.
    fn check_passes(&self, program: &Program, traces: &[Trace]) -> Result<(), RunError> {
        let Some(stuck) = analysis::stuck(program, traces, self.machine.rate).into_iter().next() else { return Ok(()) };
        Err(RunError::NoPass {
            arm: program.arm.clone(),
            role: stuck.role,
            worker: stuck.worker,
            window: program.window,
            at: stuck.step.map_or(String::new(), |step| format!("; it stood in step `{step}`")),
        })
    }
}

/// After how many blocks to look again, having looked after `done`.
fn look_after(done: u32) -> u32 {
    done + (done / AUTO_GROWTH).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_grow_apart_so_that_their_cost_stays_a_share_of_the_run() {
        let looks: Vec<u32> = std::iter::successors(Some(AUTO_FIRST_LOOK), |done| Some(look_after(*done)))
            .take_while(|n| *n <= 10_000)
            .collect();
        assert_eq!(looks[..5], [6, 7, 8, 10, 12]);
        let blocks_analysed: u32 = looks.iter().sum();
        assert!(blocks_analysed < 6 * 10_000, "each look reads all blocks so far: {blocks_analysed}");
    }
}

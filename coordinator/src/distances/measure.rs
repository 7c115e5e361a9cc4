//! How far CPUs are from each other: repetitions of tiny programs, whose probes around the window are the measurement.

use super::readings::{self, Readings};
use super::rings::covering;
use super::sample;
use crate::campaign::Observer;
use crate::cli::TopologyOptions;
use crate::exit::CommandError;
use crate::machine::Machine;
use crate::repetition::{self, RepetitionError};
use crate::report::progress::{Progress, ProgressMode};
use crate::signals::Signals;
use plan::{AccessKind, Address, CpuId, Layout, Nanos, OpKind, Program, Topology, Width, WorkerIndex, WorkerProgram};
use record::{AdjacentLine, CostProbe, DistanceRow, PairLatency, PairSample, Reach, Trace};
use std::time::Duration;

/// Times each ring is run, where that takes no longer than [`PATIENCE`]; two readings of each pair a time.
const REPETITIONS: u32 = 10;
/// The fewest, however long that takes.
const REPETITIONS_LEAST: u32 = 3;
/// What the rings may take by themselves.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a repetition takes of a few workers, and what each worker beyond adds: two probes of two or three rounds, two
/// or four milliseconds a round, and the start of the processes.
const REPETITION: Duration = Duration::from_millis(60);
const WORKER: Duration = Duration::from_millis(3);
/// Length of a ring's window: nothing is measured in it.
const RING_WINDOW: Nanos = Nanos(1_000_000);
/// Lines apart of the words that a ring's workers count up meanwhile.
const APART: u64 = 256;

/// Times each placement of two lines is run, and the window in which it is.
const PAIR_REPETITIONS: u32 = 5;
const PAIR_WINDOW: Nanos = Nanos(5_000_000);
/// Offsets of two words on the lines of one 128-byte pair, on neighbouring lines of two, and 256 bytes apart.
const PLACEMENTS: [[u64; 2]; 3] = [[0, 64], [64, 128], [0, 256]];
/// A pair that takes so many times as long as lines that are none matters.
const MATTERS: f64 = 1.2;

/// What was measured.
pub(crate) struct Measured {
    pub(crate) pairs: Vec<PairLatency>,
    pub(crate) distances: Vec<DistanceRow>,
    pub(crate) sample: PairSample,
    pub(crate) costs: CostProbe,
    pub(crate) adjacent_line: Option<AdjacentLine>,
}

impl Measured {
    /// One way and contended pass of each distance that a machine file knows.
    pub(crate) fn probed(&self) -> [Option<(f64, f64)>; 3] {
        let of = |reach: Reach| {
            let row = self.distances.iter().find(|row| row.distance == reach.name())?;
            Some((row.transfer_ns, row.contended_ns?))
        };
        [Reach::Cluster, Reach::Socket, Reach::Machine].map(of)
    }
}

/// Measures the pairs of the sample, then the lines of a pair. On two usable CPUs or more.
///
/// # Errors
/// [`CommandError`] where a repetition failed or the user interrupted it.
pub(crate) fn measure(topology: &Topology, options: &TopologyOptions) -> Result<Measured, CommandError> {
    let machine = Machine::read().map_err(CommandError::Failed)?;
    let sample = sample::choose(topology, options.all_pairs);
    let rings = covering(&sample.cpus).into_iter().chain(sample.siblings.map(Vec::from)).collect::<Vec<_>>();
    let repetitions = options.repetitions.unwrap_or_else(|| affordable(&rings));
    let signals = Signals::block()?;
    let total = rings.len() as u64 * u64::from(repetitions) + PLACEMENTS.len() as u64 * u64::from(PAIR_REPETITIONS);
    let mut progress = Progress::new(ProgressMode::on_stderr(options.quiet), "topology", total);
    let lab = Lab { machine: &machine, signals: &signals };
    let measured = lab.readings(&rings, repetitions, &mut progress).and_then(|readings| {
        let nearest = rings.first().map_or(&[][..], |ring| &ring[..2]);
        let adjacent_line = lab.adjacent_line(nearest, &mut progress)?;
        Ok((readings, adjacent_line))
    });
    progress.finish();
    let (readings, adjacent_line) = measured.map_err(|error| command_error(&error, &signals))?;
    let pairs = readings.pairs(topology);
    let usable = topology.cpus.iter().filter(|cpu| cpu.usable).count() as u32;
    Ok(Measured {
        distances: readings::distances(&pairs),
        sample: PairSample {
            cpus: host::format_cpu_list(&sample.cpus.iter().map(|cpu| cpu.0).collect()),
            pairs: pairs.len() as u32,
            of: usable * (usable - 1) / 2,
            repetitions,
            why: sample.why,
        },
        pairs,
        costs: readings.costs(),
        adjacent_line,
    })
}

/// As many repetitions as fit the patience, within bounds.
fn affordable(rings: &[Vec<CpuId>]) -> u32 {
    let once: Duration = rings.iter().map(|ring| REPETITION + WORKER * ring.len() as u32).sum();
    ((PATIENCE.as_secs_f64() / once.as_secs_f64().max(1e-3)) as u32).clamp(REPETITIONS_LEAST, REPETITIONS)
}

/// What repetitions need.
struct Lab<'a> {
    machine: &'a Machine,
    signals: &'a Signals,
}

impl Lab<'_> {
    /// The rings in turn, so that a drift of the machine falls on all alike.
    fn readings(
        &self,
        rings: &[Vec<CpuId>],
        repetitions: u32,
        progress: &mut Progress,
    ) -> Result<Readings, RepetitionError> {
        progress.phase("measuring pairs of CPUs");
        let mut readings = Readings::default();
        for _ in 0..repetitions {
            for ring in rings {
                let program = ring_program(ring, APART);
                let traces = self.run(&program)?;
                readings.add(&program, &traces, self.machine.rate);
                progress.repetition(&[]);
            }
        }
        Ok(readings)
    }

    /// Two workers on `cpus` that lose their own line in each pass; `None` where a placement has no figure.
    fn adjacent_line(&self, cpus: &[CpuId], progress: &mut Progress) -> Result<Option<AdjacentLine>, RepetitionError> {
        progress.phase("comparing lines of a pair");
        let mut seen: [Vec<f64>; 3] = Default::default();
        for block in 0..PAIR_REPETITIONS {
            for (offsets, seen) in PLACEMENTS.iter().zip(&mut seen) {
                let program = pair_program(cpus, offsets);
                let traces = self.run(&program)?;
                let workers = analysis::observe("pair", block, &program, &traces, self.machine.rate);
                seen.extend(workers.iter().filter_map(|worker| worker.ns_per_op));
                progress.repetition(&[]);
            }
        }
        let [pair, across, apart] = seen.map(|seen| readings::middle(seen.into_iter()));
        Ok(adjacent(pair, across, apart))
    }

    fn run(&self, program: &Program) -> Result<Vec<Trace>, RepetitionError> {
        let node = self.machine.memory_node(program, 0);
        repetition::run(program, &[], self.machine.rate, node, self.signals, None)
    }
}

fn adjacent(pair: Option<f64>, across: Option<f64>, apart: Option<f64>) -> Option<AdjacentLine> {
    let (pair_ns, across_ns, apart_ns) = (pair?, across?, apart?);
    let matters = pair_ns > MATTERS * across_ns && pair_ns > MATTERS * apart_ns;
    Some(AdjacentLine { pair_ns, across_ns, apart_ns, matters })
}

/// Workers on these CPUs, neighbours in this order, each with a word of its own, `apart` bytes from the next one.
pub(super) fn ring_program(cpus: &[CpuId], apart: u64) -> Program {
    let offsets: Vec<u64> = (0..cpus.len() as u64).map(|n| n * apart).collect();
    program(cpus, &offsets, RING_WINDOW, |at| vec![bump(at)])
}

fn pair_program(cpus: &[CpuId], offsets: &[u64]) -> Program {
    program(cpus, offsets, PAIR_WINDOW, |at| vec![bump(at), OpKind::Flush { at: Address::Fixed(at) }])
}

fn bump(at: u64) -> OpKind {
    OpKind::Access { kind: AccessKind::Bump, width: Width::U64, at: Address::Fixed(at) }
}

fn program(cpus: &[CpuId], offsets: &[u64], window: Nanos, ops: impl Fn(u64) -> Vec<OpKind>) -> Program {
    let worker = |(n, (&cpu, &at)): (usize, (&CpuId, &u64))| WorkerProgram {
        index: WorkerIndex(n as u32),
        role_name: "pair".to_owned(),
        cpu,
        process: n as u32,
        ..WorkerProgram::of(ops(at))
    };
    let bytes = offsets.iter().max().map_or(0, |last| last + 8);
    Program {
        arm: "pair".to_owned(),
        window,
        warm_up: window,
        layout: Layout { placed: Vec::new(), bytes },
        area_bytes: bytes,
        timed_locks: false,
        ..Program::of(cpus.iter().zip(offsets).enumerate().map(worker))
    }
}

fn command_error(error: &RepetitionError, signals: &Signals) -> CommandError {
    match error {
        RepetitionError::Interrupted => {
            signals.take();
            CommandError::Interrupted
        }
        error => CommandError::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rings_are_run_often_and_many_seldom() {
        let rings = |count: usize, workers: u32| vec![(0..workers).map(CpuId).collect::<Vec<_>>(); count];
        assert_eq!(affordable(&rings(1, 2)), REPETITIONS);
        assert_eq!(affordable(&rings(8, 16)), REPETITIONS);
        assert_eq!(affordable(&rings(64, 128)), REPETITIONS_LEAST);
    }

    #[test]
    fn a_pair_matters_only_against_both_others() {
        let matters = |pair, across, apart| adjacent(Some(pair), Some(across), Some(apart)).unwrap().matters;
        assert!(matters(200.0, 150.0, 150.0));
        assert!(!matters(200.0, 150.0, 190.0) && !matters(200.0, 190.0, 150.0) && !matters(150.0, 150.0, 150.0));
        assert_eq!(adjacent(Some(1.0), None, Some(1.0)), None);
    }

    #[test]
    fn programs_lie_within_their_area() {
        let cpus: Vec<CpuId> = (0..5).map(CpuId).collect();
        let ring = ring_program(&cpus, APART);
        assert_eq!((ring.area_bytes, ring.workers.len()), (4 * APART + 8, 5));
        assert_eq!(ring.workers[4].ops[0].kind, bump(4 * APART));
        let pair = pair_program(&cpus[..2], &PLACEMENTS[2]);
        assert_eq!((pair.area_bytes, pair.workers[1].ops.len()), (264, 2));
    }
}

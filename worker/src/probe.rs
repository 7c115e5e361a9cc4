//! The two readings around each repetition that say in which regime it ran: how long a line takes between the workers'
//! CPUs, and how fast each core runs a fixed loop. A hypervisor moves virtual CPUs, and its other tenants halve a
//! core's speed through the sibling thread; neither shows from inside in any other way.

use crate::batch::Batch;
use crate::compile::CompiledLoop;
use crate::failure::Failure;
use plan::{AccessKind, Address, OpKind, Program, TickRate, Width, WorkerProgram};
use record::{EVICTION_NS, EdgeProbe};
use shm_layout::{Segment, Slot, WorkerState, ticks};
use std::sync::atomic::{AtomicU64, Ordering};

/// Blocks of round trips; their median is the reading, so that an eviction in one of them does not show.
const BLOCKS: usize = 32;
/// Round trips a block. 32 x 60 round trips take 0.3 to 1 ms.
const ROUND_TRIPS: u64 = 60;
/// Blocks of the contended probe that are asked for: 4 ms in all.
const CONTENDED_BLOCKS: usize = 16;
/// The fewest sound blocks that give a reading; where evictions spoil some, twice as many are tried.
const CONTENDED_FEWEST: usize = 4;
/// Length of a block.
const CONTENDED_BLOCK_NS: u64 = 250_000;
/// Runs of the core loop; the median counts.
const CORE_RUNS: usize = 9;
/// Turns of the core loop: about 10 us, short enough to fall between two evictions.
const CORE_TURNS: u64 = 12_000;
/// Spins between two looks at the control block while waiting for the neighbour.
const SPINS_A_LOOK: u32 = 256;

/// One reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    /// Median one-way time of a line to the next ring neighbour, ticks; the slowest of those this worker timed.
    pub(crate) transfer_ticks: Option<f64>,
    /// Median ticks a pass while this worker and a ring neighbour count up words of one line; the mean over those it
    /// met.
    pub(crate) contended_ticks: Option<f64>,
    /// The same by pair, in the order of the rounds.
    pub(crate) edges: Vec<EdgeProbe>,
    /// Median length of the core loop, ticks.
    pub(crate) core_loop_ticks: u64,
}

/// Takes a reading together with the other workers, who must all be here.
///
/// # Errors
/// When the repetition is given up.
pub(crate) fn probe(
    segment: &Segment,
    program: &Program,
    me: &WorkerProgram,
    contender: &mut Contender,
) -> Result<Reading, Failure> {
    segment.slot(me.index.0).set_state(WorkerState::Probing);
    let rate = segment.tick_rate();
    let mine = segment.slot(me.index.0);
    let mut edges = Vec::new();
    // In a ring of more than two each worker meets two neighbours: half as long with each, so that it takes no longer.
    let blocks = if program.workers.len() > 2 { CONTENDED_BLOCKS / 2 } else { CONTENDED_BLOCKS };
    for round in rounds(program) {
        for edge in round {
            let court = &segment.slot(edge.starter).court;
            let (neighbour, transfer_ticks, tally) = if edge.starter == me.index.0 {
                (edge.answerer, Some(start_rally(segment, &court.ball)?), &court.tallies[0])
            } else if edge.answerer == me.index.0 {
                answer_rally(segment, &court.ball)?;
                (edge.starter, None, &court.tallies[1])
            } else {
                continue;
            };
            let contended_ticks = contender.contend(tally, mine, segment.slot(neighbour), rate, blocks);
            edges.push(EdgeProbe { neighbour, transfer_ticks, contended_ticks });
        }
    }
    Ok(Reading::of(edges, core_loop_ticks()))
}

impl Reading {
    fn of(edges: Vec<EdgeProbe>, core_loop_ticks: u64) -> Reading {
        let contended: Vec<f64> = edges.iter().filter_map(|edge| edge.contended_ticks).collect();
        let mean = contended.iter().sum::<f64>() / contended.len() as f64;
        Reading {
            transfer_ticks: edges.iter().filter_map(|edge| edge.transfer_ticks).reduce(f64::max),
            contended_ticks: (!contended.is_empty()).then_some(mean),
            edges,
            core_loop_ticks,
        }
    }
}

/// Two ring neighbours on different CPUs; the starter's slot holds their ball.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) starter: u32,
    pub(crate) answerer: u32,
}

/// The ring's edges in rounds of disjoint pairs: even ones, odd ones, and the closing one where the number is odd.
/// Pairs that share a CPU are left out: between them no line is transferred; so are workers that die in the window.
pub(crate) fn rounds(program: &Program) -> Vec<Vec<Edge>> {
    let workers: Vec<&WorkerProgram> = program.workers.iter().filter(|worker| !worker.dies()).collect();
    let n = workers.len();
    let edges = match n {
        // Where workers share CPUs they take turns: a rally would wait for the scheduler at each throw.
        _ if program.shares_cpu => 0,
        0 | 1 => 0,
        2 => 1,
        n => n,
    };
    let mut rounds = vec![Vec::new(), Vec::new(), Vec::new()];
    for i in 0..edges {
        let (a, b) = (workers[i], workers[(i + 1) % n]);
        let round = if i + 1 == n && n % 2 == 1 { 2 } else { i % 2 };
        if a.cpu != b.cpu {
            rounds[round].push(Edge { starter: a.index.0, answerer: b.index.0 });
        }
    }
    rounds
}

/// Throws the ball and waits for it, many times; returns the median one-way time in ticks.
fn start_rally(segment: &Segment, ball: &AtomicU64) -> Result<f64, Failure> {
    let mut at = ball.load(Ordering::Acquire);
    let mut block_ticks = [0f64; BLOCKS];
    // The first round trip only makes sure that the answerer is there.
    at = throw_and_wait(segment, ball, at)?;
    for ticks_one_way in &mut block_ticks {
        let start = ticks();
        for _ in 0..ROUND_TRIPS {
            at = throw_and_wait(segment, ball, at)?;
        }
        *ticks_one_way = (ticks() - start) as f64 / ROUND_TRIPS as f64 / 2.0;
    }
    block_ticks.sort_by(f64::total_cmp);
    Ok(block_ticks[BLOCKS / 2])
}

#[inline(always)]
fn throw_and_wait(segment: &Segment, ball: &AtomicU64, at: u64) -> Result<u64, Failure> {
    // Release/Acquire: as a lock's handover would be; pairs with the same in `answer_rally`.
    ball.store(at.wrapping_add(1), Ordering::Release);
    wait_for(segment, ball, at.wrapping_add(2))?;
    Ok(at.wrapping_add(2))
}

/// The other side: as many answers as the starter throws.
fn answer_rally(segment: &Segment, ball: &AtomicU64) -> Result<(), Failure> {
    let throws = BLOCKS as u64 * ROUND_TRIPS + 1;
    // Both sides count on from what stands there, which is even between two rallies.
    let mut at = ball.load(Ordering::Acquire) & !1;
    for _ in 0..throws {
        wait_for(segment, ball, at.wrapping_add(1))?;
        at = at.wrapping_add(2);
        ball.store(at, Ordering::Release);
    }
    Ok(())
}

/// Spins until the ball has that value.
///
/// # Errors
/// When the repetition is given up.
#[inline(always)]
pub(crate) fn wait_for(segment: &Segment, ball: &AtomicU64, value: u64) -> Result<(), Failure> {
    let mut spins = 0u32;
    while ball.load(Ordering::Acquire) != value {
        spins = spins.wrapping_add(1);
        if spins.is_multiple_of(SPINS_A_LOOK) && segment.control().phase() == shm_layout::Phase::Aborted {
            return Err(Failure::aborted());
        }
        std::hint::spin_loop();
    }
    Ok(())
}

/// The loop of the contended probe, `bump` on one word: compiled as a role's loop is, since how long a CPU keeps a
/// contested line hangs on the very instructions.
pub(crate) struct Contender {
    compiled: CompiledLoop,
}

impl Contender {
    /// Compiles it.
    ///
    /// # Errors
    /// [`Failure`] as for a role's loop.
    pub(crate) fn compile() -> Result<Contender, Failure> {
        let bump = OpKind::Access { kind: AccessKind::Bump, width: Width::U64, at: Address::Fixed(0) };
        Ok(Contender { compiled: CompiledLoop::of_one(bump).map_err(Failure::compile)? })
    }

    /// Counts up one word of a line whose other word the neighbour counts up, for some milliseconds from the rally's
    /// end; returns the median ticks a pass over blocks in which both were running. `None` where there were too few.
    fn contend(
        &mut self,
        tally: &AtomicU64,
        me: &Slot,
        neighbour: &Slot,
        rate: TickRate,
        blocks: usize,
    ) -> Option<f64> {
        let (block_ticks, gap_ticks) = (rate.ticks(CONTENDED_BLOCK_NS), rate.ticks(EVICTION_NS));
        let mut sound = Vec::with_capacity(blocks);
        // As in the window: a contended pass may take a nanosecond or fifty.
        let mut batch = Batch::new(self.compiled.unroll(), rate);
        me.set_seen(ticks());
        for _ in 0..2 * blocks {
            let start = ticks();
            let (mut passes, mut now, mut both_ran) = (0u64, start, true);
            while now - start < block_ticks {
                let last = now;
                passes += self.batch(tally, batch.passes());
                now = ticks();
                batch.took(now - last);
                me.set_seen(now);
                both_ran &= now - last < gap_ticks && now.saturating_sub(neighbour.seen()) < gap_ticks;
            }
            if both_ran {
                sound.push((now - start) as f64 / passes as f64);
            }
            if sound.len() == blocks {
                break;
            }
        }
        sound.sort_by(f64::total_cmp);
        (sound.len() >= CONTENDED_FEWEST).then(|| sound[sound.len() / 2])
    }

    fn batch(&mut self, tally: &AtomicU64, passes: u64) -> u64 {
        #[allow(unsafe_code)]
        // SAFETY: the loop's one operation is 8 bytes at offset 0, and the tally is that word; no operation of it takes
        // the cells.
        let progress = unsafe { self.compiled.run(tally.as_ptr().cast(), std::ptr::null_mut(), passes) };
        progress.passes
    }
}

/// Median length of a fixed, throughput-bound loop: six independent additions a turn, no memory.
fn core_loop_ticks() -> u64 {
    let mut runs = [0u64; CORE_RUNS];
    for run in &mut runs {
        let start = ticks();
        core_loop(CORE_TURNS);
        *run = ticks() - start;
    }
    runs.sort_unstable();
    runs[CORE_RUNS / 2]
}

#[inline(never)]
fn core_loop(turns: u64) {
    let mut sums = [0u64; 6];
    for turn in 0..turns {
        for sum in &mut sums {
            *sum = sum.wrapping_add(turn);
        }
        // Keeps the additions, in registers: a throughput-bound loop is one that a busy sibling thread slows.
        for sum in &mut sums {
            *sum = in_register(*sum);
        }
    }
    std::hint::black_box(sums);
}

/// An opaque register: the optimiser must have the value there and may assume nothing of it afterwards.
#[inline(always)]
fn in_register(value: u64) -> u64 {
    let mut value = value;
    #[allow(unsafe_code)]
    // SAFETY: an empty instruction sequence that names one register.
    unsafe {
        core::arch::asm!("/* {0} */", inout(reg) value, options(pure, nomem, nostack, preserves_flags));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{CpuId, WorkerIndex};

    fn program(cpus: &[u32]) -> Program {
        let worker = |(i, &cpu): (usize, &u32)| WorkerProgram {
            index: WorkerIndex(i as u32),
            cpu: CpuId(cpu),
            ..WorkerProgram::of([])
        };
        Program::of(cpus.iter().enumerate().map(worker))
    }

    #[test]
    fn a_reading_is_the_slowest_line_and_the_mean_of_contention_over_its_pairs() {
        let edge =
            |neighbour, transfer_ticks, contended_ticks| EdgeProbe { neighbour, transfer_ticks, contended_ticks };
        let edges = vec![edge(1, Some(90.0), Some(4.0)), edge(2, None, None), edge(3, None, Some(8.0))];
        let reading = Reading::of(edges.clone(), 7);
        assert_eq!((reading.transfer_ticks, reading.contended_ticks), (Some(90.0), Some(6.0)));
        assert_eq!((reading.edges, reading.core_loop_ticks), (edges, 7));
        assert_eq!(Reading::of(vec![], 7).contended_ticks, None);
    }

    fn edges(cpus: &[u32]) -> Vec<Vec<(u32, u32)>> {
        rounds(&program(cpus)).iter().map(|r| r.iter().map(|e| (e.starter, e.answerer)).collect()).collect()
    }

    #[test]
    fn the_ring_is_probed_in_rounds_of_disjoint_pairs() {
        assert_eq!(edges(&[0]), [vec![], vec![], vec![]]);
        assert_eq!(edges(&[0, 1]), [vec![(0, 1)], vec![], vec![]]);
        assert_eq!(edges(&[0, 1, 2]), [vec![(0, 1)], vec![(1, 2)], vec![(2, 0)]]);
        assert_eq!(edges(&[0, 1, 2, 3]), [vec![(0, 1), (2, 3)], vec![(1, 2), (3, 0)], vec![]]);
        for n in 3..20 {
            for round in edges(&(0..n).collect::<Vec<_>>()) {
                let mut seen: Vec<u32> = round.iter().flat_map(|&(a, b)| [a, b]).collect();
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen.len(), round.len() * 2, "a worker plays one rally at a time");
            }
        }
    }

    #[test]
    fn neighbours_on_one_cpu_transfer_nothing() {
        assert_eq!(edges(&[0, 0]), [vec![], vec![], vec![]]);
        assert_eq!(edges(&[0, 1, 0, 1]), [vec![(0, 1), (2, 3)], vec![(1, 2), (3, 0)], vec![]]);
    }

    #[test]
    fn the_core_loop_does_its_turns() {
        let median = |turns| {
            let mut runs: Vec<u64> = (0..9)
                .map(|_| {
                    let start = ticks();
                    core_loop(turns);
                    ticks() - start
                })
                .collect();
            runs.sort_unstable();
            runs[4]
        };
        assert!(median(200_000) > 3 * median(20_000), "ten times the turns take more than three times as long");
    }
}

//! The Program: what each worker of one arm executes, as operations on offsets. Sent to workers as it stands.

use crate::lock::LockKind;
use crate::placement::Layout;
use crate::region::{MemoryStep, Pages, Region};
use crate::scenario::Width;
use crate::units::{CpuId, Nanos, PAGE_BYTES, WorkerIndex};
use serde::{Deserialize, Serialize};

/// One arm, bound to a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The arm's name.
    pub arm: String,
    /// Length of the measuring window.
    pub window: Nanos,
    /// Length of the warm-up.
    pub warm_up: Nanos,
    /// Where everything lies. For `unshared` this is the layout of one copy.
    pub layout: Layout,
    /// Bytes the fields area needs: every offset an operation touches lies below it.
    pub area_bytes: u64,
    /// The locks, in the order of [`OpKind::Lock`]'s index.
    pub locks: Vec<PlacedLock>,
    /// The regions, in the order of [`MemoryStep::region`]: each process maps those that its workers name. In an
    /// `unshared` arm the scenario's once for each worker, one set behind the other.
    pub regions: Vec<Region>,
    /// The workers, ascending by index. A solo arm has one, which keeps its index.
    pub workers: Vec<WorkerProgram>,
    /// Whether two workers share a CPU: then nothing is masked and no transfer probed between the two.
    pub shares_cpu: bool,
    /// Whether locks are tried first where they cannot tell whether they waited, and waits and holds timed; false in a
    /// `plain` arm.
    pub timed_locks: bool,
    /// Seed of what workers draw: the elements of `[any]`, the phases of open loops. The run's as bound; each repetition
    /// is sent one of its own.
    pub seed: u64,
}

/// What a page's first touch is allowed where a deadline is set: thirty times what it takes a machine with free memory
/// (1.5 µs on a Zen 5 under KVM), since one that first has to write memory out takes that much longer.
const TOUCH_ALLOWED_NS: u64 = 50_000;

impl Program {
    /// An arm of these workers and nothing else, with a window of no length: a base for what is bound to no scenario.
    pub fn of(workers: impl IntoIterator<Item = WorkerProgram>) -> Program {
        Program {
            arm: "arm".to_owned(),
            window: Nanos(0),
            warm_up: Nanos(0),
            layout: Layout { placed: Vec::new(), bytes: 0 },
            area_bytes: 0,
            locks: Vec::new(),
            regions: Vec::new(),
            workers: workers.into_iter().collect(),
            shares_cpu: false,
            timed_locks: true,
            seed: 0,
        }
    }

    /// The longest that one pass computes, sleeps, touches and waits for locks with a timeout by its own steps, over
    /// all workers; other waiting comes on top. Deadlines add it: a pass that was begun in the window is finished.
    pub fn longest_pass(&self) -> Nanos {
        let length = |worker: &WorkerProgram| {
            let step = |op: &Op| match op.kind {
                OpKind::Work(length) | OpKind::Sleep(length) => length.0,
                OpKind::Lock { timeout: Some(timeout), .. } => timeout.0,
                OpKind::Memory(step) => {
                    let touches = (step.bytes / PAGE_BYTES).max(1).saturating_mul(TOUCH_ALLOWED_NS);
                    touches.saturating_add(step.pause.0.saturating_mul(step.chunks()))
                }
                _ => 0,
            };
            worker.ops.iter().map(step).fold(0, u64::saturating_add)
        };
        Nanos(self.workers.iter().map(length).max().unwrap_or(0))
    }

    /// The longest that a worker touches regions before the warm-up. Deadlines add it.
    pub fn longest_populate(&self) -> Nanos {
        let pages = |worker: &WorkerProgram| -> u64 {
            worker.populate.iter().filter_map(|region| self.regions.get(*region as usize)).map(Region::pages).sum()
        };
        Nanos(self.workers.iter().map(pages).max().unwrap_or(0).saturating_mul(TOUCH_ALLOWED_NS))
    }

    /// The worker of that index over all roles, where the arm has it.
    pub fn worker(&self, index: u32) -> Option<&WorkerProgram> {
        self.workers.iter().find(|worker| worker.index.0 == index)
    }

    /// The workers of each process, in the order of [`WorkerProgram::process`]: one, or several that are its threads.
    pub fn processes(&self) -> impl Iterator<Item = &[WorkerProgram]> {
        self.workers.chunk_by(|one, next| one.process == next.process)
    }

    /// How many workers take turns on the busiest CPU, at least 1: every phase may last so many times as long.
    pub fn workers_a_cpu(&self) -> u32 {
        let on = |cpu| self.workers.iter().filter(|w| w.cpu == cpu).count() as u32;
        self.workers.iter().map(|w| on(w.cpu)).max().unwrap_or(1)
    }

    /// Whether some worker's loop has steps on regions.
    pub fn has_memory_steps(&self) -> bool {
        self.workers.iter().any(|worker| worker.memory_steps().next().is_some())
    }

    /// Whether the worker's process needs the region of that index mapped for this worker.
    pub fn maps(&self, worker: &WorkerProgram, region: u32) -> bool {
        let shared = self.regions.get(region as usize).is_some_and(|region| region.shared);
        let names = |step: &MemoryStep| step.region == region && step.verb.needs_mapping(shared);
        worker.populate.contains(&region) || worker.memory_steps().any(|(_, step)| names(step))
    }

    /// Whether any worker needs it mapped.
    fn is_mapped(&self, region: u32) -> bool {
        self.workers.iter().any(|worker| self.maps(worker, region))
    }

    /// Where the shared regions of a kind of page lie in the one file that holds them: offset by region, `None` for one that
    /// is private, of other pages, or mapped by nobody; and the file's length, 0 where there is none.
    pub fn shared_file(&self, pages: Pages) -> (Vec<Option<u64>>, u64) {
        let mut end = 0u64;
        let offsets = self.regions.iter().zip(0..).map(|(region, index)| {
            let placed = region.shared && region.pages == pages && self.is_mapped(index);
            let start = end;
            end += if placed { region.bytes } else { 0 };
            placed.then_some(start)
        });
        (offsets.collect(), end)
    }
}

/// A lock in the fields area. An `unshared` arm has one for each worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedLock {
    /// Its name; copies share it.
    pub name: String,
    /// The algorithm.
    pub kind: LockKind,
    /// Offset from the start of the fields area.
    pub offset: u64,
}

/// What one worker runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerProgram {
    /// Its index over all roles.
    pub index: WorkerIndex,
    /// Its role's index in the scenario.
    pub role: u32,
    /// Its role's name.
    pub role_name: String,
    /// The CPU it is pinned to.
    pub cpu: CpuId,
    /// Its process, from 0 in order of the workers, none left out: workers of one number are threads of one process.
    pub process: u32,
    /// Time from one pass's intended start to the next one's; `None` for a closed loop.
    pub period: Option<Nanos>,
    /// Whether each pass is timed by itself.
    pub latency: bool,
    /// How long after the window's opening it begins its loop; until then it reads the clock and touches nothing.
    pub after: Nanos,
    /// Regions that it touches whole before the warm-up: indices into [`Program::regions`].
    pub populate: Vec<u32>,
    /// The role's steps as written: [`Op::step`] points here.
    pub steps: Vec<String>,
    /// One pass, in order.
    pub ops: Vec<Op>,
}

impl WorkerProgram {
    /// Worker 0, alone in process 0 on CPU 0, with a closed loop of these operations, each of them a step and due in every
    /// pass: a base for what is bound to no scenario.
    pub fn of(kinds: impl IntoIterator<Item = OpKind>) -> WorkerProgram {
        let ops: Vec<Op> = kinds.into_iter().zip(0..).map(|(kind, step)| Op { every: 1, step, kind }).collect();
        WorkerProgram {
            index: WorkerIndex(0),
            role: 0,
            role_name: "role".to_owned(),
            cpu: CpuId(0),
            process: 0,
            period: None,
            latency: false,
            after: Nanos(0),
            populate: Vec::new(),
            steps: ops.iter().map(|op| format!("{:?}", op.kind)).collect(),
            ops,
        }
    }

    /// Whether a pass can wait for another worker, for the kernel, or give up the CPU; then the stop word is looked at
    /// each pass.
    pub fn can_block(&self) -> bool {
        let timed = self.latency || self.period.is_some();
        timed
            || self.ops.iter().any(|op| {
                matches!(
                    op.kind,
                    OpKind::Wait { .. }
                        | OpKind::Lock { .. }
                        | OpKind::Yield
                        | OpKind::Sleep { .. }
                        | OpKind::Memory(_)
                        | OpKind::Die
                )
            })
    }

    /// Whether its loop ends the process: then it leaves no trace, and its end is no failure.
    pub fn dies(&self) -> bool {
        self.ops.iter().any(|op| op.kind == OpKind::Die)
    }

    /// Its memory steps, in order, with the index of each operation.
    pub fn memory_steps(&self) -> impl Iterator<Item = (usize, &MemoryStep)> {
        self.ops.iter().enumerate().filter_map(|(index, op)| match &op.kind {
            OpKind::Memory(step) => Some((index, step)),
            _ => None,
        })
    }
}

/// One operation of a pass. A step with `[all]` becomes one operation an element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Op {
    /// 1: each pass; N: the N-th pass, the 2N-th, ….
    pub every: u32,
    /// Index of the step it came from.
    pub step: u32,
    /// What it does.
    pub kind: OpKind,
}

/// What an operation does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpKind {
    /// Touch memory once (twice for a bump).
    Access {
        /// How.
        kind: AccessKind,
        /// Size.
        width: Width,
        /// Where.
        at: Address,
    },
    /// Atomic add of 1; the value it leaves is what a later wait on the same word compares with.
    Post {
        /// Size.
        width: Width,
        /// Offset from the start of the fields area.
        at: u64,
    },
    /// Spin until the word differs from what this worker last saw or posted there.
    Wait {
        /// Size.
        width: Width,
        /// Offset from the start of the fields area.
        at: u64,
    },
    /// Drop the line from every cache.
    Flush {
        /// Where.
        at: Address,
    },
    /// Acquire.
    Lock {
        /// Index into [`Program::locks`].
        lock: u32,
        /// As a reader, where the kind has readers.
        shared: bool,
        /// Give up after so long, and go on behind the matching release.
        timeout: Option<Nanos>,
    },
    /// Release. A reader of a sequence lock goes back to its acquisition if a writer came in between.
    Unlock {
        /// Index into [`Program::locks`].
        lock: u32,
        /// As a reader.
        shared: bool,
    },
    /// Compute for so long, touching no memory.
    Work(Nanos),
    /// Spin-loop hint.
    Pause,
    /// Full fence.
    Fence,
    /// Give up the CPU.
    Yield,
    /// Sleep.
    Sleep(Nanos),
    /// End this process at once, holding what it holds, as `kill -9` would.
    Die,
    /// Use memory in pages, or give it back.
    Memory(MemoryStep),
}

/// How memory is touched.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessKind {
    /// Read.
    Load,
    /// Plain write.
    Store,
    /// Plain read, then plain write.
    Bump,
    /// Atomic fetch-and-add.
    Add,
    /// Atomic exchange.
    Swap,
    /// Atomic compare-and-exchange.
    Cas,
}

/// Where an operation touches memory; offsets from the start of the fields area.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Address {
    /// Always here.
    Fixed(u64),
    /// One of these, drawn each pass; at least one.
    Any(Vec<u64>),
}

//! The simulation: events in order of simulated time.
//!
//! A worker runs ahead of the earliest event by at most half the shortest fetch: nobody can take a line from it sooner, so
//! what it does until then is as it would have been. Requests are decided in order of their time.

mod core;
mod locks;
mod memory;
mod worker;

use self::core::Core;
use crate::cache::Cache;
use crate::line::{Asked, Line};
use crate::machine::Machine;
use crate::script::Scripts;
use crate::time::{Ps, ps};
use crate::{Modelled, ModelledWorker};
use plan::{CpuId, OpKind, Program, Topology};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use worker::Worker;

/// How much is simulated.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Limits {
    /// Memory accesses in the window, all workers together; a fifth as many come before it.
    pub accesses: u64,
    /// Length of the window at most, nanoseconds of simulated time; a fifth of it may come before.
    pub window_ns: f64,
}

/// Why an arm is not modelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Two workers on one CPU.
    #[error("workers share a CPU, and the model has no scheduler")]
    SharedCpu,
    /// A worker on a CPU that the machine lacks.
    #[error("worker {worker} is placed on CPU {cpu}, which the modelled machine does not have")]
    NoSuchCpu {
        /// The worker.
        worker: u32,
        /// The CPU.
        cpu: u32,
    },
    /// `touch`: page faults.
    #[error("`touch` is about page tables, which the model does not have")]
    Pages,
    /// `die`: a process that ends.
    #[error("`die` ends a process, and the model has none")]
    Deaths,
}

/// Simulates `program`, whose workers stand on CPUs of `topology`, on `machine`. The same arguments give the same result,
/// to the bit.
///
/// # Errors
/// [`Refusal`] for what the model does not know.
pub fn simulate(
    program: &Program,
    machine: &Machine,
    topology: &Topology,
    limits: Limits,
    seed: u64,
) -> Result<Modelled, Refusal> {
    refuse_unknown(program, topology)?;
    let scripts = Scripts::of(program);
    Ok(Engine::new(&scripts, program, machine, topology, seed).whole(program, limits))
}

fn refuse_unknown(program: &Program, topology: &Topology) -> Result<(), Refusal> {
    if program.shares_cpu {
        return Err(Refusal::SharedCpu);
    }
    for worker in &program.workers {
        if topology.cpu(worker.cpu).is_none() {
            return Err(Refusal::NoSuchCpu { worker: worker.index.0, cpu: worker.cpu.0 });
        }
        for op in &worker.ops {
            match op.kind {
                OpKind::Touch { .. } => return Err(Refusal::Pages),
                OpKind::Die => return Err(Refusal::Deaths),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Something that happens.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A worker goes on, unless it has done so since.
    Resume { worker: u32, generation: u32 },
    /// A core asks for a line.
    Request(Request),
    /// A line is there.
    Arrive { core: u32, line: u32 },
    /// A core's store buffers look whether they can go on.
    Settle { core: u32 },
}

/// What a core asks for, on behalf of which worker, for which word.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    core: u32,
    line: u32,
    want: Asked,
    worker: u32,
    word: u32,
    /// Because its neighbour was asked for: nobody waits for it.
    is_pair: bool,
}

/// The machine's figures in picoseconds.
#[derive(Debug)]
struct Prices {
    load: Ps,
    store: Ps,
    bump: Ps,
    atomic: Ps,
    fence: Ps,
    pause: Ps,
    flush: Ps,
    instruction: f64,
    syscall: Ps,
    wake: Ps,
    second: Ps,
    last: Ps,
    memory: Ps,
    /// By distance.
    fetch: [Ps; 3],
    tenure: [Ps; 3],
    store_buffer: usize,
    window: u64,
}

impl Prices {
    fn of(machine: &Machine) -> Prices {
        let (costs, caches) = (&machine.costs, &machine.caches);
        let distances = [machine.distances.cluster, machine.distances.socket, machine.distances.machine];
        // At least one picosecond each: what takes no time at all would never let time go on.
        let at_least_one = |ns| ps(ns).max(1);
        Prices {
            load: at_least_one(costs.load_ns),
            store: at_least_one(costs.store_ns),
            bump: at_least_one(costs.bump_ns),
            atomic: at_least_one(costs.atomic_ns),
            fence: at_least_one(costs.fence_ns),
            pause: at_least_one(costs.pause_ns),
            flush: at_least_one(costs.flush_ns),
            instruction: costs.instruction_ns,
            syscall: at_least_one(costs.syscall_ns),
            wake: at_least_one(costs.wake_ns),
            second: ps(caches.l2.ns),
            last: at_least_one(caches.llc.ns),
            memory: at_least_one(caches.memory_ns),
            fetch: distances.map(|d| ps(d.fetch_ns).max(2)),
            tenure: distances.map(|d| ps(d.tenure_ns)),
            store_buffer: costs.store_buffer as usize,
            window: u64::from(costs.window),
        }
    }

    fn instructions(&self, count: u32) -> Ps {
        ps(f64::from(count) * self.instruction)
    }
}

struct Engine<'a> {
    scripts: &'a Scripts,
    machine: &'a Machine,
    prices: Prices,
    cores: Vec<Core>,
    /// The last levels, by cluster.
    last_levels: Vec<Cache>,
    lines: Vec<Line>,
    /// Each line's other one of its pair, where that was touched.
    pair_of: Vec<Option<u32>>,
    values: Vec<u64>,
    workers: Vec<Worker>,
    sleepers: Vec<std::collections::VecDeque<u32>>,
    events: BinaryHeap<Reverse<(Ps, u64, Event)>>,
    sequence: u64,
    /// Time of the last event.
    time: Ps,
    /// How far a worker may run ahead of it.
    lookahead: Ps,
    accesses: u64,
    /// Counts uses, for replacement.
    uses: u64,
}

impl<'a> Engine<'a> {
    fn new(
        scripts: &'a Scripts,
        program: &Program,
        machine: &'a Machine,
        topology: &Topology,
        seed: u64,
    ) -> Engine<'a> {
        let prices = Prices::of(machine);
        let mut cores: Vec<Core> = Vec::new();
        let (mut core_of, mut cluster_of) = (BTreeMap::new(), BTreeMap::new());
        let mut workers = Vec::new();
        for (nth, worker) in program.workers.iter().enumerate() {
            let cpu = topology.cpu(worker.cpu).copied().unwrap_or(plan::Cpu {
                id: CpuId(0),
                core: 0,
                llc: 0,
                node: 0,
                socket: 0,
                usable: false,
            });
            let next_cluster = cluster_of.len();
            let cluster = *cluster_of.entry(cpu.llc).or_insert(next_cluster);
            let core = *core_of.entry(cpu.core).or_insert_with(|| {
                cores.push(Core::new(&machine.caches, cluster, cpu.socket));
                cores.len() - 1
            });
            cores[core].workers.push(nth as u32);
            let script = &scripts.workers[nth];
            workers.push(Worker::new(core, script, seed ^ (u64::from(worker.index.0) << 32), program.locks.len()));
        }
        let nearest = |a: usize| (0..cores.len()).filter(move |&b| b != a).map(move |b| (a, b));
        let distances = (0..cores.len()).flat_map(nearest).map(|(a, b)| cores[a].distance(&cores[b]));
        let lookahead = distances.map(|d| prices.fetch[d] / 2).min().unwrap_or(1_000_000);
        let number_of: BTreeMap<u64, u32> = scripts.lines.iter().zip(0..).map(|(&number, i)| (number, i)).collect();
        Engine {
            scripts,
            machine,
            lines: scripts.lines.iter().map(|&number| Line::new(number, cores.len())).collect(),
            pair_of: scripts.lines.iter().map(|number| number_of.get(&(number ^ 1)).copied()).collect(),
            last_levels: (0..cluster_of.len()).map(|_| Cache::new(&machine.caches.llc)).collect(),
            values: scripts.words.iter().map(|_| 0).collect(),
            sleepers: program.locks.iter().map(|_| Default::default()).collect(),
            workers,
            cores,
            prices,
            events: BinaryHeap::new(),
            sequence: 0,
            time: 0,
            lookahead,
            accesses: 0,
            uses: 0,
        }
    }

    /// Warm-up, window, and what they came to.
    fn whole(mut self, program: &Program, limits: Limits) -> Modelled {
        self.begin_locks();
        for worker in 0..self.workers.len() {
            let start = self.workers[worker].start();
            self.resume(worker, start);
        }
        let window = ps(limits.window_ns).max(1);
        self.run_until(window / 5, limits.accesses / 5);
        let opened = self.time;
        let before = self.accesses;
        self.workers.iter_mut().for_each(Worker::open);
        self.lines.iter_mut().for_each(|line| line.story.restart());
        self.run_until(opened.saturating_add(window), before + limits.accesses);
        self.finish(program, opened)
    }

    fn run_until(&mut self, end: Ps, accesses: u64) {
        while self.accesses < accesses {
            let Some(&Reverse((at, _, event))) = self.events.peek() else { return };
            if at > end {
                self.time = end;
                return;
            }
            self.events.pop();
            self.time = at;
            match event {
                Event::Resume { worker, generation } => self.resumed(worker as usize, generation),
                Event::Request(request) => self.request(request),
                Event::Arrive { core, line } => self.arrive(core as usize, line),
                Event::Settle { core } => self.settle_core(core as usize),
            }
        }
    }

    fn push(&mut self, at: Ps, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at.max(self.time), self.sequence, event)));
    }

    fn resume(&mut self, worker: usize, at: Ps) {
        let generation = self.workers[worker].generation;
        self.push(at, Event::Resume { worker: worker as u32, generation });
    }

    /// Until when a worker may run before others have to be heard.
    #[inline(always)]
    fn horizon(&self) -> Ps {
        self.events.peek().map_or(self.time, |Reverse((at, _, _))| *at).saturating_add(self.lookahead)
    }

    fn finish(&self, program: &Program, opened: Ps) -> Modelled {
        let window = self.time - opened;
        let worker = |(worker, of): (&Worker, &plan::WorkerProgram)| {
            let (passes, tally, locks) = worker.since_opened();
            ModelledWorker {
                worker: of.index.0,
                role: of.role_name.clone(),
                cpu: of.cpu.0,
                passes,
                ns_per_op: (passes > 0).then(|| window as f64 / 1e3 / passes as f64),
                tally,
                locks,
            }
        };
        let mut lines: Vec<crate::LineStory> = self
            .lines
            .iter()
            .filter(|line| line.held.iter().any(|held| held.gone != crate::line::Gone::Never || held.state.is_readable()))
            .map(|line| line.story.finish(line.number, &self.scripts.words, self.workers.len()))
            .collect();
        lines.sort_by_key(|line| line.index);
        Modelled {
            workers: self.workers.iter().zip(&program.workers).map(worker).collect(),
            lines,
            window_ns: window as f64 / 1e3,
            accesses: self.accesses,
        }
    }
}

//! The simulation: events in order of simulated time.
//!
//! Requests are decided in the order in which they are made, and take effect later: half a fetch, at least, to take a
//! line away from whoever has it. So a worker may run ahead of the earliest event by half the shortest fetch
//! (`lookahead`): what it does until then nobody can have taken from it. It never runs past an event of its own core,
//! whose caches and whose other threads it shares. Every access to memory is a step's first act, made at the worker's
//! time as it stands: what a step computes comes before or after, not between.

mod accesses;
mod buffer;
mod caches;
mod calendar;
mod core;
mod locks;
mod prices;
mod progress;
mod requests;
mod steps;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod witness;
mod worker;

use self::core::Core;
use crate::cache::{self, Cache};
use crate::chance::Chance;
use crate::line::{Asked, Crowds, Gone, Line};
use crate::machine::Machine;
use crate::script::Scripts;
use crate::set::{self, Set};
use crate::time::{NEVER, Ps, ps};
use crate::{Modelled, ModelledWorker};
use calendar::{Calendar, Event};
use plan::{OpKind, Program, Topology};
use prices::Prices;
use progress::Blocked;
use std::collections::{BTreeMap, VecDeque};
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
    /// Steps on regions: page faults and shootdowns.
    #[error("steps on regions are about page tables, which the model does not have")]
    Pages,
    /// `die`: a process that ends.
    #[error("`die` ends a process, and the model has none")]
    Deaths,
    /// More cores than the model keeps apart.
    #[error("the workers stand on {cores} cores; the model knows up to {most}: give the roles fewer workers")]
    TooManyCores {
        /// How many.
        cores: usize,
        /// How many at most.
        most: usize,
    },
}

/// Simulates `program`, whose workers stand on CPUs of `topology`, on `machine`. The same arguments give the same
/// result, to the bit.
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
    knows(program, topology)?;
    let scripts = Scripts::of(program);
    Ok(Engine::new(&scripts, program, machine, topology, seed).whole(program, limits))
}

/// Whether the model knows all that a program does, on whatever machine.
///
/// # Errors
/// [`Refusal`] for what it does not know.
pub fn knows(program: &Program, topology: &Topology) -> Result<(), Refusal> {
    refuse_unknown(program, topology)?;
    refuse_too_many(program, topology)
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
                OpKind::Memory(_) => return Err(Refusal::Pages),
                OpKind::Die => return Err(Refusal::Deaths),
                _ => {}
            }
        }
    }
    Ok(())
}

fn refuse_too_many(program: &Program, topology: &Topology) -> Result<(), Refusal> {
    let cpus = program.workers.iter().filter_map(|worker| topology.cpu(worker.cpu));
    let cores = cpus.map(|cpu| cpu.core).collect::<std::collections::BTreeSet<_>>().len();
    if cores > set::MOST { Err(Refusal::TooManyCores { cores, most: set::MOST }) } else { Ok(()) }
}

/// What a core asks for, on behalf of which worker, for which word.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Request {
    core: u32,
    line: u32,
    want: Asked,
    worker: u32,
    word: u32,
    /// Because its neighbour was asked for: nobody waits for it.
    is_pair: bool,
}

struct Engine<'a> {
    scripts: &'a Scripts,
    machine: &'a Machine,
    prices: Prices,
    /// Whether contended waits are timed, which takes two clock reads.
    times_waits: bool,
    cores: Vec<Core>,
    /// The last levels, by cluster.
    last_levels: Vec<Cache>,
    /// The cores of each cluster.
    clusters: Vec<Set>,
    lines: Vec<Line>,
    /// Each line's other one of its pair, where that was touched.
    pair_of: Vec<Option<u32>>,
    values: Vec<u64>,
    workers: Vec<Worker>,
    /// Workers that sleep for a lock, by lock, first come first.
    sleepers: Vec<VecDeque<u32>>,
    calendar: Calendar,
    /// Requests that wait for their time, by number, and the numbers that are free again.
    requests: Vec<Request>,
    free: Vec<u32>,
    chance: Chance,
    /// Time of the last event, or of the last request that was decided without one.
    time: Ps,
    /// How far a worker may run ahead of the earliest event.
    lookahead: Ps,
    /// When, or with how many accesses, the present part of the simulation is over.
    end: Ps,
    budget: u64,
    accesses: u64,
    /// Counts uses, for replacement.
    uses: u64,
    #[cfg(test)]
    witness: Option<Box<witness::Witness>>,
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
        let has_shadow = scripts.lines.len() as u64 > cache::lines(&machine.caches.l1);
        let mut cores: Vec<Core> = Vec::new();
        let (mut core_of, mut cluster_of) = (BTreeMap::new(), BTreeMap::new());
        let mut workers = Vec::new();
        // A worker whose CPU is not there was refused.
        let stands = |worker: &plan::WorkerProgram| topology.cpu(worker.cpu).map(|cpu| (worker.index, *cpu));
        for (nth, (index, cpu)) in program.workers.iter().filter_map(stands).enumerate() {
            let next_cluster = cluster_of.len();
            let cluster = *cluster_of.entry(cpu.llc).or_insert(next_cluster);
            let core = *core_of.entry(cpu.core).or_insert_with(|| {
                cores.push(Core::new(&machine.caches, has_shadow, cluster, cpu.socket));
                cores.len() - 1
            });
            cores[core].workers.push(nth as u32);
            let chance = Chance::new(seed ^ ((u64::from(index.0) + 1) << 32));
            workers.push(Worker::new(core, &scripts.workers[nth], chance, program.locks.len()));
        }
        let clusters = neighbours(&mut cores, cluster_of.len());
        let nearest = (0..cores.len()).flat_map(|a| (0..cores.len()).filter(move |&b| b != a).map(move |b| (a, b)));
        let distances = nearest.map(|(a, b)| cores[a].distance(Set::only(b)));
        // A core alone meets nobody: then any time will do.
        let lookahead = distances.map(|d| prices.soonest(d)).min().unwrap_or(1_000_000);
        let number_of: BTreeMap<u64, u32> = scripts.lines.iter().zip(0..).map(|(&number, i)| (number, i)).collect();
        Engine {
            scripts,
            machine,
            lines: lines(scripts, machine, has_shadow),
            pair_of: scripts.lines.iter().map(|number| number_of.get(&(number ^ 1)).copied()).collect(),
            last_levels: clusters.iter().map(|_| Cache::new(&machine.caches.llc)).collect(),
            clusters,
            values: vec![0; scripts.words],
            sleepers: program.locks.iter().map(|_| VecDeque::new()).collect(),
            calendar: Calendar::new(cores.len()),
            requests: Vec::new(),
            free: Vec::new(),
            workers,
            cores,
            prices,
            times_waits: program.timed_locks,
            chance: Chance::new(seed),
            time: 0,
            lookahead,
            end: 0,
            budget: 0,
            accesses: 0,
            uses: 0,
            #[cfg(test)]
            witness: None,
        }
    }

    /// Warm-up, window, and what they came to.
    fn whole(mut self, program: &Program, limits: Limits) -> Modelled {
        let opened = self.simulate(limits);
        self.finish(program, opened)
    }

    /// Warm-up and window. When the window opened.
    fn simulate(&mut self, limits: Limits) -> Ps {
        self.begin_locks();
        for worker in 0..self.workers.len() {
            let start = self.workers[worker].start();
            if self.starts_with(worker, |after| after == 0) {
                self.resume(worker, start);
            }
        }
        let window = ps(limits.window_ns).max(1);
        self.run_until(window / 5, limits.accesses / 5);
        let opened = self.time;
        let before = self.accesses;
        self.workers.iter_mut().for_each(Worker::open);
        self.lines.iter_mut().for_each(|line| line.story.restart());
        for worker in 0..self.workers.len() {
            if self.starts_with(worker, |after| after > 0) {
                let start = opened.saturating_add(self.scripts.workers[worker].after);
                self.workers[worker].start_at(start);
                self.resume(worker, start);
            }
        }
        self.run_until(opened.saturating_add(window), before.saturating_add(limits.accesses));
        opened
    }

    /// Whether a worker has anything to do, and begins at such a time from the window's opening on.
    fn starts_with(&self, worker: usize, is_it: impl Fn(Ps) -> bool) -> bool {
        let script = &self.scripts.workers[worker];
        !script.steps.is_empty() && is_it(script.after)
    }

    /// Everything before `end`, or until that many accesses. Where nothing is to come before, time goes on without.
    fn run_until(&mut self, end: Ps, accesses: u64) {
        (self.end, self.budget) = (end, accesses);
        while self.accesses < accesses && self.calendar.earliest() < end {
            let Some((at, core, event)) = self.calendar.next() else { break };
            self.time = at;
            match event {
                Event::Resume { worker } => self.resumed(worker as usize),
                Event::Drain { worker } => self.drained(worker as usize),
                Event::Request { number } => {
                    self.free.push(number);
                    self.decide(at, self.requests[number as usize]);
                }
                Event::Arrive { line } => self.arrive(core, line),
            }
            #[cfg(test)]
            self.witness_event(core, event);
        }
        // Everybody has come so far.
        self.time = self.calendar.earliest().clamp(self.time, end.max(self.time));
    }

    /// A worker goes on at `at`, and not when it was to before.
    fn resume(&mut self, worker: usize, at: Ps) {
        let me = &mut self.workers[worker];
        let (core, event) = (me.core, Event::Resume { worker: worker as u32 });
        if me.resumes_at != NEVER {
            self.calendar.strike(core, event);
        }
        me.resumes_at = at.max(self.time);
        self.calendar.add(core, me.resumes_at, event);
    }

    /// Until when a core's workers and store buffers may run before others have to be heard.
    #[inline(always)]
    fn horizon(&self, core: usize) -> Ps {
        let nobody_takes = self.calendar.earliest().saturating_add(self.lookahead);
        nobody_takes.min(self.calendar.earliest_of(core)).min(self.end)
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
        let was_touched =
            |line: &&Line| line.held.iter().any(|held| held.gone != Gone::Never || held.state.is_readable());
        let story =
            |line: &Line| line.story.finish(line.number, self.scripts.words_beside(line.number), self.workers.len());
        let mut lines: Vec<crate::LineStory> = self.lines.iter().filter(was_touched).map(story).collect();
        lines.sort_by_key(|line| line.index);
        let stands_still = self.calendar.earliest() == NEVER;
        let waits = |(worker, _): &(&Worker, &plan::WorkerProgram)| stands_still && worker.blocked != Blocked::No;
        let with_index = || self.workers.iter().zip(&program.workers);
        Modelled {
            workers: with_index().map(worker).collect(),
            lines,
            window_ns: window as f64 / 1e3,
            accesses: self.accesses,
            stuck: with_index().filter(waits).map(|(_, of)| of.index.0).collect(),
        }
    }
}

/// Tells cores who is near; the cores of each cluster.
fn neighbours(cores: &mut [Core], clusters: usize) -> Vec<Set> {
    let mut in_cluster = vec![Set::EMPTY; clusters];
    let mut in_socket: BTreeMap<u32, Set> = BTreeMap::new();
    for (nth, core) in cores.iter().enumerate() {
        in_cluster[core.cluster].add(nth);
        in_socket.entry(core.socket).or_default().add(nth);
    }
    for core in cores {
        (core.in_cluster, core.in_socket) = (in_cluster[core.cluster], in_socket[&core.socket]);
    }
    in_cluster
}

fn lines(scripts: &Scripts, machine: &Machine, has_shadow: bool) -> Vec<Line> {
    let caches = &machine.caches;
    let overfull = |shape| cache::overfull(shape, &scripts.lines);
    let (in_first, in_second, in_last) = (overfull(&caches.l1), overfull(&caches.l2), overfull(&caches.llc));
    let line = |&number: &u64| {
        let own = has_shadow || in_first(number) || in_second(number);
        let crowds = Crowds { own, last: in_last(number) };
        Line::new(number, crowds, scripts.words_beside(number).len())
    };
    scripts.lines.iter().map(line).collect()
}

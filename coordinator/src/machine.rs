//! The machine as a run records it.

use host::{CpuTicks, Facts, Root};
use plan::TickRate;
use plan::Topology;
use std::time::Duration;

/// How long the tick rate is calibrated: five digits, and a thirtieth of a second of a user's patience.
const CALIBRATION: Duration = Duration::from_millis(30);

/// What is known of the machine before the first repetition.
pub(crate) struct Machine {
    root: Root,
    pub(crate) topology: Topology,
    pub(crate) rate: TickRate,
    facts: Facts,
    stolen_at_start: Option<CpuTicks>,
}

impl Machine {
    /// Reads it. Blocks for the calibration.
    ///
    /// # Errors
    /// In words, where the CPUs cannot be read.
    pub(crate) fn read() -> Result<Machine, String> {
        let root = Root::system();
        let topology = Machine::topology()?;
        let facts = host::facts(&root);
        let stolen_at_start = host::stolen_ticks(&root);
        Ok(Machine { topology, rate: shm_layout::calibrate(CALIBRATION), facts, stolen_at_start, root })
    }

    /// The CPUs alone, without calibrating anything.
    ///
    /// # Errors
    /// In words, where they cannot be read.
    pub(crate) fn topology() -> Result<Topology, String> {
        host::topology(&Root::system()).map_err(|error| error.to_string())
    }

    /// Whether the clock's rate holds in every power state, where the processor says so or not.
    pub(crate) fn invariant_clock(&self) -> Option<bool> {
        self.facts.invariant_clock
    }

    /// Workers whose CPU this process may not use any more, by now; none where that cannot be read.
    pub(crate) fn workers_without_cpu<'a>(&self, program: &'a plan::Program) -> Vec<&'a plan::WorkerProgram> {
        let Ok(now) = host::topology(&self.root) else { return Vec::new() };
        let usable = |cpu| now.cpu(cpu).is_some_and(|cpu| cpu.usable);
        program.workers.iter().filter(|worker| !usable(worker.cpu)).collect()
    }

    /// Who limits this process's CPUs, as half a sentence.
    pub(crate) fn cpu_limits() -> String {
        host::cpuset_of_self(&Root::system())
    }

    /// The machine's record, with what was stolen since [`Machine::read`].
    pub(crate) fn record(&self) -> record::Host {
        let now = host::stolen_ticks(&self.root);
        let stolen_share = match (self.stolen_at_start, now) {
            (Some(earlier), Some(now)) => now.stolen_share_since(earlier),
            _ => None,
        };
        record::Host {
            hostname: self.facts.hostname.clone(),
            kernel: self.facts.kernel.clone(),
            cpu_model: self.facts.cpu_model.clone(),
            hypervisor: self.facts.hypervisor.as_ref().map(ToString::to_string),
            cpus: self.topology.cpus.len() as u32,
            llc_groups: self.topology.llc_groups() as u32,
            nodes: self.topology.nodes() as u32,
            sockets: self.topology.sockets() as u32,
            line_bytes: self.facts.line_bytes,
            ticks_per_second: self.rate.ticks_per_ns * 1e9,
            perf_event_paranoid: self.facts.perf_event_paranoid,
            stolen_share,
        }
    }

    /// The NUMA node that a repetition's memory is taken from: that of the first CPU of the headline role. `None` where
    /// there is one node only.
    pub(crate) fn memory_node(&self, program: &plan::Program, headline_role: usize) -> Option<u32> {
        if self.topology.nodes() < 2 {
            return None;
        }
        let headline = program.workers.iter().find(|w| w.role as usize == headline_role).or(program.workers.first())?;
        self.topology.cpu(headline.cpu).map(|cpu| cpu.node)
    }
}

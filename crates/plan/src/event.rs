//! What can be counted: the lab's own names, and a user's events in perf's spelling.

mod list;
mod parse;

pub use list::{EVENTS_MAX, check_list, countable};
pub use parse::EventSpecError;

use serde::{Deserialize, Serialize};

/// Who counts; in JSON `processor` or `kernel`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountedBy {
    /// The processor's performance-monitoring unit.
    Processor,
    /// The kernel: needs no hardware.
    Kernel,
}

/// The counters that every run asks for, under their glossary names: keys of results, and what claims name as
/// `NAME_per_op` and `NAME_per_second`. What a name counts on the machine at hand stands beside the figures.
pub const COUNTERS: [(&str, CountedBy); 28] = [
    ("cycles", CountedBy::Processor),
    ("instructions", CountedBy::Processor),
    ("stalled_cycles", CountedBy::Processor),
    ("l1d_loads", CountedBy::Processor),
    ("l1d_load_misses", CountedBy::Processor),
    ("transfers_cluster", CountedBy::Processor),
    ("transfers_local", CountedBy::Processor),
    ("transfers_remote", CountedBy::Processor),
    ("transfers_write", CountedBy::Processor),
    ("transfers_write_remote", CountedBy::Processor),
    ("l1d_invalidations", CountedBy::Processor),
    ("upgrades", CountedBy::Processor),
    ("llc_loads", CountedBy::Processor),
    ("llc_load_misses", CountedBy::Processor),
    ("cache_references", CountedBy::Processor),
    ("cache_misses", CountedBy::Processor),
    ("dtlb_load_misses", CountedBy::Processor),
    ("context_switches", CountedBy::Kernel),
    ("context_switches_voluntary", CountedBy::Kernel),
    ("context_switches_involuntary", CountedBy::Kernel),
    ("cpu_migrations", CountedBy::Kernel),
    ("page_faults", CountedBy::Kernel),
    ("page_faults_major", CountedBy::Kernel),
    ("task_clock", CountedBy::Kernel),
    ("futex_calls", CountedBy::Kernel),
    ("tlb_flushes", CountedBy::Kernel),
    ("stolen_ns", CountedBy::Kernel),
    ("throttled_ns", CountedBy::Kernel),
];

/// The counters that a run whose scenario has regions asks for besides: who gave memory back, and whom that
/// interrupted. All by the kernel. Other runs leave them out, since noting them costs time at the window's edges.
pub const MEMORY_COUNTERS: [&str; 10] = [
    "tlb_shootdowns",
    "tlb_flushes_remote",
    "tlb_flushes_local",
    "tlb_flushes_local_mm",
    "tlb_flushes_sent",
    "call_function_interrupts",
    "call_function_single_interrupts",
    "csd_queued",
    "ipis_sent",
    "ipis_sent_mask",
];

/// What a counter is a count of, and so which readings add up.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The worker's thread, in its window: the readings of all workers add up.
    Thread,
    /// The worker's CPU: workers that share it read the same twice.
    Cpu,
    /// The cgroup of all workers, added up over its CPUs: each of them reads the whole.
    Cgroup,
}

/// The scope of a counter; an event of the user's is counted on the thread.
pub fn scope(name: &str) -> Scope {
    match name {
        "stolen_ns" | "tlb_shootdowns" => Scope::Cpu,
        "throttled_ns" => Scope::Cgroup,
        _ => Scope::Thread,
    }
}

/// Whether the reading is of the warm-up and the window together: what is taken from a CPU or a cgroup is told in steps
/// too coarse for a window's edges.
pub fn spans_warm_up(name: &str) -> bool {
    matches!(name, "stolen_ns" | "throttled_ns")
}

/// Whether `name` is one of [`COUNTERS`] or of [`MEMORY_COUNTERS`].
pub fn is_counter(name: &str) -> bool {
    COUNTERS.iter().any(|(known, _)| *known == name) || MEMORY_COUNTERS.contains(&name)
}

/// An event as perf spells it, taken apart but not yet looked up: which numbers it stands for is the machine's to say.
///
/// # References
/// perf-list(1), "EVENT MODIFIERS" and "RAW HARDWARE EVENT DESCRIPTOR".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// As written, without surrounding white space.
    pub text: String,
    /// What is wanted.
    pub form: EventForm,
    /// The name that `name=` gives it, where it does.
    pub name: Option<String>,
    /// In which modes it counts.
    pub modes: Modes,
}

impl EventSpec {
    /// The name under which results list it: `name=`, else the text. A claim can name it where it looks like a
    /// counter's name.
    pub fn key(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.text)
    }
}

/// The four ways to write an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventForm {
    /// A name of perf's or of a PMU's: `cache-misses`, `L1-dcache-load-misses`, `page-faults`.
    Named(String),
    /// `r01d1`: the `config` of the core's PMU, hexadecimal.
    Raw(u64),
    /// `cpu/event=0xd1,umask=0x01/`.
    Terms {
        /// The PMU's name, a folder of `/sys/bus/event_source/devices`.
        pmu: String,
        /// The terms in order, without `name=`.
        terms: Vec<Term>,
    },
    /// `sched:sched_switch`.
    Tracepoint {
        /// The part before the colon.
        system: String,
        /// The part behind it.
        event: String,
    },
}

/// One term between an event's slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Its name: a file of the PMU's `format` folder, of its `events` folder, or `config`, `config1`, `config2`.
    pub name: String,
    /// Its value; `None` stands for 1, or for a name of the `events` folder.
    pub value: Option<u64>,
}

/// The modes in which an event counts: all that the process may see where no modifier is written.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// `:u` was written.
    pub user: bool,
    /// `:k` was written.
    pub kernel: bool,
}

#[cfg(test)]
mod tests {
    use super::{COUNTERS, MEMORY_COUNTERS, Scope, is_counter, scope, spans_warm_up};

    #[test]
    fn what_is_not_the_thread_s_own_is_told_apart() {
        let names = COUNTERS.iter().map(|(name, _)| *name).chain(MEMORY_COUNTERS);
        let scopes = names.clone().map(|name| (name, scope(name)));
        let wider: Vec<_> = scopes.filter(|(_, scope)| *scope != Scope::Thread).collect();
        let wanted = [("stolen_ns", Scope::Cpu), ("throttled_ns", Scope::Cgroup), ("tlb_shootdowns", Scope::Cpu)];
        assert_eq!(wider, wanted);
        let both: Vec<&str> = names.clone().filter(|name| spans_warm_up(name)).collect();
        assert_eq!(both, ["stolen_ns", "throttled_ns"]);
        assert_eq!(scope("my_own"), Scope::Thread);
        assert!(names.clone().all(is_counter) && !is_counter("my_own"));
        assert!(!COUNTERS.iter().any(|(name, _)| MEMORY_COUNTERS.contains(name)), "no name twice");
    }
}

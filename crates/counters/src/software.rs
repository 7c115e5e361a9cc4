//! The lab's own counters that the kernel counts: perf's software events, tracepoints, and what every worker notes of
//! itself without opening anything.

use crate::choice::{Choice, Meaning};
use crate::event::{Attr, Event, Family};
use crate::names::{self, Generic};
use crate::order::Order;
use crate::refusal;
use crate::tracepoint::Tracepoint;
use host::Root;

/// A software event of perf's.
struct SoftwareEvent {
    name: &'static str,
    perf: &'static str,
    with_kernel: bool,
    counts: &'static str,
}

const SOFTWARE_EVENTS: [SoftwareEvent; 4] = [
    SoftwareEvent {
        name: "context_switches",
        perf: "context-switches",
        with_kernel: true,
        counts: "times the worker was taken off its CPU, by itself or by others",
    },
    SoftwareEvent {
        name: "cpu_migrations",
        perf: "cpu-migrations",
        with_kernel: true,
        counts: "times the worker began to run on another CPU: a pinned one has 0",
    },
    // The kernel's own faults on the worker's behalf are left out, and the task clock runs in both modes whatever is
    // excluded: so neither needs leave to count the kernel.
    SoftwareEvent {
        name: "page_faults",
        perf: "page-faults",
        with_kernel: false,
        counts: "faults taken by the worker's own instructions, minor and major",
    },
    SoftwareEvent {
        name: "task_clock",
        perf: "task-clock",
        with_kernel: false,
        counts: "nanoseconds the worker was on a CPU, in user and kernel mode",
    },
];

const TRACEPOINTS: [Tracepoint; 2] = [
    Tracepoint {
        name: "futex_calls",
        system: "syscalls",
        event: "sys_enter_futex",
        filter: None,
        counts: "calls of futex(2) by the worker, as contended pthread locks make them to wait and to wake; the newer \
                 futex_wait, futex_wake, futex_requeue and futex_waitv are calls of their own and not among them",
    },
    Tracepoint {
        name: "tlb_flushes",
        system: "tlb",
        event: "tlb_flush",
        filter: None,
        counts: "TLB flushes while the worker was on its CPU: its own, its requests to other CPUs (one more each), and \
                 those other CPUs asked of it",
    },
];

/// Names of what is noted without an event ([`crate::noted`]).
pub(crate) const SWITCHES_VOLUNTARY: &str = "context_switches_voluntary";
pub(crate) const SWITCHES_INVOLUNTARY: &str = "context_switches_involuntary";
pub(crate) const FAULTS_MAJOR: &str = "page_faults_major";
pub(crate) const STOLEN: &str = "stolen_ns";
pub(crate) const THROTTLED: &str = "throttled_ns";

/// Name, what it counts, source. Every worker notes them, whatever it was told to count.
pub(crate) const NOTED: [(&str, &str, &str); 5] = [
    (
        SWITCHES_VOLUNTARY,
        "times the worker gave up its CPU: to sleep, to wait, to yield",
        "getrusage(2), ru_nvcsw of RUSAGE_THREAD: voluntary_ctxt_switches of /proc/thread-self/status",
    ),
    (
        SWITCHES_INVOLUNTARY,
        "times the worker was taken off its CPU while it could have run on",
        "getrusage(2), ru_nivcsw of RUSAGE_THREAD: nonvoluntary_ctxt_switches of /proc/thread-self/status",
    ),
    (
        FAULTS_MAJOR,
        "page faults, the kernel's on the worker's behalf included, that waited for a disk or for swap",
        "getrusage(2), ru_majflt of RUSAGE_THREAD: majflt of /proc/thread-self/stat",
    ),
    (
        STOLEN,
        "nanoseconds that the hypervisor took from the worker's CPU during warm-up and window together, whoever was \
         running there, in steps of the kernel's tick (10 ms); a hypervisor that does not report it leaves 0",
        "proc_stat(5), column steal of the CPU's row",
    ),
    (
        THROTTLED,
        "nanoseconds for which a CPU quota stopped the worker's cgroup, or one above it, during warm-up and window \
         together: all its processes, added up over CPUs",
        "cpu.stat of the cgroup: throttled_usec (version 2), throttled_time (version 1)",
    ),
];

/// The lab's own counters that the kernel counts, the same on every kind of core.
pub(crate) fn choices(root: &Root) -> Vec<Choice> {
    let software = SOFTWARE_EVENTS.iter().map(software);
    let tracepoints = TRACEPOINTS.iter().map(|tracepoint| tracepoint.choice(root, refusal::no_tracepoint));
    let noted = NOTED
        .iter()
        .map(|(name, counts, source)| Choice { meaning: Meaning::by_kernel(name, None, counts, source), order: None });
    software.chain(tracepoints).chain(noted).collect()
}

fn software(event: &SoftwareEvent) -> Choice {
    let Generic { kind, config } =
        names::generic(event.perf).expect("a name of perf's, which a test of names.rs holds");
    let attr = Attr::user(kind, config);
    let attr = if event.with_kernel { attr.with_kernel() } else { attr };
    Choice {
        meaning: Meaning::by_kernel(event.name, Some(event.perf.to_owned()), event.counts, "perf_event_open(2)"),
        order: Some(Order::Count(Event { name: event.name.to_owned(), family: Family::Software, attr, filter: None })),
    }
}

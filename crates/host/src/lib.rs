//! What the machine says about itself: CPUs and what they share, the kernel's permissions, time taken away.
//!
//! Everything is read below a [`Root`], which tests replace by a folder of their own, and each file here reads one
//! thing: of the CPUs ([`topology`], [`data_caches`], [`cpu_identity`], [`scaling`]), of memory ([`mappings`],
//! [`shared_memory`], [`huge_pages()`]), of what may be counted ([`core_pmus`], [`tracepoint_id`], [`privileges`]),
//! of what disturbs ([`device_interrupts`], [`stolen_ns`], [`cpu_quota`]), and of other processes
//! ([`processes_called`], [`sleeping_call`]). What a machine does not tell is `None`, or an error that says what to do.
#![deny(unsafe_code)] // but for the module that maps a page

mod address_space;
mod broadcast;
mod cache;
mod cgroup;
mod clock_source;
mod cmdline;
mod cpu_identity;
mod cpu_list;
mod cpu_rows;
mod cpu_time;
mod executable;
mod facts;
mod frequency;
mod huge_pages;
mod hypervisor;
mod idle;
mod interrupts;
mod kernel_settings;
mod limits;
mod mappings;
mod mounts;
mod named_rows;
mod others;
mod pmu;
mod processes;
mod quiet_cpus;
mod quota;
mod root;
mod run_times;
mod seccomp;
mod shared_memory;
mod shootdowns;
mod smt;
mod stolen;
mod symbols;
mod sysv;
mod thread_room;
mod thread_state;
mod tlb;
mod topology;
mod tracefs;
mod tracepoint;
mod vulnerabilities;
mod watchdog;

pub use address_space::{SpaceIds, space_ids};
pub use broadcast::{Invalidation, invalidation};
pub use cache::{Cache, data_caches};
pub use cgroup::{Throttled, ThrottledError, throttled};
pub use clock_source::{ClockSource, clock_source};
pub use cmdline::{command_line_is_shown, kernel_parameter};
pub use cpu_identity::cpu_identity;
pub use cpu_list::{format_cpu_list, parse_cpu_list};
pub use cpu_time::{CpuTimes, cpu_times};
pub use executable::executable_memory;
pub use facts::{Facts, PARANOID_KERNEL, PARANOID_USER, facts, perf_event_paranoid};
pub use frequency::{Driver, Scaling, Turbo, scaling, turbo};
pub use huge_pages::{FREE_HUGE_PAGES, HugePages, huge_pages};
pub use hypervisor::{Hypervisor, hypervisor};
pub use idle::{IdleState, idle_driver, idle_states};
pub use interrupts::{DeviceInterrupt, InterruptRate, Interrupts, device_interrupts, lists_interrupts};
pub use kernel_settings::{KernelSettings, Setting, kernel_settings};
pub use limits::{Cpuset, Privileges, cpuset, cpuset_of_self, open_files, open_files_limit, privileges};
pub use mappings::{Image, Mapping, Mappings, mappings};
pub use others::{may_move, may_signal};
pub use pmu::{Format, Pmu, Word, core_pmu, core_pmus, is_core_pmu, pmu, pmu_names};
pub use processes::{
    Ownership, command_of, executable_of, is_thread_of, may_look_at_all, ownership, pid_inside, process_numbers,
    ptrace_scope, thread_numbers,
};
pub use quiet_cpus::{QuietCpus, quiet_cpus};
pub use quota::{CpuQuota, cpu_quota};
pub use root::Root;
pub use run_times::{Ran, RunTimes, processes_called};
pub use seccomp::{Seccomp, seccomp};
pub use shared_memory::{SharedMemory, shared_memory};
pub use shootdowns::{Shootdowns, ShootdownsError};
pub use smt::{Smt, smt};
pub use stolen::{CpuTicks, stolen_ns, stolen_ticks};
pub use symbols::{KernelSymbols, SymbolsError};
pub use sysv::{SysvSegment, sysv_segments};
pub use thread_room::{ThreadLimit, ThreadRoom, thread_room};
pub use thread_state::{SleepingCall, number_is_taken, sleeping_call, thread_lives, tid_inside};
pub use tlb::{DataTlb, Entries, data_tlb};
pub use topology::{HostError, topology};
pub use tracefs::{Tracefs, tracefs};
pub use tracepoint::{TracepointError, tracepoint_id, tracepoints};
pub use vulnerabilities::{Vulnerability, vulnerabilities};
pub use watchdog::nmi_watchdog;

#[cfg(test)]
mod fixture;

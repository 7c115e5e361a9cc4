//! What the machine says about itself: CPUs and what they share, the kernel's permissions, time taken away.
//!
//! Everything is read below a [`Root`], which tests replace by a folder of their own.
#![forbid(unsafe_code)]

mod cgroup;
mod cpu_identity;
mod cpu_list;
mod facts;
mod hypervisor;
mod limits;
mod pmu;
mod root;
mod stolen;
mod topology;
mod tracepoint;

pub use cgroup::{Throttled, ThrottledError, throttled};
pub use cpu_identity::{CpuIdentity, cpu_identity};
pub use cpu_list::{format_cpu_list, parse_cpu_list};
pub use facts::{Facts, facts, perf_event_paranoid};
pub use hypervisor::hypervisor;
pub use limits::{Privileges, cpuset_of_self, privileges};
pub use pmu::{Format, Pmu, Word, core_pmu, core_pmus, pmu, pmu_names, pmus};
pub use root::Root;
pub use stolen::{CpuTicks, stolen_ns, stolen_ticks};
pub use topology::{HostError, topology, topology_with};
pub use tracepoint::{TracepointError, tracepoint_id, tracepoints};

#[cfg(test)]
mod fixture;

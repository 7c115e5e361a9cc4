//! How much memory and CPU time this process is allowed.

mod cpu;
mod memory;
mod process;

use crate::{Finding, Patient};

/// The checks of this theme, in the order of the screen.
pub(crate) fn findings(patient: &Patient<'_>) -> Vec<Finding> {
    let mut findings = vec![memory::dev_shm(patient), cpu::cgroup_quota(patient), cpu::cpuset(patient)];
    findings.extend([process::open_files(patient), process::threads(patient)]);
    findings.extend(process::executable_memory(patient));
    findings
}

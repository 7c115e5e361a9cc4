//! What else runs on the CPUs in question, or keeps them from running evenly.

mod audit;
mod company;
mod interrupts;
mod isolation;
mod memory;
mod sample;
mod timers;

use crate::{Finding, Patient};
use sample::Sample;
use std::time::Duration;

/// Daemons that matter to a check.
const IRQBALANCE: &str = "irqbalance";
const AUDITD: &str = "auditd";

/// The checks of this theme, in the order of the screen. Sleeps for `watch`.
pub(crate) fn findings(patient: &Patient<'_>, watch: Duration) -> Vec<Finding> {
    let root = patient.root;
    let sample = Sample::over(root, watch);
    let daemons = host::processes_called(root, &[IRQBALANCE, AUDITD]);
    let (quiet, settings) = (host::quiet_cpus(root), host::kernel_settings(root));
    let mut findings = company::findings(patient, &sample);
    findings.push(interrupts::rates(patient, &sample));
    findings.push(interrupts::affinity(patient, &quiet, daemons.contains(&IRQBALANCE)));
    findings.extend(isolation::findings(patient, &quiet));
    findings.extend(memory::findings(patient, &settings));
    findings.extend(timers::findings(patient, &quiet, &settings));
    findings.push(audit::finding(root, daemons.contains(&AUDITD)));
    findings
}

#[cfg(test)]
mod tests {
    use super::findings;
    use crate::fixture::{Fixture, assert_well_formed};
    use record::CheckState;
    use std::time::Duration;

    #[test]
    fn a_machine_that_says_nothing_is_not_called_well_where_its_silence_matters() {
        let found = Fixture::new().findings(|patient| findings(patient, Duration::ZERO));
        found.iter().for_each(assert_well_formed);
        let silent: Vec<&str> =
            found.iter().filter(|f| f.check.state == CheckState::Missing).map(|f| f.check.name.as_str()).collect();
        assert_eq!(silent.len(), found.len(), "{silent:?}");
    }

    #[test]
    fn daemons_are_looked_for_and_judged() {
        let fixture = Fixture::new()
            .file("proc/7/comm", "irqbalance\n")
            .file("proc/8/comm", "auditd\n")
            .file("proc/irq/30/smp_affinity_list", "0-1")
            .file("proc/irq/30/nvme0q1/nothing", "");
        for name in ["irq_affinity", "audit"] {
            let found = fixture.check(|patient| findings(patient, Duration::ZERO), name);
            assert_eq!(found.check.state, CheckState::Warn, "{found:?}");
        }
    }
}

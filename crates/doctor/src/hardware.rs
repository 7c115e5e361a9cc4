//! The processor, the clock and the virtual machine around them.

mod clock;
mod kernel_entry;
mod memory;
mod power;
mod processor;
mod virtual_machine;

use crate::{Finding, Patient};
use plan::CpuId;

/// The checks of this theme, in the order of the screen.
pub(crate) fn findings(patient: &Patient<'_>) -> Vec<Finding> {
    let root = patient.root;
    vec![
        processor::cpu(patient),
        processor::smt(patient),
        processor::numa(patient),
        memory::caches(patient),
        memory::line_bytes(patient),
        memory::tlb(root),
        virtual_machine::hypervisor(root),
        virtual_machine::stolen_time(root),
        power::frequency(patient),
        power::turbo(root),
        power::c_states(patient),
        clock::clock_source(root),
        clock::invariant_tsc(root),
        kernel_entry::pcid(root),
        kernel_entry::page_table_isolation(root),
        kernel_entry::mitigations(root),
    ]
}

/// `0-3,8`.
fn list(cpus: impl IntoIterator<Item = CpuId>) -> String {
    host::format_cpu_list(&cpus.into_iter().map(|cpu| cpu.0).collect())
}

#[cfg(test)]
mod tests {
    use super::findings;
    use crate::Patient;
    use crate::fixture::{Fixture, assert_well_formed};
    use host::Root;
    use plan::CpuId;
    use record::CheckState;

    #[test]
    fn a_machine_that_says_nothing_is_not_called_well_where_its_silence_matters() {
        let found = Fixture::new().findings(findings);
        found.iter().for_each(assert_well_formed);
        let state = |wanted| {
            let of = found.iter().filter(move |finding| finding.check.state == wanted);
            of.map(|finding| finding.check.name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(state(CheckState::Ok), ["numa"], "the topology alone is known");
        assert!(state(CheckState::Warn).is_empty());
    }

    #[test]
    fn this_machine_has_each_check_once() {
        let root = Root::system();
        let topology = host::topology(&root).expect("this machine's CPUs");
        let cpus: Vec<CpuId> = topology.cpus.iter().filter(|cpu| cpu.usable).map(|cpu| cpu.id).collect();
        let found = findings(&Patient { root: &root, topology: &topology, cpus: &cpus });
        assert!(found.iter().all(|finding| !finding.check.seen.is_empty()), "{found:?}");
        let mut names: Vec<&str> = found.iter().map(|finding| finding.check.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), found.len(), "a name twice");
    }
}

//! What is examined.

use host::Root;
use plan::{CpuId, Topology};
use std::collections::BTreeSet;

/// A machine, and the CPUs on it that matter.
#[derive(Copy, Clone, Debug)]
pub struct Patient<'a> {
    /// Where `/proc` and `/sys` are read.
    pub root: &'a Root,
    /// The machine's CPUs.
    pub topology: &'a Topology,
    /// The CPUs in question: those of a scenario, or all that this process may use.
    pub cpus: &'a [CpuId],
}

impl Patient<'_> {
    /// The CPUs in question, by number.
    pub(crate) fn in_question(&self) -> BTreeSet<u32> {
        self.cpus.iter().map(|cpu| cpu.0).collect()
    }

    /// CPUs that this process may use and that are not in question: where others could be sent.
    pub(crate) fn spare(&self) -> BTreeSet<u32> {
        let cpus = self.topology.cpus.iter().filter(|cpu| cpu.usable && !self.cpus.contains(&cpu.id));
        cpus.map(|cpu| cpu.id.0).collect()
    }
}

/// A set of CPUs for a line of the screen: `0-3`, or how many where the list would be long.
pub(crate) fn named(cpus: &BTreeSet<u32>) -> String {
    const LONGEST: usize = 12;
    let list = host::format_cpu_list(cpus);
    if list.len() <= LONGEST { list } else { format!("{} of them", cpus.len()) }
}

/// The same with its unit: `CPU 1`, `CPUs 0-3`, `40 CPUs`.
pub(crate) fn labelled(cpus: &BTreeSet<u32>) -> String {
    match (named(cpus), cpus.len()) {
        (list, 1) => format!("CPU {list}"),
        (list, many) if list.ends_with("of them") => format!("{many} CPUs"),
        (list, _) => format!("CPUs {list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{labelled, named};

    #[test]
    fn a_long_list_becomes_a_number() {
        assert_eq!(named(&(0..64).collect()), "0-63");
        assert_eq!(named(&(0..64).step_by(2).collect()), "32 of them");
        assert_eq!(named(&[].into()), "none");
        let labels = [labelled(&[1].into()), labelled(&[1, 2].into()), labelled(&(0..64).step_by(2).collect())];
        assert_eq!(labels, ["CPU 1", "CPUs 1-2", "32 CPUs"]);
    }
}

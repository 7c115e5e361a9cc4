//! Whether the kernel keeps its own work and other processes off the CPUs in question.

use crate::patient::named;
use crate::{Finding, Patient};
use host::QuietCpus;
use std::collections::BTreeSet;

/// One boot parameter that names CPUs.
struct Parameter {
    check: &'static str,
    /// As it is given at boot.
    name: &'static str,
    why: &'static str,
    /// What is seen where the set is not known, and whether that is a silence of the kernel's or its way to say no.
    unknown: Unknown,
}

enum Unknown {
    NotThere(&'static str),
    Silent(&'static str),
}

const ISOLATED: Parameter = Parameter {
    check: "isolated_cpus",
    name: "isolcpus",
    why: "the scheduler may put any process on a worker's CPU; on isolated ones it puts none, and fewer slices are lost",
    unknown: Unknown::Silent("the kernel does not say (no .../cpu/isolated in sysfs)"),
};

const NOHZ_FULL: Parameter = Parameter {
    check: "nohz_full",
    name: "nohz_full",
    why: "the timer tick interrupts a worker 100 to 1,000 times a second for microseconds; with nohz_full it stops \
          while one task runs",
    unknown: Unknown::NotThere("none: a kernel without it"),
};

const RCU_NOCBS: Parameter = Parameter {
    check: "rcu_nocbs",
    name: "rcu_nocbs",
    why: "the kernel frees what a CPU has done with (RCU callbacks) on that CPU, between a worker's passes; with \
          rcu_nocbs a thread does it that may be elsewhere",
    unknown: Unknown::Silent("/proc/cmdline is hidden, or its list not understood"),
};

/// Isolation, tick, callbacks. None of them is needed: interleaved arms share what disturbs them. What misleads is that
/// some workers are spared and others are not.
pub(super) fn findings(patient: &Patient<'_>, quiet: &QuietCpus) -> Vec<Finding> {
    let sets = [(ISOLATED, &quiet.isolated), (NOHZ_FULL, &quiet.nohz_full), (RCU_NOCBS, &quiet.rcu_nocbs)];
    let lacking = patient.root.lacks("sys/devices/system/cpu", NOHZ_FULL.name);
    sets.into_iter()
        .map(|(parameter, cpus)| judge(&patient.in_question(), &parameter, cpus.as_ref(), lacking))
        .collect()
}

/// `lacking`: a file that is not there means a kernel without it, since those beside it can be seen.
fn judge(asked: &BTreeSet<u32>, parameter: &Parameter, cpus: Option<&BTreeSet<u32>>, lacking: bool) -> Finding {
    let Parameter { check, name, why, unknown } = parameter;
    let Some(cpus) = cpus else {
        return match unknown {
            Unknown::NotThere(seen) if lacking => Finding::idle(check, *seen, *why),
            Unknown::NotThere(_) => Finding::missing(check, "not said: /sys/devices/system/cpu is hidden", *why),
            Unknown::Silent(seen) => Finding::missing(check, *seen, *why),
        };
    };
    let (inside, outside): (BTreeSet<u32>, BTreeSet<u32>) = asked.iter().copied().partition(|cpu| cpus.contains(cpu));
    match (cpus.is_empty(), inside.is_empty(), outside.is_empty()) {
        (true, ..) => Finding::idle(check, "none", *why),
        (_, true, _) => Finding::ok(check, format!("{}, not {}", named(cpus), named(asked)), *why),
        (.., true) => Finding::ok(check, format!("{}, all in question", named(asked)), *why),
        _ => Finding::warn(
            check,
            format!("{} of those in question, not {}", named(&inside), named(&outside)),
            format!("{why}: workers here are disturbed unequally"),
        )
        .cured_by(format!(
            "use CPUs of one kind, `--cpus {}`, or boot with `{name}={}`",
            host::format_cpu_list(&inside),
            host::format_cpu_list(asked)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::findings;
    use crate::fixture::{Fixture, assert_well_formed};
    use crate::{Finding, Patient};
    use host::QuietCpus;
    use record::CheckState::{Missing, Ok, Warn};

    fn of(quiet: &QuietCpus) -> Vec<Finding> {
        let shown = Fixture::new().file("sys/devices/system/cpu/online", "0-3\n");
        let fixture = shown.cores(4).in_question(&[2, 3]);
        let found = fixture.findings(|patient: &Patient<'_>| findings(patient, quiet));
        found.iter().for_each(assert_well_formed);
        found
    }

    fn with(cpus: Option<&[u32]>) -> Vec<Finding> {
        let set = cpus.map(|cpus| cpus.iter().copied().collect());
        of(&QuietCpus { isolated: set.clone(), nohz_full: set.clone(), rcu_nocbs: set })
    }

    #[test]
    fn no_isolation_and_full_isolation_are_both_well() {
        for (cpus, seen) in [
            (&[][..], "none"),
            (&[2, 3], "2-3, all in question"),
            (&[1, 2, 3], "2-3, all in question"),
            (&[1], "1, not 2-3"),
        ] {
            for finding in with(Some(cpus)) {
                assert_eq!((finding.check.state, finding.check.seen.as_str()), (Ok, seen), "{cpus:?}");
            }
        }
    }

    #[test]
    fn half_of_it_is_warned_of_with_both_ways_out() {
        for finding in with(Some(&[3])) {
            assert_eq!((finding.check.state, finding.check.seen.as_str()), (Warn, "3 of those in question, not 2"));
            assert!(finding.check.cure.unwrap().contains("--cpus 3"));
        }
    }

    #[test]
    fn a_kernel_that_cannot_and_one_that_does_not_say_are_told_apart() {
        let states: Vec<_> = with(None).iter().map(|finding| finding.check.state).collect();
        assert_eq!(states, [Missing, Ok, Missing]);
        let hidden = Fixture::new().findings(|patient: &Patient<'_>| findings(patient, &QuietCpus::default()));
        assert!(hidden.iter().all(|finding| finding.check.state == Missing), "{hidden:?}");
    }
}

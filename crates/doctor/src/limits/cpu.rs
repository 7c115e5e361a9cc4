//! CPU time and CPUs that this process may use.

use crate::patient::named;
use crate::{Finding, Patient, Spoils};
use host::CpuQuota;
use plan::CpuId;
use std::collections::BTreeSet;
use std::time::Duration;

/// The quota of this process's cgroup and those above it, and how often it has struck.
pub(super) fn cgroup_quota(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "cgroup_quota";
    const WHY: &str = "when a cgroup's quota is used up the kernel stops all its workers until the next period, tens of \
                       milliseconds: whole slices are lost";
    let (cpus, file) = match host::cpu_quota(patient.root) {
        CpuQuota::NotVisible => return Finding::missing(NAME, "cgroups cannot be seen from here", WHY),
        CpuQuota::None => return Finding::idle(NAME, "none", WHY),
        CpuQuota::Limited { cpus, file } => (cpus, file),
    };
    let asked = patient.cpus.len();
    let seen = format!("{} for {asked} in question{}", worth(cpus), stopped(patient));
    if cpus >= asked as f64 {
        return Finding::ok(NAME, seen, WHY).spoiling(Spoils::MoreWorkersThan(cpus));
    }
    let none = if file.ends_with("cpu.max") { "max" } else { "-1" };
    Finding::warn(NAME, seen, WHY)
        .cured_by(format!(
            "raise it where it was set (`docker run --cpus`, systemd's CPUQuota=, a pod's limits), or `echo {none} | \
             sudo tee {}`",
            file.display()
        ))
        .spoiling(Spoils::MoreWorkersThan(cpus))
}

/// `1.5 CPUs' worth`: a quota below a hundredth of a CPU is not shown as none.
fn worth(cpus: f64) -> String {
    let text = format!("{cpus:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "0" { "under 0.01 CPUs".to_owned() } else { format!("{text} CPU{}", if text == "1" { "" } else { "s" }) }
}

fn stopped(patient: &Patient<'_>) -> String {
    let Ok(throttled) = host::throttled(patient.root) else { return String::new() };
    let longest = throttled.levels.iter().map(|(_, ns)| *ns).max().unwrap_or(0);
    match longest {
        0 => "; never stopped yet".to_owned(),
        ns => format!("; stopped {:.1} s so far", Duration::from_nanos(ns).as_secs_f64()),
    }
}

/// Which CPUs this process may use, and who says so.
pub(super) fn cpuset(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "cpuset";
    let why =
        format!("workers are pinned, each to a CPU that this process may use; {}", host::cpuset_of_self(patient.root));
    let cpus = &patient.topology.cpus;
    let online: BTreeSet<u32> = cpus.iter().map(|cpu| cpu.id.0).collect();
    let usable: BTreeSet<u32> = cpus.iter().filter(|cpu| cpu.usable).map(|cpu| cpu.id.0).collect();
    let closed: BTreeSet<u32> = patient.in_question().difference(&usable).copied().collect();
    if !closed.is_empty() {
        let spoilt = closed.iter().copied().map(CpuId).collect();
        return Finding::warn(NAME, format!("{} may not be used, only {}", named(&closed), named(&usable)), why)
            .cured_by(format!(
                "`taskset -pc {} $$` in this shell; where its cpuset is narrower, ask who made the cgroup",
                host::format_cpu_list(&patient.in_question())
            ))
            .spoiling(Spoils::On(spoilt));
    }
    if usable.len() == 1 {
        return Finding::warn(NAME, format!("{} alone: no two workers can contend", named(&usable)), why)
            .cured_by("`taskset -pc 0-1 $$` in this shell, or a larger machine");
    }
    let seen = match usable == online {
        true => format!("{}, all that are online", named(&usable)),
        false => format!("{} of {}", named(&usable), named(&online)),
    };
    Finding::ok(NAME, seen, why)
}

#[cfg(test)]
mod tests {
    use super::{cgroup_quota, cpuset, worth};
    use crate::fixture::{Fixture, assert_well_formed};
    use crate::{Finding, Patient, Spoils};
    use plan::{Cpu, CpuId};
    use record::CheckState::{Missing, Ok, Warn};

    fn of(fixture: &Fixture, check: impl Fn(&Patient<'_>) -> Finding) -> Finding {
        let found = fixture.findings(|patient| vec![check(patient)]).remove(0);
        assert_well_formed(&found);
        found
    }

    fn quota(max: &str) -> Fixture {
        Fixture::new()
            .file("proc/self/cgroup", "0::/jobs\n")
            .file("sys/fs/cgroup/jobs/cpu.max", max)
            .file("sys/fs/cgroup/jobs/cgroup.procs", "")
            .file("sys/fs/cgroup/jobs/cpu.stat", "nr_throttled 9\nthrottled_usec 3400000\n")
    }

    #[test]
    fn a_quota_below_the_cpus_in_question_spoils_runs_with_more_workers() {
        let found = of(&quota("150000 100000"), cgroup_quota);
        assert_eq!((found.check.state, found.spoils), (Warn, Spoils::MoreWorkersThan(1.5)));
        assert_eq!(found.check.seen, "1.5 CPUs for 2 in question; stopped 3.4 s so far");
        assert!(found.check.cure.unwrap().contains("echo max | sudo tee /"), "the command");
    }

    #[test]
    fn a_quota_that_suffices_and_none_are_well_and_what_is_hidden_is_not() {
        assert_eq!(of(&quota("200000 100000"), cgroup_quota).check.state, Ok);
        assert_eq!(of(&quota("max 100000"), cgroup_quota).check.seen, "none");
        let hidden = Fixture::new().file("proc/self/cgroup", "0::/jobs\n");
        assert_eq!(of(&hidden, cgroup_quota).check.state, Missing);
    }

    #[test]
    fn version_one_is_lifted_with_minus_one() {
        let fixture = Fixture::new()
            .file("proc/self/cgroup", "1:cpu:/\n")
            .file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000")
            .file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000")
            .file("sys/fs/cgroup/cpu/cpu.stat", "throttled_time 0\n");
        let found = of(&fixture, cgroup_quota);
        assert_eq!(found.check.seen, "0.5 CPUs for 2 in question; never stopped yet");
        assert!(found.check.cure.unwrap().contains("echo -1 | sudo tee /"));
    }

    #[test]
    fn a_quota_is_never_rounded_to_none() {
        assert_eq!(
            (worth(1.0), worth(0.001), worth(12.25)),
            ("1 CPU".into(), "under 0.01 CPUs".into(), "12.25 CPUs".into())
        );
    }

    fn cpus(usable: &[bool]) -> Fixture {
        let cpu = |(id, usable): (usize, &bool)| Cpu {
            id: CpuId(id as u32),
            core: id as u32,
            llc: 0,
            node: 0,
            socket: 0,
            usable: *usable,
        };
        Fixture::new().topology(usable.iter().enumerate().map(cpu).collect())
    }

    #[test]
    fn cpus_that_may_not_be_used_spoil_runs_on_them() {
        let found = of(&cpus(&[true, true, false, false]).in_question(&[1, 2]), cpuset);
        assert_eq!((found.check.state, found.check.seen.as_str()), (Warn, "2 may not be used, only 0-1"));
        assert_eq!(found.spoils, Spoils::On(vec![CpuId(2)]));
        assert!(found.check.cure.unwrap().contains("taskset -pc 1-2"));
    }

    #[test]
    fn a_part_of_the_machine_is_enough_unless_it_is_one_cpu() {
        let part =
            cpus(&[true, true, false]).in_question(&[0, 1]).file("proc/self/status", "Cpus_allowed_list:\t0-1\n");
        let found = of(&part, cpuset);
        assert_eq!((found.check.state, found.check.seen.as_str()), (Ok, "0-1 of 0-2"));
        assert!(found.check.why.contains("its affinity mask allows CPUs 0-1"), "who limits it: {found:?}");
        assert_eq!(of(&cpus(&[true, true]), cpuset).check.seen, "0-1, all that are online");
        assert_eq!(of(&cpus(&[true, false]).in_question(&[0]), cpuset).check.state, Warn);
    }
}

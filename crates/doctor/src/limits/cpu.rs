//! CPU time and CPUs that this process may use.

use crate::patient::{labelled, named};
use crate::{Finding, Patient, Spoils};
use host::CpuQuota;
use plan::{Cpu, CpuId};
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
    let online = numbers(patient, |_| true);
    let usable = numbers(patient, |cpu| cpu.usable);
    let closed: BTreeSet<u32> = patient.in_question().difference(&usable).copied().collect();
    if !closed.is_empty() {
        let spoilt = closed.iter().copied().map(CpuId).collect();
        return Finding::warn(NAME, format!("{} may not be used, only {}", labelled(&closed), named(&usable)), why)
            .cured_by(opened(patient, &patient.in_question()))
            .spoiling(Spoils::On(spoilt));
    }
    if usable.len() == 1 {
        let seen = format!("{} alone: no two workers can contend", labelled(&usable));
        let cure = match online.len() {
            1 => "a machine with more CPUs".to_owned(),
            _ => opened(patient, &online),
        };
        return Finding::warn(NAME, seen, why).cured_by(cure).spoiling(Spoils::Unplaced);
    }
    let seen = match usable == online {
        true => format!("{}, all that are online", labelled(&usable)),
        false => format!("{} of {}", labelled(&usable), named(&online)),
    };
    Finding::ok(NAME, seen, why).spoiling(Spoils::Unplaced)
}

fn numbers(patient: &Patient<'_>, which: impl Fn(&Cpu) -> bool) -> BTreeSet<u32> {
    patient.topology.cpus.iter().filter(|cpu| which(cpu)).map(|cpu| cpu.id.0).collect()
}

/// How this process gets the CPUs it wants: by its affinity mask as far as its cpuset reaches, beyond that by the
/// cpuset, which no mask widens. Of a wish for two or more it is enough that two are within reach.
fn opened(patient: &Patient<'_>, wanted: &BTreeSet<u32>) -> String {
    let taskset = |cpus: &BTreeSet<u32>| format!("`taskset -pc {} $$` in this shell", host::format_cpu_list(cpus));
    let Some(cpuset) = host::cpuset(patient.root) else {
        return format!("{}; where a cpuset forbids that, ask who made the cgroup", taskset(wanted));
    };
    let allowed = cpuset.cpus().unwrap_or_default();
    let within: BTreeSet<u32> = wanted.intersection(&allowed).copied().collect();
    match within.len() {
        many if many == wanted.len() => taskset(wanted),
        0 | 1 => format!(
            "ask who made its cpuset {} for more CPUs (`docker run --cpuset-cpus`, systemd's AllowedCPUs=): no affinity \
             mask reaches beyond it",
            cpuset.name
        ),
        _ => format!("{}; its cpuset {} allows no more", taskset(&within), cpuset.name),
    }
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
        assert_eq!(of(&Fixture::new(), cgroup_quota).check.state, Missing, "no /proc says nothing of cgroups");
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
        assert_eq!((found.check.state, found.check.seen.as_str()), (Warn, "CPU 2 may not be used, only 0-1"));
        assert_eq!(found.spoils, Spoils::On(vec![CpuId(2)]));
        assert!(found.check.cure.unwrap().contains("taskset -pc 1-2"));
    }

    #[test]
    fn a_part_of_the_machine_is_enough_unless_it_is_one_cpu() {
        let part =
            cpus(&[true, true, false]).in_question(&[0, 1]).file("proc/self/status", "Cpus_allowed_list:\t0-1\n");
        let found = of(&part, cpuset);
        assert_eq!((found.check.state, found.check.seen.as_str()), (Ok, "CPUs 0-1 of 0-2"));
        assert!(found.check.why.contains("its affinity mask allows CPUs 0-1"), "who limits it: {found:?}");
        assert_eq!(of(&cpus(&[true, true]), cpuset).check.seen, "CPUs 0-1, all that are online");
    }

    /// One CPU of several, in a cpuset with these.
    fn one_of_three(cpuset: Option<&str>) -> Fixture {
        let one = cpus(&[false, true, false]).in_question(&[1]);
        match cpuset {
            None => one,
            Some(list) => {
                one.file("proc/self/cgroup", "0::/jobs\n").file("sys/fs/cgroup/jobs/cpuset.cpus.effective", list)
            }
        }
    }

    #[test]
    fn one_cpu_is_called_so_and_spoils_what_cannot_be_placed_on_it() {
        let found = of(&one_of_three(None), super::cpuset);
        assert_eq!((found.check.state, found.check.seen.as_str()), (Warn, "CPU 1 alone: no two workers can contend"));
        assert_eq!(found.spoils, Spoils::Unplaced);
        assert_eq!(of(&cpus(&[true, true]), super::cpuset).spoils, Spoils::Unplaced, "and so may two");
    }

    #[test]
    fn nobody_is_sent_to_a_cpu_that_his_cpuset_forbids() {
        let cure = |fixture: &Fixture| of(fixture, super::cpuset).check.cure.unwrap();
        assert_eq!(cure(&one_of_three(Some("0-2"))), "`taskset -pc 0-2 $$` in this shell");
        assert!(cure(&one_of_three(Some("1-2"))).starts_with("`taskset -pc 1-2 $$` in this shell; its cpuset /jobs"));
        let narrow = cure(&one_of_three(Some("1")));
        assert!(narrow.contains("cpuset /jobs") && !narrow.contains("taskset"), "{narrow}");
        assert!(cure(&one_of_three(None)).contains("where a cpuset forbids that"));
        assert_eq!(cure(&cpus(&[true])), "a machine with more CPUs");
        let closed = one_of_three(Some("1")).in_question(&[1, 2]);
        assert!(!cure(&closed).contains("taskset"), "the same for CPUs that are asked for: {}", cure(&closed));
    }
}

//! CPUs that a role lists by number.

use crate::bind::BindError;
use crate::scenario::{Case, CpuChoice, Role};
use crate::topology::{Cpu, Topology};
use crate::units::CpuId;
use std::collections::BTreeMap;

/// The CPUs of a role that lists them, one a worker; a short list goes round. Wants a case that [`check`] has passed.
pub(super) fn of<'a>(role: &'a Role, topology: &'a Topology) -> impl Iterator<Item = &'a Cpu> {
    let ids = if let CpuChoice::List(ids) = &role.cpus { ids.as_slice() } else { &[] };
    ids.iter().cycle().take(role.workers as usize).filter_map(|id| topology.cpu(*id))
}

/// Refuses lists that name what is not there, what this process may not use, too few CPUs, or one CPU twice.
pub(super) fn check(case: &Case, topology: &Topology) -> Result<(), BindError> {
    let mut taken: BTreeMap<CpuId, &str> = BTreeMap::new();
    for role in &case.roles {
        let CpuChoice::List(ids) = &role.cpus else { continue };
        ids.iter().try_for_each(|id| check_cpu(role, *id, topology))?;
        check_length(role, ids.len(), case.oversubscribe)?;
        for id in ids.iter().take(role.workers as usize) {
            match taken.insert(*id, &role.name) {
                Some(other) if !case.oversubscribe => return Err(twice(role, *id, other)),
                _ => {}
            }
        }
    }
    Ok(())
}

fn check_cpu(role: &Role, id: CpuId, topology: &Topology) -> Result<(), BindError> {
    let usable = || ranges(topology.cpus.iter().filter(|cpu| cpu.usable).map(|cpu| cpu.id.0));
    match topology.cpu(id) {
        Some(cpu) if cpu.usable => Ok(()),
        Some(_) => Err(BindError::new(
            path(role),
            format!("role `{}`: CPU {id} is online, but the cpuset or the affinity mask takes it away", role.name),
            format!(
                "use {}, or widen the mask: `taskset -p $$` shows it, and `cpuset.cpus.effective` of this process's \
                 cgroup (named in /proc/self/cgroup, under /sys/fs/cgroup) shows the cpuset",
                usable()
            ),
        )),
        None => Err(BindError::new(
            path(role),
            format!("role `{}`: CPU {id} is not online on this machine", role.name),
            format!("the CPUs online are {}", ranges(topology.cpus.iter().map(|cpu| cpu.id.0))),
        )),
    }
}

fn check_length(role: &Role, length: usize, oversubscribe: bool) -> Result<(), BindError> {
    if length >= role.workers as usize || (oversubscribe && length > 0) {
        return Ok(());
    }
    Err(BindError::new(
        path(role),
        format!("role `{}` has {} workers, but its list names {length} CPUs", role.name, role.workers),
        "name a CPU for each worker, or set `oversubscribe = true` to go round the list",
    ))
}

fn twice(role: &Role, id: CpuId, other: &str) -> BindError {
    let by = if role.name == other { "twice".to_owned() } else { format!("that role `{other}` lists too") };
    BindError::new(
        path(role),
        format!("role `{}` lists CPU {id} {by}", role.name),
        "give each worker a CPU of its own, or set `oversubscribe = true` to let them share",
    )
}

fn path(role: &Role) -> String {
    format!("role.{}.cpus", role.name)
}

/// Ascending numbers as Linux lists CPUs: `0-3,8`.
fn ranges(ids: impl Iterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for id in ids {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == id => *last = id,
            _ => runs.push((id, id)),
        }
    }
    let shown = runs.iter().map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join(",") }
}

#[cfg(test)]
mod tests {
    use super::{check, ranges};
    use crate::fixtures::{Scene, two_cpus, two_sockets};

    fn listed(workers: u32, cpus: &[u32]) -> Scene {
        Scene::new().field("x").role("counter", workers, &["add x"]).list(cpus)
    }

    #[test]
    fn ranges_read_as_linux_writes_them() {
        assert_eq!(ranges([0, 1, 2, 3, 8, 10, 11].into_iter()), "0-3,8,10-11");
        assert_eq!(ranges(std::iter::empty()), "none");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_with_those_that_are() {
        let error = check(&listed(2, &[0, 2]).0, &two_cpus()).unwrap_err();
        assert_eq!(error.path, "role.counter.cpus");
        assert!(error.message.contains("CPU 2 is not online"), "{error}");
        assert_eq!(error.cure, "the CPUs online are 0-1");
    }

    #[test]
    fn a_cpu_that_was_taken_away_is_told_from_one_that_is_not_there() {
        let mut machine = two_sockets();
        machine.cpus[3].usable = false;
        let error = check(&listed(1, &[3]).0, &machine).unwrap_err();
        assert!(error.message.contains("online, but the cpuset or the affinity mask"), "{error}");
        for word in ["0-2,4-15", "taskset -p", "cpuset.cpus.effective"] {
            assert!(error.cure.contains(word), "{}", error.cure);
        }
    }

    #[test]
    fn a_short_list_is_refused_unless_it_may_go_round() {
        let error = check(&listed(2, &[0]).0, &two_cpus()).unwrap_err();
        assert!(error.message.contains("2 workers, but its list names 1"), "{error}");
        assert_eq!(check(&listed(2, &[0]).oversubscribed().0, &two_cpus()), Ok(()));
        assert!(check(&listed(2, &[]).oversubscribed().0, &two_cpus()).is_err());
        assert_eq!(check(&listed(1, &[0, 1]).0, &two_cpus()), Ok(()));
    }

    #[test]
    fn a_cpu_listed_twice_is_refused_within_a_role_and_across_roles() {
        let error = check(&listed(2, &[1, 1]).0, &two_cpus()).unwrap_err();
        assert!(error.message.contains("lists CPU 1 twice"), "{error}");
        let two = listed(1, &[1]).role("reader", 1, &["load x"]).list(&[1]);
        let error = check(&two.0, &two_cpus()).unwrap_err();
        assert_eq!(error.path, "role.reader.cpus");
        assert!(error.message.contains("role `counter` lists too"), "{error}");
        assert_eq!(check(&two.oversubscribed().0, &two_cpus()), Ok(()));
    }
}

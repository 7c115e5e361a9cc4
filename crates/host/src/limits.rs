//! What this process may do: its CPUs and who limits them, its open files, its capabilities, whether system calls are
//! filtered.

use crate::cgroup::{ancestors, cgroup_of};
use crate::cpu_list::parse_cpu_list;
use crate::named_rows::row;
use crate::root::Root;
use crate::seccomp::{Seccomp, seccomp};
use std::collections::BTreeSet;

/// CAP_SYS_ADMIN and CAP_PERFMON (capabilities(7), `linux/capability.h`): either lifts perf's paranoid level.
const PERF_CAPABILITIES: u64 = 1 << 21 | 1 << 38;

/// What decides whether the kernel lets this process count.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Privileges {
    /// Whether it holds CAP_PERFMON or CAP_SYS_ADMIN where perf heeds them: in the machine's first user namespace.
    pub may_ignore_paranoid: bool,
    /// Whether it lives in a user namespace of its own, as in a container without root. What capabilities it holds
    /// there are void for perf, and giving it some changes nothing.
    pub user_namespace: bool,
    /// Whether a seccomp filter judges its system calls, as container runtimes install one.
    pub seccomp_filter: bool,
}

/// Reads `/proc/self/status` and `/proc/self/uid_map`; where the first is missing, no privilege and no filter.
///
/// # References
/// perf_event_open(2), "perf_event related configuration files"; user_namespaces(7): the first namespace maps every
/// user to itself. One below it that does the same, which takes root to make, passes for the first here.
pub fn privileges(root: &Root) -> Privileges {
    let status = root.text("proc/self/status").unwrap_or_default();
    let effective = row(&status, "CapEff").and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
    let user_namespace = in_user_namespace(root);
    Privileges {
        may_ignore_paranoid: effective & PERF_CAPABILITIES != 0 && !user_namespace,
        user_namespace,
        seccomp_filter: seccomp(root) == Some(Seccomp::Filter),
    }
}

/// Whether users are mapped otherwise than in the first namespace. Kernels without namespaces have no such file.
pub(crate) fn in_user_namespace(root: &Root) -> bool {
    let is_first = |map: String| map.split_whitespace().eq(["0", "0", "4294967295"]);
    root.text("proc/self/uid_map").is_some_and(|map| !is_first(map))
}

/// How many files this process may have open at once (RLIMIT_NOFILE, the soft limit); `None` where the kernel does not
/// say, [`u64::MAX`] where there is no limit.
///
/// # References
/// proc_pid_limits(5); getrlimit(2).
pub fn open_files_limit(root: &Root) -> Option<u64> {
    let limits = root.text("proc/self/limits")?;
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?.split_whitespace().next()?;
    if soft == "unlimited" { Some(u64::MAX) } else { soft.parse().ok() }
}

/// How many files this process has open under numbers below [`open_files_limit`], the folder that lists them not
/// counted; 0 where the kernel does not say.
pub fn open_files(root: &Root) -> u64 {
    let limit = open_files_limit(root).unwrap_or(u64::MAX);
    let numbers = root.names("proc/self/fd").into_iter().filter_map(|name| name.parse::<u64>().ok());
    // A fixture's list does not hold the descriptor of the look itself.
    let own = u64::from(root.is_system());
    (numbers.filter(|number| *number < limit).count() as u64).saturating_sub(own)
}

/// Who limits this process's CPUs, as half a sentence for error messages: `its affinity mask allows CPUs 0-1, its
/// cpuset /jobs/7 allows 0-3`. Both apply; the cure for the first is `taskset`, for the second the cgroup's owner.
///
/// # References
/// cgroups(7), cpuset(7); `Documentation/admin-guide/cgroup-v2.rst`, cpuset.cpus.effective.
pub fn cpuset_of_self(root: &Root) -> String {
    let status = root.text("proc/self/status").unwrap_or_default();
    let affinity = row(&status, "Cpus_allowed_list").unwrap_or("unknown");
    match cpuset(root) {
        Some(Cpuset { name, list, .. }) => {
            format!("its affinity mask allows CPUs {affinity}, its cpuset {name} allows {list}")
        }
        None => format!("its affinity mask allows CPUs {affinity}, and no cpuset is visible"),
    }
}

/// The cpuset of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpuset {
    /// Path of the cgroup below its mount.
    pub name: String,
    /// Its CPUs in the kernel's notation, not empty. No affinity mask of a process in it reaches beyond them.
    list: String,
}

impl Cpuset {
    /// Its CPUs; `None` where the list is in no notation of the kernel's.
    pub fn cpus(&self) -> Option<BTreeSet<u32>> {
        parse_cpu_list(&self.list)
    }
}

/// The cpuset of this process; `None` where none can be seen. Version 1 before version 2, as the kernel has the
/// controller in one of the two.
///
/// # References
/// cpuset(7); `Documentation/admin-guide/cgroup-v2.rst`, cpuset.cpus.effective.
pub fn cpuset(root: &Root) -> Option<Cpuset> {
    let cgroups = root.text("proc/self/cgroup")?;
    let of = |controller: &str| cgroup_of(&cgroups, controller).map(str::to_owned);
    // A child without the controller has its parent's CPUs.
    let read = |folder: &str, file: &str, path: &str| {
        let nearest = ancestors(path).find_map(|path| root.text(&format!("{folder}{path}/{file}")))?;
        (!nearest.is_empty()).then(|| Cpuset { name: path.to_owned(), list: nearest })
    };
    let v1 = of("cpuset").and_then(|path| read("sys/fs/cgroup/cpuset", "cpuset.effective_cpus", &path));
    v1.or_else(|| of("").and_then(|path| read("sys/fs/cgroup", "cpuset.cpus.effective", &path)))
}

#[cfg(test)]
mod tests {
    use super::{Privileges, cpuset, cpuset_of_self, open_files, open_files_limit, privileges};
    use crate::fixture::Fixture;

    #[test]
    fn privileges_are_read_from_the_status() {
        let status = |caps: &str, seccomp: &str| {
            let text = format!("Name:\tx\nCapEff:\t{caps}\nSeccomp:\t{seccomp}\nSeccomp_filters:\t1\n");
            privileges(&Fixture::new().file("proc/self/status", &text).root())
        };
        let of = |may_ignore_paranoid, seccomp_filter| Privileges {
            may_ignore_paranoid,
            user_namespace: false,
            seccomp_filter,
        };
        assert_eq!(status("0000000000000000", "0"), of(false, false));
        assert_eq!(status("0000004000000000", "2"), of(true, true));
        assert_eq!(status("0000000000200000", "1"), of(true, false));
        assert_eq!(privileges(&Fixture::new().root()), of(false, false));
    }

    #[test]
    fn capabilities_within_a_user_namespace_are_void() {
        let with = |map: &str| {
            let status = "CapEff:\t000001ffffffffff\nSeccomp:\t0\n";
            privileges(&Fixture::new().file("proc/self/status", status).file("proc/self/uid_map", map).root())
        };
        let seen = |map: &str| (with(map).may_ignore_paranoid, with(map).user_namespace);
        assert_eq!(seen("         0          0 4294967295\n"), (true, false));
        assert_eq!(seen("         0       1000          1\n"), (false, true), "unshare -Ur");
        assert_eq!(seen("         0     100000      65536\n"), (false, true), "a container");
        assert_eq!(seen("0 1000 1\n1 100000 65536\n"), (false, true), "a rootless container");
        assert_eq!(seen(""), (false, true), "not mapped yet");
    }

    #[test]
    fn the_soft_limit_of_open_files_is_read() {
        let with = |row: &str| {
            let text = format!("Limit   Soft Limit  Hard Limit  Units\nMax cpu time  1  1  seconds\n{row}\n");
            open_files_limit(&Fixture::new().file("proc/self/limits", &text).root())
        };
        assert_eq!(with("Max open files            1024                 524288               files     "), Some(1024));
        assert_eq!(
            with("Max open files            unlimited            unlimited            files     "),
            Some(u64::MAX)
        );
        assert_eq!((with("Max file locks  5  5  locks"), open_files_limit(&Fixture::new().root())), (None, None));
    }

    #[test]
    fn affinity_and_cpuset_are_both_named() {
        let status = "Cpus_allowed:\t3\nCpus_allowed_list:\t0-1\n";
        let v2 = Fixture::new()
            .file("proc/self/status", status)
            .file("proc/self/cgroup", "0::/jobs/7\n")
            .file("sys/fs/cgroup/jobs/cpuset.cpus.effective", "0-3\n");
        assert_eq!(cpuset_of_self(&v2.root()), "its affinity mask allows CPUs 0-1, its cpuset /jobs/7 allows 0-3");
        let v1 = Fixture::new()
            .file("proc/self/status", status)
            .file("proc/self/cgroup", "3:cpuset:/\n0::/\n")
            .file("sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0\n");
        assert!(cpuset_of_self(&v1.root()).ends_with("its cpuset / allows 0"));
        let bare = cpuset_of_self(&Fixture::new().file("proc/self/status", status).root());
        assert_eq!(bare, "its affinity mask allows CPUs 0-1, and no cpuset is visible");
    }

    #[test]
    fn open_files_are_those_below_the_limit() {
        let fixture = ["0", "1", "2", "9", "251"]
            .iter()
            .fold(Fixture::new(), |fixture, fd| fixture.file(&format!("proc/self/fd/{fd}"), ""));
        assert_eq!(open_files(&fixture.root()), 5);
        let limited = fixture.file("proc/self/limits", "Max open files  20  524288  files\n");
        assert_eq!((open_files(&limited.root()), open_files(&Fixture::new().root())), (4, 0));
    }

    #[test]
    fn a_cpuset_tells_its_cpus() {
        let fixture = Fixture::new()
            .file("proc/self/cgroup", "0::/jobs/7\n")
            .file("sys/fs/cgroup/jobs/7/cpuset.cpus.effective", "1,3\n");
        let seen = cpuset(&fixture.root()).unwrap();
        assert_eq!((seen.name.as_str(), seen.cpus()), ("/jobs/7", Some([1, 3].into())));
        assert_eq!(cpuset(&Fixture::new().root()), None);
    }
}

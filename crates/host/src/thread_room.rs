//! How many threads more this process and its children may have.

use crate::cgroup::{ancestors, cgroup_of};
use crate::limits::in_user_namespace;
use crate::named_rows::row;
use crate::root::Root;

/// Capabilities that lift a user's limit: CAP_SYS_ADMIN and CAP_SYS_RESOURCE (capabilities(7), `linux/capability.h`).
const LIMIT_CAPABILITIES: u64 = 1 << 21 | 1 << 24;

/// Where the pids controller's hierarchy is found: version 1, then version 2, alone or beside a version 1.
const PIDS_MOUNTS: [(&str, &str); 3] =
    [("pids", "sys/fs/cgroup/pids"), ("", "sys/fs/cgroup"), ("", "sys/fs/cgroup/unified")];

/// The tightest limit on threads. A process counts as its threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRoom {
    /// Threads that may be started beside those that live; at least 0.
    pub left: u64,
    /// Who sets the limit.
    pub limit: ThreadLimit,
}

/// Who limits threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadLimit {
    /// RLIMIT_NPROC: so many for this user.
    User(u64),
    /// A cgroup's `pids.max`: so many in it, and the file.
    Cgroup(u64, String),
}

/// The room for threads under the limits that are visible; `None` where there is none. A user's threads are counted as
/// far as `/proc` shows them.
///
/// # References
/// getrlimit(2), RLIMIT_NPROC, which does not bind the first namespace's root nor who may set limits; cgroups(7) and
/// `Documentation/admin-guide/cgroup-v2.rst`, pids.max.
pub fn thread_room(root: &Root) -> Option<ThreadRoom> {
    of_user(root).into_iter().chain(of_cgroups(root)).min_by_key(|room| room.left)
}

fn of_user(root: &Root) -> Option<ThreadRoom> {
    let own = root.text("proc/self/status")?;
    let user = real_user(&own)?;
    let capabilities = row(&own, "CapEff").and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
    if (user == 0 || capabilities & LIMIT_CAPABILITIES != 0) && !in_user_namespace(root) {
        return None;
    }
    let limits = root.text("proc/self/limits")?;
    let most: u64 = row_of_limits(&limits, "Max processes")?.parse().ok()?;
    let processes = root.names("proc").into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let threads = |process: String| {
        let status = root.text(&format!("proc/{process}/status"))?;
        if real_user(&status)? == user { row(&status, "Threads")?.parse::<u64>().ok() } else { None }
    };
    let there: u64 = processes.filter_map(threads).sum();
    Some(ThreadRoom { left: most.saturating_sub(there), limit: ThreadLimit::User(most) })
}

/// proc_pid_status(5): Uid is real, effective, saved, file system.
fn real_user(status: &str) -> Option<u32> {
    row(status, "Uid")?.split_whitespace().next()?.parse().ok()
}

/// The soft limit; `unlimited` is no number.
fn row_of_limits<'a>(limits: &'a str, name: &str) -> Option<&'a str> {
    limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()
}

/// Of this cgroup and those above it, in whichever hierarchy has the controller. An unlimited level says `max`.
fn of_cgroups(root: &Root) -> Vec<ThreadRoom> {
    let Some(cgroups) = root.text("proc/self/cgroup") else { return Vec::new() };
    let level = |folder: String| {
        let number = |file: &str| root.text(&format!("{folder}/{file}"))?.trim().parse::<u64>().ok();
        let (most, there) = (number("pids.max")?, number("pids.current")?);
        let limit = ThreadLimit::Cgroup(most, format!("/{folder}/pids.max"));
        Some(ThreadRoom { left: most.saturating_sub(there), limit })
    };
    let of_mount = |(controller, mount): (&str, &str)| {
        let path = cgroup_of(&cgroups, controller)?;
        Some(ancestors(path).filter_map(|path| level(format!("{mount}{path}"))).collect::<Vec<_>>())
    };
    PIDS_MOUNTS.into_iter().filter_map(of_mount).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::{ThreadLimit, ThreadRoom, thread_room};
    use crate::fixture::Fixture;

    const FIRST_NAMESPACE: &str = "0 0 4294967295\n";

    fn machine(user: u32, capabilities: &str, limit: &str) -> Fixture {
        let status = |user: u32, threads: u32| {
            format!("Name:\tx\nUid:\t{user}\t0\t0\t0\nThreads:\t{threads}\nCapEff:\t{capabilities}\n")
        };
        Fixture::new()
            .file("proc/self/status", &status(user, 2))
            .file("proc/self/uid_map", FIRST_NAMESPACE)
            .file("proc/self/limits", &format!("Max processes  {limit}  63432  processes\n"))
            .file("proc/10/status", &status(user, 2))
            .file("proc/11/status", &status(user, 5))
            .file("proc/12/status", &status(user + 1, 100))
    }

    #[test]
    fn a_user_s_threads_are_counted_against_his_limit() {
        let room = |limit: &str| thread_room(&machine(1000, "0", limit).root());
        assert_eq!(room("100"), Some(ThreadRoom { left: 93, limit: ThreadLimit::User(100) }));
        assert_eq!(room("3"), Some(ThreadRoom { left: 0, limit: ThreadLimit::User(3) }));
        assert_eq!(room("unlimited"), None);
    }

    #[test]
    fn root_and_who_may_set_limits_have_none_outside_of_a_namespace() {
        assert_eq!(thread_room(&machine(0, "0", "100").root()), None);
        assert_eq!(thread_room(&machine(1000, "0000000001000000", "100").root()), None);
        let inside = machine(0, "000001ffffffffff", "100").file("proc/self/uid_map", "0 1000 1\n");
        assert_eq!(thread_room(&inside.root()).map(|room| room.left), Some(93));
    }

    #[test]
    fn the_tightest_of_all_levels_counts() {
        let with = |fixture: Fixture, folder: &str, most: &str| {
            fixture
                .file(&format!("sys/fs/cgroup/{folder}pids.max"), &format!("{most}\n"))
                .file(&format!("sys/fs/cgroup/{folder}pids.current"), "30\n")
        };
        let v2 = machine(1000, "0", "100").file("proc/self/cgroup", "0::/jobs/7\n");
        let v2 = with(with(v2, "jobs/7/", "max"), "jobs/", "40");
        let limit = ThreadLimit::Cgroup(40, "/sys/fs/cgroup/jobs/pids.max".into());
        assert_eq!(thread_room(&v2.root()), Some(ThreadRoom { left: 10, limit }));
        let v1 = Fixture::new().file("proc/self/cgroup", "8:pids:/a\n0::/\n");
        let limit = ThreadLimit::Cgroup(20, "/sys/fs/cgroup/pids/a/pids.max".into());
        assert_eq!(thread_room(&with(v1, "pids/a/", "20").root()), Some(ThreadRoom { left: 0, limit }));
        assert_eq!(thread_room(&Fixture::new().root()), None);
    }
}

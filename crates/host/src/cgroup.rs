//! How long the kernel kept this process's cgroup from running because a CPU quota was used up.

use crate::root::Root;

/// Where the cpu controller's hierarchy is found: version 1, alone or with cpuacct, then version 2, alone or beside a
/// version 1 that has other controllers.
pub(crate) const V1_MOUNTS: [&str; 2] = ["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"];
pub(crate) const V2_MOUNTS: [&str; 2] = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];

/// Throttled time since each cgroup was made: this process's own and the visible ones above it, since a quota anywhere
/// above stops it too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Throttled {
    /// Path of the cgroup below its mount (the topmost as the empty text), and nanoseconds; the process's own first.
    /// The kernel adds the time up over the CPUs on which the cgroup was stopped.
    pub levels: Vec<(String, u64)>,
}

impl Throttled {
    /// Nanoseconds since `earlier`, of the level that was throttled longest: one that stops a cgroup stops those below
    /// it at the same time, so levels do not add up. `None` where no level is in both.
    pub fn since_ns(&self, earlier: &Throttled) -> Option<u64> {
        let since = |(path, ns): &(String, u64)| {
            let (_, then) = earlier.levels.iter().find(|(known, _)| known == path)?;
            ns.checked_sub(*then)
        };
        self.levels.iter().filter_map(since).max()
    }
}

/// Why throttled time is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThrottledError {
    /// `/proc/self/cgroup` is absent or names neither a cgroup of the cpu controller nor one of version 2.
    #[error("/proc/self/cgroup names no cgroup that could have a CPU quota")]
    NoCgroup,
    /// No `cpu.stat` from the named cgroup up tells throttled time: the controller is not enabled there, as in version
    /// 2's topmost cgroup, or /sys/fs/cgroup is not mounted.
    #[error("no cpu.stat of cgroup {0} or one above it tells throttled time: no CPU quota is visible from here")]
    NotTold(String),
}

/// Reads the `cpu.stat` of this process's cgroup and those above it.
///
/// # Errors
/// [`ThrottledError`]: what is missing. Nothing cures it, and where it is missing because there is no quota, nothing
/// needs to.
///
/// # References
/// `Documentation/admin-guide/cgroup-v2.rst`, cpu.stat, throttled_usec; `Documentation/scheduler/sched-bwc.rst`,
/// throttled_time (version 1); cgroups(7), `/proc/pid/cgroup`.
pub fn throttled(root: &Root) -> Result<Throttled, ThrottledError> {
    let cgroups = root.text("proc/self/cgroup").ok_or(ThrottledError::NoCgroup)?;
    let v1 = cgroup_of(&cgroups, "cpu").map(|path| (path, levels(root, &V1_MOUNTS, path, v1_throttled_ns)));
    let v2 = cgroup_of(&cgroups, "").map(|path| (path, levels(root, &V2_MOUNTS, path, v2_throttled_ns)));
    let (path, _) = v1.as_ref().or(v2.as_ref()).ok_or(ThrottledError::NoCgroup)?;
    let not_told = ThrottledError::NotTold((*path).to_owned());
    let told = |(_, levels): (&str, Vec<(String, u64)>)| (!levels.is_empty()).then_some(Throttled { levels });
    v1.and_then(told).or_else(|| v2.and_then(told)).ok_or(not_told)
}

/// The path that `/proc/PID/cgroup` gives for a controller of version 1, or, with the empty name, for version 2.
pub(crate) fn cgroup_of<'a>(cgroups: &'a str, controller: &str) -> Option<&'a str> {
    cgroups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then_some(path)
    })
}

/// A cgroup's path and those above it, the topmost as the empty text. Where a container sees a path of its host's, only
/// the topmost is found below its mount, which then is its own cgroup.
pub(crate) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path.trim_end_matches('/')), |path| path.rfind('/').map(|end| &path[..end]))
}

/// The levels that tell, of the first mount below which one does.
fn levels(root: &Root, mounts: &[&str], path: &str, read: fn(&str) -> Option<u64>) -> Vec<(String, u64)> {
    let of = |mount: &&str| -> Vec<(String, u64)> {
        let level = |path: &str| Some((path.to_owned(), read(&root.text(&format!("{mount}{path}/cpu.stat"))?)?));
        ancestors(path).filter_map(level).collect()
    };
    mounts.iter().map(of).find(|levels| !levels.is_empty()).unwrap_or_default()
}

fn v1_throttled_ns(cpu_stat: &str) -> Option<u64> {
    entry(cpu_stat, "throttled_time")
}

fn v2_throttled_ns(cpu_stat: &str) -> Option<u64> {
    entry(cpu_stat, "throttled_usec")?.checked_mul(1_000)
}

fn entry(cpu_stat: &str, key: &str) -> Option<u64> {
    let value = |line: &str| line.split_once(' ').filter(|(name, _)| *name == key)?.1.trim().parse().ok();
    cpu_stat.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::{Throttled, ThrottledError, throttled};
    use crate::fixture::Fixture;

    fn seen(levels: &[(&str, u64)]) -> Throttled {
        Throttled { levels: levels.iter().map(|(path, ns)| ((*path).to_owned(), *ns)).collect() }
    }

    fn v2_stat(usec: u64) -> String {
        format!("usage_usec 9\nuser_usec 8\nnr_periods 7\nnr_throttled 6\nthrottled_usec {usec}\nnr_bursts 0\n")
    }

    fn v1_stat(ns: u64) -> String {
        format!("nr_periods 7\nnr_throttled 6\nthrottled_time {ns}\n")
    }

    #[test]
    fn version_two_tells_each_level_in_microseconds() {
        let fixture = Fixture::new()
            .file("proc/self/cgroup", "0::/jobs/7\n")
            .file("sys/fs/cgroup/jobs/7/cpu.stat", &v2_stat(5))
            .file("sys/fs/cgroup/jobs/cpu.stat", &v2_stat(40))
            .file("sys/fs/cgroup/cpu.stat", "usage_usec 9\nuser_usec 8\n");
        assert_eq!(throttled(&fixture.root()), Ok(seen(&[("/jobs/7", 5_000), ("/jobs", 40_000)])));
    }

    #[test]
    fn version_one_tells_nanoseconds_and_is_asked_where_it_has_the_controller() {
        let fixture = |mount: &str| {
            Fixture::new()
                .file("proc/self/cgroup", "4:cpuset:/x\n2:cpu,cpuacct:/jobs\n0::/\n")
                .file(&format!("sys/fs/cgroup/{mount}/jobs/cpu.stat"), &v1_stat(123))
                .file(&format!("sys/fs/cgroup/{mount}/cpu.stat"), &v1_stat(0))
                .file("sys/fs/cgroup/unified/cpu.stat", "usage_usec 9\n")
        };
        for mount in ["cpu", "cpu,cpuacct"] {
            assert_eq!(throttled(&fixture(mount).root()), Ok(seen(&[("/jobs", 123), ("", 0)])), "{mount}");
        }
    }

    #[test]
    fn a_container_that_sees_its_host_s_path_finds_its_own_at_the_top() {
        let fixture = Fixture::new()
            .file("proc/self/cgroup", "2:cpu:/docker/abc\n")
            .file("sys/fs/cgroup/cpu/cpu.stat", &v1_stat(77));
        assert_eq!(throttled(&fixture.root()), Ok(seen(&[("", 77)])));
    }

    #[test]
    fn without_a_quota_s_file_it_is_not_zero() {
        let none = Fixture::new();
        assert_eq!(throttled(&none.root()), Err(ThrottledError::NoCgroup));
        let other = Fixture::new().file("proc/self/cgroup", "4:cpuset:/\n");
        assert_eq!(throttled(&other.root()), Err(ThrottledError::NoCgroup));
        let top = Fixture::new().file("proc/self/cgroup", "0::/\n").file("sys/fs/cgroup/cpu.stat", "usage_usec 9\n");
        assert_eq!(throttled(&top.root()), Err(ThrottledError::NotTold("/".to_owned())));
        let garbled = Fixture::new()
            .file("proc/self/cgroup", "0::/a\n")
            .file("sys/fs/cgroup/a/cpu.stat", "throttled_usec -3\nthrottled_usecs 4\n");
        assert_eq!(throttled(&garbled.root()), Err(ThrottledError::NotTold("/a".to_owned())));
    }

    #[test]
    fn the_level_that_was_throttled_longest_counts() {
        let before = seen(&[("/a/b", 10), ("/a", 1_000)]);
        assert_eq!(seen(&[("/a/b", 60), ("/a", 1_007)]).since_ns(&before), Some(50), "not the larger total");
        assert_eq!(seen(&[("/a/b", 10), ("/a", 1_009)]).since_ns(&before), Some(9));
        assert_eq!(before.since_ns(&before), Some(0));
        assert_eq!(seen(&[("/c", 60)]).since_ns(&before), None, "moved between the two readings");
        assert_eq!(seen(&[("/a/b", 9)]).since_ns(&before), None, "made anew under the same name");
    }
}

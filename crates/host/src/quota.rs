//! How much CPU time this process's cgroup may use.

use crate::cgroup::{V1_MOUNTS, V2_MOUNTS, ancestors, cgroup_of};
use crate::root::Root;
use std::path::PathBuf;

/// What limits this process's CPU time.
#[derive(Clone, Debug, PartialEq)]
pub enum CpuQuota {
    /// Its cgroups cannot be seen from here, as in a container that hides `/sys/fs/cgroup` or `/proc`.
    NotVisible,
    /// No cgroup that is visible from here sets a quota.
    None,
    /// The tightest one of its own cgroup and those above it.
    Limited {
        /// CPUs' worth of time: 1.5 where three workers on three CPUs run half of the time.
        cpus: f64,
        /// The file that sets it.
        file: PathBuf,
    },
}

/// Reads the quota of this process's cgroup and of those above it, since each of them stops it.
///
/// # References
/// `Documentation/admin-guide/cgroup-v2.rst`, cpu.max; `Documentation/scheduler/sched-bwc.rst`, cpu.cfs_quota_us,
/// cpu.cfs_period_us; cgroups(7), `/proc/pid/cgroup`.
pub fn cpu_quota(root: &Root) -> CpuQuota {
    let Some(cgroups) = root.text("proc/self/cgroup") else {
        // A kernel without cgroups has no such file, and no quotas.
        return if root.lacks("proc/self", "cgroup") { CpuQuota::None } else { CpuQuota::NotVisible };
    };
    let mut visible = false;
    let mut tightest: Option<(f64, PathBuf)> = None;
    for (controller, mounts, read) in [("cpu", V1_MOUNTS, v1 as Read), ("", V2_MOUNTS, v2)] {
        let Some(path) = cgroup_of(&cgroups, controller) else { continue };
        for folder in mounts.iter().flat_map(|mount| ancestors(path).map(move |path| format!("{mount}{path}"))) {
            visible |= root.path(&format!("{folder}/cgroup.procs")).exists();
            let Some((cpus, file)) = read(root, &folder) else { continue };
            if tightest.as_ref().is_none_or(|(least, _)| cpus < *least) {
                tightest = Some((cpus, root.path(&file)));
            }
        }
    }
    match tightest {
        Some((cpus, file)) => CpuQuota::Limited { cpus, file },
        None if visible => CpuQuota::None,
        None => CpuQuota::NotVisible,
    }
}

/// CPUs' worth of time, and the file that says so, where a folder sets a quota.
type Read = fn(&Root, &str) -> Option<(f64, String)>;

/// A quota of -1 is none.
fn v1(root: &Root, folder: &str) -> Option<(f64, String)> {
    let file = format!("{folder}/cpu.cfs_quota_us");
    let quota_us: u64 = root.number(&file)?;
    let period_us: u64 = root.number(&format!("{folder}/cpu.cfs_period_us"))?;
    (period_us > 0).then(|| (quota_us as f64 / period_us as f64, file))
}

/// `max 100000` is none.
fn v2(root: &Root, folder: &str) -> Option<(f64, String)> {
    let file = format!("{folder}/cpu.max");
    let text = root.text(&file)?;
    let (quota_us, period_us) = text.split_once(' ')?;
    let (quota_us, period_us): (u64, u64) = (quota_us.parse().ok()?, period_us.parse().ok()?);
    (period_us > 0).then(|| (quota_us as f64 / period_us as f64, file))
}

#[cfg(test)]
mod tests {
    use super::{CpuQuota, cpu_quota};
    use crate::fixture::Fixture;

    fn limited(fixture: &Fixture, cpus: f64, file: &str) -> CpuQuota {
        CpuQuota::Limited { cpus, file: fixture.root().path(file) }
    }

    #[test]
    fn the_tightest_of_all_levels_counts_in_version_two() {
        let fixture = Fixture::new()
            .file("proc/self/cgroup", "0::/jobs/7\n")
            .file("sys/fs/cgroup/jobs/7/cpu.max", "200000 100000\n")
            .file("sys/fs/cgroup/jobs/cpu.max", "75000 50000\n")
            .file("sys/fs/cgroup/cgroup.procs", "");
        assert_eq!(cpu_quota(&fixture.root()), limited(&fixture, 1.5, "sys/fs/cgroup/jobs/cpu.max"));
        let free = fixture
            .file("sys/fs/cgroup/jobs/7/cpu.max", "max 100000\n")
            .file("sys/fs/cgroup/jobs/cpu.max", "max 100000\n");
        assert_eq!(cpu_quota(&free.root()), CpuQuota::None);
    }

    #[test]
    fn version_one_has_two_files_and_minus_one_for_none() {
        for mount in ["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"] {
            let fixture = Fixture::new()
                .file("proc/self/cgroup", "2:cpu,cpuacct:/jobs\n0::/\n")
                .file(&format!("{mount}/jobs/cpu.cfs_quota_us"), "50000\n")
                .file(&format!("{mount}/jobs/cpu.cfs_period_us"), "100000\n")
                .file(&format!("{mount}/jobs/cgroup.procs"), "")
                .file(&format!("{mount}/cpu.cfs_quota_us"), "-1\n")
                .file(&format!("{mount}/cpu.cfs_period_us"), "100000\n");
            assert_eq!(cpu_quota(&fixture.root()), limited(&fixture, 0.5, &format!("{mount}/jobs/cpu.cfs_quota_us")));
            let free = fixture.file(&format!("{mount}/jobs/cpu.cfs_quota_us"), "-1\n");
            assert_eq!(cpu_quota(&free.root()), CpuQuota::None);
        }
    }

    #[test]
    fn a_container_that_sees_its_host_s_path_finds_its_own_quota_at_the_top() {
        let fixture = Fixture::new()
            .file("proc/self/cgroup", "0::/../docker/abc\n")
            .file("sys/fs/cgroup/cpu.max", "150000 100000\n");
        assert_eq!(cpu_quota(&fixture.root()), limited(&fixture, 1.5, "sys/fs/cgroup/cpu.max"));
    }

    #[test]
    fn what_cannot_be_seen_is_not_called_free() {
        let hidden = Fixture::new().file("proc/self/cgroup", "0::/jobs/7\n");
        assert_eq!(cpu_quota(&hidden.root()), CpuQuota::NotVisible);
        assert_eq!(cpu_quota(&Fixture::new().root()), CpuQuota::NotVisible, "no /proc");
        let without = Fixture::new().file("proc/self/stat", "1 (x) R\n");
        assert_eq!(cpu_quota(&without.root()), CpuQuota::None, "a kernel without cgroups");
    }
}

//! Time the hypervisor took from this machine.

use crate::cpu_rows::cpu_rows;
use crate::root::Root;
use nix::unistd::{SysconfVar, sysconf};
use plan::CpuId;

/// CPU time since boot over all CPUs, in the kernel's ticks (`sysconf(_SC_CLK_TCK)` a second, usually 100). Only
/// differences and their ratio mean something.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CpuTicks {
    /// Ticks in which a CPU was runnable and the hypervisor ran something else. A hypervisor that does not report it
    /// leaves 0, so 0 is no proof of a quiet host.
    pub steal: u64,
    /// Ticks of every kind, idle and stolen ones included.
    pub total: u64,
}

impl CpuTicks {
    /// Stolen ticks as a share, 0 to 1, of all ticks since `earlier`; `None` where not one tick has passed.
    pub fn stolen_share_since(self, earlier: CpuTicks) -> Option<f64> {
        let total = self.total.checked_sub(earlier.total).filter(|ticks| *ticks > 0)?;
        Some(self.steal.saturating_sub(earlier.steal) as f64 / total as f64)
    }
}

/// The first row of `/proc/stat`; `None` where there is none, or the kernel is too old for a `steal` column.
///
/// # References
/// proc_stat(5); guest time is part of user time.
pub fn stolen_ticks(root: &Root) -> Option<CpuTicks> {
    ticks(&root.text("proc/stat")?, None)
}

/// Nanoseconds since boot for which `cpu` was runnable and the hypervisor ran something else, in steps of the kernel's
/// tick (10 ms where `sysconf(_SC_CLK_TCK)` is 100, as nearly everywhere); `None` where `/proc/stat` has no row for the
/// CPU, or none with the column. A hypervisor that does not report it leaves 0.
///
/// Costs the kernel a pass over all CPUs and interrupts, 10 µs with two of them: not for inside a window.
///
/// # References
/// proc_stat(5); sysconf(3).
pub fn stolen_ns(root: &Root, cpu: CpuId) -> Option<u64> {
    let ticks = ticks(&root.text("proc/stat")?, Some(cpu))?;
    let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().and_then(|rate| u64::try_from(rate).ok())?;
    ticks.steal.checked_mul(1_000_000_000_u64.checked_div(per_second)?)
}

/// The row of one CPU, or of all together.
fn ticks(stat: &str, cpu: Option<CpuId>) -> Option<CpuTicks> {
    let row = cpu_rows(stat).find(|row| row.cpu == cpu.map(|cpu| cpu.0))?;
    Some(CpuTicks { steal: row.steal()?, total: row.total() })
}

#[cfg(test)]
mod tests {
    use super::{CpuTicks, stolen_ns, stolen_ticks};
    use crate::fixture::Fixture;
    use plan::CpuId;

    #[test]
    fn steal_is_a_share_of_all_ticks_and_guest_time_is_not_counted_twice() {
        let fixture = Fixture::new().file("proc/stat", "cpu  100 1 50 800 9 3 7 30 90 2\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
        let seen = stolen_ticks(&fixture.root()).unwrap();
        assert_eq!(seen, CpuTicks { steal: 30, total: 1000 });
        assert_eq!(seen.stolen_share_since(CpuTicks { steal: 20, total: 900 }), Some(0.1));
        assert_eq!(seen.stolen_share_since(seen), None);
    }

    #[test]
    fn a_kernel_without_the_column_says_nothing() {
        assert_eq!(stolen_ticks(&Fixture::new().file("proc/stat", "cpu  100 1 50 800\n").root()), None);
        assert_eq!(stolen_ticks(&Fixture::new().root()), None);
    }

    #[test]
    fn one_cpu_s_stolen_time_is_its_own_row_s() {
        let stat = "cpu  9 9 9 9 9 9 9 99 9 9\ncpu1 1 1 1 1 1 1 1 7 1 1\ncpu10 1 1 1 1 1 1 1 3 1 1\ncpu2 1 1 1 1\n";
        let root = Fixture::new().file("proc/stat", stat);
        let of = |cpu| stolen_ns(&root.root(), CpuId(cpu));
        // Linux gives every program ticks of a hundredth of a second (USER_HZ) on all of the lab's architectures.
        assert_eq!((of(1), of(10)), (Some(70_000_000), Some(30_000_000)));
        assert_eq!((of(2), of(0)), (None, None), "a row without the column, and no row");
    }
}

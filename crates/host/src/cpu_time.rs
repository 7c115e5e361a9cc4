//! How busy each CPU has been, whoever ran there.

use crate::cpu_rows::{CpuRow, cpu_rows};
use crate::root::Root;
use plan::CpuId;
use std::collections::BTreeMap;

/// Ticks since boot, by CPU: those in which some process or kernel thread ran, and all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuTimes(BTreeMap<u32, (u64, u64)>);

/// Reads the rows of `/proc/stat` that belong to one CPU; `None` where there is none.
///
/// The kernel gives a whole tick, 10 ms or less, to whoever runs when it comes, so that a short reading is rough. In a
/// container the table is usually the host's, and then shows what `/proc` otherwise hides.
///
/// # References
/// proc_stat(5). Time in interrupts and stolen time count as neither busy nor idle here; guest time is part of user
/// time.
pub fn cpu_times(root: &Root) -> Option<CpuTimes> {
    let stat = root.text("proc/stat")?;
    let row = |row: CpuRow| Some((row.cpu?, (row.busy(), row.total())));
    let rows: BTreeMap<u32, (u64, u64)> = cpu_rows(&stat).filter_map(row).collect();
    (!rows.is_empty()).then_some(CpuTimes(rows))
}

impl CpuTimes {
    /// The share, 0 to 1, of the time since `earlier` in which something ran on `cpu`; `None` where no tick has passed
    /// or the CPU is not in both.
    pub fn busy_since(&self, earlier: &CpuTimes, cpu: CpuId) -> Option<f64> {
        let ((busy, all), (busy_then, all_then)) = (self.0.get(&cpu.0)?, earlier.0.get(&cpu.0)?);
        let passed = all.checked_sub(*all_then).filter(|ticks| *ticks > 0)?;
        Some((busy.saturating_sub(*busy_then) as f64 / passed as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::{CpuTimes, cpu_times};
    use crate::fixture::Fixture;
    use plan::CpuId;

    fn read(rows: &str) -> Option<CpuTimes> {
        cpu_times(&Fixture::new().file("proc/stat", rows).root())
    }

    #[test]
    fn busy_time_is_what_ran_between_two_readings() {
        let before = read("cpu  9 9 9 9\ncpu0 10 0 5 100 0 0 0 0 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\nintr 5\n").unwrap();
        let after = read("cpu  9 9 9 9\ncpu0 13 1 6 103 1 1 0 0 3 0\ncpu1 1 1 1 1 1 1 1 1 0 0\nintr 6\n").unwrap();
        assert_eq!(after.busy_since(&before, CpuId(0)), Some(0.5));
        assert_eq!(after.busy_since(&before, CpuId(1)), None, "no tick has passed");
        assert_eq!(after.busy_since(&before, CpuId(2)), None);
    }

    #[test]
    fn a_table_without_cpus_is_none() {
        assert_eq!((read("cpu  9 9 9 9\n"), read("")), (None, None));
        assert_eq!(cpu_times(&Fixture::new().root()), None);
    }
}

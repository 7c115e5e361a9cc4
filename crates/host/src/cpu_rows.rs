//! The rows of `/proc/stat` that tell how CPUs have spent their time.

/// One such row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CpuRow {
    /// The CPU's number; `None` for the row of all CPUs together.
    pub(crate) cpu: Option<u32>,
    /// Ticks since boot, in the order of proc_stat(5): user nice system idle iowait irq softirq steal. Guest time is
    /// left out, since it is part of user time. Old kernels have fewer columns, but four at least.
    ticks: Vec<u64>,
}

/// The rows in `stat`, the text of `/proc/stat`.
///
/// # References
/// proc_stat(5).
pub(crate) fn cpu_rows(stat: &str) -> impl Iterator<Item = CpuRow> {
    stat.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let number = words.next()?.strip_prefix("cpu")?;
        let cpu = if number.is_empty() { None } else { Some(number.parse().ok()?) };
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).take(8).collect();
        (ticks.len() >= 4).then_some(CpuRow { cpu, ticks })
    })
}

impl CpuRow {
    /// Ticks of user, nice and system time: some process or kernel thread ran.
    pub(crate) fn busy(&self) -> u64 {
        sum(&self.ticks[..3])
    }

    /// Ticks of every kind.
    pub(crate) fn total(&self) -> u64 {
        sum(&self.ticks)
    }

    /// Stolen ticks; `None` where the kernel is too old for the column.
    pub(crate) fn steal(&self) -> Option<u64> {
        self.ticks.get(7).copied()
    }
}

/// Columns that a broken emulation fills with anything make no sum overflow.
fn sum(ticks: &[u64]) -> u64 {
    ticks.iter().fold(0, |sum, ticks| sum.saturating_add(*ticks))
}

#[cfg(test)]
mod tests {
    use super::cpu_rows;

    #[test]
    fn rows_of_one_cpu_and_of_all_are_told_apart() {
        let stat =
            "cpu  100 1 50 800 9 3 7 30 90 2\ncpu0 1 2 3 4\ncpu10 1 1 1 1 1 1 1 8\ncpux 1 1 1 1\ncpu2 1 1 1\nintr 5\n";
        let seen: Vec<_> = cpu_rows(stat).map(|row| (row.cpu, row.busy(), row.total(), row.steal())).collect();
        assert_eq!(
            seen,
            [(None, 151, 1000, Some(30)), (Some(0), 6, 10, None), (Some(10), 3, 15, Some(8))],
            "guest time is not counted twice, and what is no row of a CPU is left out"
        );
    }

    #[test]
    fn no_sum_overflows() {
        let most = u64::MAX;
        let row = cpu_rows(&format!("cpu0 {most} {most} 1 {most} 0 0 0 5\n")).next().expect("a row");
        assert_eq!((row.busy(), row.total(), row.steal()), (most, most, Some(5)));
    }
}

//! What operations cost on a worker's CPU, as it timed them before a repetition's warm-up.

use serde::{Deserialize, Serialize};

/// What a worker's own operations cost it that wait for no other worker, nanoseconds each; and how long waking one
/// takes. `None` where it could not be timed here. Each is the shortest of several tries: what disturbs a try makes it
/// longer.
///
/// These are the figures that a model of this machine needs beside the probes of lines between CPUs. They are of one
/// CPU in one repetition: a busy sibling thread or another clock changes them all.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CostProbe {
    /// A `load`, in a compiled loop of loads of one word.
    pub load_ns: Option<f64>,
    /// A plain `store`, in a loop of stores.
    pub store_ns: Option<f64>,
    /// A `bump` of one word, in a loop of bumps: about what a store takes to reach a load behind it.
    pub bump_ns: Option<f64>,
    /// An `add`, in a loop of these.
    pub atomic_ns: Option<f64>,
    /// A `fence`, in a loop of these.
    pub fence_ns: Option<f64>,
    /// A `pause`, in a loop of these.
    pub pause_ns: Option<f64>,
    /// A `flush` of a line that is in no cache, in a loop of these.
    pub flush_ns: Option<f64>,
    /// An instruction of straight code in two chains that depend on nothing else.
    pub instruction_ns: Option<f64>,
    /// A read of the clock that everything is timed with.
    pub clock_ns: Option<f64>,
    /// The shortest system call.
    pub syscall_ns: Option<f64>,
    /// A futex call on the segment that finds nobody to wake.
    pub futex_ns: Option<f64>,
    /// From before a wake-up call until the worker that slept on it, alone on its CPU, runs: the median. The sleeper's
    /// figure; half of the workers of a ring sleep.
    pub wake_ns: Option<f64>,
    /// A load that depends on the one before, served by the first level.
    pub l1_ns: Option<f64>,
    /// The same, served by the second level.
    pub l2_ns: Option<f64>,
    /// The same, served by the last level.
    pub llc_ns: Option<f64>,
    /// The same, served by memory; 4 KiB pages.
    pub memory_ns: Option<f64>,
}

impl CostProbe {
    /// The median of each figure over those that have it.
    pub fn median<'a>(probes: impl IntoIterator<Item = &'a CostProbe>) -> CostProbe {
        let mut pooled: [Vec<f64>; 16] = Default::default();
        for probe in probes {
            let mut probe = *probe;
            probe.each().into_iter().zip(&mut pooled).for_each(|(figure, pool)| pool.extend(*figure));
        }
        let mut median = CostProbe::default();
        for (figure, pool) in median.each().into_iter().zip(&mut pooled) {
            pool.sort_by(f64::total_cmp);
            *figure = pool.get(pool.len() / 2).copied();
        }
        median
    }

    /// The same with what it lacks from another.
    pub fn or(mut self, mut other: CostProbe) -> CostProbe {
        for (figure, spare) in self.each().into_iter().zip(other.each()) {
            *figure = figure.or(*spare);
        }
        self
    }

    fn each(&mut self) -> [&mut Option<f64>; 16] {
        [
            &mut self.load_ns,
            &mut self.store_ns,
            &mut self.bump_ns,
            &mut self.atomic_ns,
            &mut self.fence_ns,
            &mut self.pause_ns,
            &mut self.flush_ns,
            &mut self.instruction_ns,
            &mut self.clock_ns,
            &mut self.syscall_ns,
            &mut self.futex_ns,
            &mut self.wake_ns,
            &mut self.l1_ns,
            &mut self.l2_ns,
            &mut self.llc_ns,
            &mut self.memory_ns,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::CostProbe;

    #[test]
    fn the_median_is_each_figures_own_and_missing_is_not_zero() {
        let probe = |load, wake| CostProbe { load_ns: Some(load), wake_ns: wake, ..CostProbe::default() };
        let seen = CostProbe::median(&[probe(3.0, None), probe(1.0, Some(9.0)), probe(2.0, None)]);
        assert_eq!(seen, probe(2.0, Some(9.0)));
        assert_eq!(CostProbe::median(&[]), CostProbe::default());
    }
}

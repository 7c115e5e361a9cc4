//! Units and identifiers: a number that crosses a module boundary says what it counts.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes of one cache line on every machine the lab knows (x86-64, Arm Neoverse): the unit in which coherence moves
/// data. If a machine differs, every `line` in the results is wrong.
pub const CACHE_LINE_BYTES: u64 = 64;

/// Bytes of the pair of lines that an adjacent-line prefetcher fetches together (Intel SDM, optimisation manual,
/// "spatial prefetcher"). What must not disturb a measurement stands this far apart.
pub const LINE_PAIR_BYTES: u64 = 128;

/// Bytes of the smallest page; the fields area starts on one. A copy of the fields at a multiple of it lies in the same
/// L1 sets as the original: 64 sets of 64-byte lines on every x86-64 to date. If a page is larger, nothing breaks.
pub const PAGE_BYTES: u64 = 4096;

/// Bytes of a huge page: what one entry of the second level of an x86-64 page table maps (Intel SDM 3A, 4.5), and of an
/// Arm one with pages of 4 KiB. If a machine's differ, regions of `2MiB` cannot be had there.
pub const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// A logical CPU as Linux numbers it (`/sys/devices/system/cpu/cpuN`).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CpuId(pub u32);

/// A worker's index over all roles of an arm, from 0, in the order of the roles. `[me]` is this index.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerIndex(pub u32);

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for WorkerIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A length of time in nanoseconds, of no particular clock.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

/// What a `sleep` takes beyond its time: the kernel's default timer slack, that of a thread under the default policy
/// (prctl(2), PR_SET_TIMERSLACK). If a machine's differs, loops that sleep are estimated and modelled too fast or too slow.
pub const TIMER_SLACK: Nanos = Nanos(50_000);

impl Nanos {
    /// The same length as a [`std::time::Duration`].
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }
}

impl fmt::Display for Nanos {
    /// The shortest exact form: `250ns`, `20us`, `100ms`, `2s`, `1h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 5] =
            [(3_600_000_000_000, "h"), (60_000_000_000, "min"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
        for (unit, name) in UNITS {
            if self.0 >= unit && self.0.is_multiple_of(unit) {
                return write!(f, "{}{name}", self.0 / unit);
            }
        }
        write!(f, "{}ns", self.0)
    }
}

/// How fast the workers' clock ticks: what turns recorded ticks into nanoseconds and back. Calibrated by `shm-layout`.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct TickRate {
    /// Ticks a nanosecond, above 0.
    pub ticks_per_ns: f64,
}

impl TickRate {
    /// Nanoseconds to ticks, rounded down.
    pub fn ticks(self, ns: u64) -> u64 {
        (ns as f64 * self.ticks_per_ns) as u64
    }

    /// Ticks to nanoseconds.
    pub fn ns(self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_per_ns
    }
}

#[cfg(test)]
mod tests {
    use super::{Nanos, TickRate};

    #[test]
    fn ticks_and_nanoseconds_convert_both_ways() {
        let rate = TickRate { ticks_per_ns: 2.5 };
        assert_eq!((rate.ticks(100), rate.ns(250)), (250, 100.0));
    }

    #[test]
    fn nanos_print_in_the_largest_exact_unit() {
        let shown = [0, 7, 1_500, 20_000, 100_000_000, 2_000_000_000].map(|n| Nanos(n).to_string());
        assert_eq!(shown, ["0ns", "7ns", "1500ns", "20us", "100ms", "2s"]);
        let long = [90, 120, 3_600, 86_400].map(|s: u64| Nanos(s * 1_000_000_000).to_string());
        assert_eq!(long, ["90s", "2min", "1h", "24h"]);
    }
}

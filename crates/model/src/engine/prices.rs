//! The machine's figures in picoseconds, and what is drawn of them.

use crate::chance::Chance;
use crate::machine::{Distance, Machine};
use crate::time::{Ps, ps};
use crate::way::Way;

/// One of the two ways of a fetch, the request's or the answer's: at least so long, and up to `span` longer.
#[derive(Copy, Clone, Debug)]
struct HalfFetch {
    least: Ps,
    span: Ps,
}

/// Half of the distance between the quartiles of a fetch, in the most that its answer deviates: half of a number drawn
/// alike between -1 and 1 lies between the halves.
const QUARTILE: f64 = 0.5;

impl HalfFetch {
    fn of(distance: &Distance) -> HalfFetch {
        let spread = distance.spread.clamp(0.0, Distance::MOST_SPREAD);
        let (half_ns, deviates_ns) = (distance.fetch_ns / 2.0, distance.fetch_ns * spread / QUARTILE);
        HalfFetch { least: ps(half_ns - deviates_ns).max(1), span: ps(2.0 * deviates_ns) }
    }
}

/// The longest tenure. When a core gives a line up has nothing to do with where its program stands: single tenures are
/// drawn up to this, all alike. Were all equally long, a program whose loop is shorter would lose its line at the same
/// of its operations each time.
#[derive(Copy, Clone, Debug)]
struct LongestTenure(Ps);

impl LongestTenure {
    /// Such that as many passes of the contended probe begin in a tenure, on average, as the figure holds. The first
    /// begins with it and each a `bump_ns` after the last: over tenures up to L, which is n and a rest of them, n - n
    /// (n + 1) / 2 L begin after the first.
    fn of(tenure_ns: f64, bump_ns: f64) -> LongestTenure {
        let after_first = tenure_ns / bump_ns - 1.0;
        if after_first <= 0.0 {
            return LongestTenure(0);
        }
        let n = (2.0 * after_first).floor() + 1.0;
        LongestTenure(ps(bump_ns * n * (n + 1.0) / (2.0 * (n - after_first))))
    }

    #[inline(always)]
    fn draw(self, chance: &mut Chance) -> Ps {
        chance.below(self.0)
    }
}

/// What everything costs. At least one picosecond each: what takes no time at all would never let time go on.
#[derive(Debug)]
pub(super) struct Prices {
    pub(super) load: Ps,
    pub(super) store: Ps,
    pub(super) bump: Ps,
    pub(super) atomic: Ps,
    pub(super) fence: Ps,
    pub(super) pause: Ps,
    pub(super) flush: Ps,
    instruction_ns: f64,
    /// One instruction.
    pub(super) instruction: Ps,
    pub(super) clock: Ps,
    pub(super) syscall: Ps,
    pub(super) futex: Ps,
    pub(super) wake: Ps,
    pub(super) second: Ps,
    pub(super) last: Ps,
    pub(super) memory: Ps,
    /// By distance.
    half: [HalfFetch; 3],
    tenure: [LongestTenure; 3],
    pub(super) store_buffer: usize,
    pub(super) window: u64,
}

impl Prices {
    pub(super) fn of(machine: &Machine) -> Prices {
        let (costs, caches) = (&machine.costs, &machine.caches);
        let distances = [machine.distances.cluster, machine.distances.socket, machine.distances.machine];
        let price = |ns| ps(ns).max(1);
        Prices {
            load: price(costs.load_ns),
            store: price(costs.store_ns),
            bump: price(costs.bump_ns),
            atomic: price(costs.atomic_ns),
            fence: price(costs.fence_ns),
            pause: price(costs.pause_ns),
            flush: price(costs.flush_ns),
            instruction_ns: costs.instruction_ns,
            instruction: price(costs.instruction_ns),
            clock: price(costs.clock_ns),
            syscall: price(costs.syscall_ns),
            futex: price(costs.futex_ns),
            wake: price(costs.wake_ns),
            second: ps(caches.l2.ns),
            last: price(caches.llc.ns),
            memory: price(caches.memory_ns),
            half: distances.each_ref().map(HalfFetch::of),
            tenure: distances.map(|d| LongestTenure::of(d.tenure_ns, costs.bump_ns)),
            store_buffer: costs.store_buffer.max(1) as usize,
            window: u64::from(costs.window).max(1),
        }
    }

    pub(super) fn instructions(&self, count: u32) -> Ps {
        ps(f64::from(count) * self.instruction_ns)
    }

    /// The shortest that a request takes over a distance: nobody there can take a line away sooner.
    pub(super) fn soonest(&self, distance: usize) -> Ps {
        self.half[distance].least
    }

    /// What a request or an answer takes over a distance.
    #[inline(always)]
    pub(super) fn half(&self, distance: usize, way: Way) -> Ps {
        let half = &self.half[distance];
        half.least + way.part_of(half.span)
    }

    /// What the kernel takes for what usually takes `usual`: from half of it to half more, all alike. No two calls go
    /// through the same caches and branches; were they equally long, two workers could meet each other in the kernel
    /// for ever.
    pub(super) fn draw_kernel(&self, usual: Ps, chance: &mut Chance) -> Ps {
        usual / 2 + chance.below(usual)
    }

    /// A tenure.
    #[inline(always)]
    pub(super) fn draw_tenure(&self, distance: usize, chance: &mut Chance) -> Ps {
        self.tenure[distance].draw(chance).max(1)
    }
}

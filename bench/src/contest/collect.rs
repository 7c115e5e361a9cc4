//! From the records of a batch to its quads.

use crate::contest::Setting;
use crate::contest::arena::Arena;
use crate::contest::evictions::{Rule, Seen};
use crate::schedule::{Comparison, Quad};
use plan::TickRate;
use std::sync::atomic::Ordering;

/// Four neighbouring slices, as kept: every figure is nanoseconds a pass, the mean of both processes; of a pass of
/// either, where they take one lock.
#[derive(Copy, Clone, Debug)]
pub(crate) struct KeptQuad {
    /// What it compares.
    pub(crate) comparison: Comparison,
    /// Its batch: quads of one batch are neighbours in time.
    pub(crate) batch: u64,
    /// Contestant and reference in the first and in the second pair; `None` where an eviction fell in the pair.
    pub(crate) pairs: [Option<(f64, f64)>; 2],
    /// One-way transfer time before and after it, nanoseconds.
    pub(crate) transfer_ns: [f64; 2],
}

/// Reads the records of a batch, leaving out pairs in which one process was evicted.
pub(crate) fn collect(
    setting: Setting,
    rule: Rule,
    quads: &[Quad],
    arena: &Arena,
    rate: TickRate,
    batch: u64,
) -> Vec<KeptQuad> {
    let slices = || quads.iter().flat_map(|quad| quad.sides()).enumerate();
    let of = |process| -> Vec<Seen> { slices().map(|(n, side)| arena.record(process, n).get(side)).collect() };
    let figures = ns_per_pass(setting, rule, [of(0), of(1)], rate);
    let transfer_ns = |quad: usize| {
        let nearest = arena.transfer(quad.min(quads.len() - 1)).load(Ordering::Relaxed);
        nearest as f64 / 1e3 / rate.ticks_per_ns
    };
    let quad = |(number, quad): (usize, &Quad)| {
        let pair = |first: usize| {
            let (one, other) = (figures[number * 4 + first]?, figures[number * 4 + first + 1]?);
            Some(if quad.order()[first] { (one, other) } else { (other, one) })
        };
        KeptQuad {
            comparison: quad.comparison,
            batch,
            pairs: [pair(0), pair(2)],
            transfer_ns: [transfer_ns(number), transfer_ns(number + 1)],
        }
    };
    quads.iter().enumerate().map(quad).collect()
}

/// By slice; `None` where a process was evicted in it, or no pass was made.
fn ns_per_pass(setting: Setting, rule: Rule, seen: [Vec<Seen>; 2], rate: TickRate) -> Vec<Option<f64>> {
    let ran = seen.each_ref().map(|seen| rule.ran_through(seen, rate));
    let alone = |seen: &Seen| (seen.passes > 0).then(|| rate.ns(seen.ticks) / seen.passes as f64);
    let figure = |slice: usize| {
        if !(ran[0][slice] && ran[1][slice]) {
            return None;
        }
        let [first, second] = seen.each_ref().map(|seen| &seen[slice]);
        if setting.shares_lock() {
            // Both saw the passes of both: the one that saw more of the slice is believed.
            return alone(if first.ticks >= second.ticks { first } else { second });
        }
        alone(first).zip(alone(second)).map(|(first, second)| (first + second) / 2.0)
    };
    (0..seen[0].len()).map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::Side;

    const RATE: TickRate = TickRate { ticks_per_ns: 2.0 };

    fn seen(passes: u64, ticks: u64) -> Seen {
        Seen { side: Side::Reference, passes, ticks, longest: 40_000, chunks: ticks / 40_000, queued_ns: 0 }
    }

    #[test]
    fn processes_with_a_lock_each_are_averaged() {
        let figure = |first, second| ns_per_pass(Setting::Free, Rule::AnyGap, [vec![first], vec![second]], RATE)[0];
        assert_eq!(figure(seen(1_000, 800_000), seen(2_000, 800_000)), Some(300.0));
        assert_eq!(figure(seen(0, 800_000), seen(2_000, 800_000)), None);
        assert_eq!(figure(Seen { longest: 400_000, ..seen(1_000, 800_000) }, seen(2_000, 800_000)), None);
    }

    #[test]
    fn passes_on_one_lock_are_those_of_both_as_the_longer_look_saw_them() {
        let figure =
            |first, second| ns_per_pass(Setting::Contended, Rule::UnlikeFellows, [vec![first], vec![second]], RATE)[0];
        assert_eq!(figure(seen(1_000, 800_000), seen(9, 40_000)), Some(400.0));
        assert_eq!(figure(seen(9, 40_000), seen(2_000, 800_000)), Some(200.0));
        assert_eq!(figure(seen(0, 0), seen(2_000, 800_000)), Some(200.0), "one slept through the slice");
    }
}

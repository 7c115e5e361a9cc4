//! From quads to a row: the median ratio, its interval, the control's, the verdict.
//!
//! The interval is a block bootstrap over neighbouring quads of one batch (Künsch 1989, non-overlapping): neighbours
//! see the same state of the machine and are no independent samples. The median of pair ratios is resampled; the ends
//! are quantiles of that.

use crate::contest::collect::KeptQuad;
use crate::contest::duel::{Duel, Fought};
use crate::contest::{Contest, Setting};
use crate::order;
use crate::schedule::Comparison;
use crate::verdict::Verdict;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use record::Interval;
use serde::Serialize;

/// Quads in one resampled block: some 30 ms of machine time, control quads between them included.
const BLOCK_QUADS: usize = 8;
/// Level of a ratio's interval.
const RATIO_LEVEL: f64 = 0.95;
/// Resamples of a bootstrap.
const RESAMPLES: usize = 4_000;
/// Transfer times further apart than this are different regimes (the lab's rule).
const REGIME_STEP: f64 = 1.4;

/// One subject in one setting.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// The setting's name.
    pub(crate) setting: &'static str,
    /// The step, or the kind of lock.
    pub(crate) name: &'static str,
    /// Whether the exit status looks at it.
    pub(crate) judged: bool,
    /// Pairs of contestant's and reference's slices that counted.
    pub(crate) pairs_kept: usize,
    /// Pairs with an eviction in them, or in another regime.
    pub(crate) pairs_dropped: usize,
    /// Median nanoseconds a pass of the reference.
    pub(crate) reference_ns_per_op: f64,
    /// Median nanoseconds a pass of the contestant.
    pub(crate) contestant_ns_per_op: f64,
    /// Contestant over reference, 95 %; `None` with too few pairs.
    pub(crate) ratio: Option<Interval>,
    /// Reference over reference, at the contest's [level](Contest::control_level).
    pub(crate) control: Option<Interval>,
    /// Share of the lab's acquisitions whose first attempt failed, in both processes and all its slices; `None` where
    /// it took no lock.
    pub(crate) contended_share: Option<f64>,
    /// The judgement.
    pub(crate) verdict: Verdict,
    /// Median one-way transfer time of the regime these figures are from.
    pub(crate) regime_transfer_ns: f64,
    /// Other regimes seen: transfer time, pairs and median ratio.
    pub(crate) other_regimes: Vec<OtherRegime>,
}

/// What was seen where lines took another time to travel.
#[derive(Copy, Clone, Debug, Serialize)]
pub(crate) struct OtherRegime {
    transfer_ns: f64,
    pairs: usize,
    ratio: f64,
}

/// Judges what a duel brought, which is to be `wanted` pairs of each comparison.
pub(crate) fn row(duel: &Duel, fought: &Fought, wanted: u32, seed: u64) -> Row {
    let &Duel { contest, setting, subject, .. } = duel;
    let quads = &fought.quads;
    let regimes = regimes(setting, quads);
    let (headline, others) = regimes.split_first().map_or((&[][..], &[][..]), |(h, o)| (h.as_slice(), o));
    let ratio = interval(headline, Comparison::Contest, RATIO_LEVEL, seed);
    let control = control(contest, headline, seed);
    let pairs: Vec<(f64, f64)> = pairs_of(headline, Comparison::Contest).collect();
    let all = quads.iter().filter(|quad| quad.comparison == Comparison::Contest).count() * 2;
    let enough = pairs_kept(setting, quads) >= wanted as usize;
    Row {
        setting: setting.name(),
        name: subject.name(),
        judged: setting.is_judged(),
        pairs_kept: pairs.len(),
        pairs_dropped: all - pairs.len(),
        reference_ns_per_op: median(pairs.iter().map(|p| p.1).collect()),
        contestant_ns_per_op: median(pairs.iter().map(|p| p.0).collect()),
        ratio,
        control,
        contended_share: fought.contended_share(),
        verdict: match enough {
            true => Verdict::of(ratio, control, contest.bar(), contest.control_width()),
            false => Verdict::Unresolved,
        },
        regime_transfer_ns: median(headline.iter().map(|quad| quad.transfer_ns[0]).collect()),
        other_regimes: others.iter().filter_map(|regime| other(regime)).collect(),
    }
}

/// Pairs that count so far, of the comparison that has fewer.
fn pairs_kept(setting: Setting, quads: &[KeptQuad]) -> usize {
    let regimes = regimes(setting, quads);
    let headline = regimes.first().map_or(&[][..], Vec::as_slice);
    let count = |comparison| pairs_of(headline, comparison).count();
    count(Comparison::Contest).min(count(Comparison::Control))
}

/// Whether a duel has brought what its verdict needs: the pairs, enough blocks of them for an interval, and where a
/// lock is waited for, whose slices differ more than a number of pairs foresees, a control that is narrow enough.
/// Beyond the number of pairs it looks at the control alone, so that when it stops says nothing about the contestant.
pub(crate) fn is_enough(duel: &Duel, quads: &[KeptQuad], wanted: u32, seed: u64) -> bool {
    let regimes = regimes(duel.setting, quads);
    let headline = regimes.first().map_or(&[][..], Vec::as_slice);
    pairs_kept(duel.setting, quads) >= wanted as usize
        && control(duel.contest, headline, seed).is_some_and(|control| {
            !duel.setting.shares_lock() || control.high - control.low < duel.contest.control_width()
        })
}

fn control(contest: Contest, quads: &[KeptQuad], seed: u64) -> Option<Interval> {
    interval(quads, Comparison::Control, contest.control_level(), seed ^ 1)
}

fn other(regime: &[KeptQuad]) -> Option<OtherRegime> {
    let ratios: Vec<f64> = pairs_of(regime, Comparison::Contest).map(|(a, b)| a / b).collect();
    let transfer_ns = median(regime.iter().map(|quad| quad.transfer_ns[0]).collect());
    (!ratios.is_empty()).then(|| OtherRegime { transfer_ns, pairs: ratios.len(), ratio: median(ratios) })
}

/// The quads by regime, the one with most first. Where no line is shared none is transferred, so all quads count
/// together. Others are left out where the transfer time before and after disagrees, and grouped where sorted times
/// leap.
fn regimes(setting: Setting, quads: &[KeptQuad]) -> Vec<Vec<KeptQuad>> {
    if !setting.shares_lines() {
        return vec![quads.to_vec()];
    }
    let steady = |quad: &&KeptQuad| {
        let [before, after] = quad.transfer_ns;
        before.max(after) <= before.min(after) * REGIME_STEP
    };
    let mut sorted: Vec<(usize, KeptQuad)> = quads.iter().filter(steady).copied().enumerate().collect();
    sorted.sort_by(|a, b| a.1.transfer_ns[0].total_cmp(&b.1.transfer_ns[0]));
    let near = |a: &(usize, KeptQuad), b: &(usize, KeptQuad)| b.1.transfer_ns[0] <= a.1.transfer_ns[0] * REGIME_STEP;
    let in_order = |group: &[(usize, KeptQuad)]| {
        let mut group = group.to_vec();
        group.sort_by_key(|(number, _)| *number); // neighbours in time again: the bootstrap's blocks need them
        group.into_iter().map(|(_, quad)| quad).collect()
    };
    let mut regimes: Vec<Vec<KeptQuad>> = sorted.chunk_by(near).map(in_order).collect();
    regimes.sort_by_key(|regime| std::cmp::Reverse(regime.len()));
    regimes
}

fn pairs_of(quads: &[KeptQuad], comparison: Comparison) -> impl Iterator<Item = (f64, f64)> + '_ {
    quads.iter().filter(move |quad| quad.comparison == comparison).flat_map(|quad| quad.pairs).flatten()
}

/// `None` with fewer than ten blocks.
fn interval(quads: &[KeptQuad], comparison: Comparison, level: f64, seed: u64) -> Option<Interval> {
    let of_comparison: Vec<KeptQuad> = quads.iter().filter(|quad| quad.comparison == comparison).copied().collect();
    let batches = of_comparison.chunk_by(|a, b| a.batch == b.batch);
    let ratios = |block: &[KeptQuad]| pairs_of(block, comparison).map(|(a, b)| a / b).collect::<Vec<f64>>();
    let blocks: Vec<Vec<f64>> = batches.flat_map(|batch| batch.chunks(BLOCK_QUADS).map(ratios)).collect();
    let blocks: Vec<Vec<f64>> = blocks.into_iter().filter(|block| !block.is_empty()).collect();
    if blocks.len() < 10 {
        return None;
    }
    let mut random = SmallRng::seed_from_u64(seed);
    let mut resampled: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            median((0..blocks.len()).flat_map(|_| &blocks[random.random_range(0..blocks.len())]).copied().collect())
        })
        .collect();
    resampled.sort_by(f64::total_cmp);
    let at = |share: f64| resampled[(share * (RESAMPLES - 1) as f64).round() as usize];
    Some(Interval { median: median(blocks.concat()), low: at((1.0 - level) / 2.0), high: at((1.0 + level) / 2.0) })
}

/// NaN of nothing.
fn median(values: Vec<f64>) -> f64 {
    order::median(values).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::duel::Subject;
    use crate::contest::steps::STEPS;
    use plan::LockKind;

    /// 100 quads of each comparison: the contestant takes `factor` times C's time, both with a noise and a drift.
    fn quads(factor: f64, noise: f64, seed: u64) -> Vec<KeptQuad> {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut quad = |number: usize, comparison| {
            let drift = 1.0 + 0.3 * (number as f64 / 20.0).sin();
            let mut slice = |factor: f64| drift * factor * (1.0 + noise * (random.random::<f64>() - 0.5));
            let contestant = if comparison == Comparison::Control { 1.0 } else { factor };
            let pairs = [(); 2].map(|()| Some((slice(contestant), slice(1.0))));
            KeptQuad { comparison, batch: number as u64 / 50, pairs, transfer_ns: [50.0, 51.0] }
        };
        (0..100).flat_map(|n| [quad(n, Comparison::Contest), quad(n, Comparison::Control)]).collect()
    }

    /// Judged as the step `add` in that setting.
    fn judged(contest: Contest, setting: Setting, quads: Vec<KeptQuad>, wanted: u32) -> Row {
        let subject = Subject::Step(&STEPS[3]);
        let duel = Duel { contest, setting, subject, cpus: [0, 1], budget: setting.budget() };
        row(&duel, &Fought { quads, ..Fought::default() }, wanted, 1)
    }

    #[test]
    fn verdicts_follow_the_ratio_and_the_noise() {
        let padded = |contest, quads, wanted| judged(contest, Setting::Padded, quads, wanted);
        let judge = |factor, noise| padded(Contest::Loops, quads(factor, noise, 5), 200);
        let even = judge(1.0, 0.02);
        assert_eq!(even.verdict, Verdict::Within);
        assert_eq!((even.pairs_kept, even.pairs_dropped), (200, 0));
        assert_eq!(judge(1.2, 0.02).verdict, Verdict::Over);
        assert_eq!(judge(1.05, 0.02).verdict, Verdict::Unresolved);
        let counting = |factor| padded(Contest::Counting, quads(factor, 0.005, 5), 200);
        assert_eq!((counting(1.0).verdict, counting(1.03).verdict), (Verdict::Within, Verdict::Over));
        assert_eq!(judge(1.0, 1.5).verdict, Verdict::Unresolved);
        let locks = [1.05, 1.2].map(|factor| padded(Contest::Locks, quads(factor, 0.05, 5), 200).verdict);
        assert_eq!(locks, [Verdict::Within, Verdict::Over]);
        let short = padded(Contest::Loops, quads(1.0, 0.02, 5), 201);
        assert_eq!(short.verdict, Verdict::Unresolved, "one pair too few");
    }

    #[test]
    fn a_contended_duel_goes_on_until_its_control_is_narrow() {
        let enough = |setting, noise, wanted| {
            let (contest, subject) = (Contest::Locks, Subject::Lock(LockKind::Tas));
            let duel = Duel { contest, setting, subject, cpus: [0, 1], budget: setting.budget() };
            is_enough(&duel, &quads(1.0, noise, 5), wanted, 1)
        };
        assert!(enough(Setting::Contended, 0.05, 200) && !enough(Setting::Contended, 1.0, 200));
        assert!(enough(Setting::Free, 0.05, 200) && enough(Setting::Free, 1.0, 200));
        assert!(!enough(Setting::Contended, 0.05, 201) && !enough(Setting::Free, 0.05, 201));
    }

    #[test]
    fn an_interval_holds_the_true_ratio() {
        let held = (0..40).filter(|&seed| {
            let interval = interval(&quads(1.1, 0.2, seed), Comparison::Contest, RATIO_LEVEL, 1).unwrap();
            interval.low <= 1.1 && 1.1 <= interval.high
        });
        assert!(held.count() >= 34, "95 % intervals of 40 samples");
    }

    #[test]
    fn packed_pairs_are_compared_within_their_regime() {
        let mut quads = quads(1.0, 0.02, 5);
        for quad in quads.iter_mut().skip(150) {
            quad.transfer_ns = [200.0, 201.0];
            quad.pairs = quad.pairs.map(|pair| pair.map(|(a, b)| (a * 3.0, b)));
        }
        quads[0].transfer_ns = [50.0, 200.0];
        for setting in [Setting::Contended, Setting::TriesFirst] {
            assert_eq!(judged(Contest::Locks, setting, quads.clone(), 100).pairs_kept, 148);
        }
        assert_eq!(judged(Contest::Locks, Setting::Free, quads.clone(), 100).pairs_kept, 200);
        let row = judged(Contest::Loops, Setting::Packed, quads, 100);
        assert_eq!((row.pairs_kept, row.pairs_dropped), (148, 52));
        assert!((row.ratio.unwrap().median - 1.0).abs() < 0.01);
        assert_eq!(row.other_regimes.len(), 1);
        assert!((row.other_regimes[0].ratio - 3.0).abs() < 0.03);
    }

    #[test]
    fn too_few_blocks_have_no_interval() {
        let row = judged(Contest::Loops, Setting::Padded, quads(1.0, 0.02, 5)[..40].to_vec(), 1);
        assert!(row.ratio.is_none());
        assert_eq!(row.verdict, Verdict::Unresolved);
    }
}

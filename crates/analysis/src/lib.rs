//! From traces to meaning: what of each window counts, which repetitions may be compared, how sure a figure is, whether
//! the scenario's claims hold, and what is wrong with the layout.
//!
//! Pure functions: nothing here reads a clock, a file or the machine, and one seed gives one answer. The data flows
//! [`observe`] (the co-running mask, one repetition) → regimes → kept repetitions → summaries → claims → diagnosis;
//! [`analyse`] reads as that arrow.
#![forbid(unsafe_code)]

mod classes;
pub mod compare;
mod counters;
mod diagnose;
mod effect;
mod evictions;
mod expect;
mod figures;
mod interval;
mod kept;
mod kernel;
mod lock_times;
mod locks;
mod mask;
mod memory;
mod predict;
mod regime;
mod stats;
mod stuck;
mod summary;
mod term;
#[cfg(test)]
mod testkit;
mod times;
mod view;
mod warnings;
mod words;

pub use diagnose::KINDS;
pub use effect::{EffectQuestion, effect, judge_effect};
pub use kept::{Kept, Who};
pub use lock_times::{LockSpan, LockTime, each_lock_time};
pub use mask::{observe, watching_share};
pub use memory::{Moment, MomentKind, moments};
pub use stuck::{Stuck, stuck};
pub use times::{DIGITS, Distribution, distributions, percentiles};

use plan::{Bound, Plan, Topology};
use record::{
    ArmState, ArmSummary, CountedEvent, Diagnosis, ExpectOutcome, ExpectState, Kind, Method, Observation, Prediction,
    Warning,
};
use view::View;

/// Fewest blocks from which a figure of an arm is given.
///
/// With two values an interval is their range, which misses the median half of the time; if this were lower, verdicts
/// would rest on chance.
pub const FEWEST_BLOCKS: usize = 3;

/// Nominal length of a slice, µs.
pub(crate) const SLICE_US: f64 = record::SLICE_NS as f64 / 1e3;

/// Everything that follows from a run's observations.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// How figures were made. [`Method::watching_cost`] (see [`watching_share`]) and [`Method::extended`] are for the
    /// caller to fill in: they do not follow from observations.
    pub method: Method,
    /// One summary an arm, in the order of [`Bound::arms`].
    pub arms: Vec<ArmSummary>,
    /// One outcome a claim, in the plan's order.
    pub expect: Vec<ExpectOutcome>,
    /// One outcome a prediction, in the plan's order.
    pub predictions: Vec<Prediction>,
    /// Most severe first, never empty.
    pub diagnosis: Vec<Diagnosis>,
    /// What the reader should know, in a fixed order.
    pub warnings: Vec<Warning>,
    /// False where noise hid an answer: a claim is undecided, or a variant that ran often enough has no figure.
    pub conclusive: bool,
    /// Widest relative half-width of the variants' ratio intervals (0.05 is ±5 %): with `repetitions = "auto"` a run
    /// may stop once it is below `precision`. `None` while some variant has no interval.
    pub precision_reached: Option<f64>,
}

/// Makes summaries, judgements and a diagnosis of all observations made so far.
///
/// Sets [`Observation::regime`] and the reasons `regime_changed` and `no_regime` anew in every observation, since
/// regimes depend on all of them: calling it again after more blocks is what it is for. `events` are what the counters'
/// names stand for on this machine ([`record::Run::events`]); `seed` is that of the run.
pub fn analyse(
    plan: &Plan,
    bound: &Bound,
    topology: &Topology,
    events: &[CountedEvent],
    observations: &mut [Observation],
    seed: u64,
) -> Findings {
    let regimes = regime::assign(bound, observations);
    let view = View::new(plan, bound, topology, events, observations, &regimes, seed);
    let arms = summary::arms(&view);
    let expect = expect::judge(&view, &arms);
    let diagnosis = diagnose::diagnose(&view, &arms);
    let warnings = warnings::warnings(&view, &arms);
    Findings {
        method: method(&view),
        conclusive: conclusive(&view, &arms, &expect),
        precision_reached: precision(&view, &arms),
        predictions: predict::hold(&view, &arms),
        arms,
        expect,
        diagnosis,
        warnings,
    }
}

fn method(view: &View) -> Method {
    Method {
        interval: interval::METHOD.to_owned(),
        level: interval::LEVEL,
        slice_us: SLICE_US,
        resolution: view.resolution,
        control: view.control,
        watching_cost: None,
        lock_timing: view.lock_timing(),
        headline_regime: view.regimes.run.map(|number| view.regimes.list[number as usize].clone()),
        regimes: view.regimes.list.clone(),
        blocks: view.observations.iter().map(|o| o.block + 1).max().unwrap_or(0),
        extended: false,
    }
}

/// Too few blocks asked for is no noise: an arm that never ran three times leaves the run as conclusive as it can be.
fn conclusive(view: &View, arms: &[ArmSummary], expect: &[ExpectOutcome]) -> bool {
    let hidden = |arm: &ArmSummary| {
        let runs = view.runs(&arm.name);
        arm.kind == Kind::Variant && arm.state == ArmState::Unresolved && runs >= FEWEST_BLOCKS
    };
    !arms.iter().any(hidden) && !expect.iter().any(|e| e.state == ExpectState::Undecided)
}

fn precision(view: &View, arms: &[ArmSummary]) -> Option<f64> {
    let half_width = |i: record::Interval| (i.high - i.low) / 2.0 / i.median;
    let variants = || arms.iter().filter(|a| a.kind == Kind::Variant && a.state != ArmState::NotApplicable);
    if variants().any(|a| a.ratio_to_best.is_none()) {
        return None;
    }
    let widest = variants().filter_map(|a| a.ratio_to_best).map(half_width).reduce(f64::max)?;
    // A lone variant is compared with nothing but its twin.
    if variants().count() == 1 { view.control.map(half_width) } else { Some(widest) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::Bench;

    fn noisy() -> Bench {
        let mut bench = Bench::new(&["packed", "padded-64", "padded-128"]).with_solo().with_unshared();
        bench.run(10, |arm, block| {
            let noise = 1.0 + 0.01 * f64::from((block * 7 + arm.len() as u32 * 3) % 11);
            noise * if arm == "packed" || arm == "control" { 20.0 } else { 2.0 }
        });
        bench
    }

    #[test]
    fn one_seed_gives_one_answer_and_asking_again_changes_nothing() {
        let mut bench = noisy();
        let first = bench.analyse();
        assert_eq!(bench.analyse(), first);
        assert_eq!(noisy().analyse(), first);
    }

    #[test]
    fn the_control_arm_gives_the_resolution() {
        let method = noisy().analyse().method;
        let control = method.control.unwrap();
        assert!(control.low <= 1.0 && 1.0 <= control.high, "{control:?}");
        let farther = (control.high - 1.0).max(1.0 / control.low - 1.0);
        assert!((method.resolution.unwrap() - farther).abs() < 1e-12);
        assert_eq!((method.level, method.blocks), (0.95, 10));
        assert_eq!(method.headline_regime.unwrap().transfer_ns, Some(54.0));
    }

    #[test]
    fn precision_is_that_of_the_widest_ratio() {
        let findings = noisy().analyse();
        let widths = findings.arms.iter().filter(|a| a.kind == Kind::Variant).map(|a| {
            let ratio = a.ratio_to_best.unwrap();
            (ratio.high - ratio.low) / 2.0 / ratio.median
        });
        assert_eq!(findings.precision_reached, widths.reduce(f64::max));
        assert!(findings.precision_reached.unwrap() > 0.0);
        let mut unresolved = noisy();
        unresolved.observations.retain(|o| o.arm != "padded-64" || o.block < 2);
        assert_eq!(unresolved.analyse().precision_reached, None);
    }

    #[test]
    fn noise_makes_a_run_inconclusive_and_few_blocks_do_not() {
        assert!(noisy().analyse().conclusive);
        let mut spoiled = noisy();
        let hit = |o: &&mut Observation| o.arm == "padded-64" && o.block > 1;
        spoiled.observations.iter_mut().filter(hit).for_each(|o| o.spoiled.push("lost_time".into()));
        assert!(!spoiled.analyse().conclusive);
        let mut short = noisy();
        short.observations.retain(|o| o.block < 2);
        assert!(short.analyse().conclusive);
    }

    #[test]
    fn a_run_without_any_observation_is_told_as_such() {
        let findings = Bench::new(&["packed"]).analyse();
        assert!(findings.arms.iter().all(|a| a.state == ArmState::Unresolved));
        assert_eq!(findings.diagnosis[0].kind, "none");
        assert_eq!((findings.precision_reached, findings.method.resolution), (None, None));
    }
}

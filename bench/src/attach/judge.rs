//! From quads to figures: what each step costs, with its interval, and the verdict.
//!
//! The figure of a quad is the geometric mean of its two pairs' ratios, in which a drift that goes on steadily cancels.
//! The interval is that of the median over quads, by order statistics.

use super::slice::{Seen, Slice, Span};
use super::{AttachError, Kind, Measured, Measurement, Row, Step};
use crate::order::{interval, median};
use crate::schedule::Comparison;
use crate::verdict::Verdict;

/// Padded targets may take so many times the time that they take left alone.
pub(super) const BAR: f64 = 1.05;
/// The control's interval is to be narrower than this: half of what the bar allows would else be noise.
const CONTROL_WIDTH: f64 = 0.05;
/// A kind's figures.
pub(super) fn row(kind: Kind, measured: &[Measurement]) -> Result<Measured, AttachError> {
    let of = |comparison| measured.iter().filter(move |one| one.quad.comparison == comparison);
    let slices = || of(Comparison::Contest).flat_map(|one| &one.slices);
    let seen: Vec<&Seen> = slices().filter_map(|slice| slice.seen.as_ref()).collect();
    let saw_both = seen.iter().filter(|seen| seen.both).count();
    if saw_both == 0 {
        let said = seen.last().map(|seen| seen.said.clone()).unwrap_or_default();
        return Err(AttachError::Blind { kind, said });
    }
    let control = interval(of(Comparison::Control).filter_map(|one| figure(one, Step::Watch, Span::pace)).collect());
    let quads: Vec<&Measurement> = of(Comparison::Contest).collect();
    let steps: Vec<Row> = Step::ALL.into_iter().filter_map(|step| of_step(step, &quads)).collect();
    let whole = steps.iter().find(|row| row.step == Step::Watch).and_then(|row| row.ratio);
    let alone = slices().filter(|slice| slice.seen.is_none()).filter_map(|slice| slice.span(Step::Watch));
    let median_of = |of: fn(&Seen) -> Option<f64>| median(seen.iter().filter_map(|seen| of(seen)).collect());
    Ok(Measured {
        kind,
        judged: kind == Kind::Padded,
        watches: seen.len(),
        saw_both,
        traps: median_of(|seen| Some(seen.cost.traps as f64)).unwrap_or_default(),
        samples: median_of(|seen| Some(seen.cost.samples as f64)).unwrap_or_default(),
        events: median_of(|seen| Some(seen.cost.events as f64)).unwrap_or_default(),
        said_slowdown: median_of(|seen| seen.cost.slowdown),
        quads: quads.len(),
        passes_per_second: median(alone.map(|span| 1.0 / span.pace()).collect()).unwrap_or_default(),
        control,
        verdict: Verdict::of(whole, control, BAR, CONTROL_WIDTH),
        steps,
    })
}

/// A step's price; `None` where no watch came to it.
fn of_step(step: Step, quads: &[&Measurement]) -> Option<Row> {
    let spans = quads.iter().flat_map(|one| &one.slices).filter(|slice| slice.seen.is_some());
    let seconds = median(spans.filter_map(|slice| Some(slice.span(step)?.seconds)).collect())?;
    let of = |pace: fn(Span) -> f64| interval(quads.iter().filter_map(|one| figure(one, step, pace)).collect());
    Some(Row { step, seconds, ratio: of(Span::pace), cpu_ratio: of(Span::cpu_pace) })
}

/// A quad's ratio, contestant over reference.
fn figure(one: &Measurement, step: Step, pace: fn(Span) -> f64) -> Option<f64> {
    let order = one.quad.order();
    let ratio = |at: usize| {
        let (contestant, reference) = if order[at] { (at, at + 1) } else { (at + 1, at) };
        // In a control neither is watched, and there are no steps.
        let paced = |slice: &Slice, step| slice.span(step).map(pace);
        Some(paced(&one.slices[contestant], step)? / paced(&one.slices[reference], Step::Watch)?)
    };
    let figure = (ratio(0)? * ratio(2)?).sqrt();
    figure.is_finite().then_some(figure)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::schedule::batch;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};
    use record::WatchCost;

    /// So many quads of each comparison, in which a watch makes all take `factor` times as long, its proof twice that,
    /// and the machine drifts and makes noise.
    pub(in crate::attach) fn quads(count: usize, factor: f64, noise: f64, both: bool) -> Vec<Measurement> {
        let mut random = SmallRng::seed_from_u64(7);
        let mut at = 0.0;
        let mut slice = |watched: bool| {
            at += 1.0;
            let speed = (1.0 + 0.01 * at) * (1.0 + noise * (random.random::<f64>() - 0.5));
            let span = |seconds: f64, factor: f64| Span {
                seconds,
                cpu_seconds: seconds,
                passes: seconds * 1e6 * speed / factor,
            };
            let seen = watched.then(|| Seen {
                cost: WatchCost { traps: 40, samples: 900, events: 3, stolen_ns: 1, slowdown: Some(0.01) },
                both,
                said: "nothing".to_owned(),
            });
            let spans = match watched {
                true => vec![(Step::Watch, span(2.0, factor)), (Step::Proof, span(0.5, 2.0 * factor))],
                false => vec![(Step::Watch, span(2.0, 1.0))],
            };
            Slice { spans, seen }
        };
        let measurement = |quad: crate::schedule::Quad| {
            let contest = quad.comparison == Comparison::Contest;
            Measurement { quad, slices: quad.order().map(|contestant| slice(contest && contestant)) }
        };
        batch(count, 3).into_iter().map(measurement).collect()
    }

    fn judged(kind: Kind, quads: &[Measurement]) -> Measured {
        row(kind, quads).expect("they were seen")
    }

    #[test]
    fn what_a_step_costs_is_told_in_spite_of_drift_and_noise() {
        let measured = judged(Kind::Padded, &quads(12, 1.03, 0.01, true));
        let ratio = |step| measured.steps.iter().find(|row| row.step == step).and_then(|row| row.ratio).expect("a row");
        let (whole, proof) = (ratio(Step::Watch), ratio(Step::Proof));
        assert!(whole.low <= 1.03 && 1.03 <= whole.high && whole.high - whole.low < 0.02, "{whole:?}");
        assert!(proof.low <= 2.06 && 2.06 <= proof.high, "{proof:?}");
        assert!(measured.control.is_some_and(|control| control.low <= 1.0 && 1.0 <= control.high), "{measured:?}");
        assert_eq!(measured.steps.len(), 2, "steps that never came have no row");
        assert_eq!((measured.watches, measured.saw_both, measured.quads, measured.traps), (24, 24, 12, 40.0));
    }

    #[test]
    fn the_padded_are_judged_and_noise_is_no_verdict() {
        let verdict = |count, factor, noise| judged(Kind::Padded, &quads(count, factor, noise, true)).verdict;
        assert_eq!(verdict(12, 1.02, 0.01), Verdict::Within);
        assert_eq!(verdict(12, 1.10, 0.01), Verdict::Over);
        assert_eq!(verdict(12, 1.05, 0.01), Verdict::Unresolved);
        assert_eq!(verdict(12, 1.02, 0.5), Verdict::Unresolved);
        assert_eq!(verdict(5, 1.02, 0.01), Verdict::Unresolved, "too few for an interval");
        let judges = |kind| judged(kind, &quads(6, 1.0, 0.01, true)).judged;
        assert_eq!(Kind::ALL.map(judges), [true, false, false]);
    }

    #[test]
    fn watches_that_saw_nothing_have_no_price() {
        let blind = row(Kind::Packed, &quads(6, 1.0, 0.01, false)).expect_err("nothing was seen");
        assert!(blind.to_string().contains("the packed targets") && blind.to_string().contains("nothing"), "{blind}");
    }
}

//! Predictions beside what was seen: never judged, but told how far off they are.

use crate::term::{self, Missing};
use crate::view::View;
use plan::expect::{Prediction, Quantity};
use record::{ArmSummary, Interval};

/// One outcome a prediction, in the plan's order.
pub(crate) fn hold(view: &View, arms: &[ArmSummary]) -> Vec<record::Prediction> {
    view.plan.predictions.iter().map(|prediction| outcome(view, arms, prediction)).collect()
}

fn outcome(view: &View, arms: &[ArmSummary], prediction: &Prediction) -> record::Prediction {
    let Prediction { of, predicted } = prediction;
    let (seen, why) = match seen(view, arms, of) {
        Ok(seen) => (Some(seen), String::new()),
        Err(Missing::NotApplicable(why) | Missing::Unresolved(why)) => (None, why),
    };
    record::Prediction {
        text: of.text.clone(),
        predicted: *predicted,
        off_by: seen.and_then(|seen| factor(*predicted, seen.median)),
        inside: seen.map(|seen| (seen.low..=seen.high).contains(predicted)),
        seen,
        why,
    }
}

fn seen(view: &View, arms: &[ArmSummary], of: &Quantity) -> Result<Interval, Missing> {
    let left = term::value(view, arms, &of.term)?;
    let Some(over) = &of.over else { return Ok(left.interval) };
    let right = term::value(view, arms, over)?;
    if let Some((ratio, _)) = term::paired(view, (&of.term, &left), (over, &right), &of.text) {
        return Ok(ratio);
    }
    let no_ratio = || {
        let (left, right) = (term::name(&of.term), term::name(over));
        Missing::NotApplicable(format!("{right} reaches down to 0, so {left} cannot be divided by it"))
    };
    term::quotient(left.interval, right.interval).ok_or_else(no_ratio)
}

/// How many times the one is the other, from 1 up.
fn factor(predicted: f64, seen: f64) -> Option<f64> {
    (predicted > 0.0 && seen > 0.0).then(|| (predicted / seen).max(seen / predicted))
}

#[cfg(test)]
mod tests {
    use crate::testkit::Bench;
    use plan::expect::{Metric, Prediction, Quantity, Term};

    fn term(metric: Metric, arm: &str) -> Term {
        Term { metric, arm: arm.to_owned(), of: None }
    }

    /// Ten blocks of packed at 20 ns and padded at 2, both drifting by as much.
    fn told(term: Term, over: Option<Term>, predicted: f64) -> record::Prediction {
        let mut bench = Bench::new(&["packed", "padded-64"]);
        bench.run(10, |arm, block| {
            let drift = 1.0 + 0.02 * f64::from(block % 5);
            drift * if arm == "padded-64" { 2.0 } else { 20.0 }
        });
        let of = Quantity { text: "as written".to_owned(), term, over };
        bench.plan.predictions = vec![Prediction { of, predicted }];
        bench.analyse().predictions.remove(0)
    }

    #[test]
    fn a_ratio_is_seen_block_by_block_and_told_by_its_factor() {
        let ratio =
            |predicted| told(term(Metric::NsPerOp, "packed"), Some(term(Metric::NsPerOp, "padded-64")), predicted);
        let right = ratio(10.0);
        assert!((right.seen.unwrap().median - 10.0).abs() < 1e-9, "{right:?}");
        assert_eq!((right.inside, right.why.as_str(), right.text.as_str()), (Some(true), "", "as written"));
        assert!((right.off_by.unwrap() - 1.0).abs() < 1e-9);
        for (predicted, off_by) in [(5.0, 2.0), (40.0, 4.0)] {
            let wrong = ratio(predicted);
            assert_eq!(wrong.inside, Some(false), "{wrong:?}");
            assert!((wrong.off_by.unwrap() - off_by).abs() < 1e-9, "{wrong:?}");
        }
        assert_eq!((ratio(0.0).off_by, ratio(0.0).inside), (None, Some(false)), "nothing is so many times 0");
    }

    #[test]
    fn two_metrics_are_divided_end_to_end_and_one_alone_is_itself() {
        let mixed = told(term(Metric::OpsPerSecond, "packed"), Some(term(Metric::NsPerOp, "packed")), 1.0);
        assert!(mixed.seen.unwrap().low < mixed.seen.unwrap().high, "{mixed:?}");
        let alone = told(term(Metric::NsPerOp, "padded-64"), None, 2.0);
        assert!((2.0..2.2).contains(&alone.seen.unwrap().median) && alone.off_by.unwrap() < 1.1, "{alone:?}");
    }

    #[test]
    fn what_cannot_be_had_says_why_and_is_not_off_by_anything() {
        let absent = told(term(Metric::NsPerOp, "padded-256"), None, 2.0);
        assert_eq!((absent.seen, absent.off_by, absent.inside), (None, None, None));
        assert!(absent.why.contains("`padded-256` is not part of this run"), "{}", absent.why);
    }
}

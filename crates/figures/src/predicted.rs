//! A prediction beside what was seen, in words. It is no verdict: to be off, and to find out why, is how one learns.

use crate::numbers::{Figure, plain};
use record::Prediction;

/// What stands beside a prediction: what was seen, how far off it was and on which side; or why nothing was seen.
pub fn beside_prediction(prediction: &Prediction) -> String {
    let (Some(seen), Some(inside)) = (prediction.seen, prediction.inside) else {
        return format!("not seen: {}", prediction.why);
    };
    let shown = Figure::new(&seen).line();
    let side = if prediction.predicted > seen.median { "high" } else { "low" };
    match prediction.off_by {
        _ if inside => format!("seen {shown}: the prediction lies in the interval"),
        Some(factor) => format!("seen {shown}: predicted {}\u{a0}× too {side}, outside the interval", plain(factor)),
        None => format!("seen {shown}: predicted too {side}, outside the interval"),
    }
}

#[cfg(test)]
mod tests {
    use super::beside_prediction;
    use record::{Interval, Prediction};

    #[test]
    fn how_far_off_and_on_which_side_or_why_it_was_not_seen() {
        let told = |predicted: f64, off_by, inside| {
            let seen = Some(Interval { median: 5.2, low: 5.0, high: 5.4 });
            let text = "ns_per_op(packed) / ns_per_op(padded)".to_owned();
            let told = Prediction { text, predicted, seen, off_by, inside: Some(inside), why: String::new() };
            beside_prediction(&told).replace('\u{a0}', " ")
        };
        assert_eq!(told(5.1, Some(1.02), true), "seen 5.2 (5.0–5.4): the prediction lies in the interval");
        assert_eq!(told(52.0, Some(10.0), false), "seen 5.2 (5.0–5.4): predicted 10 × too high, outside the interval");
        assert_eq!(told(2.6, Some(2.0), false), "seen 5.2 (5.0–5.4): predicted 2 × too low, outside the interval");
        assert_eq!(told(0.0, None, false), "seen 5.2 (5.0–5.4): predicted too low, outside the interval");
        let (text, why) = ("bytes(x)".to_owned(), "arm `x` is not part of this run".to_owned());
        let none = Prediction { text, predicted: 1.0, seen: None, off_by: None, inside: None, why };
        assert_eq!(beside_prediction(&none), "not seen: arm `x` is not part of this run");
    }
}

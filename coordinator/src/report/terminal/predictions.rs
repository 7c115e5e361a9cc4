//! What whoever ran it had predicted, beside what was seen.

use crate::report::figures::{Figure, plain};
use crate::report::page::Page;
use crate::report::style::Tone;
use record::{Prediction, Run};

/// The section; none where nothing was predicted.
pub(super) fn write(page: &mut Page, run: &Run) {
    if run.predictions.is_empty() {
        return;
    }
    page.heading("Your predictions");
    for prediction in &run.predictions {
        let predicted = format!("predicted {}", plain(prediction.predicted));
        page.verdict(Tone::Strong, &predicted, &prediction.text);
        page.item(2, "", &outcome(prediction));
    }
}

/// What was seen, and how far off the prediction was. It is no verdict: to be off is how one learns.
fn outcome(prediction: &Prediction) -> String {
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

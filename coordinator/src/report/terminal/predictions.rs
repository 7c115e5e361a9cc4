//! What whoever ran it had predicted, beside what was seen.

use crate::report::page::Page;
use crate::report::style::Tone;
use figures::{beside_prediction, plain};
use record::Run;

/// The section; none where nothing was predicted.
pub(super) fn write(page: &mut Page, run: &Run) {
    if run.predictions.is_empty() {
        return;
    }
    page.heading("Your predictions");
    for prediction in &run.predictions {
        page.verdict(Tone::Strong, &format!("predicted {}", plain(prediction.predicted)), &prediction.text);
        page.item(2, "", &beside_prediction(prediction));
    }
}

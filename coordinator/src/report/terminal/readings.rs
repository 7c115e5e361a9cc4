//! One counter's reading as a cell of a table: a figure, or why there is none.

use crate::report::figures::{percent, plain};
use crate::report::table::{Cell, Notes};
use record::{Measured, Reading};

/// What a count is divided by, and so the unit of its column.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Per {
    /// Passes: events an operation.
    Op,
    /// Passes, of a count of nanoseconds.
    NsOp,
    /// Seconds of window: for what is too rare for a figure per operation.
    Second,
}

impl Per {
    /// The figure.
    pub(super) fn of(self, measured: &Measured) -> Option<f64> {
        match self {
            Per::Op | Per::NsOp => measured.per_op,
            Per::Second => measured.per_second,
        }
    }

    /// Its unit, as the last line of a head has it.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Per::Op => "/op",
            Per::NsOp => "ns/op",
            Per::Second => "/s",
        }
    }
}

/// A counter's figure. What could not be counted is not 0.
pub(super) fn cell(measured: Option<&Measured>, per: Per, notes: &mut Notes) -> Cell {
    let Some(measured) = measured else {
        return notes.missing("this run has no reading of it".to_owned());
    };
    match (why_none(&measured.reading), per.of(measured), &measured.reading) {
        (Some(why), ..) => notes.missing(why),
        (None, Some(figure), Reading::Scaled { ratio, .. }) => notes.marked(
            &plain(figure),
            format!("on a counter for {} of the window, scaled up to all of it", percent(*ratio)),
        ),
        (None, Some(figure), _) => Cell::text(plain(figure)),
        (None, None, _) => notes.missing("counted, but no pass to divide it by".to_owned()),
    }
}

/// Why there is no figure; `None` where there is one.
fn why_none(reading: &Reading) -> Option<String> {
    let why = reason(reading)?;
    Some(match reading {
        Reading::Unsupported { .. } => format!("this machine cannot count it: {why}"),
        _ => why,
    })
}

/// What keeps a count away, with the cure; `None` where there is a count.
pub(super) fn reason(reading: &Reading) -> Option<String> {
    let why = reading.why()?;
    let denied = if matches!(reading, Reading::Denied { .. }) { "not permitted: " } else { "" };
    let cure = reading.cure().map_or(String::new(), |cure| format!("; cure: {cure}"));
    Some(format!("{denied}{why}{cure}"))
}

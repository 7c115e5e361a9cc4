//! The table of everything that is measured: a row a figure, with what it is held against, its control, its bar, and what
//! it comes to. Every measurement makes rows of its report; `all` puts them together.

use crate::verdict::{self, Verdict};
use record::Interval;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A control wider than this resolves nothing where no bar asks for less.
const CONTROL_WIDTH: f64 = 0.1;
/// A quantity without control or bar whose interval is wider than this part of it is not resolved.
const AMOUNT_WIDTH: f64 = 0.2;

/// One figure and what it comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// What was measured.
    pub(crate) what: String,
    /// What it is held against; empty where it stands for itself.
    pub(crate) against: String,
    /// `None` where it was not measured, or a ratio too seldom for an interval.
    pub(crate) figure: Option<Figure>,
    /// What differs in nothing, measured the same way.
    pub(crate) control: Option<Interval>,
    /// What it is to keep; `None` for information.
    pub(crate) bar: Option<Bar>,
    /// What it comes to.
    pub(crate) state: State,
    /// What else is worth knowing: absolute times, how often.
    pub(crate) note: String,
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Figure {
    /// One time over another, or one effect over another.
    Ratio(Interval),
    /// A quantity by itself, in its unit.
    Amount {
        /// The figure.
        median: f64,
        /// `None` where it was measured too seldom.
        interval: Option<Interval>,
        /// `ms`, `M/s`.
        unit: String,
    },
    /// So many of so many.
    Share {
        /// Those that count.
        hits: u64,
        /// All.
        of: u64,
    },
}

/// What a figure is to keep.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bar {
    /// In the figure's unit.
    AtMost(f64),
    /// In the figure's unit; of a share 0.9 is nine in ten.
    AtLeast(f64),
}

/// What a row comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// The bar is kept.
    Within,
    /// It is not.
    Over,
    /// There is no bar, and the control is sound, or without one the interval is narrow.
    Measured,
    /// Noise hid it.
    Unresolved,
    /// What it takes is not here; how to get it.
    Missing(String),
    /// It was tried and failed; why.
    Failed(String),
}

impl From<Verdict> for State {
    fn from(verdict: Verdict) -> State {
        match verdict {
            Verdict::Within => State::Within,
            Verdict::Over => State::Over,
            Verdict::Unresolved => State::Unresolved,
        }
    }
}

impl Row {
    /// A ratio for information, beside its control.
    pub(crate) fn ratio(
        what: impl Into<String>,
        against: &str,
        of: Option<Interval>,
        control: Option<Interval>,
    ) -> Row {
        let sound = of.is_some() && control.is_some_and(|control| verdict::is_sound(control, CONTROL_WIDTH));
        Row {
            against: against.to_owned(),
            figure: of.map(Figure::Ratio),
            control,
            ..Row::of(what, if sound { State::Measured } else { State::Unresolved })
        }
    }

    /// A quantity, which has no control; with a bar it is judged.
    pub(crate) fn amount(
        what: impl Into<String>,
        (median, interval): (f64, Option<Interval>),
        unit: &str,
        bar: Option<Bar>,
    ) -> Row {
        let state = match (interval, bar) {
            (None, _) => State::Unresolved,
            (Some(of), None) if of.high - of.low > AMOUNT_WIDTH * median => State::Unresolved,
            (Some(_), None) => State::Measured,
            (Some(of), Some(bar)) => bar.judge(of),
        };
        let unit = unit.to_owned();
        let figure = median.is_finite().then_some(Figure::Amount { median, interval, unit });
        Row { figure, bar, ..Row::of(what, state) }
    }

    /// So many of so many, of which a part is to count; none of none is unresolved.
    pub(crate) fn share(what: impl Into<String>, against: &str, [hits, of]: [u64; 2], at_least: f64) -> Row {
        let state = match hits as f64 >= at_least * of as f64 {
            _ if of == 0 => State::Unresolved,
            true => State::Within,
            false => State::Over,
        };
        Row {
            against: against.to_owned(),
            figure: (of > 0).then_some(Figure::Share { hits, of }),
            bar: Some(Bar::AtLeast(at_least)),
            ..Row::of(what, state)
        }
    }

    /// What was not measured, since something is not here.
    pub(crate) fn missing(what: impl Into<String>, how: impl std::fmt::Display) -> Row {
        Row::of(what, State::Missing(how.to_string()))
    }

    /// What failed.
    pub(crate) fn failed(what: impl Into<String>, why: impl std::fmt::Display) -> Row {
        Row::of(what, State::Failed(why.to_string()))
    }

    fn of(what: impl Into<String>, state: State) -> Row {
        let (what, against, note) = (what.into(), String::new(), String::new());
        Row { what, against, figure: None, control: None, bar: None, state, note }
    }

    /// The same with a note.
    pub(crate) fn noting(self, note: impl Into<String>) -> Row {
        Row { note: note.into(), ..self }
    }

    /// A row of the table of a part, shown as `part`.
    pub(crate) fn markdown(&self, part: &str) -> String {
        let figure = self.figure.as_ref().map_or_else(dash, Figure::shown);
        let note = if self.note.is_empty() { String::new() } else { format!("; {}", self.note) };
        let control = self.control.map_or_else(dash, ends);
        let bar = self.bar.map_or_else(dash, |bar| bar.shown(self.figure.as_ref()));
        let cells = [part, &self.what, &self.against, &format!("{figure}{note}"), &control, &bar, &self.state.shown()];
        let mut text = String::new();
        cells.iter().for_each(|cell| write!(text, "| {} ", escaped(cell)).expect("a string takes all"));
        text + "|\n"
    }
}

/// Above the rows.
pub(crate) const HEAD: &str =
    "| part | what | against | figure (95 %) | control | bar | |\n|---|---|---|---|---|---|---|\n";

/// 0 where every bar is kept, 1 where one is not or something failed, 3 where noise hid one. What is missing is no failure.
pub(crate) fn exit_status<'r>(rows: impl IntoIterator<Item = &'r Row>) -> u8 {
    verdict::exit_status(rows.into_iter().map(|row| match (&row.state, row.bar) {
        (State::Over | State::Failed(_), _) => Verdict::Over,
        (State::Unresolved, Some(_)) => Verdict::Unresolved,
        _ => Verdict::Within,
    }))
}

impl Bar {
    /// A quantity by its whole interval.
    fn judge(self, of: Interval) -> State {
        let (kept, missed) = match self {
            Bar::AtMost(bar) => (of.high <= bar, of.low > bar),
            Bar::AtLeast(bar) => (of.low >= bar, of.high < bar),
        };
        match (kept, missed) {
            (true, _) => State::Within,
            (_, true) => State::Over,
            _ => State::Unresolved,
        }
    }

    fn shown(self, figure: Option<&Figure>) -> String {
        let (sign, bar) = match self {
            Bar::AtMost(bar) => ('≤', bar),
            Bar::AtLeast(bar) => ('≥', bar),
        };
        match figure {
            Some(Figure::Amount { unit, .. }) => format!("{sign} {bar} {unit}"),
            Some(Figure::Share { .. }) => format!("{sign} {:.0} %", bar * 100.0),
            Some(Figure::Ratio(_)) | None => format!("{sign} {bar}"),
        }
    }
}

impl Figure {
    fn shown(&self) -> String {
        let with = |of: &Interval| if of.low == of.high { String::new() } else { format!(" ({})", ends(*of)) };
        match self {
            Figure::Ratio(of) => format!("{}{}", digits(of.median), with(of)),
            Figure::Amount { median, interval, unit } => {
                format!("{} {unit}{}", digits(*median), interval.as_ref().map_or_else(String::new, with))
            }
            Figure::Share { hits, of } => format!("{:.0} % ({hits} of {of})", *hits as f64 / *of as f64 * 100.0),
        }
    }
}

impl State {
    fn shown(&self) -> String {
        match self {
            State::Within => "within".to_owned(),
            State::Over => "**over**".to_owned(),
            State::Measured => "measured".to_owned(),
            State::Unresolved => "unresolved".to_owned(),
            State::Missing(how) => format!("missing: {how}"),
            State::Failed(why) => format!("**failed**: {why}"),
        }
    }
}

fn dash() -> String {
    "–".to_owned()
}

fn ends(of: Interval) -> String {
    format!("{}–{}", digits(of.low), digits(of.high))
}

/// Three decimals below 10, then fewer: no more than such intervals carry. What is no number is a dash.
pub(crate) fn digits(figure: f64) -> String {
    let decimals = match figure.abs() {
        _ if !figure.is_finite() => return dash(),
        below if below < 10.0 => 3,
        below if below < 100.0 => 1,
        _ => 0,
    };
    format!("{figure:.decimals$}")
}

/// A cell is one line without the bar that ends it.
fn escaped(cell: &str) -> String {
    cell.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, high: f64) -> Interval {
        Interval { median: (low + high) / 2.0, low, high }
    }

    #[test]
    fn a_row_shows_what_it_has_and_a_dash_for_the_rest() {
        let row = Row::ratio("padded `bump`", "C", Some(interval(0.99, 1.01)), Some(interval(0.995, 1.004)));
        assert_eq!(
            row.clone().noting("0.23 ns a pass in C").markdown("loops"),
            "| loops | padded `bump` | C | 1.000 (0.990–1.010); 0.23 ns a pass in C | 0.995–1.004 | – | measured |\n"
        );
        let row =
            |interval| Row::amount("simulated", (81.0, interval), "M/s", Some(Bar::AtLeast(90.0))).markdown("model");
        assert_eq!(
            row(Some(interval(80.0, 82.0))),
            "| model | simulated |  | 81.0 M/s (80.0–82.0) | – | ≥ 90 M/s | **over** |\n"
        );
        assert_eq!(row(None), "| model | simulated |  | 81.0 M/s | – | ≥ 90 M/s | unresolved |\n");
        let missing = Row::missing("against it", "not installed:\n cargo install a|b").markdown("latency");
        assert_eq!(missing, "| latency | against it |  | – | – | – | missing: not installed: cargo install a\\|b |\n");
        let columns = |line: &str| line.replace("\\|", "").matches('|').count();
        assert!(HEAD.lines().all(|line| columns(line) == columns(&missing)), "{HEAD}");
    }

    #[test]
    fn a_ratio_without_a_sound_control_is_unresolved() {
        let sound = Some(interval(0.98, 1.03));
        let state = |of, control| Row::ratio("", "", of, control).state;
        assert_eq!(state(Some(interval(2.0, 3.0)), sound), State::Measured);
        assert_eq!(state(Some(interval(2.0, 3.0)), Some(interval(1.01, 1.02))), State::Unresolved);
        assert_eq!(state(Some(interval(2.0, 3.0)), Some(interval(0.9, 1.1))), State::Unresolved);
        assert_eq!(state(Some(interval(2.0, 3.0)), None), State::Unresolved);
        assert_eq!(state(None, sound), State::Unresolved);
    }

    #[test]
    fn an_amount_is_judged_by_its_whole_interval() {
        let state = |of, bar| Row::amount("", (1.5, of), "s", bar).state;
        assert_eq!(state(Some(interval(1.0, 2.0)), Some(Bar::AtMost(2.0))), State::Within);
        assert_eq!(state(Some(interval(1.0, 2.1)), Some(Bar::AtMost(2.0))), State::Unresolved);
        assert_eq!(state(Some(interval(2.1, 2.2)), Some(Bar::AtMost(2.0))), State::Over);
        assert_eq!(state(Some(interval(1.0, 2.0)), Some(Bar::AtLeast(1.0))), State::Within);
        assert_eq!(state(Some(interval(1.4, 1.6)), None), State::Measured);
        assert_eq!(state(Some(interval(1.3, 1.7)), None), State::Unresolved, "wide");
        assert_eq!(state(None, None), State::Unresolved);
    }

    #[test]
    fn a_share_is_judged_by_how_many_there_are() {
        let shown = |hits, of| Row::share("", "", [hits, of], 0.9).markdown("predictions");
        assert!(shown(9, 10).ends_with("| 90 % (9 of 10) | – | ≥ 90 % | within |\n"), "{}", shown(9, 10));
        assert!(shown(8, 10).ends_with("| **over** |\n") && shown(0, 0).ends_with("| unresolved |\n"));
    }

    #[test]
    fn the_status_is_that_of_bars_and_failures() {
        let row = |bar, state| Row { bar, ..Row::of("", state) };
        let (none, bar) = (None, Some(Bar::AtMost(1.0)));
        let calm = [row(bar, State::Within), row(none, State::Unresolved), row(none, State::Missing(String::new()))];
        assert_eq!(exit_status(&calm), 0);
        assert_eq!(exit_status(calm.iter().chain([&row(bar, State::Unresolved)])), 3);
        assert_eq!(exit_status([&row(bar, State::Unresolved), &row(none, State::Failed(String::new()))]), 1);
        assert_eq!(exit_status([&row(bar, State::Over)]), 1);
    }

    #[test]
    fn digits_are_no_finer_than_the_size_asks_for() {
        assert_eq!([0.0123, 9.8765, 18.25, 4520.7, f64::NAN].map(digits), ["0.012", "9.877", "18.2", "4521", "–"]);
    }
}

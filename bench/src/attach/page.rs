//! What `bench -- attach` prints: Markdown, which goes into `docs/attach.md`, or one JSON object.

use super::{AlarmReport, Kind, Measured, Report, Row, Step};
use crate::marks::Marks;
use crate::verdict::Verdict;
use record::Interval;
use std::fmt::Write;

/// Where the table stands in the docs.
pub(crate) const MARKS: Marks =
    Marks { begin: "<!-- attach: written by `bench -- attach --write` -->", end: "<!-- end of attach -->" };
/// Where the count of false alarms stands.
pub(crate) const ALARM_MARKS: Marks =
    Marks { begin: "<!-- alarms: written by `bench -- attach --alarms --write` -->", end: "<!-- end of alarms -->" };
/// Where stands how often, and how soon, watches were right.
pub(crate) const ANSWER_MARKS: Marks =
    Marks { begin: "<!-- answers: written by `bench -- attach --answers --write` -->", end: "<!-- end of answers -->" };

impl Report {
    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }

    /// A summary and a row for each step of each kind.
    pub(crate) fn markdown(&self) -> String {
        let mut text =
            format!("On {}, Linux {}; watches of {} s.\n\n", self.cpu_model, self.kernel, short(self.watch_s));
        text += "| targets | step | takes, s | a pass takes longer by | of its CPU time |\n|---|---|--:|--:|--:|\n";
        for kind in &self.kinds {
            kind.steps.iter().for_each(|row| text += &line(kind.kind, row));
            writeln!(text, "| {} | left alone, twice | | {} | |", shown(kind.kind), percent(kind.control)).expect(FITS);
        }
        text += "\n";
        self.kinds.iter().for_each(|kind| text += &summary(kind));
        text
    }
}

impl AlarmReport {
    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }

    /// A sentence, and one for each alarm.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!(
            "{} watches of {} s of two programs that count on lines of their own: {} false {}; both were seen to write \
             in {}.\n",
            self.watches,
            short(self.watch_s),
            self.alarms.len(),
            if self.alarms.len() == 1 { "alarm" } else { "alarms" },
            self.saw_both
        );
        for alarm in &self.alarms {
            writeln!(text, "\nWatch {}: {}.", alarm.watch, alarm.said).expect(FITS);
        }
        text
    }
}

const FITS: &str = "a string takes all";

fn line(kind: Kind, row: &Row) -> String {
    let step = match row.step {
        Step::Watch => "**the whole watch**",
        Step::Counting => "counting",
        Step::Sampling => "sampling",
        Step::Proof => "proof",
        Step::Futex => "futex calls",
    };
    let kind = shown(kind);
    format!("| {kind} | {step} | {:.2} | {} | {} |\n", row.seconds, percent(row.ratio), percent(row.cpu_ratio))
}

fn summary(kind: &Measured) -> String {
    let said = kind.said_slowdown.map_or("nothing".to_owned(), |part| format!("{:.1} %", part * 100.0));
    let verdict = match (kind.judged, kind.verdict) {
        (false, _) => "",
        (true, Verdict::Within) => " Within the bar.",
        (true, Verdict::Over) => " **Over the bar.**",
        (true, Verdict::Unresolved) => " Noise hid whether it is within the bar.",
    };
    format!(
        "- {}: {} quads, {:.1} million passes a second left alone; {} of {} watches proved both writers. A watch took \
         {:.0} traps, {:.0} samples and {:.0} records of futex calls, and said itself that it took {said} of the time in \
         which it did.{verdict}\n",
        shown(kind.kind),
        kind.quads,
        kind.passes_per_second / 1e6,
        kind.saw_both,
        kind.watches,
        kind.traps,
        kind.samples,
        kind.events,
    )
}

pub(super) fn shown(kind: Kind) -> &'static str {
    match kind {
        Kind::Padded => "padded pair",
        Kind::Packed => "packed pair",
        Kind::Convoy => "mutex convoy",
        Kind::Shared => "one word of both",
        Kind::Huge => "two lines of 1 GiB",
    }
}

fn percent(ratio: Option<Interval>) -> String {
    let part = |ratio: f64| (ratio - 1.0) * 100.0;
    match ratio {
        None => "–".to_owned(),
        Some(Interval { median, low, high }) => {
            format!("{:.1} % ({:.1} to {:.1})", part(median), part(low), part(high))
        }
    }
}

/// Seconds without more digits than they have.
fn short(seconds: f64) -> String {
    let text = format!("{seconds:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::judge::{self, tests::quads};
    use super::*;

    fn report() -> Report {
        let kinds =
            [Kind::Padded, Kind::Convoy].map(|kind| judge::row(kind, &quads(6, 1.02, 0.01, true)).expect("seen"));
        Report {
            schema_version: 1,
            benchmark: "attach",
            cpu_model: "EPYC".into(),
            kernel: "6.18".into(),
            seed: 1,
            watch_s: 2.5,
            bar: judge::BAR,
            kinds: kinds.into(),
        }
    }

    #[test]
    fn the_page_has_a_row_for_each_step_that_came_and_one_for_the_control() {
        let text = report().markdown();
        assert!(text.starts_with("On EPYC, Linux 6.18; watches of 2.5 s."), "{text}");
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| padded pair")).collect();
        assert_eq!(rows.len(), 3, "{text}");
        assert!(rows[0].starts_with("| padded pair | **the whole watch** | 2.00 | 1.7 % (1.5 to 2.5) |"), "{text}");
        assert!(rows[1].starts_with("| padded pair | proof | 0.50 | 10"), "{text}");
        assert!(rows[2].contains("left alone, twice"), "{text}");
        assert!(text.contains("12 of 12 watches proved both writers") && text.contains("took 1.0 % of"), "{text}");
        assert_eq!(text.matches("Within the bar.").count(), 1, "the padded alone are judged: {text}");
    }

    #[test]
    fn the_status_is_the_padded_targets() {
        assert_eq!(report().exit_status(), 0);
        let mut over = report();
        over.kinds[0].verdict = Verdict::Over;
        assert_eq!(over.exit_status(), 1);
        over.kinds[0].verdict = Verdict::Unresolved;
        over.kinds[1].verdict = Verdict::Over;
        assert_eq!(over.exit_status(), 3, "others are for information");
    }

    #[test]
    fn what_has_no_interval_shows_none() {
        assert_eq!(percent(None), "–");
        assert_eq!(percent(Some(Interval { median: 1.012, low: 0.996, high: 1.03 })), "1.2 % (-0.4 to 3.0)");
        assert_eq!(["2", "0.5"], [2.0, 0.5].map(short).each_ref().map(String::as_str));
    }
}

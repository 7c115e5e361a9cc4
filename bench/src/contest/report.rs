//! What a contest prints: a table of at most 80 columns, or one JSON object.

use crate::contest::Contest;
use crate::contest::statistics::Row;
use crate::table;
use crate::verdict;
use record::Interval;
use serde::Serialize;

/// Version of the JSON. 3: what a row is about is no step in every contest, so `step` became `name` and `placement`
/// `setting`; `judged` and `contended_share` came.
const SCHEMA_VERSION: u32 = 3;

/// A finished comparison.
#[derive(Serialize)]
pub(crate) struct Report {
    schema_version: u32,
    benchmark: &'static str,
    seed: u64,
    cpus: [usize; 2],
    bar: f64,
    /// Counters that counted, in a contest of counting.
    counted: Option<u64>,
    #[serde(skip)]
    contest: Contest,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(contest: Contest, seed: u64, cpus: [usize; 2], counted: u64, rows: Vec<Row>) -> Report {
        let (benchmark, counted) = match contest {
            Contest::Loops => ("loops", None),
            Contest::Counting => ("counting", Some(counted)),
            Contest::Locks => ("locks", None),
        };
        Report { schema_version: SCHEMA_VERSION, benchmark, seed, cpus, bar: contest.bar(), counted, contest, rows }
    }

    /// 0 where every judged row is within the bar, 1 where one is over it, else 3.
    pub(crate) fn exit_status(&self) -> u8 {
        verdict::exit_status(self.rows.iter().filter(|row| row.judged).map(|row| row.verdict))
    }

    /// For the table of everything.
    pub(crate) fn rows(&self) -> Vec<table::Row> {
        let row = |row: &Row| {
            let (what, against) = self.shown(row);
            let seen = table::Row::ratio(what, against, row.ratio, row.control);
            let reference = table::digits(row.reference_ns_per_op);
            let seen = seen.noting(format!("{reference} ns a pass there, {} pairs", row.pairs_kept));
            match row.judged {
                true => {
                    let bar = Some(table::Bar::AtMost(self.bar));
                    table::Row { bar, state: row.verdict.into(), ..seen }
                }
                false => seen,
            }
        };
        self.rows.iter().map(row).collect()
    }

    /// What a row is about, and what it is held against, in words.
    fn shown(&self, row: &Row) -> (String, &'static str) {
        let name = row.name;
        match (self.contest, row.setting) {
            (Contest::Loops, setting) => (format!("{setting} `{name}`, compiled"), "C at -O2"),
            (Contest::Counting, setting) => (format!("{setting} `{name}`, counted"), "counters at rest"),
            (Contest::Locks, "tries-first") => (format!("`{name}` in C that tries first"), "C at -O2"),
            (Contest::Locks, setting) => (format!("`{name}`, {setting}"), "C at -O2"),
        }
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }

    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        for rows in self.rows.chunk_by(|a, b| a.setting == b.setting) {
            text += &self.heading(rows[0].setting);
            rows.iter().for_each(|row| text += &line(row));
            text += "\n";
        }
        text + &self.legend()
    }

    fn heading(&self, setting: &str) -> String {
        let (of, control) = match self.contest {
            Contest::Loops | Contest::Locks => ("C ns/op", "C against C"),
            Contest::Counting => ("ns/op", "control"),
        };
        format!("{setting:<16}  {of:>7}  ratio  {:>12}  {control:>12}  pairs  verdict\n", "95 %")
    }

    fn legend(&self) -> String {
        let (bar, width) = (self.contest.bar(), self.contest.control_width());
        let level = self.contest.control_level() * 100.0;
        let [first, second] = self.cpus;
        match self.contest {
            Contest::Loops => format!(
                "Ratio: time of the compiled loop over that of C at -O2, on CPUs {first} and {second}.\n\
                 `within`: its interval ends at {bar} or below, and that of C against C ({level} %)\n\
                 holds 1 and is narrower than {width}. Packed: within one transfer regime, for\n\
                 information."
            ),
            Contest::Counting => format!(
                "Ratio: time of the loop while {} counters count over that while they stand\n\
                 still, on CPUs {first} and {second}. `within`: its interval ends at {bar} or below, and\n\
                 that of still against still (control, {level} %) holds 1 and is narrower than\n\
                 {width}. Packed: within one transfer regime, for information.",
                self.counted.unwrap_or(0)
            ),
            Contest::Locks => format!(
                "Ratio: time the lab takes to acquire and release over that of C at -O2, on CPUs\n\
                 {first} and {second}. Free: each process has a lock of its own. Contended: both take one,\n\
                 with a section, and work outside; within one transfer regime. `within`: the\n\
                 interval ends at {bar} or below, and that of C against C ({level} %) holds 1 and is\n\
                 narrower than {width}. Tries-first: C that tries before it waits, not the lab; for\n\
                 information."
            ),
        }
    }
}

fn line(row: &Row) -> String {
    let ratio = row.ratio.map_or("-".to_owned(), |ratio| format!("{:.3}", ratio.median));
    format!(
        "{:<16}  {:>7.3}  {ratio:>5}  {:>12}  {:>12}  {:>5}  {}\n",
        row.name,
        row.reference_ns_per_op,
        ends(row.ratio),
        ends(row.control),
        row.pairs_kept,
        row.verdict.word(),
    )
}

fn ends(interval: Option<Interval>) -> String {
    interval.map_or_else(|| "-".to_owned(), |i| format!("{:.3}, {:.3}", i.low, i.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::Setting;
    use crate::verdict::Verdict;

    fn row(setting: Setting, name: &'static str, verdict: Verdict) -> Row {
        let interval = Interval { median: 1.02, low: 0.998, high: 1.043 };
        Row {
            setting: setting.name(),
            name,
            judged: setting.is_judged(),
            pairs_kept: 10_400,
            pairs_dropped: 0,
            reference_ns_per_op: 1_234.5,
            contestant_ns_per_op: 1_259.2,
            ratio: Some(interval),
            control: Some(interval),
            contended_share: Some(0.25),
            verdict,
            regime_transfer_ns: 55.0,
            other_regimes: Vec::new(),
        }
    }

    fn report(contest: Contest, verdicts: [(Setting, Verdict); 3]) -> Report {
        let rows = verdicts.map(|(setting, verdict)| row(setting, "pthread-adaptive", verdict));
        Report::new(contest, 1, [10, 11], 0, rows.into())
    }

    #[test]
    fn the_exit_status_looks_at_judged_rows_alone() {
        use Verdict::{Over, Unresolved, Within};
        let status = |free, contended, tries_first| {
            let settings = [Setting::Free, Setting::Contended, Setting::TriesFirst];
            let verdicts = settings.into_iter().zip([free, contended, tries_first]).collect::<Vec<_>>();
            report(Contest::Locks, verdicts.try_into().unwrap()).exit_status()
        };
        assert_eq!(status(Within, Within, Over), 0);
        assert_eq!(status(Within, Unresolved, Within), 3);
        assert_eq!(status(Over, Unresolved, Within), 1);
        assert_eq!(status(Within, Over, Within), 1);
        let packed = [(Setting::Padded, Within), (Setting::Packed, Over), (Setting::Padded, Within)];
        assert_eq!(report(Contest::Loops, packed).exit_status(), 0);
    }

    #[test]
    fn a_table_has_a_section_for_each_setting_and_fits_a_terminal() {
        for contest in [Contest::Loops, Contest::Counting, Contest::Locks] {
            let settings = [Setting::FreeReaders, Setting::Contended, Setting::Contended];
            let table = report(contest, settings.map(|setting| (setting, Verdict::Unresolved))).table();
            assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
            let starts = table.lines().map(|line| line.split(' ').next().unwrap_or_default());
            let starts: Vec<&str> = starts.take(6).collect();
            let adaptive = "pthread-adaptive";
            assert_eq!(starts, ["free-readers", adaptive, "", "contended", adaptive, adaptive], "{table}");
        }
    }
}

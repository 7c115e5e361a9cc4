//! What `loops` prints: a table of at most 80 columns, or one JSON object.

use crate::statistics::{BAR, Interval, Row, Verdict};
use serde::Serialize;
use std::fmt::Write;

/// A finished comparison.
#[derive(Serialize)]
pub(crate) struct Report {
    schema_version: u32,
    benchmark: &'static str,
    seed: u64,
    cpus: [usize; 2],
    bar: f64,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(seed: u64, cpus: [usize; 2], rows: Vec<Row>) -> Report {
        Report { schema_version: 1, benchmark: "loops", seed, cpus, bar: BAR, rows }
    }

    /// 0 where every padded step is within the bar, 1 where one is over it, else 3. Packed ones are for information.
    pub(crate) fn exit_status(&self) -> u8 {
        let verdicts = || self.rows.iter().filter(|row| row.placement == "padded").map(|row| row.verdict);
        match () {
            () if verdicts().any(|verdict| verdict == Verdict::Over) => 1,
            () if verdicts().any(|verdict| verdict == Verdict::Unresolved) => 3,
            () => 0,
        }
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }

    pub(crate) fn table(&self) -> String {
        let mut text =
            String::from("placement step  C ns/op  ratio   95 % interval  C against C, 99 %  pairs  verdict\n");
        for row in &self.rows {
            let ratio = row.ratio.map_or("-".to_owned(), |ratio| format!("{:.3}", ratio.median));
            writeln!(
                text,
                "{:<9} {:<5} {:>7.3}  {ratio:>5}  {:>14}  {:>16}  {:>5}  {}",
                row.placement,
                row.step,
                row.c_ns_per_op,
                ends(row.ratio, 3),
                ends(row.control, 4),
                row.pairs_kept,
                row.verdict.word(),
            )
            .expect("writing to a string");
        }
        write!(
            text,
            "Ratio: time of the compiled loop over that of C at -O2, on CPUs {} and {}. `within`: its\n\
             interval ends at {BAR} or below, and that of C against C holds 1 and is narrower\n\
             than 0.02. Packed: within one transfer regime.",
            self.cpus[0], self.cpus[1]
        )
        .expect("writing to a string");
        text
    }
}

fn ends(interval: Option<Interval>, digits: usize) -> String {
    interval.map_or_else(|| "-".to_owned(), |i| format!("{:.digits$}, {:.digits$}", i.low, i.high))
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Within => "within",
            Verdict::Over => "over",
            Verdict::Unresolved => "unresolved",
        }
    }
}

//! What a contest prints: a table of at most 80 columns, or one JSON object.

use crate::sides::Contest;
use crate::statistics::{Interval, Row, Verdict};
use serde::Serialize;
use std::fmt::Write;

/// Version of the JSON. 2: the reference is no C program in every contest, so `c_ns_per_op` and the like became
/// `reference_ns_per_op`; `counted` came.
const SCHEMA_VERSION: u32 = 2;

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
        };
        Report { schema_version: SCHEMA_VERSION, benchmark, seed, cpus, bar: contest.bar(), counted, contest, rows }
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
        let mut text = format!(
            "placement step  {:>7}  ratio   95 % interval  {:>16}  pairs  verdict\n",
            match self.contest {
                Contest::Loops => "C ns/op",
                Contest::Counting => "ns/op",
            },
            match self.contest {
                Contest::Loops => "C against C, 99 %",
                Contest::Counting => "control, 99 %",
            }
        );
        for row in &self.rows {
            let ratio = row.ratio.map_or("-".to_owned(), |ratio| format!("{:.3}", ratio.median));
            writeln!(
                text,
                "{:<9} {:<5} {:>7.3}  {ratio:>5}  {:>14}  {:>16}  {:>5}  {}",
                row.placement,
                row.step,
                row.reference_ns_per_op,
                ends(row.ratio, 3),
                ends(row.control, 4),
                row.pairs_kept,
                row.verdict.word(),
            )
            .expect("writing to a string");
        }
        text + &self.legend()
    }

    fn legend(&self) -> String {
        let (bar, width) = (self.contest.bar(), self.contest.control_width());
        let [first, second] = self.cpus;
        match self.contest {
            Contest::Loops => format!(
                "Ratio: time of the compiled loop over that of C at -O2, on CPUs {first} and {second}. `within`: its\n\
                 interval ends at {bar} or below, and that of C against C holds 1 and is narrower\n\
                 than {width}. Packed: within one transfer regime."
            ),
            Contest::Counting => format!(
                "Ratio: time of the loop while {} counters count over that while they stand\n\
                 still, on CPUs {first} and {second}. `within`: its interval ends at {bar} or below, and that of\n\
                 still against still (control) holds 1 and is narrower than {width}. Packed: within\n\
                 one transfer regime, for information.",
                self.counted.unwrap_or(0)
            ),
        }
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

//! The table of everything as Markdown, which goes into `docs/bench.md`; and how it is written there when only some of its
//! parts were measured again.

use super::{Measured, Part, Report};
use crate::marks::{Marks, MarksError};
use crate::table::HEAD;
use nix::time::{ClockId, clock_gettime};
use std::path::Path;

/// Where the table stands in the docs.
const MARKS: Marks = Marks { begin: "<!-- all: written by `bench -- all --write` -->", end: "<!-- end of all -->" };

impl Report {
    pub(crate) fn markdown(&self) -> String {
        self.beside("")
    }

    /// Puts the table between the marks of a file; rows of parts that were not measured stay.
    ///
    /// # Errors
    /// Where the file cannot be read or written, or has no marks.
    pub(crate) fn write(&self, file: &Path) -> Result<(), MarksError> {
        let before = MARKS.read(file)?;
        MARKS.replace(file, &self.beside(&before))
    }

    /// The table, with the rows of other parts as they stand in an earlier one.
    fn beside(&self, before: &str) -> String {
        let measured = |part| self.parts.iter().find(|measured| measured.part == part);
        let kept =
            |begin: String| before.lines().filter(move |line| line.starts_with(&begin)).map(|line| format!("{line}\n"));
        let (mut rows, mut days) = (String::new(), String::new());
        for part in Part::ALL {
            match measured(part) {
                Some(measured) => {
                    rows.extend(measured.rows.iter().map(|row| row.markdown(&shown(part))));
                    days += &self.day(measured);
                }
                None => {
                    rows.extend(kept(format!("| {} |", shown(part))));
                    days.extend(kept(format!("- {}: ", part.name())));
                }
            }
        }
        format!("{HEAD}{rows}\nMeasured, as day, time it took, and machine:\n\n{days}")
    }

    fn day(&self, measured: &Measured) -> String {
        let Report { cpu_model, kernel, date, .. } = self;
        let minutes = measured.seconds / 60.0;
        format!("- {}: {date}, {minutes:.1} min, {cpu_model}, Linux {kernel}\n", measured.part.name())
    }
}

/// With a link to how it is measured.
fn shown(part: Part) -> String {
    let anchor = match part {
        Part::Loops => "#method",
        Part::Counting => "#what-counting-costs",
        Part::Locks => "#locks-against-c",
        Part::Latency => "#one-way-of-a-line",
        Part::Sharing => "#what-a-shared-line-costs",
        Part::Watching => "#what-looking-costs",
        Part::Tracing => "#what-tracing-costs",
        Part::Attach => "#what-a-watch-costs",
        Part::Startup => "#start-up-and-collection",
        Part::Model => "#how-fast-the-model-is",
        Part::Predictions => "#the-model-against-what-is-measured",
    };
    format!("[{}](../bench/README.md{anchor})", part.name())
}

/// The day, UTC.
pub(super) fn today() -> String {
    let days = clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |now| now.tv_sec() / 86_400);
    day(days)
}

/// Days since 1970-01-01 as a date: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
fn day(days: i64) -> String {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Row;

    fn report(parts: &[(Part, &str)]) -> Report {
        let parts = parts.iter().map(|&(part, what)| {
            let rows = vec![Row::missing(what, "apt-get install it")];
            Measured { part, seconds: 90.0, rows }
        });
        Report {
            schema_version: 1,
            benchmark: "all".into(),
            cpu_model: "EPYC".into(),
            kernel: "6.18".into(),
            date: "2026-11-30".into(),
            parts: parts.collect(),
        }
    }

    #[test]
    fn parts_that_are_measured_again_take_the_place_of_their_own_rows_alone() {
        let all = report(&[(Part::Loops, "the loops"), (Part::Model, "the model")]).markdown();
        let again = report(&[(Part::Model, "the model, again"), (Part::Sharing, "a line")]).beside(&all);
        let rows: Vec<&str> = again.lines().filter(|line| line.starts_with("| [")).collect();
        assert_eq!(rows.len(), 3, "{again}");
        assert!(rows[0].starts_with("| [loops](../bench/README.md#method) | the loops |"), "{again}");
        assert!(rows[1].contains("a line") && rows[2].contains("the model, again"), "{again}");
        let days: Vec<&str> = again.lines().filter(|line| line.starts_with("- ")).collect();
        assert_eq!(days.len(), 3, "{again}");
        assert_eq!(days[0], "- loops: 2026-11-30, 1.5 min, EPYC, Linux 6.18");
        assert_eq!(report(&[]).beside(&again), again);
    }

    #[test]
    fn every_part_is_explained_where_its_row_links() {
        let readme = include_str!("../../README.md");
        let anchors = readme.lines().filter_map(|line| line.strip_prefix("## ")).map(|heading| {
            heading
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || " -".contains(*c))
                .collect::<String>()
                .replace(' ', "-")
        });
        let anchors: Vec<String> = anchors.collect();
        for part in Part::ALL {
            let shown = shown(part);
            let anchor = shown.split('#').nth(1).unwrap().trim_end_matches(')');
            assert!(anchors.iter().any(|one| one == anchor), "{anchor} of {anchors:?}");
        }
    }

    #[test]
    fn a_day_is_a_date() {
        assert_eq!([0, 59, 11_016, 20_787].map(day), ["1970-01-01", "1970-03-01", "2000-02-29", "2026-11-30"]);
    }
}

//! The report as Markdown, which goes into `docs/advise.md`.

use super::{AdviceError, Outcome, Report, Row};
use record::Interval;
use std::path::Path;

const BEGIN: &str = "<!-- advice: written by `bench -- advice --write` -->";
const END: &str = "<!-- end of advice -->";

impl Report {
    /// A summary and a row for each case and twist.
    pub(crate) fn markdown(&self) -> String {
        let count = |outcome: Outcome| self.rows.iter().filter(|row| row.verdict == outcome).count();
        let mut text = format!(
            "On {}, Linux {}: of {} questions the advice is better than the published change in {}, as good in {}, worse in \
             {}, slower than what was there in {}, and noise hid it in {}.\n\n",
            self.cpu_model,
            self.kernel,
            self.rows.len(),
            count(Outcome::Better),
            count(Outcome::AsGood),
            count(Outcome::Worse),
            count(Outcome::Slower),
            count(Outcome::Unresolved),
        );
        text += "| case | fields | published change | layout advised | its gain | held against it | its gain | against the \
                 published change | outcome |\n|---|---|--:|---|--:|---|--:|--:|---|\n";
        self.rows.iter().for_each(|row| text += &line(row));
        text
    }
}

/// A row of the table.
pub(super) fn line(row: &Row) -> String {
    let Row { case, published, layout, layout_gain, best, advised, against_published, .. } = row;
    let layout_name = if layout == "present" { "leave it".to_owned() } else { format!("`{layout}`") };
    let best_name = match () {
        () if best.starts_with("before") => "leave it".to_owned(),
        () if row.code_changes.contains(best) => format!("`{best}` (code)"),
        () => format!("`{best}`"),
    };
    let outcome = match row.verdict {
        Outcome::Better => "better".to_owned(),
        Outcome::AsGood => "as good".to_owned(),
        Outcome::Worse => "**worse**".to_owned(),
        Outcome::Slower => format!("**slower** for {}", row.slower_roles.join(", ")),
        Outcome::Unresolved => "noise hid it".to_owned(),
    };
    format!(
        "| {case} | {} | `{}`{} {} | {layout_name} | {} | {best_name} | {} | {} | {outcome} |\n",
        row.twist.name(),
        row.change,
        if row.change_is_code { " (code)" } else { "" },
        shown(*published),
        shown(*layout_gain),
        shown(*advised),
        shown(*against_published),
    )
}

fn shown(interval: Option<Interval>) -> String {
    match interval {
        None => "–".to_owned(),
        Some(Interval { median, low, high }) if low == high => format!("{median:.0}"),
        Some(Interval { median, low, high }) => format!("{median:.2} ({low:.2}–{high:.2})"),
    }
}

/// Puts `table` between the marks of a file.
pub(crate) fn replace(file: &Path, table: &str) -> Result<(), AdviceError> {
    let failed = |error| AdviceError::File { file: file.to_owned(), error };
    let text = std::fs::read_to_string(file).map_err(failed)?;
    let no = |mark| AdviceError::NoMark { file: file.to_owned(), mark };
    let (before, rest) = text.split_once(BEGIN).ok_or_else(|| no(BEGIN))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| no(END))?;
    std::fs::write(file, format!("{before}{BEGIN}\n\n{table}\n{END}{after}")).map_err(failed)
}

//! The report as Markdown, which goes into `docs/model.md`.

use super::{FAR, Half, Pair, Report, Row, Scored};
use crate::marks::Marks;
use std::fmt::Write;

/// Where the table stands in the docs.
pub(crate) const MARKS: Marks = Marks {
    begin: "<!-- predictions: written by `bench -- predictions --write` -->",
    end: "<!-- end of predictions -->",
};

impl Report {
    /// A summary, a table of every arm, and what was missed.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("On {}, Linux {}.\n\n", self.cpu_model, self.kernel);
        text += &self.summary();
        text += "\n| scenario | arm | role | measured ns/op | modelled ns/op | measured ratio | modelled ratio | off by |\n";
        text += "|---|---|---|--:|--:|--:|--:|--:|\n";
        for scored in &self.scenarios {
            scored.rows.iter().for_each(|row| text += &line(scored, row));
        }
        self.order(&mut text);
        self.left_out(&mut text);
        text
    }

    fn summary(&self) -> String {
        let mut text =
            "| half | scenarios | predictions | within 2 × | of those above 1.5 × | order right | no difference | order wrong |\n"
            .to_owned();
        text += "|---|--:|--:|--:|--:|--:|--:|--:|\n";
        for (name, half) in [("tuned", Some(Half::Tuned)), ("set aside", Some(Half::SetAside)), ("all", None)] {
            let of: Vec<&Scored> = self.scenarios.iter().filter(|s| half.is_none_or(|half| s.half == half)).collect();
            let (hits, rows) = self.hits(half, 0.0);
            let (far_hits, far) = self.hits(half, FAR);
            if rows == 0 {
                continue;
            }
            let count = |count: fn(&Scored) -> usize| of.iter().map(|scored| count(scored)).sum::<usize>();
            let share = 100.0 * hits as f64 / rows as f64;
            writeln!(
                text,
                "| {name} | {} | {rows} | {hits} ({share:.0} %) | {far_hits} of {far} | {} | {} | {} |",
                of.len(),
                count(|s| s.order.right as usize),
                count(|s| s.order.tied.len()),
                count(|s| s.order.wrong.len()),
            )
            .expect("a string takes all");
        }
        text
    }

    fn order(&self, text: &mut String) {
        for (head, pairs) in [
            ("Order wrong", (|s: &Scored| &s.order.wrong) as fn(&Scored) -> &Vec<Pair>),
            ("Measured apart, the same to the model", |s| &s.order.tied),
        ] {
            if self.scenarios.iter().any(|scored| !pairs(scored).is_empty()) {
                *text += &format!("\n{head} (slower over faster, measured; modelled):\n\n");
            }
            for scored in self.scenarios.iter().filter(|scored| !pairs(scored).is_empty()) {
                let told = pairs(scored).iter().map(|pair| {
                    let Pair { role, faster, slower, measured_ratio, modelled_ratio } = pair;
                    format!("`{slower}` over `{faster}` for {role} {measured_ratio:.2}; {modelled_ratio:.2}")
                });
                *text += &format!("- {}: {}.\n", scored.scenario, told.collect::<Vec<_>>().join(", "));
            }
        }
    }

    fn left_out(&self, text: &mut String) {
        if self.scenarios.iter().any(|scored| !scored.left_out.is_empty()) {
            *text += "\nNot compared:\n\n";
        }
        for scored in &self.scenarios {
            for left in &scored.left_out {
                *text += &format!("- {}, `{}`: {}.\n", scored.scenario, left.arm, left.why);
            }
        }
    }
}

fn line(scored: &Scored, row: &Row) -> String {
    let Row { arm, role, measured_ns, modelled_ns, measured_ratio, modelled_ratio, off_by, .. } = row;
    let (name, mark) = (&scored.scenario, if row.is_hit() { "" } else { "**" });
    let aside = if scored.half == Half::SetAside { " °" } else { "" };
    format!(
        "| {name}{aside} | `{arm}` | {role} | {} | {} | {measured_ratio:.2} | {modelled_ratio:.2} | {mark}{off_by:.2}{mark} |\n",
        figure(*measured_ns),
        figure(*modelled_ns),
    )
}

/// Three digits.
fn figure(ns: f64) -> String {
    let digits = (2 - ns.abs().max(1e-9).log10().floor() as i32).clamp(0, 3);
    format!("{ns:.*}", digits as usize)
}

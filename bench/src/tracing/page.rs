//! What `bench -- tracing` prints: two tables of at most 80 columns, or one JSON object.

use super::{ARMS, Condition, Powers, Report, Seen, Under};
use crate::{rounds, table};
use std::collections::BTreeSet;
use std::fmt::Write;

impl Report {
    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("Linux {}, {} rounds\n\n{}", self.kernel, self.rounds.len(), self.costs());
        // In the arm that meets often: where somebody waits.
        text.push_str("\nwaits in ");
        text.push_str(ARMS[0]);
        text.push_str(", and every call in plain, % of each column\n");
        text.push_str(&self.histograms());
        text
    }

    /// For the table of everything: each arm under each tracer.
    pub(crate) fn rows(&self) -> Vec<table::Row> {
        let place = |condition| Condition::ALL.iter().position(|one| *one == condition).unwrap_or(0);
        let row = |(arm, condition): (usize, Condition)| {
            let ns = |under: &Under| under.arms[arm].ns_per_pass;
            let over = |condition| rounds::ratio(&self.rounds, [place(condition), place(Condition::Untraced)], ns);
            let tracer = match condition {
                Condition::Uprobe => "bpftrace at `pthread_mutex_lock`",
                _ => "bpftrace at the markers",
            };
            let untraced = rounds::median(&self.rounds, place(Condition::Untraced), ns);
            let untraced = untraced.map_or("–".to_owned(), table::digits);
            table::Row::ratio(format!("`{}`, {tracer}", ARMS[arm]), "untraced", over(condition), over(Condition::Again))
                .noting(format!("{untraced} ns untraced"))
        };
        let traced = [Condition::Markers, Condition::Uprobe];
        traced.iter().flat_map(|condition| (0..ARMS.len()).map(move |arm| (arm, *condition))).map(row).collect()
    }

    fn seen(&self, condition: Condition, arm: usize) -> impl Iterator<Item = &Seen> {
        let conditions = self.rounds.iter().flatten();
        conditions.filter(move |under| under.condition == condition).map(move |under| &under.arms[arm])
    }

    /// Smallest, median and largest of the rounds in which the arm has a figure.
    fn ns_per_pass(&self, condition: Condition, arm: usize) -> Option<[f64; 3]> {
        let mut figures: Vec<f64> = self.seen(condition, arm).filter_map(|seen| seen.ns_per_pass).collect();
        figures.sort_by(f64::total_cmp);
        let last = figures.len().checked_sub(1)?;
        Some([figures[0], (figures[last / 2] + figures[last.div_ceil(2)]) / 2.0, figures[last]])
    }

    fn costs(&self) -> String {
        let mut text = format!(
            "{:<10} {:>9} {:>16} {:>9} {:>10} {:>10} {:>10}\n",
            "", "ns a pass", "lowest, highest", "slowdown", "acquired", "lab: waits", "it: waits"
        );
        for (arm, name) in ARMS.iter().enumerate() {
            let _ = writeln!(text, "{name}");
            for condition in Condition::ALL {
                text.push_str(&self.cost(arm, condition));
            }
        }
        text
    }

    fn cost(&self, arm: usize, condition: Condition) -> String {
        let ns = self.ns_per_pass(condition, arm);
        let slowdown = ns.zip(self.ns_per_pass(Condition::Untraced, arm)).map(|(ns, untraced)| ns[1] / untraced[1]);
        let sum = |of: fn(&Seen) -> u64| self.seen(condition, arm).map(of).sum::<u64>();
        let not_looked = |looked: bool, count: u64| if looked { count.to_string() } else { "-".to_owned() };
        format!(
            "  {:<8} {:>9} {:>16} {:>9} {:>10} {:>10} {:>10}\n",
            condition.name(),
            ns.map_or("none kept".to_owned(), |ns| format!("{:.0}", ns[1])),
            ns.map_or(String::new(), |ns| format!("{:.0}, {:.0}", ns[0], ns[2])),
            slowdown.map_or("-".to_owned(), |slowdown| format!("{slowdown:.2} x")),
            sum(|seen| seen.acquisitions),
            not_looked(ARMS[arm] != "plain", sum(|seen| seen.contended)),
            not_looked(condition.traces(), sum(|seen| seen.tracer_ns.total())),
        )
    }

    fn histograms(&self) -> String {
        let lab = |condition| self.seen(condition, 0).map(|seen| &seen.lab_ns).sum::<Powers>();
        let tracer = |condition, arm| self.seen(condition, arm).map(|seen| &seen.tracer_ns).sum::<Powers>();
        let columns = [
            ("lab", lab(Condition::Untraced)),
            ("lab", lab(Condition::Markers)),
            ("markers", tracer(Condition::Markers, 0)),
            ("lab", lab(Condition::Uprobe)),
            ("uprobe", tracer(Condition::Uprobe, 0)),
            ("in plain", tracer(Condition::Uprobe, 2)),
        ];
        let mut text = format!("{:<16} {:>9} {:-^19} {:-^29}\n", "", "untraced", " markers ", " uprobe ");
        let _ = write!(text, "{:<16}", "ns");
        columns.iter().for_each(|(name, _)| write!(text, " {name:>9}").expect("a text takes all"));
        text.push('\n');
        let buckets: BTreeSet<u32> = columns.iter().flat_map(|(_, powers)| powers.buckets()).collect();
        for bucket in buckets.first().copied().unwrap_or(1)..=buckets.last().copied().unwrap_or(0) {
            let _ = write!(text, "{:<16}", format!("{} to {}", power(bucket), power(bucket + 1)));
            for (_, powers) in &columns {
                let share = match powers.share(bucket) {
                    None => "-".to_owned(),
                    Some(share) if share > 0.0 && share < 0.0005 => "< 0.05".to_owned(),
                    Some(share) if share > 0.0 => format!("{:.1}", share * 100.0),
                    Some(_) => String::new(),
                };
                let _ = write!(text, " {share:>9}");
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text
    }
}

/// 2 to that power, as bpftrace shortens it: K is 1024.
fn power(bucket: u32) -> String {
    match bucket {
        0..10 => (1_u64 << bucket).to_string(),
        10..20 => format!("{}K", 1_u64 << (bucket - 10)),
        20..30 => format!("{}M", 1_u64 << (bucket - 20)),
        _ => format!("{}G", 1_u64 << (bucket - 30)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One round: a figure for each arm, but for one that the machine spoiled.
    fn report() -> Report {
        let mut waits = Powers::default();
        waits.add(700, 1);
        waits.add(5000, 3999);
        let seen = |ns_per_pass| Seen {
            ns_per_pass,
            acquisitions: 9000,
            contended: 4000,
            lab_ns: waits.clone(),
            tracer_ns: waits.clone(),
        };
        let under = |(condition, ns)| {
            let some = (condition != Condition::Uprobe).then_some(ns);
            Under { condition, arms: vec![seen(Some(ns)), seen(some), seen(Some(ns))] }
        };
        let conditions = Condition::ALL.into_iter().zip([100.0, 101.0, 125.0, 20_000.0]).map(under).collect();
        Report { schema_version: 2, benchmark: "tracing", kernel: "6.18".into(), rounds: vec![conditions] }
    }

    #[test]
    fn the_page_is_80_columns_wide_and_says_what_is_missing() {
        let text = report().text();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let line = |begin: &str| text.lines().find(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("{text}"));
        assert!(line("  uprobe").contains("20000     20000, 20000  200.00 x"), "{text}");
        assert!(text.lines().any(|line| line.contains("none kept") && line.contains(" - ")), "{text}");
        assert!(line("512 to 1K").contains("< 0.05"), "{text}");
        assert!(line("4K to 8K").contains("100.0"), "{text}");
        assert_eq!(line("1K to 2K"), "1K to 2K");
    }

    #[test]
    fn the_json_has_every_round() {
        let json: serde_json::Value = serde_json::from_str(&report().json()).unwrap();
        let arm = &json["rounds"][0][2]["arms"][0];
        assert_eq!((json["benchmark"].as_str(), arm["ns_per_pass"].as_f64()), (Some("tracing"), Some(125.0)));
        assert_eq!(arm["tracer_ns"]["12"], 3999);
    }
}

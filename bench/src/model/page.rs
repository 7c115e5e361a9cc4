//! The report of the model's speed as Markdown, which goes into `docs/model.md`.

use super::{Bar, Memory, Report, Speed, Spread};

impl Report {
    pub(crate) fn text(&self) -> String {
        let Report { cpu_model, kernel, cpu, rounds, machine, .. } = self;
        let mut text = format!(
            "On {cpu_model}, Linux {kernel}, CPU {cpu} alone; median of {rounds} rounds, lowest\n\
             and highest. Simulated: `{machine}`.\n\n\
             | simulated | M accesses | s | M accesses/s | bar | of the bar | |\n\
             |---|--:|--:|--:|--:|--:|---|\n"
        );
        self.speed.iter().for_each(|row| text += &speed(row));
        text += "\n| memory | peak KiB | of 10 × the accesses | growth | bar | |\n|---|--:|--:|--:|--:|---|\n";
        self.memory.iter().for_each(|row| text += &memory(row));
        text
    }
}

fn speed(row: &Speed) -> String {
    let bar = match row.bar {
        Bar::PerSecond(bar) => format!("≥ {} M/s", bar / 1e6),
        Bar::Seconds(bar) => format!("< {bar} s"),
    };
    format!(
        "| {}, {} workers | {:.1} | {} | {} | {bar} | {:.2} | {} |\n",
        row.case,
        row.workers,
        row.accesses as f64 / 1e6,
        spread(row.seconds, 1.0, 2),
        spread(row.accesses_per_second, 1e6, 1),
        row.of_bar,
        verdict(row.of_bar >= 1.0),
    )
}

fn memory(row: &Memory) -> String {
    let Memory { case, peak_kib, peak_of_ten_times_kib, growth, bar, .. } = row;
    let verdict = verdict(growth <= bar);
    format!("| {case} | {peak_kib} | {peak_of_ten_times_kib} | {growth:.3} | ≤ {bar} | {verdict} |\n")
}

fn spread(figure: Spread, unit: f64, digits: usize) -> String {
    let [median, least, most] = [figure.median, figure.least, figure.most].map(|figure| figure / unit);
    format!("{median:.digits$} ({least:.digits$}–{most:.digits$})")
}

fn verdict(is_within: bool) -> &'static str {
    if is_within { "within" } else { "over" }
}

//! What `run --live` shows beneath the progress bar: every arm so far, the latest repetition worker by worker, and what
//! the findings are until now. Like the bar it is drawn between windows only: while workers run, nobody looks.

use crate::report::figures::{NONE, percent, plain, plural};
use crate::report::page::Page;
use crate::report::style::Style;
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use crate::report::terminal;
use analysis::Findings;
use record::{ArmSummary, Observation};
use std::time::{Duration, Instant};

/// Looking takes at most about one part in so many of a run's time: an analysis is made when the time since the last
/// one is so many times what it will take.
const LOOK_SHARE: f64 = 100.0;
/// Arms that are listed, workers, and locks: what is beyond is counted.
const MOST_ARMS: usize = 12;
const MOST_WORKERS: usize = 8;
const MOST_LOCKS: usize = 8;
/// Columns of a worker's bar.
const BAR: usize = 12;

/// What has been seen so far.
pub(super) struct Live {
    title: String,
    /// In the order in which they first ran.
    arms: Vec<Arm>,
    /// All workers of the repetition that ran last.
    latest: Vec<Observation>,
    /// The findings, and of how many blocks.
    findings: Option<(u64, Findings)>,
    looks: Looks,
}

struct Arm {
    name: String,
    repetitions: u64,
    /// Its workers' passes a nanosecond, added up, in its latest repetition; `None` where one has no figure.
    rate: Option<f64>,
}

impl Live {
    /// Nothing yet, of a run with that title.
    pub(super) fn new(title: &str) -> Live {
        Live {
            title: title.to_owned(),
            arms: Vec::new(),
            latest: Vec::new(),
            findings: None,
            looks: Looks::new(Instant::now()),
        }
    }

    /// Takes note of a repetition.
    pub(super) fn repetition(&mut self, workers: &[Observation]) {
        let Some(first) = workers.first() else { return };
        let rate = workers.iter().map(|worker| worker.ns_per_op.map(|ns| 1.0 / ns)).sum();
        match self.arms.iter_mut().find(|arm| arm.name == first.arm) {
            Some(arm) => (arm.repetitions, arm.rate) = (arm.repetitions + 1, rate),
            None => self.arms.push(Arm { name: first.arm.clone(), repetitions: 1, rate }),
        }
        self.latest = workers.to_vec();
    }

    /// Makes the findings of so many blocks anew, if that is cheap against the time since it was last done.
    pub(super) fn block(&mut self, blocks: u64, look: &mut dyn FnMut() -> Findings) {
        let begun = Instant::now();
        if self.looks.is_due(begun, blocks) {
            self.findings = Some((blocks, look()));
            self.looks.took(begun, Instant::now(), blocks);
        }
    }

    /// The view in lines, at most `rows` of them.
    pub(super) fn page(&self, style: &Style, rows: usize) -> String {
        let mut page = Page::new(style);
        page.heading(&self.title);
        self.write_arms(&mut page);
        self.write_latest(&mut page);
        if let Some((blocks, findings)) = &self.findings {
            page.heading(&format!("Diagnosis so far, of {}", plural(*blocks, "block")));
            findings.diagnosis.iter().for_each(|diagnosis| terminal::finding(&mut page, diagnosis));
            write_waits(&mut page, &findings.arms);
        }
        cut(&page.finish(), rows)
    }

    fn summary(&self, arm: &str) -> Option<&ArmSummary> {
        self.findings.as_ref().and_then(|(_, findings)| findings.arms.iter().find(|summary| summary.name == arm))
    }

    fn write_arms(&self, page: &mut Page) {
        if self.arms.is_empty() {
            return;
        }
        let mut shown: Vec<&Arm> = self.arms.iter().collect();
        if let Some((_, findings)) = &self.findings {
            // In the scenario's order, once it is known; an arm that is new since then stands last.
            let place = |arm: &&Arm| findings.arms.iter().position(|s| s.name == arm.name).unwrap_or(usize::MAX);
            shown.sort_by_key(place);
        }
        let columns = vec![
            Column::words("arm"),
            Column::figures("repetitions", "reps"),
            Column::figures("latest M ops/s", "latest\nM ops/s"),
            Column::figures("ns/op so far", "so far\nns/op"),
            Column::figures("times the best", "× best"),
        ];
        let rows = shown.iter().take(MOST_ARMS).map(|arm| {
            let summary = self.summary(&arm.name);
            let interval = |of: fn(&ArmSummary) -> Option<record::Interval>| {
                summary.and_then(of).map_or_else(|| Cell::text(NONE), |interval| Cell::interval(&interval))
            };
            Row::new(vec![
                Cell::text(&arm.name),
                Cell::text(arm.repetitions.to_string()),
                Cell::text(arm.rate.map_or_else(|| NONE.to_owned(), |rate| plain(rate * 1e3))),
                interval(|summary| summary.ns_per_op),
                interval(|summary| summary.ratio_to_best),
            ])
        });
        let rows = rows.collect();
        page.grid(&Grid { columns, rows }, &Notes::default());
        left_out(page, shown.len(), MOST_ARMS, "arm");
    }

    fn write_latest(&self, page: &mut Page) {
        let Some(first) = self.latest.first() else { return };
        let spoiled = match first.spoiled.as_slice() {
            [] => String::new(),
            reasons => format!(", does not count ({})", reasons.join(", ")),
        };
        page.heading(&format!("Now: {}, block {}{spoiled}", first.arm, first.block + 1));
        let has_locks = self.latest.iter().any(|worker| !worker.locks.is_empty());
        let mut columns = vec![
            Column::figures("worker", "worker"),
            Column::words("role"),
            Column::figures("CPU", "CPU"),
            Column::figures("M ops/s", "M ops/s"),
            Column::words("of the fastest"),
            Column::figures("off its CPU", "off CPU"),
        ];
        if has_locks {
            columns.push(Column::figures("had to wait", "waited"));
            columns.push(Column::figures("longest wait, us", "longest\nwait, us"));
        }
        let fastest = self.latest.iter().filter_map(rate).fold(0.0, f64::max);
        let rows = chosen(&self.latest).into_iter().map(|worker| worker_row(worker, fastest, has_locks)).collect();
        page.grid(&Grid { columns, rows }, &Notes::default());
        if self.latest.len() > MOST_WORKERS {
            let half = MOST_WORKERS / 2;
            page.legend(&format!("the slowest {half} and the fastest {half} of {} workers", self.latest.len()));
        }
    }
}

/// Passes a nanosecond.
fn rate(worker: &Observation) -> Option<f64> {
    worker.ns_per_op.map(|ns| 1.0 / ns)
}

/// All workers, or of many the slowest and the fastest, in the order of their numbers.
fn chosen(workers: &[Observation]) -> Vec<&Observation> {
    let mut all: Vec<&Observation> = workers.iter().collect();
    if all.len() > MOST_WORKERS {
        // A worker without a figure completed nothing: it is slower than any.
        all.sort_by(|a, b| rate(a).unwrap_or(0.0).total_cmp(&rate(b).unwrap_or(0.0)));
        all.drain(MOST_WORKERS / 2..all.len() - MOST_WORKERS / 2);
        all.sort_by_key(|worker| worker.worker);
    }
    all
}

fn worker_row(worker: &Observation, fastest: f64, has_locks: bool) -> Row {
    let or_none = |text: Option<String>| Cell::text(text.unwrap_or_else(|| NONE.to_owned()));
    let window = worker.kept_ns + worker.lost_ns;
    let mut cells = vec![
        Cell::text(worker.worker.to_string()),
        Cell::text(&worker.role),
        Cell::text(worker.cpu.to_string()),
        or_none(rate(worker).map(|rate| plain(rate * 1e3))),
        Cell::text(rate(worker).filter(|_| fastest > 0.0).map_or_else(String::new, |rate| bar(rate / fastest))),
        or_none((window > 0.0).then(|| percent(worker.lost_ns / window))),
    ];
    if has_locks {
        let total = |of: fn(&record::LockObservation) -> u64| worker.locks.iter().map(of).sum::<u64>();
        let (contended, acquisitions) = (total(|lock| lock.contended), total(|lock| lock.acquisitions));
        cells.push(or_none((acquisitions > 0).then(|| percent(contended as f64 / acquisitions as f64))));
        let longest = worker.locks.iter().flat_map(|lock| &lock.all_waits).map(|wait| wait.ns).max();
        cells.push(or_none(longest.map(|ns| plain(ns as f64 / 1e3))));
    }
    Row::new(cells)
}

/// A bar of eighths of a column; what is above zero has at least one.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = ((share.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize).max(usize::from(share > 0.0));
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// How long each arm's locks made workers wait, in all repetitions that the findings are of.
fn write_waits(page: &mut Page, arms: &[ArmSummary]) {
    let locks: Vec<_> = arms.iter().flat_map(|arm| arm.locks.iter().map(move |lock| (arm, lock))).collect();
    if locks.is_empty() {
        return;
    }
    page.heading("Waits so far");
    let columns = vec![
        Column::words("arm"),
        Column::words("lock"),
        Column::figures("contended", "contended"),
        Column::figures("p50, ns", "p50, ns"),
        Column::figures("p99, ns", "p99, ns"),
        Column::figures("max, ns", "max, ns"),
    ];
    let rows = locks.iter().take(MOST_LOCKS).map(|(arm, lock)| {
        let wait = |of: fn(record::Percentiles) -> u64| {
            Cell::text(lock.wait_ns.map_or_else(|| NONE.to_owned(), |wait| plain(of(wait) as f64)))
        };
        Row::new(vec![
            Cell::text(&arm.name),
            Cell::text(format!("{} ({})", lock.lock, lock.kind)),
            Cell::text(lock.contended_share.map_or_else(|| NONE.to_owned(), percent)),
            wait(|wait| wait.p50),
            wait(|wait| wait.p99),
            wait(|wait| wait.max),
        ])
    });
    let rows = rows.collect();
    page.grid(&Grid { columns, rows }, &Notes::default());
    left_out(page, locks.len(), MOST_LOCKS, "lock");
}

fn left_out(page: &mut Page, all: usize, most: usize, noun: &str) {
    if all > most {
        page.legend(&format!("and {} more", plural((all - most) as u64, noun)));
    }
}

/// The first lines of a text, and that there are more.
fn cut(text: &str, rows: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= rows {
        return lines.join("\n");
    }
    let shown = rows.saturating_sub(1);
    let more = plural((lines.len() - shown) as u64, "line");
    let last = format!("… {more} more: a taller window shows them");
    lines[..shown].iter().copied().chain([last.as_str()]).collect::<Vec<_>>().join("\n")
}

/// When findings were last made, what that took, and of how many blocks.
struct Looks {
    last: Instant,
    took: Duration,
    blocks: u64,
}

impl Looks {
    /// As if one had been made at `start`, of nothing: the first is due at once.
    fn new(start: Instant) -> Looks {
        Looks { last: start, took: Duration::ZERO, blocks: 1 }
    }

    /// An analysis reads all blocks, so the next one takes as much longer as there are more.
    fn is_due(&self, now: Instant, blocks: u64) -> bool {
        let will_take = self.took.as_secs_f64() * blocks as f64 / self.blocks.max(1) as f64;
        now.saturating_duration_since(self.last).as_secs_f64() >= will_take * LOOK_SHARE
    }

    fn took(&mut self, begun: Instant, ended: Instant, blocks: u64) {
        *self = Looks { last: ended, took: ended.saturating_duration_since(begun), blocks };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;
    use record::{LockObservation, LockSummary, NsCount, Percentiles, Run};

    fn findings(run: &Run) -> Findings {
        Findings {
            method: run.method.clone(),
            arms: run.arms.clone(),
            expect: Vec::new(),
            predictions: Vec::new(),
            diagnosis: run.diagnosis.clone(),
            warnings: Vec::new(),
            conclusive: true,
            precision_reached: None,
        }
    }

    fn block(run: &Run, arm: &str) -> Vec<Observation> {
        run.observations.iter().filter(|seen| seen.arm == arm && seen.block == 0).cloned().collect()
    }

    fn shown(live: &Live, width: usize, rows: usize) -> String {
        live.page(&Style::plain(width), rows).replace('\u{a0}', " ")
    }

    #[test]
    fn rates_by_worker_arms_in_the_scenario_s_order_and_the_diagnosis_so_far() {
        let run = testing::false_sharing();
        let mut live = Live::new("False\u{1b}[2Jsharing");
        assert_eq!(shown(&live, 80, 40), "False\\u{1b}[2Jsharing", "before anything has run");
        live.repetition(&block(&run, "padded-64"));
        live.repetition(&block(&run, "packed"));
        let before = shown(&live, 80, 40);
        assert!(before.contains("Now: packed, block 1") && !before.contains("Diagnosis"), "{before}");
        live.block(1, &mut || findings(&run));
        let text = shown(&live, 80, 40);
        let line = |word: &str| text.lines().find(|line| line.starts_with(word)).unwrap_or_else(|| panic!("{text}"));
        assert!(text.find("packed").unwrap() < text.find("padded-64").unwrap(), "{text}");
        assert!(line("packed").contains("23 (22–24)") && line("packed").contains("86.5"), "{text}");
        assert!(line("Diagnosis so far").ends_with("of 1 block"), "{text}");
        assert!(text.contains("false sharing (high)"), "{text}");
        assert!(text.lines().filter(|line| line.contains("████████████")).count() >= 1, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_worker_that_got_little_is_seen_to_and_one_without_a_figure_has_none() {
        let mut workers = block(&testing::false_sharing(), "packed");
        (workers[0].ns_per_op, workers[1].ns_per_op) = (Some(10.0), Some(1000.0));
        let mut live = Live::new("t");
        live.repetition(&workers);
        let text = shown(&live, 80, 40);
        assert!(text.contains("████████████") && text.contains("▏"), "{text}");
        workers[1].ns_per_op = None;
        workers[1].spoiled = vec!["lost_time".to_owned()];
        workers[0].spoiled = workers[1].spoiled.clone();
        live.repetition(&workers);
        let text = shown(&live, 80, 40);
        assert!(text.contains("does not count (lost_time)") && text.contains("  –"), "{text}");
    }

    #[test]
    fn waits_of_workers_and_of_arms_are_shown_where_there_are_locks() {
        let mut run = testing::false_sharing();
        let wait = NsCount { ns: 12_500, count: 1 };
        for seen in &mut run.observations {
            let all_waits = vec![NsCount { ns: 80, count: 3 }, wait];
            let lock =
                LockObservation { lock: "m".into(), acquisitions: 200, contended: 50, all_waits, ..Default::default() };
            seen.locks = vec![lock];
        }
        let wait_ns = Some(Percentiles {
            count: 4,
            min: 80,
            mean: 3185.0,
            p50: 80,
            p90: 12_500,
            p99: 12_500,
            p999: 12_500,
            max: 12_500,
        });
        run.arms[0].locks = vec![LockSummary {
            lock: "m".into(),
            kind: "mcs".into(),
            contended_share: Some(0.25),
            wait_ns,
            ..Default::default()
        }];
        let mut live = Live::new("t");
        live.repetition(&block(&run, "packed"));
        live.block(1, &mut || findings(&run));
        let text = shown(&live, 80, 60);
        assert!(text.contains("25 %") && text.contains("12.5"), "{text}");
        assert!(text.contains("Waits so far") && text.contains("m (mcs)"), "{text}");
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let mut one = block(&testing::false_sharing(), "packed");
        let worker = one.remove(0);
        let many =
            |n: u32| (0..n).map(|w| Observation { worker: w, ns_per_op: Some(f64::from(w + 1)), ..worker.clone() });
        let mut live = Live::new("t");
        for arm in 0..20 {
            let workers = many(128).map(|seen| Observation { arm: format!("arm-{arm}"), ..seen });
            live.repetition(&workers.collect::<Vec<_>>());
        }
        let text = shown(&live, 100, 100);
        assert!(text.contains("and 8 arms more") || text.contains("8 arms"), "{text}");
        assert!(text.contains("the slowest 4 and the fastest 4 of 128 workers"), "{text}");
        let low = shown(&live, 100, 10);
        assert_eq!(low.lines().count(), 10);
        assert!(low.ends_with("more: a taller window shows them"), "{low}");
    }

    #[test]
    fn looking_is_due_when_it_is_a_hundredth_of_the_time_since() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut looks = Looks::new(start);
        assert!(looks.is_due(start, 1), "the first costs what one block costs");
        looks.took(at(0), at(10), 2);
        assert!(!looks.is_due(at(1_009), 2) && looks.is_due(at(1_010), 2));
        assert!(!looks.is_due(at(1_999), 4) && looks.is_due(at(2_010), 4), "twice the blocks take twice as long");
    }
}

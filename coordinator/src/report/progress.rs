//! What is seen while a run goes on, on standard error. No thread draws: everything is drawn inside the calls below,
//! which the coordinator makes between windows only, so that no worker is evicted for a progress bar.

use crate::campaign::Observer;
use crate::report::figures::{plain, plural, wall_time};
use crate::report::live::Live;
use crate::report::style::{ColourChoice, Style};
use crate::report::text::escaped;
use crate::report::window;
use analysis::Findings;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use record::Observation;
use std::io::IsTerminal;
use std::io::Write;
use std::time::{Duration, Instant};

/// How progress is shown.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProgressMode {
    /// Not at all.
    Quiet,
    /// A line a phase: for logs.
    Lines,
    /// One line that is drawn anew: for terminals.
    Bar,
    /// A screen that is drawn anew: the line, and beneath it what has been seen so far.
    Live(ColourChoice),
}

impl ProgressMode {
    /// What standard error can show: a bar on a terminal, lines elsewhere, nothing to whom wants quiet.
    pub(crate) fn on_stderr(quiet: bool) -> ProgressMode {
        match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => ProgressMode::Quiet,
            (false, true) => ProgressMode::Bar,
            (false, false) => ProgressMode::Lines,
        }
    }
}

/// Rows of a terminal that does not know them.
const DEFAULT_ROWS: u16 = 24;

/// The progress of one run, in repetitions.
pub(crate) struct Progress {
    shown: Shown,
    title: String,
    started: Instant,
    total: u64,
    done: u64,
    phase: String,
    /// The latest rate of each arm, the arm that ran last in front.
    rates: Vec<(String, f64)>,
}

enum Shown {
    Nothing,
    Lines(Box<dyn Write + Send>),
    Bar(ProgressBar),
    Live(ProgressBar, Box<Live>, ColourChoice),
}

impl Progress {
    /// Begins to show the progress of `total` repetitions.
    pub(crate) fn new(mode: ProgressMode, title: &str, total: u64) -> Progress {
        let shown = match mode {
            ProgressMode::Quiet => Shown::Nothing,
            ProgressMode::Lines => Shown::Lines(Box::new(std::io::stderr())),
            ProgressMode::Bar => Shown::Bar(bar(BAR, ProgressDrawTarget::stderr())),
            ProgressMode::Live(colour) => {
                Shown::Live(bar(LIVE, ProgressDrawTarget::stderr()), Box::new(Live::new(title)), colour)
            }
        };
        Progress::showing(shown, title, total)
    }

    fn showing(shown: Shown, title: &str, total: u64) -> Progress {
        let (title, phase) = (escaped(title), String::new());
        let mut progress = Progress { shown, title, started: Instant::now(), total, done: 0, phase, rates: Vec::new() };
        progress.redraw();
        progress
    }

    /// Ends the display: a bar is wiped, a log gets its last line.
    pub(crate) fn finish(mut self) {
        let took = wall_time(self.elapsed().as_secs_f64());
        let line = format!("{}: done, {} in {took}", self.title, plural(self.done, "repetition"));
        self.line(&line);
        if let Shown::Bar(bar) | Shown::Live(bar, ..) = &self.shown {
            bar.finish_and_clear();
        }
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn line(&mut self, text: &str) {
        if let Shown::Lines(out) = &mut self.shown {
            // A reader of standard error that has gone away is no reason to end a run.
            let _ = writeln!(out, "{text}");
        }
    }

    fn redraw(&mut self) {
        let (bar, prefix) = match &self.shown {
            Shown::Nothing | Shown::Lines(_) => return,
            Shown::Bar(bar) => (bar, self.title.clone()),
            Shown::Live(bar, live, colour) => {
                let style = Style::for_stderr(*colour, window::columns(std::io::stderr()));
                // The line above it, and one for the cursor.
                let rows = window::rows(std::io::stderr()).unwrap_or(DEFAULT_ROWS).saturating_sub(2);
                (bar, live.page(&style, rows.into()))
            }
        };
        bar.update(|state| {
            state.set_len(self.total);
            state.set_pos(self.done);
        });
        bar.set_prefix(prefix);
        bar.set_message(self.message(self.elapsed()));
        bar.force_draw();
    }

    /// `measuring, 3 s elapsed, 5 s left; M ops/s: packed 86.3, padded-64 6020`.
    fn message(&self, elapsed: Duration) -> String {
        let seconds = elapsed.as_secs_f64();
        let mut text = if self.phase.is_empty() { String::new() } else { format!("{}, ", self.phase) };
        text.push_str(&format!("{} elapsed", wall_time(seconds)));
        if self.done > 0 && self.done < self.total {
            let left = seconds / self.done as f64 * (self.total - self.done) as f64;
            text.push_str(&format!(", {} left", wall_time(left)));
        }
        if !self.rates.is_empty() && !matches!(self.shown, Shown::Live(..)) {
            let rates = self.rates.iter().map(|(arm, rate)| format!("{} {}", escaped(arm), plain(*rate)));
            text.push_str(&format!("; M ops/s: {}", rates.collect::<Vec<_>>().join(", ")));
        }
        text
    }
}

impl Observer for Progress {
    fn phase(&mut self, phase: &str) {
        self.phase = escaped(phase);
        let line = format!("{}: {}, {} elapsed", self.title, self.phase, wall_time(self.elapsed().as_secs_f64()));
        self.line(&line);
        self.redraw();
    }

    /// Counts it and shows what its arm did: the rates of its workers, added up.
    fn repetition(&mut self, workers: &[Observation]) {
        self.done += 1;
        if let Some(first) = workers.first() {
            let rate: Option<f64> = workers.iter().map(|w| w.ns_per_op.map(|ns| 1e3 / ns)).sum();
            if let Some(rate) = rate {
                // The latest stands first: a narrow terminal cuts what stands last.
                self.rates.retain(|(arm, _)| *arm != first.arm);
                self.rates.insert(0, (first.arm.clone(), rate));
            }
        }
        if let Shown::Live(_, live, _) = &mut self.shown {
            live.repetition(workers);
        }
        self.redraw();
    }

    fn block(&mut self, blocks: u64, look: &mut dyn FnMut() -> Findings) {
        if let Shown::Live(_, live, _) = &mut self.shown {
            live.block(blocks, look);
            self.redraw();
        }
    }

    fn extend(&mut self, more: u64) {
        self.total += more;
        let line = format!("{}: extended by {}", self.title, plural(more, "repetition"));
        self.line(&line);
        self.redraw();
    }
}

/// The bar's line, behind its title.
const BAR: &str = "{prefix} {bar:16} {pos}/{len} {wide_msg}";
/// The bar's line, and beneath it the view, which begins with the title.
const LIVE: &str = "{bar:16} {pos}/{len} {wide_msg}\n{prefix}";

/// A bar that draws when told to and has no ticker.
fn bar(template: &str, target: ProgressDrawTarget) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, target);
    // The templates are constants and the tests draw them; should it ever not parse, the plain bar still serves.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("━╸─"));
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;
    use std::sync::{Arc, Mutex};

    /// A terminal that remembers what was written to it.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl Screen {
        fn text(&self) -> String {
            self.0.lock().unwrap().clone()
        }
    }

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().push_str(&String::from_utf8_lossy(bytes));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl indicatif::TermLike for Screen {
        fn width(&self) -> u16 {
            100
        }
        fn move_cursor_up(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> std::io::Result<()> {
            self.write_str(&format!("{text}\n"))
        }
        fn write_str(&self, text: &str) -> std::io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> std::io::Result<()> {
            self.write_str("\r")
        }
        fn flush(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn repetition(arm: &str) -> Vec<Observation> {
        let observations = testing::false_sharing().observations;
        observations.into_iter().filter(|seen| seen.arm == arm && seen.block == 0).collect()
    }

    #[test]
    fn the_bar_is_drawn_in_calls_and_never_between_them() {
        let screen = Screen::default();
        let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
        let mut progress = Progress::showing(Shown::Bar(bar(BAR, target)), "false\u{1b}[2Jsharing", 4);
        progress.phase("measuring");
        for _ in 0..3 {
            let before = screen.text().len();
            progress.repetition(&repetition("packed"));
            let drawn = screen.text();
            assert!(drawn.len() > before, "each repetition is shown, however soon it follows the last");
            std::thread::sleep(Duration::from_millis(120));
            assert_eq!(screen.text(), drawn, "something drew while a window could have been open");
        }
        progress.repetition(&repetition("padded-64"));
        let text = screen.text();
        assert!(text.contains("3/4 measuring") && text.contains("4/4"), "{text:?}");
        assert!(text.contains("false\\u{1b}[2Jsharing") && !text.contains("\u{1b}[2J"), "{text:?}");
        progress.finish();
    }

    #[test]
    fn the_live_view_stands_beneath_the_bar_and_is_drawn_in_calls_alone() {
        let screen = Screen::default();
        let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
        let live = Box::new(Live::new("false\u{1b}[2Jsharing"));
        let mut progress = Progress::showing(Shown::Live(bar(LIVE, target), live, ColourChoice::Never), "t", 4);
        progress.phase("measuring");
        progress.repetition(&repetition("packed"));
        let drawn = screen.text();
        std::thread::sleep(Duration::from_millis(120));
        assert_eq!(screen.text(), drawn, "something drew while a window could have been open");
        let (line, page) = (drawn.rfind("1/4 measuring").unwrap(), drawn.rfind("Now: packed, block 1").unwrap());
        assert!(line < page, "{drawn:?}");
        assert!(!drawn.contains("M ops/s: packed"), "the view has the rates: {drawn:?}");
        assert!(drawn.contains("false\\u{1b}[2Jsharing") && !drawn.contains("\u{1b}[2J"), "{drawn:?}");
        progress.finish();
    }

    #[test]
    fn the_message_has_each_arms_latest_rate_and_what_is_left() {
        let mut progress = Progress::showing(Shown::Nothing, "t", 4);
        progress.repetition(&repetition("packed"));
        progress.phase("measuring");
        assert_eq!(progress.message(Duration::from_secs(2)), "measuring, 2 s elapsed, 6 s left; M ops/s: packed 86.5");
        let mut slower = repetition("packed");
        slower.iter_mut().for_each(|seen| seen.ns_per_op = Some(100.0));
        progress.repetition(&slower);
        progress.repetition(&repetition("padded-64"));
        slower[0].ns_per_op = None;
        progress.repetition(&slower);
        assert_eq!(
            progress.message(Duration::from_secs(8)),
            "measuring, 8 s elapsed; M ops/s: padded-64 6028, packed 20"
        );
    }

    #[test]
    fn a_log_gets_a_line_a_phase_and_none_a_repetition() {
        let log = Screen::default();
        let mut progress = Progress::showing(Shown::Lines(Box::new(log.clone())), "t", 1);
        progress.phase("measuring");
        progress.repetition(&repetition("packed"));
        progress.extend(2);
        progress.finish();
        let text = log.text().replace('\u{a0}', " ");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].starts_with("t: measuring, ") && lines[2].starts_with("t: done, 1 repetition in "), "{text}");
        assert_eq!(lines[1], "t: extended by 2 repetitions");
    }
}

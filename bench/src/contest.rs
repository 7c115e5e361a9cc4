//! Contests of two pinned processes in slices: what is compared with what, in which setting, by which bar; and the arrow
//! from there to a report.

mod arena;
mod c_locks;
mod collect;
pub(crate) mod duel;
mod evictions;
mod locks;
mod report;
mod run_queue;
mod runner;
mod statistics;
mod steps;

pub(crate) use duel::{DuelError, Subject};
pub(crate) use report::Report;
pub(crate) use steps::STEPS;

use duel::Duel;
use std::time::Duration;

/// What is compared with what.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Contest {
    /// The compiled loop with the C function.
    Loops,
    /// The compiled loop while a worker's counters count, with the same loop while they stand still.
    Counting,
    /// A lock as a worker uses it, with the same kind in C.
    Locks,
}

impl Contest {
    /// The contestant may take this much of the reference's time.
    pub(crate) fn bar(self) -> f64 {
        match self {
            Contest::Loops => 1.05,
            Contest::Counting => 1.01,
            Contest::Locks => 1.1,
        }
    }

    /// What goes on, for the line that says so.
    pub(crate) fn doing(self) -> &'static str {
        match self {
            Contest::Loops => "alternating C and compiled slices",
            Contest::Counting => "alternating counted and uncounted slices",
            Contest::Locks => "alternating slices of C and of the contestant",
        }
    }

    /// A control wider than this resolves nothing.
    pub(crate) fn control_width(self) -> f64 {
        match self {
            Contest::Loops => 0.02,
            Contest::Counting => 0.01,
            Contest::Locks => 0.04,
        }
    }

    /// Level of a control's interval: so high that all judged rows of a sound run hold 1 together in 95 % of them; five
    /// steps, or 24 rows of locks. A wider interval keeps the [width](Contest::control_width) the harder.
    pub(crate) fn control_level(self) -> f64 {
        match self {
            Contest::Loops | Contest::Counting => 0.99,
            Contest::Locks => 0.998,
        }
    }
}

/// How the two processes stand to each other while they run.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// Each on a word on a pair of lines of its own.
    Padded,
    /// On two words side by side in one line.
    Packed,
    /// Each acquires and releases a lock of its own, on a pair of lines of its own.
    Free,
    /// The same as a reader, with the kinds whose readers share.
    FreeReaders,
    /// Both acquire one lock, bump one word, release, and work outside; the contestant as a worker does.
    Contended,
    /// The same, with a contestant in C that tries the lock before it waits for it and times nothing.
    TriesFirst,
}

impl Setting {
    /// As results spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Setting::Padded => "padded",
            Setting::Packed => "packed",
            Setting::Free => "free",
            Setting::FreeReaders => "free-readers",
            Setting::Contended => "contended",
            Setting::TriesFirst => "tries-first",
        }
    }

    /// Whether the exit status looks at it; the others are for information.
    pub(crate) fn is_judged(self) -> bool {
        !matches!(self, Setting::Packed | Setting::TriesFirst)
    }

    /// Whether lines travel between the two, so that what is seen depends on how long that takes.
    pub(crate) fn shares_lines(self) -> bool {
        matches!(self, Setting::Packed) || self.shares_lock()
    }

    /// Whether the two processes take one lock: then its passes are those of both together.
    pub(crate) fn shares_lock(self) -> bool {
        matches!(self, Setting::Contended | Setting::TriesFirst)
    }

    /// Time after which a subject is left as it stands, however few pairs were kept or how wide its control is, unless
    /// the user says otherwise.
    pub(crate) fn budget(self) -> Duration {
        Duration::from_secs(if self.shares_lock() { 30 } else { 15 })
    }
}

/// The settings of `locks`, as its table shows them.
pub(crate) const LOCK_SETTINGS: [Setting; 4] =
    [Setting::Free, Setting::FreeReaders, Setting::Contended, Setting::TriesFirst];

/// How long a contest goes on.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Terms {
    /// Pairs of slices to keep for each row, at least.
    pub(crate) pairs: u32,
    /// Time after which a row is left as it stands, in place of its setting's own.
    pub(crate) budget: Option<Duration>,
    /// Seed of the slices' order and of the intervals.
    pub(crate) seed: u64,
}

/// The steps asked for, in each setting that has them.
pub(crate) fn steps(only: &[String], padded_only: bool) -> Vec<(Setting, Subject)> {
    let settings = [Setting::Padded, Setting::Packed].into_iter().filter(|&s| s == Setting::Padded || !padded_only);
    let asked = |step: &&'static steps::Step| crate::is_asked(only, step.name);
    let of = |setting| STEPS.iter().filter(asked).map(move |step| (setting, Subject::Step(step)));
    settings.flat_map(of).collect()
}

/// The kinds of locks asked for, in each setting asked for that has them.
pub(crate) fn locks(only: &[String], settings: &[String]) -> Vec<(Setting, Subject)> {
    let settings = LOCK_SETTINGS.into_iter().filter(|setting| crate::is_asked(settings, setting.name()));
    let of = |setting| {
        let kinds = locks::kinds(setting).into_iter().filter(|kind| crate::is_asked(only, kind.name()));
        kinds.map(move |kind| (setting, Subject::Lock(kind)))
    };
    settings.flat_map(of).collect()
}

/// Fights one contest over each subject.
///
/// # Errors
/// [`DuelError`]: nothing was measured, or what was measured means nothing.
pub(crate) fn fight(contest: Contest, over: &[(Setting, Subject)], terms: &Terms) -> Result<Report, DuelError> {
    let cpus = duel::two_cpus()?;
    let (mut rows, mut counted) = (Vec::new(), 0);
    for &(setting, subject) in over {
        eprintln!("{} {}: {}", setting.name(), subject.name(), contest.doing());
        let duel = Duel { contest, setting, subject, cpus, budget: terms.budget.unwrap_or_else(|| setting.budget()) };
        let enough = |quads: &[_]| statistics::is_enough(&duel, quads, terms.pairs, terms.seed);
        let fought = duel::measure(&duel, terms.pairs, terms.seed, enough)?;
        counted = fought.counted;
        rows.push(statistics::row(&duel, &fought, terms.pairs, terms.seed));
    }
    Ok(Report::new(contest, terms.seed, cpus, counted, rows))
}

/// Compiles the first of the steps, as a worker does.
pub(crate) fn compile_a_step() {
    drop(steps::compile(&STEPS[0]));
}

/// Who runs a slice.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// What is judged.
    Contestant,
    /// What it is judged against.
    Reference,
}

/// Both sides of one contest in one process.
pub(crate) trait Sides {
    /// Before each slice.
    fn begin(&mut self, _side: Side) {}

    /// Makes `passes` passes, a multiple of 8 above 0.
    ///
    /// # Errors
    /// What a lock's call said.
    fn run(&mut self, side: Side, passes: u64) -> Result<(), String>;

    /// Passes made so far on this side: by both processes together where they take one lock. Only its growth within a
    /// slice means anything.
    fn made(&self, side: Side) -> u64;

    /// After each slice.
    fn end(&mut self, _side: Side) {}
}

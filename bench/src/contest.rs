//! What is compared with what, in which setting, by which bar.

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

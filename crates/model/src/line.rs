//! A line as all cores have it.

use crate::protocol::State;
use crate::story::Draft;
use crate::time::{NEVER, Ps};

/// Why a core has no copy.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It never had one.
    Never,
    /// Another core took it away.
    Taken,
    /// Its own cache needed the room.
    Evicted,
}

/// Which of a core's caches hold its copy.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Nowhere,
    Second,
    First,
}

/// What a core has asked for and not been given yet.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asked {
    Nothing,
    /// To read.
    Copy,
    /// To write.
    Ownership,
}

/// One core's copy. `state` is the one that the last request left; what the core may do until when is told apart, since
/// a request is decided when it is made and takes effect when it arrives.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Held {
    pub(crate) state: State,
    /// When it arrived, or will.
    pub(crate) from: Ps,
    /// When it ends, as far as that is decided.
    pub(crate) read_until: Ps,
    /// When the right to write it ends.
    pub(crate) write_until: Ps,
    pub(crate) asked: Asked,
    pub(crate) level: Level,
    pub(crate) gone: Gone,
}

impl Held {
    const NONE: Held = Held {
        state: State::Invalid,
        from: 0,
        read_until: 0,
        write_until: 0,
        asked: Asked::Nothing,
        level: Level::Nowhere,
        gone: Gone::Never,
    };

    #[inline(always)]
    pub(crate) fn is_readable(&self, now: Ps) -> bool {
        self.from <= now && now < self.read_until
    }

    #[inline(always)]
    pub(crate) fn is_writable(&self, now: Ps) -> bool {
        self.from <= now && now < self.write_until
    }

    /// Given in a new state, to arrive at `from`.
    pub(crate) fn arrive(&mut self, state: State, from: Ps) {
        self.state = state;
        self.from = from;
        self.read_until = NEVER;
        self.write_until = if state.is_writable() { NEVER } else { 0 };
    }

    /// Taken away at `at`.
    pub(crate) fn end(&mut self, at: Ps, gone: Gone) {
        self.state = State::Invalid;
        self.read_until = self.read_until.min(at);
        self.write_until = self.write_until.min(at);
        self.gone = gone;
    }

    /// Left readable alone, in `state`, from `at` on.
    pub(crate) fn share(&mut self, state: State, at: Ps) {
        self.state = state;
        self.write_until = self.write_until.min(at);
    }
}

/// A line.
#[derive(Debug)]
pub(crate) struct Line {
    /// Its address, in lines.
    pub(crate) number: u64,
    /// By core.
    pub(crate) held: Box<[Held]>,
    /// When its last transfer ends: another one that takes it away begins later.
    pub(crate) busy_until: Ps,
    /// Workers that spin on it, and where they are in their own time.
    pub(crate) spinners: Vec<u32>,
    pub(crate) story: Draft,
}

impl Line {
    pub(crate) fn new(number: u64, cores: usize) -> Line {
        Line {
            number,
            held: vec![Held::NONE; cores].into(),
            busy_until: 0,
            spinners: Vec::new(),
            story: Draft::default(),
        }
    }

    /// The core whose copy answers others, with its state.
    pub(crate) fn supplier(&self) -> Option<usize> {
        self.held.iter().position(|h| h.state.supplies())
    }

    /// The cores with a copy, but for one.
    pub(crate) fn others(&self, core: usize) -> impl Iterator<Item = usize> + '_ {
        self.held.iter().enumerate().filter(move |&(c, h)| c != core && h.state.is_readable()).map(|(c, _)| c)
    }
}

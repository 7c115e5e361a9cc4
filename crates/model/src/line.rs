//! A line as all cores have it.

use crate::protocol::State;
use crate::set::Set;
use crate::story::Draft;
use crate::time::{NEVER, Ps};
use crate::way::Way;

/// Why a core has no copy.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It never had one.
    Never,
    /// A write, a need of another core, or a flush took it away.
    Taken,
    /// Its own cache needed the room.
    Evicted,
}

/// Which of a core's caches hold its copy. Told apart only where caches can be full ([`Line::crowds`]); else what is
/// not nowhere is in the first.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Nowhere,
    Second,
    First,
}

/// What a core has asked for and not been given yet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Nothing,
    /// To read.
    Copy,
    /// To write.
    Ownership,
    /// That nobody has it any more.
    Flush,
}

/// One core's copy. `state` is the one that the last decided request left; what the core may do until when is told
/// apart, since a request is decided when it is made and takes effect when it arrives. A core has one interval at a
/// time: it asks again only when the last one is over.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Held {
    /// When it arrived, or will.
    pub(crate) from: Ps,
    /// When it ends, as far as that is decided.
    pub(crate) read_until: Ps,
    /// When the right to write it began, or will.
    pub(crate) write_from: Ps,
    /// When that ends.
    pub(crate) write_until: Ps,
    /// The word for which it was asked for, and then the one that was touched last.
    pub(crate) touched: u32,
    /// The worker that asked for it: who counts what befalls it.
    pub(crate) user: u32,
    pub(crate) state: State,
    pub(crate) asked: Asked,
    pub(crate) level: Level,
    pub(crate) gone: Gone,
}

impl Held {
    pub(crate) const NONE: Held = Held {
        from: 0,
        read_until: 0,
        write_from: 0,
        write_until: 0,
        touched: 0,
        user: 0,
        state: State::Invalid,
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
        self.write_from <= now && now < self.write_until
    }

    /// Given in a new state, to arrive at `from`.
    pub(crate) fn arrive(&mut self, state: State, from: Ps) {
        self.state = state;
        self.from = from;
        self.read_until = NEVER;
        (self.write_from, self.write_until) = if state.is_writable() { (from, NEVER) } else { (0, 0) };
    }

    /// A copy that may be written from `at` on; until then it goes on being read.
    pub(crate) fn upgrade(&mut self, at: Ps) {
        self.state = State::Modified;
        (self.write_from, self.write_until) = (at, NEVER);
    }

    /// Taken away at `at`.
    pub(crate) fn end(&mut self, at: Ps, gone: Gone) {
        self.state = State::Invalid;
        self.read_until = self.read_until.min(at);
        self.write_until = self.write_until.min(at);
        self.level = Level::Nowhere;
        self.gone = gone;
    }

    /// Left readable alone, in `state`, from `at` on.
    pub(crate) fn share(&mut self, state: State, at: Ps) {
        self.state = state;
        self.write_until = self.write_until.min(at);
    }
}

/// A clean copy that its holder can still write before it is shared or taken, and who asked for that.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clean {
    pub(crate) holder: u32,
    pub(crate) asker: u32,
}

/// Where a line's sets can be full, so that who uses it when has to be kept.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Crowds {
    /// In a core's own levels, or in the shadow of the first.
    pub(crate) own: bool,
    /// In a last level.
    pub(crate) last: bool,
}

/// A line.
#[derive(Debug)]
pub(crate) struct Line {
    /// Its address, in lines.
    pub(crate) number: u64,
    /// By core; empty until the line is touched.
    pub(crate) held: Vec<Held>,
    /// The cores with a copy, as decided.
    pub(crate) copies: Set,
    /// The core whose copy answers others.
    pub(crate) supplier: Option<u32>,
    /// The clusters whose last level has it.
    pub(crate) in_last: Set,
    /// When its last transfer ends: another one that takes it away begins later.
    pub(crate) busy_until: Ps,
    /// When the last right to write it ended, or will: copies arrive later.
    pub(crate) written_until: Ps,
    /// The way on which it came last.
    pub(crate) way: Way,
    pub(crate) clean: Option<Clean>,
    pub(crate) crowds: Crowds,
    pub(crate) story: Draft,
}

impl Line {
    pub(crate) fn new(number: u64, crowds: Crowds, words: usize) -> Line {
        Line {
            number,
            held: Vec::new(),
            copies: Set::EMPTY,
            supplier: None,
            in_last: Set::EMPTY,
            busy_until: 0,
            written_until: 0,
            way: Way::USUAL,
            clean: None,
            crowds,
            story: Draft::new(words),
        }
    }

    /// Sets a copy's state's standing: who has copies, and who answers.
    pub(crate) fn note_state(&mut self, core: usize) {
        let state = self.held[core].state;
        if state.is_readable() {
            self.copies.add(core);
        } else {
            self.copies.remove(core);
        }
        if state.supplies() {
            self.supplier = Some(core as u32);
        } else if self.supplier == Some(core as u32) {
            self.supplier = None;
        }
    }
}

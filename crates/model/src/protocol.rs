//! The three protocols as tables: what becomes of a line's copies when a core reads or writes it.
//!
//! MESI: M. S. Papamarcos and J. H. Patel, "A low-overhead coherence solution for multiprocessors with private cache
//! memories", ISCA 1984. MOESI: P. Sweazey and A. J. Smith, "A class of compatible cache consistency protocols and
//! their support by the IEEE Futurebus", ISCA 1986; AMD64 Architecture Programmer's Manual, volume 2, 7.3. MESIF: J. R.
//! Goodman and H. H. J. Hum, "MESIF: a two-hop cache coherency protocol for point-to-point interconnects", 2009.

/// How copies of a line are kept coherent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// A reader of a modified line makes it be written back; clean sharers supply nothing.
    Mesi,
    /// As MESI; of clean sharers the last reader supplies the next.
    Mesif,
    /// A reader of a modified line leaves it dirty with its owner, who supplies all readers.
    Moesi,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Protocol; 3] = [Protocol::Mesi, Protocol::Mesif, Protocol::Moesi];

    /// As a machine file spells it.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Mesi => "MESI",
            Protocol::Mesif => "MESIF",
            Protocol::Moesi => "MOESI",
        }
    }
}

/// One core's copy of a line.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The only copy, and memory is out of date.
    Modified,
    /// Dirty, with sharers; supplies them (MOESI).
    Owned,
    /// The only copy, clean.
    Exclusive,
    /// Clean, with sharers; supplies the next one (MESIF).
    Forward,
    /// Clean as far as this core is concerned; supplies nobody.
    Shared,
    /// None.
    Invalid,
}

impl State {
    /// Whether a core may read it.
    pub(crate) fn is_readable(self) -> bool {
        self != State::Invalid
    }

    /// Whether a core may write it without asking.
    pub(crate) fn is_writable(self) -> bool {
        matches!(self, State::Modified | State::Exclusive)
    }

    /// Whether this copy answers another core's request.
    pub(crate) fn supplies(self) -> bool {
        !matches!(self, State::Shared | State::Invalid)
    }

    /// Whether memory lacks what it holds.
    pub(crate) fn is_dirty(self) -> bool {
        matches!(self, State::Modified | State::Owned)
    }
}

/// What a read by another core makes of a copy.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct AfterRead {
    /// The copy that was there.
    pub(crate) holder: State,
    /// The reader's.
    pub(crate) reader: State,
    /// Whether the content is written back to the next level.
    pub(crate) writes_back: bool,
}

impl Protocol {
    /// A read by another core, where `holder` is the state of the copy that supplies it, or of the strongest one.
    pub(crate) fn read(self, holder: State) -> AfterRead {
        use State::{Exclusive, Forward, Invalid, Modified, Owned, Shared};
        let to = |holder, reader, writes_back| AfterRead { holder, reader, writes_back };
        match (self, holder) {
            (_, Invalid) => to(Invalid, Exclusive, false),
            (Protocol::Mesi, Modified | Owned) => to(Shared, Shared, true),
            (Protocol::Mesi, _) => to(Shared, Shared, false),
            (Protocol::Mesif, Modified | Owned) => to(Shared, Forward, true),
            (Protocol::Mesif, _) => to(Shared, Forward, false),
            (Protocol::Moesi, Modified | Owned) => to(Owned, Shared, false),
            (Protocol::Moesi, Exclusive | Forward | Shared) => to(Shared, Shared, false),
        }
    }

    /// A write by another core: every other copy ends, the writer's is [`State::Modified`]. Whether what the supplying
    /// copy held travels to the writer dirty; none of the three writes it back on the way.
    pub(crate) fn write(self, holder: State) -> bool {
        holder.is_dirty()
    }
}

//! How far a worker has come: what it waits for, and where in an operation of several accesses it stands.

use crate::time::Ps;

/// What a worker waits for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Blocked {
    /// Nothing: it runs, or is told when to go on.
    No,
    /// A line that was asked for.
    Line(u32),
    /// Room in the store buffer.
    Room,
    /// An empty store buffer.
    Drained,
    /// A change of a line on which it spins, since then.
    Spinning(u32, Ps),
    /// A wake-up call, for a lock.
    Asleep(u32),
}

/// Whether a worker goes on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Goes {
    On,
    /// It waits, and is resumed.
    NoFurther,
}

/// Where a worker stands in what it does, when that takes more than one access.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// At an operation's beginning.
    Idle,
    /// An element was drawn.
    Drawn(u32),
    /// About to try.
    Try,
    /// Reading until it looks free; so many attempts were lost.
    Look(u32),
    /// It looked free.
    TryAgain(u32),
    /// About to say that somebody sleeps.
    Mark,
    /// In the kernel, about to sleep.
    Check,
    /// In the kernel's queue; what wakes it without having handed the lock over is its timeout.
    InKernel,
    /// The kernel has handed it over.
    Handed,
    /// It owns the lock and is about to say so in the owner record.
    Noting,
    /// A line has been flushed.
    Flushed,
    /// Its node's first word is written, not yet that it waits.
    Waiting,
    /// Behind a node in a queue that does not know of it yet; or an owner in front of one.
    Behind(u64),
    /// An owner whom nobody seems to follow.
    Leaving,
    /// With a number, or in a queue behind a node.
    Queued(u64),
    /// An owner waits for its successor to name itself.
    Successor,
}

/// What an acquisition or release came to, for now.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum LockOutcome {
    /// It is made: the lock is owned, or released.
    Done,
    /// The worker waits, and is resumed.
    Waits,
    /// To be gone on with at once.
    GoesOn,
    /// Given up, or a reader has to read again: the worker goes on elsewhere.
    Jumps,
}

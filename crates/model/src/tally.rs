//! What one worker's core would count.

use std::ops::Sub;

macro_rules! tally {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counts of one worker. Each miss of the first level is one of cold, capacity, conflict, coherence and
        /// upgrade.
        #[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
        pub struct Tally { $($(#[$doc])* pub $name: u64,)* }

        impl Tally {
            /// Every count with its name.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name)),*]
            }
        }

        impl Sub for Tally {
            type Output = Tally;
            fn sub(self, before: Tally) -> Tally {
                Tally { $($name: self.$name - before.$name),* }
            }
        }
    };
}

tally! {
    /// Reads, the reading halves of bumps and atomics included.
    l1d_loads,
    /// Of these, those that had to ask beyond the first level. One that joins an outstanding request is none.
    l1d_load_misses,
    /// Writes, the writing halves of bumps and atomics included.
    l1d_stores,
    /// Writes that had to ask for the line: it was absent, or shared.
    l1d_store_misses,
    /// Requests for content that went beyond the second level: to the last level, another core or memory. Upgrades,
    /// which have the content, are none.
    llc_loads,
    /// Of these, those that the cluster, its last level and its cores, could not serve.
    llc_load_misses,
    /// Misses of lines that this core never had.
    cold_misses,
    /// Misses of lines that a cache of this size would have lost whatever its sets.
    capacity_misses,
    /// Misses of lines that it lost because their set was full.
    conflict_misses,
    /// Misses of lines that another core's write, or need, took away, or a flush; upgrades are none of them.
    coherence_misses,
    /// Requests that found the line modified in another core: dirty, whether that had shared it or not.
    modified_line_hits,
    /// Writes that found this core's own copy shared.
    upgrades,
    /// Copies of other cores that this worker's requests ended.
    invalidations_sent,
    /// Copies that others ended here.
    invalidations_received,
    /// Lines fetched because their neighbour was.
    pair_fetches,
    /// Modified lines that this core wrote back: it needed the room, another core read them, or they were flushed.
    write_backs,
}

/// One worker's dealings with one lock.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct LockTally {
    /// Acquisitions.
    pub acquisitions: u64,
    /// Of these, those whose first attempt failed.
    pub contended: u64,
    /// Attempts given up at their timeout.
    pub timeouts: u64,
    /// Time waited, picoseconds, added up.
    pub waited_ps: u64,
}

impl Sub for LockTally {
    type Output = LockTally;
    fn sub(self, before: LockTally) -> LockTally {
        LockTally {
            acquisitions: self.acquisitions - before.acquisitions,
            contended: self.contended - before.contended,
            timeouts: self.timeouts - before.timeouts,
            waited_ps: self.waited_ps - before.waited_ps,
        }
    }
}

//! The seam between counting and the kernel, so that tests can be every kind of machine.

use crate::event::Event;
use nix::errno::Errno;

/// Something that can count groups of events on the calling thread.
pub(crate) trait Pmu {
    /// Opens `events` as one group: all of them count, or none. Counting stands still until [`Group::enable`].
    fn open_group(&mut self, events: &[Event]) -> Result<Box<dyn Group>, Refused>;
}

/// A group that was refused.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Index of the event at which it was.
    pub(crate) at: usize,
    pub(crate) errno: Errno,
}

/// An open group.
pub(crate) trait Group {
    /// Begins to count; must not allocate.
    fn enable(&mut self) -> Result<(), Errno>;
    /// Stops counting; must not allocate.
    fn disable(&mut self) -> Result<(), Errno>;
    /// Everything counted since the group was opened.
    fn read(&mut self) -> Result<Totals, Errno>;
}

/// A group's counts since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// How long it was enabled while its thread ran.
    pub(crate) time_enabled_ns: u64,
    /// How long of that it was on the hardware.
    pub(crate) time_running_ns: u64,
    /// One value an event, in the order in which they were opened.
    pub(crate) values: Vec<u64>,
}

impl Totals {
    /// What was counted after `earlier`, a reading of the same group or the empty default.
    pub(crate) fn since(&self, earlier: &Totals) -> Totals {
        let then = earlier.values.iter().copied().chain(std::iter::repeat(0));
        Totals {
            time_enabled_ns: self.time_enabled_ns.saturating_sub(earlier.time_enabled_ns),
            time_running_ns: self.time_running_ns.saturating_sub(earlier.time_running_ns),
            values: self.values.iter().zip(then).map(|(now, then)| now.saturating_sub(then)).collect(),
        }
    }
}

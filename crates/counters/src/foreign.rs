//! Counters on threads of another process, with the events, the words and the arithmetic of one's own.

use crate::counters::judged;
use crate::event::Event;
use crate::kernel::{builder, close_on_exec, errno};
use crate::pmu::Totals;
use crate::refusal::{self, Setting};
use host::Root;
use nix::errno::Errno;
use perf_event::Counter;
use record::Reading;

/// One event on a thread of another process and on the threads that it begins, and these. It counts from its opening
/// on, and ends where the process executes another program, on kernels from 5.13 on. The kernel closes it with its
/// owner.
#[derive(Debug)]
pub struct ThreadCounter(Counter);

impl ThreadCounter {
    /// Opens it on a thread, whatever CPU that runs on. [`Event::filter`] is left out: the lab's own events have none.
    ///
    /// # Errors
    /// ESRCH: the thread has ended, an outcome. EMFILE: no descriptor is left. The others are [`Refusals::reading`]'s.
    pub fn open(event: &Event, tid: u32) -> Result<ThreadCounter, Errno> {
        match ThreadCounter::open_once(event, tid, true) {
            // Kernels before 5.13 know neither flag: there processes that it begins are counted too.
            Err(Errno::E2BIG | Errno::EINVAL) => ThreadCounter::open_once(event, tid, false),
            result => result,
        }
    }

    fn open_once(event: &Event, tid: u32, of_process_alone: bool) -> Result<ThreadCounter, Errno> {
        let mut builder = builder(&event.attr);
        builder.inherit(true).inherit_thread(of_process_alone).remove_on_exec(of_process_alone);
        let tid = i32::try_from(tid).map_err(|_| Errno::ESRCH)?;
        let counter = builder.observe_pid(tid).any_cpu().build().map_err(|error| errno(&error))?;
        close_on_exec(&counter)?;
        Ok(ThreadCounter(counter))
    }

    /// What it has counted, and for how long it was enabled and on a counter, nanoseconds; that of threads that ended
    /// included.
    ///
    /// # Errors
    /// What read(2) of the counter answers.
    pub fn read(&mut self) -> Result<(u64, u64, u64), Errno> {
        let seen = self.0.read_count_and_time().map_err(|error| errno(&error))?;
        Ok((seen.count, seen.time_enabled, seen.time_running))
    }
}

/// What on this machine decides whether an event opens, read once.
#[derive(Clone, Debug)]
pub struct Refusals(Setting);

impl Refusals {
    /// As the machine stands now.
    pub fn here() -> Refusals {
        Refusals(Setting::of(&Root::system()))
    }

    /// The reading of an event that perf_event_open refused on a process that this one may look at; of one that it may
    /// not, the kernel's answer says nothing about the event. `has_pmu`: other hardware events are counted here.
    pub fn reading(&self, event: &Event, errno: Errno, has_pmu: bool) -> Reading {
        refusal::reading(event, errno, has_pmu, &self.0)
    }
}

/// Whether the kernel said that nobody on this machine counts the event, on whichever thread.
pub fn is_missing(errno: Errno) -> bool {
    refusal::is_missing(errno)
}

/// The reading of what one event counted, all threads together: its value and for how long it was enabled and on a
/// counter, nanoseconds. Threads that never ran while it was enabled counted nothing, and that is 0.
pub fn counted(value: u64, time_enabled_ns: u64, time_running_ns: u64) -> Reading {
    match time_enabled_ns {
        0 => Reading::Counted { value },
        _ => judged(value, &Totals { time_enabled_ns, time_running_ns, values: Vec::new() }),
    }
}

#[cfg(test)]
mod tests {
    use super::counted;
    use record::Reading;

    #[test]
    fn who_never_ran_counted_nothing_and_who_never_had_a_counter_is_not_known() {
        assert_eq!(counted(0, 0, 0), Reading::Counted { value: 0 });
        assert_eq!(counted(0, 50, 0), Reading::NotScheduled);
        assert_eq!(counted(7, 50, 50), Reading::Counted { value: 7 });
        assert_eq!(counted(7, 50, 25), Reading::Scaled { value: 14, ratio: 0.5 });
    }
}

//! The CPU time that another process has used, or a thread of one.

use crate::perf::{Event, Fields, Order, Source, Whom};
use nix::errno::Errno;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// `PERF_COUNT_SW_TASK_CLOCK` of `linux/perf_event.h`: nanoseconds that the thread was on a CPU.
pub(crate) const OF_THREAD: Source = Source::Software(1);

/// Tells how long somebody has run.
#[derive(Debug)]
pub(crate) enum Clock {
    /// A process, by its number.
    Process(u32),
    /// A thread, from when its clock was opened: the kernel tells the clock of another's thread by an event alone.
    Thread(Event),
}

impl Clock {
    /// Of a thread.
    ///
    /// # Errors
    /// [`Event::open`]'s.
    pub(crate) fn of_thread(tid: u32) -> Result<Clock, Errno> {
        let fields = Fields::IDENTIFIER; // of records, of which it writes none
        let order = Order { source: OF_THREAD, period: 0, fields, registers: 0, inherit: false, kernel: false };
        let event = Event::open(&order, Whom::Thread(tid))?;
        event.enable()?;
        Ok(Clock::Thread(event))
    }

    /// Nanoseconds; `None` where that cannot be asked any more.
    pub(crate) fn used_ns(&self) -> Option<u64> {
        match self {
            Clock::Process(pid) => used_ns(*pid),
            Clock::Thread(event) => event.count().ok(),
        }
    }
}

/// Nanoseconds that process `pid` has run, all its threads, those that ended too; `None` where it has ended. Everybody may
/// ask for it. Who asks makes sure by a pidfd that it is still the process that is meant.
///
/// # References
/// clock_getcpuclockid(3).
pub(crate) fn used_ns(pid: u32) -> Option<u64> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?);
    let time = clock_gettime(clock_getcpuclockid(pid).ok()?).ok()?;
    Some(u64::try_from(time.tv_sec()).ok()? * 1_000_000_000 + u64::try_from(time.tv_nsec()).ok()?)
}

#[cfg(test)]
mod tests {
    use super::{Clock, used_ns};
    use std::time::Instant;
    use testing::{A_LONG_TIME, within};

    #[test]
    fn this_process_uses_time_and_no_process_uses_none() {
        let before = used_ns(std::process::id()).expect("it runs");
        let has_grown = || used_ns(std::process::id()).expect("it runs") > before;
        within(A_LONG_TIME, "time that this process uses", || has_grown().then_some(()));
        assert_eq!(used_ns(u32::MAX), None);
    }

    #[test]
    fn a_thread_s_clock_goes_while_that_thread_runs_and_not_while_others_do() {
        let (told, tid) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                told.send(nix::unistd::gettid().as_raw() as u32).unwrap();
                _ = stopped.recv(); // it sleeps
            });
            let own = nix::unistd::gettid().as_raw() as u32;
            let clocks = [own, tid.recv().unwrap()].map(Clock::of_thread);
            let [Ok(own), Ok(sleeper)] = clocks else {
                return testing::skip(&format!("the CPU clock of a thread cannot be read: {clocks:?}"));
            };
            let until = own.used_ns().unwrap() + 5_000_000;
            let begin = Instant::now();
            while own.used_ns().unwrap() < until {
                assert!(begin.elapsed() < A_LONG_TIME, "this thread uses no time");
            }
            assert!(sleeper.used_ns().unwrap() < 5_000_000, "{:?}", sleeper.used_ns());
            drop(stop);
        });
    }
}

//! What a worker notes of itself without opening an event: figures the kernel keeps for every thread, CPU and cgroup
//! anyway, and tells every process.

use crate::refusal;
use crate::software;
use host::{Root, Throttled, ThrottledError};
use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};
use plan::CpuId;
use record::{CounterReadings, Reading};

/// The seam between noting and the machine, so that tests can be every kind of machine.
pub(crate) trait Ledger {
    /// The calling thread's figures so far; must not allocate: it is asked at the window's edges.
    fn usage(&mut self) -> Result<Usage, Errno>;
    /// What was taken from this thread's CPU and cgroup so far.
    fn taken(&mut self) -> Taken;
}

/// What the kernel has counted for one thread since it began: the fields `voluntary_ctxt_switches`,
/// `nonvoluntary_ctxt_switches` of `/proc/thread-self/status` and `majflt` of `/proc/thread-self/stat`, which getrusage
/// gives by one call.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) switches_voluntary: u64,
    pub(crate) switches_involuntary: u64,
    pub(crate) faults_major: u64,
}

impl Usage {
    fn since(self, earlier: Usage) -> Usage {
        Usage {
            switches_voluntary: self.switches_voluntary.saturating_sub(earlier.switches_voluntary),
            switches_involuntary: self.switches_involuntary.saturating_sub(earlier.switches_involuntary),
            faults_major: self.faults_major.saturating_sub(earlier.faults_major),
        }
    }

    fn plus(self, more: Usage) -> Usage {
        Usage {
            switches_voluntary: self.switches_voluntary + more.switches_voluntary,
            switches_involuntary: self.switches_involuntary + more.switches_involuntary,
            faults_major: self.faults_major + more.faults_major,
        }
    }
}

/// Time taken since boot, or the reading that says why it is not known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Taken {
    pub(crate) stolen_ns: Result<u64, Reading>,
    pub(crate) throttled: Result<Throttled, Reading>,
}

/// The machine this thread runs on.
pub(crate) struct Kernel {
    root: Root,
    /// The CPU on which the thread is pinned.
    cpu: Option<CpuId>,
}

impl Kernel {
    /// For the calling thread, which is pinned.
    pub(crate) fn here() -> Kernel {
        let cpu = nix::sched::sched_getcpu().ok().and_then(|cpu| u32::try_from(cpu).ok()).map(CpuId);
        Kernel { root: Root::system(), cpu }
    }
}

impl Ledger for Kernel {
    fn usage(&mut self) -> Result<Usage, Errno> {
        let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
        // The kernel's own numbers, as longs: never negative.
        let of = |count: nix::libc::c_long| u64::try_from(count).unwrap_or(0);
        Ok(Usage {
            switches_voluntary: of(usage.voluntary_context_switches()),
            switches_involuntary: of(usage.involuntary_context_switches()),
            faults_major: of(usage.major_page_faults()),
        })
    }

    fn taken(&mut self) -> Taken {
        let root = &self.root;
        let stolen_ns = match self.cpu {
            None => Err(refusal::unsupported("sched_getcpu(3) did not tell this worker's CPU".to_owned())),
            Some(cpu) => host::stolen_ns(root, cpu).ok_or_else(|| {
                let absent = format!("/proc/stat has no row cpu{} with a column of stolen time", cpu.0);
                refusal::not_in_file(root, "proc/stat", absent)
            }),
        };
        let untold = |error: ThrottledError| refusal::not_in_file(root, "proc/self/cgroup", error.to_string());
        Taken { stolen_ns, throttled: host::throttled(root).map_err(untold) }
    }
}

/// A worker's notes over its windows, and around them.
pub(crate) struct Noted {
    ledger: Box<dyn Ledger>,
    opened: Option<Usage>,
    /// Over the closed windows; `None` before the first.
    total: Option<Usage>,
    /// The last call that failed, if one did: then there are no figures.
    failed: Option<Errno>,
    before: Option<Taken>,
    after: Option<Taken>,
}

impl Noted {
    pub(crate) fn new(ledger: Box<dyn Ledger>) -> Noted {
        Noted { ledger, opened: None, total: None, failed: None, before: None, after: None }
    }

    /// The window opens.
    pub(crate) fn enable(&mut self) {
        match self.ledger.usage() {
            Ok(usage) => self.opened = Some(usage),
            Err(errno) => self.failed = Some(errno),
        }
    }

    /// The window closes.
    pub(crate) fn disable(&mut self) {
        let Some(opened) = self.opened.take() else { return };
        match self.ledger.usage() {
            Ok(usage) => self.total = Some(self.total.unwrap_or_default().plus(usage.since(opened))),
            Err(errno) => self.failed = Some(errno),
        }
    }

    /// Well before the first window opens, and once more well after the last one has closed.
    pub(crate) fn around(&mut self) {
        let taken = Some(self.ledger.taken());
        if self.before.is_none() {
            self.before = taken;
        } else {
            self.after = taken;
        }
    }

    /// A reading for each of [`software::NOTED`].
    pub(crate) fn read_into(&self, readings: &mut CounterReadings) {
        let count = |of: fn(&Usage) -> u64| match (self.failed, &self.total) {
            (Some(errno), _) => refusal::unsupported(refusal::failed("getrusage(RUSAGE_THREAD)", errno)),
            (None, None) => Reading::NotScheduled,
            (None, Some(total)) => Reading::Counted { value: of(total) },
        };
        let mut put = |name: &str, reading| _ = readings.insert(name.to_owned(), reading);
        put(software::SWITCHES_VOLUNTARY, count(|usage| usage.switches_voluntary));
        put(software::SWITCHES_INVOLUNTARY, count(|usage| usage.switches_involuntary));
        put(software::FAULTS_MAJOR, count(|usage| usage.faults_major));
        put(software::STOLEN, between(self.before.as_ref().zip(self.after.as_ref()), stolen_ns));
        put(software::THROTTLED, between(self.before.as_ref().zip(self.after.as_ref()), throttled_ns));
    }
}

fn between(around: Option<(&Taken, &Taken)>, of: fn(&Taken, &Taken) -> Result<u64, Reading>) -> Reading {
    let Some((before, after)) = around else {
        return refusal::unsupported("it was not noted on both sides of the window".to_owned());
    };
    of(before, after).map_or_else(|reading| reading, |value| Reading::Counted { value })
}

fn stolen_ns(before: &Taken, after: &Taken) -> Result<u64, Reading> {
    let (before_ns, after_ns) = (before.stolen_ns.clone()?, after.stolen_ns.clone()?);
    let back = "the CPU's stolen time in /proc/stat went backwards, as when a virtual machine is moved";
    after_ns.checked_sub(before_ns).ok_or_else(|| refusal::unsupported(back.to_owned()))
}

fn throttled_ns(before: &Taken, after: &Taken) -> Result<u64, Reading> {
    let (before, after) =
        (before.throttled.as_ref().map_err(Reading::clone)?, after.throttled.as_ref().map_err(Reading::clone)?);
    let moved = "the process was moved to another cgroup, or its cgroup was made anew";
    after.since_ns(before).ok_or_else(|| refusal::unsupported(moved.to_owned()))
}

//! Who used the CPUs over a moment.

use host::{CpuTimes, Interrupts, Ran, Root, RunTimes};
use plan::CpuId;
use std::time::Duration;

/// What happened between two looks; each part `None` where this machine does not tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// The threads that ran, busiest first.
    pub(super) ran: Option<Vec<Ran>>,
    /// Interrupts at both looks.
    pub(super) interrupts: Option<(Interrupts, Interrupts)>,
    /// Busy time of CPUs at both looks.
    pub(super) cpu_times: Option<(CpuTimes, CpuTimes)>,
}

impl Sample {
    /// Looks, sleeps for `watch`, and looks again.
    pub(super) fn over(root: &Root, watch: Duration) -> Sample {
        // What takes longest to read is read first and last: this process's own reading then stays out of the rest.
        let ran = RunTimes::read(root);
        let before = (Interrupts::read(root), host::cpu_times(root));
        std::thread::sleep(watch);
        let after = (Interrupts::read(root), host::cpu_times(root));
        Sample {
            ran: ran.and_then(|earlier| Some(RunTimes::read(root)?.since(&earlier, root))),
            interrupts: before.0.zip(after.0),
            cpu_times: before.1.zip(after.1),
        }
    }

    /// The share of the time for which something ran on `cpu` according to the kernel's own books, 0 to 1.
    pub(super) fn busy(&self, cpu: CpuId) -> Option<f64> {
        let (before, after) = self.cpu_times.as_ref()?;
        after.busy_since(before, cpu)
    }
}

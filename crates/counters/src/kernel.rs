//! The real thing: perf_event_open(2) through the `perf-event` package.

use crate::event::Event;
use crate::pmu::{Group, Pmu, Refused, Totals};
use nix::errno::Errno;
use perf_event::{Builder, Counter};
use std::io;

/// Position of the PMU's type in a generic event's `config` (PERF_PMU_TYPE_SHIFT in `linux/perf_event.h`). If it were
/// wrong, a hybrid machine would refuse the events or count other ones.
const PMU_TYPE_SHIFT: u32 = 32;

/// Counts on the calling thread, on whatever CPU it runs.
pub(crate) struct Kernel {
    /// The type of the PMU of this thread's kind of core, on a hybrid machine.
    pub(crate) core_pmu_type: Option<u32>,
}

impl Pmu for Kernel {
    fn open_group(&mut self, events: &[Event]) -> Result<Box<dyn Group>, Refused> {
        // The group's own placeholder is a software event, so it opens wherever perf events are allowed at all.
        let mut group = perf_event::Group::new().map_err(|error| Refused { at: 0, errno: errno(&error) })?;
        let mut members = Vec::with_capacity(events.len());
        for (at, event) in events.iter().enumerate() {
            let mut builder = Builder::new().kind(event.perf());
            if let Some(number) = self.core_pmu_type.filter(|_| event.is_hardware()) {
                builder.attrs_mut().config |= u64::from(number) << PMU_TYPE_SHIFT;
            }
            if event.with_kernel {
                builder.include_kernel();
            }
            // A member that fails leaves the group in a state in which perf-event panics on reading it; the whole
            // group is dropped instead.
            members.push(builder.group(&mut group).build().map_err(|error| Refused { at, errno: errno(&error) })?);
        }
        Ok(Box::new(OpenGroup { group, members }))
    }
}

/// Leader and members; both live as long as the group is read.
struct OpenGroup {
    group: perf_event::Group,
    members: Vec<Counter>,
}

impl Group for OpenGroup {
    fn enable(&mut self) -> Result<(), Errno> {
        self.group.enable().map_err(|error| errno(&error))
    }

    fn disable(&mut self) -> Result<(), Errno> {
        self.group.disable().map_err(|error| errno(&error))
    }

    fn read(&mut self) -> Result<Totals, Errno> {
        let counts = self.group.read().map_err(|error| errno(&error))?;
        Ok(Totals {
            time_enabled_ns: counts.time_enabled(),
            time_running_ns: counts.time_running(),
            values: self.members.iter().map(|member| counts[member]).collect(),
        })
    }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}

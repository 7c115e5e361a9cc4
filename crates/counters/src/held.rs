//! Events held open for a whole campaign, so that opening and closing them is cheap for everybody else.

use crate::event::Event;
use crate::kernel::Kernel;
use crate::open::{self, CountedGroup};
use crate::order::{Order, Orders};
use crate::pmu::Pmu;

/// One instance of each event that the kernel counts, open on the thread that made it and never enabled.
///
/// The kernel switches its code for software events and tracepoints on with the first user on the machine and off with
/// the last; switching a tracepoint off waits until no CPU can still be in it, which takes 80 ms where opening takes
/// one. Without this every repetition's last worker would wait so long at its end. Workers that were never told of it
/// count the same.
///
/// Events of the processor are not held: they have no such cost.
///
/// # References
/// `kernel/trace/trace_event_perf.c` (perf_trace_event_unreg), `kernel/events/core.c` (perf_sched_events).
pub struct Held {
    /// Kept for what their being open does, which ends with them.
    _groups: Vec<CountedGroup>,
}

impl Held {
    /// Opens what can be opened; what is refused here will be refused to the workers, who say why.
    pub fn open(orders: &[Orders]) -> Held {
        Held::open_on(&mut Kernel, orders)
    }

    fn open_on(pmu: &mut dyn Pmu, orders: &[Orders]) -> Held {
        let mut events: Vec<Event> = Vec::new();
        for order in orders.iter().flat_map(|of| &of.orders) {
            match order {
                Order::Count(event) if !event.is_hardware() => {
                    if !events.iter().any(|known| known.attr == event.attr) {
                        events.push(Event { filter: None, ..event.clone() });
                    }
                }
                Order::Count(_) | Order::Refused { .. } | Order::Shootdowns | Order::Log(_) => {}
            }
        }
        Held { _groups: open::software(pmu, events).groups }
    }
}

#[cfg(test)]
mod tests {
    use super::Held;
    use crate::fake::{FakePmu, World, orders};
    use crate::order::Orders;
    use nix::errno::Errno;
    use plan::CpuId;

    fn two_kinds_of_core() -> [Orders; 2] {
        [0, 1].map(|cpu| Orders { cpus: vec![CpuId(cpu)], orders: orders() })
    }

    fn names(held: &Held) -> Vec<&str> {
        held._groups.iter().flat_map(|group| group.events.iter().map(|event| event.name.as_str())).collect()
    }

    #[test]
    fn each_event_of_the_kernel_s_is_held_once_and_none_of_the_processor_s() {
        let held = Held::open_on(&mut FakePmu::new(World::default()), &two_kinds_of_core());
        let wanted = ["context_switches", "cpu_migrations", "page_faults", "task_clock", "futex_calls", "tlb_flushes"];
        assert_eq!(names(&held), wanted);
    }

    #[test]
    fn what_is_refused_is_not_held() {
        let world = World::default().refusing("futex_calls", Errno::EACCES);
        let held = Held::open_on(&mut FakePmu::new(world), &two_kinds_of_core());
        assert_eq!((names(&held).len(), names(&held).contains(&"futex_calls")), (5, false));
        let none = Held::open_on(&mut FakePmu::new(World::refusing_all(Errno::EPERM)), &two_kinds_of_core());
        assert_eq!(names(&none), [""; 0]);
    }
}

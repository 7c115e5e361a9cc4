//! A machine made up for a test.

use crate::event::Event;
use crate::pmu::{Group, Pmu, Refused, Totals};
use crate::portable;
use crate::selection::Order;
use host::Root;
use nix::errno::Errno;
use plan::CpuId;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The orders of a machine whose files say nothing.
pub(crate) fn orders() -> Vec<Order> {
    let choices = portable::choices(&Root::at("nowhere"), CpuId(0));
    choices.into_iter().filter_map(|choice| choice.order).collect()
}

/// Those of [`orders`] that open an event.
pub(crate) fn events() -> Vec<Event> {
    let count = |order| match order {
        Order::Count(event) => Some(event),
        Order::Refused { .. } => None,
    };
    orders().into_iter().filter_map(count).collect()
}

/// What the machine is like. As it stands by default it counts everything.
#[derive(Clone)]
pub(crate) struct World {
    /// Hardware events that the kernel accepts in one group.
    pub(crate) accepts: usize,
    /// Hardware events that it can really put on counters at once.
    pub(crate) schedules: usize,
    /// Share of the time for which a group that can run does run, in percent: other groups have the rest.
    pub(crate) running_percent: u64,
    /// What `enable` answers, if not success.
    pub(crate) enable_fails: Option<Errno>,
    /// What `read` answers, if not a reading.
    pub(crate) read_fails: Option<Errno>,
    /// Events that do not open, and with what error.
    pub(crate) refusals: BTreeMap<&'static str, Errno>,
    /// Whether every hardware event is missing.
    pub(crate) no_pmu: bool,
}

impl Default for World {
    fn default() -> World {
        World {
            accepts: 16,
            schedules: 16,
            running_percent: 100,
            enable_fails: None,
            read_fails: None,
            refusals: BTreeMap::new(),
            no_pmu: false,
        }
    }
}

impl World {
    pub(crate) fn refusing(mut self, event: &'static str, errno: Errno) -> World {
        self.refusals.insert(event, errno);
        self
    }

    pub(crate) fn without_pmu(mut self) -> World {
        self.no_pmu = true;
        self
    }

    fn refusal(&self, event: &Event) -> Option<Errno> {
        let missing = (self.no_pmu && event.is_hardware()).then_some(Errno::ENOENT);
        self.refusals.get(event.name.as_str()).copied().or(missing)
    }
}

/// Opens fake groups, on which one event of every kind happens each nanosecond of its clock.
pub(crate) struct FakePmu {
    world: World,
    clock_ns: Rc<Cell<u64>>,
}

impl FakePmu {
    pub(crate) fn new(world: World) -> FakePmu {
        FakePmu { world, clock_ns: Rc::default() }
    }

    /// Its clock, with which a test lets time pass.
    pub(crate) fn clock(&self) -> Rc<Cell<u64>> {
        self.clock_ns.clone()
    }
}

impl Pmu for FakePmu {
    fn open_group(&mut self, events: &[Event]) -> Result<Box<dyn Group>, Refused> {
        for (at, event) in events.iter().enumerate() {
            if let Some(errno) = self.world.refusal(event) {
                return Err(Refused { at, errno });
            }
            if event.is_hardware() && at >= self.world.accepts {
                return Err(Refused { at, errno: Errno::EINVAL });
            }
        }
        let hardware = events.iter().filter(|event| event.is_hardware()).count();
        Ok(Box::new(FakeGroup {
            events: events.len(),
            running_percent: match hardware {
                0 => 100,
                n if n <= self.world.schedules => self.world.running_percent,
                _ => 0,
            },
            world: self.world.clone(),
            clock_ns: self.clock(),
            enabled_at_ns: None,
            totals: Totals { values: vec![0; events.len()], ..Totals::default() },
        }))
    }
}

struct FakeGroup {
    events: usize,
    running_percent: u64,
    world: World,
    clock_ns: Rc<Cell<u64>>,
    enabled_at_ns: Option<u64>,
    totals: Totals,
}

impl Group for FakeGroup {
    fn enable(&mut self) -> Result<(), Errno> {
        if let Some(errno) = self.world.enable_fails {
            return Err(errno);
        }
        self.enabled_at_ns = Some(self.clock_ns.get());
        Ok(())
    }

    fn disable(&mut self) -> Result<(), Errno> {
        let Some(enabled_at_ns) = self.enabled_at_ns.take() else { return Ok(()) };
        // A stretch in which no test let time pass is a trial, which takes a microsecond.
        if self.clock_ns.get() == enabled_at_ns {
            self.clock_ns.set(enabled_at_ns + 1_000);
        }
        let enabled_ns = self.clock_ns.get() - enabled_at_ns;
        let running_ns = enabled_ns * self.running_percent / 100;
        self.totals.time_enabled_ns += enabled_ns;
        self.totals.time_running_ns += running_ns;
        self.totals.values.iter_mut().for_each(|value| *value += running_ns);
        Ok(())
    }

    fn read(&mut self) -> Result<Totals, Errno> {
        assert_eq!(self.totals.values.len(), self.events);
        self.world.read_fails.map_or_else(|| Ok(self.totals.clone()), Err)
    }
}

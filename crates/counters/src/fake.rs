//! A machine made up for a test.

use crate::event::Event;
use crate::lab_counters;
use crate::noted::{Ledger, Taken, Usage};
use crate::order::Order;
use crate::pmu::{Group, Pmu, Refused, Totals};
use crate::refusal;
use host::{Root, Throttled};
use nix::errno::Errno;
use plan::CpuId;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What is opened on a machine that tells its tracepoints' numbers, and nothing else: counters that such a machine
/// refuses unasked are left out.
pub(crate) fn orders() -> Vec<Order> {
    let choices = lab_counters::choices(&Root::at(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/tracefs")), CpuId(0));
    let opened = |order: &Order| matches!(order, Order::Count(_));
    choices.into_iter().filter_map(|choice| choice.order).filter(opened).collect()
}

/// The events of [`orders`].
pub(crate) fn events() -> Vec<Event> {
    let count = |order| match order {
        Order::Count(event) => Some(event),
        Order::Refused { .. } | Order::Shootdowns | Order::Log(_) => None,
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
    /// What every event is refused with, if it is.
    pub(crate) refuses_all: Option<Errno>,
    /// What getrusage answers, if not figures.
    pub(crate) usage_fails: Option<Errno>,
    /// Whether neither stolen nor throttled time is told.
    pub(crate) no_files: bool,
    /// Whether stolen time begins again at 0 from one note to the next.
    pub(crate) steal_restarts: bool,
    /// Whether the process finds itself in another cgroup at each note.
    pub(crate) cgroup_changes: bool,
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
            refuses_all: None,
            usage_fails: None,
            no_files: false,
            steal_restarts: false,
            cgroup_changes: false,
        }
    }
}

impl World {
    pub(crate) fn refusing(mut self, event: &'static str, errno: Errno) -> World {
        self.refusals.insert(event, errno);
        self
    }

    pub(crate) fn refusing_all(errno: Errno) -> World {
        World { refuses_all: Some(errno), ..World::default() }
    }

    pub(crate) fn without_pmu(mut self) -> World {
        self.no_pmu = true;
        self
    }

    fn refusal(&self, event: &Event) -> Option<Errno> {
        let missing = (self.no_pmu && event.is_hardware()).then_some(Errno::ENOENT);
        self.refusals.get(event.name.as_str()).copied().or(self.refuses_all).or(missing)
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

    /// The notes of the same machine.
    pub(crate) fn ledger(&self) -> Box<dyn Ledger> {
        Box::new(FakeLedger { world: self.world.clone(), clock_ns: self.clock(), notes: 0 })
    }
}

/// Everything that is noted happens once, or takes one nanosecond, each nanosecond of the clock.
struct FakeLedger {
    world: World,
    clock_ns: Rc<Cell<u64>>,
    notes: u32,
}

impl Ledger for FakeLedger {
    fn usage(&mut self) -> Result<Usage, Errno> {
        let now = self.clock_ns.get();
        let usage = Usage { switches_voluntary: now, switches_involuntary: now, faults_major: now };
        self.world.usage_fails.map_or(Ok(usage), Err)
    }

    fn taken(&mut self) -> Taken {
        self.notes += 1;
        if self.world.no_files {
            let absent = |file: &str| refusal::unsupported(format!("no {file}"));
            return Taken { stolen_ns: Err(absent("/proc/stat")), throttled: Err(absent("cpu.stat")) };
        }
        let now = self.clock_ns.get();
        let stolen_ns = Ok(if self.world.steal_restarts && self.notes > 1 { 0 } else { now });
        let cgroup = if self.world.cgroup_changes { format!("/{}", self.notes) } else { "/jobs".to_owned() };
        Taken { stolen_ns, throttled: Ok(Throttled { levels: vec![(cgroup, now)] }) }
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

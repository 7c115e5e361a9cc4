//! A worker's counters, from opening to their readings.

use crate::event::{Event, Family};
use crate::interrupted::Interrupted;
use crate::kernel::Kernel;
use crate::log::Log;
use crate::noted::{self, Ledger, Noted};
use crate::open::{self, CountedGroup, Opened};
use crate::order::{Order, SHOOTDOWNS};
use crate::pmu::{Pmu, Totals};
use crate::refusal::{self, Setting};
use host::Root;
use nix::errno::Errno;
use record::{CounterReadings, KernelTrace, Reading};

/// What a worker was told to count, open on the calling thread as far as this machine allows, and standing still
/// outside [`enable`](Counters::enable) .. [`disable`](Counters::disable). What the kernel keeps for every thread
/// without being told is noted beside it: context switches of both kinds and major faults for the same window, and the
/// time taken from the CPU and the cgroup, for the stretch between two calls of [`around`](Counters::around).
///
/// Counts the thread that opened it: threads begun later are not counted.
pub struct Counters {
    software: Vec<CountedGroup>,
    hardware: Vec<CountedGroup>,
    refused: CounterReadings,
    noted: Noted,
    interrupted: Option<Interrupted>,
    log: Option<Log>,
}

impl Counters {
    /// Opens what can be opened of `orders` on the calling thread, which must be pinned already: on a machine with
    /// several kinds of core, events belong to one kind. Never fails; what is refused has its reason in
    /// [`Counters::read`].
    ///
    /// Call it before the warm-up of any worker, and drop it after the last one's window: opening takes half a
    /// millisecond, and opening the first event of a kind on the machine, like closing the last one, makes the kernel
    /// patch its own code, which stops every CPU for a moment, and wait. [`crate::Held`] spares workers both.
    pub fn open(orders: &[Order]) -> Counters {
        Counters::open_on(&mut Kernel, Box::new(noted::Kernel::here()), &Setting::of(&Root::system()), orders)
    }

    fn open_on(pmu: &mut dyn Pmu, ledger: Box<dyn Ledger>, setting: &Setting, orders: &[Order]) -> Counters {
        let mut refused = CounterReadings::new();
        let (mut of_hardware, mut of_software) = (Vec::new(), Vec::new());
        let (mut interrupted, mut log) = (None, None);
        for order in orders.iter().cloned() {
            match order {
                Order::Count(event) if event.is_hardware() => of_hardware.push(event),
                Order::Count(event) => of_software.push(event),
                Order::Refused { name, reading } => _ = refused.insert(name, reading),
                Order::Shootdowns => interrupted = Some(Interrupted::here()),
                Order::Log(order) => log = Some(Log::open(&order, setting)),
            }
        }
        // Software first: once perf is in use, opening and closing more of it no longer makes the kernel wait.
        let software = open::software(pmu, of_software);
        let hardware = open::hardware(pmu, of_hardware);
        let has_pmu = has_pmu(&hardware);
        let reading =
            |(event, errno): &(Event, Errno)| (event.name.clone(), refusal::reading(event, *errno, has_pmu, setting));
        refused.extend(software.refused.iter().chain(&hardware.refused).map(reading));
        let (software, hardware) = (software.groups, hardware.groups);
        Counters { refused, software, hardware, noted: Noted::new(ledger), interrupted, log }
    }

    /// Notes what the hypervisor has taken from this thread's CPU and a quota from its cgroup. Call it twice: before
    /// the warm-up, and after all have left the window; it reads files, which takes 30 µs on two CPUs and more on many,
    /// and allocates, so never inside. A later call takes the second one's place.
    pub fn around(&mut self) {
        self.noted.around();
    }

    /// Has the log tell times by this clock; without one it stays empty. Call it before the first window.
    pub fn logging_by(mut self, clock: fn() -> u64) -> Counters {
        self.log.iter_mut().for_each(|log| log.by(clock));
        self
    }

    /// Opens the window: one getrusage, then one ioctl a group, the hardware's last, no allocation; a few microseconds.
    /// In a run with memory steps first a reading of `/proc/interrupts`, which takes 60 µs on two CPUs, and last an
    /// ioctl for each event of the log. Several windows add up.
    pub fn enable(&mut self) {
        self.interrupted.iter_mut().for_each(Interrupted::enable);
        self.noted.enable();
        for counted in self.software.iter_mut().chain(&mut self.hardware) {
            counted.failed = counted.group.enable().err().or(counted.failed);
        }
        self.log.iter_mut().for_each(Log::enable);
    }

    /// Closes the window, in the opposite order, without allocation.
    pub fn disable(&mut self) {
        self.log.iter_mut().for_each(Log::disable);
        for counted in self.hardware.iter_mut().chain(&mut self.software) {
            counted.failed = counted.group.disable().err().or(counted.failed);
        }
        self.noted.disable();
        self.interrupted.iter_mut().for_each(Interrupted::disable);
    }

    /// A reading for every order and for everything noted, over the windows so far. Call it after
    /// [`Counters::disable`]; it allocates. Values that the hardware had to share are scaled by `time_enabled_ns /
    /// time_running_ns`, which assumes that the loop did the same while they were not counted.
    ///
    /// # Panics
    /// Where the kernel contradicts itself (a group that ran for longer than it was enabled): a bug of the kernel's.
    pub fn read(&mut self) -> CounterReadings {
        let mut readings = self.refused.clone();
        for counted in self.software.iter_mut().chain(&mut self.hardware) {
            read_into(&mut readings, counted);
        }
        self.noted.read_into(&mut readings);
        if let Some(interrupted) = &self.interrupted {
            readings.insert(SHOOTDOWNS.to_owned(), interrupted.reading());
        }
        readings
    }

    /// What was logged over the windows so far; `None` where no log was ordered. Call it after [`Counters::disable`];
    /// it allocates.
    pub fn log(&self) -> Option<KernelTrace> {
        self.log.as_ref().map(Log::trace)
    }

    /// Into how many groups the core's events had to be split: those of one are counted together, several take turns. 0
    /// where the core counts none of them.
    pub fn hardware_groups(&self) -> usize {
        let of_core = |counted: &&CountedGroup| !counted.events.iter().any(Event::is_beside_the_cores);
        self.hardware.iter().filter(of_core).count()
    }
}

/// Whether the cores have a PMU: one of the lab's events opened, or was refused for another reason than that nobody
/// counts it. A user's event may be of a unit beside them.
fn has_pmu(hardware: &Opened) -> bool {
    let is_lab_s = |event: &Event| ![Family::Own, Family::Unit].contains(&event.family);
    hardware.groups.iter().flat_map(|counted| &counted.events).any(is_lab_s)
        || hardware.refused.iter().any(|(event, errno)| is_lab_s(event) && !refusal::is_missing(*errno))
}

fn read_into(readings: &mut CounterReadings, counted: &mut CountedGroup) {
    let totals = match counted.failed.map_or_else(|| counted.group.read(), Err) {
        Ok(totals) => totals.since(&counted.before),
        Err(errno) => {
            let failed = |event: &Event| (event.name.clone(), refusal::lost(errno));
            return readings.extend(counted.events.iter().map(failed));
        }
    };
    for (event, value) in counted.events.iter().zip(&totals.values) {
        readings.insert(event.name.clone(), judged(*value, &totals));
    }
}

pub(crate) fn judged(value: u64, totals: &Totals) -> Reading {
    let (enabled, running) = (totals.time_enabled_ns, totals.time_running_ns);
    if running == 0 {
        return Reading::NotScheduled;
    }
    if running >= enabled {
        return Reading::Counted { value };
    }
    let scaled = u128::from(value) * u128::from(enabled) / u128::from(running);
    Reading::Scaled { value: u64::try_from(scaled).unwrap_or(u64::MAX), ratio: running as f64 / enabled as f64 }
}

#[cfg(test)]
mod tests {
    use super::Counters;
    use crate::fake::{FakePmu, World, orders};
    use crate::order::Order;
    use crate::refusal::Setting;
    use crate::software;
    use nix::errno::Errno;
    use plan::CountedBy;
    use record::{CounterReadings, Reading};
    use std::cell::Cell;
    use std::collections::BTreeSet;

    fn pass(clock_ns: &Cell<u64>, ns: u64) {
        clock_ns.set(clock_ns.get() + ns);
    }

    fn open(pmu: &mut FakePmu, orders: &[Order]) -> Counters {
        let ledger = pmu.ledger();
        Counters::open_on(pmu, ledger, &Setting::default(), orders)
    }

    /// Readings of a window of `inside_ns`, with time passing before and after it too: 77 and 99 µs of it between
    /// window and notes, and as much again beyond those.
    fn window(world: World, inside_ns: u64) -> CounterReadings {
        let mut pmu = FakePmu::new(world);
        let clock = pmu.clock();
        let mut counters = open(&mut pmu, &orders());
        pass(&clock, 77_000);
        counters.around();
        pass(&clock, 77_000);
        counters.enable();
        pass(&clock, inside_ns);
        counters.disable();
        pass(&clock, 99_000);
        counters.around();
        pass(&clock, 99_000);
        counters.read()
    }

    /// Those of a window that an event or a call at its edges tells, rather than what is noted around it.
    fn inside(readings: &CounterReadings) -> impl Iterator<Item = (&String, &Reading)> {
        readings.iter().filter(|(name, _)| ![software::STOLEN, software::THROTTLED].contains(&name.as_str()))
    }

    #[test]
    fn every_order_and_every_note_has_one_reading() {
        let kernel =
            plan::event::COUNTERS.iter().filter(|(_, by)| *by == CountedBy::Kernel).map(|(name, _)| (*name).to_owned());
        let ordered = orders().iter().map(|order| order.name().to_owned()).collect::<Vec<_>>();
        let noted = software::NOTED.map(|(name, ..)| name.to_owned());
        assert!(!noted.iter().any(|name| ordered.contains(name)), "nothing is counted twice under one name");
        let wanted: BTreeSet<String> = ordered.iter().cloned().chain(noted).collect();
        assert_eq!(ordered.iter().collect::<BTreeSet<_>>().len(), ordered.len());
        for world in [World::default(), World::default().without_pmu(), World::refusing_all(Errno::EACCES)] {
            let names: BTreeSet<String> = window(world, 5).into_keys().collect();
            assert_eq!(names, wanted);
            assert!(kernel.clone().all(|name| names.contains(&name)), "{names:?}");
        }
    }

    #[test]
    fn only_the_window_is_counted() {
        let readings = window(World::default(), 5_000);
        assert!(inside(&readings).all(|(_, r)| *r == Reading::Counted { value: 5_000 }), "{readings:?}");
    }

    #[test]
    fn what_is_taken_is_noted_from_before_the_warm_up_until_all_have_left() {
        let readings = window(World::default(), 5_000);
        let whole = Reading::Counted { value: 77_000 + 5_000 + 99_000 };
        assert_eq!((&readings["stolen_ns"], &readings["throttled_ns"]), (&whole, &whole));
    }

    #[test]
    fn notes_need_nobody_s_leave() {
        let readings = window(World::refusing_all(Errno::EACCES), 40);
        for name in ["context_switches_voluntary", "context_switches_involuntary", "page_faults_major"] {
            assert_eq!(readings[name], Reading::Counted { value: 40 }, "{name}");
        }
        assert!(matches!(readings["context_switches"], Reading::Denied { .. }));
    }

    #[test]
    fn a_note_that_could_not_be_taken_says_why_and_is_not_zero() {
        let why = |world: World, name: &str| match &window(world, 10)[name] {
            Reading::Unsupported { why } => why.clone(),
            other => panic!("{name}: {other:?}"),
        };
        let failing = World { usage_fails: Some(Errno::EPERM), ..World::default() };
        assert!(why(failing, "context_switches_voluntary").contains("getrusage(RUSAGE_THREAD) failed (EPERM"));
        let untold = World { no_files: true, ..World::default() };
        assert!(why(untold.clone(), "stolen_ns").contains("/proc/stat"));
        assert!(why(untold, "throttled_ns").contains("cpu.stat"));
        let moved = World { cgroup_changes: true, ..World::default() };
        assert!(why(moved, "throttled_ns").contains("another cgroup"));
        let migrated = World { steal_restarts: true, ..World::default() };
        assert!(why(migrated, "stolen_ns").contains("backwards"));
    }

    #[test]
    fn without_a_window_or_what_lies_around_it_there_are_no_notes() {
        let mut pmu = FakePmu::new(World::default());
        let mut counters = open(&mut pmu, &[]);
        let readings = counters.read();
        assert_eq!(readings["page_faults_major"], Reading::NotScheduled);
        counters.around();
        for readings in [readings, counters.read()] {
            for name in ["stolen_ns", "throttled_ns"] {
                assert!(matches!(&readings[name], Reading::Unsupported { why } if why.contains("both sides")));
            }
        }
    }

    #[test]
    fn windows_add_up() {
        let mut pmu = FakePmu::new(World::default());
        let clock = pmu.clock();
        let mut counters = open(&mut pmu, &orders());
        for inside_ns in [100, 20, 3] {
            counters.enable();
            pass(&clock, inside_ns);
            counters.disable();
            pass(&clock, 1_000_000);
        }
        let readings = counters.read();
        assert!(
            ["cycles", "context_switches_voluntary"].iter().all(|n| readings[*n] == Reading::Counted { value: 123 })
        );
    }

    #[test]
    fn shared_hardware_scales_and_says_by_how_much() {
        let readings = window(World { running_percent: 25, ..World::default() }, 8_000);
        assert_eq!(readings["cycles"], Reading::Scaled { value: 8_000, ratio: 0.25 });
        assert_eq!(readings["context_switches"], Reading::Counted { value: 8_000 });
    }

    #[test]
    fn what_never_ran_is_not_zero() {
        let readings = window(World { schedules: 0, ..World::default() }, 8_000);
        assert_eq!(readings["instructions"], Reading::NotScheduled);
        assert_eq!(readings["page_faults"], Reading::Counted { value: 8_000 });
    }

    #[test]
    fn without_a_pmu_the_kernel_still_counts() {
        let readings = window(World::default().without_pmu(), 10);
        let Reading::Unsupported { why } = &readings["l1d_load_misses"] else { panic!("{readings:?}") };
        assert!(why.contains("no hardware PMU") && why.contains("ENOENT"), "{why}");
        assert_eq!(readings["task_clock"], Reading::Counted { value: 10 });
    }

    #[test]
    fn an_event_that_a_pmu_lacks_is_told_from_a_missing_pmu() {
        let readings = window(World::default().refusing("llc_loads", Errno::ENOENT), 10);
        let Reading::Unsupported { why } = &readings["llc_loads"] else { panic!("{readings:?}") };
        assert!(!why.contains("no hardware PMU") && why.contains("no such event"), "{why}");
        assert_eq!(readings["llc_load_misses"], Reading::Counted { value: 10 });
    }

    #[test]
    fn denied_software_events_have_a_cure_and_no_zero() {
        for errno in [Errno::EACCES, Errno::EPERM] {
            let readings = window(World::default().refusing("context_switches", errno), 10);
            assert!(matches!(&readings["context_switches"], Reading::Denied { .. }), "{readings:?}");
            assert_eq!(readings["page_faults"], Reading::Counted { value: 10 });
        }
    }

    #[test]
    fn a_window_that_could_not_be_opened_or_read_has_no_figures() {
        let unread = window(World { read_fails: Some(Errno::EIO), ..World::default() }, 10);
        let unopened = window(World { enable_fails: Some(Errno::ENOTTY), ..World::default() }, 10);
        for (readings, name) in [(unread, "EIO"), (unopened, "ENOTTY")] {
            for order in orders() {
                let reading = &readings[order.name()];
                assert!(matches!(reading, Reading::Unsupported { why } if why.contains(name)), "{reading:?}");
            }
        }
    }

    #[test]
    fn large_counts_scale_without_overflow() {
        let totals =
            crate::pmu::Totals { time_enabled_ns: 4_000_000_000, time_running_ns: 1_000_000_000, values: vec![] };
        let Reading::Scaled { value, .. } = super::judged(u64::MAX / 8, &totals) else { panic!("not scaled") };
        assert_eq!(value, (u128::from(u64::MAX / 8) * 4) as u64);
    }
}

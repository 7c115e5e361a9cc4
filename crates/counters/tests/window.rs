//! The real kernel counts what happens inside the window, and nothing else.
#![allow(unsafe_code)]

use counters::{Counters, Order, Selection};
use host::Root;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};
use record::{CounterReadings, Reading};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::path::Path;
use std::ptr::NonNull;
use std::time::Duration;
use testing::{not_here, skip};

const PAGE_BYTES: usize = 4096;

/// Private memory whose pages have not been touched; each first write to one is a page fault.
struct Untouched {
    base: NonNull<c_void>,
    bytes: NonZeroUsize,
    touched: usize,
}

impl Untouched {
    fn of_pages(pages: usize) -> Untouched {
        let bytes = NonZeroUsize::new(pages * PAGE_BYTES).expect("at least one page");
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice, advised before anything points into it; this
        // struct alone owns it until `drop`.
        let base = unsafe {
            let base = mmap_anonymous(None, bytes, protection, MapFlags::MAP_PRIVATE).expect("memory");
            // A huge page would take one fault for many pages; a kernel without them refuses the advice, rightly.
            let _ = madvise(base, bytes.get(), MmapAdvise::MADV_NOHUGEPAGE);
            base
        };
        Untouched { base, bytes, touched: 0 }
    }

    /// Writes to the next `pages` pages.
    fn touch(&mut self, pages: usize) {
        for page in self.touched..self.touched + pages {
            let offset = page * PAGE_BYTES;
            assert!(offset < self.bytes.get());
            // SAFETY: `offset` lies inside the mapping, just checked, which lives as long as `self` and is not aliased.
            unsafe { self.base.cast::<u8>().as_ptr().add(offset).write_volatile(1) };
        }
        self.touched += pages;
    }
}

impl Drop for Untouched {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `of_pages`, to which `self` holds the only pointer.
        let _ = unsafe { munmap(self.base, self.bytes.get()) };
    }
}

/// What this machine's first CPU is asked: every CPU that a test may run on is of its kind, or its hardware events do
/// not run, which these tests allow for.
fn orders() -> Vec<Order> {
    let selection = Selection::choose(&Root::system(), &[plan::CpuId(0)], &[]).expect("no event of a user's to refuse");
    selection.orders().remove(0).orders
}

#[test]
fn groups_are_those_of_the_processor_s_events_alone() {
    let of_processor = |order: &Order| matches!(order, Order::Count(event) if event.is_hardware());
    let (processor, kernel): (Vec<Order>, Vec<Order>) = orders().into_iter().partition(of_processor);
    assert_eq!(Counters::open(&kernel).hardware_groups(), 0);
    assert_eq!(Counters::open(&own("msr/tsc/")).hardware_groups(), 0, "a unit's take no turns with the core's");
    let mut counters = Counters::open(&processor);
    let closed = |reading: &Reading| matches!(reading, Reading::Unsupported { .. } | Reading::Denied { .. });
    let (groups, readings) = (counters.hardware_groups(), counters.read());
    let open = processor.iter().filter(|order| !closed(&readings[order.name()])).count();
    assert!(groups <= open && (groups == 0) == (open == 0), "{groups} groups of {open} events");
}

/// The count of what the kernel counts by itself; `None`, having said why, where it is kept from this user.
fn counted(readings: &CounterReadings, name: &str) -> Option<u64> {
    match &readings[name] {
        Reading::Counted { value } => Some(*value),
        other => {
            skip(&format!("{name} is not counted here: {other:?}"));
            None
        }
    }
}

/// The count of what a unit of the processor counts; `None`, having said why, where the kernel has no such unit.
fn counted_by(unit: &str, readings: &CounterReadings, name: &str) -> Option<u64> {
    let is_there = |unit: &str| Path::new("/sys/bus/event_source/devices").join(unit).exists();
    match &readings[name] {
        Reading::Counted { value } | Reading::Scaled { value, .. } => Some(*value),
        other if is_there(unit) => {
            skip(&format!("{name} is not counted here: {other:?}"));
            None
        }
        other => {
            not_here(&format!("the unit `{unit}`, which counts {name}: {other:?}"));
            None
        }
    }
}

fn window(before: usize, inside: usize, after: usize) -> CounterReadings {
    let mut pages = Untouched::of_pages(before + inside + after);
    let mut counters = Counters::open(&orders());
    pages.touch(before);
    counters.enable();
    pages.touch(inside);
    counters.disable();
    pages.touch(after);
    counters.read()
}

#[test]
fn page_faults_outside_the_window_are_not_counted() {
    // Only noise can add to a window (a page of this program that was evicted, a NUMA hint), so the least of a few
    // windows is the count; faults before or behind it would be in every one.
    let mut least = None;
    for _ in 0..5 {
        let Some(faults) = counted(&window(300, 70, 500), "page_faults") else { return };
        least = Some(least.map_or(faults, |least: u64| least.min(faults)));
    }
    assert_eq!(least, Some(70));
}

#[test]
fn context_switches_in_the_kernel_are_seen() {
    let mut counters = Counters::open(&orders());
    counters.enable();
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(1));
    }
    counters.disable();
    let Some(switches) = counted(&counters.read(), "context_switches") else { return };
    assert!(switches >= 4, "{switches} switches in four sleeps");
}

#[test]
fn a_worker_s_own_switches_are_noted_in_the_window_alone() {
    let nap = || std::thread::sleep(Duration::from_millis(1));
    let mut counters = Counters::open(&[]);
    (0..20).for_each(|_| nap());
    counters.enable();
    (0..4).for_each(|_| nap());
    counters.disable();
    (0..20).for_each(|_| nap());
    let readings = counters.read();
    // A sleep is one switch, and needs nobody's leave to be noted. A kernel that wakes a sleeper early may add one.
    let Reading::Counted { value } = readings["context_switches_voluntary"] else { panic!("{readings:?}") };
    assert!((4..20).contains(&value), "{value} switches in four sleeps");
    assert!(matches!(readings["context_switches_involuntary"], Reading::Counted { .. }), "{readings:?}");
}

#[test]
fn futex_calls_are_counted_in_the_window_alone() {
    let word = std::sync::atomic::AtomicU32::new(0);
    let wake = |calls: usize| {
        for _ in 0..calls {
            // SAFETY: FUTEX_WAKE takes the address of a word, which lives for the whole test, and reads nothing else;
            // it wakes nobody, since nobody waits.
            let woken = unsafe {
                nix::libc::syscall(nix::libc::SYS_futex, word.as_ptr(), nix::libc::FUTEX_WAKE, 1, 0_usize, 0_usize, 0)
            };
            assert_eq!(woken, 0);
        }
    };
    let mut counters = Counters::open(&orders());
    wake(30);
    counters.enable();
    wake(7);
    counters.disable();
    wake(50);
    let Some(calls) = counted(&counters.read(), "futex_calls") else { return };
    assert_eq!(calls, 7);
}

#[test]
fn what_is_unmapped_is_flushed_from_the_tlb() {
    let mut mapped: Vec<Untouched> = (0..40).map(|_| Untouched::of_pages(1)).collect();
    mapped.iter_mut().for_each(|page| page.touch(1));
    let mut counters = Counters::open(&orders());
    counters.enable();
    mapped.truncate(20);
    counters.disable();
    let Some(flushes) = counted(&counters.read(), "tlb_flushes") else { return };
    assert!(flushes >= 20, "{flushes} flushes for 20 pages unmapped one by one");
}

#[test]
fn what_is_taken_around_the_window_is_told_or_says_why() {
    let mut counters = Counters::open(&[]);
    counters.around();
    counters.enable();
    counters.disable();
    counters.around();
    let readings = counters.read();
    for name in ["stolen_ns", "throttled_ns"] {
        match &readings[name] {
            Reading::Counted { .. } => {}
            Reading::Unsupported { why } => assert!(why.contains("/proc/") || why.contains("cpu.stat"), "{why}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn the_task_clock_stands_still_outside_the_window_and_in_sleep() {
    let mut counters = Counters::open(&orders());
    let begin = std::time::Instant::now();
    counters.enable();
    std::thread::sleep(Duration::from_millis(20));
    counters.disable();
    let wall_ns = begin.elapsed().as_nanos() as u64;
    let Some(task_ns) = counted(&counters.read(), "task_clock") else { return };
    // A millisecond for two clocks that need not agree to the last digit.
    assert!(task_ns > 0 && task_ns + 19_000_000 <= wall_ns, "{task_ns} ns of task in {wall_ns} ns of wall time");
    let again = counters.read();
    assert_eq!(counted(&again, "task_clock"), Some(task_ns), "a closed window does not grow");
}

/// Works for about `length`, without a system call.
fn spin(length: Duration) {
    let begin = std::time::Instant::now();
    while begin.elapsed() < length {
        std::hint::spin_loop();
    }
}

/// Orders for events of a user's alone.
fn own(list: &str) -> Vec<Order> {
    let events = plan::EventSpec::list(list).expect("events");
    let selection = Selection::choose(&Root::system(), &[plan::CpuId(0)], &events).expect("events that mean something");
    let orders = selection.orders().remove(0).orders;
    let names: Vec<&str> = events.iter().map(|event| event.key()).collect();
    orders.into_iter().filter(|order| names.contains(&order.name())).collect()
}

/// The clock that `msr/tsc/` counts, of the CPU that asks.
#[cfg(target_arch = "x86_64")]
fn tsc() -> u64 {
    // SAFETY: RDTSC reads a counter and nothing else; Linux leaves it open to user mode.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// A unit beside the cores counts from the window's opening on: once such an event stood still until its worker was
/// switched off and on again, and read 0 in a window without a switch, marked as counted.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_unit_beside_the_cores_counts_the_whole_window_and_nothing_else() {
    for list in ["msr/tsc/", "msr/tsc/,cpu-clock", "cpu-clock,msr/tsc/,r1,msr/tsc,name=again/,task-clock"] {
        let orders = own(list);
        let mut undisturbed = 0;
        for _ in 0..200 {
            let mut counters = Counters::open(&orders);
            spin(Duration::from_micros(300));
            let before = tsc();
            counters.enable();
            let opened = tsc();
            spin(Duration::from_micros(300));
            let closing = tsc();
            counters.disable();
            let after = tsc();
            spin(Duration::from_micros(300));
            let readings = counters.read();
            let Some(ticks) = counted_by("msr", &readings, "msr/tsc/") else { return };
            assert!(ticks <= after - before, "{list}: {ticks} ticks in a window of {} at most", after - before);
            assert_eq!(readings.contains_key("again"), list.contains("again"));
            if let Some(Reading::Counted { value }) = readings.get("again") {
                assert!(value.abs_diff(ticks) <= after - before - (closing - opened), "{list}: {value} and {ticks}");
            }
            let switches = ["context_switches_voluntary", "context_switches_involuntary"].map(|name| &readings[name]);
            if switches.iter().all(|reading| **reading == Reading::Counted { value: 0 }) {
                assert!(
                    ticks >= closing - opened,
                    "{list}: {ticks} ticks in a window of {} at least",
                    closing - opened
                );
                undisturbed += 1;
            }
        }
        if undisturbed == 0 {
            not_here(&format!("quiet for 300 us, so that {list} had no window of its own"));
        }
    }
}

#[test]
fn hardware_counts_a_known_loop() {
    let mut counters = Counters::open(&orders());
    let turns = 1_000_000_u64;
    counters.enable();
    for turn in 0..turns {
        std::hint::black_box(turn);
    }
    counters.disable();
    let Some(instructions) = counted_by("cpu", &counters.read(), "instructions") else { return };
    assert!(instructions >= turns, "{instructions} instructions in {turns} turns");
}

#[test]
fn every_event_has_a_reading_and_what_is_missing_says_why() {
    let readings = window(1, 1, 1);
    assert!(orders().iter().all(|order| readings.contains_key(order.name())));
    for (name, reading) in &readings {
        match reading {
            Reading::Unsupported { why } => assert!(!why.is_empty()),
            Reading::Denied { why, cure } => assert!(!why.is_empty() && !cure.is_empty()),
            Reading::Counted { .. } | Reading::Scaled { .. } | Reading::NotScheduled => {}
        }
        println!("{name}: {reading:?}");
    }
}

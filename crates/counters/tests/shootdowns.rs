//! A process punches memory that another one touches: what the lab counts of the shootdowns, and what others count.
//!
//! The victim is this test's program again, on a CPU of its own. It does what it is told line by line, so that both
//! know what lies inside the window.
#![allow(unsafe_code)] // a mapping that two processes share

use counters::{Counters, Order, Selection};
use host::{KernelSymbols, Root};
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use plan::CpuId;
use record::{CounterReadings, FlushReason, KernelEventKind, KernelTrace, Reading};
use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use testing::{A_LONG_TIME, Lines, Perf, not_here, skip};

const PAGE_BYTES: usize = 4096;
/// The first page is for flags, the others are touched and punched.
const PAGES: usize = 17;
/// Punches in a window: each interrupts the victim at most once.
const PUNCHES: u32 = 400;
/// Names the descriptor of the memory for the victim, which no other run of this program has.
const MEMORY: &str = "LAB_TEST_SHARED_MEMORY";
const VICTIM_CPU: u32 = 1;
const CULPRIT_CPU: u32 = 0;

/// The memory that both processes map.
struct Shared {
    descriptor: OwnedFd,
    base: *mut u8,
}

impl Shared {
    fn new() -> Shared {
        // Without close-on-exec: the victim inherits it under its number.
        let descriptor = memfd_create(c"shootdowns", MFdFlags::empty()).expect("memory");
        nix::unistd::ftruncate(&descriptor, (PAGES * PAGE_BYTES) as i64).expect("room");
        Shared::map(descriptor)
    }

    fn map(descriptor: OwnedFd) -> Shared {
        let bytes = NonZeroUsize::new(PAGES * PAGE_BYTES).expect("pages");
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice, which stays until the process ends.
        let base = unsafe { mmap(None, bytes, protection, MapFlags::MAP_SHARED, descriptor.as_fd(), 0) };
        Shared { descriptor, base: base.expect("a mapping").cast().as_ptr() }
    }

    /// Rounds that the victim has made through all pages, and whether it is to stop.
    fn flags(&self) -> (&AtomicU32, &AtomicU32) {
        // SAFETY: in the first page of the mapping, aligned, and used by atomic accesses alone.
        unsafe { (&*self.base.cast::<AtomicU32>(), &*self.base.add(64).cast::<AtomicU32>()) }
    }

    fn touch(&self) {
        for page in 1..PAGES {
            // SAFETY: inside the mapping; both processes access these bytes atomically or not at all.
            unsafe { (*self.base.add(page * PAGE_BYTES).cast::<AtomicU8>()).store(1, Ordering::Relaxed) };
        }
    }

    /// Takes the pages from both processes.
    fn punch(&self) {
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        fallocate(&self.descriptor, flags, PAGE_BYTES as i64, ((PAGES - 1) * PAGE_BYTES) as i64).expect("a hole");
    }
}

fn pin(cpu: u32) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu as usize).expect("a CPU's number");
    sched_setaffinity(Pid::from_raw(0), &set).is_ok()
}

fn orders(cpu: u32, stacks: bool) -> Vec<Order> {
    let root = Root::system();
    let selection = Selection::choose(&root, &[CpuId(cpu)], &[]).expect("no event of a user's to refuse");
    selection.with_memory(&root, stacks).orders().remove(0).orders
}

/// Nanoseconds: any steady clock will do for the log.
fn clock() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("a clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// The other process: no test of its own.
#[test]
fn the_victim() {
    let Some(descriptor) = std::env::var(MEMORY).ok().and_then(|number| number.parse::<RawFd>().ok()) else { return };
    // SAFETY: the culprit left this descriptor open for this process alone, which takes it once.
    let shared = Shared::map(unsafe { OwnedFd::from_raw_fd(descriptor) });
    // Should the culprit be killed, nobody tells the victim to stop.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).expect("a signal at the end of the thread that started it");
    assert!(pin(VICTIM_CPU));
    let mut counters = Counters::open(&orders(VICTIM_CPU, true)).logging_by(clock);
    shared.touch();
    println!("victim: ready");
    for line in std::io::stdin().lines().map_while(Result::ok) {
        match line.as_str() {
            "open" => counters.enable(),
            "touch" => {
                let (rounds, stop) = shared.flags();
                println!("victim: touching");
                while stop.load(Ordering::Acquire) == 0 {
                    shared.touch();
                    rounds.fetch_add(1, Ordering::Release);
                }
            }
            "close" => counters.disable(),
            "tell" => {
                let told = serde_json::to_string(&(counters.read(), counters.log())).expect("JSON");
                println!("victim: {told}");
                return;
            }
            other => panic!("{other}"),
        }
        println!("victim: done");
    }
}

/// The victim as the culprit sees it.
struct Victim {
    child: Child,
    commands: ChildStdin,
    answers: Lines,
}

impl Victim {
    fn start(shared: &Shared) -> Victim {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args(["--exact", "the_victim", "--nocapture"])
            .env(MEMORY, shared.descriptor.as_raw_fd().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the victim");
        let commands = child.stdin.take().expect("a pipe");
        let answers = Lines::of(child.stdout.take().expect("a pipe"));
        let victim = Victim { child, commands, answers };
        assert_eq!(victim.hear(), "ready");
        victim
    }

    fn hear(&self) -> String {
        loop {
            let line = self.answers.hear().expect("the victim ended");
            // The test's own words stand before the first.
            if let Some((_, said)) = line.split_once("victim: ") {
                return said.to_owned();
            }
        }
    }

    fn tell(&mut self, command: &str) -> String {
        writeln!(self.commands, "{command}").expect("a pipe");
        self.hear()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What was seen of a window in which the victim's pages were punched.
struct Seen {
    victim: CounterReadings,
    victim_log: KernelTrace,
    culprit: CounterReadings,
    culprit_log: KernelTrace,
    /// Interrupts of the victim's CPU by readings just inside of the window, and just outside.
    inside: u64,
    outside: u64,
}

impl Seen {
    /// Whether the victim was on its CPU at some of the punches. Whoever is not needs no interrupt: it finds the pages gone
    /// when it comes back.
    fn was_hit(&self) -> bool {
        let interrupts = match self.victim["tlb_flushes_remote"] {
            Reading::Counted { value } => value,
            _ => self.inside,
        };
        interrupts > u64::from(PUNCHES / 10)
    }
}

/// A window in which the victim was hit, one at a time: two victims would take each other's CPU. `None` where this machine
/// cannot show it, which is then said. `around` is told when perf is to begin (with whom) and to end.
fn shoot(mut around: impl FnMut(Option<i32>) -> bool) -> Option<Seen> {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..5 {
        let seen = attempt(&mut around)?;
        if seen.was_hit() {
            return Some(seen);
        }
    }
    not_here("quiet: the victim was hardly ever on its CPU when its memory was punched");
    None
}

/// One window, whatever became of it.
fn attempt(mut around: impl FnMut(Option<i32>) -> bool) -> Option<Seen> {
    if !pin(CULPRIT_CPU) || !has_cpu(VICTIM_CPU) {
        skip("it takes CPUs 0 and 1");
        return None;
    }
    if shootdowns(VICTIM_CPU).is_none() {
        skip("this kernel tells no TLB shootdowns in /proc/interrupts");
        return None;
    }
    let shared = Shared::new();
    let mut victim = Victim::start(&shared);
    let mut culprit = Counters::open(&orders(CULPRIT_CPU, true)).logging_by(clock);
    if !around(Some(victim.child.id() as i32)) {
        return None;
    }
    let outer = shootdowns(VICTIM_CPU)?;
    victim.tell("open");
    let inner = shootdowns(VICTIM_CPU)?;
    culprit.enable();
    assert_eq!(victim.tell("touch"), "touching");
    let (rounds, stop) = shared.flags();
    for _ in 0..PUNCHES {
        let begin = Instant::now();
        // The victim has the pages mapped again once it has been through them all.
        let seen = rounds.load(Ordering::Acquire);
        while rounds.load(Ordering::Acquire) < seen + 2 {
            assert!(begin.elapsed() < A_LONG_TIME, "the victim has stopped touching");
            std::hint::spin_loop();
        }
        shared.punch();
    }
    stop.store(1, Ordering::Release);
    assert_eq!(victim.hear(), "done");
    culprit.disable();
    let inside = shootdowns(VICTIM_CPU)? - inner;
    victim.tell("close");
    let outside = shootdowns(VICTIM_CPU)? - outer;
    around(None);
    let told: (CounterReadings, Option<KernelTrace>) = serde_json::from_str(&victim.tell("tell")).expect("JSON");
    Some(Seen {
        victim: told.0,
        victim_log: told.1.expect("a log was ordered"),
        culprit: culprit.read(),
        culprit_log: culprit.log().expect("a log was ordered"),
        inside,
        outside,
    })
}

/// Read apart from the code under test.
fn shootdowns(cpu: u32) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/interrupts").ok()?;
    let column = text.lines().next()?.split_whitespace().position(|name| name == format!("CPU{cpu}"))?;
    let row = text.lines().find_map(|line| line.trim_start().strip_prefix("TLB:"))?;
    row.split_whitespace().nth(column)?.parse().ok()
}

fn has_cpu(cpu: u32) -> bool {
    nix::sched::sched_getaffinity(Pid::from_raw(std::process::id() as i32)).is_ok()
        && std::path::Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}")).exists()
}

/// The count; `None` and why, where this machine does not count it.
fn counted(readings: &CounterReadings, name: &str) -> Option<u64> {
    match &readings[name] {
        Reading::Counted { value } => Some(*value),
        other => {
            skip(&format!("{name}: {}", other.why().unwrap_or("scaled")));
            None
        }
    }
}

#[test]
fn interrupts_lie_between_readings_just_inside_and_just_outside_the_window() {
    let Some(seen) = shoot(|_| true) else { return };
    let Some(interrupts) = counted(&seen.victim, "tlb_shootdowns") else { return };
    println!("{} inside, {interrupts} counted, {} outside; {PUNCHES} punches", seen.inside, seen.outside);
    assert!(seen.inside <= interrupts && interrupts <= seen.outside);
}

#[test]
fn flushes_are_told_by_reason_on_either_side_and_perf_counts_as_many() {
    let (mut attached, mut counts) = (None, BTreeMap::new());
    let witness = |pid: Option<i32>| {
        let Some(pid) = pid else {
            counts = attached.take().map(Perf::detach).expect("attached");
            return true;
        };
        match Perf::attach(pid, "tlb:tlb_flush") {
            Ok(perf) => attached = Some(perf),
            Err(why) => skip(&format!("perf stat cannot count tlb:tlb_flush of another process here: {why}")),
        }
        attached.is_some()
    };
    let Some(seen) = shoot(witness) else { return };
    let Some(flushes) = counted(&seen.victim, "tlb_flushes") else { return };
    let perf = counts["tlb:tlb_flush"];
    let of = |readings: &CounterReadings, name: &str| counted(readings, name).expect("as the others");
    let (asked, sent) = (of(&seen.victim, "tlb_flushes_remote"), of(&seen.culprit, "tlb_flushes_sent"));
    println!("victim: {flushes} flushes, {asked} asked of it, perf {perf}; culprit sent {sent}");
    // Nothing is punched between perf's beginning and the window's, nor between its end and perf's.
    assert_eq!(flushes as f64, perf);
    let reasons = ["tlb_flushes_remote", "tlb_flushes_local", "tlb_flushes_local_mm", "tlb_flushes_sent"];
    assert!(reasons.iter().map(|name| of(&seen.victim, name)).sum::<u64>() <= flushes);
    assert!(sent > u64::from(PUNCHES / 10));
    let entered = of(&seen.victim, "call_function_interrupts") + of(&seen.victim, "call_function_single_interrupts");
    assert!(entered >= asked, "{entered} function calls for {asked} flushes");
}

#[test]
fn the_log_holds_each_flush_between_its_request_and_the_end_of_the_call_with_the_stack_that_raised_it() {
    let before = Instant::now();
    let start = clock();
    let Some(seen) = shoot(|_| true) else { return };
    let end = clock();
    assert!(before.elapsed() < Duration::from_secs(600));
    if let Some(missing) = &seen.culprit_log.missing {
        return skip(missing.why().unwrap_or(""));
    }
    let flushes = |log: &KernelTrace, wanted: FlushReason| -> Vec<record::KernelEvent> {
        let is = |event: &&record::KernelEvent| matches!(event.kind, KernelEventKind::Flush { reason, .. } if reason == wanted);
        log.events.iter().filter(is).copied().collect()
    };
    let (sent, asked) = (flushes(&seen.culprit_log, FlushReason::Sent), flushes(&seen.victim_log, FlushReason::Remote));
    assert_eq!((seen.culprit_log.lost, seen.victim_log.lost), (0, 0));
    let counts = [("tlb_flushes_sent", &seen.culprit, sent.len()), ("tlb_flushes_remote", &seen.victim, asked.len())];
    for (name, readings, logged) in counts {
        let counted = counted(readings, name).expect("what is logged is counted");
        // The log is switched on last and off first.
        assert_eq!(logged as u64, counted, "{name}");
    }
    assert!(sent.iter().chain(&asked).all(|event| (start..=end).contains(&event.ticks)), "times are the given clock's");
    let interrupts = seen.victim_log.events.iter().filter(|event| event.kind == KernelEventKind::Interrupt).count();
    assert!(interrupts >= asked.len(), "{interrupts} interrupts for {} flushes", asked.len());
    let Ok(symbols) = KernelSymbols::read(&Root::system()) else {
        return skip("the kernel's functions have no names here");
    };
    let names = |log: &KernelTrace, event: &record::KernelEvent| -> Vec<String> {
        let frames = &log.stacks[event.stack.expect("stacks were asked for") as usize];
        frames.iter().filter_map(|frame| symbols.name(*frame)).map(str::to_owned).collect()
    };
    let (culprit_s, victim_s) = (names(&seen.culprit_log, &sent[0]), names(&seen.victim_log, &asked[0]));
    println!("culprit: {}\nvictim: {}", culprit_s.join(" < "), victim_s.join(" < "));
    assert!(culprit_s.iter().any(|name| name.contains("fallocate")), "{culprit_s:?}");
    assert!(victim_s.iter().any(|name| name.contains("call_function")), "{victim_s:?}");
}

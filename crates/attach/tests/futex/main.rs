//! Who waits for whom, seen from outside on programs in C, each of which has the segment at an address of its own.

mod bpftrace;
#[path = "../common/mod.rs"]
mod common;
mod processes;

use attach::futex::{Waits, cost_ns, probe, watch};
use attach::{Targets, Wanted, find};
use common::parser;
use host::Root;
use processes::{Bench, Process, await_sleep, sleeps_in_futex};
use record::WatchedLock;
use std::process::Command;
use std::time::Instant;
use testing::{A_LONG_TIME, skip};

/// Where the program has its mutex, its lock of one word, and a word beside that.
const MUTEX: u64 = 192;
const WORD: u64 = 320;
const OTHER: u64 = 324;

fn targets(bench: &Bench) -> Targets {
    find(&Root::system(), &Wanted::File(bench.segment()), &[]).unwrap().targets
}

/// Asks `is_over` at each look of a watch, and tells it how often it was asked before; fails where that never is.
fn looking(mut is_over: impl FnMut(u32) -> bool) -> impl FnMut() -> bool {
    let (begin, mut looks) = (Instant::now(), 0);
    move || {
        assert!(begin.elapsed() < A_LONG_TIME, "the watched do not come to their end");
        looks += 1;
        is_over(looks - 1)
    }
}

/// What is seen until `is_over`, which is told how often it was asked before, at first with everything watched; `None` where
/// nothing can be seen here.
fn seen(bench: &Bench, is_over: impl FnMut(u32) -> bool) -> Option<Waits> {
    let waits = watch(&Root::system(), &targets(bench), looking(is_over));
    if let Some(note) = waits.notes.iter().find(|note| note.id == "no_tracefs" || note.id == "not_permitted") {
        skip(&note.text);
        return None;
    }
    // A busy machine may not let the watcher run for long enough to take records away as fast as they come.
    assert!(waits.notes.iter().all(|note| note.id == "events_lost"), "{:?}", waits.notes);
    Some(waits)
}

fn lock(waits: &Waits, offset: u64) -> &WatchedLock {
    waits.locks.iter().find(|lock| lock.offset == offset).unwrap_or_else(|| panic!("no lock at {offset}: {waits:?}"))
}

fn kinds(lock: &WatchedLock) -> Vec<&str> {
    lock.findings.iter().map(|finding| finding.kind.as_str()).collect()
}

/// Processes that take the lock so often, once told.
struct Rounds {
    processes: Vec<Process>,
    done: Vec<bool>,
}

impl Rounds {
    fn start(bench: &Bench, each: &[[&str; 5]]) -> Rounds {
        let start = |words: &[&str; 5]| bench.start(&[&["rounds"], &words[..]].concat());
        let processes: Vec<Process> = each.iter().map(start).collect();
        processes.iter().for_each(|one| assert_eq!(one.line(), "ready"));
        let done = vec![false; processes.len()];
        Rounds { processes, done }
    }

    fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(Process::pid).collect()
    }

    /// Has them begin at the first look; whether all are done.
    fn are_done(&mut self, look: u32) -> bool {
        for (done, one) in self.done.iter_mut().zip(&mut self.processes) {
            if look == 0 {
                one.tell();
            }
            *done = *done || one.has_said("done");
        }
        self.done.iter().all(|done| *done)
    }
}

/// What is seen while processes take the lock so often, and their numbers.
fn rounds(bench: &Bench, each: &[[&str; 5]]) -> Option<(Waits, Vec<u32>)> {
    let mut rounds = Rounds::start(bench, each);
    let waits = seen(bench, |look| rounds.are_done(look))?;
    Some((waits, rounds.pids()))
}

/// What the reader of programs runs as: this program again.
#[test]
fn reader_of_symbols() {
    if std::env::var_os("LAB_READS_SYMBOLS").is_some() {
        let code = attach::symbols::serve();
        std::process::exit(i32::from(code != std::process::ExitCode::SUCCESS));
    }
}

#[test]
fn one_slow_holder_is_told_from_those_who_wait_for_it() {
    for (kind, word, offset) in [("plain", "mutex", MUTEX), ("robust", "mutex", MUTEX), ("plain", "word", WORD)] {
        let Some(bench) = Bench::new(kind) else { return };
        let slow = ["20000", "1000", "25", "1", word];
        let quick = ["0", "500", "150", "1", word];
        let Some((waits, pids)) = rounds(&bench, &[slow, quick, quick]) else { return };
        let seen = lock(&waits, offset);
        assert_eq!(kinds(seen), ["long_hold"], "{seen:?}");
        assert!(seen.findings[0].text.contains(&format!("of process {} ", pids[0])), "{seen:?}");
        assert!(seen.waits > 20 && seen.unended == 0 && seen.lost == 0, "{seen:?}");
        // Nobody waits less than there is to wait, and one hold is of 20 ms.
        assert!(seen.wait_ns.max >= 10_000_000, "{seen:?}");
        assert_eq!(seen.waiters.iter().map(|one| one.calls).sum::<u64>(), seen.waits);
        assert!(seen.waiters[..2].iter().all(|one| pids[1..].contains(&one.pid)), "{seen:?}");
        assert!(seen.wakers.iter().any(|one| one.pid == pids[0] && one.amount > 0), "{seen:?}");
        assert!(waits.cost.events >= 2 * seen.waits && waits.cost.stolen_ns > 0, "{:?}", waits.cost);
    }
}

#[test]
fn sleepers_for_a_lock_that_is_hardly_held_are_a_convoy() {
    // The kernel hands this one to the waiter that slept longest, who has to be woken first.
    let Some(bench) = Bench::new("pi") else { return };
    let mut rounds = Rounds::start(&bench, &[["0", "0", "1000000000", "1", "mutex"]; 4]);
    let pids = rounds.pids();
    let Some(waits) = seen(&bench, |look| rounds.are_done(look) || look > 50) else { return };
    let seen = lock(&waits, MUTEX);
    assert_eq!(kinds(seen), ["convoy"], "{seen:?}");
    assert!(seen.waiters.iter().all(|one| pids.contains(&one.pid)), "{seen:?}");
}

#[test]
fn a_robust_mutex_whose_owner_is_killed_while_others_wait() {
    let Some(bench) = Bench::new("robust") else { return };
    let mut owner = bench.start(&["own"]);
    assert_eq!(owner.line(), "taken");
    let waiter = bench.start(&["own"]);
    let (owner_pid, waiter_pid) = (owner.pid(), waiter.pid());
    await_sleep(waiter_pid);
    let Some(waits) = seen(&bench, |look| {
        if look == 10 {
            owner.kill();
        }
        waiter.has_said("taken over")
    }) else {
        return;
    };
    let lock = lock(&waits, MUTEX);
    assert_eq!(kinds(lock), ["owner_died"], "{lock:?}");
    assert!(lock.findings[0].text.contains(&format!("process {owner_pid} ended")), "{lock:?}");
    assert_eq!((lock.begun_before, lock.waits, lock.unended), (1, 0, 0), "{lock:?}");
    assert_eq!(lock.owner_pid, Some(waiter_pid));
}

#[test]
fn a_plain_mutex_whose_owner_was_killed_keeps_everybody_waiting() {
    let Some(bench) = Bench::new("plain") else { return };
    let mut owner = bench.start(&["own"]);
    assert_eq!(owner.line(), "taken");
    let waiters = [bench.start(&["own"]), bench.start(&["own"])];
    waiters.iter().for_each(|one| await_sleep(one.pid()));
    owner.kill();
    let Some(waits) = seen(&bench, |look| look > 10) else { return };
    let lock = lock(&waits, MUTEX);
    assert_eq!(kinds(lock), ["owner_died"], "{lock:?}");
    assert!(lock.findings[0].text.contains("2 threads wait for it, and none will get it"), "{lock:?}");
    assert_eq!((lock.begun_before, lock.waits, lock.unended), (2, 0, 2), "{lock:?}");
}

#[test]
fn the_owner_is_named_while_it_holds_whatever_the_kind() {
    for kind in ["plain", "robust", "pi"] {
        let Some(bench) = Bench::new(kind) else { return };
        let owner = bench.start(&["own"]);
        assert_eq!(owner.line(), "taken");
        let waiter = bench.start(&["own"]);
        await_sleep(waiter.pid());
        let Some(waits) = seen(&bench, |look| look > 5) else { return };
        let lock = lock(&waits, MUTEX);
        assert_eq!((lock.owner_pid, lock.unended, lock.begun_before), (Some(owner.pid()), 1, 1), "{kind}: {lock:?}");
    }
}

#[test]
fn a_child_that_is_born_meanwhile_is_watched_too() {
    let Some(bench) = Bench::new("plain") else { return };
    let mut owner = bench.start(&["own"]);
    assert_eq!(owner.line(), "taken");
    let mut parent = bench.start(&["fork"]);
    assert_eq!(parent.line(), "ready");
    let mut child = None;
    let Some(waits) = seen(&bench, |_| {
        let Some(pid) = child else {
            parent.tell();
            child = parent.line().parse().ok();
            return false;
        };
        if sleeps_in_futex(pid) {
            owner.tell();
        }
        parent.has_said("done")
    }) else {
        return;
    };
    let child = child.unwrap();
    let lock = lock(&waits, MUTEX);
    assert_eq!((lock.waits, lock.waiters.first().map(|one| one.pid)), (1, Some(child)), "{lock:?}");
    assert_eq!(lock.wakers.first().map(|one| (one.pid, one.calls, one.amount)), Some((owner.pid(), 1, 1)), "{lock:?}");
    let _ = Command::new("kill").args(["-9", &child.to_string()]).status();
}

#[test]
fn who_executes_another_program_and_maps_it_anew_is_watched_on() {
    let Some(bench) = Bench::new("plain") else { return };
    let mut owner = bench.start(&["own"]);
    assert_eq!(owner.line(), "taken");
    let mut other = bench.start(&["exec"]);
    assert_eq!(other.line(), "ready");
    let Some(waits) = seen(&bench, |look| {
        if look == 0 {
            other.tell();
        }
        if sleeps_in_futex(other.pid()) {
            owner.tell();
        }
        other.has_said("taken")
    }) else {
        return;
    };
    let lock = lock(&waits, MUTEX);
    assert_eq!((lock.waits, lock.waiters.first().map(|one| one.pid)), (1, Some(other.pid())), "{lock:?}");
}

#[test]
fn an_owner_in_a_namespace_of_its_own_is_named_as_it_is_numbered_here() {
    let Some(bench) = Bench::new("robust") else { return };
    let mut apart = Command::new("unshare");
    apart.args(["--pid", "--fork", "--kill-child"]).arg(bench.program()).arg("own").arg(bench.segment());
    let apart = match Process::try_start(apart) {
        Ok(apart) => apart,
        Err(error) => return skip(&format!("unshare does not start: {error}")),
    };
    let Some(line) = apart.next_line() else {
        return skip("this process may not make a namespace of pids");
    };
    assert_eq!(line, "taken");
    let waiter = bench.start(&["own"]);
    await_sleep(waiter.pid());
    let users: Vec<u32> = targets(&bench).processes.iter().map(|one| one.pid).collect();
    let owner = users.into_iter().find(|pid| *pid != waiter.pid()).unwrap();
    let Some(waits) = seen(&bench, |look| look > 5) else { return };
    assert_eq!(lock(&waits, MUTEX).owner_pid, Some(owner), "{waits:?}");
}

/// The tracepoints of single calls do not see those of 32-bit programs.
#[test]
fn a_32_bit_program_is_followed_by_other_tracepoints() {
    let Some(bench) = Bench::new("plain") else { return };
    let program = bench.segment().with_file_name("narrow");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/futex/narrow.c");
    let mut cc = Command::new("cc");
    cc.args(["-m32", "-O1", "-fno-pic", "-no-pie", "-nostdlib", "-static", "-o"]).arg(&program).arg(source);
    match cc.output() {
        Ok(output) if output.status.success() && cfg!(target_arch = "x86_64") => {}
        _ => return skip("no 32-bit program can be built here (cc -m32)"),
    }
    // The shell opens the segment as descriptor 3.
    let mut command = Command::new("sh");
    command.args(["-c", "exec 3<>\"$1\" && exec \"$0\""]).arg(&program).arg(bench.segment());
    let mut narrow = Process::start(command);
    let Some(line) = narrow.next_line() else { return skip("this kernel runs no 32-bit programs") };
    assert_eq!(line, "ready");
    let Some(waits) = seen(&bench, |look| {
        if look == 0 {
            narrow.tell();
        }
        narrow.has_said("done")
    }) else {
        return;
    };
    let seen = lock(&waits, WORD);
    assert_eq!((seen.waits, seen.refused, seen.waiters[0].pid), (3, 1, narrow.pid()), "{seen:?}");
    assert!(seen.wait_ns.max >= 20_000_000, "{seen:?}");
    assert_eq!((seen.wakers[0].calls, seen.wakers[0].amount), (1, 0), "{seen:?}");
}

#[test]
fn who_waits_at_several_words_at_once_waits_at_each() {
    let Some(bench) = Bench::new("plain") else { return };
    let (mut waiter, mut waker) = (bench.start(&["any"]), bench.start(&["wake"]));
    assert_eq!([waiter.line(), waker.line()], ["ready", "ready"]);
    let Some(waits) = seen(&bench, |look| {
        match look {
            0 => waiter.tell(),
            20 => waker.tell(),
            _ => {}
        }
        waiter.has_said("done")
    }) else {
        return;
    };
    let ends = [WORD, OTHER].map(|offset| lock(&waits, offset)).map(|lock| (lock.waits, lock.waiters[0].pid));
    assert_eq!(ends, [(1, waiter.pid()); 2], "{waits:?}");
    assert_eq!(lock(&waits, OTHER).wakers[0].pid, waker.pid());
    assert!(lock(&waits, WORD).wakers.is_empty());
}

#[test]
fn a_mutex_that_was_made_for_one_process_is_a_finding_where_two_use_it() {
    let Some(bench) = Bench::new("private") else { return };
    let mut owner = bench.start(&["own"]);
    assert_eq!(owner.line(), "taken");
    let waiter = bench.start(&["own"]);
    await_sleep(waiter.pid());
    let Some(waits) = seen(&bench, |look| {
        if look == 0 {
            owner.tell();
        }
        owner.has_said("done")
    }) else {
        return;
    };
    let lock = lock(&waits, MUTEX);
    assert_eq!(kinds(lock), ["private_futex"], "{lock:?}");
    assert!(lock.findings[0].text.contains(&format!("process {} ", waiter.pid())), "{lock:?}");
    assert_eq!((lock.unended, lock.wakers[0].amount), (1, 0), "{lock:?}");
}

#[test]
fn a_machine_without_tracefs_is_told_with_its_cure() {
    let Some(bench) = Bench::new("plain") else { return };
    let _user = bench.start(&["own"]);
    assert_eq!(_user.line(), "taken");
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("sys/kernel/tracing")).unwrap();
    let waits = watch(&Root::at(folder.path()), &targets(&bench), || panic!("there is nothing to wait for"));
    assert_eq!(waits.notes.iter().map(|note| note.id.as_str()).collect::<Vec<_>>(), ["no_tracefs"]);
    assert!(waits.notes[0].cure.as_ref().unwrap().contains("mount -t tracefs"), "{:?}", waits.notes);
    assert!(waits.locks.is_empty());
}

/// As many waits, and as long ones, as a tracer counts that stands at the same calls.
#[test]
fn bpftrace_counts_the_same_waits() {
    let Some(bench) = Bench::new("plain") else { return };
    let mut pinger = bench.start(&["ping"]);
    let tracer = match bpftrace::Tracer::attach(&bench.name) {
        Ok(tracer) => tracer,
        Err(why) => return skip(&format!("bpftrace cannot be attached here: {why}")),
    };
    pinger.kill();
    let (slow, quick) = (["2000", "300", "150", "2", "mutex"], ["200", "300", "300", "2", "mutex"]);
    let Some((waits, _)) = rounds(&bench, &[slow, quick, quick]) else { return };
    let peer = tracer.detach();
    let seen = lock(&waits, MUTEX);
    assert_eq!(seen.lost, 0, "some 6,000 records fit into the log many times");
    assert_eq!((seen.waits, seen.refused), (peer.waits, peer.refused), "{seen:?}");
    assert_eq!(seen.wakers.iter().map(|one| one.calls).sum::<u64>(), peer.wakes);
    for (quantile, own) in [(0.5, seen.wait_ns.p50), (0.99, seen.wait_ns.p99)] {
        let theirs = peer.quantile_ns(quantile);
        assert!((own as f64 / theirs - 1.0).abs() <= 0.1, "{quantile}: {own} ns against bpftrace's {theirs}");
    }
}

/// With a trap at each, every acquisition is counted, and the markers as well.
#[test]
fn probes_count_what_does_not_wait_too() {
    let Some(cost_ns) = cost_ns(&Root::system()) else {
        return skip("this process may not probe its own code");
    };
    assert!(cost_ns > 100.0, "a trap takes longer than {cost_ns} ns");
    let Some(bench) = Bench::new("plain") else { return };
    for (word, offset) in [("word", WORD), ("mutex", MUTEX)] {
        let mut rounds = Rounds::start(&bench, &[["2000", "100", "30", "1", word], ["0", "500", "70", "1", word]]);
        let is_over = looking(|look| rounds.are_done(look));
        let probed = probe(&Root::system(), &targets(&bench), &parser(), is_over);
        assert!(probed.notes.is_empty(), "{:?}", probed.notes);
        let mut locks = Vec::new();
        probed.enter(&mut locks);
        let [lock] = &locks[..] else { panic!("{locks:?}") };
        let seen = lock.probed.unwrap();
        assert_eq!((lock.offset, lock.waits), (offset, 0));
        if word == "mutex" {
            assert_eq!(seen.calls, Some(100), "{seen:?}");
        } else if cfg!(target_arch = "x86_64") {
            assert_eq!(seen.calls, Some(0), "{seen:?}");
            assert!(seen.contended > Some(0) && seen.contended == seen.acquired, "{seen:?}");
        }
        assert!(probed.cost.events >= 30 && probed.cost.stolen_ns > 0, "{:?}", probed.cost);
    }
}

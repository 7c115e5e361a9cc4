//! A watch that is ended before its time. Killed (SIGKILL) it leaves nothing in the programs that it watched: no breakpoint,
//! no probe, no count that is other than it would have been. Asked to end (Ctrl-C, SIGTERM) it shows what it has seen.

mod common;
mod foreign;

use common::{coordinator, is_root};
use foreign::{Sharer, Watching, sharer, watched};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use record::{Attach, LineVerdict};
use std::fs::{self, File};
use std::io::{PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testing::{A_LONG_TIME, skip, within};

/// Whether two programs can be watched with breakpoints here.
fn can_watch() -> bool {
    match sharer() {
        Err(why) => skip(&why),
        Ok(_) if !is_root() => skip("watching others with breakpoints and probes needs root"),
        Ok(_) if !cfg!(target_arch = "x86_64") => skip("instructions are taken apart on x86-64 alone"),
        Ok(_) => return true,
    }
    false
}

fn killed_watch(arguments: &[&str]) -> Watching {
    let mut command = coordinator();
    command.arg("attach").args(arguments).arg("--json");
    Watching::with(command)
}

/// What a word of the segment holds.
fn word(of: &Sharer, index: u64) -> u64 {
    let mut bytes = [0; 8];
    File::open(&of.handle).unwrap().read_exact_at(&mut bytes, index * 8).unwrap();
    u64::from_ne_bytes(bytes)
}

/// Has it add to its word until `stop`: how many it was told to.
fn adds(sharer: &mut Sharer, stop: &AtomicBool) -> u64 {
    const AT_ONCE: u64 = 5_000_000;
    let mut told = 0;
    while !stop.load(Ordering::Relaxed) {
        sharer.tell(&format!("add {AT_ONCE}"));
        told += AT_ONCE;
    }
    told
}

/// Kernel objects of perf_event_open that a process holds.
fn perf_events(pid: u32) -> usize {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    links.filter(|link| fs::read_link(link.path()).is_ok_and(|to| to == Path::new("anon_inode:[perf_event]"))).count()
}

/// Whether both words were proved, each with its one writer, and every breakpoint could be had.
fn is_whole(seen: &Attach, writers: [(u64, u32); 2]) -> bool {
    let words = || seen.lines.iter().flat_map(|line| &line.words);
    let proved =
        |(index, pid): (u64, u32)| words().any(|word| word.offset == index * 8 && word.proved && word.writers == [pid]);
    seen.notes.iter().all(|note| note.id != "breakpoints_taken") && writers.into_iter().all(proved)
}

#[test]
fn killed_in_its_proof_it_leaves_no_breakpoint_and_every_count_as_it_was() {
    if !can_watch() {
        return;
    }
    let name = format!("killed-{}", std::process::id());
    let (mut first, segment) = (Sharer::start("memfd", &name), format!("memfd:{name}"));
    let mut second = Sharer::start("file", &first.handle);
    second.tell("word 32");
    let began = [word(&first, 0), word(&first, 32)];
    let (pids, stop) = ([first.pid, second.pid], AtomicBool::new(false));
    let told = std::thread::scope(|scope| {
        let adding = [&mut first, &mut second].map(|one| scope.spawn(|| adds(one, &stop)));
        let checked = std::panic::catch_unwind(|| {
            for milliseconds in [0, 30, 200] {
                let mut watching = killed_watch(&["--segment", &segment, "--for", "4s"]);
                watching.says("by breakpoints");
                std::thread::sleep(Duration::from_millis(milliseconds));
                assert!(perf_events(watching.pid()) > 0, "it watches");
                drop(watching);
            }
            // A machine that is busy with something else runs them for little of a watch: then a longer one is taken.
            let times = ["2s", "5s", "20s", "60s"];
            let whole = |time: &&str| {
                is_whole(&watched(&["--segment", &segment, "--for", time]), [(0, pids[0]), (32, pids[1])])
            };
            assert!(times.iter().any(whole), "another watch has all breakpoints and sees both");
        });
        stop.store(true, Ordering::Relaxed);
        let told = adding.map(|one| one.join().unwrap());
        checked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        told
    });
    assert_eq!([word(&first, 0), word(&first, 32)], [began[0] + told[0], began[1] + told[1]]);
}

/// The C library's code as a process has it.
fn library_code(pid: u32) -> Option<Vec<u8>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let line = maps.lines().find(|line| line.contains(" r-xp ") && line.contains("/libc.so"))?;
    let (from, until) = line.split_whitespace().next()?.split_once('-')?;
    let [from, until] = [from, until].map(|number| u64::from_str_radix(number, 16).unwrap());
    let mut bytes = vec![0; (until - from) as usize];
    File::open(format!("/proc/{pid}/mem")).unwrap().read_exact_at(&mut bytes, from).unwrap();
    Some(bytes)
}

#[test]
fn killed_while_it_counts_acquisitions_it_leaves_no_probe() {
    if !can_watch() {
        return;
    }
    if !Path::new("/sys/bus/event_source/devices/uprobe").exists() {
        return skip("this kernel has no uprobes");
    }
    let name = format!("probed-{}", std::process::id());
    let (mut one, segment) = (Sharer::start("memfd", &name), format!("memfd:{name}"));
    let Some(before) = library_code(one.pid) else { return skip("the C program has no libc.so of its own") };
    let code = || library_code(one.pid).unwrap();
    // Where the machine is busy the short phase may be over before anybody looks: then a longer one is taken.
    let probed = [8, 30, 120].into_iter().find_map(|seconds| {
        let mut watching = killed_watch(&["--segment", &segment, "--for", &format!("{seconds}s"), "--uprobes"]);
        watching.says("counting every acquisition");
        let until = Instant::now() + Duration::from_secs(seconds) / 10;
        std::iter::from_fn(|| (Instant::now() < until).then(code)).find(|now| *now != before)
    });
    // The watch ended with that closure, by SIGKILL.
    let probed = probed.expect("a probe stands in its code");
    let changed: Vec<u8> = before.iter().zip(&probed).filter(|(old, new)| old != new).map(|(_, new)| *new).collect();
    assert!(
        changed.iter().all(|byte| *byte == 0xcc) && changed.len() <= 4,
        "breakpoints of the kernel's: {changed:x?}"
    );
    within(A_LONG_TIME, "its code is as it was", || (code() == before).then_some(()));
    let value = word(&one, 0);
    one.tell("add 1000");
    assert_eq!(word(&one, 0), value + 1000);
}

fn asked_to_end(watching: &Watching, signal: Signal) {
    kill(Pid::from_raw(watching.pid() as i32), signal).unwrap();
}

/// Two programs that count on one line, until this is dropped.
fn pair(of: &str) -> ([Sharer; 2], String) {
    let name = format!("{of}-{}", std::process::id());
    let first = Sharer::start("memfd", &name);
    let mut both = [Sharer::start("file", &first.handle), first];
    both[0].tell("word 1");
    both.iter_mut().for_each(|one| one.order("spin 600000"));
    (both, format!("memfd:{name}"))
}

#[test]
fn asked_to_end_it_shows_what_it_has_seen_until_then() {
    if !can_watch() {
        return;
    }
    let (_both, segment) = pair("asked");
    // Where the machine is busy a short watch may be over, or have seen nothing, before it is asked: then a longer one is
    // taken.
    let ended_in = |phase: &str, signal: Signal, enough: fn(&Attach) -> bool| {
        ["4s", "20s", "60s", "300s"].iter().find_map(|time| {
            let mut watching = killed_watch(&["--segment", &segment, "--for", time]);
            watching.says(phase);
            asked_to_end(&watching, signal);
            watching.says("ends early");
            let seen = watching.ends_with(130);
            let note = seen.notes.iter().find(|note| note.id == "ended_early").expect("a note");
            assert!(seen.ended_early && note.text.starts_with("ended early after"), "{note:?}");
            enough(&seen).then_some(seen)
        })
    };
    let counted = ended_in("counting, undisturbed", Signal::SIGTERM, |_| true).expect("any is enough");
    assert!(counted.lines.is_empty() && counted.cost.traps == 0 && counted.processes.len() == 2, "{counted:#?}");
    assert!(counted.processes.iter().all(|one| one.cpu[0].is_some() && one.cpu[2].is_none()), "{counted:#?}");
    let shared = |seen: &Attach| seen.lines.iter().any(|line| line.verdict == LineVerdict::FalseSharing);
    let seen = ended_in("who waits for whom", Signal::SIGINT, shared).expect("false sharing");
    assert!(seen.cost.traps > 0 && seen.cost.slowdown.is_some(), "{:?}", seen.cost);
    let part = ended_in("by breakpoints", Signal::SIGINT, |_| true).expect("any is enough");
    assert!(part.locks.is_empty() && part.processes.iter().all(|one| one.cpu[2].is_none()), "{part:#?}");
}

/// Fills a pipe, so that whoever writes to it sleeps.
fn fill(pipe: &PipeWriter) {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let mut pipe = pipe.try_clone().unwrap();
    let set = |flags| fcntl(pipe.as_fd(), FcntlArg::F_SETFL(flags)).unwrap();
    set(OFlag::O_NONBLOCK);
    let is_full = |pipe: &mut PipeWriter, bytes: &[u8]| pipe.write(bytes).is_err();
    while !is_full(&mut pipe, &[b'\n'; 4096]) {}
    while !is_full(&mut pipe, b"\n") {}
    fcntl(pipe.as_fd(), FcntlArg::F_SETFL(OFlag::empty())).unwrap();
}

/// Whether a thread of a process would be ended by SIGINT.
fn hears_an_interrupt(pid: u32) -> bool {
    let blocked = |status: String| {
        let row = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).map(str::trim).map(str::to_owned);
        row.and_then(|mask| u64::from_str_radix(&mask, 16).ok()).is_none_or(|mask| mask >> 1 & 1 == 1)
    };
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok()).any(|status| !blocked(status))
}

#[test]
fn asked_twice_it_ends_at_once() {
    if !can_watch() {
        return;
    }
    let (_both, segment) = pair("twice");
    let ((_out, full), (mut said, errors)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    fill(&full);
    let mut command = coordinator();
    command.args(["attach", "--segment", &segment, "--for", "2s"]);
    let mut child = command.stdout(full).stderr(errors.try_clone().unwrap()).stdin(Stdio::null()).spawn().unwrap();
    drop(command); // its copies of the pipes
    let mut text = Vec::new();
    while !String::from_utf8_lossy(&text).contains("counting, undisturbed") {
        let mut part = [0; 256];
        let length = said.read(&mut part).unwrap();
        text.extend(&part[..length]);
    }
    // From here on it sleeps at the next thing that it wants to say or to show, and cannot end by itself.
    fill(&errors);
    let pid = child.id();
    let interrupt = || kill(Pid::from_raw(pid as i32), Signal::SIGINT).unwrap();
    assert!(!hears_an_interrupt(pid), "the first is heard, and acts no further");
    interrupt();
    within(A_LONG_TIME, "the next acts", || hears_an_interrupt(pid).then_some(()));
    interrupt();
    let ended = child.wait().unwrap();
    assert_eq!(ended.signal(), Some(Signal::SIGINT as i32), "{ended}");
}

//! The markers for tracers outside, seen by the peers that they are for: `readelf` reads their notes, bpftrace lists
//! them and, attached while workers run, counts every contended acquisition.

mod common;

use common::{Bench, alone, is_root, stderr, stdout};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use record::{ArmSummary, LockObservation, Observation, Run};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use testing::{A_LONG_TIME, Lines, skip, within};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_coordinator");
const MARKERS: [&str; 3] = ["lock_acquired", "lock_contended", "lock_released"];

/// Two workers at two locks, each held half of the time. The names are not in alphabetical order: a lock's index goes
/// by its place in the file.
const TWO_LOCKS: &str = r#"
title = "Two locks"
question = "Does a tracer outside see what the lab sees?"
[measure]
window = "20ms"
warm_up = "1ms"
repetitions = 2
baselines = ["plain"]
[lock.hot]
kind = "pthread"
[lock.cold]
kind = "ticket"
[field.balance]
type = "u64"
[[variant]]
name = "apart"
placement = { pad = 128 }
[[role]]
name = "teller"
workers = 2
loop = ["lock hot", "bump balance", "work 5us", "unlock hot", "lock cold", "work 5us", "unlock cold"]
"#;

/// By their index in the Program.
const LOCKS: [&str; 2] = ["hot", "cold"];

/// Times in `run.json` are kept to three digits and rounded up; the clocks agree to five.
const THREE_DIGITS: f64 = 0.998;

/// One marker as `readelf` reads its note.
#[derive(Debug)]
struct Note {
    provider: String,
    name: String,
    location: u64,
    base: u64,
    semaphore: u64,
    arguments: String,
}

fn readelf(options: &str) -> Option<String> {
    let output = Command::new("readelf").args([options, EXECUTABLE]).env("LC_ALL", "C").output().ok()?;
    assert!(output.status.success(), "{}", stderr(&output));
    Some(stdout(&output))
}

fn notes(text: &str) -> Vec<Note> {
    let hex = |text: &str| u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).unwrap();
    let parse = |note: &str| {
        let value = |key: &str| {
            let (_, rest) = note.split_once(key).unwrap_or_else(|| panic!("no {key} in {note}"));
            rest.split(['\n', ',']).next().unwrap().trim().to_owned()
        };
        Note {
            provider: value("Provider:"),
            name: value("Name:"),
            location: hex(&value("Location:")),
            base: hex(&value("Base:")),
            semaphore: hex(&value("Semaphore:")),
            arguments: value("Arguments:"),
        }
    };
    text.split("NT_STAPSDT").skip(1).map(parse).collect()
}

/// Where in the file the byte lies that is loaded at `address`, by the program headers.
fn file_offset(headers: &str, address: u64) -> Option<usize> {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    headers.lines().find_map(|line| {
        let [kind, offset, at, _, bytes, ..] = line.split_whitespace().collect::<Vec<_>>()[..] else { return None };
        let (offset, at, bytes) = (hex(offset)?, hex(at)?, hex(bytes)?);
        (kind == "LOAD" && (at..at + bytes).contains(&address)).then(|| (address - at + offset) as usize)
    })
}

/// Whether a note's argument string says: lock and worker of four bytes, an address of eight, each in a register.
fn in_registers(arguments: &str) -> bool {
    let register = |text: &str| {
        let name = if cfg!(target_arch = "x86_64") { text.strip_prefix('%') } else { text.strip_prefix('x') };
        name.is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()))
    };
    let arguments: Vec<_> = arguments.split(' ').filter_map(|one| one.split_once('@')).collect();
    matches!(arguments[..], [("4", lock), ("4", worker), ("8", address)]
        if register(lock) && register(worker) && register(address))
}

#[test]
fn the_executable_says_where_its_markers_are_and_each_is_one_instruction_that_does_nothing() {
    let (Some(text), Some(headers), Some(sections)) = (readelf("-nW"), readelf("-lW"), readelf("-SW")) else {
        return skip("readelf does not start (Debian has it in binutils)");
    };
    let notes = notes(&text);
    let names: BTreeSet<&str> = notes.iter().map(|note| note.name.as_str()).collect();
    assert_eq!(names, BTreeSet::from(MARKERS), "{text}");
    let executable = std::fs::read(EXECUTABLE).unwrap();
    for note in &notes {
        assert_eq!((note.provider.as_str(), note.semaphore), ("contention_lab", 0), "{note:?}");
        assert!(in_registers(&note.arguments), "{note:?}");
        let at = file_offset(&headers, note.location).unwrap_or_else(|| panic!("{note:?} is nowhere in\n{headers}"));
        if cfg!(target_arch = "x86_64") {
            assert_eq!(executable[at..at + 5], [0x0f, 0x1f, 0x44, 0, 0], "{note:?}");
            assert!(note.location % 4096 <= 4096 - 5, "{note:?} lies across two pages");
        } else {
            assert_eq!(executable[at..at + 4], 0xd503_201f_u32.to_le_bytes(), "{note:?}"); // Arm ARM, NOP
        }
        let base =
            sections.lines().find(|line| line.contains(".stapsdt.base")).expect("a base, which linkers may drop");
        assert!(base.contains(&format!("{:016x}", note.base)), "{note:?}: {base}");
    }
}

#[test]
fn bpftrace_lists_the_three() {
    let listed = Command::new("bpftrace").args(["-l", &format!("usdt:{EXECUTABLE}:*")]).output();
    let listed = match listed {
        Ok(output) if output.status.success() => stdout(&output),
        Ok(output) => return skip(&format!("bpftrace lists nothing here: {}", stderr(&output))),
        Err(error) => return skip(&format!("bpftrace does not start: {error}")),
    };
    let listed: Vec<&str> = listed.lines().collect();
    assert_eq!(listed, MARKERS.map(|name| format!("usdt:{EXECUTABLE}:contention_lab:{name}")));
}

#[test]
fn bpftrace_sees_every_contended_acquisition_and_no_shorter_waits_than_the_lab() {
    let _alone = alone();
    let tracer = match Tracer::attach() {
        Ok(tracer) => tracer,
        Err(why) => return skip(&format!("bpftrace cannot be attached to markers here: {why}")),
    };
    let bench = Bench::new(TWO_LOCKS);
    let output = bench.run().args(["--json", "--quiet"]).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{:?}: {}", output.status, stderr(&output)); // 3: noise
    let run: Run = serde_json::from_str(&stdout(&output)).unwrap();
    let seen = tracer.detach();
    let (plain, timed): (Vec<_>, Vec<_>) = run.observations.iter().partition(|o| o.arm == "plain");
    assert!(!plain.is_empty() && !timed.is_empty());
    // Nobody looks in a plain arm whether an acquisition waits, so there is nothing to mark.
    assert!(plain.iter().all(|o| seen.of(o, None).next().is_none()), "{:?}", seen.contended);
    for observation in timed {
        assert_eq!(observation.locks.iter().map(|lock| lock.lock.as_str()).collect::<Vec<_>>(), LOCKS);
        for (index, lock) in observation.locks.iter().enumerate() {
            seen.compare(observation, index as u64, lock);
        }
        seen.compare_addresses(observation, arm_of(&run, observation));
    }
    for arm in run.arms.iter().filter(|arm| arm.name != "plain") {
        seen.compare_waits(arm, &run);
    }
    seen.check_histogram();
}

fn arm_of<'r>(run: &'r Run, observation: &Observation) -> &'r ArmSummary {
    run.arms.iter().find(|arm| arm.name == observation.arm).expect("every observation is of an arm")
}

/// The process's number in its own PID namespace, which is what a run reports; bpftrace's `pid` is that of the first one.
const OWN_PID: &str = "$numbers = ((struct task_struct *)curtask)->group_leader->thread_pid; \
                       $own = (struct upid *)((uint64)$numbers + sizeof(struct pid) \
                       + (uint64)$numbers->level * sizeof(struct upid)); $pid = $own->nr;";

/// What bpftrace runs. A map's keys begin with the process, so that other runs of the same executable do no harm.
fn program() -> String {
    let marker = |name: &str, filter: &str, action: &str| {
        format!("usdt:{EXECUTABLE}:contention_lab:{name} {filter} {{ {OWN_PID} {action} }}\n")
    };
    let attached = |name: &str, number: u32| {
        format!("if (@said[{number}] == 0) {{ @said[{number}] = 1; printf(\"{name}\\n\"); }}")
    };
    let contended = "@contended[$pid, arg0, arg1, arg2] = count(); @since[tid, arg0] = nsecs;";
    let acquired = "@acquired[$pid, arg0, arg1, arg2] = count(); $wait = nsecs - @since[tid, arg0]; \
                    @longest[$pid, arg0] = max($wait); @total[$pid, arg0] = sum($wait); @waits[arg0] = hist($wait);";
    let released = "@released[$pid, arg0, arg1, arg2] = count();";
    marker("lock_contended", "", &format!("{contended} {}", attached("lock_contended", 0)))
        + &marker("lock_acquired", "", &format!("{acquired} {}", attached("lock_acquired", 1)))
        + &marker("lock_released", "", &format!("{released} {}", attached("lock_released", 2)))
        + &marker("lock_contended", "/arg0 == 1/", "@second[$pid] = count();")
        + "interval:s:600 { exit(); }\n" // should nobody be left to end it
}

/// A bpftrace that is attached to all three markers of every process of this executable.
struct Tracer {
    child: Child,
    lines: Lines,
}

impl Tracer {
    /// Starts it and runs workers until each marker was seen once: it says nowhere reliably that it is attached.
    fn attach() -> Result<Tracer, String> {
        if !is_root() {
            return Err("not root".into());
        }
        let child = Command::new("bpftrace")
            .args(["-f", "json", "-B", "line", "-e", &program()])
            .env("BPFTRACE_MAP_KEYS_MAX", "65536")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|error| format!("it does not start: {error} (Debian has it in bpftrace)"))?;
        let lines = Lines::of(child.stdout.take().unwrap());
        let mut tracer = Tracer { child, lines };
        let canary = Bench::new(&TWO_LOCKS.replace("window = \"20ms\"", "window = \"2ms\""));
        let mut unseen = BTreeSet::from(MARKERS);
        within(A_LONG_TIME, "each marker seen once", || {
            let ran = canary.run().args(["--json", "--quiet", "--repetitions", "1"]).output().unwrap();
            assert!(matches!(ran.status.code(), Some(0 | 3)), "{}", stderr(&ran));
            tracer.lines.heard().for_each(|line| unseen.retain(|name| !line.contains(name)));
            (unseen.is_empty() || tracer.child.try_wait().unwrap().is_some()).then_some(())
        });
        match tracer.child.try_wait().unwrap() {
            None => Ok(tracer),
            Some(status) => {
                let mut why = String::new();
                tracer.child.stderr.take().unwrap().read_to_string(&mut why).unwrap();
                Err(format!("it ended with {status}: {}", why.trim()))
            }
        }
    }

    /// Ends it, which makes it print its maps.
    fn detach(self) -> Seen {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT).unwrap();
        let mut seen = Seen::default();
        while let Some(line) = self.lines.hear() {
            if let Ok(line) = serde_json::from_str::<Value>(&line) {
                seen.note(&line["data"]);
            }
        }
        seen
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// bpftrace's maps; keys are its own, parted by commas.
#[derive(Debug, Default)]
struct Seen {
    contended: BTreeMap<Vec<u64>, u64>,
    acquired: BTreeMap<Vec<u64>, u64>,
    released: BTreeMap<Vec<u64>, u64>,
    second: BTreeMap<Vec<u64>, u64>,
    longest: BTreeMap<Vec<u64>, u64>,
    total: BTreeMap<Vec<u64>, u64>,
    /// By lock, the buckets' counts added up.
    waits: BTreeMap<Vec<u64>, u64>,
}

impl Seen {
    fn note(&mut self, data: &Value) {
        let Some((name, map)) = data.as_object().and_then(|maps| maps.iter().next()) else { return };
        let into = match name.as_str() {
            "@contended" => &mut self.contended,
            "@acquired" => &mut self.acquired,
            "@released" => &mut self.released,
            "@second" => &mut self.second,
            "@longest" => &mut self.longest,
            "@total" => &mut self.total,
            "@waits" => &mut self.waits,
            _ => return,
        };
        let count = |value: &Value| match value {
            Value::Array(buckets) => buckets.iter().map(|bucket| bucket["count"].as_u64().unwrap()).sum(),
            value => value.as_u64().unwrap(),
        };
        let key = |key: &str| key.split(',').map(|part| part.parse().unwrap()).collect();
        into.extend(map.as_object().unwrap().iter().map(|(k, value)| (key(k), count(value))));
    }

    /// Keys of `lock_contended` of that worker's process: process, lock, worker, address.
    fn of(&self, observation: &Observation, lock: Option<u64>) -> impl Iterator<Item = &Vec<u64>> {
        let pid = pid(observation);
        self.contended.keys().filter(move |key| key[0] == pid && lock.is_none_or(|lock| key[1] == lock))
    }

    /// Markers count warm-up and window, and what was under way when the window closed; the lab the window alone.
    fn compare(&self, observation: &Observation, index: u64, lock: &LockObservation) {
        let keys: Vec<_> = self.of(observation, Some(index)).collect();
        let [key] = keys[..] else {
            // Contended not once, before, in or after the window: then there is nothing to see.
            assert!(keys.is_empty() && lock.contended == 0, "{keys:?}: {observation:?}");
            return;
        };
        assert_eq!(key[2], u64::from(observation.worker), "{key:?}: {observation:?}");
        let contended = self.contended[key];
        println!("{} {}: lab {}, markers {contended}", observation.arm, lock.lock, lock.contended);
        assert!(contended >= lock.contended, "{key:?}: {contended} seen, {lock:?}");
        assert_eq!(self.acquired.get(key), Some(&contended), "{key:?}: every wait ended with the lock");
        assert_eq!(self.released.get(key), Some(&contended), "{key:?}: every lock was released");
        if index == 1 {
            assert_eq!(self.second.get(&key[..1]), Some(&contended), "{key:?}: the filter lets this lock through");
        }
    }

    /// A lock's address is where its process maps it: two of them are as far apart as the layout says.
    fn compare_addresses(&self, observation: &Observation, arm: &ArmSummary) {
        let offset = |name: &str| arm.layout.iter().find(|row| row.field == name).map(|row| row.offset);
        let (Some(hot), Some(cold)) = (offset("hot"), offset("cold")) else { panic!("{:?}", arm.layout) };
        let address = |lock| self.of(observation, Some(lock)).next().map(|key| key[3]);
        if let (Some(first), Some(second)) = (address(0), address(1)) {
            assert_eq!(second.wrapping_sub(first), cold.wrapping_sub(hot), "{:?}", arm.layout);
        }
    }

    /// A wait by the markers begins before the lab's and ends behind it.
    fn compare_waits(&self, arm: &ArmSummary, run: &Run) {
        let pids: Vec<u64> = run.observations.iter().filter(|o| o.arm == arm.name).map(pid).collect();
        for lock in &arm.locks {
            let Some(ours) = &lock.wait_ns_all else { continue };
            let index = LOCKS.iter().position(|name| *name == lock.lock).unwrap() as u64;
            let theirs = |map: &BTreeMap<Vec<u64>, u64>| -> Vec<f64> {
                pids.iter().filter_map(|pid| map.get(&vec![*pid, index])).map(|ns| *ns as f64).collect()
            };
            let longest = theirs(&self.longest).into_iter().fold(0.0, f64::max);
            let total: f64 = theirs(&self.total).iter().sum();
            println!("{} {}: longest wait: lab {} ns, markers {longest} ns", arm.name, lock.lock, ours.max);
            assert!(longest >= ours.max as f64 * THREE_DIGITS, "{longest}: {lock:?}");
            assert!(total >= ours.mean * ours.count as f64 * THREE_DIGITS, "{total}: {lock:?}");
        }
    }

    /// Each acquisition is in the histogram of its lock, those of the first runs included.
    fn check_histogram(&self) {
        for lock in 0..LOCKS.len() as u64 {
            let acquired: u64 = self.acquired.iter().filter(|(key, _)| key[1] == lock).map(|(_, count)| count).sum();
            assert_eq!(self.waits.get(&vec![lock]).copied().unwrap_or(0), acquired);
        }
    }
}

fn pid(observation: &Observation) -> u64 {
    observation.pid.expect("a worker that ran has a process") as u64
}

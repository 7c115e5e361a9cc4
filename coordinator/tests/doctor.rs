//! The doctor on this machine: its screen and its JSON, the line that a run prints of it, and that it changes nothing.

mod common;

use common::{Bench, QUICK, alone, coordinator, is_root, stderr, stdout};
use record::{Check, CheckState, Doctor, Run};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testing::skip;

/// Checks that every machine gets, in the order of the screen; the counting and hardware ones come before them.
const NAMES: [&str; 21] = [
    "other_processes",
    "kernel_threads",
    "interrupts",
    "irq_affinity",
    "isolated_cpus",
    "nohz_full",
    "rcu_nocbs",
    "transparent_huge_pages",
    "numa_balancing",
    "ksm",
    "watchdogs",
    "skew_tick",
    "vm_stat_interval",
    "timer_migration",
    "audit",
    "dev_shm",
    "cgroup_quota",
    "cpuset",
    "open_files",
    "threads",
    "executable_memory",
];

fn checks() -> Vec<Check> {
    let doctor = record(coordinator().args(["doctor", "--json"]));
    assert!(doctor.scenario.is_none() && !doctor.cpus.is_empty(), "{doctor:?}");
    assert!(doctor.checks.iter().all(|check| !check.spoils), "no scenario to spoil: {doctor:?}");
    doctor.checks
}

/// What that command prints.
fn record(command: &mut Command) -> Doctor {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.starts_with("{\n  \"schema_version\": 1,\n  \"checks\": ["), "the contract's first keys: {text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_json_has_every_check_with_why_and_a_cure_where_there_is_one() {
    let checks = checks();
    let names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
    let ours: Vec<&str> = names.iter().copied().filter(|name| NAMES.contains(name)).collect();
    assert_eq!(ours, NAMES);
    for (nth, check) in checks.iter().enumerate() {
        assert!(!names[..nth].contains(&names[nth]), "twice: {check:?}");
        assert!(check.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{check:?}");
        assert!(!check.seen.is_empty() && !check.why.is_empty(), "{check:?}");
        assert!(check.state != CheckState::Ok || check.cure.is_none(), "nothing to cure: {check:?}");
        // What disturbs in these two themes can be changed; what is missing there may only be unseen.
        let curable = check.state == CheckState::Warn && NAMES.contains(&names[nth]);
        assert!(!curable || check.cure.is_some(), "{check:?}");
    }
}

#[test]
fn the_screen_fits_and_says_the_same() {
    for width in [80, 60] {
        let output = coordinator().args(["doctor", "--verbose"]).env("COLUMNS", width.to_string()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = stdout(&output);
        assert!(text.starts_with("CPUs in question: ") && !text.contains('\u{1b}'), "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{line:?}");
        }
        for name in NAMES {
            let begins =
                |line: &str, word: &str| line.strip_prefix(word).is_some_and(|l| l.trim_start().starts_with(name));
            let found = text.lines().any(|line| ["ok", "warn", "missing"].iter().any(|word| begins(line, word)));
            assert!(found, "{name} is not in:\n{text}");
        }
        let last = text.lines().next_back().unwrap();
        assert!(last.ends_with("; it changed nothing"), "{last}");
        let counted: usize = last.split(", ").filter_map(|part| part.split(' ').next()?.parse::<usize>().ok()).sum();
        assert_eq!(counted, text.lines().filter(|line| line.starts_with("        why: ")).count(), "{text}");
    }
}

#[test]
fn only_what_is_not_well_explains_itself() {
    let text = stdout(&coordinator().arg("doctor").output().unwrap());
    let lines: Vec<&str> = text.lines().collect();
    let below = |nth: usize| lines.get(nth + 1).is_some_and(|line| line.starts_with("        why: "));
    let wraps = |nth: usize| lines.get(nth + 1).is_some_and(|line| line.starts_with("          "));
    for (nth, line) in lines.iter().enumerate() {
        if line.starts_with("ok ") {
            assert!(!below(nth), "{line}");
        } else if line.starts_with("warn ") || line.starts_with("missing ") {
            assert!(below(nth) || wraps(nth), "{line}");
        }
    }
}

#[test]
fn the_cpus_in_question_are_those_given_else_the_scenario_s() {
    let bench = Bench::new(&QUICK.replace("workers = 2", "workers = 1\ncpus = [0]"));
    let of = |arguments: &[&str], scenario: Option<PathBuf>| {
        let output = coordinator().arg("doctor").args(arguments).args(scenario).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let text = of(&[], Some(bench.scenario()));
    assert!(text.starts_with("CPUs in question: 0, those of the scenario\n"), "{text}");
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("case.toml are spoiled by: ") || joined.contains("Nothing here spoils runs of "), "{text}");
    assert!(of(&["--cpus", "0"], None).starts_with("CPUs in question: 0, as asked for\n"));
}

#[test]
fn the_flags_of_a_run_shape_what_is_asked_about() {
    let two = Bench::new(QUICK);
    let of = |arguments: &[&str]| coordinator().arg("doctor").args(arguments).arg(two.scenario()).output().unwrap();
    let one = stdout(&of(&["--workers", "1", "--cpus", "0", "--only", "packed"]));
    assert!(one.starts_with("CPUs in question: 0, those of the scenario\n"), "{one}");
    let unknown = of(&["--only", "pocked"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("--only: "), "{}", stderr(&unknown));
    let mistaken = of(&["--events", "cpu/event=1"]);
    assert_eq!(mistaken.status.code(), Some(2), "an event is read as `run` reads it");
    // What nobody can count here is no spoiler until it is asked for by name.
    let missing = stdout(&of(&["--events", "cache-misses"]));
    let pmu_is_well = missing.lines().any(|line| line.starts_with("ok ") && line.contains(" pmu "));
    let spoilt = missing.split_whitespace().collect::<Vec<_>>().join(" ");
    let names_pmu = spoilt.split_once("are spoiled by: ").is_some_and(|(_, rest)| rest.contains("pmu"));
    assert_eq!(names_pmu, !pmu_is_well, "{missing}");
}

/// `coordinator`, started by a shell after `first`.
fn after(first: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{first} exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_coordinator")]);
    command.env("COLUMNS", "80").stdin(Stdio::null());
    command
}

/// The check on `name` in doctor's JSON on the scenario.
fn of_scenario(command: &mut Command, bench: &Bench, name: &str) -> Check {
    let doctor = record(command.args(["doctor", "--json"]).arg(bench.scenario()));
    assert_eq!(doctor.scenario.as_deref(), bench.scenario().to_str());
    doctor.checks.into_iter().find(|check| check.name == name).unwrap()
}

#[test]
fn a_scenario_that_cannot_be_placed_is_spoiled_and_told_why() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let first = allowed.split([',', '-']).next().unwrap();
    let bench = Bench::new(QUICK);
    let one = || after(&format!("taskset -pc {first} $$ >/dev/null &&"));
    let output = one().arg("doctor").arg(bench.scenario()).output().unwrap();
    let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("This host can place no arm of ") && !text.contains("Nothing here spoils"), "{text}");
    assert!(text.split_once("are spoiled by: ").is_some_and(|(_, rest)| rest.contains("cpuset")), "{text}");
    let check = of_scenario(&mut one(), &bench, "cpuset");
    assert!(check.spoils && check.seen.starts_with(&format!("CPU {first} alone")), "{check:?}");
    let run = one().arg("run").arg(bench.scenario()).arg("--out").arg(bench.results()).output().unwrap();
    assert_eq!(run.status.code(), Some(4), "what doctor foretold: {}", stderr(&run));
}

/// The least limit that doctor finds enough is enough, and one that it calls too little stops the run.
#[test]
fn a_limit_on_open_files_spoils_the_runs_that_it_stops() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return skip("two workers need two CPUs");
    }
    let _alone = alone();
    let bench = Bench::new(&QUICK.replace("repetitions = 3", "repetitions = 1\nbaselines = []"));
    let limited = |limit: u32| after(&format!("ulimit -n {limit} &&"));
    let enough = |limit: u32| !of_scenario(&mut limited(limit), &bench, "open_files").spoils;
    let run = |limit: u32| {
        limited(limit)
            .arg("run")
            .arg(bench.scenario())
            .arg("--out")
            .arg(bench.results())
            .arg("--json")
            .output()
            .unwrap()
    };
    // Numbers from 16 on are handed to workers: five for all, and a report each.
    let (mut little, mut much) = (20, 256);
    assert!(!enough(little) && enough(much));
    let stopped = run(little);
    assert_eq!(stopped.status.code(), Some(1), "{}", stderr(&stopped));
    assert!(stderr(&stopped).contains("open_files (at most 20)"), "{}", stderr(&stopped));
    while much - little > 1 {
        let middle = (little + much) / 2;
        if enough(middle) { much = middle } else { little = middle }
    }
    let done = run(much);
    assert!([Some(0), Some(3)].contains(&done.status.code()), "{much}: {}", stderr(&done));
    assert!(!stdout(&done).contains("no file descriptor was left"), "{much}: each event was opened");
}

/// In a mount namespace of its own, where files are hidden as sandboxes hide them.
#[test]
fn what_a_sandbox_hides_is_not_said() {
    if !is_root() {
        return skip("only root can hide files from one process alone");
    }
    let hidden = |folder: &str| {
        let mut command = Command::new("unshare");
        let script = format!("mount -t tmpfs none {folder} && exec \"$0\" doctor --json");
        command.args(["--mount", "--propagation", "private", "sh", "-c", &script, env!("CARGO_BIN_EXE_coordinator")]);
        record(&mut command).checks
    };
    let silent = |checks: &[Check], names: &[&str]| {
        for name in names {
            let check = checks.iter().find(|check| check.name == *name).unwrap();
            assert!(check.state == CheckState::Missing && !check.seen.starts_with("no perf"), "{check:?}");
        }
    };
    let settings =
        ["perf_event_paranoid", "nmi_watchdog", "watchdogs", "vm_stat_interval", "timer_migration", "numa_balancing"];
    silent(&hidden("/proc/sys"), &settings);
    let without_sys = hidden("/sys");
    silent(&without_sys, &["transparent_huge_pages", "ksm", "nohz_full", "tracefs", "cgroup_quota"]);
    let tracefs = without_sys.iter().find(|check| check.name == "tracefs").unwrap();
    assert!(tracefs.seen.contains("hidden"), "{tracefs:?}");
}

#[test]
fn bad_usage_is_refused() {
    let refused = |arguments: &[&str], part: &str| {
        let output = coordinator().arg("doctor").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(part) && stdout(&output).is_empty(), "{arguments:?}: {}", stderr(&output));
    };
    refused(&["--cpus", "spread"], "no list of CPUs");
    refused(&["--cpus", "60000"], "CPU 60000 is not online");
    refused(&["--only", "packed"], "<SCENARIO>");
    refused(&["no-such-file.toml"], "no-such-file.toml");
    let bench = Bench::new(&QUICK.replace("bump hits[me]", "bump hots[me]"));
    refused(&[bench.scenario().to_str().unwrap()], "hots");
}

/// Settings that doctor's cures would change, with what they hold.
fn settings() -> BTreeMap<PathBuf, String> {
    let mut files: Vec<PathBuf> =
        ["proc/sys/vm/stat_interval", "sys/kernel/mm/ksm/run"].iter().map(|file| Path::new("/").join(file)).collect();
    for name in ["perf_event_paranoid", "nmi_watchdog", "soft_watchdog", "watchdog_cpumask", "numa_balancing"] {
        files.push(Path::new("/proc/sys/kernel").join(name));
    }
    files.push("/proc/sys/kernel/timer_migration".into());
    for name in ["enabled", "defrag", "shmem_enabled"] {
        files.push(Path::new("/sys/kernel/mm/transparent_hugepage").join(name));
    }
    files.push("/sys/devices/system/clocksource/clocksource0/current_clocksource".into());
    for cpu in entries("/sys/devices/system/cpu") {
        files.push(cpu.join("cpufreq/scaling_governor"));
        files.push(cpu.join("online"));
    }
    files.extend(entries("/proc/irq").into_iter().map(|irq| irq.join("smp_affinity_list")));
    files.into_iter().filter_map(|file| Some((file.clone(), std::fs::read_to_string(file).ok()?))).collect()
}

fn entries(folder: &str) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// The files in which two looks differ.
fn changed(before: &BTreeMap<PathBuf, String>, after: &BTreeMap<PathBuf, String>) -> BTreeSet<PathBuf> {
    before.keys().chain(after.keys()).filter(|file| before.get(*file) != after.get(*file)).cloned().collect()
}

/// Writes back what a setting was; false where this process may not change it, and neither may a doctor that it starts.
fn put_back(file: &Path, was: Option<&String>) -> bool {
    // Of a list of words the chosen one stands in brackets.
    let chosen = |text: &String| match text.split_once('[').and_then(|(_, rest)| rest.split_once(']')) {
        Some((word, _)) => word.to_owned(),
        None => text.trim().to_owned(),
    };
    was.is_some_and(|text| std::fs::write(file, chosen(text)).is_ok())
}

/// Others change settings too, irqbalance for one. What doctor changed it would change again once it is put back.
#[test]
fn it_changes_no_setting() {
    let mut before = settings();
    assert!(before.len() > 3, "something is compared: {before:?}");
    checks();
    let mut suspects = changed(&before, &settings());
    for _ in 0..5 {
        suspects.retain(|file| put_back(file, before.get(file)));
        if suspects.is_empty() {
            return;
        }
        before = settings();
        checks();
        suspects = changed(&before, &settings()).intersection(&suspects).cloned().collect();
    }
    panic!("each time doctor looks these change: {suspects:?}");
}

/// In a mount namespace of its own, where nobody else's mounts appear.
#[test]
fn it_mounts_nothing() {
    if !is_root() {
        return skip("only root can mount something, and look at that alone");
    }
    let script = "cat /proc/self/mounts && echo -- && \"$0\" doctor --json >/dev/null && cat /proc/self/mounts";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script, env!("CARGO_BIN_EXE_coordinator")]);
    let output = command.output().unwrap();
    let text = stdout(&output);
    let (before, after) = text.split_once("--\n").unwrap_or_else(|| panic!("{}", stderr(&output)));
    assert!(output.status.success() && before.contains(" /proc "), "{}", stderr(&output));
    assert_eq!(after, before);
}

/// A cgroup with a CPU quota, removed at its end.
struct Quota {
    folder: PathBuf,
    /// Gone after the cgroup, as fields are after their struct.
    _controller: Option<CpuController>,
}

/// The cpu controller of version 2, on for the topmost cgroup's children because a test turned it on.
struct CpuController;

impl CpuController {
    const FILE: &str = "/sys/fs/cgroup/cgroup.subtree_control";

    /// Turns it on; `None` where it is on already, or is not ours to turn on.
    fn on() -> Option<CpuController> {
        let on = std::fs::read_to_string(CpuController::FILE).ok()?;
        let is_on = on.split_whitespace().any(|name| name == "cpu");
        (!is_on && std::fs::write(CpuController::FILE, "+cpu").is_ok()).then_some(CpuController)
    }
}

impl Drop for CpuController {
    fn drop(&mut self) {
        // Somebody may use it by now: then the kernel refuses, and it is theirs.
        let _ = std::fs::write(CpuController::FILE, "-cpu");
    }
}

impl Quota {
    /// Makes one of so much time in each 100 ms, under version 1 or 2; `None` where neither is to be had.
    fn new(quota_us: u32) -> Option<Quota> {
        let (v1, v2) = (Path::new("/sys/fs/cgroup/cpu"), Path::new("/sys/fs/cgroup"));
        let name = format!("contention-lab-test-quota-{}", std::process::id());
        if v1.join("cpu.cfs_quota_us").exists() {
            let quota = Quota { folder: v1.join(name), _controller: None };
            std::fs::create_dir(&quota.folder).ok()?;
            std::fs::write(quota.folder.join("cpu.cfs_period_us"), "100000").ok()?;
            std::fs::write(quota.folder.join("cpu.cfs_quota_us"), quota_us.to_string()).ok()?;
            return Some(quota);
        }
        // Where the controller is not on, the child has no such file.
        let quota = Quota { folder: v2.join(name), _controller: CpuController::on() };
        std::fs::create_dir(&quota.folder).ok()?;
        std::fs::write(quota.folder.join("cpu.max"), format!("{quota_us} 100000")).ok()?;
        Some(quota)
    }

    /// `coordinator`, in the cgroup from its first moment.
    fn coordinator(&self) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\""]).arg(&self.folder);
        command.arg(env!("CARGO_BIN_EXE_coordinator")).env("COLUMNS", "80").stdin(Stdio::null());
        command
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // Busy until the kernel has let go of the last process.
        for _ in 0..1_000 {
            match std::fs::remove_dir(&self.folder) {
                Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                _ => return,
            }
        }
    }
}

#[test]
fn a_quota_below_the_workers_is_told_before_the_run_in_one_line() {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let quota = if is_root() && cpus >= 2 { Quota::new(150_000) } else { None };
    let Some(quota) = quota else { return skip("a CPU quota needs root, two CPUs and a writable cgroup tree") };
    let _alone = alone();
    let bench = Bench::new(QUICK);
    let run = |more: &[&str]| {
        let mut command = quota.coordinator();
        command.arg("run").arg(bench.scenario()).arg("--out").arg(bench.results()).arg("--json").args(more);
        command.output().unwrap()
    };
    let output = run(&[]);
    let text = stderr(&output);
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("doctor: ")).collect();
    let [line] = lines[..] else { panic!("one line: {text}\n{}", stdout(&output)) };
    assert!(line.contains("cgroup_quota (1.5 CPUs for 2 in question"), "{line}");
    assert!(line.ends_with(&format!("see `coordinator doctor {}`", bench.scenario().display())), "{line}");
    let doctor_at = text.find("doctor: ").unwrap();
    assert!(text.find("measuring").is_some_and(|at| doctor_at < at), "before anything is measured: {text}");

    let output = run(&["--quiet"]);
    assert!(!stderr(&output).contains("doctor: "), "{}", stderr(&output));
    let run: Run = serde_json::from_slice(&output.stdout).unwrap();
    let warning = run.warnings.iter().find(|warning| warning.id == "doctor").unwrap();
    assert!(warning.text.contains("cgroup_quota (1.5 CPUs") && warning.advice.contains("coordinator doctor "));

    let screen = stdout(&quota.coordinator().arg("doctor").arg(bench.scenario()).output().unwrap());
    let joined = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    let spoiled = joined.split_once("are spoiled by: ").map_or("", |(_, rest)| rest);
    assert!(spoiled.contains("cgroup_quota"), "{screen}");
    assert!(joined.contains("warn cgroup_quota 1.5 CPUs for 2 in question"), "{screen}");
}

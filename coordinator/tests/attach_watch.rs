//! What `attach` counts and notices while programs that the lab did not start go about their business: threads, children,
//! ends; and what it says where it may not look.

mod common;
mod foreign;

use common::{coordinator, is_root, stderr, stdout};
use foreign::{Sharer, Watching, built, process, sharer, watched};
use record::{Attach, LineVerdict, ProcessEnd, Reading};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use testing::{A_LONG_TIME, Perf, skip, within};

/// User and group that own nothing (`nobody`).
const NOBODY: u32 = 65_534;

/// A segment without a name of its own: what no other test can meet.
fn memory(of: &str) -> Option<(Sharer, String)> {
    if let Err(why) = sharer() {
        skip(&why);
        return None;
    }
    let name = format!("{of}-{}", std::process::id());
    Some((Sharer::start("memfd", &name), format!("memfd:{name}")))
}

fn counted(seen: &Attach, pid: u32, event: &str) -> Option<u64> {
    match &process(seen, pid).counters[event] {
        Reading::Counted { value } => Some(*value),
        other => {
            skip(&format!("{event} is not counted here: {other:?}"));
            None
        }
    }
}

#[test]
fn counts_agree_with_perf_threads_that_begin_and_end_meanwhile_included() {
    let Some((mut busy, segment)) = memory("counted") else { return };
    let mut idle = Sharer::start("file", &busy.handle);
    // Its code and its buffers are touched once before.
    for command in ["thread 1", "fault 1", "nap 1", "futex 1", "spin 1"] {
        busy.tell(command);
    }
    let events = "page-faults:u,context-switches,task-clock";
    let perf = match Perf::attach(busy.pid as i32, events) {
        Ok(perf) => perf,
        Err(why) => return skip(&format!("perf stat cannot be attached here: {why}")),
    };
    let watching = Watching::start(&["--segment", &segment]);
    for command in ["fault 100", "thread 50", "nap 20", "futex 300", "thread 50", "spin 200"] {
        busy.tell(command);
    }
    let witness = perf.detach();
    busy.kill();
    idle.kill();
    let seen = watching.finish();
    let (Some(faults), Some(switches)) =
        (counted(&seen, busy.pid, "page_faults"), counted(&seen, busy.pid, "context_switches"))
    else {
        return;
    };
    let Some(clock_ns) = counted(&seen, busy.pid, "task_clock") else { return };
    println!("{witness:?}; ours: {faults} faults, {switches} switches, {clock_ns} ns");
    assert!(
        faults >= 200 && switches >= 20 && clock_ns >= 200_000_000,
        "what it was told to do: {faults} {switches} {clock_ns}"
    );
    assert_eq!(faults as f64, witness["page-faults:u"]);
    // It dies within the watch and behind perf's end, and must run for that.
    let more = switches as f64 - witness["context-switches"];
    assert!((0.0..=5.0).contains(&more), "{switches} {witness:?}");
    assert!((clock_ns as f64 / (witness["task-clock"] * 1e6) - 1.0).abs() < 0.05, "{clock_ns} {witness:?}");
    let other = process(&seen, idle.pid);
    assert!(other.counters["page_faults"].value().is_some_and(|faults| faults < 50), "each has its own: {other:?}");
    match &process(&seen, busy.pid).counters["futex_calls"] {
        // What pthread_join asks is not known: at least those it was told to.
        Reading::Counted { value } => assert!((300..320).contains(value), "{value}"),
        other => skip(&format!("futex calls are not counted here: {other:?}")),
    }
}

#[test]
fn processes_that_come_and_go_are_noticed() {
    let Some((mut first, segment)) = memory("coming") else { return };
    let start = || Sharer::start("file", &first.handle);
    let (mut exits, mut executes, mut unmaps, mut again) = (start(), start(), start(), start());
    let (late, path) = (start, first.handle.clone());
    let mut watching = Watching::start(&["--segment", &segment]);
    exits.order("exit");
    executes.order("exec");
    unmaps.tell("unmap");
    again.order("again");
    let late = late();
    let child = u32::try_from(first.tell("fork")).unwrap();
    let said = |pid: u32, what: &str| format!("attach: {pid} (sharer) {what}");
    watching.says(&said(exits.pid, "has ended"));
    watching.says(&said(executes.pid, "executes another program"));
    watching.says(&said(unmaps.pid, "has unmapped it"));
    watching.says(&said(again.pid, "executes another program"));
    watching.says(&said(again.pid, "maps it now"));
    watching.says(&said(late.pid, "maps it now"));
    watching.says(&said(child, "maps it now"));
    first.tell(&format!("kill {child}"));
    watching.says(&said(child, "has ended"));
    let pids = [&first, &late, &again].map(|one| one.pid);
    let ended = [exits.pid, executes.pid, unmaps.pid];
    drop((first, late, again, unmaps, executes));
    let seen = watching.finish();
    assert_eq!(path.split('/').nth(2), Some(pids[0].to_string().as_str()), "the segment is the first one's");
    let ends = [ProcessEnd::Exited, ProcessEnd::Executed, ProcessEnd::Exited];
    assert_eq!(ended.map(|pid| process(&seen, pid).ended.expect("it left")), ends, "what unmapped has ended since");
    let of_again: Vec<_> = seen.processes.iter().filter(|one| one.pid == pids[2]).map(|one| one.ended).collect();
    assert_eq!(of_again, [Some(ProcessEnd::Executed), Some(ProcessEnd::Exited)], "one before its execve, one behind");
    for pid in [pids[1], child] {
        let one = process(&seen, pid);
        assert!(one.joined_ns.is_some() && one.ended == Some(ProcessEnd::Exited), "{one:?}");
        assert!(seen.notes.iter().any(|note| note.id == "joined" && note.pid == Some(pid)), "{:?}", seen.notes);
    }
    assert!(process(&seen, pids[0]).joined_ns.is_none());
}

#[test]
fn a_watch_has_three_phases_and_a_rate_in_each() {
    let Some((first, segment)) = memory("phases") else { return };
    let seen = watched(&["--segment", &segment, "--for", "1s"]);
    let one = process(&seen, first.pid);
    assert!(seen.watched_ns >= 1_000_000_000 && one.counted_ns > 0, "{seen:?}");
    assert!(one.cpu.iter().all(Option::is_some), "{one:?}");
    for (event, rates) in &one.per_second {
        assert!(one.counters[event].value().is_some() && rates.iter().all(Option::is_some), "{event}: {rates:?}");
    }
    for (event, reading) in &one.counters {
        assert_eq!(reading.value().is_none(), reading.why().is_some_and(|why| !why.is_empty()), "{event}: {reading:?}");
        assert_eq!(reading.value().is_some(), one.per_second.contains_key(event), "{event}");
    }
    let screen = stdout(&coordinator().args(["attach", "--segment", &segment, "--for", "1s", "-q"]).output().unwrap());
    for part in
        [segment.strip_prefix("memfd:").unwrap(), "Who maps it", &first.pid.to_string(), "What watching cost them"]
    {
        assert!(screen.contains(part), "no {part}: {screen}");
    }
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
}

/// The whole arrow: from two programs in C to a verdict with names out of their debug information, which a process without
/// privileges read.
#[test]
fn two_that_write_neighbouring_words_are_told_with_the_place_in_their_source() {
    let Some((mut first, segment)) = memory("shared") else { return };
    let mut second = Sharer::start("file", &first.handle);
    second.tell("word 1");
    for one in [&mut first, &mut second] {
        one.order("spin 600000");
    }
    // A machine that is busy with something else runs them for little of a watch: then a longer one is taken.
    let shared = |seen: &Attach| seen.lines.iter().find(|line| line.verdict == LineVerdict::FalseSharing).cloned();
    let seen = ["3s", "10s", "30s", "60s"].iter().find_map(|time| {
        let seen = watched(&["--segment", &segment, "--for", time]);
        let line = shared(&seen)?;
        Some((seen, line))
    });
    let (seen, line) = seen.expect("false sharing");
    assert_eq!(line.offset, 0);
    for (one, offset) in [(&first, 0), (&second, 8)] {
        let word = line.words.iter().find(|word| word.offset == offset).unwrap_or_else(|| panic!("{line:#?}"));
        assert_eq!((&word.writers[..], word.proved), (&[one.pid][..], true));
        let at = word.instructions.iter().find(|at| at.writes).expect("who writes");
        assert!(at.symbol.as_deref().is_some_and(|symbol| symbol.starts_with("spin")), "{at:?}");
        assert!(at.source.as_ref().is_some_and(|(file, _)| file.ends_with("sharer.c")), "{at:?}");
    }
    assert!(
        seen.cost.traps > 0 && seen.cost.samples > 0 && seen.cost.slowdown.is_some_and(|part| part > 0.0),
        "{:?}",
        seen.cost
    );
}

#[test]
fn named_processes_alone_are_watched_and_none_joins_them() {
    let Some((first, _)) = memory("alone") else { return };
    let _second = Sharer::start("file", &first.handle);
    let seen = watched(&["--pid", &first.pid.to_string(), "--for", "1s"]);
    assert_eq!(seen.processes.iter().map(|one| one.pid).collect::<Vec<_>>(), [first.pid]);
}

/// A copy of the program that everybody may execute, since the folder of the build may be closed to others, run by nobody.
fn by_nobody() -> (tempfile::TempDir, Command) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("coordinator");
    fs::copy(env!("CARGO_BIN_EXE_coordinator"), &program).unwrap();
    for path in [folder.path(), &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(program);
    command.arg("attach").env("COLUMNS", "80").stdin(Stdio::null()).uid(NOBODY).gid(NOBODY);
    (folder, command)
}

#[test]
fn another_user_s_process_is_refused_with_the_capability_that_is_missing() {
    if !is_root() {
        return skip("only root becomes somebody else");
    }
    let Some((first, segment)) = memory("closed") else { return };
    let (_folder, mut command) = by_nobody();
    let output = command.args(["--pid", &first.pid.to_string()]).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let text = stderr(&output);
    for part in ["(sharer) belongs to user 0", "user 65534", "CAP_SYS_PTRACE", "run as root", "cap_perfmon"] {
        assert!(text.contains(part), "no {part}: {text}");
    }
    let (_folder, mut command) = by_nobody();
    let output = command.args(["--segment", &segment]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "what it cannot see is not there for it: {}", stderr(&output));
}

#[test]
fn one_s_own_processes_are_watched_without_privileges_beside_those_that_are_closed() {
    if !is_root() {
        return skip("only root becomes somebody else");
    }
    let Some((closed, _)) = memory("rest") else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.path().join("sharer");
    fs::copy(sharer().unwrap(), &program).unwrap();
    let mut command = Command::new(&program);
    command.args(["file", folder.path().join("ring").to_str().unwrap()]).uid(NOBODY).gid(NOBODY);
    let own = Sharer::with(command);
    let (_folder, mut command) = by_nobody();
    command.args(["--pid", &own.pid.to_string(), "--pid", &closed.pid.to_string(), "--for", "1s", "--json"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let seen: Attach = serde_json::from_str(&stdout(&output)).unwrap();
    let one = process(&seen, own.pid);
    assert!(one.unwatched.is_none() && one.mappings.len() == 1, "{one:?}");
    let why = process(&seen, closed.pid).unwatched.as_deref().expect("it is closed");
    assert!(why.contains("belongs to user 0") && process(&seen, closed.pid).mappings.is_empty(), "{why}");
    let note = seen.notes.iter().find(|note| note.pid == Some(closed.pid)).expect("a note");
    assert!(
        note.id == "not_permitted" && note.cure.as_deref().is_some_and(|cure| cure.contains("cap_sys_ptrace")),
        "{note:?}"
    );
    match &one.counters["context_switches"] {
        Reading::Denied { why, cure } => assert!(why.contains("perf_event_paranoid") && !cure.is_empty(), "{why}"),
        Reading::Counted { .. } => skip("this machine lets everybody count the kernel"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_process_of_32_bits_is_watched_as_one() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let flags = ["-m32", "-fno-pic", "-no-pie", "-fno-stack-protector", "-nostdlib", "-static"];
    let program = match built("small32", &flags) {
        Ok(program) => program,
        Err(why) => return skip(&format!("no program of 32 bits can be built: {why}")),
    };
    let path = folder.path().join("ring");
    let file = fs::File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    file.set_len(4096).unwrap();
    let mut small = match Command::new(program).stdin(Stdio::piped()).stdout(file).spawn() {
        Ok(small) => small,
        Err(error) => return skip(&format!("this kernel executes no program of 32 bits: {error}")),
    };
    within(A_LONG_TIME, "it maps the file", || fs::read(&path).is_ok_and(|bytes| bytes[0] == 32).then_some(()));
    let seen = watched(&["--file", path.to_str().unwrap(), "--for", "1s"]);
    drop(small.stdin.take());
    small.wait().unwrap();
    let one = process(&seen, small.id());
    assert!(one.address_bits == 32 && one.mappings[0].address < 1 << 32 && one.unwatched.is_none(), "{one:?}");
    assert!(
        seen.notes.iter().any(|note| note.id == "address_bits" && note.pid == Some(small.id())),
        "{:?}",
        seen.notes
    );
}

#[test]
fn a_process_in_another_namespace_of_pids_has_both_its_numbers() {
    if let Err(why) = sharer() {
        return skip(&why);
    }
    let may_unshare = |status: std::io::Result<std::process::ExitStatus>| status.is_ok_and(|status| status.success());
    if !may_unshare(Command::new("unshare").args(["--pid", "--fork", "true"]).status()) {
        return skip("unshare of util-linux makes no namespace of pids here");
    }
    let name = format!("contained-{}", std::process::id());
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child"]).arg(sharer().unwrap()).args(["memfd", &name]);
    let mut inside = Sharer::with(command);
    assert_eq!(inside.handle, "/proc/1/fd/3", "it takes itself for process 1");
    let seen = watched(&["--segment", &format!("memfd:{name}"), "--for", "1s"]);
    let [one] = &seen.processes[..] else { panic!("{seen:?}") };
    assert!(one.pid_inside == Some(1) && one.pid != 1 && one.command == "sharer", "{one:?}");
    assert!(Path::new(&format!("/proc/{}", one.pid)).exists());
    inside.tell("nap 1");
}

//! Foreign programs, each with the segment at an address of its own: who touches which words, and what it amounts to.

mod common;

use common::{Segment, alarms, allowed_cpus, line, toucher, users, watched, watched_until, words};
use record::LineVerdict;
use std::time::Instant;
use testing::{A_LONG_TIME, skip, within};

/// No test, but the process that reads symbols for the others.
#[test]
fn reader_of_symbols() {
    if std::env::var_os("LAB_READS_SYMBOLS").is_some() {
        let code = attach::symbols::serve();
        std::process::exit(i32::from(code != std::process::ExitCode::SUCCESS));
    }
}

#[test]
fn two_that_count_side_by_side_share_a_line_falsely() {
    let Some(_) = toucher() else { return };
    let segment = Segment::new(4096);
    let [a, b] = segment.pair("bump", [256, 264]);
    assert_ne!(a.address, b.address);
    let seen = watched_until(&segment.targets(), |seen| users(seen, 256) == 2, |_| ());
    let one = line(&seen, 256);
    assert_eq!(one.verdict, LineVerdict::FalseSharing, "{seen:#?}");
    assert_eq!(words(one), [(256, 8, vec![a.pid], vec![a.pid]), (264, 8, vec![b.pid], vec![b.pid])], "{seen:#?}");
    assert_eq!(alarms(&seen).len(), 1, "{seen:#?}");
    assert!(one.words.iter().all(|word| word.proved));
    let instruction = &one.words[0].instructions[0];
    assert!(instruction.symbol.as_deref().is_some_and(|symbol| symbol.starts_with("bump+")), "{instruction:#?}");
    let source = instruction.source.clone().unwrap_or_else(|| panic!("{seen:#?}"));
    assert!(source.0.ends_with("toucher.c") && source.1 > 30, "{source:?}");
    assert!(instruction.text.as_deref().is_some_and(|text| text.contains('(')), "{instruction:#?}");
    assert!(seen.cost.traps > 0 && seen.cost.samples > 0, "{:?}", seen.cost);
    if allowed_cpus().len() > 1 {
        assert!(one.recoverable.is_some_and(|(low, high)| low > 0.0 && high <= 1.0), "{one:#?}");
    }
}

#[test]
fn two_that_use_halves_of_eight_bytes_share_falsely_too() {
    let Some(_) = toucher() else { return };
    let segment = Segment::new(4096);
    let [a, b] = segment.pair("bump-half", [0, 4]);
    let seen = watched_until(&segment.targets(), |seen| users(seen, 0) == 2, |_| ());
    let one = line(&seen, 0);
    assert_eq!(one.verdict, LineVerdict::FalseSharing, "{seen:#?}");
    assert_eq!(words(one), [(0, 4, vec![a.pid], vec![a.pid]), (4, 4, vec![b.pid], vec![b.pid])], "{seen:#?}");
}

#[test]
fn two_that_add_to_one_word_share_truly_and_a_reader_is_told_from_a_writer() {
    let Some(_) = toucher() else { return };
    let segment = Segment::new(8192);
    let (a, b) = (segment.user("add", 4096, 0), segment.user("add", 4096, 0));
    let seen = watched_until(&segment.targets(), |seen| users(seen, 4096) == 2, |_| ());
    let one = line(&seen, 4096);
    let both = vec![a.pid.min(b.pid), a.pid.max(b.pid)];
    assert_eq!(one.verdict, LineVerdict::TrueSharing, "{seen:#?}");
    assert_eq!(words(one), [(4096, 8, both.clone(), both)], "{seen:#?}");
    drop(b);
    let reader = segment.user("look", 4096, 0);
    let seen = watched_until(&segment.targets(), |seen| users(seen, 4096) == 2, |_| ());
    let one = line(&seen, 4096);
    assert_eq!(one.verdict, LineVerdict::TrueSharing, "{seen:#?}");
    let readers = vec![a.pid.min(reader.pid), a.pid.max(reader.pid)];
    assert_eq!(words(one), [(4096, 8, vec![a.pid], readers)], "{seen:#?}");
}

#[test]
fn a_lock_that_several_queue_for_is_a_lock_word() {
    let Some(_) = toucher() else { return };
    let segment = Segment::new(4096);
    segment.make_mutex(128);
    let all = [segment.user("convoy", 128, 192), segment.user("convoy", 128, 192), segment.user("convoy", 128, 192)];
    let seen = watched_until(&segment.targets(), |seen| users(seen, 128) == 3 && users(seen, 192) == 3, |_| ());
    let one = line(&seen, 128);
    assert_eq!(one.verdict, LineVerdict::LockWord, "{seen:#?}");
    let word = one.words.iter().find(|word| word.offset == 128).unwrap_or_else(|| panic!("{seen:#?}"));
    assert_eq!(word.writers.len(), all.len(), "{seen:#?}");
    assert_eq!(line(&seen, 192).verdict, LineVerdict::TrueSharing, "the counter beside it: {seen:#?}");
}

#[test]
fn who_keeps_to_lines_of_their_own_alarms_nobody() {
    let Some(_) = toucher() else { return };
    let segment = Segment::new(4096);
    let all = [("bump", 0), ("add", 128), ("look", 256), ("look", 256)].map(|(role, at)| segment.user(role, at, 0));
    let targets = segment.targets();
    let quiet = |seen: &attach::touch::Touched| assert!(alarms(seen).is_empty(), "{seen:#?}");
    let is_seen = |seen: &attach::touch::Touched| [0, 128, 256].map(|at| users(seen, at)) == [1, 1, 2];
    for _ in 0..3 {
        let seen = watched_until(&targets, is_seen, quiet);
        let verdicts = [0, 128, 256].map(|at| line(&seen, at).verdict);
        assert_eq!(verdicts, [LineVerdict::Private, LineVerdict::Private, LineVerdict::ReadMostly], "{seen:#?}");
    }
    drop(all);
}

#[test]
fn two_lines_of_a_gibibyte_are_found() {
    let Some(_) = toucher() else { return };
    let bytes = 1 << 30;
    let segment = Segment::new(bytes);
    let (low, high) = (0x1234 * 4096 + 64, bytes - 4096 + 640);
    let a = [segment.user("bump", low, 0), segment.user("bump", low + 8, 0)];
    let b = [segment.user("add", high, 0), segment.user("add", high, 0)];
    let is_seen = |seen: &attach::touch::Touched| users(seen, low) == 2 && users(seen, high) == 2;
    let seen = watched_until(&segment.targets(), is_seen, |_| ());
    assert_eq!(line(&seen, low).verdict, LineVerdict::FalseSharing, "{seen:#?}");
    assert_eq!(line(&seen, high).verdict, LineVerdict::TrueSharing, "{seen:#?}");
    assert_eq!(alarms(&seen).len(), 2, "{seen:#?}");
    drop((a, b));
}

#[test]
fn a_lock_that_is_spun_for_is_one_too_and_threads_of_one_process_share_as_processes_do() {
    let Some(_) = toucher() else { return };
    let segment = Segment::new(4096);
    let spinners = [segment.user("spin", 512, 640), segment.user("spin", 512, 640)];
    let threads = segment.user("two-threads", 0, 8);
    let is_seen = |seen: &attach::touch::Touched| {
        users(seen, 512) == 2 && seen.lines.iter().any(|line| line.offset == 0 && line.words.len() == 2)
    };
    let seen = watched_until(&segment.targets(), is_seen, |_| ());
    assert_eq!(line(&seen, 512).verdict, LineVerdict::LockWord, "{seen:#?}");
    assert!(seen.spinners.keys().all(|offset| *offset == 512), "nobody spins elsewhere: {seen:#?}");
    let one = line(&seen, 0);
    assert_eq!(one.verdict, LineVerdict::FalseSharing, "{seen:#?}");
    let own = || vec![threads.pid];
    assert_eq!(words(one), [(0, 8, own(), own()), (8, 8, own(), own())], "{seen:#?}");
    drop(spinners);
}

#[test]
fn a_process_of_32_bits_is_watched_as_others_are() {
    let Some(_) = toucher() else { return };
    let segment = Segment::new(4096);
    let Some(narrow) = segment.narrow() else { return };
    let wide = segment.user("bump", 0, 0);
    let targets = segment.targets();
    let bits: Vec<u32> = targets.processes.iter().map(|target| target.address_bits).collect();
    assert!(bits.contains(&32) && bits.contains(&64), "{bits:?}");
    let seen = watched_until(&targets, |seen| users(seen, 0) == 2, |_| ());
    let one = line(&seen, 0);
    assert_eq!(one.verdict, LineVerdict::FalseSharing, "{seen:#?}");
    let (a, b) = (vec![wide.pid], vec![narrow.pid]);
    assert_eq!(words(one), [(0, 8, a.clone(), a), (12, 4, b.clone(), b)], "{seen:#?}");
    let texts: Vec<&str> = one.words[1].instructions.iter().filter_map(|at| at.text.as_deref()).collect();
    assert!(!texts.is_empty() && texts.iter().all(|text| text.contains("(%e")), "{texts:?}");
}

#[test]
fn what_the_kernel_writes_for_a_process_is_the_processs() {
    let Some(_) = toucher() else { return };
    let segment = Segment::new(4096);
    let (writer, reader) = (segment.user("kernel", 320, 0), segment.user("look", 320, 0));
    let seen = watched_until(&segment.targets(), |seen| users(seen, 320) == 2, |_| ());
    let one = line(&seen, 320);
    assert_eq!(one.verdict, LineVerdict::TrueSharing, "{seen:#?}");
    assert_eq!((one.words.len(), &one.words[0].writers), (1, &vec![writer.pid]), "{seen:#?}");
    assert!(one.words[0].readers.contains(&reader.pid), "{seen:#?}");
    let by_kernel = one.words[0].instructions.iter().find(|at| at.pid == writer.pid);
    assert_eq!(by_kernel.and_then(|at| at.symbol.as_deref()), Some("[kernel]"), "{seen:#?}");
}

#[test]
fn who_the_kernel_waited_for_is_a_lock() {
    let Some(_) = toucher() else { return };
    let segment = Segment::new(4096);
    let all = segment.pair("add", [0, 0]);
    let mut seen = watched_until(&segment.targets(), |seen| users(seen, 0) == 2, |_| ());
    seen.mark_locks(&[64].into());
    assert_eq!(line(&seen, 0).verdict, LineVerdict::TrueSharing, "another line's word");
    seen.mark_locks(&[32].into());
    assert_eq!(line(&seen, 0).verdict, LineVerdict::LockWord);
    drop(all);
}

#[test]
fn threads_that_are_born_and_processes_that_end_or_execute_meanwhile_end_no_watch() {
    let Some(_) = toucher() else { return };
    let segment = Segment::new(4096);
    let (births, executes, mut ends) =
        (segment.user("births", 0, 100), segment.user("exec", 128, 700), segment.user("add", 256, 0));
    let targets = segment.targets();
    assert_eq!(targets.processes.len(), 3);
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(900));
            ends.kill();
        });
        watched_until(&targets, |seen| users(seen, 0) == 1, |seen| assert!(alarms(seen).is_empty(), "{seen:#?}"))
    });
    assert_eq!(line(&seen, 0).words[0].writers, [births.pid], "threads that began later: {seen:#?}");
    let others: Vec<_> = seen.notes.iter().filter(|note| note.id != "lines_left_out").collect();
    assert!(others.is_empty(), "an end is an outcome: {others:?}");
    drop(executes);
}

/// No test, but a watcher that another test kills.
#[test]
fn watcher_to_be_killed() {
    let Some(name) = std::env::var_os("LAB_WATCHES") else { return };
    let name = name.into_string().unwrap();
    let targets = attach::find(&host::Root::system(), &attach::Wanted::Segment(name), &[]).unwrap().targets;
    // Longer than the other one looks for it, and not for ever, should that one be killed first.
    let begin = Instant::now();
    while begin.elapsed() < 2 * A_LONG_TIME {
        watched(&targets, 1_000);
    }
}

#[test]
fn a_watcher_that_is_killed_leaves_nothing_armed() {
    let Some(_) = toucher() else { return };
    let segment = Segment::new(4096);
    let all = segment.pair("add", [0, 128]);
    let targets = segment.targets();
    let taken = |seen: &attach::touch::Touched| seen.notes.iter().any(|note| note.id == "breakpoints_taken");
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["watcher_to_be_killed", "--exact"]).env("LAB_WATCHES", &segment.name);
    let mut watcher = Held(command.stdout(std::process::Stdio::null()).spawn().unwrap());
    // It has them while a round lasts: some watch meets one.
    within(A_LONG_TIME, "a breakpoint that another has", || {
        assert!(watcher.0.try_wait().unwrap().is_none(), "the watcher ended");
        taken(&watched(&targets, 300)).then_some(())
    });
    drop(watcher); // SIGKILL, and waited for
    let seen = watched_until(&targets, |seen| users(seen, 0) == 1 && users(seen, 128) == 1, |_| ());
    assert!(!taken(&seen), "{:?}", seen.notes);
    assert_eq!([0, 128].map(|at| line(&seen, at).words[0].writers.len()), [1, 1], "{seen:#?}");
    for one in all {
        let (passes, value) = one.end();
        assert_eq!(passes, value, "what it counted is what it did");
    }
}

#[test]
fn a_debugger_that_has_the_breakpoints_is_said_and_the_others_are_proved() {
    let Some(_) = toucher() else { return };
    let segment = Segment::new(4096);
    let (a, b) = (segment.user("add", 0, 0), segment.user("add", 0, 0));
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut command = std::process::Command::new("perf");
        let event = format!("mem:{:#x}/8:w", a.address + 2048);
        command.args(["stat", "-e", &event, "-p", &a.pid.to_string(), "sleep", "600"]);
        match command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn() {
            Ok(child) => held.push(Held(child)),
            Err(error) => return skip(&format!("perf cannot be run: {error}")),
        }
    }
    let taken = |pid: u32| move |note: &record::AttachNote| note.id == "breakpoints_taken" && note.pid == Some(pid);
    // They take a moment to start.
    let seen = within(A_LONG_TIME, "breakpoints that perf has", || {
        let seen = watched(&segment.targets(), 500);
        assert!(held.iter_mut().all(|one| one.0.try_wait().unwrap().is_none()), "perf ended: {seen:#?}");
        let is_told = seen.notes.iter().any(taken(a.pid)) && line(&seen, 0).words[0].writers == [b.pid];
        is_told.then_some(seen)
    });
    assert!(!seen.notes.iter().any(taken(b.pid)), "{:?}", seen.notes);
}

/// A process that ends with this.
struct Held(std::process::Child);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

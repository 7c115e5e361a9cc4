//! The first two gates on the exercises of the repository and on answers to them, good and bad. Nothing is run here:
//! what is counted in memory is played.

use exercise::{Exercise, conservation, exact, mechanism};
use plan::{Cpu, Plan, Program, Topology};
use record::{GateCheck, GateState, Trace};
use std::path::{Path, PathBuf};

fn folders() -> Vec<PathBuf> {
    let all = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/exercises")).unwrap();
    let mut folders: Vec<PathBuf> = all.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    assert!(folders.len() >= 8, "{folders:?}");
    folders
}

/// The folder whose name ends so.
fn folder(name: &str) -> PathBuf {
    folders().into_iter().find(|folder| folder.to_string_lossy().ends_with(name)).unwrap()
}

fn exercise_of(folder: &Path) -> Exercise {
    exercise::load(&folder.join(exercise::FILE)).unwrap_or_else(|refusal| panic!("{}", refusal.render(false))).0
}

fn text(folder: &Path, file: &str) -> String {
    std::fs::read_to_string(folder.join(file)).unwrap()
}

/// A scenario's plan, and its first arm's Program on two CPUs.
fn bound(text: &str) -> (Plan, Program) {
    let loaded =
        scenario::parse("case.toml", text).unwrap_or_else(|refusal| panic!("{}\n{text}", refusal.render(false)));
    let cpu = |id| Cpu { id: plan::CpuId(id), core: id, llc: 0, node: 0, socket: 0, usable: true };
    let topology = Topology { cpus: (0..2).map(cpu).collect() };
    let bound = plan::bind(&loaded.plan, &topology, 1).unwrap();
    let program = bound.arms[0].program.clone().unwrap();
    (loaded.plan, program)
}

struct Judged {
    conservation: Vec<GateCheck>,
    mechanism: Vec<GateCheck>,
}

impl Judged {
    fn of(folder: &Path, yours: &str) -> Judged {
        let exercise = exercise_of(folder);
        let (starter, yours) = (bound(&text(folder, "starter.toml")), bound(yours));
        let arms = ((&starter.0.arms[0], &starter.1), (&yours.0.arms[0], &yours.1));
        Judged {
            conservation: conservation(&exercise, arms.0, arms.1),
            mechanism: mechanism(&exercise, arms.1.0, arms.1.1),
        }
    }

    fn conserves(&self) -> bool {
        self.conservation.iter().all(|check| check.state == GateState::Passes)
    }

    fn mends(&self) -> bool {
        self.mechanism.iter().all(|check| check.state == GateState::Passes)
    }

    /// What fails, in words.
    fn complaints(&self) -> String {
        let failed = self.conservation.iter().chain(&self.mechanism).filter(|check| check.state != GateState::Passes);
        failed.map(|check| format!("{}: {}\n", check.what, check.why)).collect()
    }
}

#[test]
fn references_pass_and_starters_and_wrong_answers_do_not() {
    for folder in folders() {
        let exercise = exercise_of(&folder);
        let of = |file| Judged::of(&folder, &text(&folder, file));
        let (starter, reference, wrong) = (of("starter.toml"), of("reference.toml"), of("wrong.toml"));
        let name = folder.display();
        assert!(reference.conserves() && reference.mends(), "{name}: {}", reference.complaints());
        assert!(!(starter.conserves() && starter.mends()), "{name}: the starter passes");
        assert!(starter.conserves(), "{name}: the starter is at fault in what it does: {}", starter.complaints());
        assert!(!(wrong.conserves() && wrong.mends()), "{name}: the wrong answer passes");
        assert_eq!(exercise::fits(&exercise, &bound(&text(&folder, "starter.toml")).0.arms[0]), Ok(()), "{name}");
    }
}

#[test]
fn a_comment_repairs_nothing() {
    for folder in folders() {
        let edited = format!("# I have read it.\n\n{}\n# The end.\n", text(&folder, "starter.toml"));
        let judged = Judged::of(&folder, &edited);
        assert!(!(judged.conserves() && judged.mends()), "{}", folder.display());
    }
}

/// An answer to an exercise: its reference with one thing changed.
fn answer(name: &str, from: &str, to: &str) -> Judged {
    let folder = folder(name);
    let reference = text(&folder, "reference.toml");
    assert!(reference.contains(from), "{name}: no {from:?} in {reference}");
    Judged::of(&folder, &reference.replace(from, to))
}

#[test]
fn counts_that_are_left_out_skipped_or_overwritten_are_seen() {
    let sharded = |to: &str| answer("one-total", "\"bump total[me]\"", to);
    for (to, told) in [
        ("\"every 64 bump total[me]\"", "counts one pass in 64"),
        ("\"store total[me]\"", "overwrites it"),
        ("\"cas total[me]\"", "may fail to count"),
        ("\"bump total[me]\", \"bump total[me]\"", "adds 2, where the task is 1"),
        ("\"bump total[0]\"", "is raised by 2 workers"),
    ] {
        let judged = sharded(to);
        assert!(!judged.conserves() && judged.complaints().contains(told), "{to}: {}", judged.complaints());
    }
    assert!(sharded("\"add total[me]\"").conserves(), "atomic or not, with one writer");
}

#[test]
fn a_sum_that_leaves_a_shard_out_or_is_made_less_often_is_seen() {
    for to in ["\"every 4096 load total[me]\"", "\"every 8192 load total[all]\"", "\"every 4096 load total[0]\""] {
        let judged = answer("one-total", "\"every 4096 load total[all]\"", to);
        assert!(!judged.conserves() && judged.complaints().contains("would lack it"), "{to}: {}", judged.complaints());
    }
}

#[test]
fn what_is_done_outside_of_its_lock_can_be_lost() {
    let outside = answer("short-section", "\"bump balance\", \"unlock m\"", "\"unlock m\", \"bump balance\"");
    assert!(!outside.conserves() && outside.complaints().contains("no lock around all of them"));
    let atomic = answer(
        "short-section",
        "\"lock m\", \"bump balance\", \"unlock m\"",
        "\"lock m\", \"unlock m\", \"add balance\"",
    );
    assert!(atomic.conserves(), "an atomic add needs no lock: {}", atomic.complaints());
    let skipped = answer("dead-owner", "\"lock m\", \"bump", "\"lock m timeout 1ms\", \"bump");
    assert!(!skipped.conserves() && skipped.complaints().contains("ends at the timeout"), "{}", skipped.complaints());
}

#[test]
fn less_work_is_not_the_task() {
    for (from, to, told) in [
        ("\"work 5us\"", "\"work 1us\"", "computes for fewer nanoseconds"),
        ("\"work 5us\"", "\"every 10 work 5us\"", "computes for fewer nanoseconds"),
        ("\"work 5us\"", "\"work 5us\", \"sleep 1us\"", "sleeps for more nanoseconds"),
        ("workers = 2", "workers = 1", "other workers"),
        ("kind = \"pthread\"", "kind = \"ticket\"", "the locks, or their kinds"),
        ("\"packed\"", "{ pad = 64 }", "the placement is not"),
    ] {
        let judged = answer("short-section", from, to);
        assert!(!judged.conserves() && judged.complaints().contains(told), "{to}: {}", judged.complaints());
    }
    let fewer_reads = answer("a-constant", "\"load limit\", \"load quota\"", "\"load limit\"");
    assert!(fewer_reads.complaints().contains("the loop of `reader` is not as in the starter"));
    let paused = answer("given-back", "pause 10us", "pause 1ms");
    assert!(!paused.conserves() && paused.complaints().contains("pauses for more"), "{}", paused.complaints());
    let smaller = answer("given-back", "\"reuse seg 4KiB pause 10us\"", "\"work 20us\"");
    assert!(smaller.complaints().contains("fewer bytes"), "{}", smaller.complaints());
}

#[test]
fn room_costs_and_padding_by_hand_is_a_repair_too() {
    let wide = answer("two-counters", "{ pad = 64 }", "{ pad = 4096 }");
    assert!(wide.conserves() && !wide.mends() && wide.complaints().contains("8192 bytes"), "{}", wide.complaints());
    let by_hand = answer("two-counters", "{ pad = 64 }", "{ offsets = { hits = [0, 64] } }");
    assert!(by_hand.conserves() && by_hand.mends(), "{}", by_hand.complaints());
    let folder = folder("a-constant");
    let padded = text(&folder, "starter.toml")
        .replace("[field.served]", "[field.gap]\ntype = \"u64\"\ncount = 6\n\n[field.served]");
    let padded = Judged::of(&folder, &padded);
    assert!(padded.conserves() && padded.mends(), "fields that nobody touches: {}", padded.complaints());
}

#[test]
fn an_unlucky_base_shares_a_line_for_all_that_the_stride_promises() {
    let shifted = answer("two-counters", "{ pad = 64 }", "{ pad = 64, shift = 60 }");
    assert!(shifted.conserves() && !shifted.mends(), "two elements that each straddle two lines");
}

#[test]
fn sums_in_memory_are_held_against_the_passes() {
    let folder = folder("two-counters");
    let exercise = exercise_of(&folder);
    let (_, program) = bound(&text(&folder, "reference.toml"));
    let trace = |worker, all_passes| Trace { worker, all_passes, ..Trace::default() };
    let counts = |memory: [u64; 2], gave_up: bool| {
        let traces = [trace(0, 100), Trace { gave_up, ..trace(1, 50) }];
        let element = |offset: u64| memory.get((offset / 64) as usize).copied();
        let checks = exact(&exercise, &program, &traces, element);
        assert_eq!(checks.len(), 1);
        (checks[0].state, checks[0].why.clone())
    };
    assert_eq!(counts([100, 50], false).0, GateState::Passes);
    let missing = counts([100, 47], false);
    assert!(missing.0 == GateState::Fails && missing.1.contains("3 of their counts are missing"), "{missing:?}");
    assert_eq!(counts([100, 51], false).0, GateState::Fails);
    assert_eq!(counts([100, 51], true).0, GateState::Passes, "what a pass that was given up had counted");
    assert_eq!(counts([100, 52], true).0, GateState::Fails);
    let none = exact(&exercise, &program, &[], |_| Some(0));
    assert_eq!(none[0].state, GateState::Fails, "nobody counted anything");
}

#[test]
fn an_exercise_that_asks_for_what_is_not_there_is_refused_or_does_not_fit() {
    let folder = folder("two-counters");
    let good = text(&folder, exercise::FILE);
    for (from, to, told) in [
        ("may_change = [\"placement\"]", "may_change = [\"everything\"]", "cannot be"),
        ("may_change = [\"placement\"]", "may_chance = [\"placement\"]", "did you mean `may_change`?"),
        ("metric           = \"ns_per_op\"", "metric = \"ops_per_second\"", "less is better"),
        ("recovers_percent = 50", "recovers_percent = 0", "not within 1 to 100"),
        ("bytes_max  = 256", "bytes_max = \"256\"", "whole number"),
        ("title      = \"Two counters\"", "", "`title` is missing"),
    ] {
        let refusal = exercise::parse("exercise.toml", &good.replace(from, to)).unwrap_err().render(false);
        assert!(refusal.contains(told), "{to}: {refusal}");
    }
    let two_hints = good.replacen("    \"Run `coordinator run`", "    # \"Run `coordinator run`", 1);
    assert!(exercise::parse("exercise.toml", &two_hints).unwrap_err().render(false).contains("has 3 hints"));
    let starter = bound(&text(&folder, "starter.toml")).0;
    let no_field = exercise::parse("exercise.toml", &good.replace("field = \"hits\"", "field = \"hints\"")).unwrap();
    assert!(exercise::fits(&no_field, &starter.arms[0]).unwrap_err().contains("no field or lock `hints`"));
}

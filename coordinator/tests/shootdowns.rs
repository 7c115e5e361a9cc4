//! Shootdowns in real runs: counted, logged, tied to the call that sent them, with the kernel's stacks on both sides; and
//! what is asked for where there can be none.

mod common;

use common::{Bench, QUICK, alone, counted, of_role, stderr};
use nix::unistd::{SysconfVar, sysconf};
use record::{Observation, Run};
use testing::skip;

/// Runs before a test gives up.
const ATTEMPTS: u32 = 20;

/// Another process punches what the victim has mapped, from within the window on.
const PUNCHED: &str = r#"
title = "Punched"
question = "Who is interrupted for whom?"
[measure]
window = "60ms"
warm_up = "5ms"
repetitions = 2
baselines = []
[region.own]
size = "64KiB"
[region.seg]
size = "16MiB"
shared = true
[[role]]
name = "victim"
populate = ["seg"]
loop = ["touch own"]
[[role]]
name = "culprit"
after = "10ms"
loop = ["punch seg 4KiB pause 50us"]
"#;

/// A run with `--stacks` in which the victim was interrupted, as `/proc/interrupts` has it; `None`, and why, where this
/// machine can show none of it.
fn punched() -> Option<(Bench, Run)> {
    if sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten().is_none_or(|cpus| cpus < 2) {
        skip("nobody interrupts himself: it takes two CPUs");
        return None;
    }
    // On a busy machine the victim may be off its CPU whenever something is punched.
    for _ in 0..ATTEMPTS {
        let bench = Bench::new(PUNCHED);
        let output = bench.run().args(["--json", "--quiet", "--stacks"]).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 3)), "{:?}: {}", output.status, stderr(&output));
        let run: Run = serde_json::from_slice(&output.stdout).unwrap();
        let kernel = run.observations.iter().filter_map(|one| one.kernel.as_ref());
        let uncounted = run.observations.iter().find_map(|one| one.counters["tlb_shootdowns"].why());
        if let Some(why) = uncounted.or_else(|| kernel.filter_map(|kernel| kernel.missing.as_ref()?.why()).next()) {
            skip(&format!("interrupts cannot be counted, or the kernel's events not logged: {why}"));
            return None;
        }
        if interrupted(&run).next().is_some() {
            return Some((bench, run));
        }
    }
    panic!("no victim was interrupted in {ATTEMPTS} runs");
}

/// The victim's repetitions that count and in which its CPU was interrupted often.
fn interrupted(run: &Run) -> impl Iterator<Item = &Observation> {
    let often = |one: &&Observation| counted(one, "tlb_shootdowns") >= 20;
    run.observations
        .iter()
        .filter(|one| one.role == "victim" && one.arm == "base" && one.spoiled.is_empty())
        .filter(often)
}

fn logged(one: &Observation, event: &str) -> u64 {
    one.kernel.as_ref().and_then(|kernel| kernel.events.get(event)).copied().unwrap_or(0)
}

#[test]
fn what_is_counted_is_logged_and_what_another_asked_for_fell_into_its_call() {
    let _alone = alone();
    let Some((bench, run)) = punched() else { return };
    for one in of_role(&run, "victim") {
        let kernel = one.kernel.as_ref().unwrap();
        println!("{} {}: {} interrupts, {kernel:?}", one.arm, one.block, counted(one, "tlb_shootdowns"));
        assert_eq!(kernel.lost, 0);
        // The log is switched on last and off first: in between nothing punches, for the culprit begins later and the last
        // to leave closes its own window.
        let asked = counted(one, "tlb_flushes_remote");
        assert!(logged(one, "flush_remote") <= asked && asked <= counted(one, "tlb_shootdowns"));
        // The kernel interrupts for other ends as well, so each flush has an interrupt, and not the other way round.
        assert!(logged(one, "interrupt") >= logged(one, "flush_remote"));
        assert!(kernel.calls_seen <= kernel.during_calls, "{kernel:?}");
    }
    assert!(interrupted(&run).any(|one| one.kernel.as_ref().is_some_and(|kernel| kernel.during_calls > 0)));
    for one in of_role(&run, "culprit") {
        // A call asks for each page that the victim has mapped, and for none where it has not.
        assert!(logged(one, "flush_sent") <= counted(one, "tlb_flushes_sent"));
    }
    let mut rows = csv::Reader::from_path(bench.only_result().join("timeline.csv")).unwrap();
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    let time = |cell: &str| cell.parse::<f64>().unwrap();
    let calls: Vec<&csv::StringRecord> = rows.iter().filter(|row| &row[4] == "call").collect();
    let named = rows.iter().filter(|row| ["interrupt", "flush_remote"].contains(&&row[4]) && &row[3] == "victim");
    let tied: Vec<&csv::StringRecord> = named.filter(|row| !row[5].is_empty()).collect();
    assert!(!tied.is_empty());
    for row in tied {
        let holds = |call: &&&csv::StringRecord| {
            let (same, at) = ((&row[0], &row[1]) == (&call[0], &call[1]), time(&row[6]));
            // Cells have a tenth of a nanosecond.
            same && time(&call[6]) <= at + 0.1 && at <= time(&call[7]) + 0.1
        };
        let call = calls.iter().find(holds).unwrap_or_else(|| panic!("no call around {row:?}"));
        assert_eq!((&row[5], &call[3]), (&call[5], "culprit"));
    }
    assert!(
        rows.windows(2)
            .all(|two| (&two[0][0], &two[0][1]) != (&two[1][0], &two[1][1]) || time(&two[0][6]) <= time(&two[1][6]))
    );
}

#[test]
fn both_sides_stacks_have_the_kernel_s_names() {
    let _alone = alone();
    let Some((_bench, run)) = punched() else { return };
    if run.warnings.iter().any(|warning| warning.id == "stacks_unnamed") {
        return skip("the kernel's functions have no names here");
    }
    let arm = run.arms.iter().find(|arm| arm.name == "base").unwrap();
    let names = |role: &str, event: &str| {
        let of = |stack: &&record::StackSummary| stack.role == role && stack.event == event;
        arm.stacks.iter().find(of).unwrap_or_else(|| panic!("{role} {event}: {:?}", arm.stacks)).frames.join(" ")
    };
    assert!(names("culprit", "flush_sent").contains("fallocate"));
    assert!(names("victim", "flush_remote").contains("call_function"));
    assert!(names("victim", "interrupt").contains("call_function"));
}

#[test]
fn stacks_of_a_scenario_without_steps_on_regions_are_refused() {
    let output = Bench::new(QUICK).run().arg("--stacks").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("steps on regions"), "{}", stderr(&output));
}

//! `advise` on real runs: what it prints is what was measured, and what it advises can be run and compiled.

mod common;

use common::{Bench, QUICK, alone, coordinator, in_a_window_for, stderr, stdout};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use record::{AdviseRun, LayoutState, Verdict};
use std::process::{Command, Output};
use std::time::Duration;
use testing::skip;

/// Two writers of one line, a cold field, and a variant that does other work.
const PACKED: &str = r#"
title = "Two counters"
question = "Which layout?"
placement = "declared"
[measure]
window = "10ms"
warm_up = "2ms"
repetitions = 3
[field.hits]
type = "u64"
at = 0
[field.misses]
type = "u64"
at = 8
[field.limit]
type = "u32"
at = 16
[[variant]]
name = "now"
[[variant]]
name = "apart"
placement = { offsets = { hits = 0, misses = 192 } }
[[variant]]
name = "less"
[variant.set]
"role.reader.loop" = ["load misses"]
[[role]]
name = "writer"
loop = ["bump hits"]
[[role]]
name = "reader"
loop = ["bump misses"]
"#;

fn advise(bench: &Bench, more: &[&str]) -> Output {
    coordinator().arg("advise").arg(bench.scenario()).args(["--budget", "4s", "--quiet"]).args(more).output().unwrap()
}

/// A noisy machine's honest answer is 3; anything else but 0 is a failure.
#[track_caller]
fn assert_answered(output: &Output) {
    assert!(matches!(output.status.code(), Some(0 | 3)), "{:?}\n{}", output.status, stderr(output));
}

#[test]
fn what_is_printed_is_whole_and_what_is_advised_can_be_run() {
    let _alone = alone();
    let bench = Bench::new(PACKED);
    let output = advise(&bench, &["--json", "--seed", "1"]);
    assert_answered(&output);
    let text = stdout(&output);
    assert!(text.trim_start_matches(['{', '\n', ' ']).starts_with("\"schema_version\": 1"), "{text}");
    let run: AdviseRun = serde_json::from_str(&text).unwrap();
    assert_eq!((run.present.as_str(), run.seed, run.budget_s), ("now", 1, 4.0));
    assert_eq!(run.left_out.iter().map(|left| left.variant.as_str()).collect::<Vec<_>>(), ["less"]);
    let present = &run.layouts[0];
    assert_eq!((present.name.as_str(), present.bytes, present.gain), ("present", 24, None));
    assert_eq!(present.offsets["limit"], [16], "a cold field keeps its place");
    assert!(run.layouts.iter().any(|layout| layout.name == "apart" || layout.same_as.contains(&"apart".to_owned())));
    let padded = run.layouts.iter().find(|layout| layout.name == "padded-64").unwrap();
    assert_eq!((&padded.offsets["hits"], &padded.offsets["misses"]), (&vec![0], &vec![64]));
    assert!(run.layouts.iter().any(|layout| layout.name == run.advice.layout));
    let names: std::collections::BTreeSet<&str> = run.layouts.iter().map(|layout| layout.name.as_str()).collect();
    assert_eq!(names.len(), run.layouts.len(), "{names:?}");
    for layout in &run.layouts {
        assert_eq!(layout.roles.iter().map(|role| role.role.as_str()).collect::<Vec<_>>(), ["writer", "reader"]);
        assert!(layout.roles.iter().all(|role| role.lines_per_op == 1.0), "{}", layout.name);
        let measured = matches!(layout.state, LayoutState::Measured | LayoutState::Unresolved);
        assert!(measured || layout.gain.is_none(), "{} has a gain that nobody measured", layout.name);
    }
    // Each variant stands in the file that a user would make of it.
    let variants: String = run.layouts.iter().map(|layout| format!("{}\n", layout.variant)).collect();
    let all = Bench::new(&format!("{PACKED}\n{variants}"));
    let checked = coordinator().arg("check").arg(all.scenario()).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
}

#[test]
fn the_advice_is_never_a_layout_measured_slower() {
    let _alone = alone();
    let bench = Bench::new(PACKED);
    let output = advise(&bench, &["--json"]);
    assert_answered(&output);
    let run: AdviseRun = serde_json::from_slice(&output.stdout).unwrap();
    let advised = run.layouts.iter().find(|layout| layout.name == run.advice.layout).unwrap();
    if advised.name != "present" {
        assert_eq!(advised.verdict, Some(Verdict::Faster));
    }
    assert_eq!(advised.code_change, None);
    let slower = |role: &record::AdvisedRole| {
        role.verdict == Some(Verdict::Slower) || role.slowest_worker_verdict == Some(Verdict::Slower)
    };
    assert!(!advised.roles.iter().any(slower), "{advised:?}");
    assert_eq!(output.status.code(), Some(if run.advice.conclusive { 0 } else { 3 }));
}

#[test]
fn the_page_says_what_to_do_within_its_width() {
    let _alone = alone();
    let output = advise(&Bench::new(PACKED), &[]);
    assert_answered(&output);
    let page = stdout(&output);
    for part in ["Layouts, as measured", "Each role", "Advice", "Variant less:"] {
        assert!(page.contains(part), "{part} is not in:\n{page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
}

#[test]
fn the_struct_stands_alone_on_standard_output() {
    let _alone = alone();
    let bench = Bench::new(PACKED);
    let output = advise(&bench, &["--emit", "rust", "--name", "Counters"]);
    assert_answered(&output);
    let text = stdout(&output);
    assert!(text.starts_with("// Layout `") && text.contains("pub struct Counters {"), "{text}");
    assert!(text.contains("offset_of!(Counters, misses)") && text.contains("pub limit: u32"), "{text}");
    assert!(!text.contains("Layouts, as measured"), "{text}");
}

#[test]
fn a_counter_that_all_add_to_needs_other_code() {
    let _alone = alone();
    let bench = Bench::new(
        "[measure]\nwindow = \"10ms\"\n[field.total]\ntype = \"u64\"\n[[role]]\nname = \"counter\"\nworkers = 2\n\
         loop = [\"add total\"]\n",
    );
    let output = advise(&bench, &["--json"]);
    assert_answered(&output);
    let run: AdviseRun = serde_json::from_slice(&output.stdout).unwrap();
    let sharded = run.layouts.iter().find(|layout| layout.name == "sharded").unwrap();
    assert!(sharded.code_change.is_some() && sharded.offsets["total"].len() == 2, "{sharded:?}");
    assert_ne!(run.advice.layout, "sharded", "no layout");
    assert!(sharded.variant.contains("add total[me]"), "{}", sharded.variant);
}

#[test]
fn one_cpu_has_no_layout_to_measure() {
    let bench = Bench::new(QUICK);
    let on_one = |text: &str| {
        let bench = Bench::new(text);
        let mut command = Command::new("taskset");
        command.args(["-c", "0", env!("CARGO_BIN_EXE_coordinator"), "advise"]).arg(bench.scenario());
        command.output()
    };
    let Ok(output) = on_one(QUICK) else { return skip("taskset (util-linux) is not here") };
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("2 CPUs") && stdout(&output).is_empty(), "{}", stderr(&output));
    let output = on_one(&format!("oversubscribe = true\n{QUICK}")).unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("one CPU"), "{}", stderr(&output));
    drop(bench);
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_measured() {
    let bench = Bench::new(PACKED);
    let refused = |more: &[&str], said: &[&str]| {
        let output = coordinator().arg("advise").arg(bench.scenario()).args(more).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{more:?}: {}", stderr(&output));
        assert!(stdout(&output).is_empty());
        said.iter().for_each(|part| assert!(stderr(&output).contains(part), "{part}: {}", stderr(&output)));
    };
    refused(&["--present", "nwo"], &["nwo", "did you mean `now`", "`apart`"]);
    refused(&["--only", "nobody"], &["--only", "nobody"]);
    refused(&["--budget", "1s"], &["3s"]);
    refused(&["--budget", "soon"], &["60s"]);
    refused(&["--emit", "cobol"], &["cobol", "rust"]);
    refused(&["--emit", "c", "--name", "a b"], &["letters"]);
    refused(&["--cpus", "0,4000"], &["4000"]);
    let broken = Bench::new(&PACKED.replace("bump hits", "bump hots"));
    let output = coordinator().arg("advise").arg(broken.scenario()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("case.toml:") && stderr(&output).contains("hots"), "{}", stderr(&output));
}

#[test]
fn an_interrupt_ends_it_and_leaves_nobody_behind() {
    let _alone = alone();
    let bench = Bench::new(&PACKED.replace("10ms", "100ms"));
    let mut command = coordinator();
    command.arg("advise").arg(bench.scenario()).args(["--budget", "60s", "--quiet"]);
    let (child, workers) = in_a_window_for(command, Duration::from_millis(5));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    common::assert_gone(&workers, testing::A_LONG_TIME);
}

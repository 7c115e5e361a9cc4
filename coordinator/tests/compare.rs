//! `compare` on runs that the program made: what it tells apart, what it refuses, and how it ends.

mod common;

use common::{Bench, QUICK, alone, coordinator, stderr, stdout};
use record::{Asks, Comparison, Run, Verdict};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::LazyLock;

/// One worker that calculates for so long; another variant in which it always does the same. Nothing here hangs on how
/// many CPUs there are, or on who else uses them.
fn scenario(think: &str) -> String {
    format!(
        r#"
title = "Thinking"
question = "How long does it think?"
[measure]
window = "20ms"
warm_up = "1ms"
repetitions = 5
baselines = []
[field.hits]
type = "u64"
[[variant]]
name = "edited"
set = {{ "role.thinker.loop" = ["work {think}", "bump hits"] }}
[[variant]]
name = "left-alone"
set = {{ "role.thinker.loop" = ["work 300ns", "bump hits"] }}
[[role]]
name = "thinker"
workers = 1
latency = true
loop = ["work 300ns", "bump hits"]
"#
    )
}

/// Runs of the same scenario twice and of an edited one, made once.
struct Made {
    _benches: Vec<Bench>,
    before: PathBuf,
    again: PathBuf,
    after: PathBuf,
}

static MADE: LazyLock<Made> = LazyLock::new(|| {
    let _alone = alone();
    let texts = [scenario("200ns"), scenario("200ns"), scenario("2us")];
    let benches = texts.each_ref().map(|text| Bench::new(text));
    let [before, again, after] = benches.each_ref().map(|bench| {
        let output = bench.run().arg("--quiet").output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
        bench.only_result()
    });
    Made { _benches: benches.into(), before, again, after }
});

fn compare(runs: &[&Path], options: &[&str]) -> Output {
    coordinator().arg("compare").args(runs).args(options).output().unwrap()
}

fn compared(runs: &[&Path], options: &[&str]) -> Comparison {
    let output = compare(runs, options);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

fn read(run: &Path) -> Run {
    serde_json::from_slice(&std::fs::read(run.join("run.json")).unwrap()).unwrap()
}

/// A copy of a run that another host, say, could have made.
fn changed(run: &Path, change: impl Fn(&mut Value)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut value: Value = serde_json::from_slice(&std::fs::read(run.join("run.json")).unwrap()).unwrap();
    change(&mut value);
    std::fs::write(folder.path().join("run.json"), value.to_string()).unwrap();
    folder
}

#[test]
fn an_edit_of_the_scenario_shows_where_it_was_made() {
    let seen = compared(&[&MADE.before, &MADE.after], &["--json"]);
    let variants: Vec<&str> = seen.rows.iter().map(|row| row.variant.as_str()).collect();
    assert_eq!(variants, ["edited", "left-alone"]);
    assert_eq!(seen.pairs[0].asks, Asks::Change);
    let edited = &seen.rows[0];
    // Where noise spoiled a run there is no ratio, and nothing is claimed.
    match edited.ratio {
        Some(ratio) => {
            assert!((5.0..15.0).contains(&ratio.median), "{ratio:?}");
            assert!(matches!(edited.verdict, Verdict::Slower | Verdict::Unresolved), "{edited:?}");
        }
        None => assert_eq!(edited.verdict, Verdict::Unresolved),
    }
    let differ: Vec<&str> = seen.pairs[0].differences.iter().map(|one| one.what.as_str()).collect();
    assert!(differ.contains(&"scenario's text (SHA-256)"), "{differ:?}");
    let latency = edited.percentiles["latency_ns"];
    let own = |run: &Path| read(run).arms[0].roles[0].latency_ns.unwrap();
    assert_eq!((latency.base, latency.run), (own(&MADE.before), own(&MADE.after)));
}

#[test]
fn the_same_scenario_again_has_the_runs_own_figures_and_intervals_around_one() {
    let seen = compared(&[&MADE.before, &MADE.again], &["--json"]);
    let (before, again) = (read(&MADE.before), read(&MADE.again));
    for (index, row) in seen.rows.iter().enumerate() {
        let figure = |run: &Run| run.arms[index].roles[0].ns_per_op;
        assert_eq!((row.ns_per_op.base, row.ns_per_op.run), (figure(&before), figure(&again)));
        let Some((ratio, measured)) = row.ratio.zip(row.measured_ratio) else { continue };
        let medians = figure(&again).unwrap().median / figure(&before).unwrap().median;
        assert!((ratio.median - medians).abs() < 1e-9, "{ratio:?}");
        assert!(ratio.low <= measured.low && measured.high <= ratio.high, "{row:?}");
        let holds_one = ratio.low <= 1.0 && 1.0 <= ratio.high;
        assert!(holds_one || row.verdict != Verdict::NoDifference, "{row:?}");
        assert!(!holds_one || matches!(row.verdict, Verdict::NoDifference | Verdict::Unresolved), "{row:?}");
    }
    assert!(seen.pairs[0].differences.iter().all(|one| !one.what.starts_with("scenario")), "{:?}", seen.pairs);
}

#[test]
fn variants_of_one_run_have_the_ratios_that_the_run_printed() {
    let run = read(&MADE.after);
    let best = run.arms.iter().find(|arm| arm.ratio_to_best.is_some_and(|ratio| ratio.low == 1.0 && ratio.high == 1.0));
    let Some(best) = best else { return assert!(run.arms[..2].iter().any(|arm| arm.ratio_to_best.is_none())) };
    let seen = compared(&[&MADE.after], &["--base", &best.name, "--json"]);
    let other = run.arms.iter().find(|arm| arm.name == seen.rows[0].variant).unwrap();
    assert_eq!((seen.rows.len(), seen.rows[0].ratio), (1, other.ratio_to_best));
    assert_eq!(seen.pairs[0].asks, Asks::Variants);
}

/// Two variants of false sharing that change places: where each run could tell them apart, so can the comparison.
#[test]
fn layouts_that_change_places_change_what_they_cost() {
    let swapped = QUICK.replace("placement = \"packed\"", "placement = { pad = 0 }");
    let swapped = swapped.replace("{ pad = 128 }", "\"packed\"").replace("{ pad = 0 }", "{ pad = 128 }");
    let (before, after) = {
        let _alone = alone();
        let benches = [Bench::new(QUICK), Bench::new(&swapped)];
        for bench in &benches {
            let output = bench.run().args(["--quiet", "--repetitions", "6"]).output().unwrap();
            assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
        }
        let [before, after] = benches;
        (before, after)
    };
    let (base, run) = (before.only_result(), after.only_result());
    let seen = compared(&[&base, &run], &["--json"]);
    let costs = |run: &Path, arm: usize| read(run).arms[arm].ratio_to_best.is_some_and(|ratio| ratio.low > 3.0);
    for (arm, towards) in [(0, Verdict::Faster), (1, Verdict::Slower)] {
        let verdict = seen.rows[arm].verdict;
        if costs(&base, 0) && costs(&run, 1) {
            assert!(verdict == towards || verdict == Verdict::Unresolved, "{:?}", seen.rows[arm]);
        }
    }
    let bytes: Vec<(u64, u64)> = seen.rows.iter().map(|row| (row.bytes.base, row.bytes.run)).collect();
    assert_eq!(bytes, [(16, 256), (256, 16)]);
    let layout = seen.pairs[0].differences.iter().find(|one| one.what == "layout of packed").unwrap();
    assert_eq!(layout.base.as_deref(), Some("16 bytes: hits[0] at 0, hits[1] at 8"));
    assert_eq!(layout.run.as_deref(), Some("256 bytes: hits[0] at 0, hits[1] at 128"));
}

#[test]
fn json_begins_with_its_version_and_names_what_the_contract_names() {
    let output = compare(&[&MADE.before, &MADE.after], &["--json"]);
    let text = stdout(&output);
    assert!(text.starts_with("{\n  \"schema_version\": 1,\n  \"rows\": ["), "{text}");
    let value: Value = serde_json::from_str(&text).unwrap();
    let verdicts = ["faster", "slower", "no_difference", "unresolved"].map(Value::from);
    for row in value["rows"].as_array().unwrap() {
        assert!(row["variant"].is_string() && row["role"].is_string() && verdicts.contains(&row["verdict"]), "{row}");
        assert!(row["ratio"].is_null() || row["ratio"]["low"].is_f64(), "{row}");
    }
}

/// Ends by the conditions alone: 1 where one fails, 3 where none fails and one is undecided, else 0.
#[test]
fn the_exit_status_is_that_of_the_conditions() {
    let row = &compared(&[&MADE.before, &MADE.after], &["--json"]).rows[0];
    let state = |limit: &str, options: &[&str]| {
        let condition = format!("edited thinker slower {limit}");
        let options = [&["--fail-if", condition.as_str()], options].concat();
        let output = compare(&[&MADE.before, &MADE.after], &options);
        (output.status.code().unwrap(), stdout(&output))
    };
    let (code, page) = state("20%", &[]);
    let expected = match (row.ratio, row.verdict) {
        (Some(ratio), Verdict::Slower) if ratio.low > 1.2 => (1, "fails"),
        _ => (3, "undecided"),
    };
    assert!(
        code == expected.0 && page.contains(&format!("{}: edited thinker slower 20%", expected.1)),
        "{code}: {page}"
    );
    if let Some(ratio) = row.ratio {
        let beyond = format!("{}%", (ratio.high * 100.0).ceil());
        assert_eq!(state(&beyond, &[]).0, 0);
        // One that fails outweighs one that passes.
        let both = ["--fail-if", "edited slower 20%"];
        assert_eq!(state(&beyond, &both).0, expected.0);
    }
    let markdown = state("20%", &["--markdown"]).1;
    assert!(markdown.contains(&format!("- **{}**: edited thinker slower 20%", expected.1)), "{markdown}");
}

#[test]
fn files_of_many_hosts_have_rows_by_host() {
    let there = |name: &'static str| changed(&MADE.again, move |run| run["host"]["hostname"] = json!(name));
    let (one, two) = (there("node17"), there("node18"));
    let file = one.path().join("run.json");
    let seen = compared(&[&MADE.before, &file, two.path()], &["--json"]);
    let hosts: Vec<(&str, Asks)> =
        seen.pairs.iter().map(|pair| (seen.runs[pair.run].host.as_str(), pair.asks)).collect();
    assert_eq!(hosts, [("node17", Asks::Hosts), ("node18", Asks::Hosts)]);
    assert_eq!(
        seen.rows.iter().map(|row| row.host.as_str()).collect::<Vec<_>>(),
        ["node17", "node17", "node18", "node18"]
    );
    let page = stdout(&compare(&[&MADE.before, &file, two.path()], &[]));
    assert!(page.contains("node17") && page.contains("node18") && page.contains("2: "), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
}

#[test]
fn what_cannot_be_compared_is_refused_with_what_to_do() {
    let refused = |runs: &[&Path], options: &[&str], parts: &[&str]| {
        let output = compare(runs, options);
        let said = stderr(&output);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{parts:?} in {said}");
    };
    let before: &Path = &MADE.before;
    refused(&[before, before], &[], &["are the same run"]);
    let copy = changed(before, |_| {});
    refused(&[before, copy.path()], &[], &["are the same run"]);
    refused(&[before], &[], &["is the only run", "--base ARM (edited, left-alone)"]);
    refused(&[before], &["--base", "edted"], &["no such arm", "did you mean `edited`?"]);
    refused(&[before, &MADE.after], &["--fail-if", "edited slower"], &["--fail-if 'edited slower'", "ARM [ROLE]"]);
    refused(&[before, &MADE.after], &["--fail-if", "edted slower 5%"], &["did you mean `edited`?"]);
    let other = changed(before, |run| {
        run["seed"] = json!(1);
        for arm in run["arms"].as_array_mut().unwrap() {
            arm["name"] = json!(format!("my {}", arm["name"].as_str().unwrap()));
        }
    });
    refused(&[before, other.path()], &[], &["no variant in common", "my edited"]);
}

#[test]
fn files_that_are_no_runs_say_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let said = |text: &[u8]| {
        let path = folder.path().join("other.json");
        std::fs::write(&path, text).unwrap();
        let output = compare(&[&MADE.before, &path], &[]);
        assert_eq!(output.status.code(), Some(2));
        stderr(&output)
    };
    let whole = std::fs::read(MADE.before.join("run.json")).unwrap();
    assert!(said(&whole[..whole.len() / 2]).contains("ends in the middle"));
    assert!(said(b"{\"schema_version\": 2, \"tool\": {\"version\": \"9.0.0\"}}").contains("read it with the program"));
    assert!(said(b"{\"schema_version\": 1, \"checks\": []}").contains("is no run's record"));
    assert!(said(b"name,value\n").contains("is no JSON"));
    let output = compare(&[&MADE.before, folder.path()], &[]);
    assert!(stderr(&output).contains("holds no run.json"), "{}", stderr(&output));
}

/// A record of an earlier version of the lab lacks what was added since; it is compared by what it has.
#[test]
fn a_record_from_before_is_still_read() {
    let old = changed(&MADE.again, |run| {
        let method = run["method"].as_object_mut().unwrap();
        method.remove("lock_timing");
        for regime in method["regimes"].as_array_mut().unwrap() {
            regime.as_object_mut().unwrap().remove("costs");
        }
        for arm in run["arms"].as_array_mut().unwrap() {
            arm.as_object_mut().unwrap().remove("regime");
        }
        run.as_object_mut().unwrap().remove("events");
    });
    let (whole, seen) =
        (compared(&[&MADE.before, &MADE.again], &["--json"]), compared(&[&MADE.before, old.path()], &["--json"]));
    let measured = |comparison: &Comparison| comparison.rows.iter().map(|row| row.measured_ratio).collect::<Vec<_>>();
    assert_eq!(measured(&seen), measured(&whole));
}

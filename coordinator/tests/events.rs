//! The user's own events, from the scenario and from the command line, to the record of the run.

mod common;

use common::{Bench, QUICK, alone, coordinator, skip, stderr, stdout};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

/// The run's JSON; the run may be inconclusive on a busy machine.
#[track_caller]
fn run(bench: &Bench, arguments: &[&str]) -> Value {
    let output = bench.run().args(["--json", "--quiet", "--only", "packed"]).args(arguments).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// What the workers of `packed` read under that name.
#[track_caller]
fn measured<'a>(run: &'a Value, name: &str) -> &'a Value {
    let arm = run["arms"].as_array().unwrap().iter().find(|arm| arm["name"] == "packed").unwrap();
    let counters = &arm["roles"][0]["counters"];
    assert!(counters[name].is_object(), "no `{name}` in {counters}");
    &counters[name]["measured"]
}

#[track_caller]
fn assert_refused(output: &Output, parts: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} is not in:\n{text}"));
}

fn with_events(events: &str) -> String {
    QUICK.replace("repetitions = 3", &format!("repetitions = 3\nevents = {events}"))
}

#[test]
fn a_software_event_and_a_tracepoint_are_counted_in_the_window() {
    let tracefs = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let sleeping = "syscalls/sys_enter_clock_nanosleep/id";
    if !tracefs.iter().any(|folder| std::fs::read(Path::new(folder).join("events").join(sleeping)).is_ok()) {
        return skip("tracefs is not mounted, or not readable for this user");
    }
    let _alone = alone();
    let scenario = with_events("['cpu-clock:u, syscalls:sys_enter_clock_nanosleep']")
        .replace("\"bump hits[me]\"", "\"bump hits[me]\", \"sleep 100us\"")
        + "[[expect]]\nclaim = \"ns_per_op(packed) >= 0\"\n";
    let run = run(&Bench::new(&scenario), &[]);
    let clock = measured(&run, "cpu-clock:u");
    assert_eq!(clock["state"], "counted", "{clock}");
    let sleeps = measured(&run, "syscalls:sys_enter_clock_nanosleep");
    if sleeps["state"] == "denied" {
        return skip(&format!("tracepoints may not be counted: {}", sleeps["why"]));
    }
    // Each pass sleeps once, and a pass or two straddle the window's edges.
    let per_pass = sleeps["per_op"].as_f64().unwrap_or_else(|| panic!("{sleeps}"));
    assert!((0.5..=1.5).contains(&per_pass), "{sleeps}");
    let event = run["events"].as_array().unwrap().iter().find(|event| event["name"] == "cpu-clock:u").unwrap();
    assert_eq!((&event["event"], &event["counted_by"]), (&Value::from("cpu-clock:u"), &Value::from("kernel")));
}

#[test]
fn what_the_processor_lacks_is_a_reading_and_no_error() {
    let _alone = alone();
    let bench = Bench::new(&with_events("'cache-misses:u'"));
    let run = run(&bench, &["--events", "cpu/event=0x1,name=mine/", "--events", "cpu_none/event=1/u"]);
    let mine = measured(&run, "mine");
    match Path::new("/sys/bus/event_source/devices/cpu").exists() {
        true => assert!(mine["state"].is_string()),
        false => {
            assert_eq!((&mine["state"], &mine["value"]), (&Value::from("unsupported"), &Value::Null), "{mine}");
        }
    }
    let none = measured(&run, "cpu_none/event=1/u");
    assert_eq!(none["state"], "unsupported", "{none}");
    let names: Vec<&Value> = run["events"].as_array().unwrap().iter().map(|event| &event["name"]).collect();
    assert!(!names.contains(&&Value::from("cache-misses:u")), "the flag replaces the scenario's: {names:?}");
}

#[test]
fn an_unknown_name_is_refused_where_it_stands_with_the_nearest() {
    let bench = Bench::new(&with_events("['faults, cache-mises']"));
    for arguments in [&[][..], &["--dry-run"]] {
        let parts = ["case.toml:8:", "'faults, cache-mises'", "did you mean `cache-misses`?"];
        assert_refused(&bench.run().args(arguments).output().unwrap(), &parts);
    }
    let bench = Bench::new(QUICK);
    let parts = ["--events \"faults,cache-mises\"", "did you mean `cache-misses`?"];
    assert_refused(&bench.run().args(["--events", "faults,cache-mises"]).output().unwrap(), &parts);
    assert_refused(
        &bench.run().args(["--events", "context-switches:u"]).output().unwrap(),
        &["would always be 0", "without :u"],
    );
    assert!(!bench.results().exists(), "nothing is created");
}

#[test]
fn a_bad_spelling_is_refused_by_check_and_by_a_dry_run() {
    let bench = Bench::new(&with_events("'cpu/event=0xd1'"));
    let check = coordinator().arg("check").arg(bench.scenario()).output().unwrap();
    assert_refused(&check, &["case.toml:8:11", "needs two slashes"]);
    assert_refused(&bench.run().arg("--dry-run").output().unwrap(), &["case.toml:8:11", "needs two slashes"]);
    let twice = Bench::new(QUICK).run().args(["--dry-run", "--events", "r1", "--events", "r1"]).output().unwrap();
    assert_refused(&twice, &["two events would be called `r1`", "--events [\"r1\", \"r1\"]"]);
}

#[test]
fn a_claim_on_an_event_of_the_user_s_is_judged() {
    let _alone = alone();
    let claim =
        "\n[[expect]]\nclaim = \"faults_per_second(packed) >= 0\"\n[[expect]]\nclaim = \"mine_per_op(packed) >= 0\"\n";
    let events = with_events("['faults:u', 'cpu/event=0x1,name=mine/u']");
    let unnamed = Bench::new(&(events.clone() + claim)).run().arg("--dry-run").output().unwrap();
    assert_refused(&unnamed, &["unknown metric `faults_per_second`", "mine"]);
    let run = run(&Bench::new(&(events.replace("faults:u", "faults") + claim)), &[]);
    let states: Vec<&str> = run["expect"].as_array().unwrap().iter().map(|e| e["state"].as_str().unwrap()).collect();
    let faults = measured(&run, "faults")["state"].as_str().unwrap();
    let expected = if faults == "counted" { "holds" } else { "not_applicable" };
    assert_eq!(states[0], expected, "{faults}: {}", run["expect"]);
    if measured(&run, "mine")["state"] == "unsupported" {
        assert_eq!(states[1], "not_applicable");
    }
}

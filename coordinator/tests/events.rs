//! The user's own events, from the scenario and from the command line, to the record of the run.

mod common;

use common::{Bench, QUICK, alone, coordinator, stderr, stdout};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::process::Output;
use testing::skip;

/// What one run left: its record, and a row for each worker of each repetition, spoiled ones included: counts do not
/// depend on how busy the machine was, but what the record sums up does.
struct Ran {
    record: Value,
    rows: Vec<HashMap<String, String>>,
}

impl Ran {
    #[track_caller]
    fn of(bench: &Bench, arguments: &[&str]) -> Ran {
        let output = bench.run().args(["--json", "--quiet", "--only", "packed"]).args(arguments).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{}", stderr(&output));
        let record = serde_json::from_str(&stdout(&output)).unwrap();
        let samples = csv::Reader::from_path(bench.only_result().join("samples.csv")).unwrap();
        let rows: Vec<HashMap<String, String>> = samples.into_deserialize().map(Result::unwrap).collect();
        assert!(!rows.is_empty());
        Ran { record, rows }
    }

    /// The one state in which every reading of that name is, and the values.
    #[track_caller]
    fn readings(&self, name: &str) -> (&str, Vec<u64>) {
        let state = |row: &'_ HashMap<String, String>| row.get(&format!("{name}_state")).cloned();
        let first =
            self.rows[0].get(&format!("{name}_state")).unwrap_or_else(|| panic!("no `{name}` in {:?}", self.rows[0]));
        assert!(self.rows.iter().all(|row| state(row).as_ref() == Some(first)), "{name} in several states");
        (first, self.rows.iter().filter_map(|row| row[name].parse().ok()).collect())
    }

    /// What the record says of the event.
    #[track_caller]
    fn event(&self, name: &str) -> &Value {
        let events = self.record["events"].as_array().unwrap();
        events.iter().find(|event| event["name"] == name).unwrap_or_else(|| panic!("no `{name}` in {events:?}"))
    }
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
    let ran = Ran::of(&Bench::new(&scenario), &[]);
    let (state, clock_ns) = ran.readings("cpu-clock:u");
    assert!(state == "counted" && !clock_ns.is_empty() && clock_ns.iter().all(|ns| *ns > 0), "{state} {clock_ns:?}");
    let (state, sleeps) = ran.readings("syscalls:sys_enter_clock_nanosleep");
    if state == "denied" {
        return skip("tracepoints may not be counted by this user");
    }
    // Each pass sleeps once; a pass that begins before the window or ends behind it has its sleep on either side.
    for (row, sleeps) in ran.rows.iter().zip(&sleeps) {
        let passes: u64 = row["passes"].parse().unwrap();
        assert!(sleeps.abs_diff(passes) <= 2, "{sleeps} sleeps in {passes} passes");
    }
    let event = ran.event("cpu-clock:u");
    assert_eq!((&event["event"], &event["counted_by"]), (&Value::from("cpu-clock:u"), &Value::from("kernel")));
}

#[test]
fn what_the_processor_lacks_is_a_reading_and_no_error() {
    let _alone = alone();
    let bench = Bench::new(&with_events("'cache-misses:u'"));
    let ran = Ran::of(&bench, &["--events", "cpu/config=0x1,name=mine/u", "--events", "cpu_none/event=1/u"]);
    let (state, values) = ran.readings("mine");
    if state != "counted" && state != "scaled" {
        assert_eq!(values, [0; 0], "what was not counted has no value, not even 0");
    }
    let cores = ["cpu", "cpu_core", "armv8_pmuv3", "armv8_pmuv3_0"];
    if !cores.iter().any(|name| Path::new("/sys/bus/event_source/devices").join(name).exists()) {
        assert_eq!(state, "unsupported");
    }
    assert_eq!(ran.readings("cpu_none/event=1/u"), ("unsupported", vec![]));
    assert_eq!(ran.event("mine")["event"], "cpu/config=0x1,name=mine/u");
    assert!(!ran.rows[0].contains_key("cache-misses:u"), "the flag replaces the scenario's");
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
    let claims = "\n[[expect]]\nclaim = \"clock_per_second(packed) >= 1\"\n\
                  [[expect]]\nclaim = \"mine_per_op(packed) >= 0\"\n";
    let with = |events: &str| Bench::new(&(with_events(events) + claims));
    let unnamed = with("['software/config=0/', 'cpu/config=0x1,name=mine/u']").run().arg("--dry-run").output().unwrap();
    assert_refused(&unnamed, &["unknown metric `clock_per_second`", "mine"]);
    let ran = Ran::of(&with("['software/config=0,name=clock/u', 'cpu/config=0x1,name=mine/u']"), &[]);
    let packed = ran.record["arms"].as_array().unwrap().iter().find(|arm| arm["name"] == "packed").unwrap();
    for (at, name) in [(0, "clock"), (1, "mine")] {
        let outcome = &ran.record["expect"][at];
        match (packed["state"].as_str(), ran.readings(name).0) {
            (Some("measured"), "counted" | "scaled") => assert_eq!(outcome["state"], "holds", "{name}: {outcome}"),
            (Some("measured"), _) => assert_eq!(outcome["state"], "not_applicable", "{name}: {outcome}"),
            // The machine left too few repetitions in peace for a judgement.
            _ => assert_ne!(outcome["state"], "holds", "{name}: {outcome}"),
        }
    }
}

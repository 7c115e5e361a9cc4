//! What a run leaves says of every count where it comes from: in its JSON, in its rows and on its page.

mod common;
#[path = "common/sources.rs"]
mod sources;

use common::{Bench, QUICK, alone, stderr, stdout};
use record::Run;
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn every_count_that_a_run_leaves_has_its_source() {
    let _alone = alone();
    let bench = Bench::new(QUICK);
    let output = bench.run().arg("--quiet").output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{:?}: {}", output.status, stderr(&output));
    let folder = bench.only_result();
    let text = std::fs::read_to_string(folder.join("run.json")).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(sources::unsourced(&json), Vec::<String>::new());

    let run: Run = serde_json::from_value(json).unwrap();
    let explained: BTreeSet<&str> = run.events.iter().map(|event| event.name.as_str()).collect();
    let read: BTreeSet<&str> = run.observations.iter().flat_map(|o| o.counters.keys()).map(String::as_str).collect();
    assert!(!read.is_empty() && read.is_subset(&explained), "{read:?} against {explained:?}");
    rows_say_the_state(&folder.join("samples.csv"), &read);
    the_page_says_its_sources(&stdout(&output), &run);
}

/// A figure stands in a row of `samples.csv` where the state beside it is one that has figures, and nowhere else.
fn rows_say_the_state(path: &std::path::Path, counters: &BTreeSet<&str>) {
    let mut rows = csv::Reader::from_path(path).unwrap();
    let heads = rows.headers().unwrap().clone();
    let at = |name: &str| heads.iter().position(|head| head == name).unwrap_or_else(|| panic!("no column {name}"));
    let pairs: Vec<(usize, usize)> = counters.iter().map(|name| (at(name), at(&format!("{name}_state")))).collect();
    let mut seen = 0;
    for row in rows.records() {
        let row = row.unwrap();
        for (figure, state) in &pairs {
            let has_figure = matches!(&row[*state], "counted" | "scaled");
            assert_eq!(!row[*figure].is_empty(), has_figure, "{} of {row:?}", &heads[*figure]);
        }
        seen += 1;
    }
    assert!(seen > 0);
}

/// Each table of counts says in its heading that they are measured, or modelled; and that where a model ran alone.
fn the_page_says_its_sources(page: &str, run: &Run) {
    let modelled = run.arms.iter().any(|arm| arm.modelled.is_some());
    assert_eq!(page.contains("\nModelled: computed from the program"), modelled, "{page}");
    let counted = |name: &str| {
        let mut roles = run.arms.iter().flat_map(|arm| &arm.roles);
        roles.any(|role| role.counters.get(name).is_some_and(|c| c.measured.per_op.is_some_and(|n| n > 0.0)))
    };
    let sections: Vec<&str> = page.split("\n\n").collect();
    let mut tables = 0;
    for section in &sections {
        let (heading, rest) = section.split_once('\n').unwrap_or((section, ""));
        let units = rest.lines().any(|line| line.split_whitespace().any(|word| ["/op", "/s"].contains(&word)));
        let says = heading.ends_with("as measured") || heading.starts_with("Modelled: computed");
        assert!(!units || says, "{section}");
        tables += usize::from(heading.starts_with("Counted by"));
    }
    assert!(tables > 0 || !counted("task_clock"), "what was counted is shown:\n{page}");
}

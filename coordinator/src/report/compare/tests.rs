//! The page and the Markdown, on comparisons made by hand.

use super::{markdown, render};
use crate::report::style::Style;
use crate::report::testing::{self, interval};
use crate::report::text::columns;
use analysis::compare::NamedRun;
use record::{
    Asks, Both, Comparison, ConditionOutcome, ConditionRow, ConditionState, Difference, Percentiles, Run, Side,
    Unmatched, Verdict,
};

/// Runs of a mutex, one a host, with figures in every row.
fn compared(hosts: &[&str]) -> Comparison {
    let run = |(index, host): (usize, &&str)| {
        let mut run = testing::mutex();
        (run.seed, run.host.hostname) = (index as u64, (*host).to_owned());
        run.scenario.sha256 = if index == 0 { "ab".repeat(32) } else { "cd".repeat(32) };
        run
    };
    let runs: Vec<Run> = hosts.iter().enumerate().map(run).collect();
    let paths: Vec<String> = (0..runs.len()).map(|index| format!("results/mutex/{index}/run.json")).collect();
    let named: Vec<NamedRun> = runs.iter().zip(&paths).map(|(run, path)| NamedRun { path, run }).collect();
    let mut comparison = analysis::compare::compare(&named, None).unwrap();
    let verdicts = [Verdict::Slower, Verdict::Faster, Verdict::NoDifference].into_iter().cycle();
    for (row, verdict) in comparison.rows.iter_mut().zip(verdicts) {
        (row.verdict, row.why) = (verdict, None);
        row.ratio = Some(interval(1.213, 1.187, 1.244));
        row.smallest_effect = Some(0.0312);
    }
    comparison
}

/// A row that nothing could be told of, everything that can stand beside one, and a name that does no good.
fn full() -> Comparison {
    let mut comparison = compared(&["vm"; 2]);
    let row = &mut comparison.rows[1];
    (row.verdict, row.ratio) = (Verdict::Unresolved, None);
    row.why = Some("`padded-64` of the run has no figure: 2 repetitions counted".to_owned());
    let times = Percentiles { count: 9, min: 1, mean: 2.0, p50: 41, p90: 42, p99: 97, p999: 43_210, max: 6 };
    comparison.rows[0].percentiles.insert("latency_ns".to_owned(), Both { base: times, run: times });
    for (name, base, run) in [("l1d_load_misses", 0.5, 1.5), ("page_faults", 0.0001, 0.0002)] {
        comparison.rows[0].counters.insert(name.to_owned(), Both { base, run });
    }
    let pair = &mut comparison.pairs[0];
    pair.differences.insert(
        0,
        Difference {
            what: "kernel".to_owned(),
            base: Some("6.1\u{1b}[31m|<b>".to_owned()),
            run: None,
            matters: Some("all of it".to_owned()),
        },
    );
    pair.unmatched.push(Unmatched { what: "spread".to_owned(), only_in: Side::Run });
    let row = |row, state| ConditionRow { row, state, why: "1.21 times as long".to_owned() };
    comparison.conditions = vec![ConditionOutcome {
        condition: "packed slower 5%".to_owned(),
        state: ConditionState::Fails,
        rows: vec![row(0, ConditionState::Fails), row(1, ConditionState::Passes)],
    }];
    comparison
}

fn page(comparison: &Comparison, width: usize) -> String {
    render(comparison, &Style::plain(width)).replace('\u{a0}', " ")
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for comparison in [full(), compared(&["one", "two", "three"])] {
        for width in [24, 40, 60, 80, 120] {
            for line in page(&comparison, width).lines() {
                assert!(columns(line) <= width, "{width} columns: {line:?}");
            }
        }
    }
}

#[test]
fn the_ratios_are_a_table_at_eighty_columns() {
    let page = page(&full(), 80);
    for line in [
        "How many times as long a pass of counter takes",
        "variant             ns/op          ns/op   (interval)  (told from)",
        "packed                 23             23         1.21  slower",
        "                  (22–24)        (22–24)  (1.19–1.24)  (3.1 %)",
        "[1] `padded-64` of the run has no figure: 2 repetitions counted",
    ] {
        assert!(page.lines().any(|seen| seen.trim_end() == line), "{line:?} is not in:\n{page}");
    }
    assert!(page.contains("unresolved[1]") && page.contains("1, base: results/mutex/0/run.json; host vm"), "{page}");
}

#[test]
fn what_stands_beside_and_what_differs_is_told() {
    let page = page(&full(), 80);
    for part in [
        "l1d_load_misses/op",
        "latency p99.9 ns    43 210",
        "m (pthread)",
        "wait p99 ns",
        "kernel: 6.1\\u{1b}[31m|<b> in the base, not known in this run; all of it",
        "scenario's text (SHA-256): abababababab in the base, cdcdcdcdcdcd in this run",
        "spread: in this run only",
        "fails: packed slower 5%",
        "packed, counter: 1.21 times as long",
    ] {
        assert!(page.contains(part), "{part:?} is not in:\n{page}");
    }
    assert!(!page.contains("page_faults"), "a count of interrupts' doing stands in the JSON");
    assert!(!page.contains("padded-64, counter: 1.21"), "the rows that decide a condition are shown");
}

#[test]
fn many_hosts_have_a_row_each() {
    let comparison = compared(&["one", "two", "three"]);
    let page = page(&comparison, 120);
    for line in ["two    packed", "three  padded-64"] {
        assert!(page.contains(line), "{line:?} is not in:\n{page}");
    }
    let one = compared(&["vm"; 2]);
    assert_eq!(one.pairs[0].asks, Asks::Change);
    assert!(!self::page(&one, 120).contains("2/1"), "one pair needs no name");
    let several = self::page(&compared(&["vm"; 3]), 120);
    assert!(several.contains("2/1  packed") && several.contains("3/1  padded-64"), "{several}");
}

#[test]
fn roles_stand_with_their_variants() {
    let mut comparison = compared(&["one", "two", "three"]);
    comparison.rows.iter_mut().step_by(2).for_each(|row| row.role = "reader".to_owned());
    let page = page(&comparison, 80);
    assert!(page.contains("How many times as long a pass takes\n"), "{page}");
    let row = page.lines().position(|line| line.starts_with("two    packed ")).unwrap();
    assert!(page.lines().nth(row + 1).unwrap().starts_with("       (reader) "), "{page}");
    assert!(markdown::render(&comparison).contains("| two | packed | reader |"));
}

#[test]
fn markdown_is_a_table_that_obeys_nothing_in_it() {
    let page = markdown::render(&full()).replace('\u{a0}', " ");
    for line in [
        "### Compared: Two processes, one lock",
        "- **fails**: packed slower 5%",
        "| variant | base ns/op | this ns/op | ratio (95 %) | verdict | told from |",
        "| :-- | --: | --: | --: | :-- | --: |",
        "| packed | 23 (22–24) | 23 (22–24) | 1.21 (1.19–1.24) | slower | 3.1 % |",
        "| packed | counter | l1d\\_load\\_misses/op | 0.5 | 1.5 | 3 |",
        "- kernel: 6.1\\\\u{1b}\\[31m\\|\\<b\\> in the base, not known in this run; **all of it**",
        "- spread: in this run only",
        "</details>",
    ] {
        assert!(page.lines().any(|seen| seen == line), "{line:?} is not in:\n{page}");
    }
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    let table: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).take(5).collect();
    assert!(table.iter().all(|line| bars(line) == bars(table[0])), "{table:?}");
}

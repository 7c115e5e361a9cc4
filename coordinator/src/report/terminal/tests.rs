//! The whole page, on runs made by hand.

use super::render;
use crate::report::style::{ColourChoice, Style};
use crate::report::testing;
use crate::report::text::columns;
use record::Run;
use std::path::Path;

fn page(run: &Run, width: usize) -> String {
    let results = Path::new("results/false_sharing/2026-11-24T12-34-56Z");
    render(run, Some(results), &Style::plain(width)).replace('\u{a0}', " ")
}

/// Words in order, wherever lines break.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn every_run() -> [Run; 5] {
    [testing::false_sharing(), testing::mutex(), testing::every_reading(), testing::poor(), testing::modelled()]
}

/// The lines from a heading to the next blank one.
fn section<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    page.lines().skip_while(|line| !line.starts_with(heading)).take_while(|line| !line.is_empty()).collect()
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for run in every_run() {
        for width in [24, 40, 60, 80, 120] {
            for line in page(&run, width).lines() {
                assert!(columns(line) <= width, "{width} columns: {line:?}");
            }
        }
    }
}

#[test]
fn tables_are_tables_at_eighty_columns_and_blocks_at_forty() {
    for run in every_run() {
        let wide = page(&run, 80);
        let table = section(&wide, "Variants");
        assert!(table[1..4].iter().any(|line| line.contains("ratio to best")), "{table:?}");
        assert!(table[3].starts_with("variant  ") && table[4].starts_with('─'), "{table:?}");
        let narrow = page(&run, 40);
        let block = section(&narrow, "Variants");
        assert_eq!(block[1], "packed");
        assert!(block[3].starts_with("  ns/op") && block[3].contains("23 (22–24)"), "{block:?}");
    }
}

#[test]
fn width_changes_where_words_stand_not_which() {
    for run in every_run() {
        for wanted in ["23", "(22–24)", "57.3 ns one way", "cache line", "--seed 42", "lost time"] {
            for width in [60, 80, 120] {
                let shown = flat(&page(&run, width));
                let absent = wanted == "57.3 ns one way" && run.method.headline_regime.is_none()
                    || wanted == "cache line" && !run.scenario.question.contains("cache line");
                assert!(absent || shown.contains(wanted), "{wanted} at {width}:\n{shown}");
            }
        }
    }
}

#[test]
fn the_first_screen_answers_the_question() {
    let page = page(&testing::false_sharing(), 80);
    let lines: Vec<&str> = page.lines().collect();
    assert_eq!(lines[0], "False sharing");
    assert!(page.contains("Host: AMD EPYC 7B13; CPUs 0, 1 of 2; virtual machine (KVM)"), "{page}");
    let best = section(&page, "Variants").into_iter().find(|line| line.starts_with("padded-64")).unwrap();
    assert_eq!(
        best.split_whitespace().collect::<Vec<_>>(),
        ["padded-64", "128", "0.332", "(0.329–0.335)", "1", "10/10", "–[1]", "–[1]"]
    );
    let shown = flat(&page);
    for wanted in [
        "Line transfer 57.3 ns one way, contended pass 22.9 ns; 58 of 60 repetitions; smallest \
         effect this run could have seen: 3.1 %.",
        "false sharing (high): hits[0] and hits[1] are written by different workers",
        "missing: L1D load misses per op (this machine has no hardware counters)",
        "gain measured in this run: 70 (65–74) ×, with padded-64",
        "holds: ns_per_op(packed) >= 3 * ns_per_op(padded-64) seen 70 (65–74);",
        "no_pmu: this machine has no hardware counters",
        "Lost co-running time, left out of the figures: packed 3.1 %,",
        "Spoiled repetitions, reported but not counted: 1 of packed (lost time).",
        "results/false_sharing/2026-11-24T12-34-56Z",
    ] {
        assert!(shown.contains(wanted), "{wanted}\n{page}");
    }
    assert!(section(&page, "Other regimes").iter().any(|line| flat(line) == "packed 214 2.04 2.04 1"), "{page}");
    assert!(section(&page, "Each worker's rate").iter().any(|line| line.contains("51 %") && line.contains("1.00")));
}

#[test]
fn references_stand_apart_from_the_variants() {
    let page = page(&testing::false_sharing(), 80);
    let table = section(&page, "Variants");
    let at = |name: &str| table.iter().position(|line| line.starts_with(name)).unwrap();
    let apart = at("references");
    assert!(at("padded-128") < apart && apart < at("solo:counter") && at("solo:counter") < at("control"));
    assert!(table[apart - 1].chars().all(|c| c == '─'));
}

#[test]
fn a_count_that_could_not_be_taken_is_never_zero() {
    let page = page(&testing::every_reading(), 80);
    let counts = |name: &str| {
        let line = section(&page, "Variants").into_iter().find(|line| line.starts_with(name)).unwrap();
        let cells: Vec<&str> = line.split_whitespace().collect();
        [cells[cells.len() - 2], cells[cells.len() - 1]].map(str::to_owned)
    };
    assert_eq!(counts("packed"), ["0.0214", "0.0002[1]"]);
    assert_eq!(counts("padded-64"), ["–[2]", "–[3]"]);
    assert_eq!(counts("padded-128"), ["0", "–[4]"], "a counted 0 is a 0");
    assert_eq!(counts("solo:counter"), ["–[5]", "–[5]"]);
    let shown = flat(&page);
    for reason in [
        "[1] on a counter for 63 % of the window, scaled up",
        "[2] opened, but the kernel never gave it a counter",
        "[3] not permitted: perf_event_paranoid is 4; cure: sudo sysctl kernel.perf_event_paranoid=2",
        "[4] counted, but no pass to divide it by",
        "[5] this run has no reading of it",
    ] {
        assert!(shown.contains(reason), "{reason}\n{page}");
    }
}

#[test]
fn an_arm_without_figures_says_why() {
    let page = page(&testing::poor(), 80);
    let row =
        |name: &str| section(&page, "Variants").into_iter().find(|line| line.starts_with(name)).map(flat).unwrap();
    assert_eq!(row("padded-64"), "padded-64 128 –[3] –[3] –[3] –[3] –[3]");
    assert!(row("padded-128").starts_with("padded-128 256 –[4] –[4] 2/10"), "{page}");
    let shown = flat(&page);
    for wanted in [
        "[3] not applicable here: needs 4 CPUs, this host has 2;",
        "[4] unresolved: 2 of 10 repetitions kept in one regime, 3 are needed",
        "No regime:",
        "the control arm resolved nothing",
        "The run was extended to 10 blocks",
        "undecided: ns_per_op(packed)",
        "nothing found: nothing that this run could resolve",
    ] {
        assert!(shown.contains(wanted), "{wanted}\n{page}");
    }
}

#[test]
fn locks_say_how_long_and_whom() {
    let page = page(&testing::mutex(), 80);
    let row = |heading: &str, name: &str| {
        section(&page, heading).into_iter().map(flat).find(|line| line.starts_with(name)).unwrap()
    };
    assert_eq!(row("Locks", "packed"), "packed m (pthread) 38 123 456 48 % 3 465 768 48 123");
    assert_eq!(row("Waits", "packed"), "packed all 48 % 18 345 000 312 4127 190 123");
    assert_eq!(row("Waits", "worker 1"), "worker 1 (counter) 48 % 9 172 500 312 4127 190 123");
    assert_eq!(row("Waits", "padded-128"), "padded-128 all 0 % –[1] –[1] –[1] –[1]");
    let shown = flat(&page);
    for wanted in [
        "[1] nobody had to wait",
        "packed, lock m: 12 waits left out because some worker was off its CPU meanwhile",
        "(longest of all waits: 4 190 123 ns;",
        "padded-64, lock m: 3 waits found the log full",
        "padded-64, lock m: 1 acquisition found the previous owner dead",
        "packed, lock m: held for 21 ns (p50), 48 ns (p99), 1203 ns at most.",
    ] {
        assert!(shown.contains(wanted), "{wanted}\n{page}");
    }
    assert!(!self::page(&testing::false_sharing(), 80).contains("Locks"));
}

#[test]
fn measured_and_modelled_figures_never_stand_without_their_source() {
    for width in [40, 80] {
        let page = page(&testing::modelled(), width);
        let modelled = section(&page, "Modelled: computed from the program");
        assert_eq!(page.matches("0.471").count(), 2, "two modelled figures\n{page}");
        assert_eq!(modelled.iter().filter(|line| line.contains("0.471")).count(), 2, "both under their heading");
        let named = modelled.iter().filter(|line| line.contains("modelled")).count();
        assert!(named >= if width == 40 { 2 } else { 1 }, "{page}");
        assert!(section(&page, "Variants, as measured").iter().any(|line| line.contains("0.0214")), "{page}");
        for line in flat(&page).split("- ").filter(|item| item.contains("transfers per op")) {
            assert!(line.starts_with("modelled: ") && line.contains("0.864"), "{line}");
        }
        let tables = [section(&page, "Variants, as measured"), modelled];
        let holds = |line: &&str| line.contains("0.0214");
        let in_tables = tables.iter().flatten().filter(|line| holds(line)).count();
        assert_eq!(page.lines().filter(holds).count(), in_tables, "measured counts stand under \"measured\" only");
    }
}

#[test]
fn what_the_scenario_writes_is_shown_not_obeyed() {
    let mut run = testing::false_sharing();
    run.scenario.title = "red \u{1b}[31malert\u{7} <b>bold</b>".to_owned();
    run.scenario.question = "line\nfeed \u{9b}2J \u{202e}reversed".to_owned();
    run.arms[0].name = "pack\u{1b}]0;title\u{7}ed".to_owned();
    run.host.hostname = "host\u{1b}c".to_owned();
    run.diagnosis[0].text = "\u{1b}[8mhidden".to_owned();
    run.command = "coordinator run a\nb\u{1b}[2K".to_owned();
    for width in [40, 80] {
        let page = page(&run, width);
        assert!(page.chars().all(|c| c == '\n' || !c.is_control()), "{page:?}");
        assert!(!page.contains('\u{202e}'));
        assert!(flat(&page).starts_with("red \\u{1b}[31malert\\u{7} <b>bold</b> line"), "{page}");
        assert!(flat(&page).contains("line feed \\u{9b}2J \\u{202e}reversed"), "{page}");
    }
}

#[test]
fn colour_adds_nothing_but_escapes() {
    let colourful = Style::decide(ColourChoice::Always, Some(80), |_| None, false);
    for run in every_run() {
        let coloured = render(&run, None, &colourful);
        assert!(coloured.contains("\u{1b}["));
        let mut bare = String::new();
        let mut parts = coloured.split('\u{1b}');
        bare.push_str(parts.next().unwrap());
        parts.for_each(|part| bare.push_str(part.split_once('m').unwrap().1));
        assert_eq!(bare, render(&run, None, &Style::plain(80)));
    }
}

#[test]
fn the_last_line_repeats_the_run() {
    let mut run = testing::false_sharing();
    assert_eq!(
        page(&run, 120).lines().last(),
        Some("coordinator run scenarios/false_sharing.toml --seed 42 # scenario 5f3c1a90b7de, host lab-1")
    );
    run.command.push_str(" --only packed");
    let narrow = page(&run, 40);
    let tail: Vec<&str> = narrow.lines().skip_while(|line| !line.ends_with("the same again:")).skip(1).collect();
    assert_eq!(tail[0], "# scenario 5f3c1a90b7de, host lab-1");
    assert!(tail.len() > 2 && tail[1..tail.len() - 1].iter().all(|line| line.ends_with('\\')), "{tail:?}");
    let command = "coordinator run scenarios/false_sharing.toml --only packed --seed 42";
    assert_eq!(tail[1..].join("\n").replace("\\\n", ""), command);
}

//! The whole page, on runs made by hand.

#[path = "../../../tests/common/sources.rs"]
mod sources;

use super::render;
use crate::report::figures::plain;
use crate::report::style::{ColourChoice, Style};
use crate::report::testing;
use crate::report::text::columns;
use record::{Kind, Reading, Run};
use std::collections::BTreeSet;
use std::path::Path;

fn page(run: &Run, width: usize) -> String {
    let results = Path::new("results/false_sharing/2026-11-24T12-34-56Z");
    render(run, Some(results), &Style::plain(width)).replace('\u{a0}', " ")
}

/// Words in order, wherever lines break.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn every_run() -> [Run; 9] {
    let [one, two, three] = [testing::false_sharing(), testing::mutex(), testing::every_reading()];
    let [four, five, six] = [testing::open_loop(), testing::stalled(), testing::poor()];
    [one, two, three, four, five, six, testing::modelled(), testing::zen(), testing::two_roles()]
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
        let names = table.iter().position(|line| line.starts_with("variant  ")).unwrap();
        assert!((3..=4).contains(&names) && table[names + 1].starts_with('─'), "{table:?}");
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
        "[2] open, but never on a counter",
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
    let rows = |heading: &str, name: &str| -> Vec<String> {
        section(&page, heading).into_iter().map(flat).filter(|line| line.starts_with(name)).collect()
    };
    assert_eq!(
        rows("Locks", "packed "),
        [
            "packed m (pthread) 38 123 456 48 % 312 4127 190 123",
            "packed m (pthread) 21 48 0.0909 48 123 0.97 4.81",
            "packed m (pthread) –",
        ]
    );
    assert_eq!(rows("Locks", "padded-64")[2], "padded-64 m (ticket) 37.2", "the lab's own counts its turns");
    assert_eq!(rows("Locks", "padded-128")[0], "padded-128 m (pthread) 99 123 456 0 % –[1] –[1] –[1]");
    assert_eq!(rows("At each lock", "packed")[0], "packed 0 (counter) 19 061 728 48 % 312 4127 190 123");
    assert_eq!(rows("At each lock", "1 (counter)")[0], "1 (counter) 19 061 728 48 % 312 4127 190 123");
    assert!(rows("At each lock", "padded-128").is_empty());
    let shown = flat(&page);
    for wanted in [
        "[1] nobody had to wait",
        "[2] no hold was sampled, or each overlapped an eviction",
        "hold: from owning to releasing, one in 251 timed.",
        "packed, lock m: 12 waits left out because some worker was off its CPU meanwhile",
        "(longest of all waits: 4 190 123 ns;",
        "padded-64, lock m: 3 waits found the log full",
        "padded-64, lock m: 1 acquisition found the previous owner dead",
        "padded-64, lock m: 5 attempts ended at the timeout without the lock",
        "Trying first and timing cost: a pass takes 1.19 (1.15–1.24) times as long as in the plain arm",
    ] {
        assert!(shown.contains(wanted), "{wanted}\n{page}");
    }
    assert!(!self::page(&testing::false_sharing(), 80).contains("Locks"));
}

#[test]
fn an_open_loop_shows_what_a_closed_one_would_have_hidden() {
    let page = page(&testing::open_loop(), 80);
    let table: Vec<String> = section(&page, "Latency of a pass, as measured").into_iter().map(flat).collect();
    for row in [
        "packed counter response 40 012 412 1204 90 111 412 319 1 900 543",
        "service 40 012 398 611 4127 88 063 301 055",
        "corrected 40 977 399 702 60 031 251 903 301 055",
    ] {
        assert!(table.iter().any(|line| line == row), "{row}\n{page}");
    }
    assert!(!self::page(&testing::mutex(), 80).contains("Latency of a pass"));
}

#[test]
fn batches_before_and_from_then_on_stand_in_nanoseconds_and_in_ticks() {
    let page = page(&testing::stalled(), 120);
    let rows = |heading: &str| section(&page, heading).into_iter().map(flat).collect::<Vec<String>>().join("\n");
    let ns = rows("Time of a batch of touches, as measured, ns");
    for row in [
        "min mean p50 p90 p99 p99.9 max",
        "packed counter before 150 200 190 200 220 331 57 003",
        "then 151 263 191 201 260 8455 275 455",
        "corrected 152 2923 192 202 68 223 162 943 275 456",
    ] {
        assert!(ns.contains(row), "{row}\n{page}");
    }
    let ticks = rows("The same in ticks of the TSC");
    for row in ["packed counter before 389 521 494 504 572 861 148 207", "then 392 683 496 506 676 21 983 716 183"] {
        assert!(ticks.contains(row), "{row}\n{page}");
    }
    assert!(!ticks.contains("corrected") && !self::page(&testing::mutex(), 80).contains("batch of touches"));
}

#[test]
fn measured_and_modelled_figures_never_stand_without_their_source() {
    for width in [40, 80] {
        let page = page(&testing::modelled(), width);
        let modelled = section(&page, "Modelled: computed from the program");
        assert_eq!(page.matches("0.471").count(), 4, "two modelled figures, and two of lines\n{page}");
        assert_eq!(modelled.iter().filter(|line| line.contains("0.471")).count(), 2, "both under their heading");
        assert_eq!(section(&page, "Lines, as modelled").iter().filter(|line| line.contains("0.471")).count(), 2);
        assert!(modelled.iter().any(|line| line.contains("modelled")), "a column says so too\n{page}");
        assert!(flat(&modelled.join("\n")).contains("22–24"), "what was measured has its interval here too\n{page}");
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

/// A page in its sections: the lines between blank ones.
fn sections(page: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = page.lines().collect();
    lines.split(|line| line.is_empty()).map(<[&str]>::to_vec).collect()
}

/// Whether a figure stands in a line as a word of its own, with or without the mark of a note.
fn holds(line: &str, figure: &str) -> bool {
    line.split_whitespace().any(|word| word.split('[').next() == Some(figure))
}

/// The counters' figures of a run as a page would print them: measured, and modelled. Those that say as much without a
/// source are left out: 0, and what is under the least figure.
fn figures(run: &Run) -> [BTreeSet<String>; 2] {
    let counters = || run.arms.iter().flat_map(|arm| &arm.roles).flat_map(|role| role.counters.values());
    let measured = counters().flat_map(|c| [c.measured.per_op, c.measured.per_second]).flatten();
    let arms = || run.arms.iter().filter_map(|arm| arm.modelled.as_ref());
    let of_roles = arms().flat_map(|arm| &arm.roles).flat_map(|role| role.counters.values()).map(|c| c.per_op);
    let of_lines = arms().flat_map(|arm| &arm.lines).map(|line| line.transfers_per_op);
    let modelled = counters().filter_map(|c| Some(c.modelled.as_ref()?.per_op)).chain(of_roles).chain(of_lines);
    let texts = |figures: Vec<f64>| -> BTreeSet<String> {
        figures
            .into_iter()
            .filter(|figure| *figure >= 1e-4)
            .map(plain)
            .map(|text| text.replace('\u{a0}', " "))
            .collect()
    };
    [texts(measured.collect()), texts(modelled.collect())]
}

/// The grep: wherever a counter's figure is printed, its section says in its heading that it was measured or computed,
/// a line of the diagnosis in its first word.
#[test]
fn no_figure_of_a_counter_is_printed_without_its_source() {
    for run in [testing::every_reading(), testing::modelled(), testing::zen(), testing::two_roles()] {
        let [measured, modelled] = figures(&run);
        assert!(measured.is_disjoint(&modelled), "the fixture's figures must be told apart");
        for width in [50, 80, 120] {
            let page = page(&run, width);
            for section in sections(&page) {
                let heading = section[..section.len().min(2)].join(" ");
                let computed = heading.starts_with("Modelled: computed from the program and this run's probes")
                    || heading.starts_with("Lines, as modelled");
                for line in &section {
                    let found = |figures: &BTreeSet<String>| figures.iter().any(|figure| holds(line, figure));
                    let [measured, modelled] = [found(&measured), found(&modelled)];
                    assert!(!modelled || computed, "a modelled figure under \"{heading}\": {line}");
                    let said =
                        heading.contains("as measured") || computed || line.trim_start().starts_with("- measured");
                    assert!(!measured || said, "a measured figure under \"{heading}\": {line}");
                }
            }
        }
    }
}

#[test]
fn every_figure_of_the_json_has_its_source_and_a_stray_one_is_found() {
    for run in every_run() {
        let json = serde_json::to_value(&run).unwrap();
        assert_eq!(sources::unsourced(&json), Vec::<String>::new());
    }
    let strays: [fn(&mut serde_json::Value); 8] = [
        |run| run["arms"][0]["per_op"] = 0.5.into(),
        |run| run["arms"][0]["roles"][0]["counters"]["cycles"]["value"] = 7.into(),
        |run| run["arms"][0]["roles"][0]["counters"]["stalled_cycles"]["measured"]["per_op"] = 0.5.into(),
        |run| run["arms"][0]["roles"][0]["counters"]["cycles"] = 83.into(),
        |run| run["diagnosis"][0]["evidence"][0]["source"] = "a guess".into(),
        |run| run["events"][0]["source"] = "".into(),
        |run| run["arms"][0]["modelled"]["machine"] = "".into(),
        |run| run["arms"][0]["modelled"]["roles"][0]["counters"]["l1d_misses"]["state"] = "counted".into(),
    ];
    for (nth, stray) in strays.into_iter().enumerate() {
        let run = if nth < 6 { testing::zen() } else { testing::modelled() };
        let mut json = serde_json::to_value(run).unwrap();
        stray(&mut json);
        assert_eq!(sources::unsourced(&json).len(), 1, "{:?}", sources::unsourced(&json));
    }
}

/// The text of a section, its lines joined.
fn text(page: &str, heading: &str) -> String {
    flat(&section(page, heading).join(" "))
}

#[test]
fn what_was_counted_stands_in_columns_with_its_unit_and_the_rest_in_lines() {
    let page = page(&testing::zen(), 80);
    let processor = section(&page, "Counted by the processor, as measured");
    let packed: Vec<String> = processor.into_iter().filter(|line| line.starts_with("packed ")).map(flat).collect();
    assert_eq!(packed, ["packed 83.1 2.03 2.51 0.831 0.0571", "packed 0.731[1] 0.971 0.871 0"], "{page}");
    let kernel = section(&page, "Counted by the kernel, as measured");
    assert!(kernel.iter().any(|line| flat(line) == "packed 14.5 14.5 22.6"), "{page}");
    assert!(kernel.iter().any(|line| flat(line) == "variant /s /s ns/op"), "{page}");
    let shown = flat(&page);
    for wanted in [
        "[1] on a counter for 53 % of the window, scaled up to all of it",
        "L1D accesses: loads and stores that went to the L1 data cache.",
        "0 in each of these arms: context switches voluntary, CPU migrations, page faults, page faults major, stolen, throttled.",
        "Under 0.0001 /op in each of these arms: dTLB load misses.",
        "Not counted: stalled cycles, transfers cluster, transfers write, L1D invalidations, LLC loads, LLC load misses \
         (this processor's PMU has no such event (perf_event_open: ENOENT)).",
        "Not counted: sched:sched_switch (not permitted: kernel.perf_event_paranoid is 2; cure: sudo sysctl",
    ] {
        assert!(shown.contains(wanted), "{wanted}\n{page}");
    }
    let diagnosis = text(&page, "Diagnosis");
    assert!(
        diagnosis.contains("- measured, scaled: upgrades per pass of `counter` in `packed` over `solo:counter` 1617")
    );
    assert!(!diagnosis.contains("0.731"), "counts per operation stand in their table: {diagnosis}");
    let columns = text(&page, "Counted by the processor");
    assert!(!columns.contains("L1D requests to L2"), "what stands in the variants' table is not repeated\n{page}");
}

#[test]
fn a_generic_event_that_counts_something_else_is_headed_by_what_it_counts() {
    let page = page(&testing::zen(), 80);
    let table = text(&page, "Variants, as measured");
    assert!(table.contains("L1D requests LLC") && !table.contains("L1D miss"), "{page}");
    assert!(table.contains("L1D requests to L2: requests to L2 from the L1 data cache: loads, stores, prefetches."));
    let mut uncounted = testing::false_sharing();
    uncounted.events = testing::zen().events;
    let table = text(&self::page(&uncounted, 80), "Variants, as measured");
    assert!(
        table.contains("miss") && !table.contains("L1D requests"),
        "what nobody counted needs no explaining: {table}"
    );
}

#[test]
fn without_a_pmu_its_events_are_one_line() {
    let page = page(&testing::false_sharing(), 80);
    assert!(!page.contains("Counted by the processor"), "{page}");
    let kernel = text(&page, "Counted by the kernel, as measured");
    for wanted in [
        "Not counted: all 17 events of the processor (no hardware counters (ENOENT)).",
        "Not counted: futex calls, TLB flushes (not permitted: tracefs is not mounted; cure: sudo mount -t tracefs",
    ] {
        assert!(kernel.contains(wanted), "{wanted}\n{page}");
    }
}

#[test]
fn a_run_with_other_roles_shows_the_counts_of_each() {
    let page = page(&testing::two_roles(), 80);
    let rows = section(&page, "Counted by the processor, as measured");
    let of = |role: &str| rows.iter().filter(|line| line.contains(role)).count();
    assert!(of("counter") > 0 && of("reader") > 0, "{page}");
    assert!(text(&page, "Counted by the processor").contains("L1D requests"), "other roles' misses stand nowhere else");
}

#[test]
fn arms_without_readings_leave_no_row_behind() {
    let mut run = testing::zen();
    for arm in run.arms.iter_mut().filter(|arm| arm.kind == Kind::Variant) {
        arm.roles.iter_mut().for_each(|role| role.counters.clear());
    }
    let page = page(&run, 80);
    let rows = section(&page, "Counted by the kernel, as measured");
    assert!(!rows.iter().any(|line| line.starts_with("pa") || line.starts_with("references")), "{page}");
    assert!(rows.iter().any(|line| line.starts_with("solo:counter ")), "{page}");
}

/// Each event's own lack beside that of the whole PMU: one line all the same.
#[test]
fn a_missing_pmu_is_told_for_the_reason_that_most_events_give() {
    let mut run = testing::false_sharing();
    for role in run.arms.iter_mut().flat_map(|arm| &mut arm.roles) {
        if let Some(counter) = role.counters.get_mut("llc_loads") {
            counter.measured.reading = Reading::Unsupported { why: "Zen has none".to_owned() };
        }
    }
    let kernel = text(&page(&run, 80), "Counted by the kernel, as measured");
    assert!(kernel.contains("all 17 events of the processor (no hardware counters (ENOENT))."), "{kernel}");
    assert!(!kernel.contains("Zen has none"), "{kernel}");
}

#[test]
fn nothing_beside_the_two_columns_is_no_section() {
    let mut run = testing::every_reading();
    for role in run.arms.iter_mut().flat_map(|arm| &mut arm.roles) {
        role.counters.retain(|name, _| name.ends_with("_load_misses"));
        role.counters.remove("dtlb_load_misses");
    }
    assert!(!page(&run, 80).contains("Counted by"));
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

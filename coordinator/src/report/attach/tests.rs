//! The pages on watches made by hand.

use super::{list, rate, render, time};
use crate::report::style::Style;
use crate::report::text::columns;
use attach::Closed;
use record::*;
use std::collections::BTreeMap;

fn process(pid: u32, command: &str) -> AttachedProcess {
    let counted = |value| Reading::Counted { value };
    let no_pmu = Reading::Unsupported { why: format!("{NO_PMU} (perf_event_open: ENOENT)") };
    let denied = Reading::Denied { why: "tracefs is closed".to_owned(), cure: "run as root".to_owned() };
    AttachedProcess {
        pid,
        pid_inside: None,
        command: command.to_owned(),
        executable: Some(format!("/usr/bin/{command}")),
        address_bits: 64,
        mappings: vec![SegmentMapping {
            address: 0x7f12_0000_0000 + u64::from(pid),
            bytes: 4096,
            offset: 0,
            writable: true,
        }],
        threads: 2,
        joined_ns: None,
        ended: None,
        unwatched: None,
        counters: BTreeMap::from([
            ("context_switches".to_owned(), counted(60)),
            ("page_faults".to_owned(), counted(0)),
            ("task_clock".to_owned(), counted(4_900_000_000)),
            ("cycles".to_owned(), no_pmu),
            ("futex_calls".to_owned(), denied),
        ]),
        counted_ns: 5_000_000_000,
        per_second: BTreeMap::from([
            ("context_switches".to_owned(), [Some(12.0), Some(13.5), None]),
            ("page_faults".to_owned(), [Some(0.0); 3]),
            ("task_clock".to_owned(), [Some(9.8e8); 3]),
        ]),
        cpu: [Some(0.98), Some(0.971), None],
    }
}

fn instruction(pid: u32, writes: bool) -> TouchingInstruction {
    TouchingInstruction {
        pid,
        address: 0x40_1234,
        text: Some("addq $1,(%rdi)".to_owned()),
        symbol: Some("bump+0x12".to_owned()),
        object: Some("/usr/bin/writer".to_owned()),
        source: Some(("ring.c".to_owned(), 17)),
        writes,
        reads: true,
        hits: 15,
        samples: 80,
        per_second: Some(21e6),
        at_least: false,
        threads: 1,
        tids: vec![pid],
    }
}

fn word(offset: u64, field: Option<&str>, writers: &[u32]) -> TouchedWord {
    TouchedWord {
        offset,
        bytes: 8,
        field: field.map(str::to_owned),
        writers: writers.to_vec(),
        readers: writers.to_vec(),
        proved: true,
        adds: Some(1),
        pace: None,
        held: None,
        instructions: writers.iter().map(|pid| instruction(*pid, true)).collect(),
    }
}

fn line(offset: u64, verdict: LineVerdict, words: Vec<TouchedWord>) -> TouchedLine {
    TouchedLine {
        offset,
        verdict,
        page_offset: offset % 4096,
        words,
        accesses_per_second: Some(43_215_678.0),
        accesses_at_least: false,
        penalty_ns: Some(Interval { median: 18.0, low: 15.0, high: 21.0 }),
        recoverable: Some((0.31, 0.62)),
    }
}

fn lock() -> WatchedLock {
    let waits = WaitTimes {
        min: 900,
        p50: 24_900,
        p90: 40_000,
        p99: 1_590_000,
        p999: 2_000_000,
        max: 24_000_000,
        sum: 9_000_000,
    };
    WatchedLock {
        offset: 0x80,
        field: Some("m".to_owned()),
        kind: Some("pthread".to_owned()),
        owner_pid: Some(4711),
        waits: 1075,
        refused: 30,
        unended: 1,
        begun_before: 2,
        wait_ns: waits,
        waiters: vec![LockUser { pid: 4712, calls: 1075, amount: 9_000_000 }],
        wakers: vec![LockUser { pid: 4711, calls: 1120, amount: 1045 }],
        spinners: vec![4712],
        findings: vec![LockFinding { kind: "long_hold".to_owned(), text: "4711 had it for 24 ms".to_owned() }],
        lost: 0,
        probed: Some(record::ProbedLock { calls: Some(8000), contended: None, acquired: None }),
    }
}

fn watch() -> Attach {
    Attach {
        schema_version: SCHEMA_VERSION,
        segment: AttachedSegment {
            name: "/dev/shm/ring".to_owned(),
            kind: SegmentKind::Posix,
            device: (0, 0x1b),
            inode: 1042,
            bytes: 4096,
            deleted: false,
        },
        watched_ns: 5_010_000_000,
        ended_early: false,
        processes: vec![process(4711, "writer"), process(4712, "e\u{1b}[2Jvil")],
        lines: vec![
            line(0, LineVerdict::FalseSharing, vec![word(0, Some("hits[0]"), &[4711]), word(8, None, &[4712])]),
            line(0x40, LineVerdict::TrueSharing, vec![word(0x40, None, &[4711, 4712])]),
            line(0x80, LineVerdict::LockWord, vec![word(0x80, Some("m"), &[4711])]),
            line(0xc0, LineVerdict::Private, vec![word(0xc0, None, &[4711])]),
        ],
        locks: vec![lock()],
        cost: WatchCost { traps: 96, samples: 305, events: 4390, stolen_ns: 7_570_000, slowdown: Some(0.004) },
        notes: vec![AttachNote {
            id: "breakpoints_taken".to_owned(),
            pid: Some(4711),
            text: "a debugger has the breakpoints".to_owned(),
            cure: Some("end it".to_owned()),
        }],
        scenario: None,
    }
}

fn shown(seen: &Attach, width: usize) -> String {
    render(seen, &Style::plain(width)).replace('\u{a0}', " ")
}

/// The page as one line, so that where it was broken does not matter.
fn flat(seen: &Attach) -> String {
    shown(seen, 80).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_answer_comes_first_and_names_fields_processes_and_what_a_cure_gives_back() {
    let page = flat(&watch());
    let answer = "false sharing: hits[0] (written by 4711 writer); word 0x8 (written by 4712 e\\u{1b}[2Jvil) lie on \
                  line 0, each 18 (15–21) ns dearer than alone; a cure could give back 31 % to 62 % of its users' time";
    let at = page.find(answer).unwrap_or_else(|| panic!("{page}"));
    assert!(at < page.find("Who maps it").unwrap());
}

#[test]
fn who_touches_what_where_is_told_once_for_all_who_do_it_there() {
    let page = flat(&watch());
    assert!(page.contains("line 0 at offset 0x0, 43 200 000 accesses a second"), "{page}");
    assert!(page.contains("0x40, 8 bytes: written by 4711 writer, 4712 e"), "{page}");
    assert!(page.contains("4711, 4712: addq $1,(%rdi) in bump+0x12 (ring.c:17)"), "{page}");
}

#[test]
fn each_process_is_held_against_itself_before_and_what_is_missing_is_no_zero() {
    let page = shown(&watch(), 80);
    let row = |phase: &str| page.lines().find(|line| line.contains(phase)).unwrap_or_else(|| panic!("{page}"));
    assert!(row("  before ").contains("98") && row("  before ").ends_with("12"), "{page}");
    assert!(row("  after ").ends_with('–'), "{page}");
    assert!(!page.contains("page faults"), "nobody had any: {page}");
    let page = flat(&watch());
    assert!(
        page.contains("not counted: 1 event of the processor's, since this machine exposes no hardware PMU"),
        "{page}"
    );
    assert!(page.contains("not counted: futex_calls: tracefs is closed; run as root"), "{page}");
}

#[test]
fn waits_have_their_owner_and_findings_and_the_watch_its_cost() {
    let page = flat(&watch());
    for part in [
        "24.9 µs 1.59 ms 24 ms 4711 writer",
        "long hold: 0x80 m: 4711 had it for 24 ms",
        "waited: 4712 e\\u{1b}[2Jvil 1075 × (9 ms); woke: 4711 writer 1120 × (1045); seen spinning: 4712",
        "2 waits begun before the watch; probes counted 8000 calls of pthread_mutex_lock",
        "96 traps, 305 samples, 4390 events took 7.57 ms of their time, 0.4 % of what they ran",
        "- 4711 writer: a debugger has the breakpoints cure: end it",
    ] {
        assert!(page.contains(part), "no `{part}`: {page}");
    }
}

#[test]
fn a_watch_that_armed_nothing_says_so_and_those_who_left_are_named() {
    let mut seen = watch();
    (seen.lines, seen.locks, seen.notes) = (vec![], vec![], vec![]);
    seen.cost = WatchCost::default();
    seen.processes[0].ended = Some(ProcessEnd::Executed);
    seen.processes[1].unwatched = Some("it is closed".to_owned());
    seen.processes[1].pid_inside = Some(1);
    let page = flat(&seen);
    for part in [
        "Nothing was armed",
        "left: 4711 writer executed another program while it was watched",
        "not watched: 4712 e\\u{1b}[2Jvil: it is closed",
        "is process 1 in its own namespace of pids",
    ] {
        assert!(page.contains(part), "no `{part}`: {page}");
    }
    assert!(!page.contains("Lines that were touched") && !page.contains("To know"), "{page}");
}

#[test]
fn no_page_is_wider_than_its_terminal() {
    for width in [24, 40, 80, 120] {
        for page in [shown(&watch(), width), list::render(&listing(), true, None, &Style::plain(width))] {
            let widest = page.lines().map(columns).max().unwrap();
            assert!(widest <= width, "{widest} columns for {width}: {page}");
            assert!(!page.contains('\u{1b}'), "{page}");
        }
    }
}

fn listing() -> AttachListing {
    let user = |pid, command: &str, writable| SegmentUser {
        pid,
        command: command.to_owned(),
        mappings: vec![SegmentMapping { address: 0x1000, bytes: 4096, offset: 0, writable }],
    };
    let ring = ListedSegment {
        segment: watch().segment,
        choose: "--segment /ring".to_owned(),
        users: vec![user(4711, "writer", true), user(4712, "reader", false)],
        quiet: None,
    };
    let font = ListedSegment {
        segment: AttachedSegment { name: "/usr/share/font".to_owned(), kind: SegmentKind::File, ..watch().segment },
        choose: "--file /usr/share/font".to_owned(),
        users: (1..=6).map(|pid| user(pid, "all", false)).collect(),
        quiet: Some(SegmentQuiet::ReadOnly),
    };
    AttachListing { schema_version: SCHEMA_VERSION, segments: vec![ring, font], closed: vec![1] }
}

#[test]
fn the_list_shows_who_contends_and_says_what_it_leaves_out() {
    let closed = Closed { why: "process 1 is closed".to_owned(), cure: "run as root".to_owned() };
    let page = |all| list::render(&listing(), all, Some(&closed), &Style::plain(80)).replace('\u{a0}', " ");
    let short = page(false);
    assert!(short.contains("/dev/shm/ring  posix") && short.contains("4711 writer, 4712 reader (reads)"), "{short}");
    assert!(short.contains("coordinator attach --segment /ring"), "{short}");
    assert!(short.contains("Left out: 1 that nobody may write") && !short.contains("/usr/share/font"), "{short}");
    assert!(short.contains("process 1 is closed; run as root."), "{short}");
    assert!(page(true).contains("/usr/share/font") && page(true).contains("2 more"), "{}", page(true));
    let none = AttachListing { segments: vec![], closed: vec![], ..listing() };
    assert!(list::render(&none, false, None, &Style::plain(80)).starts_with("No two processes share memory"));
}

#[test]
fn times_and_rates_have_three_digits() {
    let of = |ns| time(ns).replace('\u{a0}', " ");
    assert_eq!([of(7), of(24_912), of(1_594_000), of(2_000_000_000)], ["7 ns", "24.9 µs", "1.59 ms", "2 s"]);
    let of = |per_second| rate(per_second).replace('\u{a0}', " ");
    assert_eq!([of(0.0), of(13.52), of(1234.0), of(43_215_678.0)], ["0", "13.5", "1230", "43 200 000"]);
}

fn emitted(state: EmittedState, why: Option<&str>) -> EmittedScenario {
    let role = |role: &str, reproduced: bool, lab: f64| EmittedRole {
        role: role.to_owned(),
        pids: vec![4711],
        tids: Vec::new(),
        workers: 1,
        work_ns: 12,
        fitted: true,
        observed_per_second: Some(Interval { median: 50e6, low: 40e6, high: 60e6 }),
        lab_per_second: Some(Interval { median: lab, low: lab * 0.99, high: lab * 1.01 }),
        ratio: Some(Interval { median: lab / 50e6, low: lab * 0.99 / 60e6, high: lab * 1.01 / 40e6 }),
        reproduced: Some(reproduced),
    };
    let next =
        ["advise ring.toml", "run ring.toml", "attach … --emit-scenario after.toml", "run after.toml", "compare A B"];
    EmittedScenario {
        file: "ring.toml".to_owned(),
        roles: vec![role("writer", true, 49e6), role("reader", state != EmittedState::NotReproduced, 100e6)],
        differs: vec!["the word at 0x28 lies elsewhere".to_owned()],
        state,
        why: why.map(str::to_owned),
        next: next.map(|one| format!("coordinator {one}")).to_vec(),
    }
}

#[test]
fn what_the_lab_says_to_the_scenario_stands_beside_what_was_observed_with_what_to_do_next() {
    let page = |state, why| {
        let page = flat(&Attach { scenario: Some(emitted(state, why)), ..watch() });
        page[page.find("As a scenario: ring.toml").unwrap_or_else(|| panic!("{page}"))..].to_owned()
    };
    let same = page(EmittedState::Reproduced, None);
    assert!(same.contains("reproduced: the lab has the targets' rate within its interval"), "{same}");
    assert!(same.contains("was chosen so that it does"), "{same}");
    for part in ["20 (17–25)", "20.4 (20.2–20.6)", "- the word at 0x28", "next: coordinator advise ring.toml"] {
        assert!(same.contains(part), "no `{part}`: {same}");
    }
    let other = page(EmittedState::NotReproduced, None);
    assert!(other.contains("not reproduced: in the lab reader goes 2 times as fast as in the targets"), "{other}");
    assert!(other.contains("A scenario cannot know what else they do"), "{other}");
    assert!(page(EmittedState::Unresolved, Some("too noisy")).contains("unresolved: too noisy"));
    assert!(page(EmittedState::HostCannot, Some("one CPU")).contains("this host cannot run it: one CPU"));
    assert!(page(EmittedState::NotRun, Some("not asked for")).contains("not run: not asked for"));
    let wide = Attach { scenario: Some(emitted(EmittedState::Reproduced, None)), ..watch() };
    assert!(shown(&wide, 80).lines().all(|line| columns(line) <= 80));
}

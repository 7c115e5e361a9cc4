//! Scenarios made of watches that were made by hand.

use super::draft::Draft;
use super::text::{Origin, text};
use super::verbs::Verb;
use super::{judged, no_rate, scenario};
use record::*;
use std::collections::BTreeMap;

fn process(pid: u32, command: &str) -> AttachedProcess {
    AttachedProcess {
        pid,
        pid_inside: None,
        command: command.to_owned(),
        executable: None,
        address_bits: 64,
        mappings: Vec::new(),
        threads: 1,
        joined_ns: None,
        ended: None,
        unwatched: None,
        counters: BTreeMap::new(),
        counted_ns: 0,
        per_second: BTreeMap::new(),
        cpu: [Some(1.0); 3],
    }
}

/// `reads`, `writes`, or both, by one instruction, so often a second; `None` is a lower bound.
fn at(pid: u32, text: &str, does: &str, per_second: Option<f64>) -> TouchingInstruction {
    TouchingInstruction {
        pid,
        address: 0x1000,
        text: Some(text.to_owned()),
        symbol: Some("turn+0x10".to_owned()),
        object: Some("/usr/bin/ring".to_owned()),
        source: Some(("ring.c".to_owned(), 17)),
        writes: does.contains('w'),
        reads: does.contains('r'),
        hits: 8,
        samples: 3,
        per_second: per_second.or(Some(250e3)),
        at_least: per_second.is_none(),
        threads: 1,
        tids: vec![pid],
    }
}

/// The same by these threads of the process.
fn by(tids: &[u32], at: TouchingInstruction) -> TouchingInstruction {
    TouchingInstruction { threads: tids.len() as u32, tids: tids.to_vec(), ..at }
}

fn word(offset: u64, instructions: Vec<TouchingInstruction>) -> TouchedWord {
    let pids = |does: fn(&TouchingInstruction) -> bool| {
        let mut pids: Vec<u32> = instructions.iter().filter(|at| does(at)).map(|at| at.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    };
    TouchedWord {
        offset,
        bytes: 8,
        field: None,
        writers: pids(|at| at.writes),
        readers: pids(|at| at.reads),
        proved: true,
        adds: None,
        pace: None,
        held: None,
        instructions,
    }
}

/// The same, its value growing by so many a second.
fn counting(rate: f64, word: TouchedWord) -> TouchedWord {
    let per_second = Interval { median: rate, low: rate * 0.9, high: rate * 1.1 };
    let share = 1.0 / word.writers.len() as f64;
    let of_each = Interval { median: rate * share, low: rate * share * 0.9, high: rate * share * 1.1 };
    TouchedWord { pace: Some(WordPace { per_second, per_cpu_second: Some(of_each), pieces: 40 }), ..word }
}

fn line(verdict: LineVerdict, words: Vec<TouchedWord>) -> TouchedLine {
    let offset = words[0].offset / 64 * 64;
    TouchedLine {
        offset,
        verdict,
        page_offset: offset % 4096,
        words,
        accesses_per_second: Some(1e6),
        accesses_at_least: false,
        penalty_ns: None,
        recoverable: None,
    }
}

fn watch(processes: Vec<AttachedProcess>, lines: Vec<TouchedLine>) -> Attach {
    Attach {
        schema_version: SCHEMA_VERSION,
        segment: AttachedSegment {
            name: "/dev/shm/a \"b\"\n[field.evil] (deleted)".to_owned(),
            kind: SegmentKind::Posix,
            device: (0, 1),
            inode: 2,
            bytes: 1 << 30,
            deleted: true,
        },
        watched_ns: 5_000_000_000,
        ended_early: false,
        processes,
        lines,
        locks: Vec::new(),
        cost: WatchCost::default(),
        notes: Vec::new(),
        scenario: None,
    }
}

/// The draft and its text, which the lab's own reader accepts.
fn made(seen: &Attach) -> (Draft, String) {
    let draft = Draft::of(seen);
    let text = text(&draft, &Origin { seen, command: "coordinator attach", when: "2026-11-30T12:00:00Z", cpus: 2 });
    if let Err(refusal) = scenario::parse("made.toml", &text) {
        panic!("{}\n{text}", refusal.render(false));
    }
    (draft, text)
}

fn steps(draft: &Draft, role: usize) -> Vec<(u64, &'static str, u64)> {
    draft.roles[role].steps.iter().map(|step| (step.every, step.verb.name(), step.offset)).collect()
}

#[test]
fn two_that_count_in_one_line_are_two_roles_at_their_offsets() {
    let count = |pid, offset| {
        let both = vec![at(pid, "mov (%rdi),%rax", "r", None), at(pid, "mov %rax,(%rdi)", "w", None)];
        counting(50e6, word(offset, both))
    };
    let lines = vec![line(LineVerdict::FalseSharing, vec![count(11, 64), count(12, 72)])];
    let (draft, text) = made(&watch(vec![process(11, "ring"), process(12, "ring")], lines));
    assert_eq!(draft.fields.iter().map(|field| field.at).collect::<Vec<_>>(), [64, 72]);
    assert_eq!((steps(&draft, 0), steps(&draft, 1)), (vec![(1, "bump", 64)], vec![(1, "bump", 72)]));
    assert_eq!(draft.roles.iter().map(|role| role.name.as_str()).collect::<Vec<_>>(), ["ring_1", "ring_2"]);
    assert_eq!(draft.roles[0].pass.observed.unwrap().median, 50e6);
    assert!(draft.differs.is_empty(), "{:?}", draft.differs);
    for part in
        ["#:schema", "ring.c:17", "50.0 million (45.0 to 55.0) passes a second of its CPU time", "false sharing"]
    {
        assert!(text.contains(part), "no {part}: {text}");
    }
    assert!(!text.lines().any(|line| line.starts_with("[field.evil]")), "a name of a segment is text: {text}");
}

#[test]
fn those_who_do_the_same_to_one_word_are_one_role() {
    let adds = [11, 12, 13].map(|pid| at(pid, "lock addq $1,(%rdi)", "rw", None)).to_vec();
    let lines = vec![line(LineVerdict::TrueSharing, vec![counting(30e6, word(0, adds))])];
    let processes = [11, 12, 13].map(|pid| process(pid, "ring")).to_vec();
    let (draft, text) = made(&watch(processes, lines));
    let [role] = &draft.roles[..] else { panic!("{draft:#?}") };
    assert_eq!((role.workers(), &role.pids()[..], role.threads), (3, &[11, 12, 13][..], 1));
    assert_eq!(steps(&draft, 0), [(1, "add", 0)]);
    assert!((role.pass.observed.unwrap().median / 10e6 - 1.0).abs() < 1e-9, "each makes a third");
    assert!(text.contains("oversubscribe = true"), "three workers on two CPUs: {text}");
}

#[test]
fn threads_that_do_different_things_are_roles_of_one_process_and_those_that_do_the_same_are_one_role() {
    let count = |pid, tids: &[u32], offset| word(offset, vec![by(tids, at(pid, "incq (%rdi)", "rw", None))]);
    // By two processes, 11 with three threads and 12 with one: what it says of CPU time is said of the threads that write it.
    let shared = [by(&[13, 14], at(11, "lock addq $1,(%rdi)", "rw", None)), at(12, "lock addq $1,(%rdi)", "rw", None)];
    let words = vec![counting(50e6, count(11, &[11], 64)), counting(40e6, count(11, &[15], 72))];
    let lines = vec![line(LineVerdict::FalseSharing, words)];
    let (draft, text) = made(&watch(vec![process(11, "ring")], lines.clone()));
    let told = |draft: &Draft| -> Vec<_> {
        let role = |role: &super::DraftRole| {
            (role.name.clone(), role.pids(), draft.tids(role), role.workers(), role.threads, role.process.clone())
        };
        draft.roles.iter().map(role).collect()
    };
    let role = |name: &str, tid: u32, process: Option<&str>| {
        (name.to_owned(), vec![11], vec![tid], 1, 1, process.map(str::to_owned))
    };
    assert_eq!(told(&draft), [role("ring_1", 11, None), role("ring_2", 15, Some("ring_1"))]);
    assert_eq!((steps(&draft, 0), steps(&draft, 1)), (vec![(1, "bump", 64)], vec![(1, "bump", 72)]));
    assert_eq!(
        [0, 1].map(|role| draft.roles[role].pass.observed.unwrap().median),
        [50e6, 40e6],
        "each by its own clock"
    );
    assert!(text.contains("# ring 11, threads 15: 40.0 million") && text.contains("process = \"ring_1\""), "{text}");
    assert!(draft.differs.is_empty(), "{:?}", draft.differs);

    let both = vec![line(LineVerdict::TrueSharing, vec![counting(30e6, word(0, vec![shared[0].clone()]))])];
    let (draft, text) = made(&watch(vec![process(11, "ring")], both));
    assert_eq!(told(&draft), [("ring".to_owned(), vec![11], vec![], 2, 2, None)]);
    assert!((draft.roles[0].pass.wall_per_second.unwrap() - 15e6).abs() < 1.0, "each makes half: {text}");
    assert!(text.contains("workers = 2") && text.contains("threads = 2"), "{text}");

    let all = [lines, vec![line(LineVerdict::TrueSharing, vec![counting(30e6, word(0, shared.to_vec()))])]].concat();
    let (draft, text) = made(&watch(vec![process(11, "ring"), process(12, "ring")], all));
    assert_eq!(
        draft.roles.iter().map(|role| (role.workers(), role.threads)).collect::<Vec<_>>(),
        [(3, 1), (1, 1), (1, 1)]
    );
    let differs = draft.differs.join("; ");
    for part in ["11, 12 have different numbers of threads", "processes of their own here, of those like 11"] {
        assert!(differs.contains(part), "no `{part}`: {differs}\n{text}");
    }
}

#[test]
fn what_is_rarer_is_done_in_one_pass_of_so_many_and_what_is_too_rare_is_left_out() {
    let busy = counting(1e6, word(0, vec![at(11, "incq (%rdi)", "rw", None)]));
    let rare = word(8, vec![at(11, "mov %rax,8(%rdi)", "w", Some(1e6 / 64.0))]);
    let hardly = word(16, vec![at(11, "mov 16(%rdi),%rax", "r", Some(0.2))]);
    let monitor = word(24, vec![at(12, "mov 24(%rdi),%rax", "r", Some(1.0))]);
    let lines = vec![line(LineVerdict::Private, vec![busy, rare, hardly, monitor])];
    let (draft, _) = made(&watch(vec![process(11, "ring"), process(12, "top"), process(13, "idle")], lines));
    assert_eq!(steps(&draft, 0), [(1, "bump", 0), (64, "store", 8)]);
    let [role] = &draft.roles[..] else { panic!("{draft:#?}") };
    assert_eq!(role.name, "ring");
    let told = draft.differs.join("\n");
    for part in ["0x10 in less than one pass of a million", "process 12 (top) did so less", "process 13 (idle) was not"]
    {
        assert!(told.contains(part), "no {part}: {told}");
    }
}

/// A mutex of glibc's whose two takers count beside it; it was held at half of the looks.
fn convoy() -> Attach {
    let takers = |text: &str, does: &str| {
        [11, 12].map(|pid| {
            let mut at = at(pid, text, does, Some(900e3));
            (at.symbol, at.object, at.source) =
                (Some("pthread_mutex_lock+0x48".to_owned()), Some("/lib/libc.so.6".to_owned()), None);
            at
        })
    };
    let mutex =
        TouchedWord { bytes: 4, held: Some(0.5), ..word(128, takers("lock cmpxchg %edx,(%rdi)", "rw").to_vec()) };
    let owner = TouchedWord { bytes: 4, ..word(136, takers("mov %eax,8(%rdi)", "w").to_vec()) };
    let counter = [11, 12].map(|pid| at(pid, "incq 40(%rdi)", "rw", None)).to_vec();
    let counter = counting(2e6, word(168, counter));
    let lines = vec![line(LineVerdict::LockWord, vec![mutex, owner, counter])];
    watch(vec![process(11, "queue"), process(12, "queue")], lines)
}

#[test]
fn a_mutex_is_a_lock_with_hold_and_think_time_and_its_words_are_no_fields() {
    let (draft, text) = made(&convoy());
    let [lock] = &draft.locks[..] else { panic!("{draft:#?}") };
    // Held half of the time, two million times a second: 250 ns. Each takes it once a microsecond.
    assert_eq!((lock.kind.as_str(), lock.at, lock.hold_ns), ("pthread", 128, Some(250)));
    let [role] = &draft.roles[..] else { panic!("{draft:#?}") };
    assert_eq!((role.work_ns, role.workers()), (750, 2));
    assert!(
        text.contains(r#"["work 750ns", "lock lock_0x80", "bump word_0xa8", "work 250ns", "unlock lock_0x80"]"#),
        "{text}"
    );
    let [field] = &draft.fields[..] else { panic!("{draft:#?}") };
    assert_eq!((field.offset, field.at), (168, 192), "behind the lab's lock, which is larger");
    assert!(draft.differs[0].contains("24 bytes"), "{:?}", draft.differs);
}

/// Traps say that one makes nine tenths of what both count together, and takes the lock nearly twice a pass; what each counts
/// by itself says that both go round as often.
#[test]
fn words_that_count_say_how_often_and_traps_by_how_much_it_may_be_off() {
    let mut seen = convoy();
    let word_at = |offset, pid, text: &str, rate| word(offset, vec![at(pid, text, "rw", rate)]);
    let words = &mut seen.lines[0].words;
    words[0].instructions.iter_mut().for_each(|take| take.per_second = Some(1.9e6));
    for (at, rate) in words[2].instructions.iter_mut().zip([500e3, 50e3]) {
        at.per_second = Some(rate);
    }
    let own = [(1024, 11), (1152, 12)].map(|(offset, pid)| counting(1e6, word_at(offset, pid, "incq (%rbp)", None)));
    let hardly = [word_at(1032, 11, "incq 8(%rbp)", Some(400e3)), word_at(1040, 11, "incq 16(%rbp)", Some(125e3))];
    seen.lines.push(line(LineVerdict::Private, own.into_iter().chain(hardly).collect()));
    let (draft, text) = made(&seen);
    let once = |offset| (1, "bump", offset);
    assert_eq!(steps(&draft, 0), [once(168), once(1024), once(1032), (8, "bump", 1040)], "{text}");
    assert_eq!(steps(&draft, 1), [once(168), once(1152)], "{text}");
    for role in &draft.roles {
        assert!((role.pass.observed.unwrap().median / 1e6 - 1.0).abs() < 1e-9, "{role:#?}");
    }
}

#[test]
fn a_lock_that_was_waited_for_has_the_kind_that_its_bytes_say() {
    let mut seen = convoy();
    let user = |pid| LockUser { pid, calls: 9, amount: 900 };
    seen.locks.push(WatchedLock {
        offset: 128,
        field: Some("q.m".to_owned()),
        kind: Some("pthread-robust".to_owned()),
        owner_pid: None,
        waits: 18,
        refused: 0,
        unended: 0,
        begun_before: 0,
        wait_ns: WaitTimes::default(),
        waiters: vec![user(11), user(12)],
        wakers: Vec::new(),
        spinners: Vec::new(),
        findings: Vec::new(),
        lost: 0,
        probed: None,
    });
    let (draft, _) = made(&seen);
    assert_eq!((draft.locks[0].name.as_str(), draft.locks[0].kind.as_str()), ("q_m", "pthread-robust"));
}

#[test]
fn words_far_apart_and_odd_ones_are_placed_all_the_same() {
    let far = counting(1e6, word((1 << 29) + 64, vec![at(11, "incq (%rdi)", "rw", None)]));
    let odd = TouchedWord { bytes: 8, ..word(13, vec![at(11, "mov %rax,13(%rdi)", "w", None)]) };
    let lines = vec![line(LineVerdict::Private, vec![odd]), line(LineVerdict::Private, vec![far])];
    let (draft, _) = made(&watch(vec![process(11, "ring")], lines));
    assert_eq!(draft.fields.iter().map(|one| (one.at, one.bytes)).collect::<Vec<_>>(), [(13, 1), (4096 + 64, 8)]);
    assert_eq!(draft.roles[0].steps[0].verb, Verb::Store);
}

#[test]
fn who_ran_for_a_part_of_the_time_is_said_to() {
    let count = |pid, offset| counting(1e6, word(offset, vec![at(pid, "incq (%rdi)", "rw", None)]));
    let mut lines = vec![line(LineVerdict::FalseSharing, vec![count(11, 0), count(12, 8)])];
    // A million a second, and so many of a second in which it ran.
    let while_it_ran = Interval { median: 1e6 / 0.45, low: 2e6, high: 2.5e6 };
    lines[0].words[1].pace.as_mut().unwrap().per_cpu_second = Some(while_it_ran);
    let (draft, text) = made(&watch(vec![process(11, "ring"), process(12, "ring")], lines));
    assert!(draft.differs[0].contains("ran for 45 % of the time"), "{:?}", draft.differs);
    assert!(text.contains("# - the processes ran for 45 %"), "{text}");
}

#[test]
fn who_was_seen_to_do_nothing_makes_no_scenario() {
    let draft = Draft::of(&watch(vec![process(11, "ring")], Vec::new()));
    assert!(draft.roles.is_empty() && draft.fields.is_empty(), "{draft:#?}");
}

#[test]
fn the_lab_has_a_rate_where_the_ranges_meet_unless_they_meet_whatever_it_is() {
    let count = word(0, vec![at(11, "incq (%rdi)", "rw", None)]);
    let seen = watch(vec![process(11, "ring")], vec![line(LineVerdict::Private, vec![counting(10e6, count)])]);
    let (draft, _) = made(&seen);
    let state = |lab: Option<(f64, f64, f64)>| {
        let lab = lab.map(|(low, median, high)| Interval { median: median * 1e6, low: low * 1e6, high: high * 1e6 });
        let made = judged(scenario("x.toml", &draft, EmittedState::Unresolved, None, &|_| lab));
        (made.state, made.roles[0].reproduced)
    };
    assert_eq!(state(Some((10.5, 11.2, 12.0))), (EmittedState::Reproduced, Some(true)), "the targets reach 11");
    assert_eq!(state(Some((11.5, 11.6, 12.0))), (EmittedState::NotReproduced, Some(false)));
    assert_eq!(state(Some((2.0, 5.0, 50.0))), (EmittedState::Unresolved, None), "too wide");
    assert_eq!(state(None), (EmittedState::Unresolved, None));
    let not_run = scenario("x.toml", &draft, EmittedState::NotRun, None, &no_rate);
    assert_eq!(not_run.next[0], "coordinator advise x.toml");
    assert!(not_run.next[2].ends_with("--emit-scenario x-after.toml"), "{:?}", not_run.next);
}

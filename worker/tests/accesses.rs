//! The loop is the loop: accesses decoded back from the emitted code equal the steps one for one, repeats included.
//! What each step is to do stands in `docs/steps.md`; these tests read it there.
#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code, missing_docs)]
// SAFETY of this file: `support` holds the only unsafe code; nothing is run here.

mod decode;
mod support;

use decode::{Event, How, decode};
use plan::{AccessKind, Address, LockKind, MemoryVerb, Nanos, Op, OpKind, Width, WorkerProgram};
use proptest::prelude::*;
use shm_layout::{READS_OFFSET, WAITS_FOR_OFFSET};
use std::collections::{BTreeMap, BTreeSet};
use std::mem::{offset_of, size_of};
use support::{Stage, compile, program, program_every};
use worker::compile::{LockCell, Tally};

/// Verb to the tokens of its accesses.
type Table = BTreeMap<String, Vec<String>>;

/// What `docs/steps.md` says.
struct Tables {
    steps: Table,
    /// By kind, and whether reading: the attempt's and the release's.
    attempts: Table,
    releases: Table,
}

/// The rows of a table whose first cell is code, each as its cells.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.split('|').skip(1).map(str::trim).collect())
}

fn tokens(cell: &str) -> Vec<String> {
    cell.split('`').filter(|token| !token.trim().is_empty()).map(str::to_owned).collect()
}

fn tables() -> Tables {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/steps.md");
    let text = std::fs::read_to_string(path).expect("docs/steps.md is part of the source");
    let (steps, locks) = text.split_once("\n## Locks\n").expect("docs/steps.md has a section on locks");
    let column = |text, column: usize| {
        let row = |cells: Vec<&str>| (cells[0].replace('`', ""), tokens(cells[column]));
        rows(text).map(row).collect()
    };
    Tables { steps: column(steps, 1), attempts: column(locks, 1), releases: column(locks, 2) }
}

fn verb(kind: &OpKind) -> &'static str {
    match kind {
        OpKind::Access { kind: AccessKind::Load, .. } => "load",
        OpKind::Access { kind: AccessKind::Store, .. } => "store",
        OpKind::Access { kind: AccessKind::Bump, .. } => "bump",
        OpKind::Access { kind: AccessKind::Add, .. } => "add",
        OpKind::Access { kind: AccessKind::Swap, .. } => "swap",
        OpKind::Access { kind: AccessKind::Cas, .. } => "cas",
        OpKind::Post { .. } => "post",
        OpKind::Wait { .. } => "wait",
        OpKind::Flush { .. } => "flush",
        OpKind::Lock { shared: false, .. } => "lock",
        OpKind::Lock { shared: true, .. } => "rlock",
        OpKind::Unlock { shared: false, .. } => "unlock",
        OpKind::Unlock { shared: true, .. } => "runlock",
        OpKind::Work(_) => "work",
        OpKind::Pause => "pause",
        OpKind::Fence => "fence",
        OpKind::Yield => "yield",
        OpKind::Sleep(_) => "sleep",
        OpKind::Die => "die",
        OpKind::Memory(step) => step.verb.name(),
    }
}

/// Size and offset of an operation's target; no offset where it is drawn.
fn target(kind: &OpKind) -> Option<(u64, Option<i64>)> {
    let offset = |at: &Address| match at {
        Address::Fixed(at) => Some(*at as i64),
        Address::Any(_) => None,
    };
    match kind {
        OpKind::Access { width, at, .. } => Some((width.bytes(), offset(at))),
        OpKind::Post { width, at } | OpKind::Wait { width, at } => Some((width.bytes(), Some(*at as i64))),
        OpKind::Flush { at } => Some((0, offset(at))),
        _ => None,
    }
}

/// What code does, in the order of the code, and out of the way.
#[derive(Default)]
struct Expected {
    inline: Vec<Event>,
    seldom: Vec<Event>,
}

/// One pass over locks of one kind, and where they are.
struct Pass<'a> {
    tables: &'a Tables,
    ops: &'a [Op],
    kind: LockKind,
    timed: bool,
    stage: &'a Stage,
    called: &'a [(&'static str, usize)],
}

impl Pass<'_> {
    /// What the tables say of the operation at `index`.
    fn expected(&self, index: usize) -> Expected {
        let mut expected = Expected::default();
        let mut tokens: Vec<String> = self.tables.steps[verb(&self.ops[index].kind)].clone();
        if let OpKind::Lock { shared, .. } | OpKind::Unlock { shared, .. } = self.ops[index].kind
            && !(shared && self.kind.shares_readers())
        {
            let takes = matches!(self.ops[index].kind, OpKind::Lock { .. });
            tokens = self.tables.steps[if takes { "lock" } else { "unlock" }].clone();
        }
        for token in tokens {
            self.token(index, &token, &mut expected);
        }
        self.give_up(index, &mut expected);
        expected
    }

    fn token(&self, index: usize, token: &str, expected: &mut Expected) {
        let row = || match self.is_reader(index) {
            true => format!("{}, reading", self.kind.name()),
            false => self.kind.name().to_owned(),
        };
        match token {
            "attempt" if self.blocks_at_once(index) => self.blocking_call(index, expected),
            "attempt" => self.tables.attempts[&row()].iter().for_each(|token| self.token(index, token, expected)),
            "release" => self.tables.releases[&row()].iter().for_each(|token| self.token(index, token, expected)),
            "due" | "asked" if !self.timed => {}
            "else call sample" if !self.timed => {}
            "else call unlock" if !(self.timed || self.kind == LockKind::Mcs || self.reads_a_count(index)) => {}
            _ => match token.strip_prefix("else ") {
                Some(token) => expected.seldom.extend(self.events(index, token)),
                None => expected.inline.extend(self.events(index, token)),
            },
        }
    }

    fn events(&self, index: usize, token: &str) -> Vec<Event> {
        let op = &self.ops[index];
        let area = |how| {
            let (bytes, at) = target(&op.kind).expect("the table gives accesses to a step with a target");
            vec![Event::Area { how, bytes, at }]
        };
        let word = |how, at| vec![Event::Area { how, bytes: 4, at }];
        match token {
            "read" => area(How::Read),
            "write" => area(How::Write),
            "locked" => area(How::Locked),
            "fence" => vec![Event::Fence],
            "record" => word(How::Read, Some(self.lock_at(index) + 56)),
            "note" => vec![self.note()],
            "count" => {
                [How::Read, How::Write].map(|how| self.cell(index, how, Some(offset_of!(Tally, acquired)))).into()
            }
            "due" => vec![self.cell(index, How::Read, Some(offset_of!(Tally, sample_at)))],
            "asked" => vec![self.cell(index, How::Read, None)],
            _ if token.starts_with("call ") => vec![self.call(index, &token["call ".len()..])],
            _ => {
                let (how, place) = token.split_once(' ').unwrap_or_else(|| panic!("docs/steps.md says `{token}`"));
                let how = match how {
                    "read" => How::Read,
                    "write" => How::Write,
                    "locked" => How::Locked,
                    _ => panic!("docs/steps.md says `{token}`"),
                };
                word(how, self.place(index, place))
            }
        }
    }

    /// Where a word of a lock's lies, of its own or of a node; nothing where the code adds a node's name.
    fn place(&self, index: usize, place: &str) -> Option<i64> {
        match (place, self.kind) {
            ("own", LockKind::Mcs) => Some(self.stage.own_node_at(self.lock(index))),
            ("own" | "before", LockKind::Clh) => None,
            (offset, _) => Some(self.lock_at(index) + offset.parse::<i64>().expect("an offset in the lock")),
        }
    }

    fn call(&self, index: usize, name: &str) -> Event {
        let (name, _) =
            self.called.iter().find(|(known, _)| *known == name).expect("docs/steps.md calls a known function");
        let argument = match () {
            () if support::NAMES.contains(name) => {
                (*name == "flush").then(|| target(&self.ops[index].kind).expect("flush has a target").1)
            }
            () => Some(Some(self.lock_at(index))),
        };
        Event::Call(name, argument)
    }

    /// A word of the lock's cell: a tally's, or whether the release goes by the hook.
    fn cell(&self, index: usize, how: How, in_tally: Option<usize>) -> Event {
        let part = if self.is_reader(index) { offset_of!(LockCell, shared) } else { offset_of!(LockCell, exclusive) };
        let (at, bytes) = in_tally.map_or((offset_of!(LockCell, by_hook), 4), |word| (part + word, 8));
        Event::Cell { how, bytes, at: i64::from(self.lock(index)) * size_of::<LockCell>() as i64 + at as i64 }
    }

    fn note(&self) -> Event {
        Event::Area { how: How::Write, bytes: 8, at: Some(self.stage.slot_at(READS_OFFSET)) }
    }

    /// In a plain arm, the library's blocking call between two words to whoever asks.
    fn blocking_call(&self, index: usize, expected: &mut Expected) {
        let blocked = || Event::Area { how: How::Write, bytes: 4, at: Some(self.stage.slot_at(WAITS_FOR_OFFSET)) };
        if self.is_reader(index) {
            expected.inline.push(self.note());
        }
        let name = match (self.kind, self.is_reader(index)) {
            (LockKind::PthreadSpin, _) => "pthread_spin_lock",
            (LockKind::PthreadRwlock, true) => "pthread_rwlock_rdlock",
            (LockKind::PthreadRwlock, false) => "pthread_rwlock_wrlock",
            (LockKind::Semaphore, _) => "sem_wait",
            _ => "pthread_mutex_lock",
        };
        expected.inline.extend([blocked(), self.call(index, name), blocked()]);
    }

    /// What a pass does that cannot go on from here, but for what skips up to a release.
    fn give_up(&self, index: usize, expected: &mut Expected) {
        let notes = self.kind == LockKind::PthreadRwlock;
        match self.ops[index].kind {
            OpKind::Lock { timeout: Some(_), .. } if self.is_released(index) => {
                if notes && self.is_reader(index) {
                    expected.seldom.push(self.note());
                }
                return;
            }
            OpKind::Lock { .. } | OpKind::Wait { .. } => {}
            _ => return,
        }
        let mut held = Vec::new();
        for op in &self.ops[..index] {
            match op.kind {
                OpKind::Lock { lock, shared, .. } => held.push((lock, shared)),
                OpKind::Unlock { lock, .. } => held.retain(|&(taken, _)| taken != lock),
                _ => {}
            }
        }
        let given_back = held.iter().filter(|(_, shared)| !(*shared && self.kind == LockKind::Seqlock)).count();
        expected.seldom.extend(vec![self.call(index, "unlock"); given_back]);
        if notes && self.ops.iter().any(|op| matches!(op.kind, OpKind::Lock { shared: true, .. })) {
            expected.seldom.push(self.note());
        }
    }

    fn lock(&self, index: usize) -> u32 {
        match self.ops[index].kind {
            OpKind::Lock { lock, .. } | OpKind::Unlock { lock, .. } => lock,
            _ => panic!("no step of a lock's"),
        }
    }

    fn lock_at(&self, index: usize) -> i64 {
        Stage::at(self.lock(index))
    }

    fn is_reader(&self, index: usize) -> bool {
        let (OpKind::Lock { shared, .. } | OpKind::Unlock { shared, .. }) = self.ops[index].kind else { return false };
        shared && self.kind.shares_readers()
    }

    fn reads_a_count(&self, index: usize) -> bool {
        self.is_reader(index) && self.kind == LockKind::Seqlock
    }

    fn blocks_at_once(&self, index: usize) -> bool {
        let waits_at_will = matches!(self.ops[index].kind, OpKind::Lock { timeout: None, .. });
        !self.timed && self.kind.is_tried_first() && waits_at_will
    }

    fn is_released(&self, index: usize) -> bool {
        let released = |op: &Op| matches!(op.kind, OpKind::Unlock { lock, .. } if lock == self.lock(index));
        self.ops[index..].iter().any(released)
    }
}

/// Compiles, decodes, and compares with the tables: order, kind, size, offset, and the step that the listing names.
fn assert_accesses_are_the_steps_of(program: &WorkerProgram, tables: &Tables, kind: LockKind, timed: bool) {
    let stage = Stage::new(kind);
    let compiled = stage.compile(program, timed);
    let decoded = decode(compiled.code(), compiled.called()).expect("every memory operand has a known origin");
    let listing = compiled.listing();
    let step = |offset| listing.lines.iter().find(|line| line.offset == offset).unwrap().step;
    let seen = decoded.events.into_iter().map(|(offset, event)| (offset, (step(offset), event)));
    let (inline, seldom): (Vec<_>, Vec<_>) = seen.partition(|(offset, _)| *offset < decoded.returns_at);
    let pass = Pass { tables, ops: &program.ops, kind, timed, stage: &stage, called: compiled.called() };
    let mut wanted = (Vec::new(), Vec::new());
    for _ in 0..compiled.unroll() {
        for (index, op) in program.ops.iter().enumerate() {
            let expected = pass.expected(index);
            wanted.0.extend(expected.inline.into_iter().map(|event| (Some(op.step), event)));
            wanted.1.extend(expected.seldom.into_iter().map(|event| (Some(op.step), event)));
        }
    }
    let inline: Vec<_> = inline.into_iter().map(|(_, event)| event).collect();
    assert_eq!(inline, wanted.0, "{kind:?}, timed: {timed}\n{listing}");
    let sorted = |mut events: Vec<(Option<u32>, Event)>| {
        events.sort_by_key(|event| format!("{event:?}"));
        events
    };
    let seldom = sorted(seldom.into_iter().map(|(_, event)| event).collect());
    assert_eq!(seldom, sorted(wanted.1), "{kind:?}, timed: {timed}\n{listing}");
    let can_block = usize::from(program.can_block());
    assert_eq!(decoded.last_pass, (can_block, can_block), "the number of the last pass:\n{listing}");
}

/// The same of a program without locks.
fn assert_accesses_are_the_steps(program: &WorkerProgram, tables: &Tables) {
    assert_accesses_are_the_steps_of(program, tables, LockKind::Tas, true);
}

const WIDTHS: [Width; 4] = [Width::U8, Width::U16, Width::U32, Width::U64];

const ACCESSES: [AccessKind; 6] =
    [AccessKind::Load, AccessKind::Store, AccessKind::Bump, AccessKind::Add, AccessKind::Swap, AccessKind::Cas];

/// Every operation there is but those of locks, in every width and with both kinds of address.
fn every_operation() -> Vec<OpKind> {
    let addresses =
        || [Address::Fixed(0), Address::Fixed(128), Address::Fixed(1 << 20), Address::Any(vec![0, 64, 128])];
    let mut all: Vec<OpKind> = vec![
        OpKind::Work(Nanos(100)),
        OpKind::Work(Nanos(1)),
        OpKind::Pause,
        OpKind::Fence,
        OpKind::Yield,
        OpKind::Sleep(Nanos(1_000_000)),
        OpKind::Die,
    ];
    all.extend(MemoryVerb::ALL.map(|(_, verb)| support::memory_step(verb)));
    all.extend(addresses().map(|at| OpKind::Flush { at }));
    for width in WIDTHS {
        all.extend([OpKind::Post { width, at: 64 }, OpKind::Wait { width, at: 64 }]);
        for kind in ACCESSES {
            all.extend(addresses().map(|at| OpKind::Access { kind, width, at }));
        }
    }
    all
}

#[test]
fn the_table_names_every_step_and_no_other() {
    let of_locks = ["lock", "unlock", "rlock", "runlock"];
    let verbs = every_operation().iter().map(verb).chain(of_locks).map(str::to_owned).collect::<BTreeSet<_>>();
    let Tables { steps, attempts, releases } = tables();
    assert_eq!(steps.into_keys().collect::<BTreeSet<_>>(), verbs);
    let reading =
        LockKind::ALL.into_iter().filter(|kind| kind.shares_readers()).map(|k| format!("{}, reading", k.name()));
    let kinds: BTreeSet<String> = LockKind::ALL.map(|kind| kind.name().to_owned()).into_iter().chain(reading).collect();
    assert_eq!(attempts.into_keys().collect::<BTreeSet<_>>(), kinds);
    assert_eq!(releases.into_keys().collect::<BTreeSet<_>>(), kinds);
}

#[test]
fn every_step_alone_does_what_the_table_says() {
    let table = tables();
    for kind in every_operation() {
        assert_accesses_are_the_steps(&program([kind]), &table);
    }
}

#[test]
fn every_step_repeated_is_made_as_often_as_it_is_written() {
    let table = tables();
    for kind in every_operation() {
        assert_accesses_are_the_steps(&program(vec![kind.clone(); 2]), &table);
        assert_accesses_are_the_steps(&program(vec![kind; 5]), &table);
    }
}

fn lock(lock: u32, shared: bool, timeout: Option<u64>) -> OpKind {
    OpKind::Lock { lock, shared, timeout: timeout.map(Nanos) }
}

fn unlock(lock: u32, shared: bool) -> OpKind {
    OpKind::Unlock { lock, shared }
}

fn assert_of_every_kind(ops: &[OpKind]) {
    let tables = tables();
    for kind in LockKind::ALL {
        for timed in [true, false] {
            assert_accesses_are_the_steps_of(&program(ops.to_vec()), &tables, kind, timed);
        }
    }
}

#[test]
fn every_kind_is_acquired_and_released_as_the_table_says() {
    for shared in [false, true] {
        for timeout in [None, Some(1_000)] {
            assert_of_every_kind(&[lock(1, shared, timeout), unlock(1, shared)]);
        }
        assert_of_every_kind(&[lock(2, shared, None), OpKind::Die]);
    }
}

/// Branches behind acquisitions and releases add no access, and take none away.
#[test]
fn nested_locks_with_timeouts_and_waits_do_what_the_table_says() {
    let add = || support::access(AccessKind::Add, 64);
    let wait = || OpKind::Wait { width: Width::U64, at: 128 };
    let time = Some(1_000_000);
    assert_of_every_kind(&[
        lock(0, true, time),
        add(),
        lock(3, false, None),
        wait(),
        lock(1, true, time),
        add(),
        unlock(1, true),
        unlock(3, false),
        add(),
        wait(),
        unlock(0, true),
        add(),
        lock(0, false, None),
        unlock(0, false),
    ]);
}

#[test]
fn a_bump_is_never_one_instruction() {
    let compiled = compile(&program([support::access(AccessKind::Bump, 0)]));
    let decoded = decode(compiled.code(), compiled.called()).expect("decodes");
    assert_eq!(decoded.events.len() as u64, 2 * compiled.unroll());
}

#[test]
fn the_chain_of_work_is_emitted_as_often_as_it_is_written() {
    let work = |ns| OpKind::Work(Nanos(ns));
    let compiled = compile(&program([work(100), work(100), work(200)]));
    let decoded = decode(compiled.code(), compiled.called()).expect("decodes");
    assert_eq!(decoded.multiplications, 3);
    let text = compiled.listing().to_string();
    assert_eq!((text.matches("mov $0x64,").count(), text.matches("mov $0xc8,").count()), (2, 1), "{text}");
}

fn any_width() -> impl Strategy<Value = Width> {
    prop::sample::select(WIDTHS.to_vec())
}

/// Offsets of a page, aligned or not: a layout may let a field straddle lines.
fn any_address() -> impl Strategy<Value = Address> {
    prop_oneof![
        4 => (0u64..4096).prop_map(Address::Fixed),
        1 => prop::collection::vec(0u64..4096, 1..9).prop_map(Address::Any),
    ]
}

fn any_operation() -> impl Strategy<Value = OpKind> {
    let access = (prop::sample::select(ACCESSES.to_vec()), any_width(), any_address());
    let word = || (any_width(), prop::sample::select(vec![0u64, 64, 72]));
    prop_oneof![
        12 => access.prop_map(|(kind, width, at)| OpKind::Access { kind, width, at }),
        2 => word().prop_map(|(width, at)| OpKind::Post { width, at }),
        2 => word().prop_map(|(width, at)| OpKind::Wait { width, at }),
        1 => any_address().prop_map(|at| OpKind::Flush { at }),
        1 => (0u64..500).prop_map(|ns| OpKind::Work(Nanos(ns))),
        1 => (0u64..500).prop_map(|ns| OpKind::Sleep(Nanos(ns))),
        1 => prop::sample::select(MemoryVerb::ALL.to_vec()).prop_map(|(_, verb)| support::memory_step(verb)),
        1 => prop::sample::select(vec![OpKind::Pause, OpKind::Fence, OpKind::Yield, OpKind::Die]),
    ]
}

type Steps = Vec<(u32, OpKind)>;

/// Up to `most` steps in a row, sections of locks not held yet among them.
fn any_steps(most: usize, locks: std::ops::Range<u32>) -> BoxedStrategy<Steps> {
    let one = (prop_oneof![3 => Just(1u32), 1 => 2u32..70], any_operation()).prop_map(|step| vec![step]);
    let one_or_section = match locks.is_empty() {
        true => one.boxed(),
        false => prop_oneof![6 => one, 1 => any_section(most / 2, locks)].boxed(),
    };
    prop::collection::vec(one_or_section, 1..most.max(2)).prop_map(|steps| steps.concat()).boxed()
}

/// The first of these locks around some steps.
fn any_section(most: usize, locks: std::ops::Range<u32>) -> impl Strategy<Value = Steps> {
    let (taken, others) = (locks.start, locks.start + 1..locks.end);
    let how = (any::<bool>(), prop::option::of(1_000u64..9_999));
    (how, any_steps(most, others)).prop_map(move |((shared, timeout), inner)| {
        let [acquisition, release] = [lock(taken, shared, timeout), unlock(taken, shared)].map(|op| vec![(1, op)]);
        [acquisition, inner, release].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_do_what_the_table_says(
        ops in any_steps(16, 0..support::LOCKS as u32),
        kind in prop::sample::select(LockKind::ALL.to_vec()),
        timed in any::<bool>(),
    ) {
        assert_accesses_are_the_steps_of(&program_every(ops), &tables(), kind, timed);
    }

    #[test]
    fn short_programs_of_accesses_do_what_the_table_says(
        ops in prop::collection::vec((1u32..4, any_operation()), 1..5),
    ) {
        assert_accesses_are_the_steps(&program_every(ops), &tables());
    }
}

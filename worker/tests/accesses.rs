//! The loop is the loop: accesses decoded back from the emitted code equal the steps one for one, repeats included.
//! What each step is to do stands in `docs/steps.md`; these tests read it there.
#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code, missing_docs)]
// SAFETY of this file: `support` holds the only unsafe code; nothing is run here.

mod decode;
mod support;

use decode::{Event, How, decode};
use plan::{AccessKind, Address, Nanos, Op, OpKind, Width, WorkerProgram};
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::{compile, program, program_every};

/// Verb to the tokens of its accesses.
type Table = BTreeMap<String, Vec<String>>;

fn table() -> Table {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/steps.md");
    let text = std::fs::read_to_string(path).expect("docs/steps.md is part of the source");
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let (step, accesses) = (cells.next().unwrap(), cells.next().unwrap());
        let tokens = accesses.split('`').filter(|token| !token.trim().is_empty()).map(str::to_owned).collect();
        (step.trim_matches('`').to_owned(), tokens)
    })
    .collect()
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
        OpKind::Touch { .. } => "touch",
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

/// What the table says of one operation.
fn expected(op: &Op, table: &Table) -> Vec<Event> {
    let target = target(&op.kind);
    let area = |how| {
        let (bytes, at) = target.expect("the table gives accesses to a step with a target");
        Event::Area { how, bytes, at }
    };
    let event = |token: &String| match token.as_str() {
        "read" => area(How::Read),
        "write" => area(How::Write),
        "locked" => area(How::Locked),
        "fence" => Event::Fence,
        call => {
            let name = call.strip_prefix("call ").unwrap_or_else(|| panic!("docs/steps.md says `{call}`"));
            let name =
                support::NAMES.iter().find(|known| **known == name).expect("docs/steps.md calls a known function");
            Event::Call(name, (*name == "flush").then(|| target.expect("flush has a target").1))
        }
    };
    table[verb(&op.kind)].iter().map(event).collect()
}

/// Compiles, decodes, and compares with the table: order, kind, size, offset, and the step that the listing names.
fn assert_accesses_are_the_steps(program: &WorkerProgram, table: &Table) {
    let compiled = compile(program);
    let decoded = decode(compiled.code(), compiled.called()).expect("every memory operand has a known origin");
    let listing = compiled.listing();
    let seen: Vec<(Option<u32>, Event)> = decoded
        .events
        .into_iter()
        .map(|(offset, event)| (listing.lines.iter().find(|line| line.offset == offset).unwrap().step, event))
        .collect();
    let pass = || program.ops.iter().flat_map(|op| expected(op, table).into_iter().map(|e| (Some(op.step), e)));
    let wanted: Vec<(Option<u32>, Event)> = (0..compiled.unroll()).flat_map(|_| pass()).collect();
    assert_eq!(seen, wanted, "{listing}");
    assert_eq!(decoded.context_reads, usize::from(program.can_block()), "reads of `break_now`:\n{listing}");
}

const WIDTHS: [Width; 4] = [Width::U8, Width::U16, Width::U32, Width::U64];

const ACCESSES: [AccessKind; 6] =
    [AccessKind::Load, AccessKind::Store, AccessKind::Bump, AccessKind::Add, AccessKind::Swap, AccessKind::Cas];

/// Every operation there is, in every width and with both kinds of address.
fn every_operation() -> Vec<OpKind> {
    let addresses =
        || [Address::Fixed(0), Address::Fixed(128), Address::Fixed(1 << 20), Address::Any(vec![0, 64, 128])];
    let mut all: Vec<OpKind> = vec![
        OpKind::Lock { lock: 1, shared: false, timeout: None },
        OpKind::Unlock { lock: 1, shared: false },
        OpKind::Lock { lock: 2, shared: true, timeout: None },
        OpKind::Unlock { lock: 2, shared: true },
        OpKind::Lock { lock: 1, shared: true, timeout: Some(Nanos(1_000)) },
        OpKind::Work(Nanos(100)),
        OpKind::Work(Nanos(1)),
        OpKind::Pause,
        OpKind::Fence,
        OpKind::Yield,
        OpKind::Sleep(Nanos(1_000_000)),
        OpKind::Touch { region: 2 },
        OpKind::Die,
    ];
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
    let verbs: std::collections::BTreeSet<String> = every_operation().iter().map(|op| verb(op).to_owned()).collect();
    assert_eq!(table().into_keys().collect::<std::collections::BTreeSet<_>>(), verbs);
}

#[test]
fn every_step_alone_does_what_the_table_says() {
    let table = table();
    for kind in every_operation() {
        assert_accesses_are_the_steps(&program([kind]), &table);
    }
}

#[test]
fn every_step_repeated_is_made_as_often_as_it_is_written() {
    let table = table();
    for kind in every_operation() {
        assert_accesses_are_the_steps(&program(vec![kind.clone(); 2]), &table);
        assert_accesses_are_the_steps(&program(vec![kind; 5]), &table);
    }
}

/// Branches behind `lock` and `unlock` add no access, and take none away.
#[test]
fn nested_locks_with_timeouts_do_what_the_table_says() {
    let lock = |lock, shared| OpKind::Lock { lock, shared, timeout: Some(Nanos(1_000_000)) };
    let unlock = |lock, shared| OpKind::Unlock { lock, shared };
    let add = || support::access(AccessKind::Add, 64);
    let ops = [lock(0, true), add(), lock(1, false), add(), unlock(1, false), add(), unlock(0, true), add()];
    assert_accesses_are_the_steps(&program(ops), &table());
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
        1 => (0u32..4, any::<bool>(), prop::option::of((1_000u64..9_999).prop_map(Nanos)))
            .prop_map(|(lock, shared, timeout)| OpKind::Lock { lock, shared, timeout }),
        1 => (0u32..4, any::<bool>()).prop_map(|(lock, shared)| OpKind::Unlock { lock, shared }),
        1 => (0u64..500).prop_map(|ns| OpKind::Work(Nanos(ns))),
        1 => (0u64..500).prop_map(|ns| OpKind::Sleep(Nanos(ns))),
        1 => (0u32..4).prop_map(|region| OpKind::Touch { region }),
        1 => prop::sample::select(vec![OpKind::Pause, OpKind::Fence, OpKind::Yield, OpKind::Die]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_do_what_the_table_says(
        ops in prop::collection::vec((prop_oneof![3 => Just(1u32), 1 => 2u32..70], any_operation()), 1..40),
    ) {
        assert_accesses_are_the_steps(&program_every(ops), &table());
    }

    #[test]
    fn short_programs_of_accesses_do_what_the_table_says(
        ops in prop::collection::vec((1u32..4, any_operation()), 1..5),
    ) {
        assert_accesses_are_the_steps(&program_every(ops), &table());
    }
}

//! `placement`, as a word or as a table, and the shift beside it.

use crate::context::Context;
use crate::document::{Node, Table, Value, quoted};
use crate::outline::Outline;
use crate::paths::Applied;
use crate::refusal::Problem;
use crate::{memory, read, schema, words};
use plan::{Placement, Strategy};
use std::collections::BTreeMap;

const FORMS: &str = "\"packed\", \"declared\", \"by-writer\", \"hot-cold\", { pad = 64 }, { shift = 8 } or \
                     { offsets = { a = 0, b = [64, 128] } }";

/// The placement in force in an arm; packed where none is given.
pub(crate) fn read(context: &mut Context, applied: &Applied, outline: &Outline) -> Placement {
    let mut placement = Placement { strategy: Strategy::Packed, shift: 0 };
    match applied.placement.as_ref().map(|node| (node, &node.value)) {
        None => {}
        Some((node, Value::String(_))) => placement.strategy = word(context, node).unwrap_or(Strategy::Packed),
        Some((node, Value::Table(table))) => placement = from_table(context, node, table, outline),
        Some((node, _)) => read::wrong_type(context, node, "placement", "a word or a table", FORMS),
    }
    if let Some(node) = &applied.shift {
        placement.shift = shift(context, node);
    }
    placement
}

fn word(context: &mut Context, node: &Node) -> Option<Strategy> {
    let text = node.string().unwrap_or_default();
    if matches!(text, "pad" | "shift" | "offsets") {
        context.refuse(
            Problem::at(&node.place, format!("placement {} needs a value", quoted(text)))
                .label("a word alone")
                .cure(format!("the forms are {FORMS}")),
        );
        return None;
    }
    Some(match read::word(context, node, "placement", schema::STRATEGIES)? {
        "declared" => Strategy::Declared,
        "by-writer" => Strategy::ByWriter,
        "hot-cold" => Strategy::HotCold,
        _ => Strategy::Packed,
    })
}

fn from_table(context: &mut Context, node: &Node, table: &Table, outline: &Outline) -> Placement {
    read::known_keys(context, table, schema::PLACEMENT, "placement");
    let rules: Vec<_> =
        table.entries.iter().filter(|entry| ["strategy", "pad", "offsets"].contains(&&*entry.key)).collect();
    if let [first, second, ..] = rules.as_slice() {
        context.refuse(
            Problem::at(&second.key_place, "a placement has one rule")
                .label("the second")
                .also(&first.key_place, "the first")
                .cure("keep one of `strategy`, `pad` and `offsets`; only `shift` stands beside any"),
        );
    }
    if table.entries.is_empty() {
        context.refuse(Problem::at(&node.place, "an empty placement").cure(format!("the forms are {FORMS}")));
    }
    let strategy = match rules.first().map(|rule| (rule.key.as_str(), &rule.node)) {
        Some(("strategy", node)) => match node.string() {
            Some(_) => word(context, node),
            None => {
                read::wrong_type(context, node, "strategy", &words::one_of(schema::STRATEGIES), "\"by-writer\"");
                None
            }
        },
        Some(("pad", node)) => pad(context, node),
        Some((_, node)) => offsets(context, node, outline),
        None => None,
    };
    let shift = table.get("shift").map_or(0, |node| shift(context, node));
    Placement { strategy: strategy.unwrap_or(Strategy::Packed), shift }
}

fn shift(context: &mut Context, node: &Node) -> u64 {
    let why = "bytes added to a base that is aligned to a page, so that 4096 would be 0 again";
    read::integer(context, node, "shift", schema::SHIFT, why).unwrap_or(0)
}

fn pad(context: &mut Context, node: &Node) -> Option<Strategy> {
    let why = "a power of two of bytes that each element gets to itself";
    let bytes = read::integer(context, node, "pad", schema::PAD, why)?;
    if bytes.is_power_of_two() {
        return Some(Strategy::Pad(bytes));
    }
    let (below, above) = (bytes.next_power_of_two() / 2, bytes.next_power_of_two());
    context.refuse(
        Problem::at(&node.place, format!("`pad` cannot be {bytes}"))
            .label("not a power of two")
            .cure(format!("lines and pages are powers of two: write {below} or {above}; a cache line has 64 bytes")),
    );
    None
}

fn offsets(context: &mut Context, node: &Node, outline: &Outline) -> Option<Strategy> {
    let Some(table) = node.table() else {
        read::wrong_type(context, node, "offsets", "a table of offsets by name", "{ a = 0, b = [64, 128] }");
        return None;
    };
    let known: Vec<&String> = outline.fields.iter().chain(&outline.locks).collect();
    let mut offsets = BTreeMap::new();
    for entry in &table.entries {
        if !known.contains(&&entry.key) {
            let problem = Problem::at(&entry.key_place, format!("no field or lock {} to place", quoted(&entry.key)));
            let problem = match words::nearest(&entry.key, &known) {
                Some(near) => problem.label(format!("did you mean `{near}`?")),
                None => problem.label("not declared"),
            };
            context.refuse(problem.cure(format!("the fields and locks are {}", words::listed(&known))));
        }
        let of_one = |context: &mut Context, node: &Node| memory::offset(context, node, &entry.key);
        let list: Option<Vec<u64>> = match &entry.node.value {
            Value::Array(nodes) => nodes.iter().map(|node| of_one(context, node)).collect(),
            _ => of_one(context, &entry.node).map(|offset| vec![offset]),
        };
        offsets.insert(entry.key.clone(), list?);
    }
    Some(Strategy::Explicit(offsets))
}

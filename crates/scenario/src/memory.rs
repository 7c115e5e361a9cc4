//! `[field.NAME]` and `[lock.NAME]`.

use crate::context::Context;
use crate::document::{Entry, Node, Table};
use crate::refusal::Problem;
use crate::{read, schema};
use plan::{Count, Field, Lock, LockKind, Width};

/// The fields in file order.
pub(crate) fn fields(context: &mut Context, root: &Table) -> Vec<Field> {
    root.named("field").map(|(entry, table)| field(context, entry, table)).collect()
}

fn field(context: &mut Context, entry: &Entry, table: &Table) -> Field {
    let width = match table.get("type") {
        Some(node) => width(context, node),
        None => {
            context.refuse(
                Problem::at(&entry.key_place, format!("field `{}` has no type", entry.key))
                    .label("`type` is missing")
                    .cure("add type = \"u64\", or \"u32\", \"u16\", \"u8\""),
            );
            None
        }
    };
    let at = table.get("at").and_then(|node| offset(context, node, "at"));
    Field { name: entry.key.clone(), width: width.unwrap_or(Width::U64), count: count(context, entry, table), at }
}

fn width(context: &mut Context, node: &Node) -> Option<Width> {
    Some(match read::word(context, node, "type", schema::TYPES)? {
        "u8" => Width::U8,
        "u16" => Width::U16,
        "u32" => Width::U32,
        _ => Width::U64,
    })
}

fn count(context: &mut Context, entry: &Entry, table: &Table) -> Count {
    if let (Some(each), Some(count)) = (table.entry("each"), table.entry("count")) {
        context.refuse(
            Problem::at(&count.key_place, format!("field `{}` has both `each` and `count`", entry.key))
                .label("a fixed number of elements")
                .also(&each.key_place, "one element a worker")
                .cure("keep one of the two"),
        );
    }
    if let Some(node) = table.get("each") {
        read::word(context, node, "each", &["worker"]);
        return Count::PerWorker;
    }
    match table.get("count") {
        None => Count::One,
        Some(node) => {
            let why = "an array has at least one element; a single value needs no count";
            Count::Fixed(read::integer(context, node, "count", schema::COUNT, why).unwrap_or(schema::COUNT.1) as u32)
        }
    }
}

/// A byte offset.
pub(crate) fn offset(context: &mut Context, node: &Node, key: &str) -> Option<u64> {
    read::integer(context, node, key, schema::OFFSET, "bytes from the start of the fields, below 16 MiB")
}

/// The locks in file order.
pub(crate) fn locks(context: &mut Context, root: &Table) -> Vec<Lock> {
    let lock = |context: &mut Context, entry: &Entry, table: &Table| {
        let names = LockKind::ALL.map(LockKind::name);
        let word = table.get("kind").and_then(|node| read::word(context, node, "kind", &names));
        let kind = word.and_then(|word| LockKind::ALL.into_iter().find(|kind| kind.name() == word));
        let at = table.get("at").and_then(|node| offset(context, node, "at"));
        Lock { name: entry.key.clone(), kind: kind.unwrap_or(LockKind::Pthread), at }
    };
    root.named("lock").map(|(entry, table)| lock(context, entry, table)).collect()
}

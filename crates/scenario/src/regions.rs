//! `[region.NAME]`: private memory of each worker whose steps name it.

use crate::context::Context;
use crate::document::{Entry, Table};
use crate::refusal::Problem;
use crate::{quantity, schema};
use plan::{PAGE_BYTES, Region};

/// The regions in file order.
pub(crate) fn read(context: &mut Context, root: &Table) -> Vec<Region> {
    root.named("region").map(|(entry, table)| region(context, entry, table)).collect()
}

fn region(context: &mut Context, entry: &Entry, table: &Table) -> Region {
    // A stand-in where it was refused.
    let bytes = size(context, entry, table).unwrap_or(PAGE_BYTES);
    Region { name: entry.key.clone(), bytes }
}

fn size(context: &mut Context, entry: &Entry, table: &Table) -> Option<u64> {
    let Some(node) = table.get("size") else {
        context.refuse(
            Problem::at(&entry.key_place, format!("region `{}` has no size", entry.key))
                .label("`size` is missing")
                .cure("add size = \"4MiB\""),
        );
        return None;
    };
    let why = "private memory of each worker that touches it";
    let bytes = quantity::bytes(context, node, "size", schema::REGION_BYTES, PAGE_BYTES, why)?;
    if !bytes.is_multiple_of(PAGE_BYTES) {
        let whole = quantity::shown_bytes(bytes.next_multiple_of(PAGE_BYTES));
        context.refuse(
            Problem::at(&node.place, format!("region `{}` ends in the middle of a page", entry.key))
                .label(format!("{bytes} bytes are no whole number of pages of {PAGE_BYTES}"))
                .cure(format!("write a multiple of 4KiB, such as \"{whole}\"")),
        );
        return None;
    }
    Some(bytes)
}

//! `[region.NAME]`: memory in pages, of each process or of all together.

use crate::context::Context;
use crate::document::{Entry, Table};
use crate::refusal::Problem;
use crate::{quantity, read, schema};
use plan::{Pages, Region};

/// The regions in file order.
pub(crate) fn read(context: &mut Context, root: &Table) -> Vec<Region> {
    root.named("region").map(|(entry, table)| region(context, entry, table)).collect()
}

fn region(context: &mut Context, entry: &Entry, table: &Table) -> Region {
    let shared = table.get("shared").and_then(|node| read::boolean(context, node, "shared")).unwrap_or(false);
    let pages = pages(context, entry, table, shared);
    // A stand-in where it was refused.
    let bytes = size(context, entry, table, pages).unwrap_or(pages.bytes());
    Region { name: entry.key.clone(), bytes, shared, pages }
}

fn pages(context: &mut Context, entry: &Entry, table: &Table, shared: bool) -> Pages {
    let Some(node) = table.get("pages") else { return Pages::Small };
    let word = read::word(context, node, "pages", schema::PAGES);
    let pages = Pages::ALL.into_iter().find(|(name, _)| Some(*name) == word).map_or(Pages::Small, |(_, pages)| pages);
    if shared && pages == Pages::Transparent {
        context.refuse(
            Problem::at(&node.place, format!("region `{}` is shared, and its pages transparent", entry.key))
                .label("shared memory is reserved before it is mapped, in small pages")
                .cure("write pages = \"2MiB\", or leave `shared` out"),
        );
        return Pages::Small;
    }
    pages
}

fn size(context: &mut Context, entry: &Entry, table: &Table, pages: Pages) -> Option<u64> {
    let Some(node) = table.get("size") else {
        context.refuse(
            Problem::at(&entry.key_place, format!("region `{}` has no size", entry.key))
                .label("`size` is missing")
                .cure("add size = \"4MiB\""),
        );
        return None;
    };
    let why = "memory of each process that uses it, or of all together";
    let unit = pages.bytes();
    let bytes = quantity::bytes(context, node, "size", schema::REGION_BYTES, unit, why)?;
    if !bytes.is_multiple_of(unit) {
        let whole = quantity::shown_bytes(bytes.next_multiple_of(unit));
        context.refuse(
            Problem::at(&node.place, format!("region `{}` ends in the middle of a page", entry.key))
                .label(format!("{bytes} bytes are no whole number of pages of {unit}"))
                .cure(format!("write a multiple of {}, such as \"{whole}\"", quantity::shown_bytes(unit))),
        );
        return None;
    }
    Some(bytes)
}

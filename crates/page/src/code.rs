//! Each worker's machine code beside the steps it came from.

use crate::table::scrolled;
use maud::{Markup, html};
use record::{CodeListing, Run};

pub(crate) fn section(run: &Run) -> Markup {
    let command = format!("coordinator run {} --show-code", run.scenario.path);
    let Some(code) = &run.code else {
        return html! { p { "This record holds no machine code. " code { (command) } " prints it." } };
    };
    html! {
        p .legend {
            "Loops are compiled, not interpreted. A listing is one worker's of each role, with each step above the \
             instructions that it became; other workers of the role differ in addresses alone. Compiled once more by \
             the coordinator, which is not pinned: the turns of a " code { "work" } " step may come out differently on \
             a worker's own CPU."
        }
        @for listing in &code.listings { (one(listing)) }
        @if code.listings_left_out > 0 {
            p .left { (code.listings_left_out) " more are left out; " code { (command) } " prints them all." }
        }
    }
}

fn one(listing: &CodeListing) -> Markup {
    let name = format!("{}, role {}, worker {}", listing.arm, listing.role, listing.worker);
    html! { details {
        summary { (name) }
        (scrolled(&name, html! { pre { code { (listing.text.replace('\t', "    ")) } } }))
        @if listing.lines_left_out > 0 { p .left { (listing.lines_left_out) " lines more are left out." } }
    } }
}

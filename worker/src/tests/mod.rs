//! Tests of whole loops in this process, and what tests elsewhere in the crate look at memory with.

pub(crate) mod pagemap;
mod rehearsal;
mod scripted;

/// What the test of that name in that module is called on the command line: without the crate's name.
fn named(test: &str, module: &str) -> String {
    let (_, within) = module.split_once("::").expect("a module of a crate");
    format!("{within}::{test}")
}

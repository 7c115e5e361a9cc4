//! Tests of whole loops in this process, and what tests elsewhere in the crate look at memory with.

pub(crate) mod pagemap;
mod rehearsal;
mod scripted;

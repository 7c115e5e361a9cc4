//! A TOML text whose every key and value knows its place, and refusals that point there: file, line, column, what is
//! wrong, and the cure. Scenarios and machine files are read through it, so that both refuse in one voice.
//!
//! A reader makes a [`Context`](context::Context) of its [`Kind`](context::Kind) of file, has [`document::read`] turn
//! the text into a tree, takes values out of it through [`read`], which refuses what does not fit, and ends in
//! [`Context::into_refusal`](context::Context::into_refusal) where anything did.
#![forbid(unsafe_code)]

pub mod context;
pub mod document;
pub mod file;
pub mod read;
pub mod refusal;
pub mod words;

pub use refusal::Refusal;

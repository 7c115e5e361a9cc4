//! The commands, one file each.

pub(crate) mod check;
pub(crate) mod clean;
pub(crate) mod list;
pub(crate) mod run;

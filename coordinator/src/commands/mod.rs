//! The commands, one file each. What several of them need stands above, in files of its own.

pub(crate) mod advise;
pub(crate) mod attach;
pub(crate) mod check;
pub(crate) mod clean;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod grade;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod model;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod topology;

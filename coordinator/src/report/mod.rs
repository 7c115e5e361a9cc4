//! How a finished run is shown and kept. Nothing is computed here: every figure stands in [`record::Run`] already, and
//! this module rounds it, sets it beside its interval and puts it where a reader looks for it.
//!
//! [`terminal`] is the page on standard output, [`files`] what stays on disk, [`progress`] what is seen while the run
//! goes on (standard error), [`live`] what `run --live` adds to it, [`code`] the listings of `run --show-code`, [`doctor`]
//! the screen of `doctor`, [`topology`] that of `topology`, [`modelled`] the page of `model`, [`compare`] that of `compare`,
//! [`grade`] that of `grade`, [`layout`] a struct as `import` shows it, [`html`] the file of a run's page for a browser,
//! [`new_file`] one that a user names, [`replace`] one in place of another,
//! [`data`] what programs read, [`markdown`] the project's own texts as `explain` shows them, [`attach`] the pages of `attach`.

pub(crate) mod advise;
#[cfg(test)]
mod any_run;
pub(crate) mod attach;
pub(crate) mod code;
pub(crate) mod compare;
pub(crate) mod data;
pub(crate) mod doctor;
pub(crate) mod files;
pub(crate) mod grade;
pub(crate) mod hlog;
pub(crate) mod html;
pub(crate) mod layout;
mod live;
mod lock_log;
pub(crate) mod logs;
pub(crate) mod markdown;
pub(crate) mod modelled;
pub(crate) mod names;
pub(crate) mod new_file;
mod page;
mod partial;
pub(crate) mod progress;
pub(crate) mod replace;
pub(crate) mod rows;
mod samples;
pub(crate) mod style;
mod table;
pub(crate) mod terminal;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod text;
mod timeline;
pub(crate) mod topology;
pub(crate) mod window;
pub(crate) mod write_error;

use ::figures;

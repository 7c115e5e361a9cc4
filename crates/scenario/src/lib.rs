//! TOML text in, [`plan::Plan`] out; whatever is refused is shown with file, line, column and cure.
//!
//! [`load`] reads a file, [`parse`] a text, [`parse_with`] a text under values from the command line. All three go
//! through the same stages: `document` (TOML into a tree that knows its places), `outline` (shapes, names, unknown
//! keys), `arms` (variants and sweep points applied to the tree, then one typed reading of each), `claims`.
//! `scenarios/README.md` is the schema's reference.
#![forbid(unsafe_code)]

mod arms;
mod case;
mod claims;
mod events;
mod expand;
mod loops;
mod measure;
mod memory;
mod outline;
mod paths;
mod placement;
mod predictions;
mod quantity;
mod read;
mod regions;
mod roles;
pub mod schema;
mod scope;
mod source;
mod steps;

pub use predictions::predictions;
pub use source::Source;
pub use toml_text::Refusal;

use context::Context;
use plan::{Measure, Plan};
use std::path::Path;
// What all texts of the lab's are read with; the modules here know it by these names.
use toml_text::{context, document, refusal, words};

/// A scenario that was accepted, and the text it came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What is to be run.
    pub plan: Plan,
    /// The text, which can say where in it a later stage found fault.
    pub source: Source,
}

/// Reads the scenario file at `path`.
///
/// # Errors
/// [`Refusal`] where the file cannot be read, is a directory, is larger than [`schema::FILE_BYTES_MAX`], is not UTF-8,
/// or holds anything that [`parse`] refuses.
pub fn load(path: &Path) -> Result<Loaded, Refusal> {
    load_with(path, &[])
}

/// Reads the scenario file at `path` under values from the command line; see [`parse_with`].
///
/// # Errors
/// As [`load`] and [`parse_with`].
pub fn load_with(path: &Path, overrides: &[(String, String)]) -> Result<Loaded, Refusal> {
    let shown = path.display().to_string();
    let text = toml_text::file::read(&schema::KIND, path)?;
    parse_with(&shown, &text, overrides)
}

/// Turns scenario text into a plan. `name` is the path to show in messages; its stem names the results folder.
///
/// # Errors
/// [`Refusal`], with every problem that could be told apart, in file order.
pub fn parse(name: &str, text: &str) -> Result<Loaded, Refusal> {
    parse_with(name, text, &[])
}

/// As [`parse`], with values that replace the scenario's own in every arm: pairs of a path (`role.counter.workers`, or
/// bare `workers` and `cpus` for the headline role, as under `[variant.set]`) and a value as TOML text (`4`, `[0, 1]`).
/// A path that is also swept is no longer swept: its list becomes this one value. Claims may still name the arms that
/// the scenario has without the override.
///
/// # Errors
/// [`Refusal`]; a problem with an override shows it as the flag `--workers 4`, named by the path's last part.
pub fn parse_with(name: &str, text: &str, overrides: &[(String, String)]) -> Result<Loaded, Refusal> {
    let mut context = Context::new(&schema::KIND, name, text, overrides);
    match build(&mut context, overrides) {
        Some((plan, source)) if context.problems.is_empty() => Ok(Loaded { plan, source }),
        _ => Err(context.into_refusal()),
    }
}

/// The document as if the flags stood in it.
fn with_flags<'a>(root: &document::Table, flags: impl Iterator<Item = &'a paths::Assignment>) -> document::Table {
    let mut root = root.clone();
    let mut applied = paths::Applied::default();
    flags.for_each(|flag| applied.apply(&mut root, flag));
    root
}

/// The stages in order. `None`, or a problem in `context`, means refused.
fn build(context: &mut Context, overrides: &[(String, String)]) -> Option<(Plan, Source)> {
    let root = document::read(context)?;
    let outline = outline::read(context, &root);
    let flags = expand::flags(context, overrides, &root, &outline);
    // The file's own arms, which claims may name, are judged under the flags' times: `--window 3s` makes room for a pass.
    let timed = with_flags(&root, flags.iter().filter(|flag| flag.setting.is_of_measure()));
    let asked = events::read(context, &timed);
    let measure = measure::whole_run(context, &timed, &outline, &asked);
    let expansion = expand::read(context, &root, &outline);
    let arms = arms::build(context, &timed, &outline, &expansion);
    let (title, question) = (outline::line(context, &root, "title"), outline::line(context, &root, "question"));
    if !context.problems.is_empty() {
        return None;
    }
    // A flag may have replaced the file's events, which the file's claims name all the same.
    let countable =
        [measure.events.clone(), events::read(context, &root).into_iter().map(|one| one.spec).collect()].concat();
    let scope = claims::Scope::new(&arms, (&outline.roles, &outline.locks), measure.baselines.as_deref(), &countable);
    let expects = claims::read(context, &root, &scope);
    if !context.problems.is_empty() {
        return None;
    }
    let mut fixed = expansion.clone();
    fixed.pin(flags);
    let arms = if overrides.is_empty() { arms } else { arms::build(context, &root, &outline, &fixed) };
    if !context.problems.is_empty() {
        return None;
    }
    let stem = words::file_stem(&context.texts.path);
    let plan = Plan {
        title: title.unwrap_or_else(|| stem.clone()),
        question: question.unwrap_or_default(),
        name: stem,
        measure: Measure { headline_role: outline.headline, ..measure },
        arms,
        expects,
        predictions: Vec::new(),
    };
    Some((plan, Source::new(context.texts.clone(), root, &fixed, asked)))
}

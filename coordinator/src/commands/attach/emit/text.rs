//! The scenario's text, with where everything in it came from.

use super::draft::{Draft, DraftField, DraftLock, DraftRole, DraftStep};
use super::pass::Known;
use super::plain;
use crate::report::text::escaped;
use plan::CACHE_LINE_BYTES;
use record::{Attach, LineVerdict, TouchedLine};
use std::fmt::Write;

/// The only variant: what was seen.
pub(super) const VARIANT: &str = "seen";

/// A window holds at least so many passes of the slowest role, and is no shorter than this.
const PASSES: f64 = 20.0;
const WINDOW_LEAST_MS: f64 = 100.0;
/// Places in the code that are named of one step.
const MOST_PLACES: usize = 3;

/// Where a scenario came from.
pub(super) struct Origin<'a> {
    pub(super) seen: &'a Attach,
    /// The command line.
    pub(super) command: &'a str,
    /// When the watch ended, UTC.
    pub(super) when: &'a str,
    /// CPUs that workers can have here.
    pub(super) cpus: usize,
}

/// Writing to a string cannot fail.
macro_rules! line {
    ($text:expr) => { $text.push('\n') };
    ($text:expr, $($rest:tt)*) => {{ let _ = writeln!($text, $($rest)*); }};
}

/// The whole file.
pub(super) fn text(draft: &Draft, origin: &Origin<'_>) -> String {
    let mut text = String::new();
    head(&mut text, draft, origin);
    fields(&mut text, draft, origin.seen);
    draft.locks.iter().for_each(|lock| one_lock(&mut text, lock));
    line!(text, "# As it was seen. What others would gain or lose: coordinator advise, on this file.");
    line!(text, "[[variant]]");
    line!(text, "name      = \"{VARIANT}\"");
    line!(text, "placement = \"declared\"");
    for role in &draft.roles {
        one_role(&mut text, draft, role, origin.seen);
    }
    text
}

fn head(text: &mut String, draft: &Draft, origin: &Origin<'_>) {
    let name = bare(&origin.seen.segment.name);
    line!(text, "#:schema schema.json");
    line!(text, "# What those who map {name} were seen to do with it, as a scenario of the lab's.");
    line!(text, "#");
    line!(text, "# Made by {}", escaped(origin.command));
    line!(text, "# on {}, from {:.1} s of watching.", origin.when, origin.seen.watched_ns as f64 / 1e9);
    line!(
        text,
        "# A rate stands with the range in which 19 of 20 pieces of 20 ms lay, undisturbed. A scenario knows what is"
    );
    line!(text, "# done to these words and how often, and nothing of what else is done between: that is `work`.");
    if !draft.differs.is_empty() {
        line!(text, "#");
        line!(text, "# Not as it was seen:");
        draft.differs.iter().for_each(|one| line!(text, "# - {}.", escaped(one)));
    }
    line!(text);
    let short = name.rsplit('/').next().unwrap_or_default();
    line!(text, "title     = {}", quoted(&format!("As seen: {short}")));
    line!(
        text,
        "question  = {}",
        quoted(&format!("What do the layout and the locks of {short} cost those who use it?"))
    );
    line!(text, "placement = \"declared\"");
    let workers: u32 = draft.roles.iter().map(DraftRole::workers).sum();
    if workers as usize > origin.cpus {
        line!(text, "# More workers than CPUs, as where they were watched.");
        line!(text, "oversubscribe = true");
    }
    line!(text);
    line!(text, "[measure]");
    line!(text, "window      = \"{}ms\"", window_ms(draft));
    line!(text, "warm_up     = \"20ms\"");
    line!(text, "repetitions = 10");
    line!(text);
}

/// Long enough for the slowest role.
fn window_ms(draft: &Draft) -> u64 {
    let slowest = draft.roles.iter().filter_map(|role| role.pass.ns()).fold(0.0, f64::max);
    (slowest * PASSES / 1e6).max(WINDOW_LEAST_MS).ceil() as u64
}

fn fields(text: &mut String, draft: &Draft, seen: &Attach) {
    let mut last = None;
    for field in &draft.fields {
        let offset = field.offset / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
        let is_new = last.replace(offset) != Some(offset);
        if let Some(of) = seen.lines.iter().find(|one| is_new && one.offset == offset) {
            line!(text, "# ---- {} ----\n", described(of));
        }
        one_field(text, field, seen);
    }
}

fn described(line: &TouchedLine) -> String {
    let about = if line.accesses_at_least { "at least" } else { "about" };
    let rate = line.accesses_per_second.map(|rate| format!(", {about} {} accesses a second", plain::rate(rate)));
    let rate = rate.unwrap_or_default();
    format!("the line at {:#x} of the segment: {}{rate}", line.offset, verdict(line.verdict))
}

fn verdict(verdict: LineVerdict) -> &'static str {
    match verdict {
        LineVerdict::FalseSharing => "false sharing",
        LineVerdict::TrueSharing => "true sharing",
        LineVerdict::LockWord => "a lock's",
        LineVerdict::ReadMostly => "read-mostly",
        LineVerdict::Private => "private",
    }
}

fn one_field(text: &mut String, field: &DraftField, seen: &Attach) {
    let word = seen.lines.iter().flat_map(|line| &line.words).find(|word| word.offset == field.offset);
    if let Some(word) = word {
        let readers: Vec<u32> = word.readers.iter().filter(|pid| !word.writers.contains(pid)).copied().collect();
        let name = word.field.as_ref().map_or_else(String::new, |name| format!("{}: ", escaped(name)));
        let users = [("written", &word.writers), ("read", &readers)].into_iter().filter(|(_, pids)| !pids.is_empty());
        let users: Vec<String> = users.map(|(how, pids)| format!("{how} by {}", numbers(pids))).collect();
        line!(text, "# {name}{}", users.join("; "));
    }
    line!(text, "[field.{}]", field.name);
    line!(text, "type = \"u{}\"", field.bytes * 8);
    line!(text, "at   = {}\n", field.at);
}

fn one_lock(text: &mut String, lock: &DraftLock) {
    line!(text, "# The lock at {:#x} of the segment.", lock.offset);
    line!(text, "[lock.{}]", lock.name);
    line!(text, "kind = \"{}\"", lock.kind);
    line!(text, "at   = {}\n", lock.at);
}

fn one_role(text: &mut String, draft: &Draft, role: &DraftRole, seen: &Attach) {
    let pids = role.pids();
    let command = seen.processes.iter().find(|one| pids.contains(&one.pid)).map_or("", |one| one.command.as_str());
    let tids = draft.tids(role);
    let threads = if tids.is_empty() { String::new() } else { format!(", threads {}", numbers(&tids)) };
    line!(text);
    line!(text, "# {} {}{threads}: {}.", escaped(command), numbers(&pids), rate(role));
    for step in &role.steps {
        let places: Vec<String> = step.places.iter().take(MOST_PLACES).map(|place| escaped(place)).collect();
        line!(text, "# {:#x}: {}", step.offset, places.join("; "));
    }
    line!(text, "[[role]]");
    line!(text, "name    = \"{}\"", role.name);
    line!(text, "workers = {}", role.workers());
    match &role.process {
        Some(first) => line!(text, "process = \"{first}\""),
        None if role.threads > 1 => line!(text, "threads = {}", role.threads),
        None => {}
    }
    let steps: Vec<String> = steps(draft, role).iter().map(|step| format!("\"{step}\"")).collect();
    line!(text, "loop    = [{}]", steps.join(", "));
}

/// What is known of how fast it goes round.
fn rate(role: &DraftRole) -> String {
    let of = if role.pass.locks { "second" } else { "second of its CPU time" };
    match (role.pass.known, role.pass.observed, role.pass.wall_per_second) {
        (Known::Counted, Some(rate), _) => format!("{} passes a {of}", plain::spread(rate)),
        (Known::Roughly, _, Some(rate)) => format!("about {} passes a second, by the proof", plain::rate(rate)),
        (Known::AtLeast, _, Some(rate)) => {
            format!("at least {} passes a second: more often than traps can tell", plain::rate(rate))
        }
        _ => "how often is not known".to_owned(),
    }
}

/// One pass: work, then for each lock its section; the accesses stand in the first of these.
fn steps(draft: &Draft, role: &DraftRole) -> Vec<String> {
    let mut all = Vec::new();
    all.extend((role.work_ns > 0).then(|| work(role.work_ns)));
    let accesses = || role.steps.iter().map(|step| access(draft, step));
    if role.locks.is_empty() {
        all.extend(accesses());
    }
    for (nth, lock) in role.locks.iter().map(|lock| &draft.locks[*lock]).enumerate() {
        all.push(format!("lock {}", lock.name));
        if nth == 0 {
            all.extend(accesses());
        }
        all.extend((lock.work_ns > 0).then(|| work(lock.work_ns)));
        all.push(format!("unlock {}", lock.name));
    }
    all
}

fn work(ns: u64) -> String {
    format!("work {ns}ns")
}

fn access(draft: &Draft, step: &DraftStep) -> String {
    let field = draft.fields.iter().find(|field| field.offset == step.offset).map_or("", |field| field.name.as_str());
    let every = if step.every > 1 { format!("every {} ", step.every) } else { String::new() };
    format!("{every}{} {field}", step.verb.name())
}

fn numbers(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// Without the kernel's mark, and without what could end a line.
fn bare(name: &str) -> String {
    escaped(name.strip_suffix(" (deleted)").unwrap_or(name))
}

/// A TOML string of an escaped text.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

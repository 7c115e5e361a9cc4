//! `exercise.toml` to an [`Exercise`]; what is refused is shown with file, line, column and cure.

use crate::{ApartRule, Behaviour, CountRule, EffectRule, Exercise, LockRule, Part, SumRule};
use plan::expect::Metric;
use std::path::Path;
use toml_text::Refusal;
use toml_text::context::{Context, Kind};
use toml_text::document::{self, Node, Table, Value};
use toml_text::refusal::Problem;
use toml_text::{read, words};

/// The file's name in an exercise's folder.
pub const FILE: &str = "exercise.toml";

const TOP: &[&str] =
    &["title", "task", "may_change", "bytes_max", "keeps_memory", "hints", "count", "sum", "apart", "lock", "effect"];
const COUNT: &[&str] = &["field", "role", "per_pass"];
const SUM: &[&str] = &["field", "role"];
const APART: &[&str] = &["fields", "roles"];
const LOCK: &[&str] = &["is", "held_max_ns"];
const EFFECT: &[&str] = &["metric", "of", "recovers_percent"];

static KIND: Kind = Kind {
    name: "exercise",
    reference: "scenarios/exercises/README.md",
    if_missing: "name the exercise's folder with --exercise, or keep your file in it",
    example: "scenarios/exercises/01-two-counters/exercise.toml",
    if_twice: "keep one of the two",
    depth: "two",
    sections: &[
        ("the top of the file", TOP),
        ("[[count]]", COUNT),
        ("[[sum]]", SUM),
        ("[[apart]]", APART),
        ("[lock.NAME]", LOCK),
        ("[effect]", EFFECT),
    ],
};

/// How many hints an exercise has.
const HINTS: usize = 3;

/// Reads the `exercise.toml` at `path`: what it asks, and its text.
///
/// # Errors
/// [`Refusal`] where the file cannot be read, or holds anything that [`parse`] refuses.
pub fn load(path: &Path) -> Result<(Exercise, String), Refusal> {
    let text = toml_text::file::read(&KIND, path)?;
    Ok((parse(&path.display().to_string(), &text)?, text))
}

/// Turns the text of an `exercise.toml` into an exercise; `name` is the path to show in messages.
///
/// # Errors
/// [`Refusal`], with every problem that could be told apart.
pub fn parse(name: &str, text: &str) -> Result<Exercise, Refusal> {
    let mut context = Context::new(&KIND, name, text, &[]);
    match exercise(&mut context) {
        Some(exercise) if context.problems.is_empty() => Ok(exercise),
        _ => Err(context.into_refusal()),
    }
}

fn exercise(context: &mut Context) -> Option<Exercise> {
    let root = document::read(context)?;
    read::known_keys(context, &root, TOP, "the top of the file");
    let title = required(context, &root, "title", "\"Two counters in one line\"");
    let task = required(context, &root, "task", "\"Make it faster without losing a count\"");
    let may_change = parts(context, &root);
    let counts = each(context, &root, "count", COUNT, |context, table| {
        Some(CountRule {
            field: required(context, table, "field", "\"hits\"")?,
            role: required(context, table, "role", "\"counter\"")?,
            per_pass: number(context, table, "per_pass", (1, 1_000)).unwrap_or(1),
        })
    });
    let sums = each(context, &root, "sum", SUM, |context, table| {
        let field = required(context, table, "field", "\"hits\"")?;
        Some(SumRule { field, role: required(context, table, "role", "\"reader\"")? })
    });
    let apart = each(context, &root, "apart", APART, |context, table| {
        Some(ApartRule { fields: texts(context, table, "fields"), roles: texts(context, table, "roles") })
    });
    let hints = texts(context, &root, "hints");
    if hints.len() != HINTS {
        let what = format!("an exercise has {HINTS} hints, and this one {}", hints.len());
        context.refuse(
            Problem::nowhere(what).cure("write hints = [\"where to look\", \"what is wrong\", \"what to do\"]"),
        );
    }
    Some(Exercise {
        title: title?,
        task: task?,
        may_change,
        counts,
        sums,
        apart,
        bytes_max: number(context, &root, "bytes_max", (1, 1 << 30)),
        locks: locks(context, &root),
        keeps_memory: texts(context, &root, "keeps_memory"),
        effect: effect(context, &root),
        hints,
    })
}

fn text(context: &mut Context, node: &Node, key: &str) -> Option<String> {
    let text = words::squeezed(read::string(context, node, key, "text in quotes", "\"…\"")?);
    if text.is_empty() || words::has_unsafe(&text) {
        let problem = Problem::at(&node.place, format!("`{key}` is empty, or holds control characters"));
        context.refuse(problem.cure("say it in printable words"));
        return None;
    }
    Some(text)
}

fn required(context: &mut Context, table: &Table, key: &str, example: &str) -> Option<String> {
    let Some(node) = table.get(key) else {
        context.refuse(Problem::nowhere(format!("`{key}` is missing")).cure(format!("write {key} = {example}")));
        return None;
    };
    text(context, node, key)
}

/// A list of texts; none where the key is not there.
fn texts(context: &mut Context, table: &Table, key: &str) -> Vec<String> {
    nodes(context, table, key).iter().filter_map(|node| text(context, node, key)).collect()
}

fn nodes(context: &mut Context, table: &Table, key: &str) -> Vec<Node> {
    match table.get(key) {
        None => Vec::new(),
        Some(Node { value: Value::Array(nodes), .. }) => nodes.clone(),
        Some(node) => {
            read::wrong_type(context, node, key, "a list", "[\"…\"]");
            Vec::new()
        }
    }
}

fn number(context: &mut Context, table: &Table, key: &str, bounds: (u64, u64)) -> Option<u64> {
    table.get(key).and_then(|node| read::integer(context, node, key, bounds, "it is a whole number of units"))
}

fn each<T>(
    context: &mut Context,
    root: &Table,
    key: &str,
    known: &[&str],
    body: impl Fn(&mut Context, &Table) -> Option<T>,
) -> Vec<T> {
    let mut all = Vec::new();
    for node in nodes(context, root, key) {
        match node.table() {
            Some(table) => {
                read::known_keys(context, table, known, &format!("[[{key}]]"));
                all.extend(body(context, table));
            }
            None => read::wrong_type(context, &node, key, "a table", "{ … }"),
        }
    }
    all
}

fn parts(context: &mut Context, root: &Table) -> Vec<Part> {
    let mut parts = Vec::new();
    for node in nodes(context, root, "may_change") {
        let Some(word) = text(context, &node, "may_change") else { continue };
        parts.push(match word.split_once(' ') {
            Some(("loop", role)) => Part::Loop(role.to_owned()),
            _ => match read::word(context, &node, "may_change", &["placement", "fields", "locks", "loop ROLE"]) {
                Some("placement") => Part::Placement,
                Some("fields") => Part::Fields,
                Some("locks") => Part::Locks,
                _ => continue,
            },
        });
    }
    if parts.is_empty() {
        let problem = Problem::nowhere("`may_change` names nothing, so that nothing could be repaired");
        context.refuse(problem.cure("write may_change = [\"placement\"], or \"fields\", \"locks\", \"loop ROLE\""));
    }
    parts
}

fn locks(context: &mut Context, root: &Table) -> Vec<LockRule> {
    let mut rules = Vec::new();
    for (entry, table) in root.named("lock") {
        read::known_keys(context, table, LOCK, &format!("[lock.{}]", words::shown(&entry.key)));
        let known = Behaviour::ALL.map(|(name, _)| name);
        let mut is = Vec::new();
        for node in nodes(context, table, "is") {
            let word = read::word(context, &node, "is", &known);
            is.extend(Behaviour::ALL.iter().filter(|(name, _)| word == Some(*name)).map(|(_, behaviour)| *behaviour));
        }
        let held_max_ns = number(context, table, "held_max_ns", (0, 1_000_000_000));
        rules.push(LockRule { lock: entry.key.clone(), is, held_max_ns });
    }
    rules
}

/// Metrics of which less is better, and which a repetition has a figure of.
fn is_graded(metric: &Metric) -> bool {
    matches!(metric, Metric::NsPerOp | Metric::Latency(_) | Metric::Batch(_) | Metric::Wait(_) | Metric::Hold(_))
}

fn effect(context: &mut Context, root: &Table) -> Option<EffectRule> {
    let node = root.get("effect")?;
    let Some(table) = node.table() else {
        read::wrong_type(context, node, "effect", "a table", "{ metric = \"ns_per_op\" }");
        return None;
    };
    read::known_keys(context, table, EFFECT, "[effect]");
    let written = required(context, table, "metric", "\"ns_per_op\"")?;
    let metric = written.parse::<Metric>().ok().filter(is_graded);
    if metric.is_none() {
        let place = table.get("metric").map_or(&node.place, |node| &node.place);
        let problem = Problem::at(place, format!("`metric` cannot be {}", document::quoted(&written)));
        context.refuse(
            problem.cure("take one of which less is better: ns_per_op, or a latency_, batch_, wait_ or hold_ time"),
        );
    }
    let of = table.get("of").and_then(|node| text(context, node, "of"));
    let percent = number(context, table, "recovers_percent", (1, 100)).unwrap_or(50);
    Some(EffectRule { metric: metric?, of, recovers: percent as f64 / 100.0 })
}

//! Typed reading of single values: wrong types, bounds, unknown keys, names.

use crate::context::Context;
use crate::document::{Node, Table, Value, quoted};
use crate::refusal::Problem;
use crate::words;

/// Refuses the keys of `table` that are not in `known`. `section` is how messages call the table: `[measure]`.
pub fn known_keys(context: &mut Context, table: &Table, known: &[&str], section: &str) {
    for entry in table.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
        let problem = Problem::at(&entry.key_place, format!("unknown key {} in {section}", quoted(&entry.key)));
        let home = |(_, keys): &&(&str, &[&str])| keys.contains(&entry.key.as_str());
        let problem = match (words::nearest(&entry.key, known), context.kind.sections.iter().find(home)) {
            (Some(near), _) => problem.label(format!("did you mean `{near}`?")),
            (None, Some((place, _))) if *place == "the top of the file" => problem
                .label("a key of the top of the file")
                .cure("TOML counts a key to the [section] above it: move it above the first [section]"),
            (None, Some((place, _))) => problem.label(format!("a key of {place}")),
            (None, None) => problem.label("not a key of the schema"),
        };
        context.refuse(problem.cure(format!("the keys of {section} are {}", words::listed(known))));
    }
}

/// Refuses a value of the wrong type. `example` completes "write key = …".
pub fn wrong_type(context: &mut Context, node: &Node, key: &str, expected: &str, example: &str) {
    context.refuse(
        Problem::at(&node.place, format!("`{key}` is {}", node.kind())).label(format!("expected {expected}")).cure(
            if node.place.text == 0 {
                format!("write {key} = {example}")
            } else {
                format!("give the flag a value that a {} could have: {key} = {example}", context.kind.name)
            },
        ),
    );
}

/// A string, or a refusal.
pub fn string<'a>(context: &mut Context, node: &'a Node, key: &str, expected: &str, example: &str) -> Option<&'a str> {
    let text = node.string();
    if text.is_none() {
        wrong_type(context, node, key, expected, example);
    }
    text
}

/// The most words that a label beside the text lists; the cure has them all.
const LABELLED_MAX: usize = 6;

/// One of a few words.
pub fn word<'a>(context: &mut Context, node: &'a Node, key: &str, known: &[&str]) -> Option<&'a str> {
    let expected = words::one_of(known);
    let text = string(context, node, key, &expected, &format!("{:?}", known.first().unwrap_or(&"")))?;
    if known.contains(&text) {
        return Some(text);
    }
    let problem = Problem::at(&node.place, format!("`{key}` cannot be {}", quoted(text)));
    let problem = match words::nearest(text, known) {
        Some(near) => problem.label(format!("did you mean `{near}`?")),
        None if known.len() > LABELLED_MAX => problem.label(format!("no such `{key}`")),
        None => problem.label(format!("not one of {}", words::listed(known))),
    };
    context.refuse(problem.cure(format!("`{key}` is {expected}")));
    None
}

/// A whole number within bounds. `why` says why the bounds are where they are.
pub fn integer(context: &mut Context, node: &Node, key: &str, bounds: (u64, u64), why: &str) -> Option<u64> {
    let (low, high) = bounds;
    let Value::Integer(number) = node.value else {
        wrong_type(context, node, key, "a whole number", &default_number(bounds));
        return None;
    };
    match u64::try_from(number).ok().filter(|number| (low..=high).contains(number)) {
        Some(number) => Some(number),
        None => {
            let written = words::shown(context.texts.slice(&node.place));
            context.refuse(
                Problem::at(&node.place, format!("`{key}` cannot be {written}"))
                    .label(format!("not within {low} to {high}"))
                    .cure(format!("write a number from {low} to {high}: {why}")),
            );
            None
        }
    }
}

fn default_number((low, high): (u64, u64)) -> String {
    low.max(2).min(high).to_string()
}

/// `true` or `false`.
pub fn boolean(context: &mut Context, node: &Node, key: &str) -> Option<bool> {
    let Value::Boolean(yes) = node.value else {
        wrong_type(context, node, key, "true or false", "true");
        return None;
    };
    Some(yes)
}

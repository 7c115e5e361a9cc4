//! The schema as JSON Schema (draft 7), for editors: made from the tables in [`super`] that the reader goes by, and
//! from the reference's words. It keeps to what draft 4 has, since some editors read no more.

use super::{patterns, reference, *};
use plan::LockKind;
use serde_json::{Map, Value, json};

/// The schema of scenario files.
///
/// It refuses misspelt keys and words, wrong types, numbers out of bounds, and steps and claims that are none. It
/// accepts whatever [`crate::parse`] accepts in which no arm replaces a value that is itself refused. What a schema
/// cannot tell, as whether a name is declared, only [`crate::parse`] does.
///
/// # References
/// json-schema.org/draft-07; the editors' line `#:schema` is taplo's.
pub fn json_schema() -> Value {
    let mut definitions = Map::new();
    for (section, keys) in SECTIONS {
        for key in *keys {
            definitions.insert(name_of(section, key), described(section, key));
        }
    }
    definitions.insert("step".into(), text(&patterns::step()));
    definitions.insert("set".into(), settings(&|value| value, false));
    let list = |value| json!({ "type": "array", "items": value, "minItems": 1, "maxItems": ARMS_MAX });
    definitions.insert("sweep".into(), settings(&list, true));
    let mut schema = section("the top of the file", &["role"]);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("A scenario of the contention lab");
    // Where a variant's `set` or a sweep may give a role its loop, a field its type and a region its size, the file
    // need not.
    let complete = |key: &str| json!({ "required": [key] });
    let each = |key: &str| json!({ "additionalProperties": complete(key) });
    schema["anyOf"] = json!([
        { "required": ["variant"], "properties": { "variant": { "not": { "items": { "not": complete("set") } } } } },
        { "required": ["sweep"] },
        { "properties": { "role": { "items": complete("loop") }, "field": each("type"), "region": each("size") } },
    ]);
    schema["definitions"] = Value::Object(definitions);
    schema
}

/// What a definition is called: `role.workers`.
fn name_of(section: &str, key: &str) -> String {
    match section {
        section if section == SECTIONS[0].0 => key.to_owned(),
        section => format!("{}.{key}", word_of(section)),
    }
}

/// `[[role]]` without its brackets and `.NAME`.
fn word_of(section: &str) -> &str {
    section.trim_matches(['[', ']']).trim_end_matches(".NAME")
}

fn reference_to(section: &str, key: &str) -> Value {
    json!({ "$ref": format!("#/definitions/{}", name_of(section, key)) })
}

/// A table with the keys of a section.
fn section(section: &str, required: &[&str]) -> Value {
    let keys = SECTIONS.iter().find(|(name, _)| *name == section).map_or(&[][..], |(_, keys)| keys);
    let properties: Map<String, Value> =
        keys.iter().map(|key| ((*key).to_owned(), reference_to(section, key))).collect();
    let mut table = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        table["required"] = json!(required);
    }
    table
}

/// Tables by name, as under `[field]`.
fn named(inside: Value) -> Value {
    json!({ "type": "object", "patternProperties": { patterns::whole(patterns::NAME): inside }, "additionalProperties": false })
}

/// Tables in a list, as under `[[role]]`.
fn listed(inside: Value, most: usize) -> Value {
    json!({ "type": "array", "items": inside, "maxItems": most })
}

/// What a key may have as its value, with what the reference says of it.
fn described(section: &str, key: &str) -> Value {
    let mut value = value(section, key);
    if let Some(row) = reference::row(section, key) {
        value["description"] = json!(row.description);
        if let Some(default) = row.default {
            value["default"] = default;
        }
    } else if let Some((named, _)) = SECTIONS.iter().find(|(name, _)| word_of(name) == key)
        && let Some(prose) = reference::prose(named)
    {
        value["description"] = json!(prose);
    }
    value
}

/// What a key may have as its value. Anything where the key is unknown here, which a test rules out.
fn value(of: &str, key: &str) -> Value {
    match (word_of(of), key) {
        ("the top of the file", _) => top(key),
        ("measure", _) => measure(key),
        ("role", _) => role(key),
        (_, "name") => variant_name(),
        ("variant", "placement") => reference_to(SECTIONS[0].0, "placement"),
        ("variant", "set") => json!({ "$ref": "#/definitions/set" }),
        ("field", "type") => words(TYPES),
        ("field", "each") => words(&["worker"]),
        ("field", "count") => integer(COUNT),
        ("field" | "lock", "at") => integer(OFFSET),
        ("lock", "kind") => words(&LockKind::ALL.map(LockKind::name)),
        ("region", "size") => text(&patterns::size()),
        ("region", "shared") => json!({ "type": "boolean" }),
        ("region", "pages") => words(PAGES),
        ("expect", "claim") => text(&patterns::claim()),
        ("expect", "when") => text(&patterns::condition()),
        ("placement", "strategy") => words(STRATEGIES),
        ("placement", "pad") => {
            let powers =
                std::iter::successors(Some(PAD.0), |bytes| Some(bytes * 2)).take_while(|bytes| *bytes <= PAD.1);
            json!({ "enum": powers.collect::<Vec<_>>() })
        }
        ("placement", "offsets") => {
            named(json!({ "anyOf": [integer(OFFSET), { "type": "array", "items": integer(OFFSET) }] }))
        }
        ("placement", "shift") => integer(SHIFT),
        _ => json!({}),
    }
}

fn top(key: &str) -> Value {
    match key {
        "title" | "question" => json!({ "type": "string" }),
        "oversubscribe" => json!({ "type": "boolean" }),
        "placement" => {
            let mut table = section("placement", &[]);
            table["minProperties"] = json!(1);
            let pairs = [["strategy", "pad"], ["strategy", "offsets"], ["pad", "offsets"]];
            table["not"] = json!({ "anyOf": pairs.map(|pair| json!({ "required": pair })) });
            json!({ "anyOf": [words(STRATEGIES), table] })
        }
        "measure" => section("[measure]", &[]),
        "field" => {
            let mut field = section("[field.NAME]", &[]);
            field["not"] = json!({ "required": ["each", "count"] });
            named(field)
        }
        "lock" => named(section("[lock.NAME]", &[])),
        "region" => named(section("[region.NAME]", &[])),
        "variant" => listed(section("[[variant]]", &["name"]), ARMS_MAX),
        "role" => {
            let mut roles = listed(section("[[role]]", &["name"]), ROLES_MAX);
            roles["minItems"] = json!(1);
            roles
        }
        "sweep" => json!({ "$ref": "#/definitions/sweep" }),
        "expect" => listed(section("[[expect]]", &["claim"]), ITEMS_MAX),
        _ => json!({}),
    }
}

fn measure(key: &str) -> Value {
    match key {
        "window" | "warm_up" | "budget" => text(&patterns::duration()),
        "repetitions" => json!({ "anyOf": [integer(REPETITIONS), words(&["auto"])] }),
        "precision" => text(&patterns::percentage()),
        "baselines" => json!({ "type": "array", "items": words(BASELINES), "uniqueItems": true }),
        "headline" => name(patterns::HYPHENED),
        "events" => {
            let event = json!({ "type": "string" });
            json!({ "anyOf": [event, { "type": "array", "items": event }] })
        }
        _ => json!({}),
    }
}

fn role(key: &str) -> Value {
    match key {
        "name" | "process" => name(patterns::HYPHENED),
        "workers" => integer(WORKERS),
        "threads" => integer(THREADS),
        "cpus" => {
            let list = json!({ "type": "array", "items": integer(CPU), "minItems": 1 });
            json!({ "anyOf": [words(super::CPUS), list] })
        }
        "rate" => text(&patterns::rate()),
        "latency" => json!({ "type": "boolean" }),
        "after" => text(&patterns::duration()),
        "populate" => json!({ "type": "array", "items": name(patterns::NAME), "uniqueItems": true }),
        "loop" => {
            let step = json!({ "$ref": "#/definitions/step" });
            json!({ "type": "array", "items": step, "minItems": 1, "maxItems": ITEMS_MAX })
        }
        _ => json!({}),
    }
}

fn variant_name() -> Value {
    let mut name = name(patterns::HYPHENED);
    name["not"] = json!({ "enum": ["control", "plain"] });
    name
}

/// `[variant.set]`, or `[sweep]`, where each value stands in a list: whatever way a path is written.
fn settings(wrap: &dyn Fn(Value) -> Value, sweeps: bool) -> Value {
    let leaf = |section: &str, key: &str| wrap(reference_to(section, key));
    let mut properties: Map<String, Value> = BARE_PATHS
        .iter()
        .filter(|path| sweeps || **path != "placement")
        .map(|path| {
            let value = match *path {
                "workers" | "cpus" => leaf("[[role]]", path),
                "kind" => leaf("[lock.NAME]", path),
                "shift" => leaf("placement", path),
                _ => leaf(SECTIONS[0].0, path),
            };
            ((*path).to_owned(), value)
        })
        .collect();
    let mut by_pattern = Map::new();
    let measure = |key: &&str| ((*key).to_owned(), leaf("[measure]", key));
    properties.insert("measure".into(), table(MEASURE_PER_ARM.iter().map(measure).collect()));
    for key in MEASURE_PER_ARM {
        by_pattern.insert(patterns::whole(&format!("measure{}{key}", patterns::DOT)), leaf("[measure]", key));
    }
    for (section, keys) in SECTIONS.iter().filter(|(name, _)| REACHED.contains(&word_of(name))) {
        let word = word_of(section);
        let names = if word == "role" { patterns::HYPHENED } else { patterns::NAME };
        let keys = || keys.iter().filter(|key| **key != "name");
        let inner = table(keys().map(|key| ((*key).to_owned(), leaf(section, key))).collect());
        let mut nested = Map::new();
        nested.insert(patterns::whole(names), inner.clone());
        by_pattern.insert(patterns::whole(&format!("{word}{}{names}", patterns::DOT)), inner);
        for key in keys() {
            let path = format!("{names}{}{key}", patterns::DOT);
            nested.insert(patterns::whole(&path), leaf(section, key));
            by_pattern.insert(patterns::whole(&format!("{word}{}{path}", patterns::DOT)), leaf(section, key));
        }
        let nested = json!({ "type": "object", "patternProperties": nested, "additionalProperties": false });
        properties.insert(word.to_owned(), nested);
    }
    // Any other word is a placeholder, whose value stands in steps.
    let taken: Vec<&str> = properties.keys().map(String::as_str).chain(["placement"]).collect();
    let placeholder = format!("(?!(?:{})$)[a-z0-9_]+", taken.join("|"));
    by_pattern.insert(patterns::whole(&placeholder), wrap(json!({ "type": ["string", "integer"] })));
    let mut table = table(properties);
    table["patternProperties"] = Value::Object(by_pattern);
    table
}

/// Sections whose tables paths reach by name.
const REACHED: &[&str] = &["role", "field", "lock", "region"];

fn table(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn text(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": patterns::whole(pattern) })
}

fn name(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": patterns::whole(pattern), "maxLength": NAME_BYTES_MAX })
}

fn words(words: &[&str]) -> Value {
    json!({ "enum": words })
}

fn integer((low, high): (u64, u64)) -> Value {
    json!({ "type": "integer", "minimum": low, "maximum": high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_reader_s_has_its_value_here() {
        for (section, keys) in SECTIONS {
            for key in *keys {
                assert_ne!(value(section, key), json!({}), "{section}: {key}");
            }
        }
    }
}

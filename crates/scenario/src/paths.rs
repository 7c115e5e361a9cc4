//! The paths that `[variant.set]`, `[sweep]` and flags set: how they are spelled, what they mean, and how a value is
//! put in their place in the document.

use crate::context::{Context, Place};
use crate::document::{Node, Table, Value, quoted};
use crate::outline::Outline;
use crate::read::name_of;
use crate::refusal::Problem;
use crate::{schema, words};
use std::collections::BTreeMap;

/// What a path sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// A key of `[measure]`, of a field, a lock, a region or a role, or of the top of the file.
    Key(Vec<String>),
    /// The placement of every variant.
    Placement,
    /// The placement's shift, beside any rule.
    Shift,
    /// The value of `$name` in steps.
    Placeholder(String),
}

impl Setting {
    /// The path in full: `role.counter.workers`.
    pub(crate) fn path(&self) -> String {
        match self {
            Setting::Key(segments) => segments.join("."),
            Setting::Placement => "placement".to_owned(),
            Setting::Shift => "shift".to_owned(),
            Setting::Placeholder(name) => name.clone(),
        }
    }
}

/// One path as written, and its value.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    /// As written: `workers`.
    pub(crate) written: String,
    pub(crate) key_place: Place,
    pub(crate) setting: Setting,
    pub(crate) node: Node,
}

/// The path's parts that a table of overrides holds; `"a.b" = 1`, `a.b = 1` and `a = { b = 1 }` are the same.
pub(crate) fn flatten(table: &Table) -> Vec<(Vec<String>, Place, Node)> {
    let mut found = Vec::new();
    flatten_into(table, &[], &mut found);
    found
}

fn flatten_into(table: &Table, prefix: &[String], found: &mut Vec<(Vec<String>, Place, Node)>) {
    for entry in &table.entries {
        let mut segments = prefix.to_vec();
        segments.extend(entry.key.split('.').map(|part| part.trim().to_owned()));
        let whole = match segments[0].as_str() {
            "measure" => 2,
            "field" | "lock" | "region" | "role" => 3,
            _ => 1,
        };
        match &entry.node.value {
            Value::Table(inner) if segments.len() < whole && !inner.entries.is_empty() => {
                flatten_into(inner, &segments, found);
            }
            _ => found.push((segments, entry.key_place.clone(), entry.node.clone())),
        }
    }
}

impl Setting {
    /// Whether it sets a key of `[measure]`.
    pub(crate) fn is_of_measure(&self) -> bool {
        matches!(self, Setting::Key(segments) if segments.first().is_some_and(|section| section == "measure"))
    }
}

/// Whose values an assignment sets: one arm's, as `[variant.set]` and `[sweep]` do, or the whole run's, as flags do.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Arm,
    Run,
}

/// What a path means in this document; an unknown one is refused with the nearest, and one that holds for the whole
/// run where only an arm's can be set.
pub(crate) fn resolve(
    context: &mut Context,
    outline: &Outline,
    segments: &[String],
    place: &Place,
    reach: Reach,
) -> Option<Setting> {
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let key = |parts: &[&str]| Some(Setting::Key(parts.iter().map(|part| (*part).to_owned()).collect()));
    match parts.as_slice() {
        ["placement"] => Some(Setting::Placement),
        ["shift"] => Some(Setting::Shift),
        ["oversubscribe"] => key(&parts),
        ["workers" | "cpus"] => match outline.roles.get(outline.headline) {
            Some(role) => key(&["role", role, parts[0]]),
            None => None,
        },
        ["kind"] => only_lock(context, outline, place)
            .map(|lock| Setting::Key(vec!["lock".to_owned(), lock, "kind".to_owned()])),
        ["measure", name] if schema::MEASURE_PER_ARM.contains(name) => key(&parts),
        ["measure", name] if schema::MEASURE.contains(name) && reach == Reach::Run => key(&parts),
        ["measure", name] if schema::MEASURE.contains(name) => {
            context.refuse(
                Problem::at(place, format!("`measure.{name}` holds for the whole run"))
                    .label("cannot differ between arms")
                    .cure(format!(
                        "set it under [measure]; arms can have their own {}",
                        words::listed(schema::MEASURE_PER_ARM)
                    )),
            );
            None
        }
        [section @ ("field" | "lock" | "region" | "role"), name, leaf] if is_path(outline, section, name, leaf) => {
            key(&parts)
        }
        [name] if outline.placeholders.iter().any(|known| known == name) => {
            Some(Setting::Placeholder((*name).to_owned()))
        }
        _ => {
            refuse_path(context, outline, &segments.join("."), place);
            None
        }
    }
}

fn only_lock(context: &mut Context, outline: &Outline, place: &Place) -> Option<String> {
    if let [only] = outline.locks.as_slice() {
        return Some(only.clone());
    }
    let problem = Problem::at(place, "`kind` alone means the kind of the only lock");
    context.refuse(if outline.locks.is_empty() {
        problem.label("this scenario has no lock").cure("declare one with [lock.NAME]")
    } else {
        problem
            .label(format!("this scenario has {}", words::counted(outline.locks.len() as u64, "lock")))
            .cure(format!("write \"lock.NAME.kind\" with one of {}", words::listed(&outline.locks)))
    });
    None
}

fn is_path(outline: &Outline, section: &str, name: &str, leaf: &str) -> bool {
    let (names, keys) = match section {
        "field" => (&outline.fields, schema::FIELD),
        "lock" => (&outline.locks, schema::LOCK),
        "region" => (&outline.regions, schema::REGION),
        _ => (&outline.roles, schema::ROLE),
    };
    names.iter().any(|known| known == name) && keys.contains(&leaf) && leaf != "name"
}

/// Every path of this document, as cures list them.
fn all_paths(outline: &Outline) -> Vec<String> {
    let sections = [
        ("role", &outline.roles, schema::ROLE),
        ("field", &outline.fields, schema::FIELD),
        ("lock", &outline.locks, schema::LOCK),
        ("region", &outline.regions, schema::REGION),
    ];
    let of = |(section, names, keys): (&'static str, &Vec<String>, &'static [&'static str])| {
        let names: Vec<String> = names.clone();
        names.into_iter().flat_map(move |name| {
            keys.iter().filter(|key| **key != "name").map(move |key| format!("{section}.{name}.{key}"))
        })
    };
    let bare = schema::BARE_PATHS.iter().map(|path| (*path).to_owned());
    let measure = schema::MEASURE_PER_ARM.iter().map(|key| format!("measure.{key}"));
    bare.chain(outline.placeholders.clone()).chain(sections.into_iter().flat_map(of)).chain(measure).collect()
}

fn refuse_path(context: &mut Context, outline: &Outline, path: &str, place: &Place) {
    let known = all_paths(outline);
    let problem = Problem::at(place, format!("no path {} to set", quoted(path)));
    let problem = match words::nearest(path, &known) {
        Some(near) => problem.label(format!("did you mean `{near}`?")),
        None => problem.label("not a path of this scenario"),
    };
    context.refuse(problem.cure(format!("the paths are {}", words::listed(&known))));
}

/// What the assignments of one arm amount to: the document with their values in it, and what has no place there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Applied {
    pub(crate) placement: Option<Node>,
    pub(crate) shift: Option<Node>,
    pub(crate) placeholders: BTreeMap<String, Node>,
}

impl Applied {
    /// Puts one value in its place; a later one replaces an earlier one.
    pub(crate) fn apply(&mut self, root: &mut Table, assignment: &Assignment) {
        let node = assignment.node.clone();
        match &assignment.setting {
            Setting::Placement => self.placement = Some(node),
            Setting::Shift => self.shift = Some(node),
            Setting::Placeholder(name) => {
                self.placeholders.insert(name.clone(), node);
            }
            Setting::Key(segments) => put(root, segments, &assignment.key_place, node),
        }
    }
}

/// Sets one key of the document. The table it belongs to is there, but for `[measure]`.
fn put(root: &mut Table, segments: &[String], key_place: &Place, node: Node) {
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (table, leaf) = match parts.as_slice() {
        [leaf] => (Some(root), *leaf),
        [section, leaf] => {
            if root.get(section).is_none() {
                let empty = Node { value: Value::Table(Table::default()), place: key_place.clone() };
                root.set(section, key_place, empty);
            }
            (root.get_mut(section).and_then(Node::table_mut), *leaf)
        }
        ["role", name, leaf] => (role_mut(root, name), *leaf),
        [section, name, leaf] => {
            let section = root.get_mut(section).and_then(Node::table_mut);
            (section.and_then(|table| table.get_mut(name)).and_then(Node::table_mut), *leaf)
        }
        _ => return,
    };
    let Some(table) = table else { return };
    // `each` and `count` are two answers to one question: the later one replaces the earlier.
    match leaf {
        "each" => table.remove("count"),
        "count" => table.remove("each"),
        _ => {}
    }
    table.set(leaf, key_place, node);
}

fn role_mut<'a>(root: &'a mut Table, name: &str) -> Option<&'a mut Table> {
    let Value::Array(nodes) = &mut root.get_mut("role")?.value else {
        return None;
    };
    nodes.iter_mut().filter_map(Node::table_mut).find(|table| name_of(table) == Some(name))
}

//! The document's shape: which sections there are, under which names, with which keys. Values are read arm by arm.

use crate::context::{Context, Place};
use crate::document::{Entry, Node, Table, Value, quoted};
use crate::read::{Named, name_of};
use crate::refusal::Problem;
use crate::{read, schema, words};
use std::collections::{BTreeMap, BTreeSet};

/// The names a document declares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outline {
    pub(crate) fields: Vec<String>,
    pub(crate) locks: Vec<String>,
    pub(crate) regions: Vec<String>,
    pub(crate) roles: Vec<String>,
    /// Empty where the document has no `[[variant]]`.
    pub(crate) variants: Vec<String>,
    /// Names behind a `$` in steps.
    pub(crate) placeholders: Vec<String>,
    /// Index into `roles`.
    pub(crate) headline: usize,
}

/// Reads the shape, and refuses unknown keys, wrong shapes and unfit names.
pub(crate) fn read(context: &mut Context, root: &Table) -> Outline {
    read::known_keys(context, root, schema::TOP, "the top of the file");
    for section in ["measure", "sweep"] {
        table_at(context, root, section, &format!("[{section}]"));
    }
    if let Some(table) = root.get("measure").and_then(Node::table) {
        read::known_keys(context, table, schema::MEASURE, "[measure]");
    }
    let fields = named(context, root, "field", schema::FIELD);
    let locks = named(context, root, "lock", schema::LOCK);
    let regions = named(context, root, "region", schema::REGION);
    shared_names(context, root);
    let variants = listed(context, root, "variant", schema::VARIANT, schema::ARMS_MAX);
    for reserved in ["control", "plain"] {
        if let Some((node, _)) = root.listed("variant").find(|(_, table)| name_of(table) == Some(reserved)) {
            let what = format!("`{reserved}` cannot name a variant: the run's {reserved} arm has that name");
            context.refuse(Problem::at(&name_place(node), what).label("reserved").cure("give it another name"));
        }
    }
    let roles = listed(context, root, "role", schema::ROLE, schema::ROLES_MAX);
    if root.get("role").is_none() {
        let cure = "add a [[role]] with a name and a loop, such as loop = [\"add hits[me]\"]";
        context.refuse(Problem::nowhere("the scenario has no role, so nothing would run").cure(cure));
    }
    listed_shape(context, root, "expect", schema::EXPECT, schema::ITEMS_MAX);
    let headline = headline(context, root, &roles);
    let placeholders = placeholders(context, root);
    Outline { fields, locks, regions, roles, variants, placeholders, headline }
}

/// A line of text at the top of the file: `title`, `question`. White space is squeezed.
pub(crate) fn line(context: &mut Context, root: &Table, key: &str) -> Option<String> {
    let node = root.get(key)?;
    let text = words::squeezed(read::string(context, node, key, "a line of text", "\"…\"")?);
    if words::has_unsafe(&text) {
        context.refuse(
            Problem::at(&node.place, format!("`{key}` has control characters"))
                .label("a terminal would obey them")
                .cure("use printable text only"),
        );
    }
    Some(text)
}

fn table_at<'a>(context: &mut Context, root: &'a Table, key: &str, header: &str) -> Option<&'a Table> {
    let node = root.get(key)?;
    let table = node.table();
    if table.is_none() {
        let cure = format!("give it a section of its own: {header}");
        let what = format!("`{key}` is {}", node.kind());
        context.refuse(Problem::at(&node.place, what).label("expected a table").cure(cure));
    }
    table
}

/// The names under `[key.NAME]`.
fn named(context: &mut Context, root: &Table, key: &str, known: &[&str]) -> Vec<String> {
    let Some(table) = table_at(context, root, key, &format!("[{key}.NAME]")) else {
        return Vec::new();
    };
    if let Some(entry) = table.entries.get(schema::ITEMS_MAX) {
        let what = format!("more than {} {key}s", schema::ITEMS_MAX);
        context.refuse(Problem::at(&entry.key_place, what).cure("an array holds many elements under one name"));
    }
    for entry in &table.entries {
        read::name(context, &entry.key_place, &entry.key, key, Named::InSteps);
        let header = format!("[{key}.{}]", words::shown(&entry.key));
        match entry.node.table() {
            Some(table) => read::known_keys(context, table, known, &header),
            None => context.refuse(
                Problem::at(
                    &entry.node.place,
                    format!("`{key}.{}` is {}", words::shown(&entry.key), entry.node.kind()),
                )
                .label("expected a table")
                .cure(format!("write {header} and its keys on the lines below: {}", words::listed(known))),
            ),
        }
    }
    table.entries.iter().map(|entry| entry.key.clone()).collect()
}

/// Steps, layouts and results name fields, locks and regions alike, so the three share their names.
fn shared_names(context: &mut Context, root: &Table) {
    let mut seen: BTreeMap<&str, (&Entry, &str)> = BTreeMap::new();
    for kind in ["field", "lock", "region"] {
        for (entry, _) in root.named(kind) {
            if let Some((first, other)) = seen.get(entry.key.as_str()) {
                let what = format!("{} names a {other} and a {kind}", quoted(&entry.key));
                let problem = Problem::at(&entry.key_place, what).label(format!("the {kind}"));
                let problem = problem.also(&first.key_place, format!("the {other}"));
                context.refuse(problem.cure("rename one: steps tell them apart by name"));
            }
            seen.entry(&entry.key).or_insert((entry, kind));
        }
    }
}

/// The tables under `[[key]]`, after refusing other shapes and unknown keys.
fn listed_shape<'a>(
    context: &mut Context,
    root: &'a Table,
    key: &str,
    known: &[&str],
    most: usize,
) -> Vec<(&'a Node, &'a Table)> {
    let Some(node) = root.get(key) else {
        return Vec::new();
    };
    let header = format!("[[{key}]]");
    let Value::Array(nodes) = &node.value else {
        let what = format!("`{key}` is {}", node.kind());
        let cure = format!("write {header} with double brackets, once for each {key}");
        let place = root.entry(key).map_or(&node.place, |entry| &entry.key_place);
        context.refuse(Problem::at(place, what).label("expected a list of tables").cure(cure));
        return Vec::new();
    };
    if let Some(node) = nodes.get(most) {
        let cure = "split the scenario in several files";
        context.refuse(Problem::at(&node.place, format!("more than {most} {header} tables")).cure(cure));
    }
    for node in nodes {
        match node.table() {
            Some(table) => read::known_keys(context, table, known, &header),
            None => context.refuse(
                Problem::at(&node.place, format!("an element of `{key}` is {}", node.kind()))
                    .label("expected a table")
                    .cure(format!("write {header} and its keys on the lines below")),
            ),
        }
    }
    root.listed(key).take(most).collect()
}

/// The names of the tables under `[[key]]`; where one is missing, an empty one stands in its place.
fn listed(context: &mut Context, root: &Table, key: &str, known: &[&str], most: usize) -> Vec<String> {
    let mut names: Vec<(String, Place)> = Vec::new();
    for (node, table) in listed_shape(context, root, key, known, most) {
        let place = name_place(node);
        let Some(name) = table.get("name") else {
            let problem = Problem::at(&node.place, format!("a [[{key}]] without a name")).label("`name` is missing");
            context.refuse(problem.cure(format!("add name = \"…\": results and claims call the {key} by it")));
            names.push((String::new(), place));
            continue;
        };
        let name = read::string(context, name, "name", "a name", "\"packed\"");
        if let Some(name) = name {
            read::name(context, &place, name, key, Named::InText);
        }
        let name = name.unwrap_or_default();
        if let Some((_, first)) = names.iter().find(|(known, _)| known == name && !name.is_empty()) {
            context.refuse(
                Problem::at(&place, format!("two {key}s are named {}", quoted(name)))
                    .label("the second")
                    .also(first, "the first")
                    .cure("give each its own name"),
            );
        }
        names.push((name.to_owned(), place));
    }
    names.into_iter().map(|(name, _)| name).collect()
}

/// A list's table is shown by its name, or by its header where it has none.
fn name_place(node: &Node) -> Place {
    node.table().and_then(|table| table.get("name")).unwrap_or(node).place.clone()
}

/// The names behind a `$` anywhere in a loop, of a role, a variant or a sweep.
fn placeholders(context: &mut Context, root: &Table) -> Vec<String> {
    let mut found = BTreeSet::new();
    for key in ["role", "variant", "sweep"] {
        if let Some(node) = root.get(key) {
            collect_placeholders(context, node, &mut found);
        }
    }
    found.into_iter().collect()
}

fn collect_placeholders(context: &mut Context, node: &Node, found: &mut BTreeSet<String>) {
    match &node.value {
        Value::String(text) => {
            for (at, _) in text.match_indices('$') {
                let name = read::placeholder_name(&text[at + 1..]);
                if schema::BARE_PATHS.contains(&name) {
                    let place = context.texts.within(node, text, at..at + 1 + name.len());
                    context.refuse(
                        Problem::at(&place, format!("`${name}` has the name of a path that sweeps know"))
                            .label("reserved")
                            .cure(format!("choose another name than {}", words::one_of(schema::BARE_PATHS))),
                    );
                } else if !name.is_empty() {
                    found.insert(name.to_owned());
                }
            }
        }
        Value::Array(nodes) => nodes.iter().for_each(|node| collect_placeholders(context, node, found)),
        Value::Table(table) => {
            table.entries.iter().for_each(|entry| collect_placeholders(context, &entry.node, found));
        }
        _ => {}
    }
}

/// The headline role's index: `[measure] headline`, else the first role.
fn headline(context: &mut Context, root: &Table, roles: &[String]) -> usize {
    let node = root.get("measure").and_then(Node::table).and_then(|table| table.get("headline"));
    let Some(node) = node else { return 0 };
    let Some(name) = read::string(context, node, "headline", "a role's name", "\"reader\"") else {
        return 0;
    };
    if let Some(index) = roles.iter().position(|role| role == name) {
        return index;
    }
    let problem = Problem::at(&node.place, format!("no role is named {}", quoted(name)));
    let problem = match words::nearest(name, roles) {
        Some(near) => problem.label(format!("did you mean `{near}`?")),
        None => problem.label("no such role"),
    };
    context.refuse(problem.cure(format!("the roles are {}", words::listed(roles))));
    0
}

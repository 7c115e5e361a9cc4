//! The scenario's text after parsing, for stages that find fault later.

use crate::context::{Place, Texts};
use crate::document::{Node, Table, Value};
use crate::events::Asked;
use crate::expand::Expansion;
use crate::refusal::{Problem, Refusal};
use plan::BindError;

/// The text a plan came from, with the place of every key in it.
#[derive(Clone, Debug)]
pub struct Source {
    /// The path as it was given.
    pub path: String,
    /// The whole text.
    pub text: String,
    texts: Texts,
    root: Table,
    /// Paths that variants, the sweep or the command line set, with the places of the values.
    settings: Vec<(String, Place)>,
    /// Where each of [`plan::Measure::events`] is written: one string may hold several.
    events: Vec<Place>,
}

impl Source {
    pub(crate) fn new(texts: Texts, root: Table, expansion: &Expansion, events: Vec<Asked>) -> Source {
        let settings = expansion.settings();
        let events = events.into_iter().map(|one| one.place).collect();
        Source { path: texts.path.clone(), text: texts.file.clone(), texts, root, settings, events }
    }

    /// The message for what binding to a machine refused: shows the value at `error.path`, or, where the path is not
    /// written out in the file, the nearest enclosing key that is. Variants, sweeps and flags that set the same path
    /// are shown beside it. `measure.events.N` is the N-th of [`plan::Measure::events`], whichever string it stands in.
    pub fn refuse(&self, error: &BindError) -> Refusal {
        if let Some(place) = self.event(&error.path) {
            let problem = Problem::at(place, &*error.message).cure(&*error.cure);
            return Refusal::new(self.texts.clone(), vec![problem]);
        }
        let wanted = self.whole_where_set(&error.path);
        let set: Vec<&Place> =
            self.settings.iter().filter(|(path, _)| path == wanted).map(|(_, place)| place).collect();
        let flag = set.iter().copied().find(|place| place.text > 0);
        let (found, exact) = self.find_inherited(wanted);
        let main = match (flag, set.first()) {
            (Some(flag), _) => Some(flag.clone()),
            (None, Some(first)) if !exact => Some((*first).clone()),
            _ => found,
        };
        let mut problem = match &main {
            Some(place) => Problem::at(place, &*error.message),
            None => Problem::nowhere(&*error.message),
        };
        problem = problem.cure(&*error.cure);
        // A flag replaces every other value of its path.
        for place in set.into_iter().filter(|place| flag.is_none() && Some(*place) != main.as_ref()) {
            problem = problem.also(place, "also set here");
        }
        Refusal::new(self.texts.clone(), vec![problem])
    }

    fn event(&self, path: &str) -> Option<&Place> {
        self.events.get(path.strip_prefix("measure.events.")?.parse::<usize>().ok()?)
    }

    /// The path without an index into a value that some arm sets: the value at fault may be that arm's, and is shown
    /// whole.
    fn whole_where_set<'a>(&'a self, path: &'a str) -> &'a str {
        let encloses = |set: &&str| path.strip_prefix(*set).is_some_and(|rest| rest.starts_with('.'));
        self.settings.iter().map(|(set, _)| set.as_str()).find(encloses).unwrap_or(path)
    }

    /// As [`Source::find`]; a variant without a placement of its own has that of the top of the file.
    fn find_inherited(&self, path: &str) -> (Option<Place>, bool) {
        let own = self.find(path);
        if own.1 || !(path.starts_with("variant.") && path.ends_with(".placement")) {
            return own;
        }
        match self.find("placement") {
            (Some(place), true) => (Some(place), true),
            _ => own,
        }
    }

    /// The place of the longest prefix of `path` that the file has, and whether it is the whole path.
    fn find(&self, path: &str) -> (Option<Place>, bool) {
        let mut found = None;
        let mut holder: Option<&Node> = None;
        let mut rest = path;
        while !rest.is_empty() {
            // A key under [sweep] has dots of its own, so the whole rest is tried before its first part.
            let (first, behind) = rest.split_once('.').unwrap_or((rest, ""));
            let step = match holder.map(|node| &node.value) {
                None => in_table(&self.root, first).map(|step| (step, behind)),
                Some(Value::Table(table)) => {
                    let whole = in_table(table, rest).map(|step| (step, ""));
                    whole.or_else(|| in_table(table, first).map(|step| (step, behind)))
                }
                Some(Value::Array(nodes)) => in_array(nodes, first).map(|step| (step, behind)),
                Some(_) => None,
            };
            let Some(((node, place), behind)) = step else { return (found, false) };
            (holder, found, rest) = (Some(node), Some(place), behind);
        }
        (found, true)
    }
}

/// A key's node and the place that shows it: the value, or the key where the value is a table with a header.
fn in_table<'a>(table: &'a Table, key: &str) -> Option<(&'a Node, Place)> {
    let entry = table.entry(key)?;
    let has_header = entry.node.table().is_some_and(|_| entry.node.place.start <= entry.key_place.start);
    let place = if has_header { &entry.key_place } else { &entry.node.place };
    Some((&entry.node, place.clone()))
}

/// The table of that name in a list such as `[[role]]`, shown by its name; or an element by its index.
fn in_array<'a>(nodes: &'a [Node], segment: &str) -> Option<(&'a Node, Place)> {
    let name_of = |node: &'a Node| node.table().and_then(|table| table.get("name"));
    let named = |node: &&'a Node| name_of(node).and_then(Node::string) == Some(segment);
    if let Some(node) = nodes.iter().find(named) {
        return Some((node, name_of(node).unwrap_or(node).place.clone()));
    }
    let node = nodes.get(segment.parse::<usize>().ok()?)?;
    Some((node, node.place.clone()))
}

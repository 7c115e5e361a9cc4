//! The TOML document as a tree whose every key and value knows its place in the text.

use crate::context::{Context, Kind, Place};
use crate::refusal::Problem;
use crate::words;
use toml::de::{DeTable, DeValue};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Node {
    /// What.
    pub value: Value,
    /// Where.
    pub place: Place,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub enum Value {
    /// Text.
    String(String),
    /// Saturated: what does not fit is refused by every bound.
    Integer(i128),
    /// As written.
    Float(String),
    /// `true` or `false`.
    Boolean(bool),
    /// As written.
    Datetime(String),
    /// A list.
    Array(Vec<Node>),
    /// A table, inline or with a header.
    Table(Table),
}

/// Keys and values in file order.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// In file order.
    pub entries: Vec<Entry>,
}

/// One key of a table.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key, without quotes.
    pub key: String,
    /// Where the key stands.
    pub key_place: Place,
    /// Its value.
    pub node: Node,
}

impl Table {
    /// The entry of that key.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// The value of that key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// The value of that key, to change.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node)
    }

    /// Replaces or adds a key.
    pub fn set(&mut self, key: &str, key_place: &Place, node: Node) {
        let entry = Entry { key: key.to_owned(), key_place: key_place.clone(), node };
        match self.entries.iter_mut().find(|old| old.key == key) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
    }

    /// Drops a key.
    pub fn remove(&mut self, key: &str) {
        self.entries.retain(|entry| entry.key != key);
    }

    /// The tables under `[key.NAME]`; what has another shape is passed over: the reader refuses it elsewhere.
    pub fn named<'a>(&'a self, key: &str) -> impl Iterator<Item = (&'a Entry, &'a Table)> + use<'a> {
        let entries = self.get(key).and_then(Node::table).map_or(&[][..], |table| &table.entries);
        entries.iter().filter_map(|entry| Some((entry, entry.node.table()?)))
    }

    /// The tables under `[[key]]`, each with its header's place; other shapes are passed over.
    pub fn listed<'a>(&'a self, key: &str) -> impl Iterator<Item = (&'a Node, &'a Table)> + use<'a> {
        let nodes = self.get(key).and_then(Node::array).unwrap_or_default();
        nodes.iter().filter_map(|node| Some((node, node.table()?)))
    }
}

impl Node {
    /// The text of a string.
    pub fn string(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The table that it is.
    pub fn table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The table that it is, to change.
    pub fn table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The list that it is.
    pub fn array(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Array(nodes) => Some(nodes),
            _ => None,
        }
    }

    /// "a string", for messages.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::String(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a decimal number",
            Value::Boolean(_) => "a boolean",
            Value::Datetime(_) => "a date or time",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// The value on one line: a string bare, everything else as TOML writes it. Names sweep points.
    pub fn compact(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            _ => self.as_toml(),
        }
    }

    fn as_toml(&self) -> String {
        match &self.value {
            Value::String(text) => format!("{text:?}"),
            Value::Integer(number) => number.to_string(),
            Value::Float(text) | Value::Datetime(text) => text.clone(),
            Value::Boolean(yes) => yes.to_string(),
            Value::Array(nodes) => {
                let nodes: Vec<String> = nodes.iter().map(Node::as_toml).collect();
                format!("[{}]", nodes.join(", "))
            }
            Value::Table(table) => {
                let pairs = table.entries.iter().map(|entry| format!("{} = {}", entry.key, entry.node.as_toml()));
                format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Reads the file's text. Syntax errors are refused alone: the tree behind them cannot be trusted.
pub fn read(context: &mut Context) -> Option<Table> {
    let text = context.texts.file.clone();
    let (table, errors) = DeTable::parse_recoverable(&text);
    if errors.is_empty() {
        return Some(convert_table(table.get_ref(), &Frame { text: 0, shift: 0 }));
    }
    let mut lines_seen = Vec::new();
    for error in errors {
        let span = error.span().unwrap_or(text.len()..text.len());
        let line = text.as_bytes()[..span.start.min(text.len())].iter().filter(|byte| **byte == b'\n').count();
        // One slip breaks the rest of its line: the first message is the one that helps.
        if !lines_seen.contains(&line) {
            lines_seen.push(line);
            context.refuse(syntax_problem(
                context.kind,
                error.message(),
                Place { text: 0, start: span.start, end: span.end },
            ));
        }
    }
    None
}

/// Reads the value of the command line's override `flag`, which starts `shift` bytes into its shown text.
pub fn read_flag(context: &mut Context, flag: usize, shift: usize, value: &str) -> Option<Node> {
    let frame = Frame { text: flag + 1, shift };
    match DeValue::parse(value) {
        Ok(node) => Some(convert(node.get_ref(), frame.place(node.span()), &frame)),
        Err(_) => {
            let place = Place { text: flag + 1, start: shift, end: shift + value.len() };
            let name = words::shown(context.texts.of(flag + 1).get(..shift).unwrap_or_default().trim_end());
            let what = format!("{} is no value for {name}", quoted(value));
            context.refuse(Problem::at(&place, what).cure("give it a number, a word in quotes, or a list in brackets"));
            None
        }
    }
}

fn syntax_problem(kind: &Kind, message: &str, place: Place) -> Problem {
    let problem = Problem::at(&place, format!("not valid TOML: {message}"));
    match message {
        "duplicate key" => problem.label("given a second time").cure(kind.if_twice),
        "recursion limit" | "cannot recurse further; max recursion depth met" => {
            problem.cure(format!("no key of a {} nests more than {} deep", kind.name, kind.depth))
        }
        _ if message.starts_with("invalid basic string") => problem.cure("close the text with a double quote"),
        _ if message.contains("quoted") => problem.cure("put text in double quotes"),
        _ => problem.cure(format!("see https://toml.io for the syntax, and {} for examples", kind.reference)),
    }
}

/// Which text the parser's spans count from, and how far into it that text begins.
struct Frame {
    text: usize,
    shift: usize,
}

impl Frame {
    fn place(&self, span: std::ops::Range<usize>) -> Place {
        Place { text: self.text, start: span.start + self.shift, end: span.end + self.shift }
    }
}

fn convert(value: &DeValue<'_>, place: Place, frame: &Frame) -> Node {
    let value = match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => Value::Integer(integer(number.as_str(), number.radix())),
        DeValue::Float(number) => Value::Float(number.as_str().to_owned()),
        DeValue::Boolean(yes) => Value::Boolean(*yes),
        DeValue::Datetime(when) => Value::Datetime(when.to_string()),
        DeValue::Array(nodes) => {
            Value::Array(nodes.iter().map(|node| convert(node.get_ref(), frame.place(node.span()), frame)).collect())
        }
        DeValue::Table(table) => Value::Table(convert_table(table, frame)),
    };
    Node { value, place }
}

fn convert_table(table: &DeTable<'_>, frame: &Frame) -> Table {
    let convert_entry = |(key, node): (&toml::Spanned<_>, &toml::Spanned<_>)| Entry {
        key: std::borrow::Cow::<str>::to_string(key.get_ref()),
        key_place: frame.place(key.span()),
        node: convert(node.get_ref(), frame.place(node.span()), frame),
    };
    let mut entries: Vec<Entry> = table.iter().map(convert_entry).collect();
    entries.sort_by(|a, b| a.key_place.cmp(&b.key_place));
    Table { entries }
}

fn integer(digits: &str, radix: u32) -> i128 {
    let saturated = if digits.starts_with('-') { i128::MIN } else { i128::MAX };
    i128::from_str_radix(digits, radix).unwrap_or(saturated)
}

/// "`window`", or "`[measure]`": a key as a sentence quotes it.
pub fn quoted(key: &str) -> String {
    format!("`{}`", words::shown(key))
}

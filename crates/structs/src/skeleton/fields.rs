//! The fields that a struct's members become: integers and arrays of them, none over another.

use crate::layout::{Keyword, Kind, Member, Struct, path};
use plan::CACHE_LINE_BYTES;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Largest `at` of a field, and most elements (scenarios/README.md, "field").
const AT_MAX: u64 = 16_777_215;
const COUNT_MAX: u64 = 65_536;

/// Longest name of a field, bytes, and of it what a number at its end leaves.
const NAME_MAX: usize = 64;
const STEM_MAX: usize = NAME_MAX - 8;

/// Most fields of a scenario.
const FIELDS_MAX: usize = 256;

/// What stands in a skeleton, in the order of offsets.
pub(super) enum Entry {
    /// A field.
    Field(Field),
    /// What is no field, and why.
    Note { offset: u64, text: String },
}

/// One field of a scenario.
pub(super) struct Field {
    pub(super) name: String,
    /// `u8` to `u64`.
    pub(super) word: &'static str,
    /// Elements; 1 is a single value.
    pub(super) count: u64,
    pub(super) offset: u64,
    pub(super) notes: Vec<String>,
}

impl Entry {
    pub(super) fn field(&self) -> Option<&Field> {
        match self {
            Entry::Field(field) => Some(field),
            Entry::Note { .. } => None,
        }
    }

    pub(super) fn offset(&self) -> u64 {
        match self {
            Entry::Field(field) => field.offset,
            Entry::Note { offset, .. } => *offset,
        }
    }
}

/// A member without members, and the bytes that it uses.
struct Leaf<'a> {
    path: String,
    member: &'a Member,
    begin: u64,
    end: u64,
    /// The path of the lock that it is a part of, by the name of its type.
    lock: Option<String>,
}

/// The fields of a struct; of nested ones too, where they are not too many together.
pub(super) fn fields(of: &Struct) -> Vec<Entry> {
    let all = placed(of, true);
    let many = all.iter().filter(|entry| entry.field().is_some()).count() > FIELDS_MAX;
    if many { placed(of, false) } else { all }
}

fn placed(of: &Struct, nested: bool) -> Vec<Entry> {
    let mut leaves = Vec::new();
    let from = Level { overlapping: of.keyword == Keyword::Union, nested, wrapped: false, lock: None };
    collect(&of.members, &from, "", &mut leaves);
    let mut names = Names::default();
    let mut taken = Taken::default();
    let mut entries = Vec::new();
    let mut leaves = leaves.into_iter().peekable();
    while let Some(leaf) = leaves.next() {
        // Bit-fields that share bytes are one field: the smallest that a program can write is a byte.
        let mut shared = vec![leaf];
        while let Some(next) = leaves.next_if(|next| joins(&shared, next)) {
            shared.push(next);
        }
        entries.push(entry(&shared, &mut names, &mut taken));
    }
    entries.sort_by_key(Entry::offset);
    if !nested {
        leave_out(&mut entries);
    }
    entries
}

/// Notes in place of fields beyond the most that a scenario has.
fn leave_out(entries: &mut [Entry]) {
    let fields = entries.iter_mut().filter(|entry| entry.field().is_some());
    for entry in fields.skip(FIELDS_MAX) {
        if let Entry::Field(field) = entry {
            let what = field.notes.last().cloned().unwrap_or_default();
            let text = format!("{what}: left out, for a scenario has at most {FIELDS_MAX} fields");
            *entry = Entry::Note { offset: field.offset, text };
        }
    }
}

fn joins(shared: &[Leaf<'_>], next: &Leaf<'_>) -> bool {
    let last = &shared[shared.len() - 1];
    last.member.bits.is_some() && next.member.bits.is_some() && next.begin < last.end && next.begin >= shared[0].begin
}

/// What is known of the members at one level.
struct Level {
    overlapping: bool,
    /// Whether members of nested structs are fields, and not the structs as a whole.
    nested: bool,
    /// Whether they are what one member is all of, such as the number in an atomic type: it has that member's name.
    wrapped: bool,
    lock: Option<String>,
}

fn is_wrapper(member: &Member) -> bool {
    let with_bytes: Vec<&Member> = member.members.iter().filter(|own| own.bytes > 0).collect();
    matches!(with_bytes[..], [own] if (own.offset, own.bytes) == (member.offset, member.bytes))
}

fn is_lock(member: &Member) -> bool {
    let of = member.type_name.to_lowercase();
    ["mutex", "spinlock", "rwlock", "semaphore"].iter().any(|word| of.contains(word)) && !of.contains('*')
}

/// Members without members. Of a union the largest comes first, which then has the bytes.
fn collect<'a>(members: &'a [Member], level: &Level, within: &str, leaves: &mut Vec<Leaf<'a>>) {
    let mut ordered: Vec<&Member> = members.iter().collect();
    if level.overlapping {
        ordered.sort_by_key(|member| std::cmp::Reverse(member.bytes));
    }
    for member in ordered {
        // A base class's members are its heir's.
        let own = if level.wrapped || member.kind == Kind::Base { "" } else { &member.name };
        let path = path(within, own);
        let lock = level.lock.clone().or_else(|| is_lock(member).then(|| path.clone()));
        let whole = !level.nested && !member.name.is_empty() && matches!(member.kind, Kind::Nested(_));
        if member.members.is_empty() || whole {
            let (first, behind) = member.used_bits();
            let byte = |bits: u128| u64::try_from(bits).unwrap_or(u64::MAX);
            let path = if path.is_empty() { member.type_name.clone() } else { path };
            leaves.push(Leaf { path, member, begin: byte(first / 8), end: byte(behind.div_ceil(8)), lock });
        } else {
            let overlapping = member.kind == Kind::Nested(Keyword::Union);
            collect(
                &member.members,
                &Level { overlapping, nested: level.nested, wrapped: is_wrapper(member), lock },
                &path,
                leaves,
            );
        }
    }
}

fn entry(shared: &[Leaf<'_>], names: &mut Names, taken: &mut Taken) -> Entry {
    let leaf = &shared[0];
    let (begin, end) = (leaf.begin, shared.iter().map(|leaf| leaf.end).max().unwrap_or(leaf.end));
    let what = described(shared);
    let note = |why: &str| Entry::Note { offset: begin, text: format!("{what}: {why}") };
    if begin >= end {
        return note("has no bytes of its own");
    }
    if matches!(leaf.member.kind, Kind::Variant | Kind::Base) {
        return note("has no members");
    }
    if let Some(other) = taken.over(begin, end) {
        return note(&format!("no field, for it shares its bytes with `{other}`"));
    }
    let (word, width) = word(leaf.member, begin, end - begin);
    let count = (end - begin) / width;
    if begin > AT_MAX || count > COUNT_MAX {
        return note("no field, for it is larger, or lies farther behind the begin, than a scenario's fields can");
    }
    let name = names.unique(&if shared.len() > 1 { format!("{}_bits", leaf.path) } else { leaf.path.clone() });
    taken.0.insert(begin, (end, name.clone()));
    let mut notes = Vec::new();
    if let Some(lock) = leaf.lock.as_ref().filter(|lock| names.1.insert((*lock).clone())) {
        notes.push(format!(
            "`{lock}` is a lock, it seems. The lab's own take 64 bytes; here it is the words that it is made of, of which"
        ));
        notes.push("an acquisition writes the first: `cas` it, and `store` to release.".to_owned());
    }
    notes.push(format!("{what}, line {}", lines(begin, end)));
    notes.extend(remarks(leaf.member, begin, end));
    Entry::Field(Field { name, word, count, offset: begin, notes })
}

fn described(shared: &[Leaf<'_>]) -> String {
    let one = |leaf: &Leaf<'_>| match leaf.member.bits {
        Some(bits) => format!("{} {}:{}", leaf.member.type_name, leaf.path, bits.count),
        None => format!("{} {}", leaf.member.type_name, leaf.path),
    };
    shared.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn lines(begin: u64, end: u64) -> String {
    match (begin / CACHE_LINE_BYTES, (end - 1) / CACHE_LINE_BYTES) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first} to {last}"),
    }
}

fn remarks(member: &Member, begin: u64, end: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if member.straddles() && member.bits.is_none() {
        notes.push(format!("It straddles lines: it needs {}.", (end - begin).div_ceil(CACHE_LINE_BYTES)));
    }
    if member.bits.is_some() {
        notes.push("Bit-fields: a store to one reads and writes what lies beside it too.".to_owned());
    }
    if member.align > 1 && !begin.is_multiple_of(member.align) && member.bits.is_none() {
        notes.push("It is not aligned, so that only plain steps (load, store, bump) can use it.".to_owned());
    }
    notes
}

/// The integer that so many bytes are made of, and its width: that of the element of an array, or else the widest that
/// fits size and offset.
fn word(member: &Member, begin: u64, bytes: u64) -> (&'static str, u64) {
    let wanted = match &member.kind {
        _ if member.bits.is_some() => None,
        Kind::Array { element_bytes, .. } => Some(*element_bytes),
        // A packed number may lie anywhere.
        _ => Some(bytes),
    };
    let known = |width: u64| match width {
        1 => Some(("u8", 1)),
        2 => Some(("u16", 2)),
        4 => Some(("u32", 4)),
        8 => Some(("u64", 8)),
        _ => None,
    };
    let short = |width: &u64| bytes / width <= COUNT_MAX;
    if let Some(found) = wanted.filter(|width| *width > 0 && short(width)).and_then(known) {
        return found;
    }
    let fits = |width: &u64| begin.is_multiple_of(*width) && bytes.is_multiple_of(*width);
    [8, 4, 2].into_iter().find(fits).and_then(known).unwrap_or(("u8", 1))
}

/// Names of fields, each once, with the number that the next of that name gets; and the locks that were told of.
#[derive(Default)]
struct Names(HashMap<String, u32>, HashSet<String>);

impl Names {
    /// `path` as the name of a field: small letters, digits and `_`, a letter first.
    fn unique(&mut self, path: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        let mut name: String = path.chars().map(plain).collect();
        name = name.split('_').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("_");
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
            name = format!("f{name}");
        }
        let stem = name[..name.len().min(STEM_MAX)].trim_end_matches('_').to_owned();
        let mut unique = if name.len() > NAME_MAX { stem.clone() } else { name };
        while self.0.contains_key(&unique) {
            let number = self.0.entry(stem.clone()).or_default();
            *number += 1;
            unique = format!("{stem}_{number}");
        }
        self.0.insert(unique.clone(), 1);
        unique
    }
}

/// Bytes that have a field already: where they begin, where they end, and the field.
#[derive(Default)]
struct Taken(BTreeMap<u64, (u64, String)>);

impl Taken {
    fn over(&self, begin: u64, end: u64) -> Option<&str> {
        let (_, (taken_end, name)) = self.0.range(..end).next_back()?;
        (*taken_end > begin).then_some(name)
    }
}

//! From offsets to members and the bytes between them, the same for every language.

use super::{Language, names, reasons};
use crate::candidate::Candidate;
use plan::{Item, LockKind, Usage};
use std::collections::{BTreeMap, BTreeSet};

/// A struct to be written.
pub(super) struct Struct {
    /// Its name.
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) align: u64,
    /// Members and what lies between them, ascending.
    pub(super) parts: Vec<Part>,
}

/// One line of it.
pub(super) enum Part {
    Comment(String),
    Member(Member),
    Pad { name: String, bytes: u64 },
}

/// One member.
pub(super) struct Member {
    pub(super) name: String,
    pub(super) offset: u64,
    pub(super) shape: Shape,
}

/// What a member is.
pub(super) enum Shape {
    /// An integer, or as many of them back to back.
    Integers { kind: Integer, count: Option<usize> },
    /// A lock's bytes.
    Lock(LockKind),
    /// Rows of one element of each of these, evenly apart.
    Rows { type_name: String, stride: u64, count: usize, inner: Vec<Inner>, pads: Vec<(String, u64)> },
}

/// One element in a row.
pub(super) struct Inner {
    pub(super) name: String,
    /// From the row's start.
    pub(super) offset: u64,
    pub(super) kind: Integer,
}

/// An integer type.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Integer {
    pub(super) bytes: u64,
    pub(super) atomic: bool,
    /// Whether it lies where no integer of its size may: then it is bytes.
    pub(super) unaligned: bool,
}

impl Member {
    fn bytes(&self) -> u64 {
        match &self.shape {
            Shape::Integers { kind, count } => kind.bytes * count.unwrap_or(1) as u64,
            Shape::Lock(_) => LockKind::BYTES,
            Shape::Rows { stride, count, .. } => stride * *count as u64,
        }
    }

    /// How code reaches each element, and where it lies.
    pub(super) fn paths(&self) -> Vec<(String, u64)> {
        match &self.shape {
            Shape::Integers { kind, count: Some(count) } if !kind.unaligned => {
                (0..*count).map(|n| (format!("{}[{n}]", self.name), self.offset + n as u64 * kind.bytes)).collect()
            }
            Shape::Integers { .. } | Shape::Lock(_) => vec![(self.name.clone(), self.offset)],
            Shape::Rows { stride, count, inner, .. } => (0..*count)
                .flat_map(|n| {
                    inner.iter().map(move |one| {
                        (format!("{}[{n}].{}", self.name, one.name), self.offset + n as u64 * stride + one.offset)
                    })
                })
                .collect(),
        }
    }
}

/// The struct of a candidate.
pub(super) fn of(candidate: &Candidate, language: Language, name: &str) -> Struct {
    let mut taken: BTreeSet<String> =
        candidate.offsets.keys().map(|field| names::member(language, field)).chain([name.to_owned()]).collect();
    let mut members = members(candidate, language, name, &mut taken);
    members.sort_by_key(|member| member.offset);
    let mut reasons = reasons::by_offset(candidate);
    let mut parts = Vec::new();
    let (mut end, mut pads) = (0, 0);
    let mut pad = |end: u64, to: u64, parts: &mut Vec<Part>| {
        if to > end {
            parts.push(Part::Pad { name: names::free(&mut taken, &format!("pad{pads}")), bytes: to - end });
            pads += 1;
        }
    };
    for member in members {
        pad(end, member.offset, &mut parts);
        // What is said of the lines that the member begins or lies on.
        let until = member.offset + member.bytes();
        let said: Vec<u64> = reasons.range(..until).map(|(offset, _)| *offset).collect();
        for offset in said {
            parts.extend(reasons.remove(&offset).map(Part::Comment));
        }
        end = until;
        parts.push(Part::Member(member));
    }
    pad(end, candidate.bytes, &mut parts);
    Struct { name: name.to_owned(), bytes: candidate.bytes, align: candidate.align, parts }
}

/// The elements of a field: where, and of what.
struct Elements<'a> {
    name: &'a str,
    offsets: &'a [u64],
    item: &'a Item,
    atomic: bool,
}

impl Elements<'_> {
    fn kind(&self) -> Integer {
        let unaligned = self.offsets.iter().any(|offset| !offset.is_multiple_of(self.item.bytes));
        Integer { bytes: self.item.bytes, atomic: self.atomic && !unaligned, unaligned }
    }

    /// The distance of its elements, where it is one for all.
    fn stride(&self) -> Option<u64> {
        let stride = self.offsets.get(1)?.checked_sub(self.offsets[0])?;
        self.offsets.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(stride)).then_some(stride)
    }
}

fn members(candidate: &Candidate, language: Language, owner: &str, taken: &mut BTreeSet<String>) -> Vec<Member> {
    let fields = fields(candidate);
    let mut members = Vec::new();
    let mut rows: BTreeMap<(u64, usize), Vec<&Elements<'_>>> = BTreeMap::new();
    for field in &fields {
        let name = names::member(language, field.name);
        let one =
            |name: String, offset| Member { name, offset, shape: Shape::Integers { kind: field.kind(), count: None } };
        let kind = candidate.arm.case.locks.iter().find(|lock| lock.name == field.name).map(|lock| lock.kind);
        match (kind.filter(|_| field.item.lock), field.offsets, field.stride()) {
            (Some(kind), [offset, ..], _) => members.push(Member { name, offset: *offset, shape: Shape::Lock(kind) }),
            (None, [offset], _) => members.push(one(name, *offset)),
            (None, several, Some(stride)) if stride == field.item.bytes && !field.kind().unaligned => {
                let shape = Shape::Integers { kind: field.kind(), count: Some(several.len()) };
                members.push(Member { name, offset: several[0], shape });
            }
            (None, several, Some(stride)) if stride > field.item.bytes && !field.kind().unaligned => {
                rows.entry((stride, several.len())).or_default().push(field);
            }
            (_, several, _) => members.extend(
                several.iter().enumerate().map(|(n, offset)| one(names::free(taken, &format!("{name}_{n}")), *offset)),
            ),
        }
    }
    for ((stride, count), arrays) in rows {
        for group in in_one_row(arrays, stride) {
            members.extend(row_member(candidate, language, owner, taken, (stride, count), &group, &fields));
        }
    }
    members
}

fn fields(candidate: &Candidate) -> Vec<Elements<'_>> {
    let Usage { items, .. } = &candidate.usage;
    let of = items.chunk_by(|one, next| one.name == next.name && one.lock == next.lock);
    of.filter_map(|elements| {
        let first = elements.first()?;
        let offsets = candidate.offsets.get(&first.name)?;
        let atomic = elements.iter().any(|item| item.atomic);
        Some(Elements { name: &first.name, offsets, item: first, atomic })
    })
    .collect()
}

/// Arrays of one stride whose first elements lie within it: each such lot is one row's.
fn in_one_row<'a>(mut arrays: Vec<&'a Elements<'a>>, stride: u64) -> Vec<Vec<&'a Elements<'a>>> {
    arrays.sort_by_key(|array| array.offsets[0]);
    let mut groups: Vec<Vec<&Elements<'_>>> = Vec::new();
    for array in arrays {
        let fits =
            |group: &&mut Vec<&Elements<'_>>| array.offsets[0] + array.item.bytes <= group[0].offsets[0] + stride;
        match groups.last_mut().filter(fits) {
            Some(group) => group.push(array),
            None => groups.push(vec![array]),
        }
    }
    groups
}

/// An array of rows; the elements one by one where something else lies between them or the last row has no room.
fn row_member(
    candidate: &Candidate,
    language: Language,
    owner: &str,
    taken: &mut BTreeSet<String>,
    (stride, count): (u64, usize),
    group: &[&Elements<'_>],
    fields: &[Elements<'_>],
) -> Vec<Member> {
    let base = group[0].offsets[0];
    let within = base..base + stride * count as u64;
    let is_member = |field: &Elements<'_>| group.iter().any(|one| one.name == field.name);
    let touches = |field: &Elements<'_>| {
        let overlaps = |offset: &u64| *offset < within.end && offset + field.item.bytes > within.start;
        field.offsets.iter().any(overlaps)
    };
    let aligned = group.iter().all(|one| base.is_multiple_of(one.item.align) && stride.is_multiple_of(one.item.align));
    if within.end > candidate.bytes || !aligned || fields.iter().any(|field| !is_member(field) && touches(field)) {
        let each = group.iter().flat_map(|array| array.offsets.iter().enumerate().map(move |(n, at)| (*array, n, *at)));
        let member = |(array, n, offset): (&Elements<'_>, usize, u64)| Member {
            name: names::free(taken, &format!("{}_{n}", names::member(language, array.name))),
            offset,
            shape: Shape::Integers { kind: array.kind(), count: None },
        };
        return each.map(member).collect();
    }
    let alone = group.len() == 1;
    let name = if alone { names::member(language, group[0].name) } else { names::free(taken, "rows") };
    let inner_name = |one: &Elements<'_>| if alone { "value".to_owned() } else { names::member(language, one.name) };
    let inner: Vec<Inner> = group
        .iter()
        .map(|one| Inner { name: inner_name(one), offset: one.offsets[0] - base, kind: one.kind() })
        .collect();
    let mut inner_names: BTreeSet<String> = inner.iter().map(|one| one.name.clone()).collect();
    let mut pads = Vec::new();
    let ends = inner.iter().map(|one| one.offset + one.kind.bytes);
    let starts = inner.iter().skip(1).map(|one| one.offset).chain([stride]);
    for (end, start) in ends.zip(starts) {
        pads.push((names::free(&mut inner_names, "pad"), start - end));
    }
    let type_name = names::free(taken, &format!("{owner}{}", names::type_name(&name)));
    vec![Member { name, offset: base, shape: Shape::Rows { type_name, stride, count, inner, pads } }]
}

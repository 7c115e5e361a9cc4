//! A struct as a compiler laid it out: its members, the cache lines they lie on, and the bytes between them.

use plan::CACHE_LINE_BYTES;

/// A struct, class, union or enum as the debug information of a program has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Struct {
    /// Its name, with the namespaces or modules around it where the debug information tells them.
    pub name: String,
    /// What its language calls it.
    pub keyword: Keyword,
    /// The language it is written in.
    pub language: Language,
    /// Size, bytes: `sizeof`.
    pub bytes: u64,
    /// Alignment, bytes; a power of two. Where [`Struct::align_declared`] is false it is what the members ask for: an
    /// `alignas` may ask for more, which BTF and strict DWARF before version 5 do not tell.
    pub align: u64,
    /// Whether the debug information names the alignment.
    pub align_declared: bool,
    /// Whether members lie where their types' alignment would not have them.
    pub packed: bool,
    /// Where it is declared; `None` where the debug information does not say, as BTF never does.
    pub source: Option<Source>,
    /// Its members, in the order of the declaration; those of a union overlap.
    pub members: Vec<Member>,
    /// Virtual base classes, whose offsets only the virtual table of an object tells.
    pub virtual_bases: Vec<VirtualBase>,
}

/// What a language calls an aggregate.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Keyword {
    /// `struct`, in Rust tuples too.
    Struct,
    /// `class`.
    Class,
    /// `union`.
    Union,
    /// An enum of Rust whose variants hold data.
    Enum,
}

impl Keyword {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Keyword::Struct => "struct",
            Keyword::Class => "class",
            Keyword::Union => "union",
            Keyword::Enum => "enum",
        }
    }
}

/// The language of a declaration.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// C; that of BTF.
    C,
    /// C++.
    Cpp,
    /// Rust.
    Rust,
    /// Another, or one that the debug information does not name.
    Other,
}

impl Language {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Language::C => "C",
            Language::Cpp => "C++",
            Language::Rust => "Rust",
            Language::Other => "other",
        }
    }
}

/// A place in a source file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The file, as the compiler named it.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A virtual base class.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VirtualBase {
    /// Its name.
    pub type_name: String,
    /// Its size by itself, bytes.
    pub bytes: u64,
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// Its name; empty for an anonymous struct or union.
    pub name: String,
    /// Its type, as its language writes it.
    pub type_name: String,
    /// Offset from the start of the outermost struct, bytes. Of a bit-field that of the word that holds it.
    pub offset: u64,
    /// Size, bytes; 0 for a flexible array and for an empty type. Of a bit-field that of the word that holds it.
    pub bytes: u64,
    /// Alignment that its type or declaration asks for, bytes.
    pub align: u64,
    /// Which bits of the word, of a bit-field.
    pub bits: Option<Bits>,
    /// What kind of type it has.
    pub kind: Kind,
    /// Its own members, offsets counted from the start of the outermost struct. Empty for kinds that have none, and for
    /// arrays.
    pub members: Vec<Member>,
}

/// Where a bit-field lies in its word.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bits {
    /// The first bit, counted from the word's first byte.
    pub offset: u64,
    /// How many.
    pub count: u64,
}

/// What a member is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A number, a character, a truth value, an enumerator.
    Scalar,
    /// A pointer or reference.
    Pointer,
    /// An array.
    Array {
        /// Type of an element.
        element: String,
        /// Size of an element, bytes.
        element_bytes: u64,
        /// Elements, over all dimensions; 0 of a flexible array.
        count: u64,
    },
    /// A struct, class, union or enum with data.
    Nested(Keyword),
    /// What a class inherits.
    Base,
    /// What says which variant an enum of Rust holds. It may lie in a payload's unused values, over the payload.
    Discriminant,
    /// One variant of an enum of Rust; it spans the enum, and its members tell which bytes it uses.
    Variant,
}

/// Bytes that no member uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hole {
    /// Offset from the start of the outermost struct, bytes.
    pub offset: u64,
    /// Whole bytes.
    pub bytes: u64,
    /// The member whose own members it lies between, as a path; `None` between members of the outermost struct.
    pub within: Option<String>,
}

/// The index of the cache line that the byte at `offset` lies on, where the struct begins at a line.
pub fn line_of(offset: u64) -> u64 {
    offset / CACHE_LINE_BYTES
}

/// Lines that so many bytes need at the least.
fn lines_needed(bytes: u64) -> u64 {
    bytes.div_ceil(CACHE_LINE_BYTES)
}

impl Member {
    /// The line of its first byte, where the struct begins at a line.
    pub fn first_line(&self) -> u64 {
        line_of(self.offset)
    }

    /// The line of its last byte.
    pub fn last_line(&self) -> u64 {
        line_of(self.offset.saturating_add(self.bytes.saturating_sub(1)))
    }

    /// Whether it lies on more lines than its size needs.
    pub fn straddles(&self) -> bool {
        self.bytes > 0 && self.last_line() - self.first_line() + 1 > lines_needed(self.bytes)
    }

    /// First bit and the bit behind the last, from the start of the outermost struct: what it really uses.
    pub(crate) fn used_bits(&self) -> (u128, u128) {
        let start = u128::from(self.offset) * 8;
        match self.bits {
            Some(bits) => {
                let first = start + u128::from(bits.offset);
                (first, first + u128::from(bits.count))
            }
            None => (start, start + u128::from(self.bytes) * 8),
        }
    }

    /// Whether its own members are all it uses: a variant spans its enum, and a base class lends its tail to the class
    /// that inherits it.
    fn is_open(&self) -> bool {
        matches!(self.kind, Kind::Variant | Kind::Base)
    }
}

impl Struct {
    /// Cache lines it takes, where it begins at a line.
    pub fn lines(&self) -> u64 {
        lines_needed(self.bytes)
    }

    /// Whole bytes between members that no member uses, ascending, those inside nested structs included; not the
    /// padding at the end. A union's members overlap and have none between them.
    pub fn holes(&self) -> Vec<Hole> {
        let mut holes = Vec::new();
        if self.keyword != Keyword::Union {
            between(&self.members, 0, "", &mut holes);
        }
        if matches!(self.keyword, Keyword::Struct | Keyword::Class) {
            inside(&self.members, "", &mut holes);
        }
        holes.sort_by_key(|hole| hole.offset);
        holes
    }

    /// Whole bytes behind the last member. None are told where virtual bases lie there.
    pub fn tail_padding(&self) -> u64 {
        if !self.virtual_bases.is_empty() {
            return 0;
        }
        let mut used = Vec::new();
        uses(&self.members, &mut used);
        let end = used.iter().map(|&(_, end)| end).max().unwrap_or(0).div_ceil(8);
        u64::try_from(u128::from(self.bytes).saturating_sub(end)).unwrap_or(0)
    }

    /// Members and members of members in the order of the declaration, each with its path (`stats.hits`).
    pub fn every_member(&self) -> Vec<(String, &Member)> {
        let mut all = Vec::new();
        walk(&self.members, "", &mut all);
        all
    }
}

/// The path of a member below `within`; an anonymous one adds nothing to it.
pub(crate) fn path(within: &str, name: &str) -> String {
    match (within, name) {
        ("", name) => name.to_owned(),
        (within, "") => within.to_owned(),
        (within, name) => format!("{within}.{name}"),
    }
}

fn walk<'a>(members: &'a [Member], within: &str, all: &mut Vec<(String, &'a Member)>) {
    for member in members {
        let path = path(within, &member.name);
        all.push((path.clone(), member));
        walk(&member.members, &path, all);
    }
}

/// The bits that members use, as ranges; of open members the ranges of their own members.
fn uses(members: &[Member], used: &mut Vec<(u128, u128)>) {
    for member in members {
        if member.is_open() {
            uses(&member.members, used);
        } else {
            used.push(member.used_bits());
        }
    }
}

/// The bytes from `start` on between members, that none of them uses.
fn between(members: &[Member], start: u64, within: &str, holes: &mut Vec<Hole>) {
    let mut used = Vec::new();
    uses(members, &mut used);
    used.retain(|(first, behind)| behind > first);
    used.sort_unstable();
    let mut end = u128::from(start) * 8;
    for (first, behind) in used {
        if let (Ok(offset), Ok(taken)) = (u64::try_from(end.div_ceil(8)), u64::try_from(first / 8))
            && taken > offset
        {
            let within = (!within.is_empty()).then(|| within.to_owned());
            holes.push(Hole { offset, bytes: taken - offset, within });
        }
        end = end.max(behind);
    }
}

/// The holes inside members that are structs. Not inside those of a union or an enum: another may use the bytes.
fn inside(members: &[Member], within: &str, holes: &mut Vec<Hole>) {
    for member in members {
        let path = path(within, &member.name);
        match member.kind {
            Kind::Nested(Keyword::Union | Keyword::Enum) => between(&member.members, member.offset, &path, holes),
            Kind::Nested(Keyword::Struct | Keyword::Class) => {
                between(&member.members, member.offset, &path, holes);
                inside(&member.members, &path, holes);
            }
            // The bytes between its members are its heir's.
            Kind::Base => inside(&member.members, within, holes),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(name: &str, offset: u64, bytes: u64) -> Member {
        Member {
            name: name.to_owned(),
            type_name: "int".to_owned(),
            offset,
            bytes,
            align: bytes.max(1),
            bits: None,
            kind: Kind::Scalar,
            members: Vec::new(),
        }
    }

    fn of(keyword: Keyword, bytes: u64, members: Vec<Member>) -> Struct {
        Struct {
            name: "s".to_owned(),
            keyword,
            language: Language::C,
            bytes,
            align: 8,
            align_declared: false,
            packed: false,
            source: None,
            members,
            virtual_bases: Vec::new(),
        }
    }

    fn holes(of: &Struct) -> Vec<(u64, u64)> {
        of.holes().iter().map(|hole| (hole.offset, hole.bytes)).collect()
    }

    #[test]
    fn a_hole_is_what_no_member_uses_and_padding_is_behind_the_last() {
        let s = of(Keyword::Struct, 24, vec![scalar("a", 0, 1), scalar("b", 8, 8), scalar("c", 16, 2)]);
        assert_eq!((holes(&s), s.tail_padding(), s.lines()), (vec![(1, 7)], 6, 1));
    }

    #[test]
    fn a_union_has_no_holes_and_ends_behind_its_longest_member() {
        let s = of(Keyword::Union, 16, vec![scalar("a", 0, 1), scalar("b", 0, 12)]);
        assert_eq!((holes(&s), s.tail_padding()), (vec![], 4));
    }

    #[test]
    fn bit_fields_use_their_bits_and_not_their_word() {
        let bit = |name, offset, count| Member { bits: Some(Bits { offset, count }), ..scalar(name, 0, 8) };
        let s = of(Keyword::Struct, 16, vec![bit("a", 0, 3), bit("b", 3, 9), scalar("c", 4, 4), scalar("d", 8, 8)]);
        assert_eq!(holes(&s), [(2, 2)], "bits 12 to 15 are no whole byte");
    }

    #[test]
    fn holes_inside_a_nested_struct_name_it_and_an_anonymous_one_adds_no_name() {
        let inner = |name: &str| Member {
            kind: Kind::Nested(Keyword::Struct),
            members: vec![scalar("x", 8, 1), scalar("y", 12, 4)],
            ..scalar(name, 8, 8)
        };
        let hole = |name: &str| of(Keyword::Struct, 16, vec![scalar("a", 0, 8), inner(name)]).holes().remove(0);
        assert_eq!(hole("in"), Hole { offset: 9, bytes: 3, within: Some("in".to_owned()) });
        assert_eq!(hole("").within, None);
    }

    #[test]
    fn an_heir_may_use_the_tail_of_its_base_and_an_empty_base_uses_nothing() {
        let base =
            Member { kind: Kind::Base, members: vec![scalar("x", 0, 8), scalar("y", 8, 4)], ..scalar("B", 0, 16) };
        let empty = Member { kind: Kind::Base, ..scalar("E", 0, 1) };
        let s = of(Keyword::Class, 16, vec![empty, base, scalar("z", 12, 4)]);
        assert_eq!((holes(&s), s.tail_padding()), (vec![], 0));
    }

    #[test]
    fn a_member_straddles_where_it_lies_on_more_lines_than_it_needs() {
        let lines = |offset, bytes| {
            let m = scalar("m", offset, bytes);
            (m.first_line(), m.last_line(), m.straddles())
        };
        assert_eq!(lines(60, 4), (0, 0, false));
        assert_eq!(lines(60, 8), (0, 1, true));
        assert_eq!(lines(64, 128), (1, 2, false));
        assert_eq!(lines(32, 128), (0, 2, true));
        assert_eq!(lines(32, 256), (0, 4, true));
        assert_eq!(lines(128, 0), (2, 2, false));
        assert!(!lines(u64::MAX, u64::MAX).2);
    }

    #[test]
    fn paths_lead_through_named_members() {
        let anonymous =
            Member { kind: Kind::Nested(Keyword::Union), members: vec![scalar("y", 0, 8)], ..scalar("", 0, 8) };
        let outer = Member { kind: Kind::Nested(Keyword::Struct), members: vec![anonymous], ..scalar("x", 0, 8) };
        let s = of(Keyword::Struct, 8, vec![outer]);
        let paths: Vec<String> = s.every_member().into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["x", "x", "x.y"]);
    }
}

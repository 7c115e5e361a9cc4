//! C11 and C++11: the same struct, spelled otherwise.

use super::parts::{Inner, Integer, Member, Part, Shape, Struct};
use super::{Language, body};
use plan::LockKind;

/// How one of the two spells what both have.
struct Spelling {
    language: Language,
    includes: &'static str,
    /// Before the name of a struct where it is used as a type.
    keyword: &'static str,
    /// Before and behind the bits of an unsigned integer, and of an atomic one.
    integer: (&'static str, &'static str),
    atomic: (&'static str, &'static str),
    assert: &'static str,
    /// Around a comment at the end of a line.
    comment: (&'static str, &'static str),
}

const C: Spelling = Spelling {
    language: Language::C,
    includes: "#include <stdatomic.h>\n#include <stddef.h>\n#include <stdint.h>\n\n",
    keyword: "struct ",
    integer: ("uint", "_t"),
    atomic: ("_Atomic(uint", "_t)"),
    assert: "_Static_assert",
    comment: ("/* ", " */"),
};

const CPP: Spelling = Spelling {
    language: Language::Cpp,
    includes: "#include <atomic>\n#include <cstddef>\n#include <cstdint>\n\n",
    keyword: "",
    integer: ("std::uint", "_t"),
    atomic: ("std::atomic<std::uint", "_t>"),
    assert: "static_assert",
    comment: ("// ", ""),
};

/// As C11: a struct has no alignment of its own there, so its first member asks for it.
pub(super) fn c(made: &Struct) -> String {
    C.write(made, &format!("_Alignas({}) ", made.align), &format!("struct {}", made.name))
}

/// As C++11.
pub(super) fn cpp(made: &Struct) -> String {
    CPP.write(made, "", &format!("struct alignas({}) {}", made.align, made.name))
}

impl Spelling {
    /// `first` stands before the first member, `head` before the members.
    fn write(&self, made: &Struct, first: &str, head: &str) -> String {
        let before = |is_first: bool| if is_first { first } else { "" };
        let member = |member: &Member, is_first| format!("    {}{}", before(is_first), self.declared(member));
        let pad =
            |name: &str, bytes: u64, is_first| format!("    {}unsigned char {name}[{bytes}];\n", before(is_first));
        let rows: String = made.parts.iter().map(|part| self.row_type(part)).collect();
        let body = body(made, self.language, member, pad);
        let mut text = format!("{}{rows}{head} {{\n{body}}};\n\n", self.includes);
        for part in &made.parts {
            if let Part::Member(member) = part {
                text.push_str(&self.lies_at(&made.name, &member.name, member.offset));
            }
        }
        text.push_str(&self.is_large(&made.name, made.bytes, "size"));
        text
    }

    /// The type of an integer; one that is bytes has its count behind the name.
    fn type_of(&self, kind: Integer) -> String {
        let around = |(before, behind): (&str, &str)| format!("{before}{}{behind}", kind.bytes * 8);
        match kind {
            Integer { unaligned: true, .. } => "unsigned char".to_owned(),
            Integer { atomic: true, .. } => around(self.atomic),
            Integer { .. } => around(self.integer),
        }
    }

    fn declared(&self, member: &Member) -> String {
        let (name, (open, close)) = (&member.name, self.comment);
        match &member.shape {
            Shape::Integers { kind, count: None } if kind.unaligned => {
                format!("{} {name}[{}]; {open}an unaligned integer{close}\n", self.type_of(*kind), kind.bytes)
            }
            Shape::Integers { kind, count: None } => format!("{} {name};\n", self.type_of(*kind)),
            Shape::Integers { kind, count: Some(count) } => format!("{} {name}[{count}];\n", self.type_of(*kind)),
            Shape::Lock(kind) => format!(
                "unsigned char {name}[{}]; {open}a lock, measured as {}: your own goes here{close}\n",
                LockKind::BYTES,
                kind.name()
            ),
            Shape::Rows { type_name, count, .. } => format!("{}{type_name} {name}[{count}];\n", self.keyword),
        }
    }

    fn row_type(&self, part: &Part) -> String {
        let Part::Member(Member { shape: Shape::Rows { type_name, stride, inner, pads, .. }, .. }) = part else {
            return String::new();
        };
        let line = |(one, (pad, bytes)): (&Inner, &(String, u64))| {
            let behind = if *bytes > 0 { format!("    unsigned char {pad}[{bytes}];\n") } else { String::new() };
            format!("    {} {};\n{behind}", self.type_of(one.kind), one.name)
        };
        let lines: String = inner.iter().zip(pads).map(line).collect();
        let checks: String = inner.iter().map(|one| self.lies_at(type_name, &one.name, one.offset)).collect();
        let large = self.is_large(type_name, *stride, "row");
        format!("struct {type_name} {{\n{lines}}};\n{checks}{large}\n")
    }

    fn lies_at(&self, owner: &str, name: &str, offset: u64) -> String {
        format!("{}(offsetof({}{owner}, {name}) == {offset}, \"{name}\");\n", self.assert, self.keyword)
    }

    fn is_large(&self, name: &str, bytes: u64, what: &str) -> String {
        format!("{}(sizeof({}{name}) == {bytes}, \"{what}\");\n", self.assert, self.keyword)
    }
}

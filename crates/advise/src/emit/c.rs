//! C11.

use super::parts::{Inner, Integer, Member, Part, Shape, Struct};
use super::{Language, body};
use plan::LockKind;

const INCLUDES: &str = "#include <stdatomic.h>\n#include <stddef.h>\n#include <stdint.h>\n\n";

pub(super) fn write(made: &Struct) -> String {
    let align = |first: bool| if first { format!("_Alignas({}) ", made.align) } else { String::new() };
    let member = |member: &Member, first: bool| format!("    {}{}", align(first), declared(member));
    let pad = |name: &str, bytes: u64, first: bool| format!("    {}unsigned char {name}[{bytes}];\n", align(first));
    let rows: String = made.parts.iter().map(row_type).collect();
    let mut text = format!("{INCLUDES}{rows}struct {} {{\n{}}};\n\n", made.name, body(made, Language::C, member, pad));
    for part in &made.parts {
        if let Part::Member(member) = part {
            text.push_str(&checked(&made.name, member));
        }
    }
    text.push_str(&format!("_Static_assert(sizeof(struct {}) == {}, \"size\");\n", made.name, made.bytes));
    text
}

/// The type of an integer; one that is bytes has its count behind the name.
fn type_of(kind: Integer) -> String {
    match kind {
        Integer { unaligned: true, .. } => "unsigned char".to_owned(),
        Integer { atomic: true, bytes, .. } => format!("_Atomic(uint{}_t)", bytes * 8),
        Integer { bytes, .. } => format!("uint{}_t", bytes * 8),
    }
}

fn declared(member: &Member) -> String {
    let name = &member.name;
    match &member.shape {
        Shape::Integers { kind, count: None } if kind.unaligned => {
            format!("{} {name}[{}]; /* an unaligned integer */\n", type_of(*kind), kind.bytes)
        }
        Shape::Integers { kind, count: None } => format!("{} {name};\n", type_of(*kind)),
        Shape::Integers { kind, count: Some(count) } => format!("{} {name}[{count}];\n", type_of(*kind)),
        Shape::Lock(kind) => format!(
            "unsigned char {name}[{}]; /* a lock, measured as {}: your own goes here */\n",
            LockKind::BYTES,
            kind.name()
        ),
        Shape::Rows { type_name, count, .. } => format!("struct {type_name} {name}[{count}];\n"),
    }
}

fn row_type(part: &Part) -> String {
    let Part::Member(Member { shape: Shape::Rows { type_name, stride, inner, pads, .. }, .. }) = part else {
        return String::new();
    };
    let line = |(one, (pad, bytes)): (&Inner, &(String, u64))| {
        let behind = if *bytes > 0 { format!("    unsigned char {pad}[{bytes}];\n") } else { String::new() };
        format!("    {} {};\n{behind}", type_of(one.kind), one.name)
    };
    let lines: String = inner.iter().zip(pads).map(line).collect();
    let checks: String = inner
        .iter()
        .map(|one| {
            let (name, offset) = (&one.name, one.offset);
            format!("_Static_assert(offsetof(struct {type_name}, {name}) == {offset}, \"{name}\");\n")
        })
        .collect();
    format!(
        "struct {type_name} {{\n{lines}}};\n{checks}_Static_assert(sizeof(struct {type_name}) == {stride}, \"row\");\n\n"
    )
}

fn checked(owner: &str, member: &Member) -> String {
    let (name, offset) = (&member.name, member.offset);
    format!("_Static_assert(offsetof(struct {owner}, {name}) == {offset}, \"{name}\");\n")
}

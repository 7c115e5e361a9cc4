//! C++11.

use super::parts::{Inner, Integer, Member, Part, Shape, Struct};
use super::{Language, body};
use plan::LockKind;

const INCLUDES: &str = "#include <atomic>\n#include <cstddef>\n#include <cstdint>\n\n";

pub(super) fn write(made: &Struct) -> String {
    let member = |member: &Member, _| format!("    {}", declared(member));
    let pad = |name: &str, bytes: u64, _| format!("    unsigned char {name}[{bytes}];\n");
    let rows: String = made.parts.iter().map(row_type).collect();
    let head = format!("struct alignas({}) {}", made.align, made.name);
    let mut text = format!("{INCLUDES}{rows}{head} {{\n{}}};\n\n", body(made, Language::Cpp, member, pad));
    for part in &made.parts {
        if let Part::Member(member) = part {
            text.push_str(&checked(&made.name, &member.name, member.offset));
        }
    }
    text.push_str(&format!("static_assert(sizeof({}) == {}, \"size\");\n", made.name, made.bytes));
    text
}

fn type_of(kind: Integer) -> String {
    match kind {
        Integer { unaligned: true, .. } => "unsigned char".to_owned(),
        Integer { atomic: true, bytes, .. } => format!("std::atomic<std::uint{}_t>", bytes * 8),
        Integer { bytes, .. } => format!("std::uint{}_t", bytes * 8),
    }
}

fn declared(member: &Member) -> String {
    let name = &member.name;
    match &member.shape {
        Shape::Integers { kind, count: None } if kind.unaligned => {
            format!("{} {name}[{}]; // an unaligned integer\n", type_of(*kind), kind.bytes)
        }
        Shape::Integers { kind, count: None } => format!("{} {name};\n", type_of(*kind)),
        Shape::Integers { kind, count: Some(count) } => format!("{} {name}[{count}];\n", type_of(*kind)),
        Shape::Lock(kind) => format!(
            "unsigned char {name}[{}]; // a lock, measured as {}: your own goes here\n",
            LockKind::BYTES,
            kind.name()
        ),
        Shape::Rows { type_name, count, .. } => format!("{type_name} {name}[{count}];\n"),
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
    let checks: String = inner.iter().map(|one| checked(type_name, &one.name, one.offset)).collect();
    format!("struct {type_name} {{\n{lines}}};\n{checks}static_assert(sizeof({type_name}) == {stride}, \"row\");\n\n")
}

fn checked(owner: &str, name: &str, offset: u64) -> String {
    format!("static_assert(offsetof({owner}, {name}) == {offset}, \"{name}\");\n")
}

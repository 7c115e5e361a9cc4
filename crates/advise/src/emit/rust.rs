//! Rust.

use super::parts::{Inner, Integer, Member, Part, Shape, Struct};
use super::{Language, body};
use plan::LockKind;

pub(super) fn write(made: &Struct) -> String {
    let member = |member: &Member, _| format!("    {}", declared(member));
    let pad = |name: &str, bytes: u64, _| format!("    pub {name}: [u8; {bytes}],\n");
    let rows: String = made.parts.iter().map(row_type).collect();
    let head = format!("#[repr(C, align({}))]\npub struct {}", made.align, made.name);
    let mut text = format!("{rows}{head} {{\n{}}}\n\nconst _: () = {{\n", body(made, Language::Rust, member, pad));
    for part in &made.parts {
        if let Part::Member(member) = part {
            text.push_str(&checked(&made.name, &member.name, member.offset));
        }
    }
    text.push_str(&format!("    assert!(core::mem::size_of::<{}>() == {});\n}};\n", made.name, made.bytes));
    text
}

fn type_of(kind: Integer) -> String {
    match kind {
        Integer { unaligned: true, bytes, .. } => format!("[u8; {bytes}]"),
        Integer { atomic: true, bytes, .. } => format!("core::sync::atomic::AtomicU{}", bytes * 8),
        Integer { bytes, .. } => format!("u{}", bytes * 8),
    }
}

fn declared(member: &Member) -> String {
    let name = &member.name;
    match &member.shape {
        Shape::Integers { kind, count: None } if kind.unaligned => {
            format!("pub {name}: {}, // an unaligned integer\n", type_of(*kind))
        }
        Shape::Integers { kind, count: None } => format!("pub {name}: {},\n", type_of(*kind)),
        Shape::Integers { kind, count: Some(count) } => format!("pub {name}: [{}; {count}],\n", type_of(*kind)),
        Shape::Lock(kind) => format!(
            "pub {name}: [u8; {}], // a lock, measured as {}: your own goes here\n",
            LockKind::BYTES,
            kind.name()
        ),
        Shape::Rows { type_name, count, .. } => format!("pub {name}: [{type_name}; {count}],\n"),
    }
}

fn row_type(part: &Part) -> String {
    let Part::Member(Member { shape: Shape::Rows { type_name, stride, inner, pads, .. }, .. }) = part else {
        return String::new();
    };
    let line = |(one, (pad, bytes)): (&Inner, &(String, u64))| {
        let behind = if *bytes > 0 { format!("    pub {pad}: [u8; {bytes}],\n") } else { String::new() };
        format!("    pub {}: {},\n{behind}", one.name, type_of(one.kind))
    };
    let lines: String = inner.iter().zip(pads).map(line).collect();
    let checks: String = inner.iter().map(|one| checked(type_name, &one.name, one.offset)).collect();
    format!(
        "#[repr(C)]\npub struct {type_name} {{\n{lines}}}\n\nconst _: () = {{\n{checks}    \
         assert!(core::mem::size_of::<{type_name}>() == {stride});\n}};\n\n"
    )
}

fn checked(owner: &str, name: &str, offset: u64) -> String {
    format!("    assert!(core::mem::offset_of!({owner}, {name}) == {offset});\n")
}

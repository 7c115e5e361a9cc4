//! Names that a language takes.

use super::Language;
use std::collections::BTreeSet;

/// Words of each language that name nothing else. Scenario names are of a-z, 0-9 and `_`, so that no others can come
/// up.
const C: &[&str] = &[
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "offsetof",
    "assert",
    "typeof",
    "alignas",
    "bool",
    "alignof",
    "nullptr",
    "constexpr",
    "static_assert",
    "thread_local",
    "asm",
    "linux",
    "unix",
    "true",
    "false",
];
const CPP: &[&str] = &[
    "and",
    "and_eq",
    "bitand",
    "bitor",
    "catch",
    "class",
    "compl",
    "concept",
    "const_cast",
    "consteval",
    "constinit",
    "co_await",
    "co_return",
    "co_yield",
    "decltype",
    "delete",
    "dynamic_cast",
    "explicit",
    "export",
    "friend",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "reinterpret_cast",
    "requires",
    "static_cast",
    "template",
    "this",
    "throw",
    "try",
    "typeid",
    "typename",
    "using",
    "virtual",
    "wchar_t",
    "xor",
    "xor_eq",
    "char8_t",
    "char16_t",
    "char32_t",
];
const RUST: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true",
    "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// A field's name as that language takes it: a word of the language gets a `_` behind it.
pub(super) fn member(language: Language, name: &str) -> String {
    let reserved = match language {
        Language::C => C.contains(&name),
        Language::Cpp => C.contains(&name) || CPP.contains(&name),
        Language::Rust => RUST.contains(&name),
    };
    if reserved { format!("{name}_") } else { name.to_owned() }
}

/// A name that is not taken, from `wanted`; takes it.
pub(super) fn free(taken: &mut BTreeSet<String>, wanted: &str) -> String {
    let tries = std::iter::once(wanted.to_owned()).chain((2..).map(|n| format!("{wanted}_{n}")));
    let name = tries.into_iter().find(|name| !taken.contains(name)).expect("one of endlessly many is free");
    taken.insert(name.clone());
    name
}

/// A type's name from a file's: `ring_buffer-2` is `RingBuffer2`. `Shared` where nothing is left of it.
pub fn type_name(stem: &str) -> String {
    let words = stem.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect();
    match name.chars().next() {
        None => "Shared".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("Shared{name}"),
        // The one word of the three languages that begins with a capital.
        Some(_) if name == "Self" => "Shared".to_owned(),
        Some(_) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_language_are_no_names() {
        assert_eq!(member(Language::Rust, "type"), "type_");
        assert_eq!(member(Language::C, "type"), "type");
        assert_eq!(member(Language::Cpp, "new"), "new_");
    }

    #[test]
    fn a_files_name_becomes_a_types() {
        let names = ["false_sharing", "pg-lwlock", "2fast", "--", "self", "é"].map(type_name);
        assert_eq!(names, ["FalseSharing", "PgLwlock", "Shared2fast", "Shared", "Shared", "Shared"]);
    }
}

//! Why a struct could not be read.

use plan::escaped;
use std::path::PathBuf;

/// Why a struct could not be read. Each says which file, what is wrong with it, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("reading {} failed: {why}: name a program or library that you may read", file.display())]
    Unreadable {
        /// Which.
        file: PathBuf,
        /// The system's word.
        why: std::io::Error,
    },
    /// The file is no ELF file.
    #[error("{} is no ELF file: {seen}. Name a program, a library or an object file for Linux", file.display())]
    NotElf {
        /// Which.
        file: PathBuf,
        /// What it is instead.
        seen: String,
    },
    /// The file is no BTF.
    #[error("{} holds no BTF: {seen}. Name a file such as /sys/kernel/btf/vmlinux, or an ELF file with a section .BTF",
            file.display())]
    NotBtf {
        /// Which.
        file: PathBuf,
        /// What it is instead.
        seen: String,
    },
    /// The file contradicts itself: cut short, or damaged.
    #[error("{} is damaged or cut short: {what}. Build or copy it again", file.display())]
    Damaged {
        /// Which.
        file: PathBuf,
        /// Where, and what is wrong there.
        what: String,
    },
    /// There is no debug information.
    #[error("{} holds no debug information{}. Compile with -g (Rust: debug = true in the profile) and do not strip the \
             program, or install its debug symbols", file.display(), looked(.looked_for))]
    NoDebugInfo {
        /// Which.
        file: PathBuf,
        /// Files that would have held it, had they been there.
        looked_for: Vec<String>,
    },
    /// No struct has that name.
    #[error("no struct, class, union or enum `{name}` in {}{}{}", file.display(), like(.near), absent(.missing))]
    NotFound {
        /// Where it was looked for.
        file: PathBuf,
        /// The name.
        name: String,
        /// Names like it.
        near: Vec<String>,
        /// Files with parts of the debug information that are not there.
        missing: Vec<String>,
    },
    /// It is declared, and its members are not told.
    #[error("{} only declares `{name}` and does not say what is in it: name the program or library that defines it, or \
             compile with -fno-eliminate-unused-debug-types (clang: -fstandalone-debug)", file.display())]
    OnlyDeclared {
        /// Where it was looked for.
        file: PathBuf,
        /// The name.
        name: String,
    },
    /// Several types have that name.
    #[error("`{name}` is the name of {} types: choose one by --nth N or --at FILE:LINE\n{}",
            .found.len(), lines(.found))]
    Several {
        /// The name.
        name: String,
        /// A line for each: its number, size and place.
        found: Vec<String>,
    },
    /// None of the types of that name is the one that was chosen.
    #[error("{chosen}: no `{name}` is there; there are\n{}", lines(.found))]
    NotChosen {
        /// The name.
        name: String,
        /// The option with its value.
        chosen: String,
        /// A line for each that there is.
        found: Vec<String>,
    },
    /// There is nothing of which a scenario could be made.
    #[error("`{name}` has no bytes that a scenario could place: import the struct that is written and read")]
    NothingToPlace {
        /// The name.
        name: String,
    },
    /// More members than anyone would read.
    #[error("`{name}` has more than {most} members, those of nested structs counted: import one of its parts")]
    TooManyMembers {
        /// The name.
        name: String,
        /// The bound.
        most: usize,
    },
}

// Names that a file holds are somebody else's: one with a line end in it begins no line of a message.

fn lines(found: &[String]) -> String {
    found.iter().map(|line| escaped(line)).collect::<Vec<_>>().join("\n")
}

fn looked(files: &[String]) -> String {
    match files {
        [] => String::new(),
        files => format!(", and it is not in a file of its own: there is no {}", escaped(&files.join(", "))),
    }
}

fn like(names: &[String]) -> String {
    match names {
        [] => ": give its name as its language writes it, such as `ring`, `ns::Ring<int>` or `crate::ring::Ring`"
            .to_owned(),
        names => {
            let quoted: Vec<String> = names.iter().map(|name| format!("`{}`", escaped(name))).collect();
            format!(": did you mean {}?", quoted.join(" or "))
        }
    }
}

fn absent(files: &[String]) -> String {
    match files {
        [] => String::new(),
        [one] => format!("\nA part of the debug information is not there: {}", escaped(one)),
        [first, rest @ ..] => {
            let first = escaped(first);
            format!("\nParts of the debug information are not there: {first} and {} more files", rest.len())
        }
    }
}

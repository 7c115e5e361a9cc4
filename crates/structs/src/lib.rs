//! Structs as compilers laid them out: out of the debug information of a program ([`in_binary`], DWARF of C, C++ and
//! Rust) or of a kernel ([`in_btf`], BTF), and into the skeleton of a scenario ([`skeleton`]).
//!
//! Files are read, never mapped: a file that shrinks under a reader is an error and no signal. Nothing in a file is
//! believed: each length is held against what is there, and the work that a file can ask for is bounded.
#![forbid(unsafe_code)]

mod btf;
mod dwarf;
pub mod elf;
mod error;
mod layout;
mod parts;
pub mod skeleton;
pub mod split_off;
mod wanted;

pub use error::Error;
pub use layout::{Bits, Hole, Keyword, Kind, Language, Member, Source, Struct, VirtualBase, line_of};
pub use wanted::{Choice, Wanted, choose};

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

/// The debug information that a kernel has of itself.
pub const KERNEL_BTF: &str = "/sys/kernel/btf/vmlinux";

/// Every type of that name in the debug information of `file`, an ELF program, library or object file; in the order of
/// name, place and size, each once. Debug information may lie in files beside it: split off by the compiler (`.dwo`,
/// `.dwp`) or by a packager (`.gnu_debuglink`, build identifiers below `/usr/lib/debug`, `.gnu_debugaltlink`).
///
/// # Errors
/// [`Error`]: the file or what it holds; there is at least one type in what is returned.
pub fn in_binary(file: &Path, wanted: &Wanted) -> Result<Vec<Struct>, Error> {
    dwarf::find(file, wanted)
}

/// Every type of that name in a file of BTF, bare as `/sys/kernel/btf/vmlinux` or in a section of an ELF file.
///
/// # Errors
/// As [`in_binary`].
pub fn in_btf(file: &Path, wanted: &Wanted) -> Result<Vec<Struct>, Error> {
    btf::find(file, wanted)
}

/// In an order that does not depend on where in a file they were found.
fn in_order(found: HashSet<Struct>) -> Vec<Struct> {
    let mut found: Vec<Struct> = found.into_iter().collect();
    found.sort_by_cached_key(|one| (one.name.clone(), one.source.clone(), one.bytes, format!("{:?}", one.members)));
    found
}

/// At most three names like the wanted one, best first: the same but for the case of letters, slips of the pen, then
/// names that begin with it. Looked for among the last parts of names.
fn names_like(wanted: &Wanted, names: &BTreeSet<String>) -> Vec<String> {
    const MOST: usize = 3;
    // Some template's names fill a page.
    const NAME_MAX: usize = 100;
    let word = wanted.last();
    if word.is_empty() {
        return Vec::new();
    }
    let names = || names.iter().filter(|name| name.len() <= NAME_MAX);
    // A slip changes a third of the letters at most: the others need not be compared.
    let similar = |name: &&String| name.len().abs_diff(word.len()) <= word.len().max(name.len()) / 3;
    let mut near: Vec<&str> = names().filter(similar).map(String::as_str).collect();
    let mut like: Vec<String> = Vec::new();
    while like.len() < MOST
        && let Some(name) = plan::nearest(word, &near).map(str::to_owned)
    {
        near.retain(|other| *other != name);
        like.push(name);
    }
    let longer = names().filter(|name| word.len() > 2 && name.to_lowercase().contains(&word.to_lowercase()));
    let longer: Vec<String> = longer.filter(|name| !like.contains(name)).take(MOST - like.len()).cloned().collect();
    like.extend(longer);
    like
}

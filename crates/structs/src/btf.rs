//! Structs out of BTF, the types that a Linux kernel has of itself (Linux `Documentation/bpf/btf.rst`).

mod table;
mod types;

use crate::elf::{Elf, no_plain_file};
use crate::error::Error;
use crate::layout::Struct;
use crate::wanted::Wanted;
use crate::{KERNEL_BTF, in_order, names_like};
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use table::Table;
use types::Types;

pub(crate) fn find(path: &Path, wanted: &Wanted) -> Result<Vec<Struct>, Error> {
    let bytes = read(path)?;
    let base = base_of(path)?;
    let table = Table::of(path, &bytes, base.as_deref())?;
    let types = Types::new(&table, path);
    let found: HashSet<Struct> = table
        .structs()
        .filter(|(_, name)| wanted.fit(name).is_some())
        .map(|(id, name)| types.found(id, name))
        .collect::<Result<_, _>>()?;
    if found.is_empty() {
        return Err(why_not(path, wanted, &table));
    }
    Ok(in_order(found))
}

fn why_not(path: &Path, wanted: &Wanted, table: &Table<'_>) -> Error {
    let (file, name) = (path.to_owned(), wanted.text().to_owned());
    if table.declared().any(|declared| declared == name) {
        return Error::OnlyDeclared { file, name };
    }
    let names: BTreeSet<String> = table.structs().map(|(_, name)| name).collect();
    Error::NotFound { file, near: names_like(wanted, &names), name, missing: Vec::new() }
}

/// A file of BTF, or the section of an ELF file that holds it.
fn read(path: &Path) -> Result<Vec<u8>, Error> {
    if let Some(seen) = no_plain_file(path)? {
        return Err(Error::NotBtf { file: path.to_owned(), seen: seen.to_owned() });
    }
    let bytes = std::fs::read(path).map_err(|why| Error::Unreadable { file: path.to_owned(), why })?;
    if !bytes.starts_with(b"\x7fELF") {
        return Ok(bytes);
    }
    match Elf::open(path)?.section(".BTF") {
        [] => Err(Error::NotBtf { file: path.to_owned(), seen: "it is an ELF file without such a section".to_owned() }),
        section => Ok(section.to_vec()),
    }
}

/// The kernel's own types, on which those of its modules build.
fn base_of(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let kernel = Path::new(KERNEL_BTF);
    match path.parent() == kernel.parent() && path != kernel {
        true => read(kernel).map(Some),
        false => Ok(None),
    }
}

//! Structs out of DWARF: the files that hold it, the search for a name, and what the types found are made of.

mod beside;
mod scan;
mod spaces;
mod types;

use crate::error::Error;
use crate::layout::Struct;
use crate::wanted::{Fit, Wanted};
use crate::{in_order, names_like};
use beside::Files;
use scan::Search;
use spaces::Spaces;
use std::collections::HashSet;
use std::path::Path;
use types::Types;

pub(crate) fn find(path: &Path, wanted: &Wanted) -> Result<Vec<Struct>, Error> {
    let files = Files::of(path)?;
    let spaces = Spaces::of(&files)?;
    let search = scan::search(&spaces, wanted)?;
    if search.hits.is_empty() {
        return Err(why_not(path, wanted, &files, &spaces, &search)?);
    }
    let best = search.hits.iter().map(|hit| hit.fit).min().unwrap_or(Fit::Whole);
    let types = Types::new(&spaces, path);
    let mut found = HashSet::new();
    for hit in search.hits.into_iter().filter(|hit| hit.fit == best) {
        // A header's struct is in every unit that includes it.
        found.extend(types.found(hit)?);
    }
    match found.is_empty() {
        // A typedef of something that is no struct.
        true => Err(why_not(path, wanted, &files, &spaces, &Search::default())?),
        false => Ok(in_order(found)),
    }
}

fn why_not(path: &Path, wanted: &Wanted, files: &Files, spaces: &Spaces, search: &Search) -> Result<Error, Error> {
    let (file, name) = (path.to_owned(), wanted.text().to_owned());
    if search.declared {
        return Ok(Error::OnlyDeclared { file, name });
    }
    let near = names_like(wanted, &scan::names(spaces)?);
    Ok(Error::NotFound { file, name, near, missing: files.missing.clone() })
}

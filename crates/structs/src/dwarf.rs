//! Structs out of DWARF: the files that hold it, the search for a name, and what the types found are made of.

mod beside;
mod scan;
mod spaces;
mod types;

use crate::error::Error;
use crate::layout::Struct;
use crate::wanted::{Fit, Wanted};
use crate::{each_once, names_like};
use beside::Files;
use scan::{Hit, Search};
use spaces::Spaces;
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
    let found: Vec<Option<Struct>> =
        search.hits.into_iter().filter(|hit| hit.fit == best).map(|hit: Hit| types.found(hit)).collect::<Result<_, _>>()?;
    match each_once(found.into_iter().flatten().collect()) {
        // A typedef of something that is no struct.
        found if found.is_empty() => Err(why_not(path, wanted, &files, &spaces, &Search::default())?),
        found => Ok(found),
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

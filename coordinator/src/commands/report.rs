//! `report`: the page of a saved run, beside its record.

use crate::cli::ReportOptions;
use crate::exit::{CommandError, Ending};
use crate::foreign_file;
use crate::report::text::{escaped, shown};
use crate::report::{html, names};
use crate::saved::Saved;
use record::Topology;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes a page for each run. All are read before any is written.
pub(crate) fn report(options: &ReportOptions) -> Result<Ending, CommandError> {
    let topology = options.topology.as_deref().map(topology).transpose()?;
    let saved = options.runs.iter().map(|run| Saved::read(run)).collect::<Result<Vec<Saved>, _>>();
    let saved = saved.map_err(|error| CommandError::Usage(error.to_string()))?;
    let mut out = std::io::stdout().lock();
    for one in saved {
        let path = beside(&one.path);
        let page = page::page(&one.run, topology.as_ref());
        html::write(&page, &path).map_err(|error| CommandError::Failed(error.to_string()))?;
        writeln!(out, "{}", shown(&path))?;
    }
    out.flush()?;
    Ok(Ending::Done)
}

/// `report.html` beside a `run.json`; beside a record of another name, which others may stand beside,
/// `NAME.report.html`.
fn beside(record: &Path) -> PathBuf {
    match record.file_name().is_some_and(|name| name == names::RECORD) {
        true => record.with_file_name(names::PAGE),
        false => record.with_extension(names::PAGE),
    }
}

/// What `topology --measure --json` printed.
fn topology(path: &Path) -> Result<Topology, CommandError> {
    let file = shown(path);
    let make = "make it with `coordinator topology --measure --json`";
    let text = foreign_file::read_named(path)
        .map_err(|error| CommandError::Usage(format!("cannot read the topology `{file}`: {error}; {make}")))?;
    serde_json::from_slice(&text).map_err(|error| {
        let error = escaped(&error.to_string());
        CommandError::Usage(format!("`{file}` is no topology: {error}; {make}"))
    })
}

#[cfg(test)]
mod tests {
    use super::beside;
    use std::path::Path;

    #[test]
    fn a_page_stands_beside_its_record() {
        let pages = ["results/a/2026/run.json", "run.json", "before.json"].map(|record| beside(Path::new(record)));
        let expected = ["results/a/2026/report.html", "report.html", "before.report.html"];
        assert_eq!(pages, expected.map(|page| Path::new(page).to_owned()));
    }
}

//! `list`: the scenarios in a folder and the question each answers.

use crate::cli::ListOptions;
use crate::exit::{CommandError, Ending};
use std::io::Write;
use std::path::PathBuf;

pub(crate) fn list(options: &ListOptions, colour: bool) -> Result<Ending, CommandError> {
    let folder = options.folder.display();
    let entries = std::fs::read_dir(&options.folder).map_err(|error| {
        CommandError::Usage(format!(
            "reading folder {folder} failed: {error}: name the folder that holds the scenarios"
        ))
    })?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    if files.is_empty() {
        return Err(CommandError::Usage(format!("folder {folder} holds no .toml file")));
    }
    let mut out = std::io::stdout().lock();
    let mut ending = Ending::Done;
    for file in files {
        match scenario::load(&file) {
            Ok(loaded) => {
                writeln!(out, "{}", file.display())?;
                writeln!(out, "    {}", loaded.plan.question)?;
            }
            Err(refusal) => {
                ending = Ending::BadInput;
                writeln!(std::io::stderr().lock(), "{}", refusal.render(colour))?;
            }
        }
    }
    Ok(ending)
}

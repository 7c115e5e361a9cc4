//! `list`: the scenarios in a folder, and in the folders in it, and the question each answers.

use crate::cli::ListOptions;
use crate::exit::{CommandError, Ending, say};
use crate::report::text::{escaped, shown};
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) fn list(options: &ListOptions, colour: bool) -> Result<Ending, CommandError> {
    let folder = shown(&options.folder);
    let files = scenario_files(&options.folder)?;
    if files.is_empty() {
        return Err(CommandError::Usage(format!("folder {folder} holds no .toml file, nor do the folders in it")));
    }
    let mut out = std::io::stdout().lock();
    let mut ending = Ending::Done;
    for file in files {
        match scenario::load(&file) {
            Ok(loaded) => {
                writeln!(out, "{}", shown(&file))?;
                writeln!(out, "    {}", escaped(&loaded.plan.question))?;
            }
            Err(refusal) => {
                ending = Ending::BadInput;
                say(&refusal.render(colour));
            }
        }
    }
    Ok(ending)
}

/// What an exercise asks is no scenario, though its files are.
fn is_scenario(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml") && path.file_name() != Some(exercise::FILE.as_ref())
}

/// The `.toml` files of a folder by name, and then, folder by folder, those of the folders in it; no deeper, and along
/// no symbolic link to a folder.
fn scenario_files(folder: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let (mut files, folders) = entries(folder)?;
    for folder in folders {
        files.extend(entries(&folder)?.0);
    }
    Ok(files)
}

/// The `.toml` files and the folders in `folder`, each by name.
fn entries(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), CommandError> {
    let refused = |error| {
        CommandError::Usage(format!(
            "reading folder {} failed: {error}: name the folder that holds the scenarios",
            shown(folder)
        ))
    };
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).map_err(refused)? {
        let entry = entry.map_err(refused)?;
        if entry.file_type().map_err(refused)?.is_dir() {
            folders.push(entry.path());
        } else if is_scenario(&entry.path()) {
            files.push(entry.path());
        }
    }
    files.sort();
    folders.sort();
    Ok((files, folders))
}

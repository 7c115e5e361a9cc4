//! The files that the debug information of a program lies in, found as debuggers find them (GDB manual, "Separate Debug
//! Files" and "DWARF Package Files").

use super::spaces::unit_headers;
use crate::elf::{Elf, Sections};
use crate::error::Error;
use crate::split_off::{self, DEBUG_ROOT};
use gimli::DwoId;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The files, read.
pub(crate) struct Files {
    /// The program, or the file that its debug information was moved to.
    pub(crate) main: Elf,
    /// What several programs' debug information shares (`.gnu_debugaltlink`).
    pub(crate) shared: Option<Elf>,
    /// A package of what the compiler split off.
    pub(crate) package: Option<Elf>,
    /// What the compiler split off, with the number of the unit in `main` that stands for it.
    pub(crate) split: Vec<(Elf, usize)>,
    /// Files that are named and not there.
    pub(crate) missing: Vec<String>,
}

impl Files {
    /// Finds and reads them.
    pub(crate) fn of(path: &Path) -> Result<Files, Error> {
        let main = with_debug_info(path)?;
        let mut files = Files { shared: None, package: None, split: Vec::new(), missing: Vec::new(), main };
        files.shared = files.find_shared()?;
        files.package = [path, &files.main.path]
            .into_iter()
            .map(|of| extended(of, ".dwp"))
            .find(|package| package.exists())
            .map(|package| Elf::open(&package))
            .transpose()?;
        if files.package.is_none() {
            files.find_split(path)?;
        }
        Ok(files)
    }

    fn find_shared(&mut self) -> Result<Option<Elf>, Error> {
        let Some((name, id)) = self.main.alt_link.clone() else { return Ok(None) };
        let named = PathBuf::from(OsStr::from_bytes(&name));
        let beside = self.main.path.parent().map(|folder| folder.join(&named));
        let found = beside.into_iter().chain(split_off::by_build_id(&id, &roots())).find(|file| file.exists());
        match found {
            Some(file) => {
                let elf = Elf::open(&file)?;
                match elf.build_id == Some(id) {
                    true => return Ok(Some(elf)),
                    false => self.missing.push(format!("{} is of another build", file.display())),
                }
            }
            None => self.missing.push(named.display().to_string()),
        }
        Ok(None)
    }

    fn find_split(&mut self, path: &Path) -> Result<(), Error> {
        for skeleton in skeletons(&self.main)? {
            let name = PathBuf::from(OsStr::from_bytes(&skeleton.name));
            let folder = PathBuf::from(OsStr::from_bytes(&skeleton.folder));
            let beside = path.parent().unwrap_or(Path::new(""));
            let places = [folder.join(&name), beside.join(&name), beside.join(name.file_name().unwrap_or_default())];
            match places.iter().find(|place| place.exists()) {
                None => self.missing.push(places[0].display().to_string()),
                Some(place) => {
                    let elf = Elf::open(place)?;
                    match holds(&elf, skeleton.id)? {
                        true => self.split.push((elf, skeleton.unit)),
                        false => self.missing.push(format!("{} is of another build", place.display())),
                    }
                }
            }
        }
        Ok(())
    }
}

/// The file itself where it holds debug information, or else the one that it was moved to.
fn with_debug_info(path: &Path) -> Result<Elf, Error> {
    let elf = Elf::open(path)?;
    let holds = |elf: &Elf| {
        [".debug_info", ".debug_types", ".debug_info.dwo"].iter().any(|section| !elf.section(section).is_empty())
    };
    if holds(&elf) {
        return Ok(elf);
    }
    let mut looked_for = Vec::new();
    for place in places_of_debug_info(&elf) {
        if place.exists() && place != path {
            let moved = Elf::open(&place)?;
            let same = File::open(&place).is_ok_and(|file| elf.is_of_this_build(&moved, &file));
            if holds(&moved) && same {
                return Ok(moved);
            }
            looked_for.push(format!("{} of the same build", place.display()));
        } else {
            looked_for.push(place.display().to_string());
        }
    }
    Err(Error::NoDebugInfo { file: path.to_owned(), looked_for })
}

fn places_of_debug_info(elf: &Elf) -> Vec<PathBuf> {
    let whole = std::fs::canonicalize(&elf.path).unwrap_or_else(|_| elf.path.clone());
    let link = elf.debug_link.as_ref().map(|(name, _)| name.as_slice());
    split_off::places(elf.build_id.as_deref(), link, whole.parent().unwrap_or(Path::new("/")), &roots())
}

fn roots() -> [PathBuf; 1] {
    [PathBuf::from(DEBUG_ROOT)]
}

/// `a/program` and `.dwp`: `a/program.dwp`.
fn extended(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(extension);
    PathBuf::from(name)
}

/// A unit that stands for one in a file of its own.
struct Skeleton {
    unit: usize,
    id: DwoId,
    name: Vec<u8>,
    folder: Vec<u8>,
}

fn skeletons(main: &Elf) -> Result<Vec<Skeleton>, Error> {
    // What is split off refers to addresses through this section.
    if main.section(".debug_addr").is_empty() {
        return Ok(Vec::new());
    }
    let dwarf = main.dwarf(Sections::Main);
    let damaged = |error: gimli::Error| Error::Damaged { file: main.path.clone(), what: error.to_string() };
    let mut found = Vec::new();
    for (index, header) in unit_headers(&dwarf).map_err(damaged)?.into_iter().enumerate() {
        let unit = dwarf.unit(header).map_err(damaged)?;
        let (Some(id), Some(name)) = (unit.dwo_id, unit.dwo_name().map_err(damaged)?) else { continue };
        let name = dwarf.attr_string(&unit, name).map_err(damaged)?.slice().to_vec();
        let folder = unit.comp_dir.map_or_else(Vec::new, |folder| folder.slice().to_vec());
        found.push(Skeleton { unit: index, id, name, folder });
    }
    Ok(found)
}

fn holds(elf: &Elf, id: DwoId) -> Result<bool, Error> {
    let dwarf = elf.dwarf(Sections::Split);
    let damaged = |error: gimli::Error| Error::Damaged { file: elf.path.clone(), what: error.to_string() };
    for header in unit_headers(&dwarf).map_err(damaged)? {
        if dwarf.unit(header).map_err(damaged)?.dwo_id == Some(id) {
            return Ok(true);
        }
    }
    Ok(false)
}

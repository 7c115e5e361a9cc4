//! Where in the source an instruction is: function, file and line.
//!
//! Programs and their debug information are what somebody else made, perhaps in order to break who reads them, and a
//! watcher is often root. So this process opens the file and reads none of it: a child without privileges does
//! ([`serve`]), bounded in memory and time. One that crashes, hangs or talks nonsense costs the names. Where the debug
//! information was split off, the child says what it lacks, this process looks for it, and another child reads both.

mod beside;
mod child;
mod parser;
mod spots;

pub(crate) use beside::open;
pub use child::SymbolParser;
pub use parser::serve;
pub(crate) use spots::{Spot, What};

use crate::maps::Mapping;
use crate::notes::Notes;
use beside::{Handed, Search};
use child::{Answer, NoAnswer, Told};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What tells a program that it was started to read symbols: see [`SymbolParser::this_program`].
pub const ARGUMENT: &str = "__symbols";

/// For all files together: behind it instructions stay without names.
const TIME_MAX: Duration = Duration::from_secs(4);

/// What is known of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Function and distance into it, `bump+0x12`.
    pub(crate) symbol: Option<String>,
    /// The file that the code is of.
    pub(crate) object: Option<String>,
    /// Source file and line.
    pub(crate) source: Option<(String, u32)>,
}

/// The addresses of processes, each looked up in the file that is mapped there.
pub(crate) fn places(
    wanted: &BTreeMap<u32, BTreeSet<u64>>,
    mappings: &dyn Fn(u32) -> Vec<Mapping>,
    parser: Option<&SymbolParser>,
    notes: &mut Notes,
) -> BTreeMap<(u32, u64), Place> {
    let mut places = BTreeMap::new();
    // One child a file, whichever processes map it.
    let mut files: BTreeMap<((u32, u32), u64), Asked> = BTreeMap::new();
    for (pid, addresses) in wanted {
        let mapped = mappings(*pid);
        for address in addresses {
            let Some(mapping) = mapped.iter().find(|one| one.holds(*address)) else { continue };
            let Some(path) = &mapping.path else { continue };
            places.insert((*pid, *address), Place { object: Some(path.clone()), ..Place::default() });
            let asked = files.entry((mapping.device, mapping.inode)).or_insert_with(|| Asked::of(*pid, mapping));
            asked.offsets.entry(mapping.offset + (address - mapping.start)).or_default().push((*pid, *address));
        }
    }
    let Some(parser) = parser else { return places };
    let deadline = Instant::now() + TIME_MAX;
    for mut asked in files.into_values() {
        let Some(file) = asked.file.take() else { continue };
        match asked.told(parser, file, deadline) {
            Ok(told) => enter(&asked.offsets, told.answers, &mut places),
            Err(why) => notes.add(
                "no_symbols",
                None,
                format!("names of functions in {} are missing: {why}", asked.path),
                Some("strip and split damaged debug information: objcopy --strip-debug FILE"),
            ),
        }
    }
    places
}

/// A file, and the addresses that are looked for in it by offset.
struct Asked {
    /// One that maps it.
    pid: u32,
    path: String,
    file: Option<File>,
    offsets: BTreeMap<u64, Vec<(u32, u64)>>,
}

impl Asked {
    fn of(pid: u32, mapping: &Mapping) -> Asked {
        let path = mapping.path.clone().unwrap_or_default();
        Asked { pid, path, file: open(pid, mapping), offsets: BTreeMap::new() }
    }

    /// What a child says of the file, and one of the files that its debug information was split off to, where it lacks those
    /// and they are there.
    fn told(&self, parser: &SymbolParser, program: File, deadline: Instant) -> Result<Told, NoAnswer> {
        let offsets: Vec<u64> = self.offsets.keys().copied().collect();
        let search = Search { pid: self.pid, path: Path::new(&self.path), folders: parser.folders() };
        let mut handed = Handed::new(program);
        let mut told = parser.ask(&handed, &offsets, deadline)?;
        let mut debug: Option<PathBuf> = None;
        // What was moved may lack what it shares.
        for _ in 0..2 {
            let Some(lack) = told.lack.clone() else { break };
            for (path, file) in search.files(&lack, debug.as_deref()) {
                *handed.part(lack.part) = Some(file);
                // That of another build is as good as none.
                let better = parser.ask(&handed, &offsets, deadline).ok();
                if let Some(better) = better.filter(|told| told.lack.as_ref().map(|one| one.part) != Some(lack.part)) {
                    (told, debug) = (better, Some(path));
                    break;
                }
                *handed.part(lack.part) = None;
            }
        }
        Ok(told)
    }
}

/// The places in a file at which locks are taken, as a child reads them.
///
/// # Errors
/// Why there is no answer, in words.
pub(crate) fn spots(parser: &SymbolParser, file: &File) -> Result<BTreeSet<Spot>, String> {
    let program = file.try_clone().map_err(|error| error.to_string())?;
    parser.ask_spots(&Handed::new(program), Instant::now() + TIME_MAX).map_err(|why| why.to_string())
}

/// What a watcher would show of a program's file: functions, files and places at which locks are taken, for instructions at
/// these offsets in it; `None` where its reader gives up. Both sides of the talk in one process, without the bounds and the
/// lost privileges that stand between them elsewhere: for tests, of files that may take this process down.
pub fn unguarded(program: File, offsets: &[u64]) -> Option<Vec<String>> {
    let handed = Handed::new(program);
    let (mut names, mut places) = (Vec::new(), Vec::new());
    parser::tell(&handed, offsets, &mut names)?;
    spots::tell(&handed.program, &mut places)?;
    let text = |told: &[u8]| String::from_utf8_lossy(told).into_owned();
    let shown = |answer: Answer| [answer.symbol, answer.source.map(|(file, line)| format!("{file}:{line}"))];
    let names = child::parse(&text(&names)).answers.into_values().flat_map(shown).flatten();
    Some(names.chain(spots::parse(&text(&places)).iter().map(|spot| format!("{spot:?}"))).collect())
}

fn enter(
    offsets: &BTreeMap<u64, Vec<(u32, u64)>>,
    answers: BTreeMap<u64, Answer>,
    places: &mut BTreeMap<(u32, u64), Place>,
) {
    for (offset, answer) in answers {
        for key in offsets.get(&offset).into_iter().flatten() {
            if let Some(place) = places.get_mut(key) {
                (place.symbol, place.source) = (answer.symbol.clone(), answer.source.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests;

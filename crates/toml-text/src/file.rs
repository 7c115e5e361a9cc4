//! A file's text, or why it is none.

use crate::context::Kind;
use crate::refusal::{Problem, Refusal};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Largest file. A hand-written one has a few kilobytes; a megabyte is some other file.
pub const BYTES_MAX: u64 = 1 << 20;

/// Reads a file's text.
///
/// # Errors
/// [`Refusal`] where it cannot be read, is a directory or no plain file, is larger than [`BYTES_MAX`], or is not UTF-8.
pub fn read(kind: &'static Kind, path: &Path) -> Result<String, Refusal> {
    let refused = |what: String, cure: &str| {
        Refusal::without_text(&path.display().to_string(), Problem::nowhere(what).cure(cure))
    };
    let cannot = |error: std::io::Error| {
        let cure = match error.kind() {
            std::io::ErrorKind::NotFound => kind.if_missing,
            std::io::ErrorKind::PermissionDenied => "make the file readable for this user",
            _ => &format!("name a readable {} file", kind.name),
        };
        refused(format!("cannot read the {} file: {error}", kind.name), cure)
    };
    // A pipe or a device might never end or never begin, so only a plain file is opened.
    let metadata = std::fs::metadata(path).map_err(cannot)?;
    if metadata.is_dir() {
        let cure = format!("name a {} file in it, such as {}", kind.name, kind.example);
        return Err(refused(format!("this is a directory, not a {} file", kind.name), &cure));
    }
    if !metadata.is_file() {
        return Err(refused(
            "this is not a plain file".to_owned(),
            &format!("save the {} in a file and name that", kind.name),
        ));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes)).map_err(cannot)?;
    if bytes.len() as u64 > BYTES_MAX {
        let cure = format!("name a {} file; a hand-written one has a few kilobytes", kind.name);
        return Err(refused(format!("the file is larger than 1 MiB, which no {} needs", kind.name), &cure));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
        let what = format!("the file is not UTF-8 text: invalid byte at offset {at}, on line {line}");
        refused(what, "save it as UTF-8")
    })
}

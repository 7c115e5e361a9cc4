//! A file in place of the one of its name.

use crate::report::write_error::WriteError;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes `text` to `path`, in place of what stands there, not through it: it may be a link, and lead where nothing is to
/// be written. Whole or not at all.
///
/// # Errors
/// [`WriteError`]; then what stood there still stands.
pub(crate) fn whole(text: &str, path: &Path) -> Result<(), WriteError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(0o644)).tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| WriteError::new("write", path, error))
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn a_file_takes_the_place_of_the_old_one_or_leaves_it() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("page"), folder.path().join("other"));
        for text in ["one", "two"] {
            whole(text, &path).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        std::os::unix::fs::symlink(&path, &other).unwrap();
        whole("three", &other).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two", "what a link leads to is left alone");
        let error = whole("four", &folder.path().join("gone/page")).unwrap_err().to_string();
        assert!(error.contains("cannot write"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside them");
    }
}

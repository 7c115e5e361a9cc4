//! Programs of others that the lab is held against.

use std::path::PathBuf;

/// A program that is looked for, and what installs it.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) install: &'static str,
}

impl Peer {
    /// The first of that name on the PATH.
    pub(crate) fn find(&self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join(self.name)).find(|file| file.is_file())
    }

    /// What a row says where it is not there.
    pub(crate) fn how(&self) -> String {
        format!("not installed: `{}`", self.install)
    }
}

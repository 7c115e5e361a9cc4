//! A log that is written while a run goes on: rows in a file without a name, so that nothing stays where the run comes
//! to nothing, copied to its place at the end.

use super::write_error::WriteError;
use plan::{Program, TickRate};
use record::Trace;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

/// One repetition, for whoever logs it.
#[derive(Copy, Clone)]
pub(crate) struct Repetition<'a> {
    pub(crate) block: u32,
    pub(crate) program: &'a Program,
    pub(crate) traces: &'a [Trace],
    pub(crate) rate: TickRate,
}

/// Rows of a log, in a file without a name.
pub(super) struct Rows {
    folder: PathBuf,
    what: &'static str,
    rows: csv::Writer<BufWriter<File>>,
}

impl Rows {
    /// A log with its head and no rows, in `folder`. `what` says what goes wrong where it does.
    pub(super) fn create(folder: &Path, what: &'static str, head: &[&str]) -> Result<Rows, WriteError> {
        let open = || {
            let mut rows = csv::Writer::from_writer(BufWriter::new(tempfile::tempfile_in(folder)?));
            rows.write_record(head)?;
            Ok(Rows { folder: folder.to_owned(), what, rows })
        };
        open().map_err(|error| WriteError::new(what, folder, error))
    }

    /// Adds the rows that `write` gives.
    pub(super) fn add(
        &mut self,
        write: impl FnOnce(&mut csv::Writer<BufWriter<File>>) -> csv::Result<()>,
    ) -> Result<(), WriteError> {
        let added = write(&mut self.rows).and_then(|()| Ok(self.rows.flush()?));
        added.map_err(|error| WriteError::new(self.what, &self.folder, error.into()))
    }

    /// Copies it to where it stays.
    ///
    /// # Errors
    /// What the system answers.
    pub(super) fn copy(self, out: &mut impl Write) -> io::Result<()> {
        let mut file = self.rows.into_inner().map_err(|error| error.into_error())?.into_inner()?;
        file.rewind()?;
        io::copy(&mut file, out)?;
        Ok(())
    }
}

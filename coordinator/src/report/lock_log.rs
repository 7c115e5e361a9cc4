//! `locks.csv`: every contended wait and every sampled hold of a run, one by one, for whoever wants to make a distribution
//! of his own or to check the lab's. Only on demand: a window may hold a million.

use super::files::WriteError;
use analysis::{LockSpan, LockTime, each_lock_time};
use plan::{Program, TickRate};
use record::Trace;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

const HEAD: [&str; 10] = ["arm", "block", "worker", "role", "lock", "what", "start_ns", "ticks", "ns", "masked"];

/// The log of a run that is being made: a file without a name, so that nothing stays where the run comes to nothing.
pub(crate) struct LockLog {
    folder: PathBuf,
    rows: csv::Writer<BufWriter<File>>,
}

impl LockLog {
    /// An empty log, with its head, in `folder`: on the file system that results go to.
    ///
    /// # Errors
    /// [`WriteError`], naming the folder.
    pub(crate) fn create(folder: &Path) -> Result<LockLog, WriteError> {
        let open = || {
            let mut rows = csv::Writer::from_writer(BufWriter::new(tempfile::tempfile_in(folder)?));
            rows.write_record(HEAD)?;
            Ok(LockLog { folder: folder.to_owned(), rows })
        };
        open().map_err(|error| refused(folder, error))
    }

    /// Adds what the workers of one repetition logged. Between windows only: it writes as much as there is.
    ///
    /// # Errors
    /// [`WriteError`], naming the folder.
    pub(crate) fn repetition(
        &mut self,
        arm: &str,
        block: u32,
        program: &Program,
        traces: &[Trace],
        rate: TickRate,
    ) -> Result<(), WriteError> {
        let block = block.to_string();
        let logged = each_lock_time(program, traces, rate, |time| {
            let LockTime { worker, role, lock, span, start_ns, ticks, ns, masked } = time;
            let (what, masked) =
                (if span == LockSpan::Wait { "wait" } else { "hold" }, if masked { "yes" } else { "no" });
            let numbers = [worker.to_string(), format!("{start_ns:.1}"), ticks.to_string(), ns.to_string()];
            let [worker, start_ns, ticks, ns] = numbers.each_ref().map(String::as_str);
            self.rows.write_record([arm, &block, worker, role, lock, what, start_ns, ticks, ns, masked])
        });
        logged.and_then(|()| Ok(self.rows.flush()?)).map_err(|error: csv::Error| refused(&self.folder, error.into()))
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

fn refused(folder: &Path, error: io::Error) -> WriteError {
    WriteError::new("write the lock times to a file in", folder, error)
}

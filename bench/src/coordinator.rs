//! The program that the measurements run: `coordinator`, built beside this one.

use record::Run;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// It was not built.
#[derive(Debug, thiserror::Error)]
#[error("{} is not there: build it first, `cargo build --release`", .0.display())]
pub(crate) struct NotBuilt(PathBuf);

/// A run that gave no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("`coordinator run {}` ended with {status}: {said}", .scenario.display())]
    Ended { scenario: PathBuf, status: ExitStatus, said: String },
    #[error("`coordinator` does not start: {0}")]
    Start(#[from] std::io::Error),
}

/// The program.
#[derive(Clone, Debug)]
pub(crate) struct Coordinator(PathBuf);

impl Coordinator {
    /// Beside this program, in the same profile.
    ///
    /// # Errors
    /// [`NotBuilt`].
    pub(crate) fn find() -> Result<Coordinator, NotBuilt> {
        let program = std::env::current_exe().unwrap_or_default().with_file_name("coordinator");
        if program.exists() { Ok(Coordinator(program)) } else { Err(NotBuilt(program)) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// One of its commands.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.0);
        command.arg(name);
        command
    }

    /// `coordinator run SCENARIO`, told `more`, its results in `out`: what it says. Noise that hid an answer is no error.
    ///
    /// # Errors
    /// [`RunError`].
    pub(crate) fn run(&self, scenario: &Path, out: &Path, more: &[&str]) -> Result<Run, RunError> {
        let mut command = self.command("run");
        command.arg(scenario).args(["--json", "--quiet", "--out"]).arg(out).args(more);
        let output = command.output()?;
        serde_json::from_slice(&output.stdout).map_err(|_| RunError::Ended {
            scenario: scenario.to_owned(),
            status: output.status,
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

//! What a run may leave and what it must not: processes, segments, half results.

use record::Run;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use testing::{A_LONG_TIME, within};

/// A mark in the environment of a run, which all that it starts inherit: so they are found whoever their parent is by now.
#[derive(Clone, Debug)]
pub(crate) struct Mark(String);

impl Mark {
    const VARIABLE: &str = "LAB_TEST_MARK";

    /// Marks what `command` will start.
    pub(crate) fn on(command: &mut Command) -> Mark {
        let mark = format!("{:016x}", rand::random::<u64>());
        command.env(Mark::VARIABLE, &mark);
        Mark(format!("{}={mark}", Mark::VARIABLE))
    }

    /// The living processes that have it; a zombie is gone.
    pub(crate) fn bearers(&self) -> Vec<i32> {
        let pids = fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().to_str()?.parse::<i32>().ok());
        let bears = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|one| one == self.0.as_bytes())
        };
        // The environment of one that has ended reads as empty.
        pids.filter(bears).collect()
    }

    /// Waits until all have ended.
    pub(crate) fn await_none(&self) {
        within(A_LONG_TIME, "no process of the run is left", || self.bearers().is_empty().then_some(()));
    }
}

/// What stands in a folder of results.
#[derive(Debug, Default)]
pub(crate) struct Results {
    /// Runs that are there, each whole.
    pub(crate) whole: Vec<Run>,
    /// Folders of runs that were cut short in writing, which their names say.
    pub(crate) partial: Vec<PathBuf>,
}

impl Results {
    /// Reads all there is below `--out`.
    ///
    /// # Errors
    /// What is there in part under a name that says it is whole, or should not be there.
    pub(crate) fn below(out: &Path) -> Result<Results, String> {
        let mut results = Results::default();
        for scenario in folders(out) {
            for run in folders(&scenario) {
                match is_partial(&run) {
                    true => results.partial.push(run),
                    false => results.whole.push(whole(&run)?),
                }
            }
        }
        Ok(results)
    }
}

fn is_partial(folder: &Path) -> bool {
    let name = folder.file_name().unwrap().to_string_lossy();
    name.starts_with('.') && name.ends_with(".partial")
}

fn folders(of: &Path) -> Vec<PathBuf> {
    fs::read_dir(of).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// A run's folder with all that belongs into it, each file to its end.
fn whole(folder: &Path) -> Result<Run, String> {
    let read = |name: &str| {
        fs::read_to_string(folder.join(name)).map_err(|error| format!("{}/{name}: {error}", folder.display()))
    };
    let short = |name: &str, why: String| format!("{}/{name} is not whole: {why}", folder.display());
    let run: Run = serde_json::from_str(&read("run.json")?).map_err(|why| short("run.json", why.to_string()))?;
    let rows = read("samples.csv")?.lines().count();
    if rows != run.observations.len() + 1 {
        return Err(short("samples.csv", format!("{rows} lines for {} observations", run.observations.len())));
    }
    match read("report.html")?.trim_end().ends_with("</html>") {
        true => Ok(run),
        false => Err(short("report.html", "no </html> at its end".into())),
    }
}

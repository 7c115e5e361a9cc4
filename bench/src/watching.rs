//! What being shown a run while it goes on costs it, and what keeping every single wait does: the same scenario plain,
//! plain again, with `--live` on a terminal that somebody reads, and with `--lock-log`, in turns.

use crate::all::{Effort, Unmeasured};
use crate::coordinator::Coordinator;
use crate::rounds;
use crate::table::{Row, digits};
use nix::pty::openpty;
use record::Run;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

/// Its arms in the order of the rows.
const SCENARIO: &str = include_str!("../watching.toml");
const ARMS: [&str; 2] = ["counters", "lock"];
/// What the view says above the latest repetition.
const DRAWN: &str = "Now: ";
/// Seed of the conditions' order.
const SEED: u64 = 1;

/// Who looks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Condition {
    Plain,
    Again,
    Live,
    LockLog,
}

/// In the order of the figures of a round.
const CONDITIONS: [Condition; 4] = [Condition::Plain, Condition::Again, Condition::Live, Condition::LockLog];

/// One run.
#[derive(Copy, Clone, Debug)]
struct Seen {
    /// By arm, nanoseconds a pass; `None` where the machine spoiled it.
    ns_per_pass: [Option<f64>; 2],
    /// From its start to its end.
    seconds: f64,
}

/// The rows of the table.
///
/// # Errors
/// [`Unmeasured`].
pub(crate) fn rows(effort: Effort) -> Result<Vec<Row>, Unmeasured> {
    let coordinator = Coordinator::find()?;
    let folder = tempfile::tempdir()?;
    let scenario = folder.path().join("watching.toml");
    std::fs::write(&scenario, SCENARIO)?;
    let seen = rounds::take_turns(&CONDITIONS, effort.of(9, 1), SEED, |condition, round| {
        eprintln!("round {round}: {condition:?}");
        look(&coordinator, condition, &scenario)
    })?;
    Ok(told(&seen))
}

/// What of a run is compared.
type Figure = fn(&Seen) -> Option<f64>;

fn told(seen: &[Vec<Seen>]) -> Vec<Row> {
    let figures: [(String, Figure, &str); 3] = [
        (format!("a pass of `{}`", ARMS[0]), |seen| seen.ns_per_pass[0], "ns"),
        (format!("a pass of `{}`", ARMS[1]), |seen| seen.ns_per_pass[1], "ns"),
        ("a run's length".to_owned(), |seen| Some(seen.seconds), "s"),
    ];
    let mut rows = Vec::new();
    for (with, place) in [("--live", Condition::Live as usize), ("--lock-log", Condition::LockLog as usize)] {
        for (what, figure, unit) in &figures {
            let control = rounds::ratio(seen, [Condition::Again as usize, Condition::Plain as usize], figure);
            let ratio = rounds::ratio(seen, [place, Condition::Plain as usize], figure);
            let plain = rounds::median(seen, Condition::Plain as usize, figure).map_or("–".to_owned(), digits);
            let row = Row::ratio(format!("{what} with `{with}`"), "the same run without", ratio, control);
            rows.push(row.noting(format!("{plain} {unit} without")));
        }
    }
    rows
}

fn look(coordinator: &Coordinator, condition: Condition, scenario: &Path) -> Result<Seen, Unmeasured> {
    let results = tempfile::tempdir()?;
    let start = Instant::now();
    let run = match condition {
        Condition::Plain | Condition::Again => coordinator.run(scenario, results.path(), &[])?,
        Condition::LockLog => coordinator.run(scenario, results.path(), &["--lock-log"])?,
        Condition::Live => live(coordinator, scenario, results.path())?,
    };
    let seconds = start.elapsed().as_secs_f64();
    let ns = |name| run.arms.iter().find(|arm| arm.name == name)?.ns_per_op.map(|ns| ns.median);
    Ok(Seen { ns_per_pass: ARMS.map(ns), seconds })
}

/// A run whose standard error is a terminal, of which all is read.
fn live(coordinator: &Coordinator, scenario: &Path, out: &Path) -> Result<Run, Unmeasured> {
    let terminal = openpty(None, None).map_err(std::io::Error::from)?;
    let mut command = coordinator.command("run");
    command.arg(scenario).args(["--json", "--live", "--out"]).arg(out).env("TERM", "xterm");
    command.stdout(Stdio::piped()).stderr(Stdio::from(terminal.slave));
    let child = command.spawn()?;
    drop(command); // and with it the last end of the terminal that is written to, but the child's
    let mut screen = File::from(terminal.master);
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        // It ends with EIO when nobody is left to write.
        let _ = screen.read_to_end(&mut all);
        all
    });
    let output = child.wait_with_output()?;
    let drawn = reader.join().unwrap_or_default();
    let drawn = String::from_utf8_lossy(&drawn);
    let failed = |why: &str| Unmeasured::Failed(format!("`coordinator run --live` {why}: {drawn}"));
    if !drawn.contains(DRAWN) {
        return Err(failed("drew no view"));
    }
    serde_json::from_slice(&output.stdout).map_err(|_| failed(&format!("ended with {}", output.status)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::State;

    #[test]
    fn what_slows_one_arm_shows_there_alone() {
        let seen = |factor: f64, seconds| Seen { ns_per_pass: [Some(0.5), Some(100.0 * factor)], seconds };
        let rounds = vec![vec![seen(1.0, 2.0), seen(1.0, 2.0), seen(1.0, 2.02), seen(1.5, 3.0)]; 9];
        let rows = told(&rounds);
        let shown: Vec<String> = rows.iter().map(|row| row.markdown("watching")).collect();
        assert_eq!(rows.len(), 6);
        assert!(
            shown[2].contains("a run's length with `--live`") && shown[2].contains("| 1.010; 2.000 s"),
            "{shown:?}"
        );
        assert!(shown[4].contains("`lock` with `--lock-log`") && shown[4].contains("| 1.500; 100 ns"), "{shown:?}");
        assert!(shown[3].contains("| 1.000; 0.500 ns") && rows[3].state == State::Measured, "{shown:?}");
        assert_eq!(told(&rounds[..1])[0].state, State::Unresolved);
    }

    #[test]
    fn the_scenario_has_the_arms() {
        let loaded = scenario::parse_with("watching", SCENARIO, &[]).unwrap();
        let names: Vec<&str> = loaded.plan.arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names, ARMS);
    }
}

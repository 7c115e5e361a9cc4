//! Where the results are, and how to make them again.

use crate::report::figures::wall_time;
use crate::report::page::Page;
use record::Run;
use std::path::Path;

/// Digits of the scenario's hash that are shown: enough to tell two versions of one file apart.
const HASH_DIGITS: usize = 12;

/// The results' folder, the run's length, and the line that repeats it.
pub(super) fn write(page: &mut Page, run: &Run, results: Option<&Path>) {
    page.heading("Results");
    match results {
        Some(folder) => page.prose(&format!("report.html, run.json and samples.csv in {}", folder.display())),
        None => page.prose("not written to disk"),
    }
    page.prose(&format!("This took {}; the same again:", wall_time(run.duration_s)));
    let hash: String = run.scenario.sha256.chars().take(HASH_DIGITS).collect();
    page.command(&repeat(run), &format!("scenario {hash}, host {}", run.host.hostname));
}

/// The command as typed, with the seed that was used.
fn repeat(run: &Run) -> String {
    let seeded = run.command.split_whitespace().any(|word| word == "--seed" || word.starts_with("--seed="));
    if seeded { run.command.clone() } else { format!("{} --seed {}", run.command, run.seed) }
}

#[cfg(test)]
mod tests {
    use super::repeat;
    use crate::report::testing;

    #[test]
    fn the_seed_is_named_once() {
        let mut run = testing::false_sharing();
        assert_eq!(repeat(&run), "coordinator run scenarios/false_sharing.toml --seed 42");
        for command in ["coordinator run x.toml --seed 42", "coordinator run x.toml --seed=42"] {
            command.clone_into(&mut run.command);
            assert_eq!(repeat(&run), command);
        }
    }
}

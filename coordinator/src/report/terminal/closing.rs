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
        Some(folder) => page.prose(&format!("{} (run.json, samples.csv)", folder.display())),
        None => page.prose("not written to disk"),
    }
    page.prose(&format!(
        "This took {}; the same again:",
        wall_time(run.duration_s)
    ));
    page.command(&repeat(run));
}

/// The command as typed, with the seed that was used; scenario and host as the shell's comment.
fn repeat(run: &Run) -> String {
    let seeded = run
        .command
        .split_whitespace()
        .any(|word| word == "--seed" || word.starts_with("--seed="));
    let seed = if seeded {
        String::new()
    } else {
        format!(" --seed {}", run.seed)
    };
    let hash: String = run.scenario.sha256.chars().take(HASH_DIGITS).collect();
    format!(
        "{}{seed} # scenario {hash}, host {}",
        run.command, run.host.hostname
    )
}

#[cfg(test)]
mod tests {
    use super::repeat;
    use crate::report::testing;

    #[test]
    fn the_seed_is_named_once() {
        let mut run = testing::false_sharing();
        let expected = "coordinator run scenarios/false_sharing.toml --seed 42 # scenario 5f3c1a90b7de, host lab-1";
        assert_eq!(repeat(&run), expected);
        run.command.push_str(" --seed 42");
        assert_eq!(repeat(&run), expected);
        run.command = "coordinator run x.toml --seed=42".to_owned();
        assert!(repeat(&run).starts_with("coordinator run x.toml --seed=42 #"));
    }
}

//! How long a line takes between two CPUs: the lab's own probe beside the program `core-to-core-latency`.
//!
//! That program throws a line between two threads. Its first benchmark has both compare-and-exchange one word until it is
//! their turn, so that each try takes the line away from the other; its second has each store to a line of its own and
//! read the other's. The lab's probe throws one word between two processes, by a store, and waits by loads with a pause. All
//! three tell half of a round trip, and none of the three is another's loop: the ratio says how near they come.

use crate::all::{Effort, Unmeasured};
use crate::contest::duel;
use crate::coordinator::Coordinator;
use crate::order;
use crate::peer::Peer;
use crate::rounds;
use crate::table::{Row, digits};
use std::path::Path;
use std::process::Command;

const PEER: Peer = Peer { name: "core-to-core-latency", install: "cargo install core-to-core-latency" };

/// A round in which the peer disagrees with itself by more saw two regimes (the lab's rule), and says nothing.
const REGIME_STEP: f64 = 1.4;
/// Round trips of a sample of the peer's, and samples: some 0.1 s.
const ROUND_TRIPS: &str = "1000";
const SAMPLES: &str = "300";
/// Seed of the conditions' order.
const SEED: u64 = 1;

/// Who looks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Condition {
    OneLine,
    Again,
    TwoLines,
    Lab,
}

/// In the order of the figures of a round.
const CONDITIONS: [Condition; 4] = [Condition::OneLine, Condition::Again, Condition::TwoLines, Condition::Lab];

/// The rows of the table.
///
/// # Errors
/// [`Unmeasured`].
pub(crate) fn rows(effort: Effort) -> Result<Vec<Row>, Unmeasured> {
    let what = "one way of a line, the lab's probe";
    let Some(peer) = PEER.find() else { return Ok(vec![Row::missing(what, PEER.how())]) };
    let (coordinator, cpus) = (Coordinator::find()?, duel::two_cpus()?);
    let folder = tempfile::tempdir()?;
    let scenario = folder.path().join("probe.toml");
    std::fs::write(&scenario, scenario_on(cpus))?;
    let seen = rounds::take_turns(&CONDITIONS, effort.of(24, 1), SEED, |condition, round| {
        eprintln!("round {round}: {condition:?}");
        match condition {
            Condition::OneLine | Condition::Again => one_way_ns(&peer, "1", cpus),
            Condition::TwoLines => one_way_ns(&peer, "2", cpus),
            Condition::Lab => probed_ns(&coordinator, &scenario, folder.path()),
        }
    })?;
    Ok(told(what, &seen))
}

fn told(what: &str, seen: &[Vec<f64>]) -> Vec<Row> {
    let steady = |round: &&Vec<f64>| {
        let (one, again) = (round[Condition::OneLine as usize], round[Condition::Again as usize]);
        one.max(again) <= one.min(again) * REGIME_STEP
    };
    let kept: Vec<Vec<f64>> = seen.iter().filter(steady).cloned().collect();
    let control = rounds::ratio(&kept, [Condition::Again as usize, Condition::OneLine as usize], |ns| Some(*ns));
    let shown = |place| rounds::median(&kept, place, |ns| Some(*ns)).map_or("–".to_owned(), digits);
    let row = |against, place| {
        let ratio = rounds::ratio(&kept, [Condition::Lab as usize, place], |ns| Some(*ns));
        let (here, there) = (shown(Condition::Lab as usize), shown(place));
        let (kept, of) = (kept.len(), seen.len());
        Row::ratio(what, against, ratio, control)
            .noting(format!("{here} ns here, {there} ns there, {kept} of {of} rounds in one regime"))
    };
    let [one, two] = ["core-to-core-latency 1: both CAS one line", "core-to-core-latency 2: a line each"];
    vec![row(one, Condition::OneLine as usize), row(two, Condition::TwoLines as usize)]
}

/// What the peer says of the pair: its last row has it in its first column.
fn one_way_ns(peer: &Path, benchmark: &str, [first, second]: [usize; 2]) -> Result<f64, Unmeasured> {
    let cores = format!("{first},{second}");
    let arguments = [ROUND_TRIPS, SAMPLES, "--bench", benchmark, "--cores", &cores, "--csv"];
    let output = Command::new(peer).args(arguments).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    last_figure(&said).ok_or_else(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        Unmeasured::Failed(format!("`{} {}` told no latency: {said}{errors}", PEER.name, arguments.join(" ")))
    })
}

fn last_figure(csv: &str) -> Option<f64> {
    csv.lines().last()?.split(',').find_map(|cell| cell.trim().parse().ok()).filter(|ns| *ns > 0.0)
}

/// What the lab's probe reads before and after each of a few repetitions: the median.
fn probed_ns(coordinator: &Coordinator, scenario: &Path, out: &Path) -> Result<f64, Unmeasured> {
    let run = coordinator.run(scenario, out, &[])?;
    let readings = run.observations.iter().flat_map(|o| [o.transfer_before_ns, o.transfer_after_ns]).flatten();
    order::median(readings.collect()).ok_or_else(|| Unmeasured::Failed("the lab's probe read nothing".to_owned()))
}

/// Two workers on that pair; what they do in their window is nothing to this.
fn scenario_on([first, second]: [usize; 2]) -> String {
    format!(
        r#"title = "A pair of CPUs"
question = "How long does a line take between them?"
[measure]
window = "1ms"
warm_up = "1ms"
repetitions = 3
baselines = []
[field.word]
type = "u64"
each = "worker"
[[variant]]
name = "apart"
placement = {{ pad = 128 }}
[[role]]
name = "counter"
workers = 2
cpus = [{first}, {second}]
loop = ["bump word[me]"]
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::State;

    #[test]
    fn the_pair_stands_in_the_last_row() {
        assert_eq!(last_figure(",\n61.25,\n"), Some(61.25));
        assert_eq!(last_figure(""), None);
        assert_eq!(last_figure(",\nNaN,\n"), None);
    }

    #[test]
    fn rounds_of_two_regimes_are_left_out_and_counted() {
        let mut rounds = vec![vec![60.0, 61.0, 40.0, 66.0]; 7];
        rounds.push(vec![60.0, 240.0, 40.0, 30.0]);
        let rows = told("a line", &rounds);
        assert_eq!(rows.len(), 2);
        assert!(rows[0].note.contains("66.0 ns here, 60.0 ns there, 7 of 8"), "{rows:?}");
        assert_eq!(rows[0].state, State::Unresolved, "this control does not hold 1");
        let even = vec![vec![60.0, 60.0, 40.0, 66.0]; 7];
        assert_eq!(told("a line", &even)[1].state, State::Measured);
    }

    #[test]
    fn the_scenario_is_one() {
        scenario::parse_with("probe", &scenario_on([0, 1]), &[]).unwrap();
    }
}

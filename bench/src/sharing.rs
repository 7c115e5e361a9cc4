//! What sharing a line costs, as the lab says and as `stress-ng --cacheline` does.
//!
//! An instance of that stressor is two processes that change neighbouring bytes of one line. It has no arm without sharing,
//! and pins neither of the two: where both come to one CPU nothing is shared. So they are pinned here: to two CPUs, and for
//! the arm without sharing to one, where they take turns and the line stays. A cost is the CPU time of both over what the
//! one that counts has done, as though the other had done as much. The lab's packed and padded arms do the same to bytes.
//! Compared is how many times as much CPU time a step takes on a shared line: not nanoseconds, since the loops differ in
//! what stands around the steps.

use crate::all::{Effort, Unmeasured};
use crate::contest::duel;
use crate::coordinator::Coordinator;
use crate::order;
use crate::peer::Peer;
use crate::rounds;
use crate::table::{Row, digits};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PEER: Peer = Peer { name: "stress-ng", install: "apt-get install stress-ng" };

/// A method of the stressor, and the lab's loop with the same accesses (stress-cacheline.c of stress-ng 0.15.06).
#[derive(Copy, Clone, Debug)]
struct Method {
    name: &'static str,
    /// Steps of the lab's for one of the stressor's.
    steps: &'static [&'static str],
}

const METHODS: [Method; 3] = [
    // Seven `lock add` of a byte, and a look at it.
    Method { name: "atomicinc", steps: &["add hits[me]"] },
    // Seven times: a byte is counted up, then a full fence; and a look at it.
    Method { name: "inc", steps: &["bump hits[me]", "fence"] },
    // Sixteen times: a byte is read and written, then a full fence; and a look at it.
    Method { name: "rdwr", steps: &["load hits[me]", "store hits[me]", "fence"] },
];

/// How long the stressor runs.
const STRESSING: &str = "1s";
/// How long its two processes may take to be there.
const PATIENCE: Duration = Duration::from_secs(2);
/// Seed of the conditions' order.
const SEED: u64 = 1;

/// Who does it, and how.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Condition {
    /// The stressor, a CPU each.
    Shared,
    /// The same again.
    Again,
    /// The stressor, both on one CPU.
    Alone,
    /// The lab, packed over padded.
    Lab,
}

/// In the order of the figures of a round.
const CONDITIONS: [Condition; 4] = [Condition::Shared, Condition::Again, Condition::Alone, Condition::Lab];

/// The rows of the table.
///
/// # Errors
/// [`Unmeasured`].
pub(crate) fn rows(effort: Effort) -> Result<Vec<Row>, Unmeasured> {
    let Some(peer) = PEER.find() else { return Ok(vec![Row::missing("what a shared line costs", PEER.how())]) };
    let (coordinator, cpus) = (Coordinator::find()?, duel::two_cpus()?);
    let folder = tempfile::tempdir()?;
    let mut rows = Vec::new();
    for method in METHODS {
        let scenario = folder.path().join("bytes.toml");
        std::fs::write(&scenario, scenario_of(method, cpus))?;
        let seen = rounds::take_turns(&CONDITIONS, effort.of(9, 1), SEED, |condition, round| {
            eprintln!("{}: round {round}: {condition:?}", method.name);
            match condition {
                Condition::Shared | Condition::Again => stress(&peer, method, cpus, folder.path()),
                Condition::Alone => stress(&peer, method, [cpus[0]; 2], folder.path()),
                Condition::Lab => packed_over_padded(&coordinator, &scenario, folder.path()),
            }
        })?;
        rows.push(told(method, &seen));
    }
    Ok(rows)
}

fn told(method: Method, seen: &[Vec<Option<f64>>]) -> Row {
    let there = |round: &Vec<Option<f64>>| Some(round[Condition::Shared as usize]? / round[Condition::Alone as usize]?);
    let over = seen.iter().filter_map(|round| Some(round[Condition::Lab as usize]? / there(round)?)).collect();
    let control = rounds::ratio(seen, [Condition::Again as usize, Condition::Shared as usize], |seen| *seen);
    let shown = |of: Option<f64>| of.map_or("–".to_owned(), digits);
    let here = shown(rounds::median(seen, Condition::Lab as usize, |seen| *seen));
    let there = shown(order::median(seen.iter().filter_map(there).collect()));
    let what = format!("what a shared line costs, `{}`", method.steps.join("; "));
    Row::ratio(what, &format!("stress-ng --cacheline-method {}", method.name), order::interval(over), control)
        .noting(format!("{here} × here, {there} × there"))
}

/// CPU seconds of both processes for one round of the stressor's.
fn stress(peer: &Path, method: Method, cpus: [usize; 2], folder: &Path) -> Result<Option<f64>, Unmeasured> {
    let yaml = folder.join("stress.yaml");
    let arguments =
        ["--cacheline", "1", "--cacheline-method", method.name, "-t", STRESSING, "--metrics-brief", "--yaml"];
    let mut command = Command::new(peer);
    command.args(arguments).arg(&yaml).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = Stressor(command.spawn()?);
    pin_both(child.0.id(), cpus)?;
    let status = child.0.wait()?;
    let failed = |why: &str| Unmeasured::Failed(format!("`{} {}` {why}", PEER.name, arguments.join(" ")));
    if !status.success() {
        return Err(failed(&format!("ended with {status}")));
    }
    let said = std::fs::read_to_string(&yaml)?;
    cpu_seconds_a_round(&said).map(Some).ok_or_else(|| failed("told no metrics"))
}

/// Ended with this, as are its processes, which die with their parent.
struct Stressor(Child);

impl Drop for Stressor {
    fn drop(&mut self) {
        let _ = nix::sys::signal::kill(Pid::from_raw(self.0.id() as i32), nix::sys::signal::Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

/// Pins the instance to the first CPU, and the process that it forks to the second.
fn pin_both(stressor: u32, [first, second]: [usize; 2]) -> Result<(), Unmeasured> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let forked = child_of(stressor).and_then(|instance| Some((instance, child_of(instance)?)));
        if let Some((instance, other)) = forked {
            return pin(instance, first).and_then(|()| pin(other, second));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(Unmeasured::Failed("the two processes of stress-ng never came (/proc/PID/task/PID/children)".to_owned()))
}

fn child_of(pid: u32) -> Option<u32> {
    std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?.split_whitespace().next()?.parse().ok()
}

fn pin(pid: u32, cpu: usize) -> Result<(), Unmeasured> {
    let mut only = CpuSet::new();
    let pinned = only.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(pid as i32), &only));
    pinned.map_err(|errno| Unmeasured::Failed(format!("sched_setaffinity of a process of stress-ng: {errno}")))
}

fn cpu_seconds_a_round(yaml: &str) -> Option<f64> {
    let value = |key: &str| -> Option<f64> {
        let line = yaml.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(':'))?;
        line.trim().parse().ok()
    };
    let rounds = value("bogo-ops").filter(|rounds| *rounds > 0.0)?;
    Some((value("user-time")? + value("system-time")?) / rounds)
}

/// `None` where the machine spoiled an arm.
fn packed_over_padded(coordinator: &Coordinator, scenario: &Path, out: &Path) -> Result<Option<f64>, Unmeasured> {
    let run = coordinator.run(scenario, out, &[])?;
    let ns = |name: &str| run.arms.iter().find(|arm| arm.name == name)?.ns_per_op.map(|ns| ns.median);
    Ok(ns("packed").zip(ns("padded")).map(|(packed, padded)| packed / padded))
}

fn scenario_of(method: Method, [first, second]: [usize; 2]) -> String {
    let steps = method.steps.iter().map(|step| format!("\"{step}\"")).collect::<Vec<_>>().join(", ");
    format!(
        r#"title = "Bytes"
question = "What do two bytes of one line cost?"
[measure]
window = "50ms"
warm_up = "5ms"
repetitions = 4
baselines = []
[field.hits]
type = "u8"
each = "worker"
[[variant]]
name = "packed"
placement = "packed"
[[variant]]
name = "padded"
placement = {{ pad = 128 }}
[[role]]
name = "counter"
workers = 2
cpus = [{first}, {second}]
loop = [{steps}]
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::State;

    #[test]
    fn the_metrics_are_read() {
        let yaml = "metrics:\n    - stressor: cacheline\n      bogo-ops: 8000\n      \
                    bogo-ops-per-second-usr-sys-time: 11776.0\n      user-time: 1.9\n      system-time: 0.1\n";
        assert_eq!(cpu_seconds_a_round(yaml), Some(2.0 / 8000.0));
        assert_eq!(cpu_seconds_a_round("system-info:\n"), None);
        assert_eq!(cpu_seconds_a_round("bogo-ops: 0\nuser-time: 1\nsystem-time: 0\n"), None);
    }

    #[test]
    fn effects_are_compared_and_both_are_said() {
        let round = vec![Some(4.0), Some(4.0), Some(0.5), Some(9.6)];
        let row = told(METHODS[1], &vec![round; 9]);
        assert_eq!(row.state, State::Measured);
        assert_eq!(row.what, "what a shared line costs, `bump hits[me]; fence`");
        assert_eq!(row.markdown("sharing").matches("1.200; 9.600 × here, 8.000 × there").count(), 1);
        let spoiled = vec![Some(4.0), Some(4.0), Some(0.5), None];
        assert_eq!(told(METHODS[1], &vec![spoiled; 9]).state, State::Unresolved);
    }

    #[test]
    fn the_scenarios_are_some() {
        for method in METHODS {
            scenario::parse_with(method.name, &scenario_of(method, [0, 1]), &[]).unwrap();
        }
    }
}

//! The scenario in the lab: run with what work is known, then with as much as brings each role to the rate that was observed
//! and each lock to the hold, then once more to say whether it does.

use super::draft::{Draft, DraftLock, DraftRole};
use super::pass::Known;
use super::text::{self, Origin, VARIANT};
use crate::campaign::{Campaign, Measured};
use crate::exit::CommandError;
use crate::leftovers;
use crate::machine::Machine;
use crate::report::logs::Logs;
use crate::signals::Signals;
use plan::{Measure, Plan, Repetitions};
use record::{ArmState, Interval};
use scenario::Loaded;
use std::collections::BTreeMap;

/// Blocks of the run that is held against what was observed.
const BLOCKS: u32 = 10;
/// Runs that look for the work, at the most, and the blocks of each: their medians have to be right within a few percent.
const LOOKS: u32 = 6;
const BLOCKS_OF_LOOK: u32 = 3;
/// A role within so much of its observed rate has its work; a lock within so much of its hold has its.
const NEAR: f64 = 0.02;
/// More work than this is no work between accesses: scenarios/README.md has the bound.
const MOST_WORK_NS: f64 = 1e9;

/// What the lab said.
pub(super) enum Said {
    Took(Took),
    /// It cannot be run here: why.
    Cannot(String),
    /// A run of it failed: why.
    Failed(String),
}

/// How long things took in the lab, nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Took {
    /// A pass, by role; none of a role that noise hid.
    pub(super) passes: BTreeMap<String, Interval>,
    /// The mean hold, by lock; none of one of which no hold was timed.
    pub(super) holds: BTreeMap<String, f64>,
}

/// What runs need.
pub(super) struct Lab<'a> {
    pub(super) machine: &'a Machine,
    pub(super) signals: &'a Signals,
    pub(super) file: &'a str,
    pub(super) seed: u64,
    pub(super) quiet: bool,
}

impl Lab<'_> {
    /// Finds the work of each role and of each lock, and then runs the scenario.
    ///
    /// # Errors
    /// [`CommandError`] where a repetition failed or the user interrupted it.
    pub(super) fn run(&self, draft: &mut Draft, origin: &Origin<'_>) -> Result<Said, CommandError> {
        leftovers::sweep();
        for look in 0..LOOKS {
            if draft.roles.iter().all(|role| wanted_ns(role).is_none()) {
                break;
            }
            let phase = if look == 0 { "the accesses and what is known" } else { "looking for the work between them" };
            match self.measure(draft, origin, phase, BLOCKS_OF_LOOK)? {
                Said::Took(took) if !draft.approach(&took) => break,
                Said::Took(_) => {}
                otherwise => return Ok(otherwise),
            }
        }
        self.measure(draft, origin, "against the rates that were observed", BLOCKS)
    }

    fn measure(&self, draft: &Draft, origin: &Origin<'_>, phase: &str, blocks: u32) -> Result<Said, CommandError> {
        let loaded = self.load(draft, origin)?;
        let plan = Plan {
            measure: Measure {
                repetitions: Repetitions::Fixed(blocks),
                baselines: Some(Vec::new()),
                ..loaded.plan.measure.clone()
            },
            ..loaded.plan.clone()
        };
        let refused = |error| CommandError::Refused(Box::new(loaded.source.refuse(&error)));
        let bound = plan::bind(&plan, &self.machine.topology, self.seed).map_err(refused)?;
        if let Some(not) = bound.arms.iter().find_map(|arm| arm.program.as_ref().err()) {
            return Ok(Said::Cannot(not.why.clone()));
        }
        let campaign = Campaign {
            plan: &plan,
            bound: &bound,
            machine: self.machine,
            orders: &[],
            events: &[],
            signals: self.signals,
            seed: self.seed,
            hold: None,
        };
        match campaign.whole(Some(phase), self.quiet, &mut Logs::default()) {
            Ok(measured) => Ok(Said::Took(Took { passes: passes(&measured, blocks), holds: holds(&measured) })),
            Err(CommandError::Failed(why)) => Ok(Said::Failed(why)),
            Err(error) => Err(error),
        }
    }

    /// The draft as the lab reads it: what is written is what is run.
    fn load(&self, draft: &Draft, origin: &Origin<'_>) -> Result<Loaded, CommandError> {
        Ok(scenario::parse(self.file, &text::text(draft, origin))?)
    }
}

impl Draft {
    /// Corrects the work of each lock by how long it was held, and each role's by how long a pass took. Whether anything was
    /// still off, and could be corrected.
    fn approach(&mut self, took: &Took) -> bool {
        let longer = self.approach_holds(&took.holds);
        let mut corrected = longer.iter().any(|ns| *ns != 0.0);
        for role in &mut self.roles {
            let (Some(wanted), Some(got)) = (wanted_ns(role), took.passes.get(&role.name)) else { continue };
            let off = wanted - got.median;
            // What its locks will be held longer or shorter, its passes will be too.
            let by_locks: f64 = role.locks.iter().map(|lock| longer[*lock]).sum();
            let work = (role.work_ns as f64 + off - by_locks).clamp(0.0, MOST_WORK_NS).round() as u64;
            if (off.abs() > wanted * NEAR || by_locks != 0.0) && work != role.work_ns {
                role.work_ns = work;
                corrected = true;
            }
        }
        corrected
    }

    /// By how much longer, or shorter, the work within each lock is made.
    fn approach_holds(&mut self, holds: &BTreeMap<String, f64>) -> Vec<f64> {
        let longer = |lock: &mut DraftLock| {
            let (Some(wanted), Some(got)) = (lock.hold_ns, holds.get(&lock.name)) else { return 0.0 };
            let off = wanted as f64 - got;
            let work = (lock.work_ns as f64 + off).clamp(0.0, MOST_WORK_NS).round() as u64;
            if off.abs() <= wanted as f64 * NEAR {
                return 0.0;
            }
            let before = std::mem::replace(&mut lock.work_ns, work);
            work as f64 - before as f64
        };
        self.locks.iter_mut().map(longer).collect()
    }
}

/// How long a pass has to take, where that is known well enough to be tried for.
fn wanted_ns(role: &DraftRole) -> Option<f64> {
    role.pass.observed.filter(|_| role.pass.known == Known::Counted).map(|rate| 1e9 / rate.median)
}

/// Whether a role's work is found by trying.
pub(super) fn is_fitted(role: &DraftRole) -> bool {
    wanted_ns(role).is_some()
}

/// The mean of the sampled holds of the sound repetitions, by lock.
fn holds(measured: &Measured) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    let sound = measured.observations.iter().filter(|one| one.arm == VARIANT && one.ns_per_op.is_some());
    for lock in sound.flat_map(|one| &one.locks) {
        for hold in &lock.holds {
            let (times, ns) = sums.entry(&lock.lock).or_default();
            *times += hold.count as f64;
            *ns += hold.count as f64 * hold.ns as f64;
        }
    }
    sums.into_iter().map(|(lock, (times, ns))| (lock.to_owned(), ns / times)).collect()
}

/// Nanoseconds a pass, by role: as the analysis has them; of the few blocks of a look, in which it tells no regime, the
/// middle of the sound repetitions.
fn passes(measured: &Measured, blocks: u32) -> BTreeMap<String, Interval> {
    let mut rates = BTreeMap::new();
    let arm = measured.findings.arms.iter().find(|arm| arm.name == VARIANT);
    for role in arm.filter(|arm| arm.state == ArmState::Measured).into_iter().flat_map(|arm| &arm.roles) {
        rates.extend(role.ns_per_op.map(|ns| (role.role.clone(), ns)));
    }
    if blocks < BLOCKS && rates.is_empty() {
        let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for one in measured.observations.iter().filter(|one| one.arm == VARIANT) {
            all.entry(&one.role).or_default().extend(one.ns_per_op);
        }
        for (role, mut ns) in all.into_iter().filter(|(_, ns)| !ns.is_empty()) {
            ns.sort_by(f64::total_cmp);
            let (low, median, high) = (ns[0], ns[ns.len() / 2], ns[ns.len() - 1]);
            rates.insert(role.to_owned(), Interval { median, low, high });
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::super::draft::{Draft, DraftLock, DraftRole};
    use super::super::pass::{Known, Pass};
    use super::Took;
    use record::Interval;

    fn interval(median: f64) -> Interval {
        Interval { median, low: median * 0.9, high: median * 1.1 }
    }

    /// A role that takes a lock a million times a second, and so it was seen to hold it for 250 ns.
    fn draft() -> Draft {
        let pass = Pass {
            known: Known::Counted,
            observed: Some(interval(1e6)),
            wall_per_second: Some(1e6),
            cpu: Some(1.0),
            locks: true,
        };
        let (kind, name) = ("pthread".to_owned(), "m".to_owned());
        let lock = DraftLock { name, kind, at: 0, offset: 0, hold_ns: Some(250), work_ns: 250 };
        let role = DraftRole {
            name: "queue".to_owned(),
            users: Vec::new(),
            threads: 1,
            process: None,
            steps: Vec::new(),
            locks: vec![0],
            work_ns: 750,
            pass,
        };
        Draft { locks: vec![lock], roles: vec![role], ..Draft::default() }
    }

    fn took(pass_ns: f64, hold_ns: Option<f64>) -> Took {
        let holds = hold_ns.map(|ns| ("m".to_owned(), ns)).into_iter().collect();
        Took { passes: [("queue".to_owned(), interval(pass_ns))].into(), holds }
    }

    #[test]
    fn what_the_accesses_and_the_lock_s_calls_cost_is_taken_from_the_work_within_and_without() {
        let work = |took: &Took| {
            let mut draft = draft();
            (draft.approach(took), draft.locks[0].work_ns, draft.roles[0].work_ns)
        };
        // Held 60 ns too long for the accesses within, which makes 60 of the 160 ns that a pass takes too long.
        assert_eq!(work(&took(1160.0, Some(310.0))), (true, 190, 650));
        assert_eq!(work(&took(1160.0, None)), (true, 250, 590), "no hold was timed");
        assert_eq!(work(&took(940.0, Some(250.0))), (true, 250, 810));
        assert_eq!(work(&took(1010.0, Some(252.0))), (false, 250, 750), "near enough");
        assert_eq!(work(&took(5000.0, Some(9000.0))), (true, 0, 0), "there is no less than none");
    }
}

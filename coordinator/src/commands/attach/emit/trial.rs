//! The scenario in the lab: run with no work, then with as much as brings each role to the rate that was observed, then
//! once more to say whether it does.

use super::draft::Draft;
use super::pass::Known;
use super::text::{self, Origin, VARIANT};
use crate::campaign::{Campaign, Measured, Observer};
use crate::commands::clean;
use crate::exit::CommandError;
use crate::machine::Machine;
use crate::report::logs::Logs;
use crate::report::progress::{Progress, ProgressMode};
use crate::signals::Signals;
use plan::{Measure, Plan, Repetitions};
use record::{ArmState, Interval};
use scenario::Loaded;
use std::collections::BTreeMap;

/// Blocks of the run that is held against what was observed.
const BLOCKS: u32 = 10;
/// Runs that look for the work, at the most, and the blocks of each: their medians have to be right within a few percent.
const LOOKS: u32 = 4;
const BLOCKS_OF_LOOK: u32 = 3;
/// A role within so much of its observed rate has its work.
const NEAR: f64 = 0.02;
/// More work than this is no work between accesses: scenarios/README.md has the bound.
const MOST_WORK_NS: f64 = 1e9;

/// What the lab said.
pub(super) enum Said {
    /// Nanoseconds a pass, by role; none of a role that noise hid.
    Rates(BTreeMap<String, Interval>),
    /// It cannot be run here: why.
    Cannot(String),
    /// A run of it failed: why.
    Failed(String),
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
    /// Finds each role's work, and then runs the scenario.
    ///
    /// # Errors
    /// [`CommandError`] where a repetition failed or the user interrupted it.
    pub(super) fn run(&self, draft: &mut Draft, origin: &Origin<'_>) -> Result<Said, CommandError> {
        clean::sweep();
        for look in 0..LOOKS {
            if draft.roles.iter().all(|role| wanted_ns(role).is_none()) {
                break;
            }
            let phase = if look == 0 { "the accesses alone" } else { "looking for the work between them" };
            match self.measure(draft, origin, phase, BLOCKS_OF_LOOK)? {
                Said::Rates(rates) if !draft.approach(&rates) => break,
                Said::Rates(_) => {}
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
        let mode = ProgressMode::on_stderr(self.quiet);
        let mut progress = Progress::new(mode, &plan.title, campaign.planned_repetitions());
        progress.phase(phase);
        let measured = campaign.measure(&mut progress, &mut Logs::default());
        progress.finish();
        match measured {
            Ok(Measured { ended_early: Some(error), .. }) | Err(error) if error.interrupted() => {
                self.signals.take();
                Err(CommandError::Interrupted)
            }
            Ok(Measured { ended_early: Some(error), .. }) | Err(error) => Ok(Said::Failed(error.to_string())),
            Ok(measured) => Ok(Said::Rates(rates(&measured, blocks))),
        }
    }

    /// The draft as the lab reads it: what is written is what is run.
    fn load(&self, draft: &Draft, origin: &Origin<'_>) -> Result<Loaded, CommandError> {
        Ok(scenario::parse(self.file, &text::text(draft, origin))?)
    }
}

impl Draft {
    /// Corrects each role's work by how long a pass took. Whether any was still off, and could be corrected.
    fn approach(&mut self, rates: &BTreeMap<String, Interval>) -> bool {
        let mut corrected = false;
        for role in &mut self.roles {
            let (Some(wanted), Some(got)) = (wanted_ns(role), rates.get(&role.name)) else { continue };
            let off = wanted - got.median;
            let work = (role.work_ns as f64 + off).clamp(0.0, MOST_WORK_NS).round() as u64;
            if off.abs() > wanted * NEAR && work != role.work_ns {
                role.work_ns = work;
                corrected = true;
            }
        }
        corrected
    }
}

/// How long a pass has to take, where that is to be tried: of one that takes a lock, hold and think time follow from what
/// was seen.
fn wanted_ns(role: &super::draft::DraftRole) -> Option<f64> {
    let is_tried = role.pass.known == Known::Counted && !role.pass.locks;
    role.pass.observed.filter(|_| is_tried).map(|rate| 1e9 / rate.median)
}

/// Whether a role's work is found by trying.
pub(super) fn is_fitted(role: &super::draft::DraftRole) -> bool {
    wanted_ns(role).is_some()
}

/// Nanoseconds a pass, by role: as the analysis has them; of the few blocks of a look, in which it tells no regime, the
/// middle of the sound repetitions.
fn rates(measured: &Measured, blocks: u32) -> BTreeMap<String, Interval> {
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

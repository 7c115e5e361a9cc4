//! The measurement: a short one of the present layout, whose probes the model needs, then all chosen layouts side by
//! side.

use super::{Clock, question::Question};
use crate::campaign::{Campaign, Measured};
use crate::exit::CommandError;
use crate::machine::Machine;
use crate::overrides;
use crate::report::logs::Logs;
use crate::signals::Signals;
use plan::{Arm, Nanos, Plan, Repetitions};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Longest window and warm-up of a layout's repetition: shorter ones make more blocks in the same time, and it is the
/// number of blocks that narrows an interval. Roles that begin late, or pass seldom, keep the scenario's.
const WINDOW: Nanos = Nanos(100_000_000);
const WARM_UP: Nanos = Nanos(20_000_000);
/// Blocks that there must be room for: fewer give intervals that reach far.
const FEWEST_BLOCKS: u32 = 8;
/// Share of the budget by whose end the pilot has to be done; it ends sooner where it has an interval of any width.
const PILOT_BY: f64 = 0.1;
const PILOT_PRECISION: f64 = 1.0;
/// Share of the budget by whose end the last block is to begin.
const MEASURED_BY: f64 = 0.95;

/// What measurements need.
pub(crate) struct Lab<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) signals: &'a Signals,
    pub(crate) seed: u64,
    pub(crate) quiet: bool,
}

impl Lab<'_> {
    /// Runs the present layout a few times, and tells how long a repetition takes here and now.
    ///
    /// # Errors
    /// [`CommandError`] where a repetition failed or the user interrupted it.
    pub(crate) fn pilot(&self, question: &Question, clock: Clock) -> Result<(Measured, Duration), CommandError> {
        let mut plan = question.plan(&[0], Repetitions::Auto);
        plan.measure.precision = PILOT_PRECISION;
        plan.measure.budget = nanos(clock.left_of(PILOT_BY));
        let start = Instant::now();
        let pilot = self.run(question, "looking at the present layout", &plan)?;
        let repetitions: BTreeSet<(&str, u32)> = pilot.observations.iter().map(|o| (o.arm.as_str(), o.block)).collect();
        let each = start.elapsed() / (repetitions.len() as u32).max(1);
        Ok((pilot, each))
    }

    /// Runs the chosen layouts in blocks until their intervals are tight or the time is gone; a repetition takes about
    /// `each`.
    ///
    /// # Errors
    /// As [`Lab::pilot`].
    pub(crate) fn measure(
        &self,
        question: &Question,
        chosen: &[usize],
        (clock, each): (Clock, Duration),
    ) -> Result<Measured, CommandError> {
        let mut plan = question.plan(chosen, Repetitions::Auto);
        // The campaign looks at its budget behind each block.
        let block = each * (chosen.len() as u32 + 1);
        plan.measure.budget = nanos(clock.left_of(MEASURED_BY).saturating_sub(block));
        self.run(question, "measuring layouts side by side", &plan)
    }

    fn run(&self, question: &Question, phase: &str, plan: &Plan) -> Result<Measured, CommandError> {
        let plan = &Plan { arms: plan.arms.iter().map(shortened).collect(), ..plan.clone() };
        let refused = |error| overrides::usage_or_refusal(&question.loaded, error);
        let bound = plan::bind(plan, &self.machine.topology, self.seed).map_err(refused)?;
        let campaign = Campaign {
            plan,
            bound: &bound,
            machine: self.machine,
            orders: &[],
            events: &[],
            signals: self.signals,
            seed: self.seed,
            hold: None,
        };
        campaign.whole(Some(phase), self.quiet, &mut Logs::default())
    }
}

/// How many layouts there is time for where a repetition takes `each`, the present one and its control not counted; at
/// least one.
pub(crate) fn affordable(clock: Clock, each: Duration) -> usize {
    let arms = clock.left_of(MEASURED_BY).as_secs_f64() / (each.as_secs_f64() * f64::from(FEWEST_BLOCKS)).max(1e-3);
    (arms as usize).saturating_sub(2).max(1)
}

fn nanos(time: Duration) -> Nanos {
    Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// The arm on shorter times, where its roles allow them.
fn shortened(arm: &Arm) -> Arm {
    let seldom = |role: &plan::Role| role.after.0 > 0 || role.period.is_some_and(|period| period.0 > WINDOW.0 / 100);
    if arm.case.roles.iter().any(seldom) {
        return arm.clone();
    }
    Arm { window: arm.window.min(WINDOW), warm_up: arm.warm_up.min(WARM_UP), ..arm.clone() }
}

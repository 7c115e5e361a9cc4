//! What the model makes of the candidates: which are worth a measurement, and what they would be on other machines.

use super::{Clock, ELSEWHERE_BY, RANKED_BY, question::Question};
use crate::campaign::Measured;
use crate::modelling;
use model::{Limits, Machine};
use plan::{LINE_PAIR_BYTES, Program, Repetitions, Topology};
use std::collections::BTreeMap;

/// How much of a layout is simulated to rank it: enough for some thousand passes of each role.
const LIMITS: Limits = Limits { accesses: 100_000, window_ns: 20e6 };

/// Modelled gains closer than this, as a factor, are one rank: the model cannot tell them apart (`docs/model.md`), so
/// the smaller struct goes first.
const SAME_RANK: f64 = 1.03;

/// Layouts of the scenario's own that are always measured: somebody has thought of them.
const MOST_OWN: usize = 4;

/// The model's figures.
pub(crate) struct Ranking {
    /// Modelled gain of each candidate, and why there is none.
    pub(crate) gains: Vec<Result<Gain, String>>,
    /// By candidate, by machine.
    pub(crate) elsewhere: BTreeMap<usize, BTreeMap<String, f64>>,
    /// All but the present one, best first.
    pub(crate) order: Vec<usize>,
}

/// Time of a pass in the present layout over that in another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gain {
    /// The geometric mean over the roles.
    pub(crate) overall: f64,
    /// By role.
    pub(crate) roles: BTreeMap<String, f64>,
}

impl Ranking {
    /// Models every candidate on the machine as the pilot's probes found it, and ranks them.
    pub(crate) fn make(question: &Question, pilot: &Measured, topology: &Topology, seed: u64, clock: Clock) -> Ranking {
        let regimes = &pilot.findings.method.regimes;
        let wanted = pilot.findings.arms.first().and_then(|arm| arm.regime);
        let machine = question.programs[0].as_ref().map_err(Clone::clone).and_then(|program| {
            model::knows(program, topology).map_err(|refusal| refusal.to_string())?;
            modelling::of_regime((&host::Root::system(), topology), regimes, wanted, program)
        });
        let times: Vec<Result<Times, String>> = question
            .programs
            .iter()
            .map(|program| {
                let (machine, _) = machine.as_ref().map_err(Clone::clone)?;
                if clock.left_of(RANKED_BY).is_zero() {
                    return Err("the time for the model was gone".to_owned());
                }
                times(program.as_ref().map_err(Clone::clone)?, machine, topology, seed)
            })
            .collect();
        let gains: Vec<_> = times.iter().map(|time| gain(&question.roles(), &times[0], time)).collect();
        let order = order(question, &gains);
        Ranking { gains, elsewhere: BTreeMap::new(), order }
    }

    /// The candidates to measure, the present one first: the best by rank with the best that stands on pairs of lines,
    /// the smallest, the scenario's own, and changed programs; `most` layouts, and no more than there is time for.
    pub(crate) fn choose(&self, question: &Question, most: usize, affordable: usize) -> Vec<usize> {
        let placed = |index: &usize| question.programs[*index].is_ok();
        let is_layout = |index: &usize| question.candidates[*index].is_layout_only();
        let layouts: Vec<usize> =
            self.order.iter().copied().filter(|index| placed(index) && is_layout(index)).collect();
        let own = |index: &usize| self.is_own(question, *index);
        let changed: Vec<usize> =
            self.order.iter().copied().filter(|index| placed(index) && !is_layout(index)).collect();
        let pair = |index: &usize| question.candidates[*index].align >= LINE_PAIR_BYTES;
        let smallest = layouts.iter().copied().min_by_key(|&index| question.candidates[index].bytes);
        let ranked = |nth: usize| layouts.get(nth).copied();
        let wishes = [ranked(0), changed.first().copied(), layouts.iter().copied().find(pair), ranked(1), smallest]
            .into_iter()
            .flatten()
            .chain(layouts.iter().copied().filter(own).take(MOST_OWN))
            .chain(changed.iter().copied())
            .chain(layouts.iter().copied());
        let mut chosen = Vec::new();
        let room = affordable.min(most + changed.len());
        for index in wishes {
            let layouts_so_far = chosen.iter().filter(|&index| is_layout(index)).count();
            let fits = chosen.len() < room && (!is_layout(&index) || layouts_so_far < most);
            if fits && !chosen.contains(&index) {
                chosen.push(index);
            }
        }
        chosen.sort_by_key(|index| self.order.iter().position(|known| known == index));
        std::iter::once(0).chain(chosen).collect()
    }

    /// Whether the scenario itself has this layout as a variant.
    fn is_own(&self, question: &Question, index: usize) -> bool {
        let candidate = &question.candidates[index];
        let named = |name: &String| question.loaded.plan.arms.iter().any(|arm| arm.variant == *name);
        named(&candidate.name) || candidate.same_as.iter().any(named)
    }

    /// Models the chosen ones on the machines that come with the lab, as far as time allows.
    pub(crate) fn elsewhere(&mut self, question: &Question, chosen: &[usize], seed: u64, clock: Clock) {
        let plan = question.plan(chosen, Repetitions::Fixed(1));
        for name in model::names() {
            let Ok(machine) = Machine::find(name) else { continue };
            let topology = machine.shape.topology();
            // A scenario that names CPUs which are not there has no place on that machine.
            let Ok(bound) = plan::bind(&plan, &topology, seed) else { continue };
            let mut present = None;
            for (&index, arm) in chosen.iter().zip(&bound.arms) {
                if clock.left_of(ELSEWHERE_BY).is_zero() {
                    return;
                }
                let Ok(program) = &arm.program else { continue };
                let Ok(times) = times(program, &machine, &topology, seed) else { continue };
                let present = present.get_or_insert_with(|| Ok(times.clone()));
                if let Ok(gain) = gain(&question.roles(), present, &Ok(times)) {
                    self.elsewhere.entry(index).or_default().insert(name.to_owned(), gain.overall);
                }
            }
        }
    }
}

/// Modelled nanoseconds a pass, by role: the median worker's.
type Times = BTreeMap<String, f64>;

fn times(program: &Program, machine: &Machine, topology: &Topology, seed: u64) -> Result<Times, String> {
    let modelled = model::simulate(program, machine, topology, LIMITS, seed).map_err(|refusal| refusal.to_string())?;
    let mut workers: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for worker in &modelled.workers {
        let ns = worker.ns_per_op.ok_or_else(|| format!("worker {} completed no modelled pass", worker.worker))?;
        workers.entry(worker.role.clone()).or_default().push(ns);
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    Ok(workers.into_iter().map(|(role, times)| (role, median(times))).collect())
}

fn gain(roles: &[&str], present: &Result<Times, String>, other: &Result<Times, String>) -> Result<Gain, String> {
    let (present, other) = (present.as_ref().map_err(Clone::clone)?, other.as_ref().map_err(Clone::clone)?);
    let mut of_roles = BTreeMap::new();
    for role in roles {
        let (Some(before), Some(after)) = (present.get(*role), other.get(*role)) else {
            return Err(format!("role `{role}` has no modelled pass"));
        };
        of_roles.insert((*role).to_owned(), before / after);
    }
    let logs: f64 = of_roles.values().map(|gain: &f64| gain.ln()).sum();
    Ok(Gain { overall: (logs / of_roles.len().max(1) as f64).exp(), roles: of_roles })
}

/// All but the present one: the largest modelled gain first, of one rank the smaller struct, then fewer lines. What was
/// not modelled goes by the lines that it loses by estimate.
fn order(question: &Question, gains: &[Result<Gain, String>]) -> Vec<usize> {
    let rank =
        |index: usize| gains[index].as_ref().map_or(0, |gain| (gain.overall.ln() / SAME_RANK.ln()).round() as i64);
    let estimate = |index: usize| {
        let candidate = &question.candidates[index];
        let places: Vec<(u64, u64)> =
            candidate.places().into_iter().map(|place| place.unwrap_or((u64::MAX / 2, 1))).collect();
        advise::misses_per_second(&advise::Rates::of(&candidate.usage), &places)
    };
    let estimates: Vec<f64> = (0..gains.len()).map(estimate).collect();
    let lines: Vec<f64> = question.candidates.iter().map(|candidate| question.lines(candidate)).collect();
    let mut order: Vec<usize> = (1..gains.len()).collect();
    order.sort_by(|&a, &b| {
        let by_estimate = match (&gains[a], &gains[b]) {
            (Ok(_), Ok(_)) => std::cmp::Ordering::Equal,
            _ => estimates[a].total_cmp(&estimates[b]),
        };
        let bytes = |index: usize| question.candidates[index].bytes;
        rank(b).cmp(&rank(a)).then(by_estimate).then(bytes(a).cmp(&bytes(b))).then(lines[a].total_cmp(&lines[b]))
    });
    order
}

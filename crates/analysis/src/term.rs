//! The figure that a term of a claim or of a prediction names, or why this run has none.

use crate::figures::{Series, at, batch_ns, fairness_jain, latency_ns, ns_per_op, ops_per_second};
use crate::interval::exact;
use crate::view::View;
use crate::words::count;
use crate::{counters, times};
use plan::expect::{Metric, Quantile, Term};
use plan::{BoundArm, MemoryVerb, Program, WorkerProgram};
use record::{ArmState, ArmSummary, Contention, Interval, LockObservation, NsCount, Observation};

/// Why a term has no figure.
pub(crate) enum Missing {
    /// It cannot be had here; more blocks would not help.
    NotApplicable(String),
    /// Noise hid it; more blocks may help.
    Unresolved(String),
}

/// A term's figure.
pub(crate) struct Value {
    pub(crate) interval: Interval,
    /// By block, where the figure has blocks.
    series: Option<Series>,
}

/// A term's figure by block, and its interval; `None` where this run has none.
pub(crate) fn figure(view: &View, arms: &[ArmSummary], term: &Term) -> Option<(Interval, Series)> {
    let Value { interval, series } = value(view, arms, term).ok()?;
    Some((interval, series?))
}

/// The figure that a term names.
pub(crate) fn value(view: &View, arms: &[ArmSummary], term: &Term) -> Result<Value, Missing> {
    let not_here = |why: String| Missing::NotApplicable(why);
    let (bound, summary) = (view.bound.arms.iter().zip(arms).find(|(b, _)| b.arm.name == term.arm))
        .ok_or_else(|| not_here(format!("arm `{}` is not part of this run", term.arm)))?;
    let program = bound.program.as_ref().map_err(|refusal| not_here(format!("`{}`: {}", term.arm, refusal.why)))?;
    match &term.metric {
        Metric::Bytes => Ok(Value { interval: exact(program.layout.bytes as f64), series: None }),
        _ if summary.state == ArmState::Unresolved => {
            let why = summary.why.clone().unwrap_or_default();
            Err(Missing::Unresolved(format!("`{}` is unresolved: {why}", term.arm)))
        }
        Metric::ContentionSolo => contention(view, bound, summary, term, "solo", |c| c.solo),
        Metric::ContentionUnshared => contention(view, bound, summary, term, "unshared", |c| c.unshared),
        Metric::ContendedShare | Metric::HandoffsPerOp | Metric::Wait(_) | Metric::Hold(_) => {
            lock_value(view, program, term)
        }
        Metric::Latency(quantile) => latency_value(view, bound, program, term, *quantile),
        Metric::Batch(quantile) => batch_value(view, bound, program, term, *quantile),
        Metric::CounterPerOp(counter) => counter_value(view, bound, term, counter, |m| m.per_op),
        Metric::CounterPerSecond(counter) => counter_value(view, bound, term, counter, |m| m.per_second),
        Metric::OpsPerSecond => role_value(view, bound, term, ops_per_second),
        Metric::FairnessJain => role_value(view, bound, term, fairness_jain),
        Metric::NsPerOp => role_value(view, bound, term, ns_per_op),
    }
}

fn role<'a>(view: &View<'a>, bound: &'a BoundArm, term: &'a Term) -> &'a str {
    term.of.as_deref().unwrap_or(&view.headline_role(bound).name)
}

fn role_value<'a>(
    view: &View<'a>,
    bound: &'a BoundArm,
    term: &'a Term,
    figure: impl Fn(&[&'a Observation]) -> Option<f64>,
) -> Result<Value, Missing> {
    let role = role(view, bound, term);
    let workers = bound.program.iter().flat_map(|p| &p.workers).filter(|w| w.role_name == role).count();
    if workers == 0 {
        return Err(Missing::NotApplicable(format!("no worker of role `{role}` runs in `{}`", term.arm)));
    }
    if workers == 1 && term.metric == Metric::FairnessJain {
        return Err(Missing::NotApplicable(format!("`{role}` has one worker in `{}`: nobody to be fair to", term.arm)));
    }
    from_series(view, term, view.series(&term.arm, role, figure))
}

/// Of a repetition: the quantile of all passes of the role's workers.
fn latency_value<'a>(
    view: &View<'a>,
    bound: &'a BoundArm,
    program: &Program,
    term: &'a Term,
    quantile: Quantile,
) -> Result<Value, Missing> {
    let role = role(view, bound, term);
    let timed = |w: &WorkerProgram| w.latency || w.period.is_some();
    if program.workers.iter().any(|w| w.role_name == role)
        && !program.workers.iter().any(|w| w.role_name == role && timed(w))
    {
        let name = name(term);
        return Err(Missing::NotApplicable(format!(
            "{name} was not measured: role `{role}` is a closed loop that does not time its passes; give it `latency = true`, or a `rate`"
        )));
    }
    role_value(view, bound, term, |workers| latency_ns(workers, quantile))
}

/// Of a repetition: the quantile of all batches of the role's workers.
fn batch_value<'a>(
    view: &View<'a>,
    bound: &'a BoundArm,
    program: &Program,
    term: &'a Term,
    quantile: Quantile,
) -> Result<Value, Missing> {
    let role = role(view, bound, term);
    let touches = |w: &WorkerProgram| w.memory_steps().any(|(_, step)| step.verb == MemoryVerb::Touch);
    let mut workers = program.workers.iter().filter(|w| w.role_name == role).peekable();
    if workers.peek().is_some() && !workers.any(touches) {
        let name = name(term);
        return Err(Missing::NotApplicable(format!(
            "{name} was not measured: role `{role}` has no step `touch`, whose chunks are the batches"
        )));
    }
    role_value(view, bound, term, |workers| batch_ns(workers, quantile))
}

fn from_series(view: &View, term: &Term, series: Series) -> Result<Value, Missing> {
    let interval = view.single(&series, &format!("expect/{}", name(term)));
    let too_few =
        || Missing::Unresolved(format!("{} has a figure in {} only", name(term), count(series.len(), "block")));
    Ok(Value { interval: interval.ok_or_else(too_few)?, series: Some(series) })
}

fn contention(
    view: &View,
    bound: &BoundArm,
    summary: &ArmSummary,
    term: &Term,
    baseline: &str,
    pick: fn(&Contention) -> Option<Interval>,
) -> Result<Value, Missing> {
    let role = term.of.as_deref().unwrap_or(&summary.headline_role);
    let figure = summary.roles.iter().find(|r| r.role == role).and_then(|r| pick(&r.contention));
    if let Some(interval) = figure {
        return Ok(Value { interval, series: None });
    }
    match view.baseline(bound, role, baseline == "solo") {
        Some(base) => {
            Err(Missing::Unresolved(format!("`{}` has too few repetitions beside `{}`", base.arm.name, term.arm)))
        }
        None => Err(Missing::NotApplicable(format!(
            "this run has no `{baseline}` baseline in which `{role}` does what it does in `{}`",
            term.arm
        ))),
    }
}

fn lock_value(view: &View, program: &Program, term: &Term) -> Result<Value, Missing> {
    let wanted = term.of.as_deref().or_else(|| program.locks.first().map(|l| l.name.as_str()));
    let lock = wanted.ok_or_else(|| Missing::NotApplicable(format!("`{}` has no lock", term.arm)))?;
    if !program.timed_locks && term.metric != Metric::HandoffsPerOp {
        let why = format!("{} was not measured: in `{}` locks are neither tried first nor timed", name(term), term.arm);
        return Err(Missing::NotApplicable(why));
    }
    let at_lock = |workers: &[&Observation]| -> Vec<LockObservation> {
        workers.iter().flat_map(|o| o.locks.iter().filter(|l| l.lock == lock).cloned()).collect()
    };
    let of_block = |workers: &[&Observation]| lock_figure(&term.metric, &at_lock(workers));
    let series: Series = view.kept(&term.arm).filter_map(|(block, w)| Some((block, of_block(w)?))).collect();
    if series.is_empty() {
        let why = match term.metric {
            Metric::Wait(_) => format!("nobody had to wait for `{lock}` in `{}`", term.arm),
            Metric::Hold(_) => {
                let sampling = record::HOLD_SAMPLING;
                format!("no hold of `{lock}` in `{}` was timed: one acquisition in {sampling} is", term.arm)
            }
            _ => format!("nobody acquired `{lock}` in `{}`", term.arm),
        };
        return Err(Missing::NotApplicable(why));
    }
    from_series(view, term, series)
}

/// A lock's figure in one repetition.
fn lock_figure(metric: &Metric, locks: &[LockObservation]) -> Option<f64> {
    let sum = |of: fn(&LockObservation) -> u64| locks.iter().map(of).sum::<u64>() as f64;
    let acquisitions = sum(|l| l.acquisitions);
    let per_acquisition = |n: f64| (acquisitions > 0.0).then(|| n / acquisitions);
    match metric {
        Metric::ContendedShare => per_acquisition(sum(|l| l.contended)),
        Metric::HandoffsPerOp => per_acquisition(sum(|l| l.handoffs)),
        Metric::Wait(quantile) => quantile_of(locks.iter().flat_map(|l| &l.kept_waits), *quantile),
        Metric::Hold(quantile) => quantile_of(locks.iter().flat_map(|l| &l.holds), *quantile),
        _ => None,
    }
}

fn quantile_of<'a>(times: impl Iterator<Item = &'a NsCount>, quantile: Quantile) -> Option<f64> {
    times::percentiles(times).map(|all| at(&all, quantile))
}

fn counter_value<'a>(
    view: &View<'a>,
    bound: &'a BoundArm,
    term: &'a Term,
    counter: &str,
    pick: fn(&record::Measured) -> Option<f64>,
) -> Result<Value, Missing> {
    let role = role(view, bound, term);
    // The scenario's own events are replaced as a list, and its claims stay.
    if !plan::event::is_counter(counter) && view.plan.measure.events.iter().all(|event| event.key() != counter) {
        let why = format!(
            "`{counter}` is not among this run's events: `--events` replaced the scenario's list; add `{counter}` to it"
        );
        return Err(Missing::NotApplicable(why));
    }
    let whole = counters::measured(&view.workers(&term.arm, Some(role)), counter);
    if let Some(why) = counters::why_not(&whole.reading) {
        return Err(Missing::NotApplicable(format!("`{counter}` was not counted: {why}")));
    }
    let of_block = |workers: &[&Observation]| pick(&counters::measured(workers, counter));
    from_series(view, term, view.series(&term.arm, role, of_block))
}

/// The ratio block by block, which drift of the whole machine does not widen: for the same metric on both sides. `text`
/// tells one ratio of a run from the others.
pub(crate) fn paired(
    view: &View,
    (over, left): (&Term, &Value),
    (under, right): (&Term, &Value),
    text: &str,
) -> Option<(Interval, usize)> {
    if over.metric != under.metric {
        return None;
    }
    let (l, r) = (left.series.as_ref()?, right.series.as_ref()?);
    let ratio = view.ratio_of(l, r, &format!("expect/{text}"))?;
    Some((ratio, l.keys().filter(|block| r.contains_key(block)).count()))
}

/// The ratio end to end; `None` where either may be 0 or less.
pub(crate) fn quotient(left: Interval, right: Interval) -> Option<Interval> {
    let positive = left.low >= 0.0 && right.low > 0.0;
    let median = left.median / right.median;
    positive.then(|| Interval { median, low: left.low / right.high, high: left.high / right.low })
}

/// A term as claims write it.
pub(crate) fn name(term: &Term) -> String {
    let Term { metric, arm, of } = term;
    match of {
        Some(of) => format!("{metric}({arm}, {of})"),
        None => format!("{metric}({arm})"),
    }
}

//! The first gate: the same work is done, and every count is exact.
//!
//! Whether a count can be lost is first read off the steps, since luck may hide it: two workers that write one element by
//! a plain read and a plain write lose a count only when they meet. Then it is counted: the elements' sum, once all have
//! ended, against the passes that were made.

use crate::places::{Touch, TouchKind, shown, touches, who};
use crate::{CountRule, Exercise, SumRule, task};
use plan::{Arm, Program};
use record::{GateCheck, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// What can be told without running it. Both arms are bound to one machine.
pub fn conservation(exercise: &Exercise, starter: (&Arm, &Program), yours: (&Arm, &Program)) -> Vec<GateCheck> {
    let differences = task::differences(exercise, starter, yours);
    let mut checks = vec![GateCheck::of(
        "it is still the task",
        match differences.is_empty() {
            true => Ok("nothing is changed that may not be, and as much work is done".to_owned()),
            false => Err(differences.join("; ")),
        },
    )];
    let (before, now) = (touches(starter.1), touches(yours.1));
    for field in counted(exercise) {
        checks.push(GateCheck::of(format!("each pass counts in `{field}`"), each_pass_counts(exercise, field, &now)));
        checks.push(GateCheck::of(format!("no count of `{field}` can be lost"), none_lost(yours.1, field, &now)));
    }
    for rule in &exercise.sums {
        let what = format!("`{}` reads all of `{}`", rule.role, rule.field);
        checks.push(GateCheck::of(what, reads_all(yours.1, rule, &before, &now)));
    }
    checks
}

/// The sums in memory against the passes that were made. `traces` are those of `program` in one repetition, and `element`
/// gives the 8 bytes at an offset of the fields area once all have ended; `None` where it does not lie in it.
pub fn exact(
    exercise: &Exercise,
    program: &Program,
    traces: &[Trace],
    element: impl Fn(u64) -> Option<u64>,
) -> Vec<GateCheck> {
    let check = |field: &str| {
        let elements = program.layout.placed.iter().filter(|placed| placed.field == field);
        // Wide enough for whatever stands in memory: what was written over may add up to more than a u64.
        let sum = elements.map(|placed| element(placed.offset).map(u128::from)).sum::<Option<u128>>();
        let (mut least, mut slack) = (0_u128, 0_u128);
        for (rule, trace) in exercise.counts.iter().flat_map(|rule| traces.iter().map(move |trace| (rule, trace))) {
            let in_role = |w: &plan::WorkerProgram| w.index.0 == trace.worker && w.role_name == rule.role;
            if rule.field == field && program.workers.iter().any(in_role) {
                let per_pass = u128::from(rule.per_pass);
                least += u128::from(trace.all_passes) * per_pass;
                // The pass that was given up may have counted before that.
                slack += u128::from(trace.gave_up) * per_pass;
            }
        }
        let passes = format!("{least} passes were made");
        match sum {
            None => Err(format!("`{field}` does not lie in the memory of the run")),
            Some(_) if least == 0 => Err("no pass was made: nothing was counted".to_owned()),
            Some(sum) if sum < least => Err(format!("{passes} and {} of their counts are missing", least - sum)),
            Some(sum) if sum > least + slack => Err(format!("{passes} and {} counts are too many", sum - least)),
            Some(sum) => Ok(format!("{passes}, and {sum} counts stand in memory")),
        }
    };
    counted(exercise).map(|field| GateCheck::of(format!("the counts of `{field}` are exact"), check(field))).collect()
}

/// The fields that are counted, each once.
fn counted(exercise: &Exercise) -> impl Iterator<Item = &str> {
    exercise.counts.iter().map(|rule| rule.field.as_str()).collect::<BTreeSet<_>>().into_iter()
}

fn each_pass_counts(exercise: &Exercise, field: &str, touches: &[Touch]) -> Result<String, String> {
    let rules: Vec<&CountRule> = exercise.counts.iter().filter(|rule| rule.field == field).collect();
    let mut raised: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    for touch in touches.iter().filter(|touch| touch.placed.field == field && touch.kind.writes()) {
        let (worker, step) = (who(touch.worker), touch.step());
        if !rules.iter().any(|rule| rule.role == touch.worker.role_name) {
            return Err(format!("{worker} writes it too: `{step}`"));
        }
        match touch.kind {
            TouchKind::Overwrite => return Err(format!("`{step}` of {worker} overwrites it, or may fail to count")),
            TouchKind::Line | TouchKind::Read => continue,
            _ if touch.every > 1 => {
                return Err(format!("`{step}` of {worker} counts one pass in {}; the others are lost", touch.every));
            }
            _ if touch.may_be_skipped => {
                return Err(format!("`{step}` of {worker} is skipped where the wait for its lock ends at the timeout"));
            }
            _ => raised.entry(touch.worker.index.0).or_default().insert(touch.op),
        };
    }
    let workers: BTreeMap<u32, &str> =
        touches.iter().map(|touch| (touch.worker.index.0, touch.worker.role_name.as_str())).collect();
    for (index, role) in workers {
        let Some(rule) = rules.iter().find(|rule| rule.role == role) else { continue };
        let made = raised.get(&index).map_or(0, BTreeSet::len) as u64;
        if made != rule.per_pass {
            return Err(format!("a pass of worker {index} ({role}) adds {made}, where the task is {}", rule.per_pass));
        }
    }
    if raised.is_empty() { Err("nobody counts in it".to_owned()) } else { Ok("by as much as the task says".to_owned()) }
}

fn none_lost(program: &Program, field: &str, touches: &[Touch]) -> Result<String, String> {
    let mut by_element: BTreeMap<u32, Vec<&Touch>> = BTreeMap::new();
    for touch in touches.iter().filter(|touch| touch.placed.field == field && touch.kind.raises()) {
        by_element.entry(touch.placed.element).or_default().push(touch);
    }
    for writes in by_element.values() {
        let writers: BTreeSet<u32> = writes.iter().map(|write| write.worker.index.0).collect();
        let plain = writes.iter().find(|write| write.kind == TouchKind::Bump);
        let Some(plain) = plain.filter(|_| writers.len() > 1) else { continue };
        let common = writes.iter().map(|write| &write.alone_under).fold(None, |common: Option<BTreeSet<u32>>, held| {
            Some(common.map_or_else(|| held.clone(), |common| &common & held))
        });
        if common.is_none_or(|locks| locks.is_empty()) {
            return Err(format!(
                "{} is raised by {} workers, by `{}` with no lock around all of them: two that meet count once",
                shown(program, plain.placed),
                writers.len(),
                plain.step()
            ));
        }
    }
    Ok("each element has one writer, atomic ones, or one lock around all of them".to_owned())
}

fn reads_all(program: &Program, rule: &SumRule, before: &[Touch], now: &[Touch]) -> Result<String, String> {
    let of_field = |touch: &&Touch| touch.placed.field == rule.field;
    let rate = |touches: &[Touch], worker: u32, element: u32| -> f64 {
        let reads = |t: &&Touch| t.worker.index.0 == worker && t.placed.element == element && t.kind == TouchKind::Read;
        touches.iter().filter(of_field).filter(reads).map(Touch::per_pass).sum()
    };
    let written: BTreeMap<u32, &Touch> =
        now.iter().filter(of_field).filter(|t| t.kind.writes()).map(|t| (t.placed.element, t)).collect();
    let readers: BTreeSet<u32> =
        now.iter().filter(|t| t.worker.role_name == rule.role).map(|t| t.worker.index.0).collect();
    for reader in readers {
        let elements: BTreeSet<u32> = before.iter().filter(of_field).map(|t| t.placed.element).collect();
        let wanted = elements.into_iter().map(|element| rate(before, reader, element)).fold(f64::INFINITY, f64::min);
        let missed = written.iter().find(|(element, _)| rate(now, reader, **element) < wanted * (1.0 - 1e-9));
        if let Some((element, touch)) = missed {
            return Err(format!(
                "worker {reader} reads {} in {:.5} of its passes, where the task is {wanted:.5}: its sum would lack it",
                shown(program, touch.placed),
                rate(now, reader, *element)
            ));
        }
    }
    Ok("every element that somebody writes, as often as in the starter".to_owned())
}
